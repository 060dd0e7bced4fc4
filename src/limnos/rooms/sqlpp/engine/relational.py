# SPDX-License-Identifier: Apache-2.0
"""Executes translated queries (relations) on Spark and decodes their rows to values.

Must not know statements. Small results are fetched in one piece and large ones partition by partition. The sessions
limit the size of each piece.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from limnos.rooms.sqlpp.engine.arrow import plain_type, stream_batches
from limnos.rooms.sqlpp.engine.failures import is_planner_bug, text_of
from limnos.rooms.sqlpp.engine.sql import statement_of
from limnos.rooms.sqlpp.engine.tables import DatasetTable
from limnos.rooms.sqlpp.language.relations.nodes import (
    Extension,
    Filter,
    Join,
    RowGrouping,
    RowLimit,
    Sort,
    Window,
    parts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from limnos.rooms.sqlpp.language.relations import RelationalQuery
    from limnos.rooms.sqlpp.language.relations.nodes import DatasetRead, Relation
    from limnos.rooms.sqlpp.language.relations.results import ResultLayout
    from limnos.rooms.sqlpp.language.stored import Plain
    from limnos.rooms.sqlpp.language.values.model import Value

logger = logging.getLogger(__name__)
FEW = 10_000
SPREAD = 8
"""Parts of each dataset of a join whose rows the evaluator filters; a Cartesian product has the square of them."""


def values_of(
    spark: SparkSession, carried: RelationalQuery, *, tables: Callable[[tuple[str, ...], str], DatasetTable], parts: int
) -> Iterator[Value]:
    """Execute a query and yield its results. Raises Spark's errors.

    Args:
        spark: The session of the statement.
        carried: The translated query.
        tables: Finds the table of a dataset by its dataverse and name.
        parts: The number of tasks that read a dataset concurrently.
    """
    if is_filtered_join(carried):
        frame = _planned_frame(spark, carried, tables=tables, parts=SPREAD, is_spread=True)
    else:
        frame = _planned_frame(spark, carried, tables=tables, parts=parts)
        if parts > 1 and _has_cartesian_product(frame, carried.relation):
            frame = _planned_frame(spark, carried, tables=tables, parts=1)
    return decode_batches(
        carried.layout, frame.toArrow().to_batches() if has_few_rows(carried.relation) else stream_batches(spark, frame)
    )


def is_filtered_join(carried: RelationalQuery) -> bool:
    """Return whether the evaluator filters the rows of a join, which may be far more than the results.

    Such a join runs in many tasks, because the whole result of a task is in memory, in several copies: one task with 2
    million pairs of objects overflowed a heap of 2 GB.
    """
    is_join = any(isinstance(one, Join) for one in parts_of(carried.relation))
    return is_join and carried.layout.keep is not None


def _planned_frame(
    spark: SparkSession,
    carried: RelationalQuery,
    *,
    tables: Callable[[tuple[str, ...], str], DatasetTable],
    parts: int,
    is_spread: bool = False,
) -> DataFrame:
    """Return the DataFrame of the query after Spark has planned it. Raises Spark's errors.

    If a bug of Spark's planner prevents this, the query is planned again without predicate pushdown, which triggers the
    bug.
    """
    for source in (_source, _source_without_pushdown):
        statement = statement_of(
            carried.relation, carried.layout, sources=partial(source, tables), parts=parts, is_spread=is_spread
        )
        frame = spark.sql(statement.text, args=statement.parameters or None)
        try:
            _plan(frame)
        except Exception as error:
            if source is _source_without_pushdown or not is_planner_bug(error):
                raise
            logger.info("Spark cannot plan a query whose conditions reach its tables: %s", text_of(error)[:500])
        else:
            return frame
    raise AssertionError


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001 - plans are Java's


def _has_cartesian_product(frame: DataFrame, relation: Relation) -> bool:
    """Return whether Spark joins by a Cartesian product, which runs a task for each pair of partitions.

    The caller then reads each dataset in one partition.
    """
    return any(isinstance(one, Join) for one in parts_of(relation)) and "CartesianProduct" in _plan(frame)


def has_few_rows(relation: Relation) -> bool:
    """Return whether a relation is certain to have at most `FEW` rows, regardless of the size of its datasets."""
    while isinstance(relation, (Extension, Filter, Sort, Window)):
        relation = relation.source
    if isinstance(relation, RowLimit):
        return relation.limit is not None and relation.limit <= FEW
    return isinstance(relation, RowGrouping) and not relation.keys


def _source(tables: Callable[[tuple[str, ...], str], DatasetTable], read: DatasetRead) -> str:
    """Return the FROM item of a dataset, at the statement's snapshot."""
    return tables(read.dataverse, read.name).source


def _source_without_pushdown(tables: Callable[[tuple[str, ...], str], DatasetTable], read: DatasetRead) -> str:
    """Return a dataset as a subquery with an always true condition that Spark treats as nondeterministic.

    This optimization barrier prevents predicate pushdown below the subquery.
    """
    return f"(SELECT * FROM {_source(tables, read)} WHERE rand() >= 0)"


def decode_batches(layout: ResultLayout, batches: Iterable[pa.RecordBatch]) -> Iterator[Value]:
    """Convert Arrow batches in a result layout to values."""
    return layout.values(_rows([plain_type(type_) for _, type_ in layout.columns], batches))


def _rows(types: list[pa.DataType], batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Plain, ...]]:
    for batch in batches:
        if not types:
            yield from (() for _ in range(batch.num_rows))
            continue
        entries = [column.cast(type_).to_pylist() for column, type_ in zip(batch.columns, types, strict=True)]
        yield from zip(*entries, strict=True)
