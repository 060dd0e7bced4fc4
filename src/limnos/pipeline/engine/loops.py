# SPDX-License-Identifier: Apache-2.0
"""Rows of a loop's query, read with Spark when a run starts.

Reads published tables at pins of this moment. Long texts are cut by Spark, so that no row is larger than what a word
may be; the reader of the file refuses them. Must not know steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import LoopRows
from limnos.pipeline.engine import pinned_reads
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.keys.loops import STEPS_MAX, VALUE_MAX
from limnos.pipeline.query_loops import name_problems
from limnos.pipeline.run.parameters import arguments

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from limnos.pipeline.declaration import Pipeline, QueryLoop
    from limnos.pipeline.declared_values import Parts, Scalar
    from limnos.pipeline.outcomes import ReadPin

_WHOLE = (ByteType, ShortType, IntegerType, LongType)


def read_loop(
    spark: SparkSession,
    loop: QueryLoop,
    *,
    pipeline: Pipeline,
    parameters: Mapping[str, Scalar],
    pins: Callable[[Iterable[Parts]], Mapping[Parts, ReadPin]],
    lance_catalogs: frozenset[str],
) -> LoopRows:
    """Return the rows of a loop's query, sorted by their values. `pins` pins tables as they are now.

    Raises BadRequest for a query with other names than those of tables and parameters, and for one with too many rows.
    """
    query = query_names(spark, loop.query)
    for message in name_problems(pipeline, loop, query=query):
        raise BadRequest(message)
    tables = [
        pinned_reads.full_name(spark, one.parts, catalog=pipeline.catalog, further=lance_catalogs)
        for one in query.relations
        if not one.travels
    ]
    text = pinned_reads.with_reads(
        spark,
        loop.query,
        pinned_reads=pinned_reads.reads(spark, pins(tables)),
        named=query.relations,
        catalog=pipeline.catalog,
        lance_catalogs=lance_catalogs,
    )
    values = arguments(pipeline, parameters, run="", at=datetime.now(UTC))
    used = {name: value for name, value in values.items() if name in query.parameters}
    return _rows(spark.sql(text, args=used) if used else spark.sql(text), loop=loop)


def _rows(frame: DataFrame, *, loop: QueryLoop) -> LoopRows:
    repeated = [name for name in frame.columns if frame.columns.count(name) > 1]
    if repeated:
        raise BadRequest(f"{loop.name}: the loop's query has two columns {repeated[0]}: rename one with AS")
    words = frame.select(*map(_word, frame.schema.fields))
    rows = [tuple(row) for row in words.limit(STEPS_MAX + 1).collect()]
    if len(rows) > STEPS_MAX:
        raise BadRequest(
            f"{loop.name}: the loop's query returns more than {STEPS_MAX:,} rows, and each makes a step: add a"
            " condition, or divide the pipeline"
        )
    return LoopRows(query=loop.query, columns=tuple(frame.columns), rows=tuple(sorted(rows, key=_order)))


def _word(field: StructField) -> Column:
    column = f.col(quote_column(field.name))
    if isinstance(field.dataType, _WHOLE):
        return column
    return f.substring(column.cast("string"), 1, VALUE_MAX + 1).alias(field.name)


def _order(row: tuple[str | int | None, ...]) -> list[tuple[bool, str | int]]:
    """Return the key by which rows are sorted: the values of a column have one type, or are NULL."""
    return [(value is None, "" if value is None else value) for value in row]
