"""Calls on tasks (own API), for service admins.

May import this room.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, segments, verb
from limnos.client.paths import OWN
from limnos.client.values import TaskInfo


class _ListAnswer(msgspec.Struct):
    tasks: tuple[TaskInfo, ...]


class Tasks(Resource[S]):
    """Work that the server does beside requests: what waits, what was given up."""

    __slots__ = ()

    @verb
    def list(self, *, state: str = "dead", after: int = 0) -> Flow[tuple[TaskInfo, ...]]:
        """List tasks that are `dead` (given up), `waiting` or `done` with something to tell, a thousand at most."""
        reply = yield request("GET", f"{OWN}/tasks", query={"state": state, "after": str(after) if after else None})
        return decode(reply, _ListAnswer).tasks

    @verb
    def load(self, task_id: int | str) -> Flow[TaskInfo]:
        """Return one task with what it was told."""
        reply = yield request("GET", f"{OWN}/tasks{segments(str(task_id))}")
        return decode(reply, TaskInfo)

    @verb
    def retry(self, task_id: int | str) -> Flow[None]:
        """Make a task due at once that was given up, or waits."""
        yield request("POST", f"{OWN}/tasks{segments(str(task_id), 'retry')}")
