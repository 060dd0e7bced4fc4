"""Calls on catalogs (Gravitino REST).

May import this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.metalakes import DropAnswer, update_body
from limnos.client.paths import metalake_url
from limnos.client.values import Catalog


class _ListAnswer(msgspec.Struct):
    catalogs: tuple[Catalog, ...]


class _Identifier(msgspec.Struct):
    name: str


class _NamesAnswer(msgspec.Struct):
    identifiers: tuple[_Identifier, ...]


class OneAnswer(msgspec.Struct):
    """A catalog."""

    catalog: Catalog


class Catalogs(Resource[S]):
    """The catalogs of the client's metalake."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[Catalog, ...]]:
        """List the catalogs the caller may see."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "catalogs"), query={"details": "true"})
        return decode(reply, _ListAnswer).catalogs

    @verb
    def names(self) -> Flow[tuple[str, ...]]:
        """List the names of catalogs, those among them that only hold something that the caller may use."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "catalogs"))
        return tuple(each.name for each in decode(reply, _NamesAnswer).identifiers)

    @verb
    def get(self, name: str) -> Flow[Catalog]:
        """Load one catalog."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "catalogs", name))
        return decode(reply, OneAnswer).catalog

    @verb
    def create(
        self,
        name: str,
        *,
        type: str = "relational",
        provider: str = "lakehouse-iceberg",
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Flow[Catalog]:
        """Make a catalog. `warehouse` and `allowed-locations` are properties of an Iceberg one."""
        body = {
            "name": name,
            "type": type,
            "provider": provider,
            "comment": comment,
            "properties": dict(properties or {}),
        }
        reply = yield request("POST", metalake_url(self.scope.metalake, "catalogs"), body=body)
        return decode(reply, OneAnswer).catalog

    @verb
    def alter(
        self,
        catalog: str,
        *,
        name: str | None = None,
        comment: str | None = None,
        updates: Mapping[str, str] | None = None,
        removals: Iterable[str] = (),
    ) -> Flow[Catalog]:
        """Rename a catalog, or change its comment or properties, all at once."""
        body = update_body(name=name, comment=comment, updates=updates, removals=removals)
        reply = yield request("PUT", metalake_url(self.scope.metalake, "catalogs", catalog), body=body)
        return decode(reply, OneAnswer).catalog

    @verb
    def enable(self, name: str) -> Flow[None]:
        """Put a catalog to use."""
        yield request("PATCH", metalake_url(self.scope.metalake, "catalogs", name), body={"inUse": True})

    @verb
    def disable(self, name: str) -> Flow[None]:
        """Take a catalog out of use; then it can be dropped."""
        yield request("PATCH", metalake_url(self.scope.metalake, "catalogs", name), body={"inUse": False})

    @verb
    def drop(self, name: str, *, force: bool = False) -> Flow[bool]:
        """Drop a catalog and tell whether it was there; `force` drops one in use or with namespaces."""
        url = metalake_url(self.scope.metalake, "catalogs", name)
        reply = yield request("DELETE", url, query={"force": "true" if force else None})
        return decode(reply, DropAnswer).dropped
