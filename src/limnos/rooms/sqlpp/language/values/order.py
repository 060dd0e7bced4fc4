# SPDX-License-Identifier: Apache-2.0
"""The total order of all values, as byte keys: keys compare as ORDER BY does, and values with equal keys are one group.

Must not know comparison operators: `=` and `<` may return NULL, an order cannot. The types are ordered: MISSING, NULL,
numbers, binary, string, boolean, datetime, date, time, duration, array, multiset, object, year-month-duration,
day-time-duration, uuid, interval, point, point3d, line, rectangle, circle, polygon, geometry.

This is AsterixDB's order with four exceptions, where that is inconsistent or differs from other engines. Numbers of all
types are adjacent (there, binary is between bigint and double) and compare exactly (there, as doubles). Strings compare
by code point, as in Spark. Multisets compare by their sorted items (there, by their bytes).
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Iterator

from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    SHAPES,
    Bag,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Geometry,
    Interval,
    Time,
    Value,
    YearMonthDuration,
    type_name,
)

DEPTH_MAX = 1000
"""The maximum nesting depth of a value that has a key."""

_MISSING, _NULL, _NUMBER, _BINARY, _STRING, _BOOLEAN, _DATETIME, _DATE, _TIME, _DURATION = range(1, 11)
_ARRAY, _MULTISET, _OBJECT, _YEAR_MONTH, _DAY_TIME, _UUID, _INTERVAL, _SHAPE = range(11, 19)

_END, _NEXT = b"\x00", b"\x01"
_NAN = b"\xff" * 8
_SIGN = 1 << 63


class _OpenValue:
    """A collection whose key is being built: its parts, each after a separator byte, then a terminator byte that sorts
    before the separator.
    """

    __slots__ = ("mark", "parts", "rank", "rest")

    def __init__(self, rank: int, rest: Iterator[tuple[bytes, Value]]) -> None:
        self.rank = rank
        self.rest = rest
        self.mark = b""
        self.parts: list[bytes] = []

    def close(self) -> bytes:
        """Return the complete sort key, with the terminator after the last part."""
        parts = sorted(self.parts) if self.rank == _MULTISET else self.parts
        return bytes((self.rank,)) + b"".join(parts) + _END


def key(value: Value) -> bytes:
    """Encode a value as a sort key. No key is a prefix of another.

    Raises SqlppError if the value is nested deeper than DEPTH_MAX.
    """
    if type(value) is str:
        return bytes((_STRING,)) + _text(value.encode("utf-8", "surrogatepass"))
    stack: list[_OpenValue] = []
    while True:
        opened = _open_collection(value)
        if opened is not None:
            stack.append(opened)
            if len(stack) > DEPTH_MAX:
                raise compilation(f"A value is nested more than {DEPTH_MAX} levels deep")
        done = _flat(value) if opened is None else None
        while stack:
            top = stack[-1]
            if done is not None:
                top.parts.append(top.mark + done)
            following = next(top.rest, None)
            if following is not None:
                top.mark, value = following
                break
            done = stack.pop().close()
        else:
            return done or b""


def _open_collection(value: Value) -> _OpenValue | None:
    """Return the key builder for an array, multiset or object; None for another value."""
    if isinstance(value, dict):
        fields = sorted((name.encode("utf-8", "surrogatepass"), name) for name in value)
        return _OpenValue(_OBJECT, ((_NEXT + _text(spelled), value[name]) for spelled, name in fields))
    if type(value) is tuple:
        return _OpenValue(_ARRAY, ((_NEXT, item) for item in value))
    return _OpenValue(_MULTISET, ((_NEXT, item) for item in value)) if isinstance(value, Bag) else None


def _flat(value: Value) -> bytes:
    """Return the sort key of a value that is neither an array, a multiset nor an object."""
    if value is MISSING:
        return bytes((_MISSING,))
    if value is None:
        return bytes((_NULL,))
    if isinstance(value, bool):
        return bytes((_BOOLEAN, value))
    if isinstance(value, (int, float)):
        return bytes((_NUMBER,)) + _number(value)
    if isinstance(value, str):
        return bytes((_STRING,)) + _text(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return bytes((_BINARY,)) + _text(value)
    if isinstance(value, uuid.UUID):
        return bytes((_UUID,)) + value.bytes
    return _temporal(value)


def _temporal(value: Value) -> bytes:
    """Return the sort key of a date, time or duration. Raises TypeError for another value."""
    if isinstance(value, DateTime):
        return bytes((_DATETIME,)) + _integer_key(value.ms)
    if isinstance(value, Date):
        return bytes((_DATE,)) + _integer_key(value.days)
    if isinstance(value, Time):
        return bytes((_TIME,)) + _integer_key(value.ms)
    if isinstance(value, Duration):
        return bytes((_DURATION,)) + _integer_key(value.months) + _integer_key(value.ms)
    if isinstance(value, YearMonthDuration):
        return bytes((_YEAR_MONTH,)) + _integer_key(value.months)
    if isinstance(value, DayTimeDuration):
        return bytes((_DAY_TIME,)) + _integer_key(value.ms)
    if isinstance(value, Interval):
        return bytes((_INTERVAL,)) + _temporal(value.start) + _temporal(value.end)
    if isinstance(value, SHAPES):
        rank = _SHAPE + SHAPES.index(type(value))
        return bytes((rank,)) + b"".join(_NEXT + _number(one) for one in value.coordinates) + _END
    if isinstance(value, Geometry):
        return bytes((_SHAPE + len(SHAPES),)) + _text(value.wkb.encode())
    raise TypeError(f"{type_name(value)} has no order")


def _integer_key(value: int) -> bytes:
    return (value + _SIGN).to_bytes(8, "big")


def _text(value: bytes) -> bytes:
    """Return an order-preserving encoding of a byte string: NUL bytes are escaped, and a terminator sorts a prefix
    before longer strings.
    """
    return value.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def _number(value: float) -> bytes:
    """Return the sort key of a number: the nearest double, then the difference of a large integer from that double.

    NaN is greater than all numbers and equal to itself; both zeros are equal.
    """
    if math.isnan(value):
        return _NAN + _rest(0)
    nearest = float(value) + 0.0  # -0.0 + 0.0 is 0.0
    (bits,) = struct.unpack(">Q", struct.pack(">d", nearest))
    ordered_bits = bits ^ (_SIGN if not bits & _SIGN else (1 << 64) - 1)
    rest = int(value) - int(nearest) if isinstance(value, int) else 0
    return int(ordered_bits).to_bytes(8, "big") + _rest(rest)


def _rest(value: int) -> bytes:
    return (value + (1 << 15)).to_bytes(2, "big")
