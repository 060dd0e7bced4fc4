"""Schemas and tables of catalogs that show another system (Gravitino REST).

May import `model` and this room. Paths start with the catalog. What lies in the server's own tree is in `namespaces` and `tables`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.catalogs import OneAnswer
from limnos.client.errors import DeniedError, NotFoundError
from limnos.client.flow import Flow, Resource, S, Scope, decode, request, verb
from limnos.client.paths import metalake_url, parts_of
from limnos.client.values import Json, Parts, SourceTable
from limnos.model.kinds import FEDERATED, SOURCED


class _Identifier(msgspec.Struct):
    name: str


class _ListAnswer(msgspec.Struct):
    identifiers: tuple[_Identifier, ...]


class _TableAnswer(msgspec.Struct):
    table: Json


class _SchemaAnswer(msgspec.Struct):
    schema: Json


def sourced(scope: Scope, catalog: str) -> Flow[bool]:
    """Tell whether a catalog shows another system, as far as the caller may know."""
    try:
        reply = yield request("GET", metalake_url(scope.metalake, "catalogs", catalog))
    except (NotFoundError, DeniedError):
        return False
    provider = decode(reply, OneAnswer).catalog.provider
    return provider in SOURCED and provider not in FEDERATED  # those are Iceberg's, as the server's own


class Schemas(Resource[S]):
    """What other systems have, as catalogs of the client's metalake show it."""

    __slots__ = ()

    @verb
    def is_shown(self, catalog: str) -> Flow[bool]:
        """Tell whether a catalog shows another system, as far as the caller may know."""
        return (yield from sourced(self.scope, catalog))

    @verb
    def list(self, path: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the schemas of a catalog, or the tables of a schema, as whole paths."""
        parts = parts_of(path)
        url = schema_url(self.scope, parts[0]) if len(parts) == 1 else f"{schema_url(self.scope, *parts[:2])}/tables"
        answer = decode((yield request("GET", url)), _ListAnswer)
        return tuple((*parts, each.name) for each in answer.identifiers)

    @verb
    def load(self, path: str | Sequence[str]) -> Flow[Json]:
        """Load a schema: its comment, properties and audit."""
        catalog, schema = parts_of(path, least=2)[:2]
        return decode((yield request("GET", schema_url(self.scope, catalog, schema))), _SchemaAnswer).schema

    @verb
    def table(self, path: str | Sequence[str]) -> Flow[SourceTable]:
        """Load a table with its columns."""
        parts = parts_of(path, least=3)
        url = metalake_url(self.scope.metalake, "catalogs", parts[0], "schemas", parts[1], "tables", parts[2])
        return SourceTable(path=parts[:3], table=decode((yield request("GET", url)), _TableAnswer).table)


def schema_url(scope: Scope, catalog: str, *schema: str) -> str:
    """Spell the address of a catalog's schemas, or of one."""
    return metalake_url(scope.metalake, "catalogs", catalog, "schemas", *schema)
