# SPDX-License-Identifier: Apache-2.0
"""Calls that list the objects of all kinds in a namespace or catalog (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import parts_of
from limnos.client.values import Parts
from limnos.names import display

PAGE_SIZE = "500"


class PrincipalInfo(msgspec.Struct, frozen=True):
    """A user or a group, as the owner of an object."""

    kind: str
    name: str


class ChildInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a namespace or catalog. Times are ISO 8601 strings in UTC.

    If the caller may not load it, or it belongs to an external system, only kind, name and path are set.
    """

    kind: str
    name: str
    path: Parts
    id: int | None = None
    format: str | None = None
    owner: PrincipalInfo | None = None
    comment: str | None = None
    created_by: str | None = None
    created_at: str | None = None
    changed_at: str | None = None


class ChildrenAnswer(msgspec.Struct, frozen=True):
    """A page of children. `after` is the cursor of the next page; None on the last page."""

    children: tuple[ChildInfo, ...]
    after: str | None = None


class Children(Resource[S]):
    """Calls that list the objects directly in a namespace or catalog, of all kinds."""

    @verb
    def list(self, parent: str | Sequence[str], *, kind: str | None = None) -> Flow[tuple[ChildInfo, ...]]:
        """List the children of a catalog or namespace that are visible to the caller, of all kinds or of one."""
        infos: tuple[ChildInfo, ...] = ()
        after: str | None = None
        while True:
            page = yield from self._page(parent, kind=kind, after=after, limit=PAGE_SIZE)
            infos += page.children
            after = page.after
            if after is None:
                return infos

    @verb
    def page(
        self, parent: str | Sequence[str], *, kind: str | None = None, after: str | None = None, limit: int = 100
    ) -> Flow[ChildrenAnswer]:
        """Return one page of the children, at most `limit`, starting at the cursor `after` of the previous page."""
        return (yield from self._page(parent, kind=kind, after=after, limit=str(limit)))

    def _page(
        self, parent: str | Sequence[str], *, kind: str | None, after: str | None, limit: str
    ) -> Flow[ChildrenAnswer]:
        parts = parts_of(parent)
        below = display.render(parts[1:]) if len(parts) > 1 else None
        query = {"path": below, "kind": kind, "after": after, "limit": limit}
        return call("GET", self.own_url("catalogs", parts[0], "children"), answer=ChildrenAnswer, query=query)
