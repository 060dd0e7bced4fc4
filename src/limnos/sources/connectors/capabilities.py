# SPDX-License-Identifier: Apache-2.0
"""The capabilities of connectors, as protocols, and the values that they exchange (seed 2, "catalog interfaces").

Must not know the tree's names, callers or their rights. A connector implements the protocols of its capabilities, and
callers test for them with isinstance. Calls block and have their own deadlines. Methods raise the errors of
`model.errors`; a source that does not respond raises SourceFailed. Nothing is cached: each result is the source's
current state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.gravitino.views import GravitinoView, IcebergViewCreate
from limnos.formats.iceberg.json_types import Json
from limnos.names.path import Levels


class SourceSchemaInfo(NamedTuple):
    """A schema (database) of an external system: its comment and properties."""

    comment: str | None
    properties: dict[str, str]


class RestCall(NamedTuple):
    """A request of the Iceberg REST protocol from one catalog to another."""

    endpoint: str
    """The method and path in servers' lists of endpoints, without the prefix: `GET /namespaces/{namespace}/tables`."""
    namespace: Levels = ()
    """The value of `{namespace}`."""
    name: str = ""
    """The value of `{table}` or `{view}`."""
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    missing: str = "namespace"
    """The kind of the missing object if the source returns 404 without a standard error type."""
    conflict_meaning: str = "conflict"
    """The meaning of 409 if the source names no error type.

    `conflict` is a commit conflict, `empty` is a namespace that is not empty, and a kind (`table`) is an existing
    object of that kind.
    """

    @property
    def method(self) -> str:
        """The HTTP method, the first word of `endpoint`, such as `GET`."""
        return self.endpoint.partition(" ")[0]

    @property
    def changes(self) -> bool:
        """Whether the request may make a change: its method is neither GET nor HEAD."""
        return self.method not in ("GET", "HEAD")

    @property
    def path(self) -> Levels:
        """The identifier of the object that the request names: its namespace's levels, then the table's or view's
        name.
        """
        return (*self.namespace, self.name) if self.name else self.namespace


class RestReply(NamedTuple):
    """A successful response of a REST catalog: its status is 2xx or 304."""

    status: int
    etag: str | None
    body: bytes


class SourceNames(NamedTuple):
    """A page of names, and the source's token for the next page (None after the last page)."""

    names: list[str]
    token: str | None


class SourceTableInfo(NamedTuple):
    """A table of an external system; columns, indexes and layout are Gravitino's JSON.

    - `columns`: each has `name` and `type`, optionally `comment`, `nullable` (by default true), `autoIncrement` and
      `defaultValue`. A type is a text (`long`, `decimal(10,2)`, `timestamp_tz`, `timestamp(6)` with a precision if the
      source has one) or one of `{"type": "list", "elementType": T, "containsNull": true}`, `{"type": "map", "keyType":
      T, "valueType": T, "valueContainsNull": true}`, `{"type": "struct", "fields": [{"name": "x", "type": T,
      "nullable": true}]}`, and for any other type `{"type": "external", "catalogString": "the source's own spelling"}`.
    - `indexes`: each is `{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}`; empty without keys.
    - `properties` are shown to every user who may load the table. Gravitino's own names are `format`, `location` and
      `provider`.
    - `layout` of its files; None if it has no files. All its keys are optional. `partitioning`: `[{"strategy":
      "identity", "fieldName": ["day"]}]`, also `year`, `month`, `day` and `hour`, `{"strategy": "bucket", "numBuckets":
      8, "fieldNames": [["id"]]}`, `{"strategy": "truncate", "width": 4, "fieldName": ["name"]}`. `distribution`:
      `{"strategy": "hash", "number": 8, "funcArgs": [{"type": "field", "fieldName": ["id"]}]}`. `sortOrders`:
      `[{"sortTerm": {"type": "field", "fieldName": ["id"]}, "direction": "asc", "nullOrdering": "nulls_first"}]`.
    """

    comment: str | None
    columns: list[Json]
    indexes: list[Json]
    properties: dict[str, str]
    layout: Json | None = None


class SourceTopicInfo(NamedTuple):
    """A topic of an external system: its configuration as properties. Sources have no comments for topics."""

    properties: dict[str, str]


@runtime_checkable
class BaseCatalog(Protocol):
    """The base of every connector: it can be checked and closed."""

    def check(self) -> None:
        """Check that the source responds to a request with the catalog's properties.

        Raises SourceFailed without a response, BadRequest for properties that the source rejects.
        """

    def close(self) -> None:
        """Close the connections. Calls in progress may still finish."""


