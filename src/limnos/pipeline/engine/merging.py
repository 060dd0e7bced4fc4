# SPDX-License-Identifier: Apache-2.0
"""Merges of rows into a branch by their keys: update, insert, delete.

One MERGE from staged rows, so that a non-deterministic source has the same rows each time Spark reads it. Must not know
histories and large first loads, which have their own modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.engine.branches import MERGES, WriteKind, branch_identifier, run_on_branch
from limnos.pipeline.engine.changes import fitted_columns, quote_column
from limnos.pipeline.engine.inserting import insert
from limnos.pipeline.engine.keys import are_distinct, require_keys
from limnos.pipeline.engine.metadata import LoadedTable
from limnos.pipeline.engine.session import temporary_view
from limnos.pipeline.engine.staging import staged_rows
from limnos.pipeline.outcomes import StepBranch

DELETE_COLUMN = "_limnos_delete"
KEEP_COLUMN = "_limnos_keep"


def merge(
    step: StepDeclaration,
    frame: DataFrame,
    *,
    branch: StepBranch,
    schema: StructType,
    excluded: DataFrame | None = None,
    on_staged: Callable[[DataFrame], None] | None = None,
) -> LoadedTable | None:
    """Merge the DataFrame's rows into the new branch `branch`, by the step's keys.

    `excluded` are rows that rules took out: with `delete_missing`, the table keeps its rows of these keys.
    `on_staged` is called with the staged rows, among them those to delete.

    Returns the table as the commit left it; None over Spark Connect. Raises KeyViolation, and BadRequest if the plan
    would write elsewhere, before anything is written.
    """
    spark = frame.sparkSession
    rows = with_deletes(step, frame, schema=schema)
    distinct = are_distinct(rows, step.write.keys)
    with (
        staged_rows(rows) as source,
        temporary_view(with_kept_keys(step, source, excluded=excluded, schema=schema)) as view,
    ):
        require_keys(source, step.write.keys, step=step.name, distinct=distinct)
        if on_staged is not None:
            on_staged(source)
        if branch.base is None:  # the table has no rows yet, so nothing can match
            new_rows = source.where(~f.col(DELETE_COLUMN)).drop(DELETE_COLUMN)
            return insert(new_rows, branch=branch, kind=WriteKind.APPEND)
        statement = _statement(step, schema, branch=branch, view=view)
        # Spark plans a merge that only inserts as an append.
        return run_on_branch(spark, statement, branch=branch, kinds=MERGES | {WriteKind.APPEND})


def with_deletes(step: StepDeclaration, frame: DataFrame, *, schema: StructType) -> DataFrame:
    """Return the rows in the table's columns, with a column that marks those to delete."""
    condition = step.write.delete_when
    column = f.lit(False) if condition is None else f.coalesce(f.expr(condition), f.lit(False))
    return frame.select(*fitted_columns(frame, schema), column.alias(DELETE_COLUMN))


def with_kept_keys(
    step: StepDeclaration, source: DataFrame, *, excluded: DataFrame | None, schema: StructType
) -> DataFrame:
    """Add a row for each key that only excluded rows have, which the statement matches and leaves alone."""
    rows = source.withColumn(KEEP_COLUMN, f.lit(False))
    if excluded is None or not step.write.delete_missing:
        return rows
    keys = {each.lower() for each in step.write.keys}
    struct_type = StructType([each for each in schema.fields if each.name.lower() in keys])
    others = excluded.select(*fitted_columns(excluded, struct_type)).distinct()
    others = others.join(source, struct_type.names, "left_anti").withColumns(
        {DELETE_COLUMN: f.lit(False), KEEP_COLUMN: f.lit(True)}
    )
    return rows.unionByName(others, allowMissingColumns=True)


def differs(columns: Sequence[str], schema: StructType) -> str:
    """Return the SQL condition that a column of `t` differs from `s`, with NULLs equal; `TRUE` if a column is not
    comparable.
    """
    types = {each.name: each.dataType for each in schema.fields}
    if not all(comparable(types[each]) for each in columns):
        return "TRUE"
    return f"NOT ({' AND '.join(f't.{quote_column(each)} <=> s.{quote_column(each)}' for each in columns)})"


def comparable(kind: DataType) -> bool:
    """Return whether Spark can compare values of a type: not maps, variants, or types that contain them."""
    if isinstance(kind, StructType):
        return all(comparable(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return comparable(kind.elementType)
    return not isinstance(kind, (MapType, VariantType))


def _statement(step: StepDeclaration, schema: StructType, *, branch: StepBranch, view: str) -> str:
    write = step.write
    keys = {each.lower() for each in write.keys}
    others = [each for each in schema.names if each.lower() not in keys]
    match = " AND ".join(f"t.{quote_column(each)} = s.{quote_column(each)}" for each in write.keys)
    clauses = [f"MERGE INTO {branch_identifier(branch)} AS t USING {view} AS s ON {match}"]
    if write.delete_when is not None:
        clauses.append(f"WHEN MATCHED AND s.{DELETE_COLUMN} THEN DELETE")
    if others:
        settings = ", ".join(f"{quote_column(each)} = s.{quote_column(each)}" for each in others)
        clauses.append(f"WHEN MATCHED AND NOT s.{KEEP_COLUMN} AND {differs(others, schema)} THEN UPDATE SET {settings}")
    names = ", ".join(map(quote_column, schema.names))
    values = ", ".join(f"s.{quote_column(each)}" for each in schema.names)
    clauses.append(
        f"WHEN NOT MATCHED AND NOT s.{DELETE_COLUMN} AND NOT s.{KEEP_COLUMN} THEN INSERT ({names}) VALUES ({values})"
    )
    if write.delete_missing:
        clauses.append("WHEN NOT MATCHED BY SOURCE THEN DELETE")
    return " ".join(clauses)
