# SPDX-License-Identifier: Apache-2.0
"""Bounds of columns in manifests: decodes them to comparable values, and writes them as texts.

Must not read files. Source: Iceberg specification, Appendix D (binary single-value serialization).
"""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Final

BoundValue = bool | int | float | str | bytes | Decimal
"""A bound that is comparable with the other bounds of its column. Dates and times are counts since 1970 or midnight."""
TEXT_MAX: Final = 256
"""The maximum length of a bound's text."""
_INTEGERS: Final = frozenset(
    ("int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
)
_REALS: Final = {4: "<f", 8: "<d"}
_DAY: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL_BYTES_MAX: Final = 16
_EXACT: Final = Context(prec=60)
_NANOS: Final = 1_000


def bound_of(family: str, type_text: str, *, data: bytes) -> BoundValue | None:
    """Decode a bound of a column of a primitive type, such as the family `decimal` of `decimal(9, 2)`.

    Returns None for a bound that has no order here, is malformed, or is not a number. Bounds from before a promotion
    of the type (`int` to `long`, `float` to `double`) are read as well.
    """
    if len(data) != 8 and family.startswith("timestamp"):
        return None  # a date, from before a promotion of the type
    if family in _INTEGERS:
        return int.from_bytes(data, "little", signed=True) if len(data) in (4, 8) else None
    if family in ("float", "double"):
        value = struct.unpack(_REALS[len(data)], data)[0] if len(data) in _REALS else None
        return value if value is not None and value == value else None  # noqa: PLR0124 - not for NaN
    if family == "boolean":
        return data != b"\x00" if len(data) == 1 else None
    if family == "string":
        return data.decode("utf-8", "replace")
    if family == "decimal":
        if not 0 < len(data) <= _DECIMAL_BYTES_MAX:
            return None
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-_scale_of(type_text), _EXACT)
    if family == "uuid" and len(data) != 16:
        return None
    return bytes(data) if family in ("uuid", "fixed", "binary") else None


def bound_text(family: str, value: BoundValue) -> str:
    """Return the text of a bound: as SQL writes the value, binary values in hexadecimal digits. Long texts are cut."""
    try:
        return _text(family, value)[:TEXT_MAX]
    except (OverflowError, ValueError):  # a date after the year 9999
        return str(value)


def _text(family: str, value: BoundValue) -> str:
    if isinstance(value, bytes):
        return str(uuid.UUID(bytes=value)) if family == "uuid" else value[:TEXT_MAX].hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int):
        return str(value)
    if family == "date":
        return (_DAY + timedelta(days=value)).isoformat()
    if family == "time":
        return (_EPOCH + timedelta(microseconds=value)).time().isoformat()
    if family.startswith("timestamp"):
        micros, nanos = divmod(value, _NANOS) if family.endswith("_ns") else (value, 0)
        at = _EPOCH + timedelta(microseconds=micros)
        digits = f"{at.microsecond:06d}{nanos:03d}".rstrip("0")
        text = f"{at:%Y-%m-%d %H:%M:%S}{'.' if digits else ''}{digits}"
        return f"{text}+00:00" if family.startswith("timestamptz") else text
    return str(value)


def _scale_of(type_text: str) -> int:
    """Return the scale in the canonical form of a decimal type, such as 2 in `decimal(9, 2)`."""
    return int(type_text.rpartition(",")[2].rstrip(") "))
