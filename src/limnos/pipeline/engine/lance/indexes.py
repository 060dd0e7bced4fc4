# SPDX-License-Identifier: Apache-2.0
"""Indexes of a step's Lance table, built or brought up to date on its staged version.

An index that the table has already gets the new rows; one that is missing, or that the step declares differently now,
is built. A vector index of few rows compares all of them, because there is nothing to train on. Must not know Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow.types as kinds

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import IndexDeclaration, IndexKind

if TYPE_CHECKING:
    import lance

TRAINED_ROWS_MIN: Final = 256
"""The smallest number of rows from which a vector index is trained."""
_PARTITION_ROWS: Final = 4096
_PARTS: Final = (16, 8, 4, 2, 1)
_SCALAR_TYPES: Final = {"BTREE": "BTree", "BITMAP": "Bitmap", "LABEL_LIST": "LabelList"}


def update_indexes(dataset: lance.LanceDataset, indexes: Iterable[IndexDeclaration], *, step: str) -> None:
    """Build the missing indexes of a dataset, and add its new rows to the others. Each change is a version.

    Raises BadRequest for a column that the table lacks, or that cannot have such an index.
    """
    rows = dataset.count_rows()
    existing_types = {each.name: each.index_type for each in dataset.describe_indices()}
    current = []
    for index in indexes:
        _require_column(dataset, index, step=step)
        if index.kind is IndexKind.VECTOR and not rows:
            continue
        if existing_types.get(index.name) == _type_of(index, rows=rows) and _same_metric(dataset, index):
            current.append(index.name)
        else:
            _build(dataset, index, rows=rows, step=step)
    if current:
        dataset.optimize.optimize_indices(index_names=current)


def _require_column(dataset: lance.LanceDataset, index: IndexDeclaration, *, step: str) -> None:
    names = dataset.schema.names
    if index.column not in names:
        raise BadRequest(
            f"Step {step}: `indexes` names {index.column!r}, which the table does not have. It has {', '.join(names)}."
        )
    if index.kind is IndexKind.VECTOR and not kinds.is_fixed_size_list(dataset.schema.field(index.column).type):
        raise BadRequest(
            f"Step {step}: {index.column} is no vector: give its dimension, `vectors: {{{index.column}: 384}}`."
        )


def _type_of(index: IndexDeclaration, *, rows: int) -> str:
    """Return the type of an index, as Lance's library lists it."""
    if index.kind is IndexKind.TEXT:
        return "Inverted"
    if index.kind is IndexKind.VECTOR:
        return "IVF_PQ" if rows >= TRAINED_ROWS_MIN else "IVF_FLAT"
    return _SCALAR_TYPES[str(index.options.get("type", "BTREE"))]


def _same_metric(dataset: lance.LanceDataset, index: IndexDeclaration) -> bool:
    if index.kind is not IndexKind.VECTOR:
        return True
    parts = dataset.stats.index_stats(index.name).get("indices", ())
    return all(str(each.get("metric_type", "")).lower() == _metric(index) for each in parts)


def _metric(index: IndexDeclaration) -> str:
    return str(index.options.get("metric", "l2"))


def _build(dataset: lance.LanceDataset, index: IndexDeclaration, *, rows: int, step: str) -> None:
    try:
        if index.kind is IndexKind.VECTOR:
            dataset.create_index(
                index.column,
                _type_of(index, rows=rows),
                name=index.name,
                metric=_metric(index),
                replace=True,
                **_vector_options(dataset, index, rows=rows),
            )
            return
        options: dict[str, Any] = {key: value for key, value in index.options.items() if key != "type"}
        type_name: Any = "INVERTED" if index.kind is IndexKind.TEXT else str(index.options.get("type", "BTREE"))
        dataset.create_scalar_index(index.column, type_name, name=index.name, replace=True, **options)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"Step {step}: the index of {index.column} cannot be built: {error}") from error


def _vector_options(dataset: lance.LanceDataset, index: IndexDeclaration, *, rows: int) -> dict[str, Any]:
    """Return the number of partitions, by default from the number of rows, and of sub-vectors, from the dimension."""
    if rows < TRAINED_ROWS_MIN:
        return {"num_partitions": 1}
    partitions = index.options.get("partitions") or max(1, min(int(math.sqrt(rows)), rows // _PARTITION_ROWS))
    size = dataset.schema.field(index.column).type.list_size
    parts = index.options.get("sub_vectors") or next(size // part for part in _PARTS if size % part == 0)
    return {"num_partitions": partitions, "num_sub_vectors": parts}
