# SPDX-License-Identifier: Apache-2.0
"""Queries rows of a Lance table and sends them as an Arrow file while they are read.

Must not know the wire protocol. Runs in a worker process; only a few batches are in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance.dataset import ColumnOrdering

from limnos.model.errors import BadRequest, NotFound
from limnos.rooms.lance.sources import full_text_queries, rank_fusion
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.opening import open_for_rows
from limnos.sources.wire import MORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import lance

    from limnos.rooms.lance.sources.questions import Explain, Query

PIECE_BYTES: Final = 1 << 20
BATCH_ROWS: Final = 1024
READAHEAD_BYTES: Final = 64 << 20
DEFAULT_COLUMN: Final = "vector"
QUERY_INDEX: Final = "query_index"
"""The column with the index of the vector that a row was found by."""


class ArrowSink:
    """A write-only file-like object that sends the written bytes to the server in chunks."""

    closed = False

    def __init__(self, send: Callable[[list[bytes]], None]) -> None:
        self._send = send
        self._held: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return True, as Python's file protocol requires for pyarrow."""
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - whatever pyarrow has bytes in
        """Append bytes; sends a chunk when enough are buffered."""
        piece = bytes(data)
        self._held.append(piece)
        self._size += len(piece)
        if self._size >= PIECE_BYTES:
            self.flush()
        return len(piece)

    def flush(self) -> None:
        """Send the buffered bytes."""
        if self._held:
            self._send([MORE, b"".join(self._held)])
            self._held, self._size = [], 0

    def close(self) -> None:
        """Send the remaining buffered bytes."""
        self.flush()
        self.closed = True


def query(request: Query, send: Callable[[list[bytes]], None]) -> None:
    """Send the rows of a query as an Arrow file. Raises NotFound (table, version, tag, branch, column), BadRequest for
    an invalid query.
    """
    dataset = open_for_rows(request)
    with translate_library_errors(request.location):
        schema, batches = _rows(dataset, request)
        sink = ArrowSink(send)
        first = next(batches, None)  # many errors of a query occur here, while they can still be reported
        with pa.ipc.new_file(sink, schema) as writer:
            if first is not None:
                writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        sink.flush()


def explain(request: Explain) -> str:
    """Return a query's plan; with `runs`, executes the query and adds metrics to the plan. Raises as `query` does."""
    dataset = open_for_rows(request.query)
    with translate_library_errors(request.location):
        return "\n".join(
            each.analyze_plan() if request.runs else each.explain_plan(request.verbose)
            for each in _scanners(dataset, request.query)
        )


def _rows(dataset: lance.LanceDataset, request: Query) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    scanners = _scanners(dataset, request)
    if len(scanners) == 1:
        reader = scanners[0].to_reader()
        return reader.schema, iter(reader)
    if request.text is None:
        return _with_index(scanners)
    tables = [each.to_table() for each in scanners]
    merged_rows = rank_fusion.merge_by_rank(
        tables, limit=request.limit, offset=request.offset, with_row_id=request.with_row_id
    )
    return merged_rows.schema, iter(merged_rows.to_batches(max_chunksize=BATCH_ROWS))


