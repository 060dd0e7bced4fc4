# SPDX-License-Identifier: Apache-2.0
"""Equality joins compared with nested loops: the same rows in the same order, with a linear number of steps."""

from __future__ import annotations

import os
import random
from itertools import product

import pytest

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget, queries
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Value
from limnos.rooms.sqlpp.language.values.order import key
from tests.rooms.sqlpp.language.evaluation import NameWorld, ask

ROUNDS = int(os.environ.get("LIMNOS_TEST_STATEMENTS", "300"))
VALUES: list[Value] = [
    1,
    1.0,
    2,
    -0.0,
    0,
    float("nan"),
    "1",
    "a",
    True,
    None,
    MISSING,
    (1, None),
    (1, 2),
    (1.0, 2),
    {"x": 1},
    {"x": None},
    {},
    Bag((2, 1)),
    Bag((1, 2)),
    2**53 + 1,
    float(2**53),
    b"a",
]
"""Values of which some are equal, some unknown, and some never comparable."""
KEYS = [
    "l.a = r.a",
    "r.b = l.a",
    "l.a + 1 = r.b",
    "l.a = r.a AND r.b = l.b",
    "l.a = 1 AND r.a = l.b",
    "upper(l.a) = r.a",
    "r.n + l.n = 3",
]
OTHERS = ["", " AND l.b < r.b", " AND (l.b = r.b OR r.a IS NULL)", " AND l.n < 3", " AND 10 div r.n > 2"]
SHAPES = [
    "SELECT VALUE [l.n, r.n] FROM left l, right r WHERE {on}",
    "SELECT VALUE [l.n, r.n, p] FROM left l, right r AT p WHERE l.n > 0 AND {on}",
    "SELECT VALUE [l.n, r.n] FROM left l JOIN right r ON {on}",
    "SELECT VALUE [l.n, r.n] FROM left l LEFT JOIN right r ON {on}",
    "SELECT VALUE [l.n, r.n] FROM left l RIGHT JOIN right r ON {on}",
    "SELECT VALUE [l.n, r.n, m.n] FROM left l, right r, left m WHERE {on} AND m.a = r.a",
    "SELECT VALUE [l.n, r.n, m.n] FROM left l, right r LEFT JOIN left m ON m.a = r.b WHERE {on}",
    "SELECT VALUE [l.n, r.n, m.n] FROM left l, right r RIGHT JOIN left m ON m.a = r.b WHERE {on}",
    "SELECT VALUE [l.n, (SELECT VALUE r.n FROM right r WHERE {on})] FROM left l",
    "SELECT VALUE [l.n, (SELECT VALUE [r.n, m.n] FROM right r, left m WHERE {on} AND m.b = r.b)] FROM left l",
    "SELECT VALUE l.n FROM left l WHERE NOT EXISTS (SELECT * FROM right r WHERE {on})",
    (
        "SELECT VALUE [m.n, (SELECT VALUE l.n FROM left l WHERE EXISTS (FROM right r AT p SELECT VALUE p WHERE {on} AND"
        " m.b = r.b))] FROM left m"
    ),
    "SELECT l.n, COUNT(*) AS c FROM left l, right r WHERE {on} GROUP BY l.n",
    "SELECT VALUE [l.n, i] FROM left l, right r, [r.a, l.b] i WHERE {on} AND i = r.a",
    "SELECT VALUE [l.n, r.n, x] FROM left l, right r LET x = l.b WHERE {on} AND x = r.b",
]


def world_of(chance: random.Random) -> NameWorld:
    """Two small datasets."""

    def rows() -> list[Value]:
        objects: list[Value] = []
        for number in range(chance.randint(0, 6)):
            fields = {"a": chance.choice(VALUES), "b": chance.choice(VALUES)}
            objects.append({"n": number, **{name: value for name, value in fields.items() if value is not MISSING}})
        return objects

    return NameWorld({("Default",): {"left": rows(), "right": rows()}})


