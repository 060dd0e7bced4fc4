# SPDX-License-Identifier: Apache-2.0
"""Rows in Arrow's format, as bodies of requests of Lance REST."""

from __future__ import annotations

import pyarrow as pa

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a cat", "a dog", "cat and dog"],
        "vector": pa.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], pa.list_(pa.float32(), 2)),
    }
)


def arrow(table: pa.Table | None = None, **options: object) -> bytes:
    """Encode rows as an Arrow stream."""
    table = ROWS if table is None else table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
