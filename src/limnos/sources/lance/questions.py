"""What a process that works on Lance tables is asked, and what it answers, as JSON on the wire.

May import msgspec and `model`. Must not import Lance's library: a serving process imports this. A question's name on the wire is that
of its type. Versions, tags and branches that a question names are of the table as it is read; who writes names a branch at most.
"""

from __future__ import annotations

from typing import Final

import msgspec

MODULE: Final = "limnos.sources.lance.worker"
"""The module that such a process runs."""
START: Final = b"Start"
"""The first question to each process: it answers when it has loaded what it works with."""
Vector = list[float]


class ManagedVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version of a table whose versions the server keeps, as Lance's library has it."""

    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None


class LanceQuestion(msgspec.Struct, frozen=True):
    """About the table at a location: its latest version, or one by number, of a branch, or by tag.

    `kept`: whoever asks keeps the table's versions, and these are the newest, by branch; commits are asked back.
    """

    location: str
    options: dict[str, str]
    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    kept: dict[str, ManagedVersion] | None = None


class Describe(LanceQuestion, frozen=True):
    """Describe the table."""


class LanceDescription(msgspec.Struct, frozen=True):
    """A table at one of its versions; `fields` and `logical_fields` are its schema with Arrow's and with Lance's names of types."""

    version: int
    fields: msgspec.Raw
    logical_fields: msgspec.Raw
    schema_metadata: dict[str, str]
    metadata: dict[str, str]
    stats: dict[str, int]


class Contents(LanceQuestion, frozen=True):
    """List what lies in a directory of tables; its place is the location."""


class DirectoryNamespaceEntry(msgspec.Struct, frozen=True):
    """A namespace of a directory."""

    path: tuple[str, ...]
    properties: dict[str, str]


class DirectoryTableEntry(msgspec.Struct, frozen=True):
    """A table of a directory; `declared` when its name is taken, and nothing was written."""

    path: tuple[str, ...]
    location: str
    properties: dict[str, str]
    declared: bool


class DirectoryContents(msgspec.Struct, frozen=True):
    """What lies in a directory."""

    namespaces: list[DirectoryNamespaceEntry]
    tables: list[DirectoryTableEntry]


class Count(LanceQuestion, frozen=True, kw_only=True):
    """Count the rows for which a predicate holds; all without one. The answer is a number."""

    predicate: str | None = None


class Query(LanceQuestion, frozen=True, kw_only=True):
    """Find rows: the nearest to vectors, those with words, or all, which a filter leaves; the answer is an Arrow file.

    `text` is a full-text query as Lance has it, its words or its structure. With both vectors and words the two lists
    are merged by rank.
    """

    limit: int | None = None
    offset: int = 0
    columns: list[str] | None = None
    aliases: dict[str, str] | None = None
    filter: str | None = None
    prefilter: bool = True
    vectors: list[Vector] = []
    vector_column: str | None = None
    text: dict[str, object] | None = None
    text_columns: list[str] = []
    nearest: dict[str, object] = {}
    """What else Lance is told of a search for vectors, in its words."""
    with_row_id: bool = False
    fast_search: bool = False


class Explain(LanceQuestion, frozen=True, kw_only=True):
    """Tell how a query would be done; with `runs` do it, and tell how it went. The answer is text."""

    query: Query
    verbose: bool = False
    runs: bool = False


class Write(LanceQuestion, frozen=True, kw_only=True):
    """Write the rows that follow: `create` a table that holds none, `append` to it or `overwrite` it, `any`: as append, or create."""

    mode: str
    batch_bytes_max: int


class References(LanceQuestion, frozen=True):
    """List the tags and branches of the table."""


class TagReference(msgspec.Struct, frozen=True):
    """What a tag means: a version, and its branch unless that is the main one."""

    version: int
    branch: str | None = None
    manifest_size: int | None = None


class BranchReference(msgspec.Struct, frozen=True):
    """A branch: the version it began at, of the main branch unless it says which, and when, in seconds."""

    parent_version: int
    parent_branch: str | None = None
    created_at: int | None = None
    manifest_size: int | None = None
    metadata: dict[str, str] = {}


class TableReferences(msgspec.Struct, frozen=True):
    """The tags and branches of a table, by name."""

    tags: dict[str, TagReference]
    branches: dict[str, BranchReference]


class TagPut(LanceQuestion, frozen=True, kw_only=True):
    """Make a tag of a version, the newest for None; with `replaces` have one that is there mean that. The answer is nothing."""

    name: str
    at_version: int | None
    at_branch: str | None = None
    replaces: bool = False


class TagDrop(LanceQuestion, frozen=True, kw_only=True):
    """Delete a tag. The answer is nothing."""

    name: str


class BranchMake(LanceQuestion, frozen=True, kw_only=True):
    """Make a branch at a version, the newest for None. The answer is nothing."""

    name: str
    from_version: int | None
    from_branch: str | None = None


