"""Calls on Lance tables: Lance REST. What is in them is the work of Lance's own clients.

May import `names` and this room. Paths start with the catalog; a table may lie directly in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.flow import Flow, Request, Resource, S, decode, request, segments, verb
from limnos.client.namespaces import PAGE_SIZE
from limnos.client.paths import parts_of
from limnos.client.values import Json, LanceTable, Parts
from limnos.names import lance

ROOT = "/lance/v1"


_OF_NAMESPACES = ("list", "table/list")


class _LanceListResponse(msgspec.Struct):
    tables: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    page_token: str | None = None


class _LanceDescribeResponse(msgspec.Struct):
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
    """Describe a request about a table or namespace; the names are joined by what none of them holds."""
    delimiter = next(each for each in ("$", "::", *("~" * size for size in range(2, 40))) if _can_join(parts, each))
    kind = "namespace" if action in _OF_NAMESPACES else "table"
    path = f"{ROOT}/{kind}{segments(lance.join(parts, delimiter=delimiter))}/{action}"
    asked = {"delimiter": delimiter, "metalake": metalake, **(query or {})}
    if kind == "namespace":
        return request("GET", path, query=asked)
    return request("POST", path, query=asked, body=body or {}, repeatable=action == "describe")


def _can_join(parts: Parts, delimiter: str) -> bool:
    """Say whether names can be told apart when this joins them."""
    return tuple(delimiter.join(parts).split(delimiter)) == tuple(parts)


def _dry_run_query(dry_run: bool) -> dict[str, str] | None:  # noqa: FBT001 - a flag of the request
    return {"dry_run": "true"} if dry_run else None


class LanceTables(Resource[S]):
    """The Lance tables of the client's metalake."""

    __slots__ = ()

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the Lance tables of a catalog or namespace, as whole paths, sorted by the server."""
        found = yield from self._listed(parts_of(namespace), "table/list")
        return found

    @verb
    def namespaces(self, parent: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the namespaces directly in a catalog or namespace, as whole paths: also those of a directory that a catalog shows."""
        found = yield from self._listed(parts_of(parent), "list")
        return found

    def _listed(self, parts: Parts, action: str) -> Flow[tuple[Parts, ...]]:
        found: tuple[Parts, ...] = ()
        more = {"limit": PAGE_SIZE}
        while True:
            reply = yield lance_request(self.scope.metalake, parts, action=action, query=more)
            answer = decode(reply, _LanceListResponse)
            found += tuple((*parts, name) for name in (*answer.namespaces, *answer.tables))
            if not answer.page_token:
                return found
            more["page_token"] = answer.page_token

    @verb
    def load(
        self, path: str | Sequence[str], *, version: int | None = None, tag: str | None = None
    ) -> Flow[LanceTable]:
        """Load a table: where it lies, and its version and schema when it holds data; the latest, or one by number or tag."""
        parts = parts_of(path, least=2)
        body = {"version": version, "tag": tag}
        reply = yield lance_request(self.scope.metalake, parts, action="describe", body=body)
        answer = decode(reply, _LanceDescribeResponse)
        return LanceTable(
            path=parts, location=answer.location, properties=answer.properties, version=answer.version,
            table_schema=answer.table_schema or {}, stats=answer.stats, storage_options=answer.storage_options or {},
            managed=bool(answer.managed_versioning),
        )  # fmt: skip

    @verb
    def declare(
        self, path: str | Sequence[str], *, location: str | None = None, properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Flow[str]:  # fmt: skip
        """Take a table's name; answers where to write it, which is a place of its own unless one is given. `dry_run`: only checks."""
        body, query = {"location": location, "properties": dict(properties or {})}, _dry_run_query(dry_run)
        parts = parts_of(path, least=2)
        reply = yield lance_request(self.scope.metalake, parts, action="declare", body=body, query=query)
        return decode(reply, _LanceDescribeResponse).location

    @verb
    def register(
        self, path: str | Sequence[str], *, location: str, properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Flow[str]:  # fmt: skip
        """Give a name to a table that lies somewhere already; answers where, as the server spells it. `dry_run`: only checks."""
        body, query = {"location": location, "properties": dict(properties or {})}, _dry_run_query(dry_run)
        parts = parts_of(path, least=2)
        reply = yield lance_request(self.scope.metalake, parts, action="register", body=body, query=query)
        return decode(reply, _LanceDescribeResponse).location

    @verb
    def deregister(self, path: str | Sequence[str]) -> Flow[None]:
        """Forget a table; its files stay."""
        yield lance_request(self.scope.metalake, parts_of(path, least=2), action="deregister")

    @verb
    def drop(self, path: str | Sequence[str]) -> Flow[None]:
        """Drop a table; its files go when it cannot be brought back from the trash any more."""
        yield lance_request(self.scope.metalake, parts_of(path, least=2), action="drop")