def _with_index(scanners: list[lance.LanceScanner]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows of several searches one after the other, with the index of the search in `QUERY_INDEX`."""
    first = scanners[0].to_reader()
    schema = first.schema.insert(0, pa.field(QUERY_INDEX, pa.int32(), nullable=False))

    def batches() -> Iterator[pa.RecordBatch]:
        for index, scanner in enumerate(scanners):
            for batch in scanner.to_reader() if index else first:
                column = pa.array([index] * batch.num_rows, pa.int32())
                yield pa.RecordBatch.from_arrays([column, *batch.columns], schema=schema)

    return schema, batches()


def _scanners(dataset: lance.LanceDataset, request: Query) -> list[lance.LanceScanner]:
    """Return the searches of a query: one scanner for the vectors, or for each of them, and one for the full-text
    query; a single one for a query without a search. Raises BadRequest for a hybrid search with several vectors or with
    an order.
    """
    common = _common_arguments(request)
    text = None
    if request.text is not None:
        text = full_text_queries.query_of(request.text, request.text_columns, indexed=lambda: _text_columns(dataset))
    if not request.vectors:
        return [dataset.scanner(full_text_query=text, **common)]
    column = _vector_column(dataset, request)
    searches: list[Any] = request.vectors
    if len(searches) > 1 and _holds_several(dataset.schema, column):
        searches = [searches]
    if text is None:
        return [_nearest(dataset, request, column=column, vector=each, common=common) for each in searches]
    if len(searches) > 1:
        raise BadRequest("A hybrid search may have at most one vector: send one request per vector")
    if request.order_by:
        raise BadRequest("A hybrid search orders its rows by rank: leave order_by out")
    common |= {"with_row_id": True, "offset": None, "limit": rank_fusion.search_depth(request.limit, request.offset)}
    return [
        _nearest(dataset, request, column=column, vector=searches[0], common=common),
        dataset.scanner(full_text_query=text, **common),
    ]


def _text_columns(dataset: lance.LanceDataset) -> list[str]:
    """Return the columns with a full-text index, in the order of their indices' names."""
    indices = [each for each in dataset.describe_indices() if each.index_type == "Inverted"]
    return list(dict.fromkeys(name for each in indices for name in each.field_names))


def _common_arguments(request: Query) -> dict[str, Any]:
    columns: list[str] | dict[str, str] | None = request.aliases or request.columns
    return {
        "columns": columns,
        "filter": request.filter or None,
        "prefilter": request.prefilter,
        "limit": request.limit,
        "offset": request.offset or None,
        "with_row_id": request.with_row_id,
        "fast_search": request.fast_search or None,
        "batch_size": BATCH_ROWS,
        "io_buffer_size": READAHEAD_BYTES,
        "order_by": (
            [ColumnOrdering(each.column_name, each.ascending, each.nulls_first) for each in request.order_by] or None
        ),
    }


def _nearest(
    dataset: lance.LanceDataset, request: Query, *, column: str, vector: object, common: dict[str, Any]
) -> lance.LanceScanner:
    """Return a scanner for the rows nearest to a vector, or to several where each row has several."""
    depth = rank_fusion.search_depth(common["limit"], common["offset"] or 0)
    nearest = {"column": column, "k": depth, **request.nearest, "q": vector}
    bounds = request.nearest.get("distance_range")
    if isinstance(bounds, list):
        nearest["distance_range"] = tuple(bounds)
    return dataset.scanner(nearest=nearest, **common)


def _vector_column(dataset: lance.LanceDataset, request: Query) -> str:
    column = request.vector_column or _only_vector(dataset)
    if "." not in column and column not in dataset.schema.names:
        raise NotFound(f"No field named {column}: the columns are {', '.join(dataset.schema.names)}", kind="column")
    return column


def _only_vector(dataset: lance.LanceDataset) -> str:
    """Return `DEFAULT_COLUMN` if the table has that column, else the name of its only vector column. Raises BadRequest
    if it has no vector column, or several.
    """
    if DEFAULT_COLUMN in dataset.schema.names:
        return DEFAULT_COLUMN
    vectors = [field.name for field in dataset.schema if _holds_vectors(field.type)]
    if len(vectors) == 1:
        return str(vectors[0])
    raise BadRequest(
        f"The table has {'several columns' if vectors else 'no column'} of"
        f" vectors{': ' if vectors else ''}{', '.join(vectors)}: name one as vector_column"
    )


def _holds_vectors(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        kind = kind.value_type
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))


def _holds_several(schema: pa.Schema, column: str) -> bool:
    """Return whether each row has several vectors in a column: they are compared with all vectors of a query at
    once.
    """
    name, *rest = [column] if column in schema.names else column.split(".")
    if name not in schema.names:
        return False
    kind = schema.field(name).type
    for part in rest:
        kind = kind.field(part).type
    return bool(pa.types.is_list(kind))
