# SPDX-License-Identifier: Apache-2.0
"""Calls on schedules of pipelines (own API)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

import msgspec

from limnos.client.flow import Flow, Resource, S, call, request, verb


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a pipeline. `next` has its next due times, `job` the job of its last start.

    `reason` is why it is paused, or why its last due time started no run. Times are ISO 8601 strings in UTC.
    """

    pipeline: str
    user: str
    paused: bool
    file: str
    cron: str
    time_zone: str = "UTC"
    if_changed: bool = False
    reason: str | None = None
    created_at: str | None = None
    next: tuple[str, ...] = ()
    last_due_at: str | None = None
    attempts: int = 0
    job: str | None = None
    job_state: str | None = None


class Schedules(Resource[S]):
    """Calls that register, list, load, pause, resume and delete schedules of the client's metalake."""

    def _path(self, pipeline: str) -> str:
        return self.own_url("pipelines", pipeline, "schedule")

    @verb
    def put(
        self,
        pipeline: str,
        *,
        file: str,
        files: Mapping[str, bytes],
        cron: str,
        time_zone: str = "UTC",
        if_changed: bool = False,
    ) -> Flow[Schedule]:
        """Register the schedule of a pipeline, which runs with the caller's rights. `file` is one of `files`.

        With `if_changed`, a due time starts nothing while the tables that the last run read are as they were.
        """
        body = {
            "file": file,
            "files": {path: b64encode(content).decode() for path, content in files.items()},
            "cron": cron,
            "time_zone": time_zone,
            "if_changed": if_changed,
        }
        return call("PUT", self._path(pipeline), answer=Schedule, body=body)

    @verb
    def list(self, *, count: int = 1) -> Flow[tuple[Schedule, ...]]:
        """List the schedules of the pipelines that the caller may use, each with its next `count` due times."""
        url = self.own_url("schedules")
        return call("GET", url, answer=tuple[Schedule, ...], field="schedules", query={"count": str(count)})

    @verb
    def load(self, pipeline: str, *, count: int = 1) -> Flow[Schedule]:
        """Load the schedule of a pipeline with its next `count` due times."""
        return call("GET", self._path(pipeline), answer=Schedule, query={"count": str(count)})

    @verb
    def pause(self, pipeline: str) -> Flow[Schedule]:
        """Pause the schedule of a pipeline."""
        return call("POST", self._path(pipeline), answer=Schedule, body={"paused": True}, repeatable=True)

    @verb
    def resume(self, pipeline: str) -> Flow[Schedule]:
        """Resume a paused schedule; the due times that it missed are not run."""
        return call("POST", self._path(pipeline), answer=Schedule, body={"paused": False}, repeatable=True)

    @verb
    def delete(self, pipeline: str) -> Flow[None]:
        """Delete the schedule of a pipeline with its files. A job that runs is not cancelled."""
        yield request("DELETE", self._path(pipeline))