class BranchDrop(LanceQuestion, frozen=True, kw_only=True):
    """Delete a branch with its files. The answer is nothing."""

    name: str


class LanceWriteResult(msgspec.Struct, frozen=True):
    """What a change left: the table's version, its transaction, and how many rows it was about."""

    version: int
    transaction_id: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class Merge(LanceQuestion, frozen=True, kw_only=True):
    """Merge the rows that follow into the table by key columns: rows of a key that is there, that is not, and those that no row came for."""

    on: list[str]
    batch_bytes_max: int
    updates: bool = False
    updates_if: str | None = None
    inserts: bool = False
    deletes: bool = False
    deletes_if: str | None = None
    use_index: bool = True
    timeout_s: float | None = None


class Update(LanceQuestion, frozen=True, kw_only=True):
    """Set columns to what expressions give, in the rows for which a predicate holds."""

    updates: dict[str, str]
    predicate: str | None = None


class Delete(LanceQuestion, frozen=True, kw_only=True):
    """Delete the rows for which a predicate holds."""

    predicate: str


class Restore(LanceQuestion, frozen=True):
    """Make the version that is named the latest again."""


class SchemaMetadata(LanceQuestion, frozen=True, kw_only=True):
    """Give the schema this metadata, in place of what it has. The answer is what it has then."""

    values: dict[str, str]


class FieldChange(msgspec.Struct, frozen=True):
    """New metadata of one field: None takes a key away, `replace` all that are not named."""

    path: str
    metadata: dict[str, str | None]
    replace: bool = False


class FieldMetadata(LanceQuestion, frozen=True, kw_only=True):
    """Change the metadata of fields."""

    updates: list[FieldChange]


class FieldMetadataResult(msgspec.Struct, frozen=True):
    """The metadata that fields have, and the version since which they do."""

    version: int
    fields: dict[str, dict[str, str]]


class AddColumns(LanceQuestion, frozen=True, kw_only=True):
    """Add columns that have what expressions give."""

    columns: dict[str, str]


class ColumnChange(msgspec.Struct, frozen=True):
    """A column's new name, whether it may be empty, its new type as JSON has it."""

    path: str
    rename: str | None = None
    nullable: bool | None = None
    data_type: dict[str, object] | str | None = None


class AlterColumns(LanceQuestion, frozen=True, kw_only=True):
    """Change columns."""

    alterations: list[ColumnChange]


class DropColumns(LanceQuestion, frozen=True, kw_only=True):
    """Take columns away."""

    columns: list[str]


class CreateIndex(LanceQuestion, frozen=True, kw_only=True):
    """Build an index on a column; `details` are what its type is told, in Lance's words."""

    column: str
    index_type: str
    name: str | None = None
    replace: bool = False
    details: dict[str, object] = {}


class DropIndex(LanceQuestion, frozen=True, kw_only=True):
    """Take an index away."""

    name: str


class ListIndices(LanceQuestion, frozen=True):
    """Tell of all indices."""


class LanceIndex(msgspec.Struct, frozen=True):
    """An index, as it is told."""

    index_name: str
    index_uuid: str
    columns: list[str]
    status: str
    index_type: str
    type_url: str
    num_indexed_rows: int
    num_unindexed_rows: int
    size_bytes: int
    num_segments: int
    created_at: str | None
    index_version: int
    index_details: str


class IndexStats(LanceQuestion, frozen=True, kw_only=True):
    """Tell how far an index covers the rows."""

    name: str


class IndexCoverage(msgspec.Struct, frozen=True):
    """How far an index covers the rows."""

    index_type: str
    num_indexed_rows: int
    num_unindexed_rows: int
    num_indices: int
    distance_type: str | None = None


class Stats(LanceQuestion, frozen=True):
    """Tell how large the table is."""


class TableSize(msgspec.Struct, frozen=True):
    """How large a table is; `fragments` are the rows of each of its fragments, summed up."""

    total_bytes: int
    num_rows: int
    num_indices: int
    num_fragments: int
    num_small_fragments: int
    lengths: dict[str, int]


class Transaction(LanceQuestion, frozen=True, kw_only=True):
    """Tell of a transaction by its uuid; NotFound where no version of the table that is kept was made by it."""

    uuid: str


class TransactionSummary(msgspec.Struct, frozen=True):
    """What a transaction did."""

    operation: str
    uuid: str
    version: int
    read_version: int


def expressions_of(question: LanceQuestion) -> list[str]:
    """Return the expressions of SQL in a question."""
    match question:
        case Count() | Delete():
            found: list[str | None] = [question.predicate]
        case Query():
            found = [question.filter, *(question.aliases or {}).values()]
        case Explain():
            return expressions_of(question.query)
        case Update():
            found = [question.predicate, *question.updates.values()]
        case Merge():
            found = [question.updates_if, question.deletes_if]
        case AddColumns():
            found = [*question.columns.values()]
        case _:
            found = []
    return [each for each in found if each]
