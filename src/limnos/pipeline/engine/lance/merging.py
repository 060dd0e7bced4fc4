# SPDX-License-Identifier: Apache-2.0
"""Merges of rows into a Lance table by their keys: update, insert, delete, staged as one version.

Spark joins the rows with the published version. Its tasks write the new rows as fragments, and files that mark the old
rows of the changed keys as deleted; unchanged rows stay where they are. Must not know steps in progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from limnos.pipeline.engine.changes import fitted_columns, quote_column
from limnos.pipeline.engine.keys import are_distinct, require_keys
from limnos.pipeline.engine.lance.deletions import delete_rows, published_rows
from limnos.pipeline.engine.lance.fragments import WrittenFragments, write_rows
from limnos.pipeline.engine.merging import DELETE_COLUMN, KEEP_COLUMN, differs, with_kept_keys
from limnos.pipeline.engine.staging import staged_rows
from limnos.spark.lance.reading import ADDRESS
from limnos.spark.lance.types import spark_schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.engine.lance.tables import LanceTarget

_IS_NEW: Final = "_limnos_new"


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
            written_fragments = write_rows(source.where(~f.col(DELETE_COLUMN)).drop(DELETE_COLUMN), target)
            check()
            target.table.overwrite(target.schema, written_fragments.fragments)
            return written_fragments
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
    written_fragments = write_rows(new, target)
    deleted = delete_rows(changed.where(f.col(ADDRESS).isNotNull()), target=target)
    check()
    target.table.update(written_fragments.fragments, updated=deleted.updated, removed=deleted.removed)
    return WrittenFragments(fragments=written_fragments.fragments, rows=count, bytes=written_fragments.bytes)


def _changes(step: StepDeclaration, source: DataFrame, *, target: LanceTarget, schema: StructType) -> DataFrame:
    """Return the changed rows: their new values, if there are any, and the address of the old row, if there is one."""
    write = step.write
    old = published_rows(source.sparkSession, step.table, target=target).alias("t")
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
    changed_rows = rows.where(is_new | f.coalesce(is_removal, f.lit(False)))
    return changed_rows.select(*values, address.alias(ADDRESS), is_new.alias(_IS_NEW))
