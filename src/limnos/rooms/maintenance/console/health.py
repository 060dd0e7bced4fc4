# SPDX-License-Identifier: Apache-2.0
"""The tab about a table's maintenance: findings, policies, snapshots, operations, orphan files, statistics, and forms.
It serves Iceberg and Lance tables, which have different operations.

Has no business rules. Callers who may not maintain the table see only its statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest, LimnosError, PermissionDenied
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address, segment_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import count_text, size_text
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    Choice,
    FormInput,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    TabPart,
    hidden_fields,
)
from limnos.rooms.console.http.tabs import Chip, ChipLook, Fact
from limnos.rooms.maintenance.services.orphans.reports import OrphanReport
from limnos.rooms.maintenance.services.reports import TableReport, operation_state, table_explain
from limnos.rooms.maintenance.services.requests import OPERATION_KINDS, operation_start
from limnos.rooms.maintenance.services.rewriting.cancellation import rewrite_cancel
from limnos.rooms.maintenance.services.rewriting.kinds import LEASED_KINDS
from limnos.rooms.maintenance.services.waiting import FOR_EXECUTOR, FOR_SERVER
from limnos.services.governance.statistics import statistics_list
from limnos.services.lookup.securables import AttachmentTarget, render_full_name
from limnos.services.request.name_codecs import codec_for
from limnos.store.activity.maintenance import OperationRow

_SNAPSHOTS_SHOWN: Final = 50


class _FormatWords(NamedTuple):
    """The tab's labels for tables of one format: names of the operations, and words for files and versions."""

    kinds: dict[str, str]
    files: str
    state: str
    states: str


_ICEBERG: Final = _FormatWords(
    {
        "expire": "Expire snapshots",
        "orphans": "Check for orphan files",
        "compact": "Compact small files",
        "deletes": "Rewrite delete files",
        "manifests": "Rewrite manifests",
        "statistics": "Compute statistics",
        "retention": "Delete old rows",
    },
    "Data files",
    "Snapshot",
    "snapshots",
)
_LANCE: Final = _FormatWords(
    {"indexes": "Update indexes", "compact": "Merge small fragments", "expire": "Remove old versions"},
    "Fragments",
    "Version",
    "versions",
)
_POLICY_PREFIXES: Final = ("system_iceberg_", "system_lance_", "system_")
_EXECUTOR_WAITS: Final = (
    "waits for an executor: run limnos maintenance work on a machine with Spark, or set maintenance.executor to local"
)
_LOOKS: Final[Mapping[str, tuple[ChipLook, str]]] = {
    "done": ("ok", "check"),
    "failed": ("bad", "cross"),
    "lost": ("warn", "alert"),
    "running": ("info", "ring"),
}


async def health_tab(page_request: PageRequest, address: ObjectAddress, *, is_lance: bool) -> TabPart:
    """Return the content of the tab. An error, such as a refusal, is returned as its warning."""
    statistics, words = await _statistics(page_request, address), _LANCE if is_lance else _ICEBERG
    try:
        report = await table_explain(page_request.ctx, address.scope, path=address.levels)
    except PermissionDenied as error:
        warning = f"You may see this table, but not its maintenance. {error.message}"
        return TabPart(sheets=statistics, warning=warning)
    except LimnosError as error:
        return TabPart(sheets=statistics, warning=error.message)
    return TabPart(
        _facts(report, words),
        (
            _findings_sheet(page_request, address, report=report, words=words),
            _policies(page_request, address, report=report, words=words),
            _snapshots_sheet(report, words),
            _operations_sheet(page_request, address, report=report, words=words),
            *_orphans(report.orphans),
            *statistics,
        ),
        (
            _form(page_request, address, words=words),
            *(() if is_lance else _cancel_forms(page_request, address, report=report)),
        ),
        "; ".join(report.blocked),
    )


def _facts(report: TableReport, words: _FormatWords) -> tuple[Fact, ...]:
    explanation = report.explanation
    counts = ((words.files, explanation.data_files), ("Delete files", explanation.delete_files))
    files = tuple(Fact(label=label, text=count_text(count)) for label, count in counts if count is not None)
    size = () if explanation.total_bytes is None else (Fact(label="Size", text=size_text(explanation.total_bytes)),)
    removable = Fact(
        label=f"Removable {words.states}",
        text=f"{count_text(explanation.removable)} of {count_text(explanation.snapshots)}",
    )
    writer = () if words is _LANCE else (Fact(label="Writes", text=explanation.writer),)
    return (*files, *size, removable, *writer, Fact(label="Orphan files", text=report.orphans.removal))


def _findings_sheet(
    page_request: PageRequest, address: ObjectAddress, *, report: TableReport, words: _FormatWords
) -> Sheet:
    columns = (
        SheetColumn(text="Finding"),
        SheetColumn(text="Score", is_number=True),
        SheetColumn(text="Why"),
        SheetColumn(text="Decided by", hides=True),
        SheetColumn(text="Found", hides=True),
    )
    rows = tuple(
        (
            SheetCell(text=words.kinds.get(each.row.kind, each.row.kind)),
            SheetCell(text=str(each.row.score)),
            SheetCell(text=each.row.reason),
            _deciding_cell(page_request, address, report=report, kind=each.row.kind),
            SheetCell(at_ms=each.row.found_at),
        )
        for each in report.findings
    )
    return Sheet(title="Due operations", columns=columns, rows=rows, note="Nothing is due.")


