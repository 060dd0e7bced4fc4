"""What a connector can do, as protocols (seed 2, "catalog interfaces"), and the values that go through them.

May import `formats` for the words of columns and changes, `model`, and `names` for paths. A connector has what it can do and nothing else: who asks looks at its
type. Calls block, have deadlines of their own, and know nothing of names of the tree, of callers and of their rights. Errors are those of
`model.errors`; a source that does not answer is SourceFailed. Nothing is cached: each answer is what the source says now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
    from limnos.formats.gravitino.views import GravitinoView, IcebergViewCreate
    from limnos.formats.iceberg.json_types import Json
    from limnos.names.path import Levels


class SourceSchemaInfo(NamedTuple):
    """A schema as its source tells it."""

    comment: str | None
    properties: dict[str, str]


class RestCall(NamedTuple):
    """A request of Iceberg REST, as one catalog sends it to another."""

    endpoint: str
    """Method and path, as servers list them, without the prefix: `GET /namespaces/{namespace}/tables`."""
    namespace: Levels = ()
    """What `{namespace}` stands for."""
    name: str = ""
    """What `{table}` or `{view}` stands for."""
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    missing: str = "namespace"
    """The kind of what is not there when the source says no more than that."""
    taken: str = "conflict"
    """What 409 means when the source says no more: `conflict` of a commit, `empty` for a namespace that is not, or the kind of what has a name."""

    @property
    def method(self) -> str:
        """Its method."""
        return self.endpoint.partition(" ")[0]

    @property
    def changes(self) -> bool:
        """Whether it does something."""
        return self.method not in ("GET", "HEAD")

    @property
    def path(self) -> Levels:
        """What it is about."""
        return (*self.namespace, self.name) if self.name else self.namespace


class RestReply(NamedTuple):
    """An answer that is a success; 304 is one."""

    status: int
    etag: str | None
    body: bytes


class SourceNames(NamedTuple):
    """A page of names, and the source's token for the next one."""

    names: list[str]
    token: str | None


class SourceTableInfo(NamedTuple):
    """A table as its source tells it; columns and indexes in Gravitino's words."""

    comment: str | None
    columns: list[Json]
    indexes: list[Json]
    properties: dict[str, str]
    layout: Json | None = None
    """How its files lie, where it has some: `distribution`, `sortOrders`, `partitioning`."""


class SourceTopicInfo(NamedTuple):
    """A topic as its source tells it; comments of topics are none of a source's."""

    properties: dict[str, str]


@runtime_checkable
class BaseCatalog(Protocol):
    """What every connector is: something that can be reached, and let go."""

    def check(self) -> None:
        """Return if the source answers, with what the catalog's properties say. Raises SourceFailed, BadRequest."""
        ...

    def close(self) -> None:
        """Let connections go; what is under way may still end."""
        ...


@runtime_checkable
class SupportsNamespaces(BaseCatalog, Protocol):
    """Schemas: of one level, or within one another."""

    def schema_names(self, parent: Levels) -> list[str]:
        """Return the names of all in a schema, of the outermost for no levels, sorted. Raises NotFound, Unsupported where they do not nest."""
        ...

    def schema_exists(self, schema: Levels) -> bool:
        """Say whether there is one."""
        ...

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return a schema. Raises NotFound."""
        ...

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Make a schema. Raises AlreadyExists, Unsupported for properties that the source cannot keep."""
        ...

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Set and remove properties. Raises NotFound, Unsupported where schemas have none."""
        ...

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty schema. Raises NotFound, NotEmpty."""
        ...


