# SPDX-License-Identifier: Apache-2.0
"""Replacement of partitions of a Lance table: of the rows that share a partition with a written row, in one version.

A Lance table has no partitions, so the step's `partition` says which rows belong together. Transforms are evaluated by
Iceberg's own functions, so a partition has the rows that it has in an Iceberg table. Must not know steps in progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from limnos.model.errors import BadRequest
from limnos.names import engine
from limnos.pipeline.engine.changes import ddl, fit_frame
from limnos.pipeline.engine.connection import server_catalogs
from limnos.pipeline.engine.lance.deletions import delete_rows, published_rows
from limnos.pipeline.engine.lance.fragments import WrittenFragments, write_rows
from limnos.pipeline.engine.layout import PartitionTerm, partition_term
from limnos.pipeline.engine.staging import staged_rows
from limnos.spark.lance.reading import ADDRESS
from limnos.spark.lance.types import spark_schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.engine.lance.tables import LanceTarget

_WRITTEN, _PUBLISHED = "_limnos_written_", "_limnos_published_"
_COMPOUND: Final = (ArrayType, MapType, StructType, VariantType)


def require_partition(step: StepDeclaration, columns: StructType) -> tuple[PartitionTerm, ...]:
    """Return the terms of the step's partitions. Raises BadRequest if there are none, and for a column that the rows
    lack, or whose values are no single values.
    """
    if not step.partition:
        raise BadRequest(
            f"Step {step.name}: `partitions` replaces partitions, and none are declared. Write `partition:`."
        )
    terms = tuple(map(partition_term, step.partition))
    for term in terms:
        name = ".".join(term.column)
        kind = _type_at(columns, term.column)
        if kind is None:
            raise BadRequest(
                f"Step {step.name}: `partition` names {name!r}, which the query does not return. It returns"
                f" {', '.join(columns.names)}."
            )
        if isinstance(kind, _COMPOUND):
            raise BadRequest(
                f"Step {step.name}: `partition` names {name!r}, which is {ddl(kind)}: name a column of single values."
            )
    return terms


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
        written = write_rows(source, target)
        if target.table.base is None:
            check()
            target.table.overwrite(target.schema, written.fragments)
        elif written.fragments:
            old = published_rows(source.sparkSession, step.table, target=target)
            places = _partition_values(step, old, terms=terms, prefix=_PUBLISHED, further=f.col(ADDRESS))
            deleted = delete_rows(places.join(touched.distinct(), _same(terms), "left_semi"), target=target)
            check()
            target.table.update(written.fragments, updated=deleted.updated, removed=deleted.removed)
        return written


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


def _type_at(columns: StructType, path: tuple[str, ...]) -> DataType | None:
    """Return the type of a column or of a field in a struct, by names without regard to case; None if there is none."""
    kind: DataType = columns
    for part in path:
        fields = kind.fields if isinstance(kind, StructType) else []
        field = next((each for each in fields if each.name.lower() == part.lower()), None)
        if field is None:
            return None
        kind = field.dataType
    return kind
