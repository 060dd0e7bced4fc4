# SPDX-License-Identifier: Apache-2.0
"""Requests to worker processes for Lance tables, and their results, as JSON on the wire.

Must not import Lance's library, because server processes import this. A request's name on the wire is its type's name.
A reading request may name a version, tag or branch of the table; a writing request may name a branch.
"""

from __future__ import annotations

from typing import Final

import msgspec

MODULE: Final = "limnos.rooms.lance.sources.worker"
"""The main module of a worker process."""
START: Final = b"Start"
"""The first request to each process, answered when its libraries are loaded."""
Vector = list[float]


class ManagedVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A managed version of a table: its number, its manifest's path and size, as Lance's library needs them."""

    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None


class LanceQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A request about the table at a location: the latest version, or a version by number, branch or tag.

    `kept` has the newest version of each branch (`""` is main) if the server manages the table's versions; commits then
    call back.
    """

    location: str
    options: dict[str, str]
    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    kept: dict[str, ManagedVersion] | None = None


class Describe(LanceQuestion, frozen=True, kw_only=True):
    """A request for a table's version, schema and metadata; the result is a `LanceDescription`."""


class Contents(LanceQuestion, frozen=True, kw_only=True):
    """A request for the namespaces and tables of the directory at the location; the result is `DirectoryContents`."""


class Count(LanceQuestion, frozen=True, kw_only=True):
    """A request for the count of rows for which a predicate is true, or of all rows. The result is an integer."""

    predicate: str | None = None


class ColumnOrder(msgspec.Struct, frozen=True):
    """A column by which rows are sorted; nulls are last by default."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


class Query(LanceQuestion, frozen=True, kw_only=True):
    """A vector search, a full-text search, both, or a scan, each with an optional filter.

    The result is an Arrow file.

    `text` is a full-text query of the protocol: search words or a structured query. With both searches, the results are
    merged by rank (reciprocal rank fusion).
    """

    limit: int | None = None
    offset: int = 0
    columns: list[str] | None = None
    aliases: dict[str, str] | None = None
    filter: str | None = None
    prefilter: bool = True
    order_by: list[ColumnOrder] = []
    vectors: list[Vector] = []
    vector_column: str | None = None
    text: dict[str, object] | None = None
    text_columns: list[str] = []
    nearest: dict[str, object] = {}
    """Further options of Lance's vector search, under Lance's names."""
    with_row_id: bool = False
    fast_search: bool = False


class Head(LanceQuestion, frozen=True, kw_only=True):
    """A request for the first rows as JSON values, of the named columns or of the first `columns_max`; the result is a
    `LanceHead`.
    """

    columns: list[str]
    rows_max: int
    columns_max: int
    bytes_max: int


class LanceHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first rows of a table at a version. Columns have a name and a type; `is_complete` if these are all rows."""

    columns: list[tuple[str, str]]
    rows: list[list[object]]
    version: int
    is_complete: bool
    columns_left_out: int


class Explain(LanceQuestion, frozen=True, kw_only=True):
    """A request for the plan of a query, as text; `runs` also executes the query, so that the plan has metrics."""

    query: Query
    verbose: bool = False
    runs: bool = False


class Write(LanceQuestion, frozen=True, kw_only=True):
    """A request to write the rows in the body. `mode` is `create`, `append`, `overwrite`, or `any`, which appends or
    creates.
    """

    mode: str
    batch_bytes_max: int


class References(LanceQuestion, frozen=True, kw_only=True):
    """A request for the tags and branches of the table; the result is `TableReferences`."""


class TagReference(msgspec.Struct, frozen=True):
    """The target of a tag: a version, and its branch unless that is main."""

    version: int
    branch: str | None = None
    manifest_size: int | None = None


class BranchReference(msgspec.Struct, frozen=True, kw_only=True):
    """A branch: its starting version, that version's branch unless it is main, and its creation time in seconds."""

    parent_version: int
    parent_branch: str | None = None
    created_at: int | None = None
    manifest_size: int | None = None
    metadata: dict[str, str] = {}


class TableReferences(msgspec.Struct, frozen=True):
    """The tags and branches of a table, by name, the result of `References`."""

    tags: dict[str, TagReference]
    branches: dict[str, BranchReference]


class TagPut(LanceQuestion, frozen=True, kw_only=True):
    """A request to create a tag for a version (None: the newest), or with `replaces` to move an existing tag. The
    result is empty.
    """

    name: str
    at_version: int | None
    at_branch: str | None = None
    replaces: bool = False


class TagDrop(LanceQuestion, frozen=True, kw_only=True):
    """A request to delete a tag; the version that it names stays. The result is empty."""

    name: str


