# SPDX-License-Identifier: Apache-2.0
"""Literals in row filters: checked against the column's type and normalized.

Must not know schemas. Source: Iceberg specification, Appendix D (JSON single-value serialization).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation, localcontext
from typing import Final

from limnos.model.errors import BadRequest

_DECIMAL: Final = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")


def to_json_literal(value: object, kind: str, *, about: str) -> object:
    """Return a literal in Iceberg's JSON single-value form for the type `kind`, such as `"2026-01-31"` for a date.

    Raises BadRequest for a value of another type. `about` is the beginning of the error message.
    """
    decimal = _DECIMAL.fullmatch(kind)
    with suppress(ValueError, InvalidOperation, OverflowError):
        if decimal is not None:
            return _decimal(value, precision=int(decimal[1]), scale=int(decimal[2]))
        if kind in _READ:
            return _READ[kind](value)
    raise BadRequest(f"{about} is {kind}, and {value!r:.100} is not such a value")


def _boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _integer_reader(bits: int) -> Callable[[object], object]:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise ValueError(value)
        if not -(1 << bits - 1) <= int(value) < 1 << bits - 1:
            raise ValueError(value)
        return int(value)

    return read


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(float(value)):
        raise ValueError(value)
    return float(value)


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _decimal(value: object, *, precision: int, scale: int) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(value)
    with localcontext() as context:
        context.prec = 100
        exact = Decimal(str(value))
        quantize = exact.quantize(Decimal(1).scaleb(-scale))
    if quantize != exact or len(quantize.as_tuple().digits) > precision:
        raise ValueError(value)
    return f"{quantize:f}"


def _date(value: object) -> str:
    return date.fromisoformat(str(_text(value))).isoformat()


def _without_nanoseconds(value: object) -> str:
    """Return a time as it was sent. Raises ValueError for digits beyond microseconds, which Python would ignore."""
    text = str(_text(value))
    if _NANOSECONDS.search(text):
        raise ValueError(value)
    return text


def _time(value: object) -> str:
    result = time.fromisoformat(_without_nanoseconds(value))
    if result.tzinfo is not None:
        raise ValueError(value)
    return result.isoformat()


def _moment(value: object) -> str:
    result = datetime.fromisoformat(_without_nanoseconds(value))
    if result.tzinfo is not None:
        raise ValueError(value)
    return result.isoformat()


def _instant(value: object) -> str:
    result = datetime.fromisoformat(_without_nanoseconds(value))
    if result.tzinfo is None:
        raise ValueError(value)
    return result.astimezone(UTC).isoformat()


_NANOSECONDS: Final = re.compile(r"[.,]\d{6}0*[1-9]")
_READ: Final[Mapping[str, Callable[[object], object]]] = {
    "boolean": _boolean,
    "int": _integer_reader(32),
    "long": _integer_reader(64),
    "float": _number,
    "double": _number,
    "string": _text,
    "date": _date,
    "time": _time,
    "timestamp": _moment,
    "timestamptz": _instant,
    "timestamp_ns": _moment,
    "timestamptz_ns": _instant,
}
