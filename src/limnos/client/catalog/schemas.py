# SPDX-License-Identifier: Apache-2.0
"""Schemas, tables and topics of connector catalogs (Gravitino REST).

Paths start with the catalog. `namespaces` and `tables` serve the objects of the server's own tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.errors import DeniedError, NotFoundError
from limnos.client.flow import ClientScope, Flow, Resource, S, call, verb
from limnos.client.paths import metalake_url, parts_of, schema_object_parts, shaped_parts
from limnos.client.values import Catalog, Json, Parts, SourceTable
from limnos.model.kind_table import ONLY_KINDS
from limnos.model.kinds import REST_PROVIDERS, is_source_provider


class Identifier(msgspec.Struct):
    """An entry of a Gravitino list, of which only the object's name is decoded."""

    name: str


def list_names(url: str) -> Flow[tuple[str, ...]]:
    """Request a Gravitino list of identifiers, and return their names. `url` is the path of the list."""
    identifiers = yield from call("GET", url, answer=tuple[Identifier, ...], field="identifiers")
    return tuple(each.name for each in identifiers)


def find_schema_content(scope: ClientScope, catalog: str) -> Flow[str]:
    """Return the kind of objects in a catalog's schemas that Iceberg clients do not see.

    It is `table`, `topic`, `fileset` or `model`; empty for other catalogs.
    """
    try:
        url = metalake_url(scope.metalake, "catalogs", catalog)
        information = yield from call("GET", url, answer=Catalog, field="catalog")
    except (NotFoundError, DeniedError):
        return ""
    provider = information.provider
    kind = ONLY_KINDS.get(provider or "")
    if kind is not None:
        return kind.word
    # Tables of REST providers are Iceberg tables, like the server's own.
    if provider is None or not is_source_provider(provider) or provider in REST_PROVIDERS:
        return ""
    return "topic" if information.type.lower() == "messaging" else "table"


class Schemas(Resource[S]):
    """Calls on the schemas, tables and topics of connector catalogs, whose objects are in external systems."""

    @verb
    def holding(self, catalog: str) -> Flow[str]:
        """Return the kind of objects in a catalog's schemas that Iceberg clients do not see.

        It is `table`, `topic`, `fileset` or `model`; empty for other catalogs.
        """
        return (yield from find_schema_content(self.scope, catalog))

    @verb
    def list(self, path: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the schemas of a catalog, or the tables or topics of a schema, as full paths."""
        parts = parts_of(path)
        parts = parts if len(parts) == 1 else shaped_parts(parts, "catalog", "schema")
        url = schema_url(self.scope, *parts)
        if len(parts) > 1:
            url = f"{url}/{(yield from find_schema_content(self.scope, parts[0])) or 'table'}s"
        return tuple((*parts, name) for name in (yield from list_names(url)))

    @verb
    def load(self, path: str | Sequence[str]) -> Flow[Json]:
        """Load a schema: its comment, properties and audit."""
        catalog, schema = shaped_parts(path, "catalog", "schema")
        return call("GET", schema_url(self.scope, catalog, schema), answer=Json, field="schema")

    @verb
    def table(self, path: str | Sequence[str]) -> Flow[SourceTable]:
        """Load a table of an external system with its columns, indexes and partitioning."""
        parts = schema_object_parts(path, kind="table")
        url = self.gravitino_url("catalogs", parts[0], "schemas", parts[1], "tables", parts[2])
        return SourceTable(path=parts, table=(yield from call("GET", url, answer=Json, field="table")))

    @verb
    def drop(self, path: str | Sequence[str], *, purge: bool = False) -> Flow[bool]:
        """Drop an empty schema or a table in the external system, with `purge` the table's files, too. Returns whether
        it was there.
        """
        parts = parts_of(path)
        if len(parts) == 2:
            return call("DELETE", schema_url(self.scope, *parts), answer=bool, field="dropped")
        parts = schema_object_parts(parts, kind="table")
        url = self.gravitino_url("catalogs", parts[0], "schemas", parts[1], "tables", parts[2])
        return call("DELETE", url, answer=bool, field="dropped", query={"purge": "true" if purge else None})

    @verb
    def topic(self, path: str | Sequence[str]) -> Flow[Json]:
        """Load a topic: its comment, properties and audit."""
        parts = schema_object_parts(path, kind="topic")
        url = self.gravitino_url("catalogs", parts[0], "schemas", parts[1], "topics", parts[2])
        return call("GET", url, answer=Json, field="topic")


def schema_url(scope: ClientScope, catalog: str, *schema: str) -> str:
    """Return the Gravitino path of a catalog's schemas, or of the object with the path `schema` below it."""
    return metalake_url(scope.metalake, "catalogs", catalog, "schemas", *schema)
