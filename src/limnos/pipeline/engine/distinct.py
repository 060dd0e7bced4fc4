# SPDX-License-Identifier: Apache-2.0
"""Exact counts of rows with a key and of distinct keys, by bitmaps.

Serves the keys of merges and `unique` rules. Must not know the use of the counts. Grouping by the keys themselves would
shuffle every key between tasks. Instead, integers and dates that are close to each other share a group, and their low
bits select a bit of its 64-bit bitmap. Dense keys need up to 64 times fewer groups, scattered keys as many as there are
keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
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
    key_columns, blocks = _divide_keys([(f.col(quote_identifier((key,))), types[key.lower()]) for key in keys])
    is_known = reduce(and_, [f.col(quote_identifier((each,))).isNotNull() for each in (*keys, *also)])
    seen_bits = f.when(is_known, _bit(key_columns))
    counted = frame.groupBy(*[block.alias(_KEY.format(number)) for number, block in enumerate(blocks)]).agg(
        f.count(f.lit(1)).alias(_ROWS), f.count(seen_bits).alias(_KNOWN), f.bit_or(seen_bits).alias(_SEEN)
    )
    totals = (f.sum(_ROWS), f.sum(_KNOWN), f.sum(f.bit_count(_SEEN)))
    rows, known, distinct = counted.agg(*totals).collect()[0]
    return KeyCounts(rows=rows or 0, known=known or 0, distinct=distinct or 0)


def _bit(place: Column) -> Column:
    return f.call_function("shiftleft", f.lit(1).cast("long"), place.cast("int"))


def _divide_keys(keys: Sequence[tuple[Column, DataType]]) -> tuple[Column, list[Column]]:
    """Split keys into a bit position, from the low bits of integers and dates, and the columns to group by."""
    whole = [key for key, kind in keys if isinstance(kind, _WHOLE)][:_BITS]
    width = _BITS // len(whole) if whole else 0
    blocks: list[Column] = []
    key_columns: list[Column] = []
    for key, kind in keys:
        if isinstance(kind, _WHOLE) and len(key_columns) < len(whole):
            number = (f.unix_date(key) if isinstance(kind, DateType) else key).cast("long")
            low = number.bitwiseAND(f.lit((1 << width) - 1))
            key_columns.append(f.shiftleft(low, width * len(key_columns)))
            blocks.append(f.shiftright(number, width))
        else:
            blocks.append(key)
    return reduce(lambda one, other: one.bitwiseOR(other), key_columns, f.lit(0)), blocks
