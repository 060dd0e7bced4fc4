# SPDX-License-Identifier: Apache-2.0
"""The requirements of each scan: sufficient for correct results, and not more than an engine can apply."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import parse_body
from limnos.rooms.sqlpp.language.binder import BoundQuery, bind
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.evaluator import results
from limnos.rooms.sqlpp.language.functions.times import date_of
from limnos.rooms.sqlpp.language.scans import NUMBERED, ScanRequirement, prepare_scans
from limnos.rooms.sqlpp.language.values import comparison
from limnos.rooms.sqlpp.language.values.access import field
from limnos.rooms.sqlpp.language.values.model import Value
from tests.rooms.sqlpp.language.evaluation import NameWorld

PEOPLE: list[Value] = [
    {"id": 1, "name": "Ann", "age": 30, "home": {"zip": "1"}, "tags": ("x", "y")},
    {"id": 2, "name": "Bob", "age": 30.0, "home": {"zip": "2"}},
    {"id": 3, "name": None, "age": "old"},
    {"id": 4, "boss": 1, "age": 7},
]
WORLD = NameWorld({("Default",): {"people": PEOPLE, "other": [{"id": 1, "of": 2}, {"id": 4, "of": 4}]}})


def list_requirements(text: str, **more: object) -> tuple[ScanRequirement, ...]:
    """Return the requirements of a query's scans."""
    return prepare_scans(bind(parse_body(text), WORLD).expression, **more)[1]  # type: ignore[arg-type]


def conditions(text: str) -> list[tuple[str, str, Value]]:
    """Return the conditions of the first scan under `where`."""
    (only,) = list_requirements(f"select p.id from people p where {text}")
    return [(".".join(one.path), one.operator, one.value) for one in only.conditions]


def test_scan_requires_only_used_fields() -> None:
    """Only fields that the query uses are required; whole objects if they are returned."""
    assert list_requirements("select p.name from people p where p.home.zip = '1'")[0].fields == {"name", "home"}
    assert list_requirements("select value p from people p")[0].fields is None
    assert list_requirements("select p.* from people p")[0].fields is None
    assert (
        list_requirements("select p.name, (select value g.p from g) as x from people p group by p.name group as g")[
            0
        ].fields
        is None
    )
    assert list_requirements("select value 1 from people p")[0].fields == frozenset()
    assert list_requirements("array_count(people)")[0] == ScanRequirement(dataverse=("Default",), name="people")


def test_scan_reads_only_the_key_if_only_the_key_is_used() -> None:
    """If only the key of objects is used, no other field is read."""
    (only,) = list_requirements("select value p from people p where p.age > 3", result_fields=frozenset({"id"}))

    assert only.fields == {"id", "age"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("p.id = 1", [("id", "=", 1)]),
        ("1 < p.id", [("id", ">", 1)]),
        ("p.id >= -1 and p.name <= 'b'", [("id", ">=", -1), ("name", "<=", "b")]),
        ("p.age between 1 and 2", [("age", ">=", 1), ("age", "<=", 2)]),
        ("p.home.zip = '1'", [("home.zip", "=", "1")]),
        ("p.id in [1, 2]", [("id", "in", (1, 2))]),
        ("p.d = date('2012-01-01')", [("d", "=", date_of("2012-01-01"))]),
        ("p.id = 1 or p.id = 2", []),
        ("not (p.id = 1)", []),
        ("p.id = p.age", []),
        ("p.id = null", []),
        ("p.id in [1, null]", []),
        ("p.id + 1 = 2", []),
        ("p.tags[0] = 'x'", []),
        ("p.age not between 1 and 2", []),
        ("p.d > uuid()", []),
    ],
)
def test_comparisons_with_known_values_are_scan_conditions(text: str, expected: list[tuple[str, str, Value]]) -> None:
    """Comparisons of a path with a known value, joined by AND, are conditions of the scan."""
    assert conditions(text) == expected


def test_limit_applies_to_the_scan_only_without_other_operations() -> None:
    """A limit applies to the scan only for the first objects of one dataset, without conditions, order, grouping or
    other operations.
    """
    assert list_requirements("select p.id from people p limit 2 offset 3")[0].limit == 5
    for text in (
        "select p.id from people p where p.id > 0 limit 2",
        "select p.id from people p order by p.id limit 2",
        "select distinct p.id from people p limit 2",
        "select p.id from people p, other o limit 2",
        "select count(*) from people p limit 1",
        "select p.id from people p union all select o.id from other o limit 2",
        "select value total from people p let total = sum(p.id) over () limit 2",
    ):
        assert {one.limit for one in list_requirements(text)} == {None}


@pytest.mark.parametrize(
    "text",
    [
        "select value total from people p let total = count(*) over () where p.id = 1",
        "select value p.id from people p where p.id = 1 and count(*) over () = 4",
    ],
)
def test_a_window_before_where_needs_all_rows(text: str) -> None:
    """Conditions of WHERE do not restrict a scan whose rows a window function of LET or WHERE needs."""
    (only,) = list_requirements(text)

    assert only.conditions == ()


def test_a_condition_does_not_cross_an_outer_join() -> None:
    """A condition of WHERE on the optional side of an outer join is not applied to its scan."""
    requirements = list_requirements(
        "select p.id from people p left join other o on o.of = p.id where o.id = 1 and p.id = 1"
    )

    assert [(one.name, len(one.conditions)) for one in requirements] == [("people", 1), ("other", 0)]


@pytest.mark.parametrize(
    "text",
    [
        "select p.id, p.name from people p where p.age = 30 and p.id in [1, 2]",
        (
            "select p.id, o.id as x from people p join other o on o.of = p.id and o.id = 4 where p.id between 2 and 4"
            " order by p.id"
        ),
        (
            "select value p from people p where p.home.zip = '1' and exists (select value 1 from people q where q.boss"
            " = p.id)"
        ),
        "select p.age, count(*) as n from people p where p.id < 4 group by p.age order by p.age",
        "select p.id, o.id as x from people p right join other o on o.of = p.id where p.id = 4",
        "select value (select value o.id from other o where o.of = p.id) from people p where p.id > 1",
    ],
)
def test_scan_restrictions_do_not_change_results(text: str) -> None:
    """With only the required fields and objects, the results are the same."""
    bound = bind(parse_body(text), WORLD)
    expression, needs = prepare_scans(bound.expression)

    def rows(dataverse: tuple[str, ...], number: str) -> list[Value]:
        assert dataverse == NUMBERED
        need = needs[int(number)]
        objects = [
            one for one in WORLD.rows(need.dataverse, need.name) if all(meets(one, each) for each in need.conditions)
        ]
        return [
            one if need.fields is None else {name: one[name] for name in one if name in need.fields} for one in objects
        ]  # type: ignore[index, union-attr]

    assert list(results(BoundQuery(expression, bound.slots, bound.reads), rows)) == list(results(bound, WORLD.rows))


def meets(value: Value, condition: Condition) -> bool:
    """Return whether an object meets a condition, as an engine would evaluate it."""
    for name in condition.path:
        value = field(value, name)
    compare = {
        "=": comparison.equal,
        "<": comparison.less,
        "<=": comparison.less_or_equal,
        ">": lambda left, right: comparison.less(right, left),
        ">=": lambda left, right: comparison.less_or_equal(right, left),
        "in": lambda left, right: comparison.includes(right, left),
    }
    return compare[condition.operator](value, condition.value) is True
