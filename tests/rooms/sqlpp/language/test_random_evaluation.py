# SPDX-License-Identifier: Apache-2.0
"""Generated expressions and queries: evaluation ends, with a value or with an error of the language."""

from __future__ import annotations

import contextlib
import random

import pytest

from limnos.rooms.sqlpp.language import parse
from limnos.rooms.sqlpp.language.binder import bind
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget, results
from limnos.rooms.sqlpp.language.functions import FUNCTIONS
from limnos.rooms.sqlpp.language.tree import QueryStatement
from limnos.rooms.sqlpp.language.values.model import type_name
from tests.rooms.sqlpp.language.evaluation import NameWorld, ask
from tests.rooms.sqlpp.language.random_statements import Statements

pytestmark = pytest.mark.slow

VALUES = (
    "missing",
    "null",
    "0",
    "-1",
    "7",
    "1e300",
    "double('NaN')",
    "'abc'",
    "''",
    "true",
    "[1, null, 'a', [2]]",
    "[]",
    "{{ 1, 2 }}",
    "{'a': 1, 'b': {'c': null}}",
    "date('2013-01-31')",
    "datetime('2013-01-31T00:00:00')",
    "duration('P1M')",
    "9223372036854775807",
)
WORLD = NameWorld({("Default",): {"t": [{"a": 1, "b": (1, 2)}, {"a": None}, {}]}})


def test_functions_of_any_values_return_or_raise_language_errors() -> None:
    """Every function, given any values, returns a value or raises an error of the language."""
    chosen = random.Random(11)
    for name, entry in FUNCTIONS.items():
        if entry.kind != "scalar":
            continue
        for count in range(entry.least, (entry.most if entry.most >= 0 else entry.least + 2) + 1):
            for _ in range(12):
                arguments = ", ".join(chosen.choice(VALUES) for _ in range(count))
                with contextlib.suppress(SqlppError):
                    (result,) = ask(f"`{name}`({arguments})", budget=Budget(steps=10_000))
                    assert type_name(result)


def test_generated_statements_are_evaluated_or_refused() -> None:
    """Every statement that can be parsed is bound and evaluated, or refused with an error of the language."""
    worked = 0
    for seed in range(2_000):
        for parsed in parse(Statements(seed).statement()):
            if not isinstance(parsed.statement, QueryStatement):
                continue
            with contextlib.suppress(SqlppError):
                bound = bind(parsed.statement.body, WORLD, parameters={"x": 1, 1: 2})
                for result in results(bound, WORLD.rows, budget=Budget(steps=20_000, rows_max=20_000)):
                    assert type_name(result)
                worked += 1

    assert worked > 30
