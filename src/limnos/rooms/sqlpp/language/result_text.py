# SPDX-License-Identifier: Apache-2.0
"""Results in formats other than JSON: ADM, lossless JSON and CSV.

Must not know a protocol. ADM and lossless JSON preserve the type of each value, in AsterixDB's notation; CSV has one
line per object.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Mapping
from typing import Final, Literal, cast

from limnos.rooms.sqlpp.language.errors import SqlppError, too_deep
from limnos.rooms.sqlpp.language.functions.types import json_text, text_of
from limnos.rooms.sqlpp.language.lossless_adm import lossless_adm_text
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Bag,
    Circle,
    DateTime,
    Geometry,
    Interval,
    Line,
    Point,
    Point3D,
    Polygon,
    Rectangle,
    Time,
    Value,
    type_name,
)
from limnos.rooms.sqlpp.language.values.tagged import Json, from_tagged_json, to_tagged_json
from limnos.rooms.sqlpp.language.values.text import real_text

ResultFormat = Literal["json", "lossless-json", "lossless-adm", "adm", "csv", "csv-header"]
NO_ROW: Final = 4000
_WIDTHS: Final[Mapping[str, str]] = {"tinyint": "int8", "smallint": "int16", "integer": "int32", "bigint": "int64"}
_QUOTED: Final = ("date", "time", "datetime", "duration", "year-month-duration", "day-time-duration", "uuid")
_CONTROLS: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Characters that are escaped in AsterixDB's ADM, but not in JSON."""


def tagged_line(value: Value) -> str:
    """Encode a value as one line of JSON with type tags, which `ResultText` converts.

    Raises SqlppError for a value that is nested too deeply.
    """
    try:
        return json.dumps(to_tagged_json(value), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise too_deep() from None


class ResultText:
    """Converts the results of one request to a format. The first object determines the columns of CSV."""

    def __init__(self, form: ResultFormat) -> None:
        self._columns: tuple[str, ...] | None = None
        self._has_header = form == "csv-header"
        self._write: Callable[[Value], list[str]] = {
            "adm": lambda value: [_quote(adm_text(value))],
            "lossless-json": lambda value: [lossless_json_text(value)],
            "lossless-adm": lambda value: [lossless_adm_text(value)],
            "csv": self._csv,
            "csv-header": self._csv,
        }.get(form, lambda value: [json_text(value)])

    def lines(self, tagged: bytes) -> list[bytes]:
        """Convert a result from `tagged_line` to one or more results in the format, each as JSON text.

        Raises SqlppError for a value that the format cannot represent, and for one that is nested too deeply.
        """
        try:
            value = from_tagged_json(cast("Json", json.loads(tagged)))
            return [line.encode("utf-8", "replace") for line in self._write(value)]
        except RecursionError:
            raise too_deep() from None

    def _csv(self, value: Value) -> list[str]:
        if not isinstance(value, dict):
            raise SqlppError(NO_ROW, f"CSV has a line per object, and a result is of type {type_name(value)}")
        lines: list[str] = []
        if self._columns is None:
            self._columns = tuple(value)
            if self._has_header:
                lines.append(_quote(",".join(map(_csv_string, self._columns))))
        extra = next((name for name in value if name not in self._columns), None)
        if extra is not None:
            raise SqlppError(NO_ROW, f"CSV has the fields of the first object, and another object has a field {extra}")
        lines.append(_quote(",".join(csv_text(value.get(name, MISSING)) for name in self._columns)))
        return lines


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def adm_text(value: Value) -> str:
    """Format a value as ADM text: `{{ 1, 2 }}` for a multiset, `[ 1 ]` for an array."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_adm_string(name)}: {adm_text(item)}" for name, item in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, Bag):
        return f"{{{{ {', '.join(map(adm_text, value))} }}}}"
    if _is_array(value):
        return f"[ {', '.join(map(adm_text, cast('tuple[Value, ...]', value)))} ]"
    if value is None or value is MISSING:
        return "null"
    if isinstance(value, str):
        return _adm_string(value)
    if isinstance(value, bool):
        return text_of(value)
    if isinstance(value, float):
        return real_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Geometry):
        return json_text(value)
    if isinstance(value, Interval):
        return f"interval({adm_text(value.start)}, {adm_text(value.end)})"
    name = "hex" if isinstance(value, bytes) else type_name(value)
    return f'{name}("{_time_text(value)}")'


def _adm_string(text: str) -> str:
    """Return a string as ADM: as in JSON, with escapes also for DEL and the control characters after it."""
    return _quote(text).translate(_CONTROLS)


def _time_text(value: Value) -> str:
    """Format a date, time or other value as text; times always have milliseconds."""
    text = text_of(value)
    return f"{text}.000" if isinstance(value, (Time, DateTime)) and "." not in text else text


def lossless_json_text(value: Value) -> str:
    """Return a value as AsterixDB's lossless JSON: an object with the name of its type, or a plain JSON value.

    Objects, strings, booleans, real numbers, binaries and UUIDs are plain, as in the results of AsterixDB's own tests.
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(name)}:{lossless_json_text(text)}" for name, text in value.items()) + "}"
    if isinstance(value, Bag) or _is_array(value):
        name = "unorderedlist" if isinstance(value, Bag) else "orderedlist"
        return f'{{"{name}":[{",".join(map(lossless_json_text, cast("tuple[Value, ...]", value)))}]}}'
    if value is None or value is MISSING or isinstance(value, (bool, str, Geometry)):
        return json_text(value)
    if isinstance(value, float):
        return real_text(value) if math.isfinite(value) else _quote(real_text(value))
    if isinstance(value, (bytes, uuid.UUID)):
        return _quote(text_of(value))
    if isinstance(value, Interval):
        return f'{{"interval":{{"start":{lossless_json_text(value.start)},"end":{lossless_json_text(value.end)}}}}}'
    name = type_name(value)
    if isinstance(value, int):
        return f'{{"{_WIDTHS.get(name, name)}":{int(value)}}}'
    if isinstance(value, (Point, Point3D)):
        return f'{{"{name}":[{",".join(map(real_text, value.coordinates))}]}}'
    if isinstance(value, (Line, Rectangle, Circle, Polygon)):
        return f'{{"{name}":[{",".join(map(lossless_json_text, _parts(value)))}]}}'
    return f'{{"{name}":{_quote(_time_text(value))}}}'


def _parts(shape: Line | Rectangle | Circle | Polygon) -> list[Value]:
    """Return the points of a shape; for a circle the center, followed by the radius."""
    numbers = shape.coordinates
    points: list[Value] = [Point(numbers[at : at + 2]) for at in range(0, len(numbers) - 1, 2)]
    return [*points, numbers[2]] if isinstance(shape, Circle) else points


def csv_text(value: Value) -> str:
    """Return a value as a field of CSV; NULL and MISSING are empty."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, (bool, int, bytes)):
        return text_of(value)
    if isinstance(value, float):
        return real_text(value)
    if isinstance(value, (str, uuid.UUID)) or type_name(value) in _QUOTED:
        return _csv_string(_time_text(value))
    return _csv_string(adm_text(value))


def _csv_string(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _is_array(value: Value) -> bool:
    return type_name(value) == "array"
