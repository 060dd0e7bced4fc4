# SPDX-License-Identifier: Apache-2.0
"""The part of Iceberg table metadata that maintenance reads, decoded into typed values.

Must not know rules of maintenance. A document comes from any client, so if a field has a wrong type, the document
counts as unreadable, and its table is not maintained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from limnos.model.errors import InvalidTable

MAIN: Final = "main"
BRANCH: Final = "branch"


class Snapshot(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    """A snapshot of a table, with the fields that maintenance needs."""

    snapshot_id: int
    timestamp_ms: int = 0
    parent_snapshot_id: int | None = None
    manifest_list: str | None = None
    schema_id: int | None = None
    manifests: list[str] | None = None
    """Manifests without a manifest list (format version 1)."""
    summary: dict[str, str] | None = None

    def count(self, key: str) -> int | None:
        """Return an integer in the snapshot's summary, such as `total-data-files`; None if it is missing or not an
        integer.
        """
        text = (self.summary or {}).get(key, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


class SnapshotRef(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    """A branch or tag: its snapshot, and its retention settings."""

    snapshot_id: int
    type: str = BRANCH
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


class SnapshotLogEntry(msgspec.Struct, rename="kebab", frozen=True):
    """An entry of the snapshot log: a snapshot and the time at which it became the current snapshot."""

    snapshot_id: int
    timestamp_ms: int


class MetadataLogEntry(msgspec.Struct, rename="kebab", frozen=True):
    """An entry of the metadata log: a previous metadata file, and its time."""

    metadata_file: str
    timestamp_ms: int = 0


class StatisticsFile(msgspec.Struct, rename="kebab", frozen=True):
    """A statistics file of a snapshot."""

    statistics_path: str
    snapshot_id: int = -1


class SchemaField(msgspec.Struct, rename="kebab", frozen=True):
    """A column: its type is a name, or an object for a nested type."""

    name: str
    type: str | dict[str, object]


class TableSchema(msgspec.Struct, rename="kebab", frozen=True):
    """A schema of a table as the metadata lists it: its id and fields."""

    fields: list[SchemaField]
    schema_id: int = 0


class TableMetadata(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    """The parts of a table's metadata that maintenance reads."""

    location: str
    table_uuid: str | None = None
    format_version: int = 1
    current_snapshot_id: int | None = None
    current_schema_id: int | None = None
    snapshots: list[Snapshot] | None = None
    refs: dict[str, SnapshotRef] | None = None
    snapshot_log: list[SnapshotLogEntry] | None = None
    metadata_log: list[MetadataLogEntry] | None = None
    statistics: list[StatisticsFile] | None = None
    partition_statistics: list[StatisticsFile] | None = None
    properties: dict[str, str] | None = None
    schemas: list[TableSchema] | None = None

    @property
    def current(self) -> Snapshot | None:
        """The current snapshot; None for an empty table."""
        return next((each for each in self.snapshots or () if each.snapshot_id == self.current_snapshot_id), None)

    @property
    def references(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name. A document without references has only `main`, at the current snapshot."""
        if self.refs is not None and (MAIN in self.refs or self.current is None):
            return self.refs
        main = {} if self.current is None else {MAIN: SnapshotRef(snapshot_id=self.current.snapshot_id)}
        return {**main, **(self.refs or {})}

    def text(self, name: str) -> str | None:
        """Return a property of the table; None if it is not set."""
        return (self.properties or {}).get(name)

    def number(self, name: str) -> int | None:
        """Return a property as a non-negative integer; None if it is not set or has another value."""
        digits = (self.text(name) or "").strip()
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None

    def is_off(self, name: str) -> bool:
        """Return whether a property is set to `false`."""
        return (self.text(name) or "").strip().lower() == "false"

    def ancestors(self, snapshot_id: int) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, newest first, while the table still has them."""
        snapshots_by_id = {each.snapshot_id: each for each in self.snapshots or ()}
        at = snapshots_by_id.pop(snapshot_id, None)
        while at is not None:
            yield at
            at = None if at.parent_snapshot_id is None else snapshots_by_id.pop(at.parent_snapshot_id, None)


def metadata_of(body: bytes) -> TableMetadata:
    """Decode a table's metadata. Raises InvalidTable for malformed metadata."""
    try:
        return msgspec.json.decode(body, type=TableMetadata)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidTable(f"Its metadata cannot be read for maintenance: {error}") from error
