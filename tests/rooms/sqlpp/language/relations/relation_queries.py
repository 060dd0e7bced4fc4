# SPDX-License-Identifier: Apache-2.0
"""Two small datasets and queries about them: the evaluator's result, and that of the rewriting."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from limnos.rooms.sqlpp.language import BoundQuery, bind, parse_body, plan, results
from limnos.rooms.sqlpp.language.binder import BoundDataset
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.relations import RelationalQuery, translate_query
from limnos.rooms.sqlpp.language.stored import StorageForm, object_shaper, storage_form_of_record, to_row
from limnos.rooms.sqlpp.language.values.model import Value
from tests.rooms.sqlpp.language.relations.relation_interpreter import Held, worked_out

ORDERS = """closed { id: bigint, c: bigint?, n: integer, price: double?, note: string?, day: date, seen: datetime?, done: boolean?, tags: [string]? }"""
PEOPLE = "{ id: bigint, name: string, age: integer?, home: closed { zip: string, floor: bigint? }? }"
HELD = {
    "orders": (
        """[
  {'id': 1, 'c': 1, 'n': 3, 'price': 10.5, 'note': 'Ab', 'day': date('2020-01-31'), 'seen': datetime('2020-01-02T03:04:05.678'), 'done': true, 'tags': ['x', 'y']},
  {'id': 2, 'c': 1, 'n': -7, 'price': 0.0, 'note': null, 'day': date('1969-12-31'), 'done': false, 'tags': []},
  {'id': 3, 'c': 2, 'n': 3, 'price': double('NaN'), 'note': 'ab%', 'day': date('2020-01-31'), 'done': null, 'tags': ['x', null]},
  {'id': 4, 'n': 0, 'price': null, 'note': '', 'day': date('2021-06-05'), 'seen': null},
  {'id': 5, 'c': null, 'n': 2, 'price': -2.5, 'day': date('2020-02-29'), 'seen': datetime('1969-12-31T23:59:59.999')},
  {'id': 9007199254740993, 'c': 9, 'n': 2, 'price': 9007199254740992.0, 'note': 'zebra', 'day': date('2020-03-01'), 'tags': null},
  {'id': 7, 'c': 3, 'n': 10, 'price': 1.0, 'note': 'ab', 'day': date('2020-01-01'), 'done': true, 'tags': ['y', 'y', 'z']}
]"""
    ),
    "people": (
        """[
  {'id': 1, 'name': 'Ann', 'age': 30, 'home': {'zip': '1', 'floor': 2}, 'pay': 10.5},
  {'id': 2, 'name': 'Bob', 'age': null, 'home': {'zip': '2', 'floor': null}},
  {'id': 3, 'name': 'ann', 'home': null, 'pay': 'much'},
  {'id': 4, 'name': 'Zoe', 'age': 3, 'home': {'zip': '1'}}
]"""
    ),
}
FORMS: dict[str, StorageForm] = {
    "orders": storage_form_of_record(type_of(ORDERS), (("id",),)),
    "people": storage_form_of_record(type_of(PEOPLE), (("id",),)),
}
DATAVERSE = ("d",)


class _DatasetNames:
    """The names of the two datasets."""

    def has_dataverse(self, dataverse: tuple[str, ...]) -> bool:
        return dataverse == DATAVERSE

    def resolve(self, dataverse: tuple[str, ...], name: str) -> BoundDataset | None:
        return BoundDataset(dataverse, name) if name in FORMS else None

    def function(self, dataverse: tuple[str, ...], name: str, *, arity: int) -> None:
        return None


def bound(text: str) -> BoundQuery:
    """Return a query with resolved names."""
    return bind(parse_body(text), _DatasetNames(), dataverse=DATAVERSE)


def _objects(name: str) -> list[dict[str, Value]]:
    (source,) = results(bind(parse_body(HELD[name]), _DatasetNames(), dataverse=DATAVERSE), lambda *_: ())
    shape = object_shaper(FORMS[name])
    assert isinstance(source, tuple)
    return [shape(one) for one in source]


OBJECTS = {name: _objects(name) for name in FORMS}
ROWS: dict[str, list[dict[str, Held]]] = {name: list(map(to_row(form), OBJECTS[name])) for name, form in FORMS.items()}


def rewritten(text: str) -> RelationalQuery:
    """Return a query as a relation. Raises UntranslatableExpression if it cannot be translated."""
    expression = bound(text).expression
    assert isinstance(expression, plan.Subquery)
    return translate_query(expression.query, lambda _, name: FORMS[name].type)


def by_rewriting(text: str) -> list[str]:
    """Return the result of a query's relation, as JSON."""
    return [json_text(value) for value in worked_out(rewritten(text), lambda _, name: ROWS[name])]


def by_evaluator(text: str) -> list[str]:
    """Return the evaluator's result of a query, as JSON."""
    return [json_text(value) for value in results(bound(text), lambda _, name: OBJECTS[name])]


def same(actual: Iterable[str], expected: Iterable[str], *, ordered: bool) -> bool:
    """Return whether two lists of results are equal, with sums of doubles in any order."""
    left, right = (list(map(_near, one)) for one in (actual, expected))
    return left == right if ordered else sorted(left) == sorted(right)


def _near(text: str) -> str:
    def rounded(value: Held) -> Held:
        if isinstance(value, float) and math.isfinite(value):
            return float(f"{value:.9g}") + 0.0  # the sign of a sum of zeros depends on its initial value
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return {name: rounded(item) for name, item in value.items()} if isinstance(value, dict) else value

    return json.dumps(rounded(json.loads(text)), sort_keys=True)
