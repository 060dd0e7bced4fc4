"""Requests to worker processes for Lance tables, and their results, as JSON on the wire.

May import msgspec and `model`. Must not import Lance's library, because server processes import this. A request's name
on the wire is its type's name. A reading request may name a version, tag or branch of the table; a writing one may name
a branch.
"""

from __future__ import annotations

from typing import Final

import msgspec

MODULE: Final = "limnos.sources.lance.worker"
"""The main module of a worker process."""
START: Final = b"Start"
"""The first request to each process, answered when its libraries are loaded."""
Vector = list[float]


class ManagedVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A managed version of a table, in the form of Lance's library."""

    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None


class LanceQuestion(msgspec.Struct, frozen=True):
    """A request about the table at a location: its latest version, or one by number, branch or tag.

    `kept` is set if the server manages the table's versions: the newest of each branch (`""` is main). Commits then
    call back.
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
    """A table at one version. `fields` is its schema with Arrow's names of types, `logical_fields` with Lance's."""

    version: int
    fields: msgspec.Raw
    logical_fields: msgspec.Raw
    schema_metadata: dict[str, str]
    metadata: dict[str, str]
    stats: dict[str, int]


class Contents(LanceQuestion, frozen=True):
    """List the namespaces and tables of a directory, whose path is the location."""


class DirectoryNamespaceEntry(msgspec.Struct, frozen=True):
    """A namespace of a directory: its path and its properties."""

    path: tuple[str, ...]
    properties: dict[str, str]


class DirectoryTableEntry(msgspec.Struct, frozen=True):
    """A table of a directory; `declared` if its name is reserved and it has no data."""

    path: tuple[str, ...]
    location: str
    properties: dict[str, str]
    declared: bool


class DirectoryContents(msgspec.Struct, frozen=True):
    """The namespaces and tables of a directory."""

    namespaces: list[DirectoryNamespaceEntry]
    tables: list[DirectoryTableEntry]


class Count(LanceQuestion, frozen=True, kw_only=True):
    """Count the rows for which a predicate is true, or all rows. The result is a number."""

    predicate: str | None = None


class Query(LanceQuestion, frozen=True, kw_only=True):
    """Find the rows nearest to vectors, rows that contain words, or all rows, after a filter.

    The result is an Arrow file.

    `text` is a full-text query of the protocol: words or a structure. With both vectors and words the two results are
    merged by rank.
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
    """Further options of Lance's vector search, under Lance's names."""
    with_row_id: bool = False
    fast_search: bool = False


class Head(LanceQuestion, frozen=True, kw_only=True):
    """Read the first rows of some columns, or of the first `columns_max`, as values for JSON."""

    columns: list[str]
    rows_max: int
    columns_max: int
    bytes_max: int


class LanceHead(msgspec.Struct, frozen=True):
    """The first rows of a table at a version. Columns have a name and a type; `is_complete` if these are all rows."""

    columns: list[tuple[str, str]]
    rows: list[list[object]]
    version: int
    is_complete: bool
    columns_left_out: int


class Explain(LanceQuestion, frozen=True, kw_only=True):
    """Return the plan of a query; with `runs` execute it and return the measured plan. The result is text."""

    query: Query
    verbose: bool = False
    runs: bool = False


class Write(LanceQuestion, frozen=True, kw_only=True):
    """Write the rows in the body. `mode` is `create`, `append`, `overwrite`, or `any`, which appends or creates."""

    mode: str
    batch_bytes_max: int


class References(LanceQuestion, frozen=True):
    """List the tags and branches of the table."""


class TagReference(msgspec.Struct, frozen=True):
    """The target of a tag: a version, and its branch unless that is main."""

    version: int
    branch: str | None = None
    manifest_size: int | None = None


class BranchReference(msgspec.Struct, frozen=True):
    """A branch: its starting version, that version's branch unless it is main, and its creation time in seconds."""

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
    """Create a tag for a version (None is the newest); with `replaces` move an existing tag. The result is empty."""

    name: str
    at_version: int | None
    at_branch: str | None = None
    replaces: bool = False


class TagDrop(LanceQuestion, frozen=True, kw_only=True):
    """Delete a tag. The result is empty."""

    name: str


class BranchMake(LanceQuestion, frozen=True, kw_only=True):
    """Create a branch at a version (None is the newest). The result is empty."""

    name: str
    from_version: int | None
    from_branch: str | None = None


class BranchDrop(LanceQuestion, frozen=True, kw_only=True):
    """Delete a branch with its files. The result is empty."""

    name: str