def outcome(text: str, world: NameWorld) -> list[bytes] | str:
    """Return the keys of the rows in order, which distinguish values exactly; or the code of the error."""
    try:
        return [key(value) for value in ask(text, world)]
    except SqlppError as error:
        return error.code


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Return every shape of query with every condition."""
    return [
        f"{shape.format(on=on + more)};".replace("left l", "`left` l")
        .replace("left m", "`left` m")
        .replace("right r", "`right` r")
        for shape, on, more in product(SHAPES, KEYS, OTHERS)
    ]


def test_join_rows_equal_those_of_nested_loops(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For every kind of join and value, the rows and their order equal those of nested loops. Only errors of pairs that
    do not match may be missing.
    """
    cases = []
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        text, world = chance.choice(texts), world_of(chance)
        cases.append((text, world, outcome(text, world)))
    monkeypatch.setattr(queries, "keys_of", lambda *_, **__: None)

    wrong = []
    for text, world, keyed_outcome in cases:
        loops = outcome(text, world)
        if keyed_outcome != loops and not isinstance(loops, str):
            wrong.append((text, world.dataverses, keyed_outcome, loops))

    assert wrong == []
    assert sum(bool(keyed_outcome) for _, _, keyed_outcome in cases) > ROUNDS / 10


SIZE = 1500
LARGE = NameWorld(
    {("Default",): {"a": [{"k": n, "j": n % 7} for n in range(SIZE)], "b": [{"k": n} for n in range(SIZE, 0, -1)]}}
)


@pytest.mark.parametrize(
    "text, count",
    [
        ("SELECT VALUE 1 FROM a, b WHERE a.k = b.k", SIZE - 1),
        ("SELECT VALUE 1 FROM a JOIN b ON b.k = a.k AND a.k > 10", SIZE - 11),
        ("SELECT VALUE 1 FROM a LEFT JOIN b ON a.k + 1 = b.k", SIZE),
        ("SELECT VALUE 1 FROM a RIGHT JOIN b ON a.k = b.k", SIZE),
        ("SELECT VALUE 1 FROM a x, b y, a z WHERE x.k = y.k AND z.k = y.k AND z.j = x.j", SIZE - 1),
    ],
)
def test_join_visits_a_linear_number_of_rows(text: str, count: int) -> None:
    """The number of visited rows is linear, where nested loops visit millions."""
    budget = Budget(steps=10 * SIZE)

    assert len(ask(text, LARGE, budget=budget)) == count


def test_independent_source_in_a_comma_list_is_read_once() -> None:
    """In a comma list an independent dataset is read once, not once for each preceding row."""
    budget = Budget(rows_max=3 * SIZE)

    assert len(ask("SELECT VALUE 1 FROM [1, 2, 3, 4] x, b WHERE b.k < 3", LARGE, budget=budget)) == 8


def test_random_is_neither_a_join_key_nor_cached() -> None:
    """A condition with random() is not a join key, and a source with random() is not cached."""
    rows = ask("SELECT VALUE y FROM [1, 2, 3, 4, 5, 6] x, [random()] y", LARGE)

    assert len(set(map(repr, rows))) > 1
    assert (
        ask("SELECT VALUE 1 FROM a x, b y WHERE x.k = y.k + random() * 0 LIMIT 1", LARGE, budget=Budget(steps=10**8))
        != []
    )


def test_join_key_error_is_raised_only_where_evaluated() -> None:
    """An error in a key expression is that of the condition, and is raised only where the condition is evaluated."""
    world = NameWorld({("Default",): {"l": [{"k": 1}, {"k": 2}], "r": [{"k": 2**63 - 1}, {"k": 0}]}})

    with pytest.raises(SqlppError, match="ASX0007"):
        ask("SELECT VALUE 1 FROM l, r WHERE l.k = r.k + 1", world)
    assert ask("SELECT VALUE [l.k, r.k] FROM l, r WHERE r.k < 5 AND l.k = r.k + 1", world) == [(1, 0)]
