# SPDX-License-Identifier: Apache-2.0
"""Calls on Iceberg views: Iceberg REST, and the admin API to move.

Paths start with the catalog. Engines and Iceberg's own clients create and replace views; `Client.iceberg_properties`
has their settings.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.catalog.namespaces import move
from limnos.client.catalog.tables import TableLoadResponse, is_there, list_pages, load_each
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.paths import parts_of, view_url
from limnos.client.values import IcebergViewInfo, MoveResult, Parts


class Views(Resource[S]):
    """Calls on the Iceberg views of the client's metalake."""

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the views of a namespace, as full paths, sorted."""
        return list_pages(self.scope.metalake, parts_of(namespace, least=2), kind="view")

    @verb
    def load(self, path: str | Sequence[str]) -> Flow[IcebergViewInfo]:
        """Load a view by its path: the text in each dialect, the schema and the properties."""
        parts = parts_of(path, least=3)
        answer = yield from call("GET", view_url(self.scope.metalake, parts), answer=TableLoadResponse)
        return IcebergViewInfo(path=parts, metadata_location=answer.metadata_location or "", metadata=answer.metadata)

    @verb
    def load_each(self, paths: Sequence[str | Sequence[str]]) -> Flow[tuple[IcebergViewInfo | None, ...]]:
        """Load many views with few requests, in the order of `paths`, as `Tables.load_each` does."""
        each = yield from load_each(self.scope, paths, kind="view", snapshots="all")
        return tuple([None if one is None else IcebergViewInfo(*one) for one in each])

    @verb
    def exists(self, path: str | Sequence[str]) -> Flow[bool]:
        """Return whether the view exists and is visible to the caller."""
        return is_there(view_url(self.scope.metalake, parts_of(path, least=3)))

    @verb
    def drop(self, path: str | Sequence[str]) -> Flow[None]:
        """Drop a view. Its metadata files are not deleted."""
        yield request("DELETE", view_url(self.scope.metalake, parts_of(path, least=3)))

    @verb
    def move(self, source: str | Sequence[str], target: str | Sequence[str]) -> Flow[MoveResult]:
        """Rename or move a view within its catalog. Its id, grants and tags do not change."""
        parts = parts_of(target, least=3)
        return (yield from move(self.scope.metalake, "view", parts_of(source, least=3), parts))
