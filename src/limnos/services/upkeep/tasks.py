# SPDX-License-Identifier: Apache-2.0
"""Tasks for service admins: list, load, retry.

Must not know any wire format or kind of task. Nothing is cached: each request reads the tasks.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import TaskRow
from limnos.model.errors import BadRequest, NotFound
from limnos.model.permits import Permit
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_of_server, refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.tasks import STATES, task_read, tasks_read
from limnos.store.tx import Tx

TASKS_MAX = 1000


class TaskRetry(msgspec.Struct, frozen=True):
    """The command to make a task due immediately."""

    task_id: int


def may_manage_tasks(request_view: RequestView) -> bool:
    """Return whether the caller may list and retry tasks. No refusal is recorded for the audit."""
    return request_view.decide(Action.TASK_MANAGE, ()).allowed


def _require(request_view: RequestView) -> None:
    request_view.require(Action.TASK_MANAGE, ())


async def tasks_list(ctx: Context, *, state: str, after: int = 0) -> list[TaskRow]:
    """Return at most `TASKS_MAX` tasks of a state, ordered by id and starting after an id.

    Raises BadRequest for an unknown state, PermissionDenied.
    """

    async def read() -> list[TaskRow]:
        if state not in STATES:
            raise BadRequest(f"'{state[:50]}' is not a state of a task: use one of {', '.join(STATES)}")
        return await ctx.look_up(lambda: tasks_read(state, after=after, limit=TASKS_MAX))

    return await read_of_server(ctx, require=_require, work=read)


async def task_load(ctx: Context, task_id: int) -> TaskRow:
    """Return a task. Raises NotFound, PermissionDenied."""
    row = await read_of_server(ctx, require=_require, work=lambda: ctx.look_up(lambda: task_read(task_id)))
    if row is None:
        raise task_missing_error(task_id)
    return row


def task_missing_error(task_id: int | str) -> NotFound:
    """Return the error for a missing task. Its message explains that a finished task is deleted unless it has a
    result.
    """
    return NotFound(f"Task {task_id} does not exist, or is complete: see 'limnos list tasks'", kind="task")


async def task_retry(ctx: Context, task_id: int) -> None:
    """Make a waiting or failed task due immediately. Raises NotFound, also for a running task, and PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[TaskRetry]:
        return request_view.permit(TaskRetry(task_id), request_view.require(Action.TASK_MANAGE, ()))

    await refuse_former(ctx)
    if not await ctx.write(RequestScope(), decide, task_revive):
        raise task_missing_error(task_id)
    ctx.services.wake_worker()


def task_revive(tx: Tx, permit: Permit[TaskRetry]) -> bool:
    """Make the task due. Returns whether it was waiting or had failed."""
    return tx.tasks.revive(permit.command.task_id)
