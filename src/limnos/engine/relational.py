"""Relations worked out on Spark, their rows as values.

May import the sibling modules, relations of `sqlpp` and PySpark. Must not know statements. Results come as Arrow has them, few at once, many a part after the other, each up to a size that sessions set.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from limnos.engine.arrow import plain_type, stream_batches
from limnos.engine.failures import is_planner_bug, text_of
from limnos.engine.sql import statement_of
from limnos.engine.tables import DatasetTable
from limnos.sqlpp.relations.nodes import Extension, Filter, Join, RowGrouping, RowLimit, Sort, Window, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from limnos.sqlpp.relations import RelationalQuery
    from limnos.sqlpp.relations.nodes import DatasetRead, Relation
    from limnos.sqlpp.relations.results import ResultLayout
    from limnos.sqlpp.stored import Plain
    from limnos.sqlpp.values.model import Value

logger = logging.getLogger(__name__)
FEW = 10_000


def values_of(
    spark: SparkSession, carried: RelationalQuery, *, tables: Callable[[tuple[str, ...], str], DatasetTable], parts: int
) -> Iterator[Value]:
    """The results, worked out by so many tasks at once: few of them at once, more as they come. Raises what Spark raises."""
    frame = _planned_frame(spark, carried, tables=tables, parts=parts)
    if parts > 1 and _multiplies(frame, carried.relation):
        frame = _planned_frame(spark, carried, tables=tables, parts=1)
    return decoded(
        carried.layout, frame.toArrow().to_batches() if has_few_rows(carried.relation) else stream_batches(spark, frame)
    )


def _planned_frame(
    spark: SparkSession, carried: RelationalQuery, *, tables: Callable[[tuple[str, ...], str], DatasetTable], parts: int
) -> DataFrame:
    """What Spark is asked for, once it has a plan for it. Where it fails by a mistake of its own, conditions are kept from the tables, where it makes it."""
    for source in (_source, _source_apart):
        found = statement_of(carried.relation, carried.layout, sources=partial(source, tables), parts=parts)
        frame = spark.sql(found.text, args=found.parameters or None)
        try:
            _plan(frame)
        except Exception as error:
            if source is _source_apart or not is_planner_bug(error):
                raise
            logger.info("Spark cannot plan a query whose conditions reach its tables: %s", text_of(error)[:500])
        else:
            return frame
    raise AssertionError


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001 - plans are Java's


def _multiplies(frame: DataFrame, relation: Relation) -> bool:
    """Whether Spark pairs all parts of one side with all of another, each pair a task: then each side is to be one part."""
    return any(isinstance(one, Join) for one in parts_of(relation)) and "CartesianProduct" in _plan(frame)


def has_few_rows(relation: Relation) -> bool:
    """Whether a relation has few rows whatever its datasets have."""
    while isinstance(relation, (Extension, Filter, Sort, Window)):
        relation = relation.source
    if isinstance(relation, RowLimit):
        return relation.limit is not None and relation.limit <= FEW
    return isinstance(relation, RowGrouping) and not relation.keys


def _source(tables: Callable[[tuple[str, ...], str], DatasetTable], read: DatasetRead) -> str:
    """A dataset at the state of the statement."""
    return tables(read.dataverse, read.name).source


def _source_apart(tables: Callable[[tuple[str, ...], str], DatasetTable], read: DatasetRead) -> str:
    """The same, behind a condition that is true of every row, which Spark does not know: it moves no other past it."""
    return f"(SELECT * FROM {_source(tables, read)} WHERE rand() >= 0)"


def decoded(layout: ResultLayout, batches: Iterable[pa.RecordBatch]) -> Iterator[Value]:
    """The values of rows."""
    return layout.values(_rows([plain_type(type_) for _, type_ in layout.columns], batches))


def _rows(types: list[pa.DataType], batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Plain, ...]]:
    for batch in batches:
        if not types:
            yield from (() for _ in range(batch.num_rows))
            continue
        held = [column.cast(type_).to_pylist() for column, type_ in zip(batch.columns, types, strict=True)]
        yield from zip(*held, strict=True)
