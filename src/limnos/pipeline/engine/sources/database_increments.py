# SPDX-License-Identifier: Apache-2.0
"""New rows of a database's table, by a cursor column that grows with each change, such as `updated_at`.

A run pins the column's highest value when it starts, and reads no rows above it. An increment has the rows from the
published value on, and those before it by the declared lateness, because a transaction may commit later than one with
a higher value. So rows are read again, and the step writes by key. A mark is read back from a table's checkpoint, which
every writer of that table can write. Must not know connections.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBERS: Final = (ByteType, ShortType, IntegerType, LongType, DecimalType)
_LATENESS: Final = re.compile(r"(\d{1,15}) ?([a-z]*)")
_UNITS: Final = {"s": "SECOND", "m": "MINUTE", "h": "HOUR", "d": "DAY", "w": "WEEK"}
MICROSECONDS_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorMark:
    """The highest value of a cursor column, in the pin of a run or in a checkpoint.

    `value` is None if the table has no rows. Numbers and dates are texts as Spark casts them, times with a zone are
    microseconds since 1970. `recent` is the number of rows within the lateness: it tells of rows that came late.
    """

    column: str
    type: str
    """The column's type in Spark, of times with the session's zone, by which databases without zones are read."""
    value: str | None
    recent: int = 0

    def text(self) -> str:
        """Return the form for a pin's fingerprint."""
        entries = {"cursor": self.column, "type": self.type, "value": self.value, "recent": self.recent}
        return json.dumps(entries, separators=(",", ":"), sort_keys=True)


def read_mark(text: str | None) -> CursorMark | None:
    """Parse a fingerprint; None without one, and for any other form."""
    try:
        entries = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(entries, dict):
        return None
    column, kind, value = (entries.get(name) for name in ("cursor", "type", "value"))
    if not isinstance(column, str) or not isinstance(kind, str) or not (value is None or isinstance(value, str)):
        return None
    if value is not None and not _is_valid(value, kind):
        return None
    recent = entries.get("recent")
    return CursorMark(column=column, type=kind, value=value, recent=recent if isinstance(recent, int) else 0)


def _is_valid(value: str, kind: str) -> bool:
    """Return whether a text is a value of a cursor's type."""
    try:
        if kind == "date":
            date.fromisoformat(value)
        elif kind == "timestamp_ntz":
            datetime.fromisoformat(value)
        elif kind.startswith("timestamp"):
            return abs(int(value)) <= MICROSECONDS_MAX
        else:
            return Decimal(value).is_finite()
    except (ValueError, InvalidOperation):
        return False
    return True


def cursor_problem(kind: DataType, lateness: str | None) -> str | None:
    """Return why a column cannot be a cursor, or cannot have this lateness; None if it can."""
    if not isinstance(kind, (*_NUMBERS, DateType, TimestampType, TimestampNTZType)):
        return f"is {kind.simpleString()}: choose a whole number, a date or a time that grows with each change"
    match = _LATENESS.fullmatch(lateness) if lateness is not None else None
    if match is None:
        return None
    if isinstance(kind, _NUMBERS) and match[2]:
        return f"is a number, and `lateness: {lateness}` a time: write a number, as `lateness: 1000`"
    if not isinstance(kind, _NUMBERS) and not match[2]:
        return f"is a time, and `lateness: {lateness}` a number: write a time, as `lateness: 10 minutes`"
    if isinstance(kind, DateType) and match[2][0] not in "dw":
        return f"is a date: write whole days, as `lateness: 1 day`, and not `lateness: {lateness}`"
    return None


def type_text(kind: DataType, *, zone: str) -> str:
    """Return the type as a mark has it."""
    return f"timestamp of {zone}" if isinstance(kind, TimestampType) else kind.simpleString()


def value_expression(kind: DataType) -> str:
    """Return the SQL expression for the text of the column `high`."""
    return "CAST(unix_micros(high) AS STRING)" if isinstance(kind, TimestampType) else "CAST(high AS STRING)"


def up_to(frame: DataFrame, mark: CursorMark) -> Column:
    """Return the condition for the rows that a run may read."""
    return F.lit(False) if mark.value is None else _cursor(frame, mark) <= _literal(frame, mark)


def from_mark(frame: DataFrame, mark: CursorMark, *, lateness: str | None) -> Column:
    """Return the condition for rows that are new since a mark, and for those before it by the lateness. Both sides have
    the column's type, so that the database evaluates it.
    """
    match = _LATENESS.fullmatch(lateness or "")
    if match is not None and not match[2]:
        mark = replace(mark, value=str(Decimal(mark.value or "0") - Decimal(match[1])))
    bound = _literal(frame, mark)
    if match is not None and match[2]:
        bound = bound - F.expr(f"INTERVAL {int(match[1])} {_UNITS[match[2][0]]}")
    return _cursor(frame, mark) >= bound


def change_of(before: CursorMark | None, now: CursorMark) -> str | None:
    """Return why an increment cannot continue from a checkpoint's mark; None if it can."""
    if before is None:
        return "the published table has no mark of its cursor"
    if (before.column.lower(), before.type) != (now.column.lower(), now.type):
        return f"the published rows were read by the cursor {before.column} ({before.type})"
    if before.value is not None and (now.value is None or _order(now.value, now) < _order(before.value, before)):
        newest = "no rows" if now.value is None else f"a lower newest {now.column} than before"
        return f"the database has {newest}: it was restored, or rows were removed"
    return None


def _order(value: str, mark: CursorMark) -> Decimal:
    """Return a number that compares as the database's values do."""
    if mark.type not in ("date", "timestamp_ntz"):
        return Decimal(value)
    since = datetime.fromisoformat(value) - datetime(1970, 1, 1)  # noqa: DTZ001 - values without a zone
    return Decimal(since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds)


def _cursor(frame: DataFrame, mark: CursorMark) -> Column:
    return frame["`" + mark.column.replace("`", "``") + "`"]


def _literal(frame: DataFrame, mark: CursorMark) -> Column:
    field = next(each for each in frame.schema.fields if each.name == mark.column)
    if isinstance(field.dataType, TimestampType):
        return F.timestamp_micros(F.lit(int(mark.value or "0")))
    return F.lit(mark.value).cast(field.dataType)
