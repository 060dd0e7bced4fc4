# SPDX-License-Identifier: Apache-2.0
"""Calls on Lance tables (Lance REST). Lance's own clients read and write the tables' data.

Paths start with the catalog; a table may be directly in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.catalog.namespaces import PAGE_SIZE
from limnos.client.flow import Flow, Request, Resource, S, decode, request, segments, verb
from limnos.client.paths import parts_of
from limnos.client.values import Json, LanceTable, LanceTableSize, LanceVersionInfo, Parts
from limnos.names import lance

ROOT = "/lance/v1"


_OF_NAMESPACES = ("list", "table/list")


class _LanceListResponse(msgspec.Struct):
    tables: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    page_token: str | None = None


class _LanceVersion(msgspec.Struct, kw_only=True):
    version: int
    timestamp_millis: int | None = None


class _LanceVersionsResponse(msgspec.Struct, kw_only=True):
    versions: list[_LanceVersion]
    page_token: str | None = None


class _LanceTag(msgspec.Struct, kw_only=True):
    version: int
    branch: str | None = None


class _LanceTagsResponse(msgspec.Struct, kw_only=True):
    tags: dict[str, _LanceTag]


class _LanceStatsResponse(msgspec.Struct, kw_only=True):
    total_bytes: int
    num_rows: int


class _LanceDescribeResponse(msgspec.Struct, kw_only=True):
    location: str
    properties: dict[str, str] = {}
    version: int | None = None
    table_schema: Json | None = msgspec.field(default=None, name="schema")
    stats: dict[str, int] = {}
    storage_options: dict[str, str] | None = None
    managed_versioning: bool | None = None


def lance_request(
    metalake: str,
    parts: Parts,
    *,
    action: str,
    body: Mapping[str, object] | None = None,
    query: Mapping[str, str] | None = None,
) -> Request:
    """Build a request on a table or namespace. The names are joined by a delimiter that none of them contains."""
    delimiter = next(each for each in ("$", "::", *("~" * size for size in range(2, 40))) if _can_join(parts, each))
    kind = "namespace" if action in _OF_NAMESPACES else "table"
    path = f"{ROOT}/{kind}{segments(lance.join(parts, delimiter=delimiter))}/{action}"
    requested = {"delimiter": delimiter, "metalake": metalake, **(query or {})}
    if kind == "namespace":
        return request("GET", path, query=requested)
    return request("POST", path, query=requested, body=body or {}, repeatable=action == "describe")


def _can_join(parts: Parts, delimiter: str) -> bool:
    """Return whether the delimiter occurs in none of the names, so that the joined identifier is unambiguous."""
    return tuple(delimiter.join(parts).split(delimiter)) == tuple(parts)


def _dry_run_query(dry_run: bool) -> dict[str, str] | None:  # noqa: FBT001 - a flag of the request
    return {"dry_run": "true"} if dry_run else None


class LanceTables(Resource[S]):
    """Calls on the Lance tables of the client's metalake, over Lance REST."""

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the Lance tables of a catalog or namespace, as full paths, sorted."""
        result = yield from self._list_all(parts_of(namespace), "table/list")
        return result

    @verb
    def namespaces(self, parent: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the direct child namespaces of a catalog or namespace, as full paths, also in a directory catalog."""
        result = yield from self._list_all(parts_of(parent), "list")
        return result

    def _list_all(self, parts: Parts, action: str) -> Flow[tuple[Parts, ...]]:
        result: tuple[Parts, ...] = ()
        more = {"limit": PAGE_SIZE}
        while True:
            reply = yield lance_request(self.scope.metalake, parts, action=action, query=more)
            answer = decode(reply, _LanceListResponse)
            result += tuple((*parts, name) for name in (*answer.namespaces, *answer.tables))
            if not answer.page_token:
                return result
            more["page_token"] = answer.page_token

    @verb
    def load(
        self, path: str | Sequence[str], *, version: int | None = None, tag: str | None = None
    ) -> Flow[LanceTable]:
        """Load a table's location, and its version and schema if it has data: the latest version, or a version by
        number or tag.
        """
        parts = parts_of(path, least=2)
        body = {"version": version, "tag": tag}
        reply = yield lance_request(self.scope.metalake, parts, action="describe", body=body)
        answer = decode(reply, _LanceDescribeResponse)
        return LanceTable(
            path=parts,
            location=answer.location,
            properties=answer.properties,
            version=answer.version,
            table_schema=answer.table_schema or {},
            stats=answer.stats,
            storage_options=answer.storage_options or {},
            managed=bool(answer.managed_versioning),
        )

    @verb
    def size(self, path: str | Sequence[str]) -> Flow[LanceTableSize]:
        """Count the rows and bytes of a table's latest version. Takes the right to read its rows."""
        reply = yield lance_request(self.scope.metalake, parts_of(path, least=2), action="stats")
        answer = decode(reply, _LanceStatsResponse)
        return LanceTableSize(rows=answer.num_rows, size_bytes=answer.total_bytes)

    @verb
    def versions(self, path: str | Sequence[str], *, limit: int = 50) -> Flow[tuple[LanceVersionInfo, ...]]:
        """List the newest versions of a table's main branch, at most `limit`, the newest first.

        Each has its tags, of the first thousand tags of the table.
        """
        parts = parts_of(path, least=2)
        versions: list[_LanceVersion] = []
        more = {"descending": "true", "limit": str(min(limit, int(PAGE_SIZE)))}
        while len(versions) < limit:
            reply = yield lance_request(self.scope.metalake, parts, action="version/list", query=more)
            page = decode(reply, _LanceVersionsResponse)
            versions += page.versions
            if not page.page_token:
                break
            more["page_token"] = page.page_token
        reply = yield lance_request(self.scope.metalake, parts, action="tags/list", query={"limit": PAGE_SIZE})
        tags = {name: tag.version for name, tag in decode(reply, _LanceTagsResponse).tags.items() if not tag.branch}
        return tuple(
            LanceVersionInfo(
                version=each.version,
                at_ms=each.timestamp_millis,
                tags=tuple(sorted(name for name, version in tags.items() if version == each.version)),
            )
            for each in versions[:limit]
        )

    @verb
    def declare(
        self,
        path: str | Sequence[str],
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Flow[str]:
        """Declare a table, which reserves its name. Returns the location to write to; without `location` the server
        chooses one.

        `dry_run`: only validate the request.
        """
        body, query = {"location": location, "properties": dict(properties or {})}, _dry_run_query(dry_run)
        parts = parts_of(path, least=2)
        reply = yield lance_request(self.scope.metalake, parts, action="declare", body=body, query=query)
        return decode(reply, _LanceDescribeResponse).location

    @verb
    def register(
        self,
        path: str | Sequence[str],
        *,
        location: str,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Flow[str]:
        """Register an existing table under a name.

        Returns its location in the server's normal form. `dry_run`: only validate the request.
        """
        body, query = {"location": location, "properties": dict(properties or {})}, _dry_run_query(dry_run)
        parts = parts_of(path, least=2)
        reply = yield lance_request(self.scope.metalake, parts, action="register", body=body, query=query)
        return decode(reply, _LanceDescribeResponse).location

    @verb
    def deregister(self, path: str | Sequence[str]) -> Flow[None]:
        """Remove a table from the catalog without deleting its files."""
        yield lance_request(self.scope.metalake, parts_of(path, least=2), action="deregister")

    @verb
    def drop(self, path: str | Sequence[str]) -> Flow[None]:
        """Drop a table. Its files are deleted when it can no longer be restored from the trash."""
        yield lance_request(self.scope.metalake, parts_of(path, least=2), action="drop")
