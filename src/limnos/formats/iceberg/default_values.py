# SPDX-License-Identifier: Apache-2.0
"""Default values of columns: checked against their type, in Iceberg's JSON single-value form.

Must not know schemas. Source: Iceberg specification, Appendix D (JSON single-value serialization), as its readers apply
it: a document whose default has another form is lost for Iceberg's Java library and for PyIceberg, with all columns.
Where the readers differ, the strictest one counts.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final
from uuid import UUID

from limnos.formats.iceberg.types import PrimitiveType

_PARAMETERS: Final = re.compile(r"[0-9]+")
_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.([0-9]+))?", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?", re.ASCII)
_TIMESTAMP: Final = re.compile(rf"{_DATE.pattern}T{_TIME.pattern}", re.ASCII)
_TIMESTAMP_NS: Final = re.compile(rf"({_DATE.pattern}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}})(?:\.[0-9]{{1,9}})?", re.ASCII)
_NS_FIRST: Final = datetime.fromisoformat("1677-09-22")
_NS_END: Final = datetime.fromisoformat("2262-04-11")
"""Nanoseconds in 64 bits end during the days outside of these."""
_OFFSET: Final = re.compile(rf"{_TIMESTAMP.pattern}[+-][0-9]{{2}}:[0-9]{{2}}", re.ASCII)
_IN_UTC: Final = ("timestamptz", "timestamptz_ns")
_EXACT: Final = Context(prec=100, traps=[Inexact, InvalidOperation])
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*", re.ASCII)


def default_in_stored_form(value: object, kind: PrimitiveType) -> object:
    """Return a default value as it is stored: the value itself, except for an integer that is a float's default, and
    `Z` of a time in UTC, which becomes `+00:00`.

    Raises ValueError for a value that is not one of the type, or in another form.
    """
    if kind.family in _NUMBERS:
        return _NUMBERS[kind.family](value)
    if not isinstance(value, str):
        raise ValueError(value)
    if kind.family in _IN_UTC and value.endswith("Z"):
        value = f"{value[:-1]}+00:00"
    _TEXTS[kind.family](value, [int(each) for each in _PARAMETERS.findall(kind.text)])
    return value


def lossless_default(value: object, kind: PrimitiveType) -> object:
    """Return a default value in the form of its type, if another form of the same value is given: `1.5` for a decimal
    of scale 2, `2025-03-04 05:06:07`, or a time with another offset than UTC.

    Raises ValueError for any other value.
    """
    try:
        return default_in_stored_form(value, kind)
    except ValueError:
        if kind.family not in _REWRITTEN or not isinstance(value, str):
            raise
    return default_in_stored_form(_REWRITTEN[kind.family](value, kind), kind)


def _decimal_of_scale(text: str, kind: PrimitiveType) -> str:
    scale = int(_PARAMETERS.findall(kind.text)[1])
    try:
        return f"{Decimal(text).quantize(Decimal(1).scaleb(-scale), context=_EXACT):f}"
    except ArithmeticError:
        raise ValueError(text) from None


def _moment(text: str, _: PrimitiveType) -> str:
    return text.replace(" ", "T", 1)


def _moment_in_utc(text: str, kind: PrimitiveType) -> str:
    local = _moment(text, kind)
    if kind.family == "timestamptz" and _OFFSET.fullmatch(local) is not None:
        try:
            return datetime.fromisoformat(local).astimezone(UTC).isoformat()
        except OverflowError:
            raise ValueError(text) from None
    return local


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _integer(bits: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(value)
        return value

    return check


def _fraction(layout: str) -> Callable[[object], float]:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(value)
        try:
            fraction = float(value)
            packed = struct.unpack(layout, struct.pack(layout, fraction))[0]
        except OverflowError:
            raise ValueError(value) from None
        if not math.isfinite(packed):
            raise ValueError(value)
        return fraction

    return check


def _decimal(text: str, parameters: list[int]) -> None:
    precision, scale = parameters
    match = _DECIMAL.fullmatch(text)
    if match is None or len(match[1] or "") != scale or Decimal(text).adjusted() >= precision - scale:
        raise ValueError(text)


def _create_check(pattern: re.Pattern[str], parse: Callable[[str], object]) -> Callable[[str, list[int]], None]:
    def check(text: str, _: list[int]) -> None:
        if pattern.fullmatch(text) is None:
            raise ValueError(text)
        parse(text)

    return check


def _nanoseconds(text: str) -> None:
    at = datetime.fromisoformat(text[:19])
    if not _NS_FIRST <= at < _NS_END:
        raise ValueError(text)


def _in_utc(check: Callable[[str, list[int]], None]) -> Callable[[str, list[int]], None]:
    def check_with_offset(text: str, parameters: list[int]) -> None:
        if not text.endswith("+00:00"):
            raise ValueError(text)
        check(text.removesuffix("+00:00"), parameters)

    return check_with_offset


def _check_fixed(text: str, parameters: list[int]) -> None:
    if _HEX.fullmatch(text) is None or len(text) != 2 * parameters[0]:
        raise ValueError(text)


_NUMBERS: Final[Mapping[str, Callable[[object], object]]] = {
    "boolean": _boolean,
    "int": _integer(32),
    "long": _integer(64),
    "float": _fraction("<f"),
    "double": _fraction("<d"),
}
_MOMENT: Final = _create_check(_TIMESTAMP, datetime.fromisoformat)
_MOMENT_NS: Final = _create_check(_TIMESTAMP_NS, _nanoseconds)
_TEXTS: Final[Mapping[str, Callable[[str, list[int]], None]]] = {
    "string": lambda _text, _parameters: None,
    "decimal": _decimal,
    "date": _create_check(_DATE, date.fromisoformat),
    "time": _create_check(_TIME, time.fromisoformat),
    "timestamp": _MOMENT,
    "timestamptz": _in_utc(_MOMENT),
    "timestamp_ns": _MOMENT_NS,
    "timestamptz_ns": _in_utc(_MOMENT_NS),
    "uuid": _create_check(_UUID, UUID),
    "fixed": _check_fixed,
    "binary": _create_check(_HEX, bytes.fromhex),
}
_REWRITTEN: Final[Mapping[str, Callable[[str, PrimitiveType], str]]] = {
    "decimal": _decimal_of_scale,
    "timestamp": _moment,
    "timestamptz": _moment_in_utc,
    "timestamp_ns": _moment,
    "timestamptz_ns": _moment_in_utc,
}
"""How other forms of a value are rewritten."""
