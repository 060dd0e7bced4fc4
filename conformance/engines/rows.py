# SPDX-License-Identifier: Apache-2.0
"""The two tables of every engine: a plain one, and one with the important types.

Job: columns, rows in JSON values, and equality of rows independent of an engine's form of times and structures. May
import the standard library only.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

Row = Sequence[object]

PLAIN = {"id": "long", "city": "string"}
TYPED = {
    "id": "long",
    "name": "string",
    "amount": "decimal",
    "born": "date",
    "seen": "timestamp",
    "at": "timestamptz",
    "tags": "list",
    "place": "struct",
}
"""`amount` has 12 digits, 2 of them after the point; `tags` are strings; `place` has `x`, a long, and `label`, a
string.
"""

FIRST: list[Row] = [
    [
        1,
        "Ada",
        "12.50",
        "2026-01-02",
        "2026-01-02T03:04:05.123456",
        "2026-01-02T03:04:05.123456Z",
        ["a", "b"],
        [1, "here"],
    ],
    [2, "gone", "0.01", "2026-01-02", "2026-01-02T00:00:00", "2026-01-02T23:59:59.999999Z", [], [2, "there"]],
    [3, None, None, None, None, "2026-01-03T00:00:00Z", None, None],
]
SECOND: list[Row] = [
    [
        4,
        "Zoë 'q'",
        "-9999999999.99",
        "1969-12-31",
        "1969-12-31T23:59:59.999999",
        "1969-12-31T23:59:59.999999Z",
        ["ü"],
        [-4, None],
    ],
]
DELETED = 2


def remaining_rows(*, deleted: bool) -> list[Row]:
    """Return the rows that remain."""
    return [row for row in (*FIRST, *SECOND) if not (deleted and row[0] == DELETED)]


def same(actual: Sequence[Row], expected: Sequence[Row], columns: dict[str, str]) -> bool:
    """Return whether rows are equal in any order."""
    return not difference(actual, expected, columns)


def difference(actual: Sequence[Row], expected: Sequence[Row], columns: dict[str, str]) -> str:
    """Return the unexpected and missing rows as text; empty if all are equal."""
    kinds = list(columns.values())
    has, wants = _counted(actual, kinds), _counted(expected, kinds)
    if has == wants:
        return ""
    return " in place of ".join(f"[{', '.join(sorted(some.elements()))}]" for some in (has - wants, wants - has))


def _counted(rows: Sequence[Row], kinds: list[str]) -> Counter[str]:
    return Counter(repr([_value(cell, kind) for cell, kind in zip(row, kinds, strict=True)]) for row in rows)


def _value(cell: object, kind: str) -> object:
    if cell is None:
        return None
    if kind in ("list", "struct"):
        return _nested(cell, kind)
    text = str(cell)
    match kind:
        case "long":
            return int(text)
        case "decimal":
            return Decimal(text).normalize()
        case "date":
            return date.fromisoformat(text[:10])
        case "timestamp":
            return _moment(text).replace(tzinfo=None)
        case "timestamptz":
            moment = _moment(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        case _:
            return text


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace(" UTC", "Z"))


def _nested(cell: object, kind: str) -> object:
    """Return a list of the elements' values. Engines that answer in text write JSON or Python's form."""
    if isinstance(cell, str):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError):
                cell = read(cell)
                break
    if isinstance(cell, dict):
        cell = list(cell.values())
    if not isinstance(cell, (list, tuple)):
        return f"no {kind}: {cell}"
    if kind == "struct" and all(each is None for each in cell):
        return None
    return [None if each is None else str(each) for each in cell]
