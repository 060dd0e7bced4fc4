# SPDX-License-Identifier: Apache-2.0
"""Calls on tasks (own API), for service admins."""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, request, segments, verb
from limnos.client.values import TaskInfo


class Tasks(Resource[S]):
    """Calls on the server's background tasks: waiting, failed or completed."""

    @verb
    def list(self, *, state: str = "dead", after: int = 0) -> Flow[tuple[TaskInfo, ...]]:
        """List tasks that are `dead` (failed), `waiting`, or `done` with a result; at most a thousand."""
        query = {"state": state, "after": str(after) if after else None}
        return call("GET", f"{OWN}/tasks", answer=tuple[TaskInfo, ...], field="tasks", query=query)

    @verb
    def load(self, task_id: int | str) -> Flow[TaskInfo]:
        """Load a task by its id, with its payload, attempts and result."""
        return call("GET", f"{OWN}/tasks{segments(str(task_id))}", answer=TaskInfo)

    @verb
    def retry(self, task_id: int | str) -> Flow[None]:
        """Schedule a waiting or failed task for immediate execution."""
        yield request("POST", f"{OWN}/tasks{segments(str(task_id), 'retry')}")
