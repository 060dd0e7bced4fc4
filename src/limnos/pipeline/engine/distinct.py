# SPDX-License-Identifier: Apache-2.0
"""Exact counts of rows with a key and of distinct keys, by bitmaps.

Serves the keys of merges and `unique` rules. Must not know the use of the counts. Grouping by the keys themselves would
shuffle every key between tasks. Instead, integers and dates that are close to each other share a group, and their low
bits select a bit of its 64-bit bitmap. Dense keys need up to 64 times fewer groups, scattered keys as many as there are
keys. Expressions are texts of SQL: each call of a function would cost three calls of the Java machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ByteType, DataType, DateType, IntegerType, LongType, ShortType

from limnos.pipeline.engine.naming import quote_identifier

_BITS = 6
"""The number of low bits that select a bit of a 64-bit bitmap."""
_WHOLE = (ByteType, ShortType, IntegerType, LongType, DateType)
_ROWS, _KNOWN, _SEEN, _KEY = "_limnos_rows", "_limnos_known", "_limnos_seen", "_limnos_key_{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCounts:
    """The counts of a DataFrame: all `rows`, rows without NULL in the key (`known`), and `distinct` keys."""

    rows: int
    known: int
    distinct: int

    @property
    def are_keys(self) -> bool:
        """Whether all rows have different keys without NULL."""
        return self.rows == self.distinct


def key_counts(frame: DataFrame, keys: Sequence[str], *, also: Sequence[str] = ()) -> KeyCounts:
    """Count rows and keys of `frame`. A row with NULL in a column of `also` counts as a row without a key."""
    types = {field.name.lower(): field.dataType for field in frame.schema.fields}
    position, blocks = _divide_keys([(quote_identifier((key,)), types[key.lower()]) for key in keys])
    is_known = " AND ".join(f"{quote_identifier((each,))} IS NOT NULL" for each in (*keys, *also))
    seen_bits = f"CASE WHEN {is_known} THEN shiftleft(1L, CAST({position} AS INT)) END"
    groups = [f.expr(f"{block} AS {_KEY.format(number)}") for number, block in enumerate(blocks)]
    counted = frame.groupBy(*groups).agg(
        f.expr(f"count(1) AS {_ROWS}"),
        f.expr(f"count({seen_bits}) AS {_KNOWN}"),
        f.expr(f"bit_or({seen_bits}) AS {_SEEN}"),
    )
    totals = counted.selectExpr(f"sum({_ROWS})", f"sum({_KNOWN})", f"sum(bit_count({_SEEN}))")
    rows, known, distinct = totals.collect()[0]
    return KeyCounts(rows=rows or 0, known=known or 0, distinct=distinct or 0)


def _divide_keys(keys: Sequence[tuple[str, DataType]]) -> tuple[str, list[str]]:
    """Split keys, given as SQL, into a bit position, from the low bits of integers and dates, and the expressions to
    group by.
    """
    whole = [key for key, kind in keys if isinstance(kind, _WHOLE)][:_BITS]
    width = _BITS // len(whole) if whole else 0
    blocks: list[str] = []
    positions: list[str] = []
    for key, kind in keys:
        if isinstance(kind, _WHOLE) and len(positions) < len(whole):
            number = f"CAST({f'unix_date({key})' if isinstance(kind, DateType) else key} AS BIGINT)"
            positions.append(f"shiftleft({number} & {(1 << width) - 1}L, {width * len(positions)})")
            blocks.append(f"shiftright({number}, {width})")
        else:
            blocks.append(key)
    return " | ".join(positions) or "0", blocks