class BranchMake(LanceQuestion, frozen=True, kw_only=True):
    """A request to create a branch at a version (None: the newest). The result is empty."""

    name: str
    from_version: int | None
    from_branch: str | None = None


class BranchDrop(LanceQuestion, frozen=True, kw_only=True):
    """A request to delete a branch with its files. The result is empty."""

    name: str


class LanceWriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a change: the table's new version, its transaction, and the counts of affected rows."""

    version: int
    transaction_id: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class Merge(LanceQuestion, frozen=True, kw_only=True):
    """A request to merge the rows in the body into the table by key columns.

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
    """A request to set columns to SQL expressions in the rows for which a predicate is true."""

    updates: dict[str, str]
    predicate: str | None = None


class Delete(LanceQuestion, frozen=True, kw_only=True):
    """A request to delete the rows for which a predicate is true."""

    predicate: str


class Restore(LanceQuestion, frozen=True, kw_only=True):
    """A request to restore an older version: a new version with the same content becomes the latest."""


class SchemaMetadata(LanceQuestion, frozen=True, kw_only=True):
    """A request to replace the schema's key-value metadata. The result is the new metadata."""

    values: dict[str, str]


class FieldChange(msgspec.Struct, frozen=True):
    """New metadata of one field: None removes a key, and `replace` removes all keys that are not named."""

    path: str
    metadata: dict[str, str | None]
    replace: bool = False


class FieldMetadata(LanceQuestion, frozen=True, kw_only=True):
    """A request to change the metadata of fields in one commit; the result is a `FieldMetadataResult`."""

    updates: list[FieldChange]


class FieldMetadataResult(msgspec.Struct, frozen=True):
    """The metadata of the changed fields, and the resulting version."""

    version: int
    fields: dict[str, dict[str, str]]


class AddColumns(LanceQuestion, frozen=True, kw_only=True):
    """A request to add columns whose values are computed by SQL expressions, as one commit."""

    columns: dict[str, str]


class AddFields(LanceQuestion, frozen=True, kw_only=True):
    """A request to add the columns of the schema in the body, without values in the stored rows, as one commit."""

    batch_bytes_max: int


class ColumnChange(msgspec.Struct, frozen=True):
    """A change of a column: its new name, nullability, or type in the protocol's JSON."""

    path: str
    rename: str | None = None
    nullable: bool | None = None
    data_type: dict[str, object] | str | None = None


class AlterColumns(LanceQuestion, frozen=True, kw_only=True):
    """A request to rename columns, or to change their types or nullability, as one commit."""

    alterations: list[ColumnChange]


class DropColumns(LanceQuestion, frozen=True, kw_only=True):
    """A request to drop columns by name, as one commit."""

    columns: list[str]


class CreateIndex(LanceQuestion, frozen=True, kw_only=True):
    """A request to create an index on a column; `details` are options of the index type, under Lance's names."""

    column: str
    index_type: str
    name: str | None = None
    replace: bool = False
    details: dict[str, object] = {}


class DropIndex(LanceQuestion, frozen=True, kw_only=True):
    """A request to drop an index by name, as one commit."""

    name: str


class ListIndices(LanceQuestion, frozen=True, kw_only=True):
    """A request for the indices of a table at one version; the result is a list of `LanceIndex`."""


class LanceIndex(msgspec.Struct, frozen=True, kw_only=True):
    """An index in a list, with the fields of the Lance REST protocol: name, UUID, columns and status."""

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
    """A request for the counts of indexed and unindexed rows of an index; the result is an `IndexCoverage`."""

    name: str


class IndexCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of indexed and unindexed rows of an index, and its type."""

    index_type: str
    num_indexed_rows: int
    num_unindexed_rows: int
    num_indices: int
    distance_type: str | None = None


class Stats(LanceQuestion, frozen=True, kw_only=True):
    """A request for the table's size in bytes, and its counts of rows, indices and fragments; the result is a
    `TableSize`.
    """


class TableSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a table. `lengths` has statistics of the row counts per fragment (`min`, `mean`, `p50` and so on)."""

    total_bytes: int
    num_rows: int
    num_indices: int
    num_fragments: int
    num_small_fragments: int
    lengths: dict[str, int]


class Transaction(LanceQuestion, frozen=True, kw_only=True):
    """A request for a transaction by its UUID. The error is NotFound if no existing version was created by it."""

    uuid: str


class TransactionSummary(msgspec.Struct, frozen=True):
    """A transaction: its operation, the version that it created, and the version that it read."""

    operation: str
    uuid: str
    version: int
    read_version: int


def expressions_of(question: LanceQuestion) -> list[str]:
    """Return the SQL expressions in a request, which are checked before the library parses them."""
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
