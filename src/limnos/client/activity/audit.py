# SPDX-License-Identifier: Apache-2.0
"""Calls on the audit (own API)."""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.flow import OWN, Flow, QueryValue, Resource, S, call, verb
from limnos.client.values import AuditPage


class Audit(Resource[S]):
    """Calls that read and export the audit: records of actions on objects, with users and privileges."""

    @verb
    def read(
        self,
        *,
        user: str | None = None,
        path: str | None = None,
        exact: Sequence[str] = (),
        object_id: int | None = None,
        since: str | None = None,
        until: str | None = None,
        action: str | None = None,
        outcome: str | None = None,
        request_id: str | None = None,
        before: int | None = None,
        after: int | None = None,
        limit: int | None = None,
        server: bool = False,
    ) -> Flow[AuditPage]:
        """Read a page of audit records that match all given filters.

        Records are returned newest first; with `after`, the id of a record, oldest first. `path` is an object's path
        below the metalake and includes objects below it; `exact` are paths of at most 100 objects, of which one must
        match without those below. `since` and `until` are ISO 8601 times. `action` is an action
        of an explanation, a kind of change, or an operation. `server`: records of all metalakes, for service admins.
        """
        query = {
            "user": user,
            "path": path,
            "object": object_id,
            "since": since,
            "until": until,
            "action": action,
            "outcome": outcome,
            "request": request_id,
            "before": before,
            "after": after,
            "limit": limit,
        }
        url = f"{OWN}/audit" if server else self.own_url("audit")
        entries: dict[str, QueryValue] = {name: None if value is None else str(value) for name, value in query.items()}
        return call("GET", url, answer=AuditPage, query={**entries, "exact": tuple(exact)})

    @verb
    def export(self, *, location: str | None = None, since: str | None = None, until: str | None = None) -> Flow[int]:
        """Export complete days as Parquet files, from `since` (inclusive) to `until` (exclusive).

        For service admins. Returns the task's id.
        """
        body = {"location": location, "since": since, "until": until}
        return call("POST", f"{OWN}/audit/export", answer=int, field="task", body=body)
