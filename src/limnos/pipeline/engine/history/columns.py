# SPDX-License-Identifier: Apache-2.0
"""The columns of a history, of its events and of its changes, and how their values are compared.

Must not know how events become rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, MapType, StructType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.engine.changes import ddl, quote_column
from limnos.pipeline.engine.definitions import varies
from limnos.pipeline.engine.merging import comparable

AT = "_limnos_at"
"""The column of an event's time."""
ENDS = "_limnos_end"
"""The column that says whether an event ends the validity of its key."""
RANK = "_limnos_rank"
"""The column of an event's precedence: of several events at the same time, the highest one counts."""
ACTION = "_limnos_do"
"""The column of what a change does with the row of its key and start: `DELETE`, or `PUT`, which updates or inserts."""
DELETE, PUT = "delete", "put"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryColumns:
    """Columns of a history: keys, values, tracked values, and the columns `valid_from` (`start`), `valid_to` (`end`)
    and `current`, under their declared names.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    tracked: tuple[str, ...]
    start: str
    end: str
    current: str
    time: DataType
    schema: StructType
    as_of: str | None
    """The expression for the time of a source's row, if the time of a table's newest event can be computed by it."""


def columns_of(step: StepDeclaration, schema: StructType) -> HistoryColumns:
    """Return the columns of the step's history, whose table has `schema`. Raises BadRequest if a tracked column cannot
    be compared.
    """
    write = step.write
    own = {each.lower() for each in (write.valid_from, write.valid_to, write.current)}
    keys = {each.lower() for each in write.keys}
    values = tuple(each for each in schema.names if each.lower() not in own | keys)
    chosen = {each.lower() for each in write.tracked} or {each.lower() for each in values}
    tracked = tuple(each for each in values if each.lower() in chosen)
    for name in tracked:
        if not comparable(compared_type(schema[name].dataType)):
            raise BadRequest(
                f"Step {step.name}: changes of {name!r} can't be detected, because {ddl(schema[name].dataType)} has no"
                " order. Name the columns to follow with `tracked`."
            )
    time = schema[write.valid_from].dataType
    return HistoryColumns(
        keys=tuple(each for each in schema.names if each.lower() in keys),
        values=values,
        tracked=tracked,
        start=write.valid_from,
        end=write.valid_to,
        current=write.current,
        time=time,
        schema=schema,
        as_of=None if write.as_of is None or varies(write.as_of) else write.as_of,
    )


def column(name: str) -> Column:
    """Return the column of that exact name, dots included."""
    return f.col(quote_column(name))


def select_columns(names: tuple[str, ...]) -> list[Column]:
    """Return the columns of these exact names."""
    return [column(each) for each in names]


def tracked_column(name: str, shape: HistoryColumns) -> Column:
    """Return a tracked column in a form that Spark can compare."""
    return comparable_value(column(name), shape.schema[name].dataType).alias(name)


def compared_type(kind: DataType) -> DataType:
    """Return the type by which values of `kind` are compared: a map is compared as its entries, structs of key and
    value.
    """
    return StructType().add("key", kind.keyType).add("value", kind.valueType) if isinstance(kind, MapType) else kind


def comparable_value(value: Column, kind: DataType) -> Column:
    """Return a value of the type `kind` in a form that Spark can compare."""
    return f.array_sort(f.map_entries(value)) if isinstance(kind, MapType) else value


def comparable_text(value: str, kind: DataType) -> str:
    """Return `comparable_value` of an SQL expression, as text."""
    return f"array_sort(map_entries({value}))" if isinstance(kind, MapType) else value
