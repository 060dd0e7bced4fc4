# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's current schema: allowed while the rows that exist can still be read with it.

Must not know tables or commits. Source: Iceberg specification, "Schema Evolution".
"""

from __future__ import annotations

import re
from typing import Final

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.schema import PROBLEMS_MAX, SchemaColumn, SchemaColumns
from limnos.formats.iceberg.types import PrimitiveType
from limnos.model.errors import BadRequest
from limnos.names.columns import METADATA_COLUMNS

_DECIMAL: Final = re.compile(r"decimal\((\d+), (\d+)\)")
_WIDER: Final = frozenset({("int", "long"), ("float", "double")})
_WIDER_IN_V3: Final = frozenset({("date", "timestamp"), ("date", "timestamp_ns")})


def is_promotion(old: PrimitiveType, new: PrimitiveType, *, version: int) -> bool:
    """Return whether values of type `old` in data files can be read as `new` in a table of a format version."""
    if old.text == new.text or (old.text, new.text) in _WIDER:
        return True
    before, after = _DECIMAL.fullmatch(old.text), _DECIMAL.fullmatch(new.text)
    if before is not None and after is not None:
        return before[2] == after[2] and int(before[1]) <= int(after[1])
    return version > 2 and (old.text == "unknown" or (old.text, new.text) in _WIDER_IN_V3)


def check_evolution(before: SchemaColumns, after: SchemaColumns, *, version: int) -> None:
    """Check that rows written with one current schema can be read with the next one, by field ids.

    A table without rows, and one whose rows a commit replaces, may take any schema: do not call this for them.

    Raises BadRequest for a type that is not a promotion of the former one, an optional column that becomes required,
    and a new required column without an initial default.
    """
    problems = [
        problem
        for field_id, column in after.by_id.items()
        if (problem := _problem(before.by_id.get(field_id), column, before=before, version=version)) is not None
    ]
    if problems:
        raise BadRequest(
            f"Rows of the table could not be read with this schema: {'; '.join(problems[:PROBLEMS_MAX])}. Add another "
            "column instead, or replace the table with its rows"
        )


def check_column_names(after: SchemaColumns, before: Json | None = None) -> None:
    """Check that a current schema has no top-level column with the name of one of Iceberg's metadata columns.

    Spark, Flink and Trino could write such a column, and not read it. A table that has one in its former schema
    `before`, which may be damaged, keeps it, so that it takes other commits. Raises BadRequest.
    """
    for name in sorted(METADATA_COLUMNS & after.by_name.keys()):
        if not _has_column(before or {}, name, field_id=after.by_name[name].id):
            raise BadRequest(
                f"Invalid schema, field '{name}': Iceberg reserves this name for a metadata column, so that Spark and "
                "other engines could not read the column; choose another name"
            )


def _has_column(schema: Json, name: str, *, field_id: int) -> bool:
    """Return whether a schema, which may be damaged, has a top-level column of this name and id."""
    fields = schema.get("fields")
    return isinstance(fields, list) and any(
        isinstance(one, dict) and (one.get("id"), one.get("name")) == (field_id, name) for one in fields
    )


def _problem(old: SchemaColumn | None, new: SchemaColumn, *, before: SchemaColumns, version: int) -> str | None:
    if old is None:
        is_in_new_struct = new.parent is not None and new.parent not in before.by_id
        if new.has_initial_default or not new.required or is_in_new_struct:
            return None
        return f"{new.name} is new and required, and has no initial-default"
    if new.required and not old.required:
        return f"{new.name} is optional and may have nulls, so it cannot become required"
    if old.primitive is None or new.primitive is None:
        return None if old.primitive is new.primitive else f"{new.name} was {_word(old)} and cannot become {_word(new)}"
    if is_promotion(old.primitive, new.primitive, version=version):
        return None
    return f"{new.name} of type {old.primitive.text} cannot become {new.primitive.text}"


def _word(column: SchemaColumn) -> str:
    return "a struct, list or map" if column.primitive is None else column.primitive.text
