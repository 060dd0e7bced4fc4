# SPDX-License-Identifier: Apache-2.0
"""Columns of the current schema of a table or view, with ids and types; and facts of its metadata beside the schema.

Must not know commits. Pure. Decodes only the needed parts of a document. Source: Iceberg specification, "Schemas",
"Table Metadata Fields" and "View Metadata".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

DEPTH_MAX: Final = 20
COLUMNS_MAX: Final = 20_000
TIME_MIN_MS: Final = -62_135_596_800_000
TIME_MAX_MS: Final = 253_402_300_799_999
"""The first and the last millisecond since 1970 with a year of four digits."""
DIGITS_MAX: Final = 18
"""The maximum length of a count in a summary, so that it fits into 64 bits."""
_NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})


class SchemaColumn(NamedTuple):
    """A column by its dotted name. `type` is the word of a primitive type, or `struct`, `list` or `map`."""

    id: int | None
    name: str
    type: str
    required: bool | None
    doc: str | None


class DocumentFacts(NamedTuple):
    """Facts of a table's or view's metadata: the time of the last change in milliseconds since 1970, the current
    snapshot, the comment and the properties.
    """

    changed_at: int | None
    snapshot_id: int | None
    comment: str | None
    properties: Mapping[str, str]


class _Version(msgspec.Struct, frozen=True, rename="kebab"):
    version_id: int = -1
    timestamp_ms: int | None = None
    schema_id: int | None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    current_schema_id: int | None = None
    schemas: tuple[dict[str, object], ...] = ()
    schema: dict[str, object] | None = None
    current_version_id: int | None = None
    versions: tuple[_Version, ...] = ()


class _Facts(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    properties: dict[str, object] = {}
    last_updated_ms: int | None = None
    current_snapshot_id: int | None = None
    current_version_id: int | None = None
    versions: tuple[_Version, ...] = ()


_DOCUMENT: Final = msgspec.json.Decoder(_Document)
_FACTS: Final = msgspec.json.Decoder(_Facts)
NO_FACTS: Final = DocumentFacts(None, None, None, _NO_PROPERTIES)


def document_facts(body: bytes) -> DocumentFacts:
    """Return the facts of a document; `NO_FACTS` for malformed metadata."""
    try:
        return _facts_of(_FACTS.decode(body))
    except msgspec.DecodeError:
        return NO_FACTS


def _facts_of(facts: _Facts) -> DocumentFacts:
    properties = {key: value for key, value in facts.properties.items() if isinstance(value, str)}
    snapshot_id = _number(facts.current_snapshot_id) if facts.current_snapshot_id != -1 else None
    changed_at = _time(facts.last_updated_ms)
    if changed_at is None:
        versions = {each.version_id: each.timestamp_ms for each in facts.versions}
        changed_at = _time(versions.get(facts.current_version_id or 0))
    return DocumentFacts(changed_at, snapshot_id, properties.get("comment"), properties)


class SnapshotTotals(NamedTuple):
    """The numbers of rows and bytes of a snapshot's data files, as its summary has them; None if unknown."""

    rows: int | None
    bytes: int | None


NO_TOTALS: Final = SnapshotTotals(None, None)


class _Summary(msgspec.Struct, frozen=True, rename="kebab"):
    total_records: object = None
    total_files_size: object = None


