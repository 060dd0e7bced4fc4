# SPDX-License-Identifier: Apache-2.0
"""Values of the server's responses about objects of the tree, the trash, names and transactions.

Must not know HTTP.
"""

from __future__ import annotations

import msgspec

from limnos.client.values.shared import AuditInfo, Json, Parts


class Version(msgspec.Struct, frozen=True, rename="camel"):
    """The Gravitino version that a server implements."""

    version: str
    compile_date: str | None = None
    git_commit: str | None = None


class Metalake(msgspec.Struct, frozen=True):
    """A metalake with its properties: the root of a tree of catalogs."""

    name: str
    comment: str | None = None
    properties: dict[str, str] = {}
    audit: AuditInfo = AuditInfo()


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """A catalog, with its type, provider and properties."""

    name: str
    type: str
    provider: str | None = None
    comment: str | None = None
    properties: dict[str, str] = {}
    audit: AuditInfo = AuditInfo()


class Namespace(msgspec.Struct, frozen=True):
    """A namespace with its properties; `path` starts with the catalog."""

    path: Parts
    properties: dict[str, str] = {}


class TrashItem(msgspec.Struct, frozen=True, kw_only=True):
    """A dropped object that can be restored. Times are ISO 8601 strings in UTC. `restrictions` are the names of
    restrictions and denials that stay with its path, for callers who may grant on it.
    """

    id: int
    kind: str
    path: Parts
    dropped_by: str
    dropped_at: str
    expires_at: str
    restrictions: tuple[str, ...] = ()


class UndropResult(msgspec.Struct, frozen=True):
    """A restored object and its current path; `contents` is the count of objects restored with it, `left` the count of
    its objects that are still in the trash.
    """

    kind: str
    path: Parts
    contents: int = 0
    left: int = 0


class NameCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a catalog's namespaces nest, the count of namespace names that contain the separator, and the first of
    these names.

    `free`: separators that no name contains, if some names contain the checked separator.
    """

    nested: bool
    separator: str
    conflicts: int
    names: tuple[str, ...]
    free: tuple[str, ...]


class NameChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a migration of namespace names, as counts.

    Of `total` names, `renamed` have another name, `nested` have been moved to their nested path, and `left` were
    skipped because other requests had changed them.
    """

    state: str
    separator: str
    replacement: str
    nests: bool
    planned_by: str
    planned_at: str
    total: int
    renamed: int
    nested: int
    left: int
    done: bool = False


class NameChange(msgspec.Struct, frozen=True):
    """The migration of one namespace: its new name and, with a `path`, its new position. `step` is its progress."""

    name: str
    new_name: str
    path: Parts | None
    step: str


class IcebergTableInfo(msgspec.Struct, frozen=True):
    """An Iceberg table: its metadata's location and content. `path` starts with the catalog."""

    path: Parts
    metadata_location: str | None
    metadata: Json
    config: dict[str, str] = {}


class SourceTable(msgspec.Struct, frozen=True):
    """A table of an external system, with Gravitino REST's fields. `path` starts with the catalog."""

    path: Parts
    table: Json


class LanceTable(msgspec.Struct, frozen=True, kw_only=True):
    """A Lance table: its location, and its version and schema if it has data. `path` starts with the catalog.

    `storage_options` are Lance's options for access to the location. If the table is `managed`, the server manages its
    versions.
    """

    path: Parts
    location: str
    properties: dict[str, str]
    version: int | None
    table_schema: Json
    stats: dict[str, int]
    storage_options: dict[str, str] = {}
    managed: bool = False


class LanceTableSize(msgspec.Struct, frozen=True):
    """The size of a Lance table's latest version: the number of its rows, and the bytes of their columns."""

    rows: int
    size_bytes: int


class LanceVersionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a Lance table's main branch: its number, the time of its commit in milliseconds, and its tags."""

    version: int
    at_ms: int | None
    tags: tuple[str, ...] = ()


class IcebergViewInfo(msgspec.Struct, frozen=True):
    """An Iceberg view: its metadata's location and content. `path` starts with the catalog."""

    path: Parts
    metadata_location: str
    metadata: Json


class MoveResult(msgspec.Struct, frozen=True):
    """The path of a moved namespace, table or view. It starts with the catalog."""

    kind: str
    path: Parts


class OperationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one operation of a transaction: the object's path (catalog first), a table's new metadata, or a
    run's id.
    """

    do: str
    path: Parts = ()
    uuid: str | None = None
    metadata_location: str | None = None
    run: str | None = None
    version: int | None = None
    """The committed version of a Lance table."""


class TransactionReceipt(msgspec.Struct, frozen=True):
    """The result of a transaction, and the catalog's revision after it."""

    revision: int
    operations: tuple[OperationResult, ...]


class JointTransactionReceipt(msgspec.Struct, frozen=True):
    """The result of a transaction over several catalogs, and the revision of each catalog after it, by its name."""

    revisions: dict[str, int]
    operations: tuple[OperationResult, ...]


class TableFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs from the table's metadata, with advice (`told`)."""

    kind: str
    """The kind: `metadata`, `manifest list`, `manifest`, `file`, `statistics`."""
    problem: str
    """The problem: `missing`, `size` (differs), `unreadable`, `outside` (not checked), `refused` (metadata that some
    readers refuse).
    """
    file: str
    snapshot_id: int | None = None
    size_told: int | None = None
    size_found: int | None = None
    told: str = ""


class TableCheckResult(msgspec.Struct, frozen=True):
    """One response of a check of a table's files: the count of checked files, and the findings. `after` is the cursor
    of the next request, None at the end.
    """

    files: int
    findings: tuple[TableFinding, ...]
    after: str | None = None


class PreviewColumn(msgspec.Struct, frozen=True):
    """A column of a preview; `type` is the type in the table's schema."""

    name: str
    type: object = ""
    masked: bool = False


class TablePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The first rows of a table. `complete` is true if these are all rows that the caller may see."""

    columns: tuple[PreviewColumn, ...]
    rows: tuple[tuple[object, ...], ...]
    snapshot_id: int | None = None
    complete: bool = False
    restricted: bool = False
    columns_left_out: int = 0


class FilesetEntry(msgspec.Struct, frozen=True):
    """An entry of a fileset's directory. Directories have no size."""

    name: str
    directory: bool
    size: int = 0
    changed_at: str | None = None


class FilesetPage(msgspec.Struct, frozen=True):
    """A page of the entries of a directory; `after` is the cursor of the next page, None on the last page."""

    entries: tuple[FilesetEntry, ...]
    after: str | None = None


class FilePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a file: of `kind` `rows`, `text` or `binary`. `complete` is true if this is the whole file."""

    kind: str
    size: int
    complete: bool
    columns: tuple[PreviewColumn, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    columns_left_out: int = 0
    text: str = ""
