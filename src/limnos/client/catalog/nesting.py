# SPDX-License-Identifier: Apache-2.0
"""Calls on namespace names that contain the separator (own API)."""

from __future__ import annotations

from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import NameChange, NameChanges, NameCheck


class _NameChangesResponse(NameChanges, frozen=True, kw_only=True):
    changes: tuple[NameChange, ...] = ()
    after: int | None = None


class NamespaceNames(Resource[S]):
    """Calls that check namespace names for the separator, and migrate such names to nested namespaces."""

    @verb
    def check(self, catalog: str, *, separator: str | None = None) -> Flow[NameCheck]:
        """Return the namespace names that contain `separator`, by default the server's separator."""
        return call("GET", self._url(catalog), answer=NameCheck, query={"separator": separator})

    @verb
    def plan(
        self, catalog: str, *, separator: str | None = None, replacement: str = "_", nested: bool = True
    ) -> Flow[NameChanges]:
        """Plan new names for all namespace names that contain the separator, without renaming a namespace."""
        body: dict[str, object] = {"replacement": replacement, "nested": nested}
        if separator is not None:
            body["separator"] = separator
        changes = yield from call("PUT", self._url(catalog, "changes"), answer=NameChanges, body=body)
        return changes if changes.state == "planned" else (yield from self._until(catalog, "planned"))

    @verb
    def changes(self, catalog: str, *, limit: int = 1000) -> Flow[tuple[NameChanges, tuple[NameChange, ...]]]:
        """Return the state of a migration, with up to `limit` of its names."""
        changes: tuple[NameChange, ...] = ()
        after: int | None = 0
        while True:
            query = {"after": str(after), "limit": str(min(1000, limit - len(changes)))}
            answer = yield from call("GET", self._url(catalog, "changes"), answer=_NameChangesResponse, query=query)
            changes, after = changes + answer.changes, answer.after
            if after is None or len(changes) >= limit:
                head = {field: getattr(answer, field) for field in NameChanges.__struct_fields__}
                return NameChanges(**head), changes

    @verb
    def go_on(self, catalog: str, *, to: str) -> Flow[NameChanges]:
        """Run the next batch of the name migration towards `planned`, `migrated` or `undone`. Repeat until `done`."""
        return call("POST", self._url(catalog, "changes"), answer=NameChanges, body={"to": to})

    @verb
    def migrate(self, catalog: str) -> Flow[NameChanges]:
        """Execute all remaining batches of the planned migration, also after an interruption."""
        return (yield from self._until(catalog, "migrated"))

    @verb
    def undo(self, catalog: str) -> Flow[NameChanges]:
        """Undo the migration: restore the former names and paths of the namespaces. Also continues an interrupted
        undo.
        """
        return (yield from self._until(catalog, "undone"))

    @verb
    def confirm(self, catalog: str) -> Flow[None]:
        """Confirm the migration and delete its plan. The migration can then no longer be undone."""
        yield request("DELETE", self._url(catalog, "changes"))

    def _until(self, catalog: str, goal: str) -> Flow[NameChanges]:
        while True:
            url = self._url(catalog, "changes")
            changes = yield from call("POST", url, answer=NameChanges, body={"to": goal})
            if changes.done:
                return changes

    def _url(self, catalog: str, *below: str) -> str:
        return self.own_url("catalogs", catalog, "names", *below)