@runtime_checkable
class SupportsNamespaces(BaseCatalog, Protocol):
    """A connector with schemas, of one level or nested."""

    def schema_names(self, parent: Levels) -> list[str]:
        """Return the sorted names of the schemas in `parent`; an empty parent is the top level.

        Raises NotFound, and UnsupportedOperation if the source has no nested schemas.
        """

    def schema_exists(self, schema: Levels) -> bool:
        """Return whether the source has a schema. The caller's rights are not checked."""

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return a schema's comment and properties. Raises NotFound."""

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Create a schema. Raises AlreadyExists, UnsupportedOperation for properties that the source cannot store."""

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Set and remove properties of a schema. Raises NotFound, UnsupportedOperation if the source cannot change
        them.
        """

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty schema. Raises NotFound, NotEmpty."""


@runtime_checkable
class TableCatalog(BaseCatalog, Protocol):
    """A connector with tables in schemas."""

    def table_names(self, schema: Levels) -> list[str]:
        """Return the names of all tables of a schema, sorted. Raises NotFound for the schema."""

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Return whether the source has a table. The caller's rights are not checked."""

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Return a table's columns, indexes, layout and properties. Raises NotFound for the schema or the table."""

    def table_create(self, schema: Levels, table: str, *, definition: GravitinoCreate) -> None:
        """Create a table in one atomic operation.

        Raises AlreadyExists, NotFound for the schema, BadRequest for an invalid definition, and UnsupportedOperation
        for a feature that the source lacks.
        """

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Apply the changes atomically. Raises NotFound, BadRequest for an invalid change, and UnsupportedOperation for
        a kind of change that the source lacks.
        """

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Rename a table, also into another schema. Raises NotFound, AlreadyExists, UnsupportedOperation if the source
        cannot move tables.
        """

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table with its rows; `purge` also deletes its files.

        Raises NotFound, BadRequest if another object needs it, UnsupportedOperation for a purge if the source has no
        files.
        """


@runtime_checkable
class ViewCatalog(BaseCatalog, Protocol):
    """A connector with views in schemas."""

    def view_names(self, schema: Levels) -> list[str]:
        """Return the names of all views of a schema, sorted. Raises NotFound for the schema."""

    def view_exists(self, schema: Levels, view: str) -> bool:
        """Return whether the source has a view. The caller's rights are not checked."""

    def view_load(self, schema: Levels, view: str) -> GravitinoView:
        """Return a view's columns and SQL representations. Raises NotFound for the schema or the view."""

    def view_create(self, schema: Levels, view: str, *, definition: IcebergViewCreate) -> None:
        """Create a view. Raises AlreadyExists, NotFound for the schema, BadRequest for an invalid definition."""

    def view_alter(self, schema: Levels, view: str, *, updates: Sequence[object]) -> None:
        """Apply the updates of Iceberg's view specification atomically. Raises NotFound, BadRequest for an invalid
        update.
        """

    def view_rename(self, schema: Levels, view: str, *, target: Levels) -> None:
        """Rename a view, also into another schema. Raises NotFound, AlreadyExists."""

    def view_drop(self, schema: Levels, view: str) -> None:
        """Drop a view. Raises NotFound."""


@runtime_checkable
class RestCatalog(BaseCatalog, Protocol):
    """A connector for a source that implements Iceberg REST, to which requests are forwarded."""

    def endpoints(self) -> frozenset[str]:
        """Return the endpoints of the source, such as `GET /namespaces/{namespace}`."""

    def names(self, call: RestCall) -> SourceNames:
        """Return the names in the source's response to a list request: one page if `call` has `pageToken`, else all
        pages. Raises NotFound for the namespace, SourceFailed for a malformed response.
        """

    def exchange(self, call: RestCall) -> RestReply:
        """Forward a request and return its successful response.

        An unsuccessful response raises the error of `model` for its status.
        """


@runtime_checkable
class TopicCatalog(BaseCatalog, Protocol):
    """A connector with topics in schemas."""

    def topic_names(self, schema: str) -> list[str]:
        """Return the names of all topics of a schema, sorted. Raises NotFound for the schema."""

    def topic_exists(self, schema: str, topic: str) -> bool:
        """Return whether the source has a topic. The caller's rights are not checked."""

    def topic_load(self, schema: str, topic: str) -> SourceTopicInfo:
        """Return a topic's configuration. Raises NotFound for the schema or the topic."""

    def topic_create(self, schema: str, topic: str, *, properties: Mapping[str, str]) -> None:
        """Create a topic. Raises AlreadyExists, NotFound for the schema, BadRequest for an invalid name or setting."""

    def topic_alter(self, schema: str, topic: str, *, sets: Mapping[str, str], removes: Sequence[str]) -> None:
        """Change a topic's properties. All changes are validated before the first is made. Raises NotFound, BadRequest
        for an invalid setting.
        """

    def topic_drop(self, schema: str, topic: str) -> None:
        """Drop a topic with its messages.

        Raises NotFound, UnsupportedOperation if the source forbids dropping topics.
        """


def with_schemas(connector: BaseCatalog) -> SupportsNamespaces | None:
    """Return the connector if it has schemas, else None."""
    return connector if isinstance(connector, SupportsNamespaces) else None


def with_views(connector: BaseCatalog) -> ViewCatalog | None:
    """Return the connector if it has views, else None."""
    return connector if isinstance(connector, ViewCatalog) else None


def with_rest(connector: BaseCatalog) -> RestCatalog | None:
    """Return the connector if it implements Iceberg REST, else None."""
    return connector if isinstance(connector, RestCatalog) else None


def with_tables(connector: BaseCatalog) -> TableCatalog | None:
    """Return the connector if it has tables, else None."""
    return connector if isinstance(connector, TableCatalog) else None


def with_topics(connector: BaseCatalog) -> TopicCatalog | None:
    """Return the connector if it has topics, else None."""
    return connector if isinstance(connector, TopicCatalog) else None
