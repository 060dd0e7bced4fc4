# SPDX-License-Identifier: Apache-2.0
"""The terms by which a step replaces partitions of a Lance table, checked against the columns of its rows.

Must not know the table, which is not partitioned itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from limnos.model.errors import BadRequest
from limnos.pipeline.engine.changes import ddl
from limnos.pipeline.engine.layout import PartitionTerm, partition_term

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from limnos.pipeline.declaration import StepDeclaration

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
