# SPDX-License-Identifier: Apache-2.0
"""Audit records as Parquet files for Spark and other engines, in one directory per day.

Pure: takes records, returns bytes and names. Must not know stores. pyarrow is imported only when a file is written.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from limnos.model.audit import AuditRecord
from limnos.model.errors import UnsupportedOperation
from limnos.model.extras import missing_part

_TEXTS: Final = (
    "user",
    "outcome",
    "change",
    "action",
    "kind",
    "path",
    "new_path",
    "detail",
    "rights",
    "protocol",
    "operation",
    "request_id",
    "client",
    "peer",
    "credential",
)
_NUMBERS: Final = ("id", "metalake_id", "user_id", "object_id", "status", "zone", "revision", "ordinal")
DAY_MS: Final = 86_400_000


def file_of(lines: Sequence[AuditRecord]) -> bytes:
    """Encode records as one Parquet file. Raises UnsupportedOperation if pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UnsupportedOperation(missing_part("Parquet needs", ("audit",))) from None
    columns = {name: pa.array([getattr(each, name) for each in lines], pa.int64()) for name in _NUMBERS}
    columns["at"] = pa.array([each.at for each in lines], pa.timestamp("ms", tz="UTC"))
    columns |= {name: pa.array([getattr(each, name) for each in lines], pa.string()) for name in _TEXTS}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()


def name_of(day: date, lines: Sequence[AuditRecord]) -> str:
    """Return the file name for records of one day.

    The name has the IDs of the first and the last record, so every writer of the same records chooses the same name.
    """
    return f"day={day.isoformat()}/audit-{lines[0].id:016d}-{lines[-1].id:016d}.parquet"


def day_of(at_ms: int) -> date:
    """Return the UTC day of a time in milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def begin_of(day: date) -> int:
    """Return the beginning of a day, in milliseconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def next_day(day: date) -> date:
    """Return the day after `day`, the exclusive end of the day's range."""
    return day + timedelta(days=1)
