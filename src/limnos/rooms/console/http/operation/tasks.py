# SPDX-License-Identifier: Apache-2.0
"""Background work of the server: its tasks by state, with a button that retries one; and webhooks.

Service admins see the tasks, and the metalake's owners its webhooks.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.entities import TaskRow
from limnos.model.errors import PermissionDenied
from limnos.rooms.console.http.frame import frame_of
from limnos.rooms.console.http.operation.sections import operation_tabs
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import duration_text
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    number_field,
    sheet_response,
)
from limnos.rooms.console.http.tabs import Chip
from limnos.services.activity.webhooks import WebhookStatus, webhooks_list
from limnos.services.upkeep.tasks import task_retry, tasks_list
from limnos.store.activity.tasks import STATES

SHOWN: Final = 200
_ERROR_CHARS_MAX: Final = 300
_PAYLOAD_CHARS_MAX: Final = 60
_INTRO: Final = (
    "Background tasks of the server. A dead task has failed too often: the server does not repeat it by itself."
)


async def operations_page(page_request: PageRequest) -> Response:
    """Show the server's tasks of a state to service admins, and the metalake's webhooks to its owners."""
    frame = await frame_of(page_request, "Operations", section="operations")
    state = page_request.request.query("state") or STATES[0]
    sheets, warnings = [], []
    for read, about in ((_tasks, state), (_webhooks, frame.metalake)):
        try:
            sheets.append(await read(page_request, about))
        except PermissionDenied as error:
            warnings.append(error)
    if not sheets:
        raise warnings[0]
    page = SheetPage(
        frame=frame,
        title="Operations",
        intro=_INTRO,
        tabs=operation_tabs(page_request, frame.metalake, current=state),
        sheets=tuple(sheets),
    )
    return sheet_response(page_request, page)


async def _tasks(page_request: PageRequest, state: str) -> Sheet:
    rows = await tasks_list(page_request.ctx, state=state)
    columns = (
        SheetColumn(text="Task"),
        SheetColumn(text="State"),
        SheetColumn(text="Attempts", is_number=True, hides=True),
        SheetColumn(text="Error"),
        SheetColumn(text="Created", hides=True),
        SheetColumn(text="Action"),
        SheetColumn(text="About", is_code=True, hides=True),
    )
    lines = tuple(_task_row(page_request, each, state=state) for each in rows[:SHOWN])
    more = f"The first {SHOWN} are shown; limnos list tasks lists all." if len(rows) > SHOWN else ""
    return Sheet(title="Tasks", columns=columns, rows=lines, note=f"No task is {state}.", more=more)


def _task_row(page_request: PageRequest, task: TaskRow, *, state: str) -> tuple[SheetCell, ...]:
    retry = FormView(
        action=f"{page_request.base}/tasks/retry",
        button="Retry",
        fields=hidden_fields(id=str(task.id), state=state),
        label=f"Retry task {task.id}",
    )
    return (
        SheetCell(text=task.kind.replace("_", " "), is_name=True, small=f"task {task.id}"),
        _state_cell(task, now_ms=page_request.now_ms),
        SheetCell(text=str(task.attempts)),
        SheetCell(text=(task.error or "")[:_ERROR_CHARS_MAX]),
        SheetCell(at_ms=task.created_at),
        SheetCell(form=retry if task.ended_at is not None or task.error else None),
        SheetCell(text="" if task.payload == "{}" else _cut(task.payload)),
    )


def _state_cell(task: TaskRow, *, now_ms: int) -> SheetCell:
    """Return the cell with a task's state: done, failed, running on a node, due, or the time until it is due."""
    if task.ended_at is not None:
        chip = Chip("failed", "bad", "cross") if task.error else Chip("done", "ok", "check")
        return SheetCell(chips=(chip,), at_ms=task.ended_at)
    if task.leased_until > now_ms:
        return SheetCell(chips=(Chip("running", "info", "ring"),), small=task.progress or "")
    if task.due_at <= now_ms:
        return SheetCell(chips=(Chip("due", "warn", "clock"),), at_ms=task.due_at)
    return SheetCell(chips=(Chip(f"in {duration_text(task.due_at - now_ms)}", "plain", "clock"),))


def _cut(text: str) -> str:
    return text if len(text) <= _PAYLOAD_CHARS_MAX else f"{text[:_PAYLOAD_CHARS_MAX]}…"


async def _webhooks(page_request: PageRequest, metalake: str) -> Sheet:
    webhooks = await webhooks_list(page_request.ctx, metalake)
    columns = (
        SheetColumn(text="Webhook", is_code=True),
        SheetColumn(text="State"),
        SheetColumn(text="Behind", is_number=True),
        SheetColumn(text="Error", hides=True),
    )
    return Sheet(
        title="Webhooks",
        columns=columns,
        rows=tuple(_webhook_row(each) for each in webhooks[:SHOWN]),
        note="There is no webhook in this metalake.",
    )


def _webhook_row(status: WebhookStatus) -> tuple[SheetCell, ...]:
    webhook = status.webhook
    chip = Chip("stopped", "bad", "cross") if webhook.stopped else Chip("delivers", "ok", "check")
    behind = f"{status.behind:,} revision{'' if status.behind == 1 else 's'}"
    return (
        SheetCell(text=webhook.url, is_name=True),
        SheetCell(chips=(chip,)),
        SheetCell(text=behind),
        SheetCell(text=(webhook.error or "")[:_ERROR_CHARS_MAX]),
    )


async def retry(page_request: PageRequest) -> Response:
    """Make a waiting or failed task due immediately, and redirect to the list."""
    fields = await page_request.form()
    number = number_field(fields.get("id"), what="A task's id")
    await task_retry(page_request.ctx, number)
    state = fields.get("state", "")
    back = {"state": state if state in STATES else STATES[0], "done": f"Task {number} is due"}
    return redirect(f"{page_request.base}/operations?{urlencode(back)}")


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/operations",
        handler=operations_page,
        operation="operations-page",
        query=("metalake", "state", "done"),
    ),
    ConsoleRoute(method="POST", path="/tasks/retry", handler=retry, operation="retry-task-from-console"),
)