@runtime_checkable
class TableCatalog(BaseCatalog, Protocol):
    """Tables in schemas."""

    def table_names(self, schema: Levels) -> list[str]:
        """Return all names, sorted. Raises NotFound for the schema."""
        ...

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Say whether there is one."""
        ...

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Return a table. Raises NotFound of the schema or the table."""
        ...

    def table_create(self, schema: Levels, table: str, *, asked: GravitinoCreate) -> None:
        """Make a table, whole or not at all. Raises AlreadyExists, NotFound, BadRequest, Unsupported."""
        ...

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Carry out all changes or none. Raises NotFound, BadRequest, Unsupported."""
        ...

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Give a table another name, or another schema too. Raises NotFound, AlreadyExists, Unsupported."""
        ...

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table with its rows. Raises NotFound, BadRequest where something else needs it, Unsupported for a purge without files."""
        ...


@runtime_checkable
class ViewCatalog(BaseCatalog, Protocol):
    """Views in schemas."""

    def view_names(self, schema: Levels) -> list[str]:
        """Return all names, sorted. Raises NotFound for the schema."""
        ...

    def view_exists(self, schema: Levels, view: str) -> bool:
        """Say whether there is one."""
        ...

    def view_load(self, schema: Levels, view: str) -> GravitinoView:
        """Return a view. Raises NotFound of the schema or the view."""
        ...

    def view_create(self, schema: Levels, view: str, *, asked: IcebergViewCreate) -> None:
        """Make a view. Raises AlreadyExists, NotFound, BadRequest."""
        ...

    def view_alter(self, schema: Levels, view: str, *, updates: Sequence[object]) -> None:
        """Carry out updates in Iceberg's words, all or none. Raises NotFound, BadRequest."""
        ...

    def view_rename(self, schema: Levels, view: str, *, target: Levels) -> None:
        """Give a view another name, or another schema too. Raises NotFound, AlreadyExists."""
        ...

    def view_drop(self, schema: Levels, view: str) -> None:
        """Drop a view. Raises NotFound."""
        ...


@runtime_checkable
class RestCatalog(BaseCatalog, Protocol):
    """What speaks Iceberg REST: requests are passed on to it."""

    def endpoints(self) -> frozenset[str]:
        """Return what it serves, such as `GET /namespaces/{namespace}`."""
        ...

    def names(self, call: RestCall) -> SourceNames:
        """Return what a list names: the page that `call` asks for by `pageToken`, else all of it. Raises NotFound, SourceFailed."""
        ...

    def exchange(self, call: RestCall) -> RestReply:
        """Pass a request on and return its answer, if that is a success. Raises what the source's refusal means."""
        ...


@runtime_checkable
class TopicCatalog(BaseCatalog, Protocol):
    """Topics in schemas."""

    def topic_names(self, schema: str) -> list[str]:
        """Return all names, sorted. Raises NotFound for the schema."""
        ...

    def topic_exists(self, schema: str, topic: str) -> bool:
        """Say whether there is one."""
        ...

    def topic_load(self, schema: str, topic: str) -> SourceTopicInfo:
        """Return a topic. Raises NotFound of the schema or the topic."""
        ...

    def topic_create(self, schema: str, topic: str, *, properties: Mapping[str, str]) -> None:
        """Make a topic. Raises AlreadyExists, NotFound, BadRequest."""
        ...

    def topic_alter(self, schema: str, topic: str, *, sets: Mapping[str, str], removes: Sequence[str]) -> None:
        """Change its properties, all or none. Raises NotFound, BadRequest."""
        ...

    def topic_drop(self, schema: str, topic: str) -> None:
        """Drop a topic with what is in it. Raises NotFound, Unsupported where the source keeps its topics."""
        ...


def with_schemas(connector: BaseCatalog) -> SupportsNamespaces | None:
    """Return a connector as one with schemas, if it is."""
    return connector if isinstance(connector, SupportsNamespaces) else None


def with_views(connector: BaseCatalog) -> ViewCatalog | None:
    """Return a connector as one with views, if it is."""
    return connector if isinstance(connector, ViewCatalog) else None


def with_rest(connector: BaseCatalog) -> RestCatalog | None:
    """Return a connector as one that speaks Iceberg REST, if it is."""
    return connector if isinstance(connector, RestCatalog) else None


def with_tables(connector: BaseCatalog) -> TableCatalog | None:
    """Return a connector as one with tables, if it is."""
    return connector if isinstance(connector, TableCatalog) else None


def with_topics(connector: BaseCatalog) -> TopicCatalog | None:
    """Return a connector as one with topics, if it is."""
    return connector if isinstance(connector, TopicCatalog) else None
