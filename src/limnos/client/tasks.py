"""Calls on tasks (own API), for service admins.

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, request, segments, verb
from limnos.client.values import TaskInfo


class Tasks(Resource[S]):
    """Work that the server does beside requests: what waits, what was given up."""

    __slots__ = ()

    @verb
    def list(self, *, state: str = "dead", after: int = 0) -> Flow[tuple[TaskInfo, ...]]:
        """List tasks that are `dead` (given up), `waiting` or `done` with something to tell, a thousand at most."""
        query = {"state": state, "after": str(after) if after else None}
        return call("GET", f"{OWN}/tasks", answer=tuple[TaskInfo, ...], field="tasks", query=query)

    @verb
    def load(self, task_id: int | str) -> Flow[TaskInfo]:
        """Return one task with what it was told."""
        return call("GET", f"{OWN}/tasks{segments(str(task_id))}", answer=TaskInfo)

    @verb
    def retry(self, task_id: int | str) -> Flow[None]:
        """Make a task due at once that was given up, or waits."""
        yield request("POST", f"{OWN}/tasks{segments(str(task_id), 'retry')}")
