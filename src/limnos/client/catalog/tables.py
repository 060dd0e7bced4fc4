# SPDX-License-Identifier: Apache-2.0
"""Calls on Iceberg tables: Iceberg REST, and the admin API to move.

Paths start with the catalog. Iceberg's own clients create and commit tables; `Client.iceberg_properties` has their
settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.client.catalog.namespaces import PAGE_SIZE, move
from limnos.client.errors import NotFoundError, UnavailableError
from limnos.client.flow import OWN, ClientScope, Flow, Reply, Resource, S, call, decode, request, segments, verb
from limnos.client.paths import namespace_url, parts_of, table_url
from limnos.client.values import IcebergTableInfo, Json, MoveResult, Parts

LOADED_AT_ONCE: Final = 100
"""The number of objects that one request loads; the server accepts no more."""
PATHS_BYTES: Final = 60_000
"""The size of the paths of a request, in bytes: the server accepts bodies of 64 KiB."""


class _TableIdentifier(msgspec.Struct):
    namespace: Parts
    name: str


class _ListAnswer(msgspec.Struct, rename="kebab"):
    identifiers: tuple[_TableIdentifier, ...]
    next_page_token: str | None = None


class _StorageCredential(msgspec.Struct):
    prefix: str
    config: dict[str, str]


class _LoadedLine(msgspec.Struct):
    """A line of a response with many objects: the metadata of one, or the code of an error; the last has the count."""

    index: int = -1
    metadata_location: str = ""
    metadata: Json | None = None
    count: int = -1


class TableLoadResponse(msgspec.Struct, rename="kebab"):
    """The response to a request to load a table or view: its metadata, and the configuration for its client."""

    metadata: Json
    metadata_location: str | None = None
    config: dict[str, str] | None = None


class LoadedMetadata(NamedTuple):
    """A loaded table or view: its path, its metadata file, and its metadata."""

    path: Parts
    metadata_location: str
    metadata: Json


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


def load_each(
    scope: ClientScope, paths: Sequence[str | Sequence[str]], *, kind: str, snapshots: str
) -> Flow[tuple[LoadedMetadata | None, ...]]:
    """Load tables or views (`kind`) of any catalogs, at most `LOADED_AT_ONCE` in a request, in the order of `paths`.

    A response has at most some megabytes of metadata, and the objects after them are None.
    """
    by_catalog: dict[str, list[tuple[int, Parts]]] = {}
    for position, path in enumerate(paths):
        parts = parts_of(path, least=3)
        by_catalog.setdefault(parts[0], []).append((position, parts))
    results: dict[int, LoadedMetadata] = {}
    for catalog, some in by_catalog.items():
        for requested_objects in _in_requests(some):
            lines = yield from _load_lines(
                scope, catalog, requested_objects=requested_objects, kind=kind, snapshots=snapshots
            )
            for line, (position, parts) in zip(lines, requested_objects, strict=False):
                if line.metadata is not None:
                    results[position] = LoadedMetadata(parts, line.metadata_location, line.metadata)
    return tuple([results.get(position) for position in range(len(paths))])


def _in_requests(objects: Iterable[tuple[int, Parts]]) -> Iterator[list[tuple[int, Parts]]]:
    """Group objects into requests that the server accepts."""
    requested_objects: list[tuple[int, Parts]] = []
    size = 0
    for each in objects:
        each_bytes = len(msgspec.json.encode(each[1]))
        if requested_objects and (len(requested_objects) >= LOADED_AT_ONCE or size + each_bytes > PATHS_BYTES):
            yield requested_objects
            requested_objects, size = [], 0
        requested_objects.append(each)
        size += each_bytes
    if requested_objects:
        yield requested_objects


def _load_lines(
    scope: ClientScope, catalog: str, *, requested_objects: Sequence[tuple[int, Parts]], kind: str, snapshots: str
) -> Flow[list[_LoadedLine]]:
    """Request the metadata of objects of one catalog. Returns a line for each of the first of them, at least one.

    Raises UnavailableError if the response ended early.
    """
    body = {"paths": [parts[1:] for _, parts in requested_objects], "kind": kind, "snapshots": snapshots}
    url = f"{OWN}/metalakes{segments(scope.metalake, 'catalogs', catalog, 'load')}"
    reply = yield request("POST", url, body=body, repeatable=True)
    if not reply.body.endswith(b"}\n"):
        raise UnavailableError("the server's answer ended early: load the objects again")
    *lines, last = [_decode_line(line, reply) for line in reply.body.splitlines()]
    if not 0 < last.count == len(lines) <= len(requested_objects) or any(
        at != each.index for at, each in enumerate(lines)
    ):
        raise UnavailableError("the server's answer ended early: load the objects again")
    return lines


def _decode_line(line: bytes, reply: Reply) -> _LoadedLine:
    return decode(Reply(reply.status, line), _LoadedLine)


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
    def load_each(
        self, paths: Sequence[str | Sequence[str]], *, snapshots: str = "refs"
    ) -> Flow[tuple[IcebergTableInfo | None, ...]]:
        """Load many tables with few requests, in the order of `paths`.

        Returns None for a table that the server did not return: because it is missing, restricted for the caller, or
        would make the response too large. Load it by itself, which also states why it cannot be loaded.
        """
        each = yield from load_each(self.scope, paths, kind="table", snapshots=snapshots)
        return tuple([None if one is None else IcebergTableInfo(*one) for one in each])

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
