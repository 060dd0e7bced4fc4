# SPDX-License-Identifier: Apache-2.0
"""The function `parse_json`, which converts JSON text to values.

Must not know plans. An integer beyond the range of bigint becomes a double.
"""

from __future__ import annotations

import json
from typing import NoReturn

from limnos.rooms.sqlpp.language.functions.costs import unbounded_cost
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Value, object_of


@scalar("parse_json", least=1, cost=unbounded_cost)
def parse_json(text: Value) -> Value:
    """Parse a JSON string to a value; NULL if it is malformed or nested too deeply."""
    if not isinstance(text, str):
        return None
    try:
        return _value(json.loads(text, object_pairs_hook=object_of, parse_constant=_refuse, parse_int=_parse_integer))
    except (ValueError, RecursionError):
        return None


def _value(parsed: object) -> Value:
    """Convert a decoded JSON value to a SQL++ value: lists become tuples."""
    if isinstance(parsed, list):
        return tuple(map(_value, parsed))
    if isinstance(parsed, dict):
        return {name: _value(item) for name, item in parsed.items()}
    return parsed if isinstance(parsed, (bool, int, float, str)) else None


def _parse_integer(digits: str) -> int | float:
    number = int(digits)
    return number if -(1 << 63) <= number < 1 << 63 else float(number)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