def _deciding_cell(page_request: PageRequest, address: ObjectAddress, *, report: TableReport, kind: str) -> SheetCell:
    """Return the cell with the policy that decides about a kind of operation on the table, or the server's settings."""
    policy = next((each for each in report.policies if kind in each.decides), None)
    if policy is None:
        return SheetCell(text="the server's settings")
    return _policy_cell(page_request, address.metalake, name=policy.name)


def _policy_cell(page_request: PageRequest, metalake: str, *, name: str | None, is_name: bool = False) -> SheetCell:
    """Return the cell with a link to a policy; `name` is None if the caller may not see the policy."""
    if name is None:
        return SheetCell(text="a policy that you may not see", is_name=is_name)
    return SheetCell(
        text=name, href=f"{page_request.base}/policy/{segment_of(metalake)}/{segment_of(name)}", is_name=is_name
    )


def _policies(page_request: PageRequest, address: ObjectAddress, *, report: TableReport, words: _FormatWords) -> Sheet:
    """Return the list of the policies that apply to the table, its own and those inherited from its containers."""
    own_path = (address.catalog, *address.levels)
    columns = (
        SheetColumn(text="Policy"),
        SheetColumn(text="Type"),
        SheetColumn(text="Attached to", is_code=True),
        SheetColumn(text="State"),
        SheetColumn(text="Decides about"),
    )
    rows = tuple(
        (
            _policy_cell(page_request, address.metalake, name=each.name, is_name=True),
            SheetCell(text=_policy_type(each.policy.policy_type)),
            SheetCell(text=display.render(each.on), small="" if each.on == own_path else "inherited"),
            SheetCell(chips=(Chip("enabled", "ok", "check") if each.policy.is_enabled else Chip("disabled", "warn"),)),
            SheetCell(text=", ".join(words.kinds.get(kind, kind) for kind in each.decides) or "nothing here"),
        )
        for each in report.policies
    )
    return Sheet(title="Policies", columns=columns, rows=rows, note="No maintenance policy applies to this table.")


def _policy_type(name: str) -> str:
    prefix = next((each for each in _POLICY_PREFIXES if name.startswith(each)), "")
    return name.removeprefix(prefix).replace("_", " ")


def _snapshots_sheet(report: TableReport, words: _FormatWords) -> Sheet:
    columns = (SheetColumn(text=words.state, is_code=True), SheetColumn(text="When"), SheetColumn(text="Kept because"))
    retentions = report.explanation.retentions
    rows = tuple(
        (
            SheetCell(text=str(each.snapshot_id), is_name=True),
            SheetCell(at_ms=each.timestamp_ms),
            SheetCell(text=each.kept_because or "", chips=() if each.kept_because else (Chip("removable", "info"),)),
        )
        for each in retentions[:_SNAPSHOTS_SHOWN]
    )
    more = (
        f"The newest {_SNAPSHOTS_SHOWN} of {report.explanation.snapshots} are shown."
        if len(retentions) > _SNAPSHOTS_SHOWN
        else ""
    )
    return Sheet(
        title=words.states.capitalize(),
        columns=columns,
        rows=rows,
        note=f"There is no {words.state.lower()} yet.",
        more=more,
    )


def _operations_sheet(
    page_request: PageRequest, address: ObjectAddress, *, report: TableReport, words: _FormatWords
) -> Sheet:
    columns = (
        SheetColumn(text="Operation"),
        SheetColumn(text="Number", is_code=True),
        SheetColumn(text="State"),
        SheetColumn(text="By", hides=True),
        SheetColumn(text="Requested"),
        SheetColumn(text="Result", hides=True),
    )
    rows = tuple(
        (
            SheetCell(text=words.kinds.get(each.row.kind, each.row.kind)),
            SheetCell(text=str(each.row.id)),
            SheetCell(chips=(operation_chip(each.row.state),)),
            requester_cell(page_request, address.metalake, row=each.row),
            SheetCell(at_ms=each.row.started_at),
            SheetCell(text=result_text(each.row.result or "")),
        )
        for each in report.operations
    )
    return Sheet(title="Operations", columns=columns, rows=rows, note="No operation has been requested yet.")


def requester_cell(page_request: PageRequest, metalake: str, *, row: OperationRow) -> SheetCell:
    """Return the cell with the policy that requested an operation, if the caller may see it, else with the user."""
    if row.policy is None:
        return SheetCell(text=row.user)
    return _policy_cell(page_request, metalake, name=row.policy)


def result_text(result: str) -> str:
    """Return the result of an operation, or why it waits and what starts it, cut to 300 characters."""
    advice = {FOR_EXECUTOR: _EXECUTOR_WAITS, FOR_SERVER: "the server executes it within a minute"}
    return advice.get(result, result)[:300]


