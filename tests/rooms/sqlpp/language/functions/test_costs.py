# SPDX-License-Identifier: Apache-2.0
"""Costs of functions: each declares one, and none creates or walks a value that is larger than the remaining budget."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.evaluator.operators import OPERATOR_COSTS, OPERATORS
from limnos.rooms.sqlpp.language.functions import FUNCTIONS, costs
from limnos.rooms.sqlpp.language.values.model import Bag, Value

LEFT = 20_000


@pytest.mark.parametrize("name", sorted({entry.name for entry in FUNCTIONS.values()}))
def test_every_function_declares_its_cost(name: str) -> None:
    """Every function declares its cost. Without one it would never be evaluated on the event loop."""
    assert FUNCTIONS[name].cost is not None


def test_every_operator_declares_its_cost() -> None:
    """Every operator declares its cost."""
    assert set(OPERATOR_COSTS) == set(OPERATORS)


@pytest.mark.parametrize(
    "value, units",
    [
        (1, 1),
        (None, 1),
        ("x", 1),
        ("x" * 160, 11),
        (b"x" * 160, 11),
        ((1, 2, 3), 4),
        (Bag((1, 2)), 3),
        ({"a": 1, "b": (1, 1)}, 7),
        (((1, 1),) * 10, 31),
    ],
)
def test_value_size_counts_items_and_characters(value: Value, units: int) -> None:
    """Each item counts as often as it occurs, and a string by its length."""
    assert costs.weight_of(value, LEFT) == units


def test_size_of_a_large_value_stops_at_the_limit() -> None:
    """A thousand shared arrays of a thousand items exceed the remaining units after as many steps."""
    once: Value = (1,) * 1000
    heavy: Value = (((once,) * 1000),) * 1000

    assert costs.weight_of(heavy, LEFT) == LEFT + 1


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("repeat", ("x", 16_000_000)),
        ("repeat", ("x" * 1000, 1000)),
        ("array_repeat", (1, 1_000_000)),
        ("array_repeat", ((1,) * 3000, 3000)),
        ("array_range", (0, 999_999)),
        ("array_range", (0, 1, 1e-9)),
        ("range", (1, 1_000_000)),
        ("lpad", ("x", 16_000_000, " ")),
        ("rpad", ("x", 16_000_000, " ")),
        ("array_sort", ((1,) * 3000,)),
        ("array_flatten", (((1,) * 3000,) * 3000, 1)),
        ("edit_distance", ("a" * 500, "b" * 500)),
        ("like", ("a" * 500, "%a" * 200)),
        ("replace", ("a" * 1000, "a", "b" * 1000)),
        ("array_put", ((1,) * 200, *range(200))),
        ("array_remove", ((1,) * 200, *range(200))),
        ("regexp_contains", ("a", "a")),
        ("to_string", ((1,) * 10_000,)),
        ("array_sum", ((1,) * 10_000,)),
        ("split", ("a" * 100_000, "")),
        ("object_names", ({f"k{at}": 1 for at in range(30_000)},)),
    ],
)
def test_expensive_call_cost_is_computed_from_its_arguments(name: str, arguments: tuple[Value, ...]) -> None:
    """The cost of an expensive call is computed from its arguments, without creating a value."""
    cost = FUNCTIONS[name].cost

    assert cost is not None
    assert cost(arguments, LEFT) > LEFT


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("repeat", ("x", 10)),
        ("array_range", (0, 100)),
        ("array_range", (0, 100, 0)),
        ("array_sort", (tuple(range(100)),)),
        ("like", ("a name", "%a%")),
        ("replace", ("hello", "l", "L")),
        ("date", ("2026-01-31",)),
        ("repeat", ("x", float("nan"))),
    ],
)
def test_common_calls_cost_little(name: str, arguments: tuple[Value, ...]) -> None:
    """Common calls cost little and are evaluated at once; a count of NaN may have any cost."""
    cost = FUNCTIONS[name].cost

    assert cost is not None
    assert cost(arguments, LEFT) < 2000 or arguments[-1] != arguments[-1]
