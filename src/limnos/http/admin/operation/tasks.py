# SPDX-License-Identifier: Apache-2.0
"""Background tasks: list, load, retry.

Must not know kinds of tasks.
"""

from __future__ import annotations

import msgspec

from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.entities import TaskRow
from limnos.model.errors import BadRequest
from limnos.services.request.context import Context
from limnos.services.upkeep import tasks


async def tasks_list(request: Request, ctx: Context) -> Response:
    """Return tasks of a `state` (`dead`, the default, `waiting` or `done`) ordered by id, at most a thousand, starting
    after the id `after`.
    """
    after = request.query("after") or "0"
    after_id = number_of(after)
    if after_id is None:
        raise BadRequest(f"'{after[:50]}' is not a task's id: give the last one of the previous page")
    rows = await tasks.tasks_list(ctx, state=request.query("state") or "dead", after=after_id)
    return json_response({"tasks": [_encode(row) for row in rows]})


async def task_load(request: Request, ctx: Context) -> Response:
    """Return one task with its payload."""
    row = await tasks.task_load(ctx, _id(request))
    return json_response({**_encode(row), "payload": msgspec.Raw(row.payload.encode())})


async def task_retry(request: Request, ctx: Context) -> Response:
    """Make a waiting or dead task due immediately."""
    task_id = _id(request)
    await tasks.task_retry(ctx, task_id)
    return json_response({"retried": task_id})


def _id(request: Request) -> int:
    (text,) = names_of(request)
    number = number_of(text)
    if number is None:
        raise tasks.task_missing_error(text[:50])
    return number


def _encode(row: TaskRow) -> dict[str, object]:
    state = "waiting" if row.ended_at is None else "done" if row.error is None else "dead"
    return {
        "id": row.id,
        "kind": row.kind,
        "state": state,
        "attempts": row.attempts,
        "created_at": instant(row.created_at),
        "due_at": instant(row.due_at) if row.ended_at is None else None,
        "ended_at": instant(row.ended_at),
        "progress": row.progress,
        "error": row.error,
        "result": row.result,
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET", path="/api/limnos/v1/tasks", handler=tasks_list, operation="list-tasks", query=("state", "after")
    ),
    Route(method="GET", path="/api/limnos/v1/tasks/{id}", handler=task_load, operation="load-task"),
    Route(method="POST", path="/api/limnos/v1/tasks/{id}/retry", handler=task_retry, operation="retry-task"),
)