def operation_text(kind: str) -> str:
    """Return an operation or finding of tables of any format as text."""
    return _ICEBERG.kinds.get(kind) or _LANCE.kinds.get(kind, kind)


def operation_chip(state: str) -> Chip:
    """Return the state of an operation as a label."""
    return Chip(state, *_LOOKS.get(state, ("plain", "")))


def _orphans(report: OrphanReport) -> tuple[Sheet, ...]:
    """Return the list of orphan files, those due for deletion and the deleted ones; empty before the first check."""
    if report.check is None:
        return ()
    columns = (
        SheetColumn(text="File", is_code=True),
        SheetColumn(text="Size", is_number=True),
        SheetColumn(text="First seen"),
    )
    rows = tuple(
        (
            SheetCell(text=each.name, is_name=True),
            SheetCell(text=size_text(each.size)),
            SheetCell(at_ms=each.first_seen_at),
        )
        for each in (*report.files, *report.removed)
    )
    note = report.check.blocked or "The last check found no orphan file."
    return (Sheet(title="Orphan files", columns=columns, rows=rows, note=note),)


async def _statistics(page_request: PageRequest, address: ObjectAddress) -> tuple[Sheet, ...]:
    """Return the list of the statistics that programs have stored for the table; empty if there are none, or if the
    user may not read the table's rows.
    """
    path = (address.catalog, *address.levels)
    name = render_full_name(Kind.TABLE, path, codec=codec_for(page_request.ctx.services.defaults))
    try:
        statistics = await statistics_list(page_request.ctx, AttachmentTarget(address.metalake, Kind.TABLE, name))
    except PermissionDenied:
        return ()
    columns = (
        SheetColumn(text="Name"),
        SheetColumn(text="Value", is_code=True),
        SheetColumn(text="By", hides=True),
        SheetColumn(text="When"),
    )
    rows = tuple(
        (
            SheetCell(text=each.name, is_name=True),
            SheetCell(text=each.value[:300]),
            SheetCell(text=each.modified_by or each.created_by),
            SheetCell(at_ms=each.modified_at or each.created_at),
        )
        for each in statistics
    )
    return (Sheet(title="Statistics", columns=columns, rows=rows),) if rows else ()


def _form(page_request: PageRequest, address: ObjectAddress, *, words: _FormatWords) -> FormView:
    choices = tuple(Choice(kind, text) for kind, text in words.kinds.items())
    action = f"{page_request.base}/maintain{address.path.removeprefix('/o')}"
    return FormView(
        action=action,
        button="Request it",
        fields=(),
        inputs=(FormInput(name="operation", label="Operation", choices=choices),),
        title="Request an operation",
    )


def _cancel_forms(page_request: PageRequest, address: ObjectAddress, *, report: TableReport) -> tuple[FormView, ...]:
    """Return forms that cancel an operation, one for each unfinished operation of executors."""
    action = f"{page_request.base}/maintain-cancel{address.path.removeprefix('/o')}"
    return tuple(
        FormView(
            action=action,
            button=f"Cancel operation {each.row.id}",
            fields=hidden_fields(operation=str(each.row.id)),
            is_danger=True,
        )
        for each in report.operations
        if each.row.ended_at is None and each.row.kind in LEASED_KINDS
    )


async def maintain_cancel(page_request: PageRequest) -> Response:
    """Cancel an operation on a table on behalf of the caller, and redirect to the tab."""
    address = parse_address(page_request.request.params)
    number = (await page_request.form()).get("operation", "")
    if address.kind is not Kind.TABLE or not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise BadRequest("The form has no operation on a table: cancel it on the table's page")
    await rewrite_cancel(page_request.ctx, address.scope, path=address.levels, operation=int(number))
    return await _redirect_with_state(page_request, address, operation=int(number))


async def maintain(page_request: PageRequest) -> Response:
    """Request an operation on a table on behalf of the caller, and redirect to the tab."""
    address = parse_address(page_request.request.params)
    operation = (await page_request.form()).get("operation", "")
    if operation not in OPERATION_KINDS or address.kind is not Kind.TABLE:
        raise BadRequest(f"Choose an operation on a table: {', '.join(OPERATION_KINDS)}")
    number = await operation_start(page_request.ctx, address.scope, path=address.levels, kind=operation)
    return await _redirect_with_state(page_request, address, operation=number)


async def _redirect_with_state(page_request: PageRequest, address: ObjectAddress, *, operation: int) -> Response:
    """Redirect to the tab with a notice that has the same words as the operation's row."""
    state = result_text(await operation_state(page_request.ctx, address.scope, operation=operation))
    query_text = urlencode({"tab": "maintenance", "done": f"Operation {operation}: {state}"})
    return redirect(f"{page_request.base}{address.path}?{query_text}")


ROUTES = (
    ConsoleRoute(method="POST", path="/maintain/{kind}/{path...}", handler=maintain, operation="maintain-from-console"),
    ConsoleRoute(
        method="POST",
        path="/maintain-cancel/{kind}/{path...}",
        handler=maintain_cancel,
        operation="cancel-maintenance-from-console",
    ),
)
