"""Calls on the audit (own API).

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, verb
from limnos.client.values import AuditPage


class Audit(Resource[S]):
    """Who did what to which object, by which right."""

    __slots__ = ()

    @verb
    def read(
        self, *, user: str | None = None, path: str | None = None, object_id: int | None = None, since: str | None = None,
        until: str | None = None, action: str | None = None, outcome: str | None = None, request_id: str | None = None,
        before: int | None = None, after: int | None = None, limit: int | None = None, server: bool = False,
    ) -> Flow[AuditPage]:  # fmt: skip
        """Read a page of lines that meet all that is set: the newest first, or those `after` a line, the oldest first.

        `path` is an object's below the metalake and takes in what lay below it; `since` and `until` are times as ISO 8601 spells them;
        `action` is that of an explanation, a change's word, or an operation. `server`: of all metalakes, for service admins.
        """
        query = {
            "user": user, "path": path, "object": object_id, "since": since, "until": until, "action": action,
            "outcome": outcome, "request": request_id, "before": before, "after": after, "limit": limit,
        }  # fmt: skip
        url = f"{OWN}/audit" if server else self.own_url("audit")
        told = {name: None if value is None else str(value) for name, value in query.items()}
        return call("GET", url, answer=AuditPage, query=told)

    @verb
    def export(self, *, location: str | None = None, since: str | None = None, until: str | None = None) -> Flow[int]:
        """Have days that are over written as Parquet, from `since` on and before `until`; returns the id of the task. For service admins."""
        body = {"location": location, "since": since, "until": until}
        return call("POST", f"{OWN}/audit/export", answer=int, field="task", body=body)
