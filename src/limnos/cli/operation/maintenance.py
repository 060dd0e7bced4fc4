"""`maintenance plan | explain | run | status`.

May import `client` values and this room.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
from cyclopts import App

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_done, show_fields, show_rows, visible
from limnos.client.operation.maintenance_values import MaintenanceReport

app = App(name="maintenance")


@app.command
def plan(catalog: str, /, *, kind: str | None = None, common: CommonFlags = DEFAULTS) -> None:
    """Show what the tables of a catalog need, the greatest need first.

    Shows the tables that you may modify. The server looks at what changed every five minutes.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    kind
        Only this kind: compact, deletes, manifests, expire or metadata.
    """
    with common.client() as client:
        plan = client.maintenance.plan(catalog)
    rows = [msgspec.structs.asdict(each) for each in plan if kind in (None, each.kind)]
    show_rows(
        rows, ["table", "kind", "score", "reason", "found_at"], shape=common.shape, empty="no table needs maintenance"
    )


@app.command
def explain(path: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show what a table needs, which policies apply, and what keeps each snapshot.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    """
    with common.client() as client:
        report = client.maintenance.explain(path)
    if common.shape == "json":
        show_fields(msgspec.to_builtins(report), shape=common.shape)
        return
    print("\n".join(visible(line) for line in _lines(report)))


def _lines(report: MaintenanceReport) -> Iterator[str]:
    """Yield the lines of an explanation for people."""
    yield f"{report.data_files or 0} data files, {report.delete_files or 0} delete files, {report.total_bytes or 0} bytes"
    yield f"writer: {report.writer}"
    yield from (f"blocked: {each}" for each in report.blocked)
    yield from (f"needs {each.kind}: {each.reason}" for each in report.findings)
    if not report.findings:
        yield "needs nothing"
    for policy in report.policies:
        state = "" if policy.enabled else " (disabled, so it turns this off)"
        yield f"policy {policy.name} ({policy.type}) on {policy.on}{state}"
        yield from (f"  policy {name} on the same object does not apply" for name in policy.not_applied)
    yield f"{report.removable} of {report.snapshots} snapshots may be removed"
    yield from (f"  branch or tag {name} is past its age" for name in report.refs_removable)
    for each in report.history:
        yield f"  {each.snapshot_id} {each.at} {each.kept_because or 'may be removed'}"


@app.command
def run(path: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Expire the snapshots of a table that nothing keeps, in your name; `maintenance explain` shows which.

    The server carries it out within a minute; `maintenance status` shows the result. No data file is deleted.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    """
    with common.client() as client:
        operation = client.maintenance.run(path)
    message = f"operation {operation} was asked for: see 'limnos maintenance status'"
    show_done(message, {"operation": operation}, shape=common.shape)


@app.command
def status(catalog: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show the server's automatic maintenance, and the last operations on tables that you may modify.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    with common.client() as client:
        status = client.maintenance.status(catalog)
    rows = [msgspec.structs.asdict(each) for each in status.operations]
    columns = ["id", "table", "kind", "state", "user", "policy", "started_at", "ended_at", "result"]
    show_rows(rows, columns, shape=common.shape, empty="no operation on a table was carried out")
    retention = f"for {status.metadata_keep_s} s" if status.metadata_keep_s else "for ever"
    lines = (
        f"assessing tables: {'on' if status.assess else 'off'}",
        f"expiring snapshots without a policy: {'on' if status.expire else 'off'}",
        f"metadata files that left a log are kept {retention}",
    )
    sys.stderr.write("".join(visible(line) + "\n" for line in lines))
