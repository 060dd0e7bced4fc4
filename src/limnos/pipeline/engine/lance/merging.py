# SPDX-License-Identifier: Apache-2.0
"""Merges of rows into a Lance table by their keys: update, insert, delete, staged as one version.

Spark joins the rows with the published version. Its tasks write the new rows as fragments, and files that mark the old
rows of the changed keys as deleted; unchanged rows stay where they are. Must not know steps in progress.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyspark.sql import functions as f

from limnos.names import display
from limnos.pipeline.engine.changes import fitted_columns, quote_column
from limnos.pipeline.engine.keys import are_distinct, require_keys
from limnos.pipeline.engine.lance.fragments import WrittenFragments, write_frame
from limnos.pipeline.engine.lance.reading import version_reader
from limnos.pipeline.engine.merging import DELETE_COLUMN, KEEP_COLUMN, differs, with_kept_keys
from limnos.pipeline.engine.staging import staged_rows
from limnos.spark.lance.reading import ADDRESS, LanceTableFiles
from limnos.spark.lance.types import spark_schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.engine.lance.tables import LanceTarget

_IS_NEW: Final = "_limnos_new"
_DELETION: Final = "fragment bigint, remaining string"
_OFFSET_BITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRows:
    """Fragments of which rows were deleted, with their new descriptions, and fragments without a row that is left."""

    updated: list[FragmentMetadata]
    removed: list[int]


def merge(
    step: StepDeclaration,
    frame: DataFrame,
    *,
    target: LanceTarget,
    excluded: DataFrame | None,
    check: Callable[[], None],
) -> WrittenFragments:
    """Merge the rows into the step's table by its keys, and stage a version with the result, unless nothing changes.

    `excluded` are rows that rules took out: with `delete_missing`, the table keeps its rows of these keys. `check` is
    called before the version is staged. Returns the written fragments with the number of changed rows.

    Raises KeyViolation before anything is written.
    """
    schema = spark_schema_of(target.schema)
    delete = (
        f.lit(False) if step.write.delete_when is None else f.coalesce(f.expr(step.write.delete_when), f.lit(False))
    )
    rows = frame.select(*fitted_columns(frame, schema), delete.alias(DELETE_COLUMN))
    distinct = are_distinct(rows, step.write.keys)
    with staged_rows(rows) as source:
        require_keys(source, step.write.keys, step=step.name, distinct=distinct)
        if target.table.base is None:
            written = _write(source.where(~f.col(DELETE_COLUMN)).drop(DELETE_COLUMN), target)
            check()
            target.table.overwrite(target.schema, written.fragments)
            return written
        known = with_kept_keys(step, source, excluded=excluded, schema=schema)
        with staged_rows(_changes(step, known, target=target, schema=schema)) as changed:
            return _stage(changed, target=target, schema=schema, check=check)


def _stage(
    changed: DataFrame, *, target: LanceTarget, schema: StructType, check: Callable[[], None]
) -> WrittenFragments:
    count = changed.count()
    if not count:
        return WrittenFragments(fragments=[], rows=0, bytes=0)
    new = changed.where(f.col(_IS_NEW)).select(*map(quote_column, schema.names))
    written = _write(new, target)
    deleted = _delete_rows(changed.where(f.col(ADDRESS).isNotNull()), files=_published(target))
    check()
    target.table.update(written.fragments, updated=deleted.updated, removed=deleted.removed)
    return WrittenFragments(fragments=written.fragments, rows=count, bytes=written.bytes)


def _write(frame: DataFrame, target: LanceTarget) -> WrittenFragments:
    table = target.table
    return write_frame(frame, schema=target.schema, location=table.location, mode=target.mode, options=table.options)


def _published(target: LanceTarget) -> LanceTableFiles:
    table = target.table
    return LanceTableFiles(table.location, table.base or 0, table.options)


def _changes(step: StepDeclaration, source: DataFrame, *, target: LanceTarget, schema: StructType) -> DataFrame:
    """Return the changed rows: their new values, if there are any, and the address of the old row, if there is one."""
    write = step.write
    reader = version_reader(source.sparkSession, _published(target)).option("addresses", "true")
    old = reader.load(display.render(step.table)).alias("t")
    keys = {each.lower() for each in write.keys}
    others = [each for each in schema.names if each.lower() not in keys]
    match = f.expr(" AND ".join(f"t.{quote_column(each)} = s.{quote_column(each)}" for each in write.keys))
    rows = old.join(source.alias("s"), match, "full" if write.delete_missing else "right")
    address, is_deleted, is_kept = f.col(f"t.{ADDRESS}"), f.col(f"s.{DELETE_COLUMN}"), f.col(f"s.{KEEP_COLUMN}")
    is_other: Column = f.expr(differs(others, schema)) if others else f.lit(False)
    is_update = address.isNotNull() & ~is_deleted & ~is_kept & is_other
    is_insert = address.isNull() & ~is_deleted & ~is_kept
    is_removal = address.isNotNull() & (is_kept.isNull() | is_deleted)
    values = [f.col(f"s.{quote_column(each)}") for each in schema.names]
    is_new = f.coalesce(is_update | is_insert, f.lit(False))
    changed = rows.where(is_new | f.coalesce(is_removal, f.lit(False)))
    return changed.select(*values, address.alias(ADDRESS), is_new.alias(_IS_NEW))


def _delete_rows(changed: DataFrame, *, files: LanceTableFiles) -> DeletedRows:
    """Mark rows as deleted, by their addresses. Each fragment has one task."""
    fragment = f.shiftrightunsigned(f.col(ADDRESS), _OFFSET_BITS)
    offset = f.col(ADDRESS).bitwiseAND(f.lit((1 << _OFFSET_BITS) - 1))
    places = changed.select(fragment.alias("fragment"), offset.alias("row"))
    results = places.groupBy("fragment").applyInArrow(_task(files), _DELETION).collect()
    return DeletedRows(
        updated=[FragmentMetadata.from_json(row["remaining"]) for row in results if row["remaining"] is not None],
        removed=[int(row["fragment"]) for row in results if row["remaining"] is None],
    )


def _task(files: LanceTableFiles) -> Callable[[pa.Table], pa.Table]:
    def delete(places: pa.Table) -> pa.Table:
        number = places.column("fragment")[0].as_py()
        fragment = files.open().get_fragment(number)
        if fragment is None:
            raise RuntimeError(f"the published version has no fragment {number}")
        remaining = fragment.delete_rows(sorted({*places.column("row").to_pylist()}))
        text = None if remaining is None else json.dumps(remaining.to_json())
        return pa.table({"fragment": pa.array([number], pa.int64()), "remaining": pa.array([text], pa.string())})

    return delete
