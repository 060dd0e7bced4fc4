# SPDX-License-Identifier: Apache-2.0
"""A model of read restrictions in plain Python: filters in three-valued logic, the effect of each mask on a value, and
generators of both.
"""

from __future__ import annotations

import hashlib
import random
import string
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

CITIES = ("Aachen", "Bonn", "Wien", None)
Row = dict[str, Any]
Filter = dict[str, Any]
Cell = Any


def rows_made(dice: random.Random, first: int, count: int) -> list[Row]:
    """Return rows with nulls in every column but the first."""

    def maybe(value: object) -> object:
        return None if dice.random() < 0.15 else value

    return [
        {
            "id": first + number,
            "city": dice.choice(CITIES),
            "card": maybe("".join(dice.choices(string.digits + "-aé ", k=dice.randrange(12)))),
            "born": maybe(date(1990 + dice.randrange(20), 1 + dice.randrange(12), 1 + dice.randrange(28))),
            "seen": maybe(datetime(2020, 1 + dice.randrange(12), 3, dice.randrange(24), tzinfo=UTC)),
            "paid": maybe(Decimal(dice.randrange(10_000)).scaleb(-2)),
            "ratio": maybe(dice.choice([0.5, -2.0, 8.25])),
        }
        for number in range(count)
    ]


def holds(filter_: Filter | None, row: Row) -> bool | None:
    """Return whether a row satisfies a filter; None means unknown."""
    if filter_ is None:
        return True
    word = filter_["type"]
    if word in ("and", "or"):
        sides = [holds(filter_[side], row) for side in ("left", "right")]
        settles = word == "or"
        return settles if settles in sides else None if None in sides else not settles
    if word == "not":
        inner = holds(filter_["child"], row)
        return None if inner is None else not inner
    value = row[filter_["term"]]
    if word == "is-null":
        return value is None
    if word == "not-null":
        return value is not None
    if value is None:
        return None
    if word in ("in", "not-in"):
        return (value in [convert_cell(filter_["term"], each) for each in filter_["values"]]) is (word == "in")
    if word in ("starts-with", "not-starts-with"):
        return value.startswith(filter_["value"]) is (word == "starts-with")
    other = convert_cell(filter_["term"], filter_["value"])
    return {
        "eq": value == other,
        "not-eq": value != other,
        "lt": value < other,
        "lt-eq": value <= other,
        "gt": value > other,
        "gt-eq": value >= other,
    }[word]


def convert_cell(column: str, value: Cell) -> Cell:
    """Convert a value of a filter to the type that rows have."""
    if column == "born":
        return date.fromisoformat(value)
    if column == "seen":
        return datetime.fromisoformat(value)
    return Decimal(str(value)) if column == "paid" else value


def _four(text: str, mask_text: Callable[[str], str]) -> str:
    return "x" * len(text) if len(text) <= 4 else mask_text(text)


MASKS: dict[str, Callable[[Any], Any]] = {
    "mask-alphanum": lambda text: "".join("n" if c in "0123456789" else c if c in "(),.-@" else "x" for c in text),
    "show-first-4": lambda text: _four(text, lambda t: t[:4] + "x" * (len(t) - 4)),
    "show-last-4": lambda text: _four(text, lambda t: "x" * (len(t) - 4) + t[-4:]),
    "truncate-to-year": lambda when: when.replace(
        month=1, day=1, **({"hour": 0} if isinstance(when, datetime) else {})
    ),
    "truncate-to-month": lambda when: when.replace(day=1, **({"hour": 0} if isinstance(when, datetime) else {})),
    "sha-256-global": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "replace-with-null": lambda _: None,
}
FIXED = {
    "id": 0,
    "city": "XXXXXXXX",
    "card": "XXXXXXXX",
    "born": date(1970, 1, 1),
    "seen": datetime(1970, 1, 1, tzinfo=UTC),
    "paid": Decimal("0.00"),
    "ratio": 0.0,
}
FITTING = {
    **dict.fromkeys(
        ("city", "card"),
        ("mask-alphanum", "show-first-4", "show-last-4", "sha-256-global", "replace-with-null", "mask-to-fixed-value"),
    ),
    **dict.fromkeys(
        ("born", "seen"), ("truncate-to-year", "truncate-to-month", "replace-with-null", "mask-to-fixed-value")
    ),
    **dict.fromkeys(("id", "paid", "ratio"), ("replace-with-null", "mask-to-fixed-value")),
}


def shown_of(rows: list[Row], filter_: Filter | None, masks: dict[str, str]) -> list[Row]:
    """Return the visible values of rows."""

    def cell(column: str, value: Cell) -> Cell:
        action = masks.get(column)
        if action == "mask-to-fixed-value":
            return FIXED[column]
        return value if action is None or value is None else MASKS[action](value)

    return [
        {column: cell(column, value) for column, value in row.items()} for row in rows if holds(filter_, row) is True
    ]


def random_filter(dice: random.Random, rows: list[Row], depth: int = 0) -> Filter:
    """Return a random filter on columns, with values that some row has."""
    if depth < 3 and dice.random() < 0.5:
        word = dice.choice(("and", "or", "not"))
        if word == "not":
            return {"type": "not", "child": random_filter(dice, rows, depth + 1)}
        return {
            "type": word,
            "left": random_filter(dice, rows, depth + 1),
            "right": random_filter(dice, rows, depth + 1),
        }
    column = dice.choice(tuple(FIXED))
    values = [_written(row[column]) for row in rows if row[column] is not None]
    word = dice.choice(
        (
            "eq",
            "not-eq",
            "lt",
            "lt-eq",
            "gt",
            "gt-eq",
            "in",
            "not-in",
            "is-null",
            "not-null",
            "starts-with",
            "not-starts-with",
        )
    )
    if word in ("starts-with", "not-starts-with"):
        column = dice.choice(("city", "card"))
        return {"type": word, "term": column, "value": dice.choice(("A", "1", "", "Wi"))}
    if word in ("is-null", "not-null"):
        return {"type": word, "term": column}
    if word in ("in", "not-in"):
        return {"type": word, "term": column, "values": dice.sample(values, 3)}
    return {"type": word, "term": column, "value": dice.choice(values)}


def _written(value: Cell) -> Cell:
    return (
        value.isoformat()
        if isinstance(value, (date, datetime))
        else str(value)
        if isinstance(value, Decimal)
        else value
    )


def same(actual_rows: list[Row], expected: list[Row]) -> None:
    """Check that two lists have equal rows, in any order."""

    def counted(rows: list[Row]) -> Counter[tuple[str, ...]]:
        return Counter(tuple(f"{column}={value}" for column, value in sorted(row.items())) for row in rows)

    assert counted(actual_rows) == counted(expected)
