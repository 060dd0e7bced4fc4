# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's current schema: allowed while the rows that exist can still be read with it.

Must not know tables or commits. Source: Iceberg specification, "Schema Evolution".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from limnos.formats.iceberg.default_values import default_in_stored_form
from limnos.formats.iceberg.json_types import Json, preview_value
from limnos.formats.iceberg.metadata import MAIN
from limnos.formats.iceberg.schema import PROBLEMS_MAX, SchemaColumn, SchemaColumns, columns
from limnos.formats.iceberg.transforms import canonical_transform
from limnos.formats.iceberg.types import PrimitiveType
from limnos.model.errors import BadRequest
from limnos.names.columns import METADATA_COLUMNS

_DECIMAL: Final = re.compile(r"decimal\((\d+), (\d+)\)")
_WIDER: Final = frozenset({("int", "long"), ("float", "double")})
_CHANGED_BY_TIME: Final = ("identity", "bucket")
"""Partition transforms of dates whose values differ from those of the same timestamps."""
_WIDER_IN_V3: Final = frozenset({("date", "timestamp"), ("date", "timestamp_ns")})


@dataclass(slots=True, kw_only=True)
class SchemaHistory:
    """What a table has beside its former current schema: the format version, the highest field id, all schemas, the
    newest last, and all partition fields, in JSON. `branch` has the rows.
    """

    version: int
    last_column_id: int = 0
    schemas: Sequence[Json] = ()
    partition_fields: Sequence[Json] = ()
    branch: str = MAIN
    _by_id: dict[int, SchemaColumn] | None = None

    def find_newest_field(self, field_id: int) -> SchemaColumn | None:
        """Return a field as the newest schema has it that has it at all; None for a field that no schema had."""
        if field_id > self.last_column_id:
            return None
        if self._by_id is None:  # once: a table may have thousands of schemas, and each thousands of fields
            self._by_id = {}
            for schema in reversed(self.schemas):
                with suppress(BadRequest):  # from a release that stored what readers refuse
                    self._by_id = columns(schema).by_id | self._by_id
        return self._by_id.get(field_id)

    def changed_partition(self, field_id: int) -> str | None:
        """Return the transform of a partition field whose values change if its source, a date, becomes a timestamp."""
        for one in self.partition_fields:
            transform = str(canonical_transform(one.get("transform")))
            if one.get("source-id") == field_id and transform.startswith(_CHANGED_BY_TIME):
                return transform
        return None


def is_promotion(old: PrimitiveType, new: PrimitiveType, *, version: int) -> bool:
    """Return whether values of type `old` in data files can be read as `new` in a table of a format version."""
    if old.text == new.text or (old.text, new.text) in _WIDER:
        return True
    before, after = _DECIMAL.fullmatch(old.text), _DECIMAL.fullmatch(new.text)
    if before is not None and after is not None:
        return before[2] == after[2] and int(before[1]) <= int(after[1])
    return version > 2 and (old.text == "unknown" or (old.text, new.text) in _WIDER_IN_V3)


def check_evolution(before: SchemaColumns, after: SchemaColumns, *, history: SchemaHistory) -> None:
    """Check that rows written with one current schema, or an earlier one, can be read with the next one, by field ids.

    A table without rows, and one whose rows a commit replaces, may take any schema: do not call this for them.

    Raises BadRequest for a type that is not a promotion of the former one, or changes the values of a partition field;
    an optional column that becomes required; a new required column without an initial default; another initial
    default; a field that moves to another struct, list or map; and other fields in the key of a map.
    """
    problems: list[str] = []
    for field_id, column in after.by_id.items():
        old = before.by_id.get(field_id)
        if old is not None:
            problem = _problem(old, column, history=history)
        else:
            problem = _problem_of_new(column, before=before, after=after)
            if problem is None and (dropped := history.find_newest_field(field_id)) is not None:
                problem = _problem_of_type(dropped, column, history=history)
        if problem is not None:
            problems.append(problem)
    problems += [
        f"{column.name} belongs to the key of a map, and cannot be dropped"
        for field_id, column in before.by_id.items()
        if field_id not in after.by_id and _is_in_kept_key(column, before, other=after)
    ]
    if problems:
        where, remedy = "the table", "replace the table with its rows"
        if history.branch != MAIN:
            name = preview_value(history.branch)
            where, remedy = f"branch '{name}'", "remove the branch (remove-snapshot-ref) if its rows are not needed"
        raise BadRequest(
            f"Rows of {where} could not be read with this schema: {'; '.join(problems[:PROBLEMS_MAX])}. Add another "
            f"column instead, or {remedy}"
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


def _problem(old: SchemaColumn, new: SchemaColumn, *, history: SchemaHistory) -> str | None:
    if old.parent != new.parent or old.is_key != new.is_key:
        return f"{new.name} was {old.name}, and a field cannot move to another struct, list or map"
    if new.required and not old.required:
        return f"{new.name} is optional and may have nulls, so it cannot become required"
    return _problem_of_type(old, new, history=history)


def _problem_of_new(new: SchemaColumn, *, before: SchemaColumns, after: SchemaColumns) -> str | None:
    if new.parent is not None and new.parent not in before.by_id:
        return None  # it is in a new struct, list or map
    if new.is_item:
        return f"{new.name} has another field id, so that its values are lost"
    if _is_in_kept_key(new, after, other=before):
        return f"{new.name} is new in the key of a map, whose fields cannot change"
    if new.required and new.initial_default is None:
        return f"{new.name} is new and required, and has no initial-default"
    return None


def _problem_of_type(old: SchemaColumn, new: SchemaColumn, *, history: SchemaHistory) -> str | None:
    """Return why values of a field cannot be read with its new type or initial default, or None."""
    if old.primitive is None or new.primitive is None:
        same = old.primitive is new.primitive and old.nested == new.nested
        return None if same else f"{new.name} was {_word(old)} and cannot become {_word(new)}"
    if not is_promotion(old.primitive, new.primitive, version=history.version):
        return f"{new.name} of type {old.primitive.text} cannot become {new.primitive.text}"
    is_reread = (old.primitive.text, new.primitive.text) in _WIDER_IN_V3
    if is_reread and (transform := history.changed_partition(new.id)) is not None:
        return f"{new.name} of type date cannot become {new.primitive.text}: a partition field has its {transform}"
    if is_reread and old.initial_default is not None:
        return None  # the same date, in the form of the other type
    if _default(old) != _default(new):
        return f"{new.name} has another initial-default, which would change rows that exist"
    return None


def _default(column: SchemaColumn) -> object:
    if column.initial_default is None or column.primitive is None:
        return None
    return default_in_stored_form(column.initial_default, column.primitive)


def _is_in_kept_key(column: SchemaColumn, columns: SchemaColumns, *, other: SchemaColumns) -> bool:
    """Return whether a field of `columns` belongs to the key of a map that the columns `other` have, too."""
    parent = column.parent
    while parent is not None:
        step = columns.by_id[parent]
        if step.is_key:
            return step.id in other.by_id
        parent = step.parent
    return False


def _word(column: SchemaColumn) -> str:
    return f"a {column.nested}" if column.primitive is None else column.primitive.text
