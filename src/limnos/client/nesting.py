"""Calls on the names of a catalog's namespaces (own API).

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import NameChange, NameChanges, NameCheck


class _NameChangesResponse(NameChanges, frozen=True):
    changes: tuple[NameChange, ...] = ()
    after: int | None = None


class NamespaceNames(Resource[S]):
    """Names of namespaces that hold the separator, and changing them so that namespaces may nest."""

    __slots__ = ()

    @verb
    def check(self, catalog: str, *, separator: str | None = None) -> Flow[NameCheck]:
        """Say which names hold a separator, the server's unless another is named."""
        return call("GET", self._url(catalog), answer=NameCheck, query={"separator": separator})

    @verb
    def plan(
        self, catalog: str, *, separator: str | None = None, replacement: str = "_", nested: bool = True
    ) -> Flow[NameChanges]:
        """Plan what becomes of them, to the last; changes no name."""
        body: dict[str, object] = {"replacement": replacement, "nested": nested}
        if separator is not None:
            body["separator"] = separator
        found = yield from call("PUT", self._url(catalog, "changes"), answer=NameChanges, body=body)
        return found if found.state == "planned" else (yield from self._until(catalog, "planned"))

    @verb
    def changes(self, catalog: str, *, limit: int = 1000) -> Flow[tuple[NameChanges, tuple[NameChange, ...]]]:
        """Tell how far a change is, with so many of its names."""
        found: tuple[NameChange, ...] = ()
        after: int | None = 0
        while True:
            query = {"after": str(after), "limit": str(min(1000, limit - len(found)))}
            answer = yield from call("GET", self._url(catalog, "changes"), answer=_NameChangesResponse, query=query)
            found, after = found + answer.changes, answer.after
            if after is None or len(found) >= limit:
                head = {field: getattr(answer, field) for field in NameChanges.__struct_fields__}
                return NameChanges(**head), found

    @verb
    def go_on(self, catalog: str, *, to: str) -> Flow[NameChanges]:
        """Do one batch towards `planned`, `migrated` or `undone`."""
        return call("POST", self._url(catalog, "changes"), answer=NameChanges, body={"to": to})

    @verb
    def migrate(self, catalog: str) -> Flow[NameChanges]:
        """Change the names as planned, to the last; goes on where an earlier call was cut."""
        return (yield from self._until(catalog, "migrated"))

    @verb
    def undo(self, catalog: str) -> Flow[NameChanges]:
        """Give namespaces back the names and the place they had; goes on where an earlier call was cut."""
        return (yield from self._until(catalog, "undone"))

    @verb
    def confirm(self, catalog: str) -> Flow[None]:
        """Let the names stand: nothing can be undone then."""
        yield request("DELETE", self._url(catalog, "changes"))

    def _until(self, catalog: str, goal: str) -> Flow[NameChanges]:
        while True:
            url = self._url(catalog, "changes")
            found = yield from call("POST", url, answer=NameChanges, body={"to": goal})
            if found.done:
                return found

    def _url(self, catalog: str, *below: str) -> str:
        return self.own_url("catalogs", catalog, "names", *below)