class LanceWriteResult(msgspec.Struct, frozen=True):
    """The result of a change: the table's new version, its transaction, and the numbers of affected rows."""

    version: int
    transaction_id: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class Merge(LanceQuestion, frozen=True, kw_only=True):
    """Merge the rows in the body into the table by key columns.

    `updates` applies to rows whose key exists, `inserts` to rows whose key is new, `deletes` to rows of the table that
    no new row matches.
    """

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
    """Set columns to expressions in the rows for which a predicate is true."""

    updates: dict[str, str]
    predicate: str | None = None


class Delete(LanceQuestion, frozen=True, kw_only=True):
    """Delete the rows for which a predicate is true."""

    predicate: str


class Restore(LanceQuestion, frozen=True):
    """Make the requested version the latest again."""


class SchemaMetadata(LanceQuestion, frozen=True, kw_only=True):
    """Replace the schema's metadata. The result is the new metadata."""

    values: dict[str, str]


class FieldChange(msgspec.Struct, frozen=True):
    """New metadata of one field: None removes a key, and `replace` removes all keys that are not named."""

    path: str
    metadata: dict[str, str | None]
    replace: bool = False


class FieldMetadata(LanceQuestion, frozen=True, kw_only=True):
    """Change the metadata of fields."""

    updates: list[FieldChange]


class FieldMetadataResult(msgspec.Struct, frozen=True):
    """The metadata of the changed fields, and the resulting version."""

    version: int
    fields: dict[str, dict[str, str]]


class AddColumns(LanceQuestion, frozen=True, kw_only=True):
    """Add columns computed by expressions."""

    columns: dict[str, str]


class ColumnChange(msgspec.Struct, frozen=True):
    """A change of a column: its new name, nullability, or type in the protocol's JSON."""

    path: str
    rename: str | None = None
    nullable: bool | None = None
    data_type: dict[str, object] | str | None = None


class AlterColumns(LanceQuestion, frozen=True, kw_only=True):
    """Rename columns, or change their types or nullability."""

    alterations: list[ColumnChange]


class DropColumns(LanceQuestion, frozen=True, kw_only=True):
    """Drop columns by name, as one commit."""

    columns: list[str]


class CreateIndex(LanceQuestion, frozen=True, kw_only=True):
    """Create an index on a column; `details` are options of its type, under Lance's names."""

    column: str
    index_type: str
    name: str | None = None
    replace: bool = False
    details: dict[str, object] = {}


class DropIndex(LanceQuestion, frozen=True, kw_only=True):
    """Drop an index by name, as one commit."""

    name: str


class ListIndices(LanceQuestion, frozen=True):
    """List the indices of a table at one version."""


class LanceIndex(msgspec.Struct, frozen=True):
    """An index, with the fields of the protocol."""

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
    """Return the numbers of rows that an index covers and does not cover."""

    name: str


class IndexCoverage(msgspec.Struct, frozen=True):
    """The numbers of rows that an index covers and does not cover."""

    index_type: str
    num_indexed_rows: int
    num_unindexed_rows: int
    num_indices: int
    distance_type: str | None = None


class Stats(LanceQuestion, frozen=True):
    """Return the table's size in bytes, and its numbers of rows, indices and fragments."""


class TableSize(msgspec.Struct, frozen=True):
    """The size of a table; `lengths` are statistics of the rows per fragment (`min`, `mean`, `p50` and so on)."""

    total_bytes: int
    num_rows: int
    num_indices: int
    num_fragments: int
    num_small_fragments: int
    lengths: dict[str, int]


class Transaction(LanceQuestion, frozen=True, kw_only=True):
    """Describe a transaction by its uuid. The error is NotFound if no existing version was created by it."""

    uuid: str


class TransactionSummary(msgspec.Struct, frozen=True):
    """A transaction: its operation, the version that it created and the one that it read."""

    operation: str
    uuid: str
    version: int
    read_version: int


def expressions_of(question: LanceQuestion) -> list[str]:
    """Return the SQL expressions in a request."""
    match question:
        case Count() | Delete():
            results: list[str | None] = [question.predicate]
        case Query():
            results = [question.filter, *(question.aliases or {}).values()]
        case Explain():
            return expressions_of(question.query)
        case Update():
            results = [question.predicate, *question.updates.values()]
        case Merge():
            results = [question.updates_if, question.deletes_if]
        case AddColumns():
            results = [*question.columns.values()]
        case _:
            results = []
    return [each for each in results if each]
