# SPDX-License-Identifier: Apache-2.0
"""Conversion between rows and Iceberg's JSON single-value serialization (Iceberg specification, Appendix D).

Must not know Spark. The JSON is keyed by field id. A row consists of plain Python values: a date is its number of days,
a timestamp its microseconds. Values that this JSON cannot represent raise `NoSingleValue`; the caller then uses Spark.
"""

from __future__ import annotations

import json
import math
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias, TypeVar

from limnos.rooms.sqlpp.language.stored import Plain

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Row = Mapping[str, "Plain"]
Same = TypeVar("Same")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_FIRST, DAY_LAST = date.min.toordinal(), date.max.toordinal()
_MICROSECOND = timedelta(microseconds=1)
IN_LISTS = frozenset({"boolean", "int", "long", "float", "double", "string", "uuid"})
"""The types whose values in lists have the same form in Iceberg's generic rows as elsewhere."""


class NoSingleValue(Exception):
    """Raised if a value or type has no supported single-value form."""


def check(schema: Mapping[str, Json]) -> None:
    """Check that rows of a schema can be serialized in this format. Raises NoSingleValue."""
    for field in _fields(schema):
        _check(field["type"], types=frozenset(_READ))


def _check(type_: Json, *, types: frozenset[str]) -> None:
    if isinstance(type_, str):
        if type_ not in types:
            raise NoSingleValue(f"values of type {type_}")
    elif isinstance(type_, Mapping) and type_["type"] == "list":
        _check(type_["element"], types=IN_LISTS)
    elif isinstance(type_, Mapping) and type_["type"] == "struct" and types != IN_LISTS:
        check(type_)
    else:
        raise NoSingleValue("values of a type that has parts")


def encode_row(row: Row, schema: Mapping[str, Json]) -> str:
    """Serialize a row as JSON. Raises NoSingleValue for a value that this JSON cannot represent."""
    return json.dumps(_encode(row, schema), allow_nan=False)


def decode_row(text: str, schema: Mapping[str, Json]) -> dict[str, Plain]:
    """Parse the JSON of a row. Raises NoSingleValue for another JSON value, and for a date or timestamp beyond the
    range of Python's dates.
    """
    result = _decode(json.loads(text), schema)
    if not isinstance(result, dict):
        raise NoSingleValue("a row that is not a JSON object")
    return result


def _fields(schema: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    return schema["fields"]  # type: ignore[return-value]


def _encode(value: Plain | Row, type_: Json) -> Json:
    if value is None:
        return None
    if isinstance(type_, str):
        return _WRITE.get(type_, _itself)(value)
    if isinstance(type_, Mapping) and isinstance(value, Mapping):
        content = ((field, value.get(str(field["name"]))) for field in _fields(type_))
        return {str(field["id"]): _encode(one, field["type"]) for field, one in content if one is not None}
    if isinstance(type_, Mapping) and isinstance(value, list):
        return [_encode(item, type_["element"]) for item in value]
    raise NoSingleValue("a value of another type")


def _decode(value: Json, type_: Json) -> Plain:
    if value is None:
        return None
    if isinstance(type_, str):
        return _READ[type_](value)
    if isinstance(type_, Mapping) and isinstance(value, Mapping):
        return {str(field["name"]): _decode(value.get(str(field["id"])), field["type"]) for field in _fields(type_)}
    if isinstance(type_, Mapping) and isinstance(value, list):
        return [_decode(item, type_["element"]) for item in value]
    raise NoSingleValue("a value of another type")


def _itself(value: Same) -> Same:
    return value


def _real(value: Plain) -> Json:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise NoSingleValue("a value that is not a finite number")
    return float(value)


def day_text(value: Plain) -> str:
    """Format a date, in days since 1970, as ISO text. Raises NoSingleValue beyond the range of Python's dates."""
    if not isinstance(value, int) or not DAY_FIRST <= value + EPOCH.toordinal() <= DAY_LAST:
        raise NoSingleValue("a date beyond the range of Python's dates")
    return date.fromordinal(value + EPOCH.toordinal()).isoformat()


def moment_text(value: Plain) -> str:
    """Format a timestamp, in microseconds since 1970, as ISO text. Raises NoSingleValue beyond the range of Python's
    dates.
    """
    if not isinstance(value, int):
        raise NoSingleValue("a timestamp that is not an integer")
    try:
        return (EPOCH + timedelta(microseconds=value)).isoformat()
    except OverflowError:
        raise NoSingleValue("a timestamp beyond the range of Python's dates") from None


def _day(text: Json) -> Plain:
    try:
        return date.fromisoformat(str(text)).toordinal() - EPOCH.toordinal()
    except ValueError:
        raise NoSingleValue("a date beyond the range of Python's dates") from None


def _moment(text: Json) -> Plain:
    try:
        return (datetime.fromisoformat(str(text)) - EPOCH) // _MICROSECOND
    except ValueError:
        raise NoSingleValue("a timestamp beyond the range of Python's dates") from None


def _single(value: Json) -> Plain:
    """Round a JSON number, which is the shortest representation of a 32-bit float, to that float."""
    number = float(value)  # type: ignore[arg-type]
    unpack: float = struct.unpack("f", struct.pack("f", number))[0]
    return unpack


_WRITE: Mapping[str, Callable[..., Json]] = {
    "float": _real,
    "double": _real,
    "date": day_text,
    "timestamptz": moment_text,
    "binary": bytes.hex,
    "uuid": str,
}
_READ: Mapping[str, Callable[..., Plain]] = {
    "boolean": _itself,
    "int": _itself,
    "long": _itself,
    "string": _itself,
    "float": _single,
    "double": float,
    "date": _day,
    "timestamptz": _moment,
    "binary": bytes.fromhex,
    "uuid": lambda text: str(uuid.UUID(text)),
}
