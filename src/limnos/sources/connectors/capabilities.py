"""What a connector can do, as protocols (seed 2, "catalog interfaces"), and the values that go through them.

May import `formats` for the words of columns and changes, and `model`. A connector has what it can do and nothing else: who asks looks at its
type. Calls block, have deadlines of their own, and know nothing of names of the tree, of callers and of their rights. Errors are those of
`model.errors`; a source that does not answer is SourceFailed. Nothing is cached: each answer is what the source says now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limnos.formats.gravitino.tables import Asked, TableChange
    from limnos.formats.iceberg.json_types import Json


class SchemaTold(NamedTuple):
    """A schema as its source tells it."""

    comment: str | None
    properties: dict[str, str]


class TableTold(NamedTuple):
    """A table as its source tells it; columns and indexes in Gravitino's words."""

    comment: str | None
    columns: list[Json]
    indexes: list[Json]
    properties: dict[str, str]


class TopicTold(NamedTuple):
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
    """Schemas of one level."""

    def schema_names(self) -> list[str]:
        """Return all names, sorted."""
        ...

    def schema_exists(self, schema: str) -> bool:
        """Say whether there is one."""
        ...

    def schema_load(self, schema: str) -> SchemaTold:
        """Return a schema. Raises NotFound."""
        ...

    def schema_create(self, schema: str, *, comment: str | None, properties: dict[str, str]) -> None:
        """Make a schema. Raises AlreadyExists, Unsupported for properties that the source cannot keep."""
        ...

    def schema_drop(self, schema: str) -> None:
        """Drop an empty schema. Raises NotFound, NotEmpty."""
        ...


@runtime_checkable
class TableCatalog(BaseCatalog, Protocol):
    """Tables in schemas."""

    def table_names(self, schema: str) -> list[str]:
        """Return all names, sorted. Raises NotFound for the schema."""
        ...

    def table_exists(self, schema: str, table: str) -> bool:
        """Say whether there is one."""
        ...

    def table_load(self, schema: str, table: str) -> TableTold:
        """Return a table. Raises NotFound of the schema or the table."""
        ...

    def table_create(self, schema: str, table: str, *, asked: Asked) -> None:
        """Make a table, whole or not at all. Raises AlreadyExists, NotFound, BadRequest, Unsupported."""
        ...

    def table_alter(self, schema: str, table: str, *, changes: Sequence[TableChange]) -> None:
        """Carry out all changes or none. Raises NotFound, BadRequest, Unsupported."""
        ...

    def table_rename(self, schema: str, table: str, *, name: str) -> None:
        """Give a table another name in its schema. Raises NotFound, AlreadyExists."""
        ...

    def table_drop(self, schema: str, table: str) -> None:
        """Drop a table with its rows. Raises NotFound, BadRequest where something else needs it."""
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

    def topic_load(self, schema: str, topic: str) -> TopicTold:
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


def with_tables(connector: BaseCatalog) -> TableCatalog | None:
    """Return a connector as one with tables, if it is."""
    return connector if isinstance(connector, TableCatalog) else None


def with_topics(connector: BaseCatalog) -> TopicCatalog | None:
    """Return a connector as one with topics, if it is."""
    return connector if isinstance(connector, TopicCatalog) else None