class _Snapshot(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    snapshot_id: int = -1
    summary: _Summary = _Summary()


class _Snapshots(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    current_snapshot_id: int | None = None
    snapshots: tuple[_Snapshot, ...] = ()


class _FactsAndSnapshots(_Facts, frozen=True, kw_only=True, rename="kebab"):
    snapshots: tuple[_Snapshot, ...] = ()


_SNAPSHOTS: Final = msgspec.json.Decoder(_Snapshots)
_FACTS_AND_SNAPSHOTS: Final = msgspec.json.Decoder(_FactsAndSnapshots)


def snapshot_totals(body: bytes) -> SnapshotTotals:
    """Return the totals of a table's current snapshot; none for a view, an empty table and malformed metadata.

    Writers of tables write the summary: it is a claim, not a count.
    """
    try:
        return _totals_of(_SNAPSHOTS.decode(body))
    except msgspec.DecodeError:
        return NO_TOTALS


def facts_with_totals(body: bytes) -> tuple[DocumentFacts, SnapshotTotals]:
    """Return what `document_facts` and `snapshot_totals` return, from one read of the document."""
    try:
        document = _FACTS_AND_SNAPSHOTS.decode(body)
    except msgspec.DecodeError:  # one of them may be readable
        return document_facts(body), snapshot_totals(body)
    return _facts_of(document), _totals_of(document)


def _totals_of(document: _Snapshots | _FactsAndSnapshots) -> SnapshotTotals:
    summaries = (each.summary for each in document.snapshots if each.snapshot_id == document.current_snapshot_id)
    summary = next(summaries, _Summary())
    return SnapshotTotals(_count(summary.total_records), _count(summary.total_files_size))


def _count(value: object) -> int | None:
    """Return a count of a summary, which is a text of digits."""
    if not isinstance(value, str) or len(value) > DIGITS_MAX:
        return None
    return int(value) if value.isascii() and value.isdigit() else None


def schema_columns(body: bytes) -> list[SchemaColumn]:
    """Return the columns of the current schema at every depth, at most `COLUMNS_MAX`; empty for malformed metadata.

    A column comes before the fields in it, whose names begin with its name, as in `items.element.price`.
    """
    try:
        document = _DOCUMENT.decode(body)
    except msgspec.DecodeError:
        return []
    current = document.current_schema_id
    if document.versions:
        current = next(
            (each.schema_id for each in document.versions if each.version_id == document.current_version_id), None
        )
    schema = next((each for each in document.schemas if each.get("schema-id") == current), document.schema)
    columns: list[SchemaColumn] = []
    for column in _fields_of(schema, "", depth=0):
        columns.append(column)
        if len(columns) >= COLUMNS_MAX:
            break
    return columns


def _fields_of(type_: object, above: str, *, depth: int) -> Iterator[SchemaColumn]:
    if not isinstance(type_, dict) or depth > DEPTH_MAX:
        return
    match type_.get("type"):
        case "struct" | None:
            fields = type_.get("fields")
            for field in fields if isinstance(fields, list) else ():
                if isinstance(field, dict) and isinstance(field.get("name"), str):
                    yield from _column(field, f"{above}{field['name']}", key="id", required="required", depth=depth)
        case "list":
            names = {"type": type_.get("element")}
            yield from _column(
                type_ | names, f"{above}element", key="element-id", required="element-required", depth=depth
            )
        case "map":
            yield from _column(
                type_ | {"type": type_.get("key")}, f"{above}key", key="key-id", required="", depth=depth
            )
            yield from _column(
                type_ | {"type": type_.get("value")},
                f"{above}value",
                key="value-id",
                required="value-required",
                depth=depth,
            )


def _column(field: Mapping[str, object], name: str, *, key: str, required: str, depth: int) -> Iterator[SchemaColumn]:
    type_, number, doc = field.get("type"), field.get(key), field.get("doc")
    word = type_.get("type") if isinstance(type_, dict) else type_
    is_required = field.get(required, key == "key-id")
    yield SchemaColumn(
        id=_number(number),
        name=name,
        type=word if isinstance(word, str) else "",
        required=is_required if isinstance(is_required, bool) else None,
        doc=doc if isinstance(doc, str) else None,
    )
    yield from _fields_of(type_, f"{name}.", depth=depth + 1)


def _number(value: object) -> int | None:
    """Return a value that is a number of 64 bits; None for any other."""
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None


def _time(value: object) -> int | None:
    """Return a number of milliseconds since 1970 in the years 1 to 9999; None for any other value."""
    return value if isinstance(value, int) and TIME_MIN_MS <= value <= TIME_MAX_MS else None
