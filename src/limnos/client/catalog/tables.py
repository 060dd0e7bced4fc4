# SPDX-License-Identifier: Apache-2.0
"""Calls on Iceberg tables: Iceberg REST, and the admin API to move.

Paths start with the catalog. Iceberg's own clients create and commit tables; `Client.iceberg_properties` has their
settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.catalog.namespaces import PAGE_SIZE, move
from limnos.client.errors import NotFoundError
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.paths import namespace_url, parts_of, table_url
from limnos.client.values import IcebergTableInfo, Json, MoveResult, Parts


class _TableIdentifier(msgspec.Struct):
    namespace: Parts
    name: str


class _ListAnswer(msgspec.Struct, rename="kebab"):
    identifiers: tuple[_TableIdentifier, ...]
    next_page_token: str | None = None


class _StorageCredential(msgspec.Struct):
    prefix: str
    config: dict[str, str]


class TableLoadResponse(msgspec.Struct, rename="kebab"):
    """The response to a request to load a table or view: its metadata, and the configuration for its client."""

    metadata: Json
    metadata_location: str | None = None
    config: dict[str, str] | None = None


def list_pages(metalake: str, namespace: Parts, *, kind: str) -> Flow[tuple[Parts, ...]]:
    """List all tables or views (`kind`) of a namespace, as full paths, page by page."""
    url = f"{namespace_url(metalake, namespace)}/{kind}s"
    result: tuple[Parts, ...] = ()
    token: str | None = ""
    while token is not None:
        answer = yield from call("GET", url, answer=_ListAnswer, query={"pageToken": token, "pageSize": PAGE_SIZE})
        result += tuple((namespace[0], *each.namespace, each.name) for each in answer.identifiers)
        token = answer.next_page_token or None
    return result


def is_there(url: str) -> Flow[bool]:
    """Return whether a table or view exists and is visible to the caller."""
    try:
        yield request("HEAD", url)
    except NotFoundError:
        return False
    return True


class Tables(Resource[S]):
    """Calls on the Iceberg tables of the client's metalake."""

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the tables of a namespace, as full paths, sorted."""
        return list_pages(self.scope.metalake, parts_of(namespace, least=2), kind="table")

    @verb
    def load(self, path: str | Sequence[str], *, snapshots: str = "all") -> Flow[IcebergTableInfo]:
        """Load a table. `snapshots` is `all`, or `refs` for only the snapshots that branches and tags refer to."""
        parts = parts_of(path, least=3)
        query = {"snapshots": None if snapshots == "all" else snapshots}
        answer = yield from call("GET", self._url(parts), answer=TableLoadResponse, query=query)
        return IcebergTableInfo(
            path=parts, metadata_location=answer.metadata_location, metadata=answer.metadata, config=answer.config or {}
        )

    @verb
    def credentials(self, path: str | Sequence[str]) -> Flow[dict[str, str]]:
        """Return credentials for a table's files, as properties of Iceberg's clients; empty if none are vended."""
        url = f"{self._url(parts_of(path, least=3))}/credentials"
        entries = yield from call("GET", url, answer=tuple[_StorageCredential, ...], field="storage-credentials")
        return dict(entries[0].config) if entries else {}

    @verb
    def exists(self, path: str | Sequence[str]) -> Flow[bool]:
        """Return whether the table exists and is visible to the caller."""
        return is_there(self._url(parts_of(path, least=3)))

    @verb
    def mend(self, path: str | Sequence[str]) -> Flow[IcebergTableInfo]:
        """Correct a table's metadata so that all readers accept it, if nothing is lost. No-op if they do already."""
        parts = parts_of(path, least=3)
        body = {"requirements": [], "updates": [{"action": "limnos-mend-metadata"}]}
        answer = yield from call("POST", self._url(parts), answer=TableLoadResponse, body=body, repeatable=True)
        return IcebergTableInfo(
            path=parts, metadata_location=answer.metadata_location, metadata=answer.metadata, config=answer.config or {}
        )

    @verb
    def drop(self, path: str | Sequence[str], *, purge: bool = False) -> Flow[None]:
        """Drop a table. With `purge`, its files are deleted afterwards."""
        query = {"purgeRequested": "true" if purge else None}
        yield request("DELETE", self._url(parts_of(path, least=3)), query=query)

    @verb
    def move(self, source: str | Sequence[str], target: str | Sequence[str]) -> Flow[MoveResult]:
        """Rename or move a table within its catalog. Its id, grants and tags do not change."""
        parts = parts_of(target, least=2)
        return (yield from move(self.scope.metalake, "table", parts_of(source, least=2), parts))

    def _url(self, parts: Parts) -> str:
        return table_url(self.scope.metalake, parts)
