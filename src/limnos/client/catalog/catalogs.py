# SPDX-License-Identifier: Apache-2.0
"""Calls on catalogs (Gravitino REST)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from limnos.client.catalog.metalakes import update_body
from limnos.client.catalog.schemas import list_names
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import Catalog


class Catalogs(Resource[S]):
    """Calls on the catalogs of the client's metalake, over Gravitino REST."""

    @verb
    def list(self) -> Flow[tuple[Catalog, ...]]:
        """List the catalogs that the caller may see."""
        query = {"details": "true"}
        return call("GET", self.gravitino_url("catalogs"), answer=tuple[Catalog, ...], field="catalogs", query=query)

    @verb
    def names(self) -> Flow[tuple[str, ...]]:
        """List the names of catalogs, including catalogs of which the caller may only use some objects."""
        return list_names(self.gravitino_url("catalogs"))

    @verb
    def get(self, name: str) -> Flow[Catalog]:
        """Load a catalog with its properties."""
        return call("GET", self.gravitino_url("catalogs", name), answer=Catalog, field="catalog")

    @verb
    def create(
        self,
        name: str,
        *,
        type: str = "relational",
        provider: str | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Flow[Catalog]:
        """Create a catalog, by default of Iceberg tables, whose properties include `warehouse` and `allowed-locations`.

        Each other type has a provider of its own, which the server knows.
        """
        if provider is None and type == "relational":
            provider = "lakehouse-iceberg"
        body = {
            "name": name,
            "type": type,
            "provider": provider,
            "comment": comment,
            "properties": dict(properties or {}),
        }
        return call("POST", self.gravitino_url("catalogs"), answer=Catalog, field="catalog", body=body)

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
        """Rename a catalog, or change its comment or properties, in one request."""
        body = update_body(name=name, comment=comment, updates=updates, removals=removals)
        return call("PUT", self.gravitino_url("catalogs", catalog), answer=Catalog, field="catalog", body=body)

    @verb
    def enable(self, name: str) -> Flow[None]:
        """Mark a catalog as in use, so that requests for its objects are answered again."""
        yield request("PATCH", self.gravitino_url("catalogs", name), body={"inUse": True})

    @verb
    def disable(self, name: str) -> Flow[None]:
        """Disable a catalog: requests for its objects are refused, and it can be dropped."""
        yield request("PATCH", self.gravitino_url("catalogs", name), body={"inUse": False})

    @verb
    def drop(self, name: str, *, force: bool = False) -> Flow[bool]:
        """Drop a catalog. Returns whether it existed. `force` also drops an enabled catalog, or a catalog with
        namespaces.
        """
        url = self.gravitino_url("catalogs", name)
        return call("DELETE", url, answer=bool, field="dropped", query={"force": "true" if force else None})
