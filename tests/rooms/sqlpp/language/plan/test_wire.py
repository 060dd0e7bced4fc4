# SPDX-License-Identifier: Apache-2.0
"""Plans as bytes."""

from __future__ import annotations

import msgspec
import pytest

from limnos.rooms.sqlpp.language import bind, parse_body
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.plan import wire
from tests.rooms.sqlpp.language.evaluation import NameWorld, written

QUERIES = (
    "1 + 2",
    (
        "select value {'a': 1.0, 'b': date('2020-01-01'), 'c': [null, missing,"
        " uuid('5c848e5c-6b6a-498f-8452-8847a2957421')]} from t x where x.a > 1 order by x desc limit 2"
    ),
    (
        "select a, count(*) n from t x unnest x.xs as a at p left join t z on z.k = a group by a group as g having"
        " count(*) > 1"
    ),
    (
        "with w as (select value 1) select w, row_number() over (partition by x.a order by x.b rows 2 preceding) r"
        " from t x"
    ),
    "select value x from t x union all select value y from t y",
    "some v in [1, 2] satisfies v between 0 and 9 and f(v) is not unknown",
    "case 1 when 2 then {{1, 2}} else [3][0:] end",
    "from t as x select distinct x.*, x.a[*].b exclude c",
)
WORLD = NameWorld({("Default",): {"t": []}}, functions=[written("f", "a", "a + 1")])


@pytest.mark.parametrize("text", QUERIES)
def test_encoded_plan_is_decoded_to_the_same_nodes(text: str) -> None:
    """Every node is decoded to the same node, with its position and its function."""
    expression = bind(parse_body(text), WORLD).expression

    assert wire.decode(wire.encode(expression)) == expression


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"1", b"[]", b'{"n":"Drop"}', b'{"n":"Scan","at":[1,1]}', b'{"f":"no such"}', b'{"n":"os","at":[1,1]}'],
)
def test_bytes_that_are_no_plan_are_refused(data: bytes) -> None:
    """All invalid bytes raise the same kind of error."""
    with pytest.raises(wire.BadPlan):
        wire.decode(data)


def test_too_deeply_nested_plan_is_refused_as_bad_plan() -> None:
    """The error for a plan that is nested too deeply is BadPlan, not RecursionError."""
    expression = bind(parse_body("1"), WORLD).expression
    for _ in range(5000):
        expression = msgspec.structs.replace(bind(parse_body("[0]"), WORLD).expression, items=(expression,))

    with pytest.raises(SqlppError, match="nested too deep"):
        wire.encode(expression)
