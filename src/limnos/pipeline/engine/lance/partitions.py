# SPDX-License-Identifier: Apache-2.0
"""Replacement of partitions of a Lance table: of the rows that share a partition with a written row, in one version.

A Lance table has no partitions, so the step's `partition` says which rows belong together. Transforms are evaluated by
Iceberg's own functions, so a partition has the rows that it has in an Iceberg table. Must not know steps in progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from limnos.model.errors import BadRequest
from limnos.names import engine
from limnos.pipeline.engine.changes import fit_frame
from limnos.pipeline.engine.connection import server_catalogs
from limnos.pipeline.engine.lance.deletions import delete_rows, published_rows
from limnos.pipeline.engine.lance.fragments import WrittenFragments, write_rows
from limnos.pipeline.engine.lance.partition_terms import require_partition
from limnos.pipeline.engine.staging import staged_rows
from limnos.spark.lance.reading import ADDRESS
from limnos.spark.lance.types import spark_schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.engine.lance.tables import LanceTarget
    from limnos.pipeline.engine.layout import PartitionTerm

_WRITTEN, _PUBLISHED = "_limnos_written_", "_limnos_published_"


def replace_partitions(
    step: StepDeclaration, frame: DataFrame, *, target: LanceTarget, check: Callable[[], None]
) -> WrittenFragments:
    """Write the rows in place of those of the same partitions, and stage a version with the result. Without rows
    nothing is staged. `check` is called before the version is staged.

    Raises BadRequest for a transform that the type of its column does not have, before anything is written.
    """
    schema = spark_schema_of(target.schema)
    terms = require_partition(step, schema)
    with staged_rows(fit_frame(frame, schema)) as source:
        touched = _partition_values(step, source, terms=terms, prefix=_WRITTEN)
        written_fragments = write_rows(source, target)
        if target.table.base is None:
            check()
            target.table.overwrite(target.schema, written_fragments.fragments)
        elif written_fragments.fragments:
            old = published_rows(source.sparkSession, step.table, target=target)
            partition_values = _partition_values(step, old, terms=terms, prefix=_PUBLISHED, further=f.col(ADDRESS))
            deleted = delete_rows(partition_values.join(touched.distinct(), _same(terms), "left_semi"), target=target)
            check()
            target.table.update(written_fragments.fragments, updated=deleted.updated, removed=deleted.removed)
        return written_fragments


def _same(terms: tuple[PartitionTerm, ...]) -> Column:
    """Return the condition that two rows are of the same partition. NULLs are equal, and NaNs."""
    pairs = [f"{_PUBLISHED}{number} <=> {_WRITTEN}{number}" for number in range(len(terms))]
    return f.expr(" AND ".join(pairs))


def _partition_values(
    step: StepDeclaration,
    frame: DataFrame,
    *,
    terms: tuple[PartitionTerm, ...],
    prefix: str,
    further: Column | None = None,
) -> DataFrame:
    """Return the values of the terms for each row, in columns with the prefix and the term's number."""
    columns = [
        f.expr(_term_sql(frame.sparkSession, term)).alias(f"{prefix}{number}") for number, term in enumerate(terms)
    ]
    try:
        return frame.select(*columns, *(() if further is None else (further,)))
    except AnalysisException as error:
        reason = str(error).partition(" SQLSTATE")[0].splitlines()[0]
        raise BadRequest(
            f"Step {step.name}: `partition` {', '.join(step.partition)} does not fit the types of its columns: {reason}"
        ) from error


def _term_sql(spark: SparkSession, term: PartitionTerm) -> str:
    if term.transform == "identity":
        return term.sql()
    catalog = next(name for name, _ in server_catalogs(spark))
    return f"{engine.render_spark((catalog, 'system'))}.{term.sql()}"
