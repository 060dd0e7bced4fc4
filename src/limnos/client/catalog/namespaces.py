# SPDX-License-Identifier: Apache-2.0
"""Calls on namespaces: Iceberg REST, and the admin API to move.

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from limnos.client.errors import ArgumentError
from limnos.client.flow import Flow, Resource, S, call, decode, request, verb
from limnos.client.paths import namespace_url, namespaces_url, own_url, parts_of
from limnos.client.values import MoveResult, Namespace, Parts
from limnos.names.iceberg import SEPARATOR

PAGE_SIZE = "1000"


class _NamespaceListResponse(msgspec.Struct, rename="kebab"):
    namespaces: tuple[Parts, ...]
    next_page_token: str | None = None


class _NamespaceResponse(msgspec.Struct):
    namespace: Parts
    properties: dict[str, str] | None = None


class Namespaces(Resource[S]):
    """Calls on the nested namespaces of the client's metalake."""

    @verb
    def list(self, parent: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the direct child namespaces of a catalog or namespace, as full paths, sorted."""
        catalog, *levels = parts_of(parent)
        url = namespaces_url(self.scope.metalake, catalog)
        result: tuple[Parts, ...] = ()
        token: str | None = ""
        while token is not None:
            query = {"parent": SEPARATOR.join(levels) or None, "pageToken": token, "pageSize": PAGE_SIZE}
            answer = yield from call("GET", url, answer=_NamespaceListResponse, query=query)
            result += tuple((catalog, *child) for child in answer.namespaces)
            token = answer.next_page_token or None
        return result

    @verb
    def load(self, path: str | Sequence[str]) -> Flow[Namespace]:
        """Load a namespace with its properties."""
        parts = parts_of(path, least=2)
        reply = yield request("GET", self._url(parts))
        return Namespace(path=parts, properties=decode(reply, _NamespaceResponse).properties or {})

    @verb
    def create(
        self,
        path: str | Sequence[str],
        *,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        parents: bool = False,
    ) -> Flow[Namespace]:
        """Create a namespace.

        With `parents`, missing parents are created in the same transaction. If `parents` is false, a missing parent
        raises NotFoundError.
        """
        parts = parts_of(path, least=2)
        requested = dict(properties or {}) | ({"comment": comment} if comment else {})
        body = {"namespace": parts[1:], "properties": requested}
        query = {"parents": "true" if parents else "false"}
        reply = yield request("POST", namespaces_url(self.scope.metalake, parts[0]), query=query, body=body)
        return Namespace(path=parts, properties=decode(reply, _NamespaceResponse).properties or {})

    @verb
    def update(
        self, path: str | Sequence[str], *, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> Flow[None]:
        """Set and remove properties of a namespace."""
        body = {"updates": dict(updates or {}), "removals": [*removals]}
        yield request("POST", f"{self._url(parts_of(path, least=2))}/properties", body=body)

    @verb
    def drop(self, path: str | Sequence[str]) -> Flow[None]:
        """Drop a namespace. Raises ConflictError if it has objects."""
        yield request("DELETE", self._url(parts_of(path, least=2)))

    @verb
    def move(self, source: str | Sequence[str], target: str | Sequence[str]) -> Flow[MoveResult]:
        """Rename or move a namespace with its content, within its catalog."""
        return (yield from move(self.scope.metalake, "namespace", parts_of(source), parts_of(target)))

    def _url(self, parts: Parts) -> str:
        return namespace_url(self.scope.metalake, parts)


def move(metalake: str, kind: str, source: Parts, target: Parts) -> Flow[MoveResult]:
    """Move a namespace or table within its catalog. Raises ArgumentError if the catalogs differ."""
    if source[0] != target[0]:
        raise ArgumentError(f"a {kind} stays in its catalog: '{source[0]}' is not '{target[0]}'; give a target in it")
    if len(source) < 2 or len(target) < 2:
        raise ArgumentError(f"a {kind} has at least two parts, catalog and name; a catalog itself cannot be moved")
    body = {"kind": kind, "source": source[1:], "target": target[1:]}
    return call("POST", own_url(metalake, "catalogs", source[0], "move"), answer=MoveResult, body=body)
