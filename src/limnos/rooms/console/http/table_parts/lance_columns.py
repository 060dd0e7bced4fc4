# SPDX-License-Identifier: Apache-2.0
"""The columns of a Lance table, which its files define.

Has no business rules. Refusals, tables without data and failures of storage are shown on the page.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.model.errors import (
    InvalidTable,
    NotFound,
    OutsideRoots,
    PermissionDenied,
    StorageFailed,
    UnsupportedOperation,
)
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text
from limnos.rooms.console.http.table_metadata import COLUMNS_MAX, DEPTH_MAX, ColumnLine
from limnos.rooms.console.http.tabs import Fact
from limnos.services.lance.table_files import LANCE_FILES

SHOWN_ERRORS: Final = (
    PermissionDenied,
    NotFound,
    InvalidTable,
    StorageFailed,
    OutsideRoots,
    UnsupportedOperation,
)
"""Errors that a page shows as the reason why the files were not read."""
NO_DATA: Final = "The table was declared and has no data yet: insert some first."
_TYPE_WORDS: Final = {
    "utf8": "string",
    "large_utf8": "large_string",
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
}
"""Names of types as previews spell them."""


class ArrowField(msgspec.Struct, frozen=True):
    """A field of a Lance table's schema."""

    name: str
    type: ArrowType
    nullable: bool = True
    metadata: dict[str, str] = {}


class ArrowType(msgspec.Struct, frozen=True):
    """A type of a Lance table's schema: a name, and a length or fields if it has them."""

    type: str
    length: int | None = None
    fields: list[ArrowField] = []


class LanceColumns(NamedTuple):
    """The columns of a Lance table as rows, and facts about its version; or the reason why they were not read."""

    lines: tuple[ColumnLine, ...] = ()
    lines_count: int = 0
    facts: tuple[Fact, ...] = ()
    refusal: str = ""
    vectors: tuple[ArrowField, ...] = ()


async def lance_columns(page_request: PageRequest, address: ObjectAddress) -> LanceColumns:
    """Read the columns and the version of a table. A refusal or failure is returned as the reason."""
    try:
        files = LANCE_FILES.of(page_request.ctx.services)
        description = await files.describe(page_request.ctx, address.scope, levels=address.levels)
    except SHOWN_ERRORS as error:
        return LanceColumns(refusal=error.message)
    if description.details is None:
        return LanceColumns(refusal=NO_DATA)
    details = description.details
    fields = msgspec.json.decode(details.fields, type=list[ArrowField])
    lines: list[ColumnLine] = []
    for number, field in enumerate(fields, 1):
        _add_lines(lines, field, number=str(number), depth=0)
    facts = [
        Fact(label="Version", text=count_text(details.version)),
        Fact(label="Columns", text=count_text(len(lines))),
    ]
    for key, label in (("num_fragments", "Fragments"), ("num_deleted_rows", "Deleted rows")):
        if key in details.stats:
            facts.append(Fact(label=label, text=count_text(details.stats[key])))
    vectors = tuple(each for each in fields if _is_vector(each.type))
    return LanceColumns(
        lines=tuple(lines[:COLUMNS_MAX]), lines_count=len(lines), facts=tuple(facts), refusal="", vectors=vectors
    )


def _add_lines(lines: list[ColumnLine], field: ArrowField, *, number: str, depth: int) -> None:
    comment = field.metadata.get("comment", "")
    lines.append(
        ColumnLine(
            number=number,
            id=0,
            name=field.name,
            type=arrow_type_text(field.type),
            is_required=not field.nullable,
            is_key=False,
            comment=comment,
            tags=[],
            depth=depth,
        )
    )
    inner = field.type
    while inner.type in ("list", "large_list") and inner.fields:
        inner = inner.fields[0].type
    if inner.type == "struct" and depth < DEPTH_MAX:
        for each in inner.fields:
            _add_lines(lines, each, number="", depth=depth + 1)


def arrow_type_text(kind: ArrowType, *, depth: int = 0) -> str:
    """Return an Arrow type as text, such as `list<string>`, or `vector of 3 float` for a fixed-size list."""
    inner = [arrow_type_text(each.type, depth=depth + 1) for each in kind.fields] if depth < DEPTH_MAX else []
    match kind.type, inner:
        case "fixed_size_list", [item]:
            return f"vector of {kind.length} {item}"
        case (("list" | "large_list"), [item]):
            return f"list<{item}>"
        case "map", [_] if len(kind.fields[0].type.fields) == 2:
            key, value = (arrow_type_text(each.type, depth=depth + 1) for each in kind.fields[0].type.fields)
            return f"map<{key}, {value}>"
        case (("decimal128" | "decimal256"), _) if kind.length is not None:
            return f"decimal({kind.length // 1000}, {kind.length % 1000})"
        case "fixed_size_binary", _:
            return f"binary({kind.length})"
    return _TYPE_WORDS.get(kind.type, kind.type)


def _is_vector(kind: ArrowType) -> bool:
    """Return whether an Arrow type is a vector: a fixed-size list of numbers."""
    return (
        kind.type == "fixed_size_list"
        and bool(kind.fields)
        and kind.fields[0].type.type.startswith(("float", "uint8", "int8"))
    )
