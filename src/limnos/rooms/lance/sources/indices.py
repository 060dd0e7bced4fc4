# SPDX-License-Identifier: Apache-2.0
"""Creates, lists and drops indices of a Lance table.

Must not know the wire protocol. Runs in a worker process.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.rooms.lance.sources import questions
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.opening import open_for_rows, open_for_writing
from limnos.rooms.lance.sources.writing import write_result

if TYPE_CHECKING:
    import lance

READY: Final = "SUCCEEDED"
VECTOR: Final = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")
_PARTS: Final = (16, 8, 4, 2, 1)
"""The dimensions per sub-vector: the first value that divides the length of the vectors is used."""
_PARTITION_ROWS: Final = 4096


def create(create_index: questions.CreateIndex) -> questions.LanceWriteResult:
    """Create a scalar, vector or full-text index on a column, as one commit. Raises NotFound for the column,
    AlreadyExists, BadRequest for an unknown type or invalid options.
    """
    dataset = open_for_writing(create_index)
    kind = create_index.index_type.upper()
    name = create_index.name or f"{create_index.column}_idx"
    if not create_index.replace and any(each.name == name for each in dataset.describe_indices()):
        raise AlreadyExists(
            f"An index {name} exists already: drop it first, or give the new one another name", kind="index"
        )
    field = _field_of(dataset, create_index.column)
    if kind == "VECTOR":
        kind = "IVF_PQ"
    options: dict[str, Any] = dict(create_index.details)
    with translate_library_errors(create_index.location):
        if kind in VECTOR:
            dataset.create_index(
                create_index.column,
                kind,
                name=name,
                replace=create_index.replace,
                **_default_options(dataset, field, kind=kind, options=options),
            )
        else:
            options.pop("metric", None)
            index: Any = kind
            dataset.create_scalar_index(create_index.column, index, name=name, replace=create_index.replace, **options)
        return write_result(dataset)


def _field_of(dataset: lance.LanceDataset, column: str) -> pa.Field | None:
    """Return the field of a top-level column; None for the path of a nested field. Raises NotFound."""
    if column in dataset.schema.names:
        return dataset.schema.field(column)
    if column.split(".", maxsplit=1)[0] not in dataset.schema.names:
        raise NotFound(f"No field named {column}: the columns are {', '.join(dataset.schema.names)}", kind="column")
    return None


def _default_options(
    dataset: lance.LanceDataset, field: pa.Field | None, *, kind: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Add defaults for a vector index: the number of partitions, computed from the row count, and the number of
    sub-vectors, computed from the vectors' dimension.
    """
    if not options.get("num_partitions") and not options.get("target_partition_size"):
        options["num_partitions"] = max(
            1, min(int(math.sqrt(dataset.count_rows())), dataset.count_rows() // _PARTITION_ROWS)
        )
    if kind.endswith("PQ") and not options.get("num_sub_vectors"):
        size = _length_of(field)
        options["num_sub_vectors"] = next(size // part for part in _PARTS if size % part == 0)
    return options


def _length_of(field: pa.Field | None) -> int:
    kind = None if field is None else field.type
    if kind is not None and pa.types.is_list(kind):
        kind = kind.value_type
    if kind is None or not pa.types.is_fixed_size_list(kind):
        raise BadRequest("An index on vectors needs a column of lists of one length: name such a column")
    return int(kind.list_size)


def drop(index: questions.DropIndex) -> questions.LanceWriteResult:
    """Drop an index by name, as one commit. Raises NotFound if the table has no such index."""
    dataset = open_for_writing(index)
    with translate_library_errors(index.location):
        dataset.drop_index(index.name)
        return write_result(dataset)


def list_indices(indices: questions.ListIndices) -> list[questions.LanceIndex]:
    """Return all indices of the table at the requested version, sorted by name."""
    dataset = open_for_rows(indices)
    with translate_library_errors(indices.location):
        rows = dataset.count_rows()
        return sorted(
            (_index_info(each, rows=rows) for each in dataset.describe_indices()), key=lambda each: each.index_name
        )


def _index_info(index: Any, *, rows: int) -> questions.LanceIndex:  # noqa: ANN401 - the library's
    segments = list(index.segments)
    newest = max((each.created_at for each in segments if each.created_at is not None), default=None)
    return questions.LanceIndex(
        index_name=index.name,
        index_uuid=str(segments[0].uuid) if segments else "",
        columns=list(index.field_names),
        status=READY,
        index_type=index.index_type,
        type_url=index.type_url,
        num_indexed_rows=index.num_rows_indexed,
        num_unindexed_rows=max(0, rows - index.num_rows_indexed),
        size_bytes=index.total_size_bytes or 0,
        num_segments=len(segments),
        created_at=None if newest is None else newest.isoformat(),
        index_version=max((each.index_version for each in segments), default=0),
        index_details=json.dumps(index.details, default=str),
    )


def stats(index_stats: questions.IndexStats) -> questions.IndexCoverage:
    """Return the counts of indexed and unindexed rows of an index. Raises NotFound."""
    dataset = open_for_rows(index_stats)
    with translate_library_errors(index_stats.location):
        index_statistics: dict[str, Any] = dataset.index_statistics(index_stats.name)
    parts = index_statistics.get("indices") or [{}]
    return questions.IndexCoverage(
        index_type=index_statistics["index_type"],
        num_indexed_rows=index_statistics["num_indexed_rows"],
        num_unindexed_rows=index_statistics["num_unindexed_rows"],
        num_indices=index_statistics["num_indices"],
        distance_type=parts[0].get("metric_type"),
    )
