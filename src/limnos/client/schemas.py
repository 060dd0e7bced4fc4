"""Schemas, tables and topics of catalogs that show another system (Gravitino REST).

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
from limnos.model.kind_table import HELD
from limnos.model.kinds import FEDERATED, SOURCED


class _Identifier(msgspec.Struct):
    name: str


class ListAnswer(msgspec.Struct):
    """Names of what lies in a schema, or of schemas."""

    identifiers: tuple[_Identifier, ...]


class _TableAnswer(msgspec.Struct):
    table: Json


class _TopicAnswer(msgspec.Struct):
    topic: Json


class _SchemaAnswer(msgspec.Struct):
    schema: Json


def holding(scope: Scope, catalog: str) -> Flow[str]:
    """Tell what is in the schemas of a catalog where Iceberg's clients do not see it: `table`, `topic`, `fileset` or `model`; of others nothing."""
    try:
        reply = yield request("GET", metalake_url(scope.metalake, "catalogs", catalog))
    except (NotFoundError, DeniedError):
        return ""
    provider = decode(reply, OneAnswer).catalog.provider
    held = HELD.get(provider or "")
    if held is not None:
        return held.word
    if provider is None or provider not in SOURCED or provider in FEDERATED:  # those are Iceberg's, as the server's own
        return ""
    return "topic" if SOURCED[provider] == "STREAM" else "table"


class Schemas(Resource[S]):
    """What other systems have, as catalogs of the client's metalake show it."""

    __slots__ = ()

    @verb
    def holding(self, catalog: str) -> Flow[str]:
        """Tell what is in the schemas of a catalog where Iceberg's clients do not see it: `table`, `topic`, `fileset` or `model`; of others nothing."""
        return (yield from holding(self.scope, catalog))

    @verb
    def list(self, path: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the schemas of a catalog, or the tables or topics of a schema, as whole paths."""
        parts = parts_of(path)
        url = schema_url(self.scope, *parts[:2])
        if len(parts) > 1:
            url = f"{url}/{(yield from holding(self.scope, parts[0])) or 'table'}s"
        answer = decode((yield request("GET", url)), ListAnswer)
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

    @verb
    def topic(self, path: str | Sequence[str]) -> Flow[Json]:
        """Load a topic: its comment, properties and audit."""
        parts = parts_of(path, least=3)
        url = metalake_url(self.scope.metalake, "catalogs", parts[0], "schemas", parts[1], "topics", parts[2])
        return decode((yield request("GET", url)), _TopicAnswer).topic


def schema_url(scope: Scope, catalog: str, *schema: str) -> str:
    """Spell the address of a catalog's schemas, or of one."""
    return metalake_url(scope.metalake, "catalogs", catalog, "schemas", *schema)
