# SPDX-License-Identifier: Apache-2.0
"""`maintenance plan | explain | run | cancel | status | work`: maintenance of tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.extras import import_extra
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.operation.spark_conf import ConfFlag, spark_conf
from limnos.cli.output import show_done, show_fields, show_rows, visible
from limnos.client.errors import NotFoundError
from limnos.client.operation.maintenance_values import (
    AppliedPolicy,
    MaintenanceOperation,
    MaintenanceReport,
    MaintenanceStatus,
    OrphanFiles,
)
from limnos.client.paths import parts_of
from limnos.model.number_texts import count_with_noun
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

if TYPE_CHECKING:
    from limnos.rooms.maintenance.engine.executor import OperationEnd

FindingKind = Literal["compact", "deletes", "manifests", "indexes", "retention", "expire", "metadata", "orphans"]
OperationKind = Literal["expire", "orphans", "compact", "deletes", "manifests", "statistics", "retention", "indexes"]
app = App(name="maintenance")
HISTORY_MAX: Final = 30
"""Snapshots or versions that an explanation shows as text."""
_STATE_ORDER: Final = {"waiting": 0, "running": 1}
"""Operations that have not ended are listed first; those of one state stay newest first."""
_DAY_S: Final = 86_400
PAUSE_S: Final = 2.0
"""Seconds between two requests for an operation's state."""
pause = time.sleep


@app.command
def plan(catalog: str, /, *, kind: FindingKind | None = None, common: CommonFlags = DEFAULTS) -> None:
    """Show the maintenance that the tables of a catalog need, most urgent first.

    Shows the tables that you may modify. The server checks changed tables every five minutes.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    kind
        Only this kind: compact, deletes, manifests, indexes, retention, expire, metadata or orphans.
    """
    with common.client() as client, _catalog_advice(catalog):
        plan = client.maintenance.plan(catalog)
    rows = [msgspec.structs.asdict(each) for each in plan if kind in (None, each.kind)]
    need = "maintenance" if kind is None else kind
    more = f"; {len(plan)} other findings: 'limnos maintenance plan {catalog}'" if plan and not rows else ""
    empty = f"no table that you may modify needs {need}; changed tables are assessed every five minutes{more}"
    show_rows(rows, ["table", "kind", "score", "reason", "found_at"], output_format=common.output_format, empty=empty)


@contextmanager
def _catalog_advice(catalog: str) -> Iterator[None]:
    """Raise UsageError instead of NotFoundError if `catalog` is a path below a catalog."""
    try:
        yield
    except NotFoundError as error:
        if len(parts_of(catalog)) < 2:
            raise
        raise UsageError(
            f"{catalog} is not a catalog: give a catalog, such as {parts_of(catalog)[0]}",
            hint="for one table use 'limnos show maintenance'",
        ) from error


