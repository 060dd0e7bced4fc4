# SPDX-License-Identifier: Apache-2.0
"""Calls on the trash of a catalog (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.errors import ArgumentError, NotFoundError
from limnos.client.flow import Flow, Resource, S, call, request, segments, verb
from limnos.client.paths import parts_of
from limnos.client.values import TrashItem, UndropResult
from limnos.names import display


class _TrashListResponse(msgspec.Struct):
    trash: tuple[TrashItem, ...]
    before: str | None = None


class Trash(Resource[S]):
    """Calls on the trash: dropped objects that can be restored."""

    @verb
    def list(self, path: str | Sequence[str], *, limit: int = 1000) -> Flow[tuple[TrashItem, ...]]:
        """List the dropped objects that the caller may restore in a catalog or below a path, newest first, at most
        `limit`.
        """
        return (yield from self._list(path, limit=limit))

    @verb
    def undrop(
        self, path: str | Sequence[str], *, to: str | Sequence[str] | None = None, contents: bool = False
    ) -> Flow[UndropResult]:
        """Restore the object with this path that was dropped last, to its path or to `to`; with `contents` also its
        dropped content. Raises NotFoundError.
        """
        parts = parts_of(path, least=2)
        result = yield from self._list(parts, limit=100_000)
        for each in result:
            if each.path == parts:
                return (yield from self._undrop(parts[0], each.id, to=to, contents=contents))
        text = display.render(parts)
        raise NotFoundError(f"the trash has no '{text}' that you may restore", status=404, code="not-found")

    @verb
    def forget(self, catalog: str, dropped_id: int) -> Flow[None]:
        """Remove the object with this id from a catalog's trash without deleting its files. Raises NotFoundError."""
        yield request("DELETE", f"{self._url(catalog)}{segments(str(dropped_id))}")

    @verb
    def undrop_id(
        self, catalog: str, dropped_id: int, *, to: str | Sequence[str] | None = None, contents: bool = False
    ) -> Flow[UndropResult]:
        """Restore the object with this id from a catalog's trash, with the same arguments as `undrop`."""
        return (yield from self._undrop(catalog, dropped_id, to=to, contents=contents))

    def _list(self, path: str | Sequence[str], *, limit: int) -> Flow[tuple[TrashItem, ...]]:
        parts = parts_of(path)
        below = display.render(parts[1:]) if len(parts) > 1 else None
        result: tuple[TrashItem, ...] = ()
        before: str | None = None
        while True:
            query = {"below": below, "before": before}
            answer = yield from call("GET", self._url(parts[0]), answer=_TrashListResponse, query=query)
            result += answer.trash
            before = answer.before
            if before is None or len(result) >= limit:
                return result[:limit]

    def _undrop(
        self, catalog: str, dropped_id: int, *, to: str | Sequence[str] | None, contents: bool
    ) -> Flow[UndropResult]:
        fields: dict[str, object] = {"contents": contents}
        if to is not None:
            target = parts_of(to, least=2)
            if target[0] != catalog:
                raise ArgumentError(
                    f"'{display.render(target)}' is in another catalog than {catalog}: choose a target in that catalog"
                )
            fields["to"] = target[1:]
        url = f"{self._url(catalog)}{segments(str(dropped_id), 'undrop')}"
        return call("POST", url, answer=UndropResult, body=fields)

    def _url(self, catalog: str) -> str:
        return self.own_url("catalogs", catalog, "trash")
