# SPDX-License-Identifier: Apache-2.0
"""Descriptions: the comment, the time of the last change and the columns of a table or view, from its metadata.

Must not know commits. Pure. Decodes only the needed parts of a document, so a long history of snapshots costs little.
Source: Iceberg specification, "Table Metadata Fields" and "View Metadata".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.formats.iceberg.field_ids import schema_of

DEPTH_MAX: Final = 20
"""The maximum nesting depth of columns that are read."""
COLUMNS_MAX: Final = 20_000
"""The maximum number of columns that are read of one schema."""


class DocumentSummary(NamedTuple):
    """The comment, and the time of the last change in milliseconds since 1970; None if the metadata lacks them."""

    comment: str | None
    changed_at: int | None


class ColumnDescription(NamedTuple):
    """A column by its dotted name, with its documentation; "" if it has none."""

    name: str
    doc: str


class _ViewVersion(msgspec.Struct, frozen=True, rename="kebab"):
    version_id: int = -1
    timestamp_ms: int | None = None


class _SummaryFields(msgspec.Struct, frozen=True, rename="kebab"):
    properties: dict[str, object] = {}
    last_updated_ms: int | None = None
    current_version_id: int | None = None
    versions: tuple[_ViewVersion, ...] = ()


_SUMMARY = msgspec.json.Decoder(_SummaryFields)
NO_SUMMARY: Final = DocumentSummary(None, None)


def summary_of(body: bytes) -> DocumentSummary:
    """Return the summary of a table's or view's metadata; `NO_SUMMARY` for malformed metadata."""
    try:
        summary = _SUMMARY.decode(body)
    except msgspec.DecodeError:
        return NO_SUMMARY
    comment = summary.properties.get("comment")
    at = summary.last_updated_ms
    if at is None:
        at = next(
            (each.timestamp_ms for each in summary.versions if each.version_id == summary.current_version_id), None
        )
    return DocumentSummary(comment if isinstance(comment, str) else None, at)


def columns_of(body: bytes) -> list[ColumnDescription]:
    """Return the columns of the current schema at every depth, at most `COLUMNS_MAX`; empty for malformed metadata.

    The name of a struct's field begins with its parents' names, as in `address.city`. Fields within list elements, map
    keys and map values have `element`, `key` or `value` in their names, as in `items.element.price`.
    """
    descriptions: list[ColumnDescription] = []
    for column in _fields_of(schema_of(body), "", depth=0):
        descriptions.append(column)
        if len(descriptions) == COLUMNS_MAX:
            break
    return descriptions


class DocumentTexts(NamedTuple):
    """The texts of a table or view: the names of its columns at every depth without their parents' names, its comment,
    and the documentation of its columns.
    """

    columns: list[str]
    comments: list[str]


class _TextField(msgspec.Struct, frozen=True, gc=False):
    name: str
    type: object = None
    doc: str = ""


class _TextSchema(msgspec.Struct, frozen=True):
    number: int | None = msgspec.field(name="schema-id", default=None)
    fields: tuple[_TextField, ...] = ()


class _Texts(msgspec.Struct, frozen=True):
    current: int | None = msgspec.field(name="current-schema-id", default=None)
    schemas: tuple[_TextSchema, ...] = ()
    only: _TextSchema | None = msgspec.field(name="schema", default=None)
    properties: dict[str, object] = {}


_TEXTS = msgspec.json.Decoder(_Texts)
_FLAT: Final = {str}
"""The Python types of the types of columns without nested fields."""


def texts_of(body: bytes) -> DocumentTexts:
    """Return the texts of a table or view, of at most `COLUMNS_MAX` columns; of malformed metadata what is readable.

    It decodes the document once, and no more of it than it needs.
    """
    columns: Sequence[_TextField | ColumnDescription]
    comment: object
    try:
        texts = _TEXTS.decode(body)
    except msgspec.DecodeError:
        columns, comment = columns_of(body), summary_of(body).comment
    else:
        schema = next((each for each in texts.schemas if each.number == texts.current), texts.only)
        columns, comment = _columns_of(schema), texts.properties.get("comment")
    comments = [comment] if isinstance(comment, str) and comment else []
    comments += [column.doc for column in columns if column.doc]
    names = [column.name for column in columns]
    if "." in "".join(names):
        names = [name.rpartition(".")[2] for name in names]
    return DocumentTexts(names, comments)


def _columns_of(schema: _TextSchema | None) -> Sequence[_TextField | ColumnDescription]:
    """Return the columns of a schema at every depth, at most `COLUMNS_MAX`."""
    if schema is None:
        return ()
    if len(schema.fields) <= COLUMNS_MAX and {type(field.type) for field in schema.fields} <= _FLAT:
        return schema.fields
    columns: list[_TextField | ColumnDescription] = []
    for field in schema.fields:
        columns.append(field)
        columns += _fields_of(field.type, "", depth=1)
    return columns[:COLUMNS_MAX]


def _fields_of(kind: object, above: str, *, depth: int) -> Iterator[ColumnDescription]:
    if not isinstance(kind, dict) or depth > DEPTH_MAX:
        return
    fields = kind.get("fields")
    for field in fields if isinstance(fields, list) else ():
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            continue
        name, doc = f"{above}{field['name']}", field.get("doc")
        yield ColumnDescription(name, doc if isinstance(doc, str) else "")
        if not isinstance(field.get("type"), str):
            yield from _fields_of(field.get("type"), f"{name}.", depth=depth + 1)
    for part in ("element", "key", "value"):
        if part in kind:
            yield from _fields_of(kind[part], f"{above}{part}.", depth=depth + 1)