@app.command
def explain(path: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show the maintenance that a table needs, the policies that apply, and the reason why each snapshot is retained.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    """
    with common.client() as client:
        report = client.maintenance.explain(path)
    if common.output_format == "json":
        show_fields(msgspec.to_builtins(report), output_format=common.output_format)
        return
    print("\n".join(visible(line) for line in _lines(report)))


def _lines(report: MaintenanceReport) -> Iterator[str]:
    """Yield the lines of the explanation as human-readable text."""
    counts = ((report.data_files, "data file"), (report.delete_files, "delete file"), (report.total_bytes, "byte"))
    yield ", ".join(count_with_noun(count or 0, noun) for count, noun in counts)
    yield f"writer: {report.writer}"
    yield from (f"blocked: {each}" for each in report.blocked)
    for each in report.findings:
        yield f"needs {each.kind}: {each.reason}"
        if each.kind in report.inactions:
            yield f"  no operation follows: {report.inactions[each.kind]}"
    if not report.findings:
        yield "needs no maintenance"
    for policy in report.policies:
        state = "" if policy.enabled else " (disabled, so it turns these operations off)"
        name = "that you may not load" if policy.name is None else policy.name
        yield f"policy {name} ({policy.type}) on {policy.on}{_decisions(policy)}{state}"
        yield from (f"  policy {name} on the same object does not apply" for name in policy.not_applied)
    yield f"{report.removable} of {count_with_noun(report.snapshots, 'snapshot')} may be removed"
    yield from (f"  branch or tag {name} is past its age" for name in report.refs_removable)
    for snapshot in report.history[:HISTORY_MAX]:
        yield f"  {snapshot.snapshot_id} {snapshot.at} {snapshot.kept_because or 'may be removed'}"
    if len(report.history) > HISTORY_MAX:
        is_whole = len(report.history) >= report.snapshots
        which = "them" if is_whole else f"the newest {len(report.history)}"
        yield f"  and {max(report.snapshots, len(report.history)) - HISTORY_MAX} more: --output json shows {which}"
    yield from _orphan_lines(report.orphans)


def _decisions(policy: AppliedPolicy) -> str:
    """Return a clause with the kinds of operations that a policy decides about; empty from an older server."""
    if policy.decides is None:
        return ""
    kinds = [f"{kind} (off in this policy)" if kind in policy.turned_off else kind for kind in policy.decides]
    return f" decides about {', '.join(kinds) or 'nothing here'}"


def _orphan_lines(orphans: OrphanFiles) -> Iterator[str]:
    """Yield the lines about orphan files as human-readable text."""
    yield f"removal of orphan files: {orphans.removal}"
    if orphans.checked_at is not None:
        orphan_count, size = (
            count_with_noun(orphans.candidates, "orphan"),
            count_with_noun(orphans.candidate_bytes, "byte"),
        )
        yield f"{orphan_count} of {size} among {count_with_noun(orphans.listed, 'file')}, checked {orphans.checked_at}"
    if orphans.blocked is not None:
        yield f"  no file is removed: {orphans.blocked}"
    for each in orphans.files:
        waits = ""
        if each.state == "waiting" and orphans.age_s:
            waits = f" for {each.waited_s / _DAY_S:.1f} of {orphans.age_s / _DAY_S:g} days"
        yield f"  {each.state}{waits}: {each.name} ({each.size} bytes), first seen {each.first_seen_at}"


@app.command
def run(
    path: str,
    /,
    *,
    kind: OperationKind = "expire",
    wait: Annotated[bool, Parameter(negative="")] = False,
    wait_s: float = 600,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Request an operation on a table, with your rights; `maintenance status` shows its result.

    The server expires snapshots and checks for orphan files within a minute. The other operations on Iceberg
    tables wait for an executor: all but statistics rewrite or delete files. The server itself maintains Lance tables.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    kind
        The operation: expire removes the snapshots that need not be retained, orphans checks for orphan files and
        removes old ones, compact rewrites small files, deletes applies delete files, manifests rewrites manifests,
        statistics computes statistics of the columns and rewrites no file, retention deletes the rows that are older
        than a policy's limit, indexes adds new rows to the indexes of a Lance table.
    wait
        Wait for the operation and show its result; the command fails if the operation does.
    wait_s
        The maximum wait in seconds.
    """
    with common.client() as client:
        operation = client.maintenance.run(path, operation=kind)
        if wait:
            finished_operation = _wait(client, path, operation=operation, wait_s=wait_s)
            show_done(
                f"operation {operation}: {finished_operation.result or ''}",
                msgspec.structs.asdict(finished_operation),
                output_format=common.output_format,
            )
            return
    catalog = display.render(display.parse(path)[:1])
    message = f"operation {operation} was requested: see 'limnos list operations {catalog}'"
    show_done(message, {"operation": operation}, output_format=common.output_format)


@app.command
def cancel(operation: int, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Cancel an operation that rewrites a table, waiting or running. You must be allowed to modify its table.

    Its executor stops within a minute. The server's own operations, such as expire, end by themselves.

    Parameters
    ----------
    operation
        The number of the operation, as `run` and `status` show it.
    """
    with common.client() as client:
        state = client.maintenance.cancel(operation)
    text = "is cancelled" if state == "cancelled" else f"had ended before: it is {state}"
    show_done(
        f"operation {operation} {text}", {"operation": operation, "state": state}, output_format=common.output_format
    )


@app.command
def work(
    *,
    master: Annotated[
        str, Parameter(help="Spark master: local[2], spark://host:7077, or a Spark Connect server: sc://host:15002.")
    ] = "local[2]",
    threads: Annotated[int, Parameter(help="Maximum number of concurrent operations.")] = 4,
    idle: Annotated[
        float | None, Parameter(help="Exit after this many seconds without work; the default is never.")
    ] = None,
    conf: ConfFlag = None,
    s3: Annotated[bool, Parameter(negative="", help="The tables' files are on S3.")] = False,
    executor_wait: Annotated[float, Parameter(help="Timeout for the cluster's first executor, in seconds.")] = 60.0,
    allow_http: Annotated[
        bool, Parameter(negative="", help="Allow http:// to another machine, which sends tokens unencrypted.")
    ] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Execute operations that rewrite tables, on Spark; run it near your cluster.

    It leases operations of the metalake from the server, for which you must own the metalake or be a service admin.
    Spark starts with the first operation.
    """
    _check_address(common.server_url, allow_http=allow_http)
    _check_limits(threads=threads, idle=idle, executor_wait=executor_wait)
    runners = import_extra("limnos.rooms.maintenance.engine.runners", extra="spark")
    from limnos.rooms.maintenance.engine.executor import DONE, FAILED, MaintenanceExecutor

    config = spark_conf(conf)
    with common.client() as client:
        runner = runners.runner_for(
            common.server_url,
            metalake=common.metalake,
            master=master,
            config=config,
            ca_file=common.ca_path,
            s3=s3,
            executor_wait_s=executor_wait,
        )
        executor = MaintenanceExecutor(client.maintenance, runner, threads=threads, idle_s=idle, show_end=_show_end)
        summary = executor.run()
    words = ", ".join(f"{count} {outcome}" for outcome, count in sorted(summary.ended.items()))
    reasons = [f"{outcome}: {summary.texts[outcome]}" for outcome in sorted(summary.ended) if outcome != DONE]
    show_done(
        "\n".join([f"ended: {words or 'nothing to do'}", *reasons]),
        dict(summary.ended) or {DONE: 0},
        output_format=common.output_format,
    )
    if FAILED in summary.ended:
        raise StoppedError(f"{summary.ended[FAILED]} of {summary.count} operations failed")


def _show_end(operation: int, end: OperationEnd) -> None:
    """Print a line on stderr about an operation that ended."""
    sys.stderr.write(visible(f"operation {operation} {end.outcome}: {' '.join(end.text.split())}") + "\n")
    sys.stderr.flush()


def _check_limits(*, threads: int, idle: float | None, executor_wait: float) -> None:
    """Raise UsageError for a number of threads or seconds out of range."""
    if threads < 1:
        raise UsageError(f"--threads {threads}: it must be at least 1")
    if (idle is not None and not idle >= 0) or not executor_wait > 0:
        raise UsageError("--idle must be at least 0 seconds, and --executor-wait more than 0")


def _check_address(address: str, *, allow_http: bool) -> None:
    """Raise UsageError for a URL without TLS, over which the tokens of operations could be intercepted, unless
    `allow_http`.
    """
    from limnos.config.values import is_loopback

    parts = urlsplit(address)
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"{address} is not encrypted: the tokens of operations, which may change tables, could be intercepted",
            hint="use https://, or --allow-http if the network is trusted",
        )


def _wait(client: Client, path: str, *, operation: int, wait_s: float) -> MaintenanceOperation:
    """Wait until an operation has ended. Raises StoppedError if it failed, or has not ended after `wait_s` seconds."""
    catalog = parts_of(path)[0]
    until = time.monotonic() + wait_s
    while True:
        page = client.maintenance.status(catalog, before=operation + 1).operations
        row = page[0] if page and page[0].id == operation else None
        if row is None:
            raise StoppedError(f"operation {operation} is no longer listed: the table was dropped", code="not-found")
        if row.ended_at is not None and row.state == "done":
            return row
        if row.ended_at is not None:
            raise StoppedError(f"operation {operation} is {row.state}: {row.result or 'no reason was given'}")
        if time.monotonic() >= until:
            hint = f"'limnos list operations {catalog}' shows when it has ended"
            raise StoppedError(
                f"operation {operation} is {row.state} after {wait_s:g} s", code="unavailable", hint=hint
            )
        pause(PAUSE_S)


@app.command
def status(catalog: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show the server's automatic maintenance, and the last operations on tables that you may modify.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    with common.client() as client, _catalog_advice(catalog):
        status = client.maintenance.status(catalog)
    sorted_operations = sorted(status.operations, key=lambda each: _STATE_ORDER.get(each.state, len(_STATE_ORDER)))
    rows = [msgspec.structs.asdict(each) for each in sorted_operations]
    if common.output_format != "json":
        rows = [{**row, "requested_at": row["started_at"], "last_lease_at": row["leased_at"]} for row in rows]
    columns = [
        "id",
        "table",
        "kind",
        "state",
        "user",
        "policy",
        "requested_at",
        "last_lease_at",
        "ended_at",
        "result",
    ]
    show_rows(rows, columns, output_format=common.output_format, empty="no operation on a table was requested")
    sys.stderr.write("".join(visible(line) + "\n" for line in _status_lines(status)))


def _status_lines(status: MaintenanceStatus) -> Iterator[str]:
    """Yield the lines about the server's settings, and a warning if operations wait for an executor that is off."""
    yield f"assessing tables: {'on' if status.assess else 'off'}"
    if status.table_format == "iceberg":
        yield from _iceberg_lines(status)
    if status.waiting_for_executor and status.executor == "off":
        waiting = count_with_noun(status.waiting_for_executor, "listed operation")
        verbs = "waits" if status.waiting_for_executor == 1 else "wait"
        advice = "the server starts none: if no executor is running, start one with 'limnos maintenance work'"
        if status.executor_active:
            advice = "one is running: it requested operations from the server within the last minute"
        yield f"{waiting} {verbs} for an executor; {advice}"


def _iceberg_lines(status: MaintenanceStatus) -> Iterator[str]:
    """Yield the lines about the settings for Iceberg tables."""
    orphans = {"off": "off", "policies": "where a policy requires it", "all": "on"}.get(status.orphans, status.orphans)
    retention = f"for {status.metadata_keep_s} s" if status.metadata_keep_s else "forever"
    yield f"Iceberg tables: expiring snapshots without a policy: {'on' if status.expire else 'off'}"
    yield f"Iceberg tables: rewriting files without a policy: {'on' if status.rewrite else 'off'}"
    yield f"Iceberg tables: metadata files outside of the metadata log are kept {retention}"
    yield f"Iceberg tables: removing orphan files: {orphans}"
    if status.executor is None:
        return  # an older server
    yield (
        f"Iceberg tables: quiet hours of rewrites for policies and settings: {', '.join(status.quiet_hours) or 'none'}"
    )
    budget = count_with_noun(status.bytes_per_day, "byte") if status.bytes_per_day else "no limit"
    yield f"Iceberg tables: budget of rewrites in 24 hours: {budget}"
    yield f"Iceberg tables: executor of the server: {status.executor} (setting maintenance.executor)"
