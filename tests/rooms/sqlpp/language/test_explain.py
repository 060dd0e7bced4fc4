# SPDX-License-Identifier: Apache-2.0
"""The output of EXPLAIN about where a query is evaluated."""

from __future__ import annotations

import json

import pytest

from limnos.rooms.sqlpp.language.explain import as_text, explain_plan
from limnos.rooms.sqlpp.language.lookups import LookupIndex
from tests.rooms.sqlpp.language.relations.relation_queries import FORMS, bound

TOLD = {
    "select value o.id from orders o where o.n > 1": {"spark": ["the whole query"]},
    "select o.id, p.pay from orders o join people p on p.id = o.c": {
        "spark": ["the whole query"],
        "evaluator": "values of SELECT, from each row of the result",
        "because": "not executed by Spark: the field pay, which is not a column",
    },
    "select value p.id from people p where p.pay > 10 and p.id < 3": {
        "spark": ["the whole query"],
        "evaluator": "conditions and values, from each input row",
        "because": "not executed by Spark: the field pay, which is not a column",
    },
    "select value initcap(o.note) from orders o where o.id = 5.0 and o.n > 1": {
        "key": ["d.orders"],
        "unless": (
            'many files may have such a key; then: {"spark":["the whole query"],"evaluator":"values of SELECT, from'
            ' each row of the result","because":"not executed by Spark: the function initcap"}'
        ),
    },
    "select distinct value p.id from people p where p.pay > 10 and p.id < 3": {
        "spark": ["d.people: fields id, pay, filtered by 2 conditions"],
        "evaluator": "the whole query",
        "because": "not executed by Spark: the field pay, which is not a column",
    },
    "array_count((select value o.id from orders o))": {
        "spark": ["a query inside"],
        "evaluator": "the whole query",
        "because": "not executed by Spark: it is an expression, not a query",
    },
}


@pytest.mark.parametrize("text", TOLD)
def test_explain_reports_the_engine_and_the_reason(text: str) -> None:
    """A query is evaluated by Spark, by the evaluator over rows that Spark reads, or by both; the output has the reason
    and the plan.
    """
    explanation = json.loads(explain_plan(bound(text).expression, lambda _, name: FORMS[name]))

    assert explanation.pop("plan")
    assert explanation == TOLD[text]


INDEXES = (LookupIndex("by_n", (("n",), ("note",))),)


def test_explain_names_the_index_and_the_alternative() -> None:
    """The plan names the index and the alternative for many matches; a query without a condition on its first field
    does not use it.
    """

    def explain_query(text: str) -> dict[str, object]:
        explanation: dict[str, object] = json.loads(
            explain_plan(bound(text).expression, lambda _, name: FORMS[name], indexes=lambda *_: INDEXES)
        )
        return explanation

    range_plan = explain_query("select value o.id from orders o where o.n between 1 and 3")
    assert range_plan["index"] == ["d.orders: by_n"]
    assert (
        range_plan["unless"] == 'many objects, or many files, may have such values; then: {"spark":["the whole query"]}'
    )
    assert "index" not in explain_query("select value o.id from orders o where o.note = 'a'")
    assert "index" not in explain_query("select value o.id from orders o, people p where o.n = 1")
    both = explain_query("select value o.id from orders o, orders q where o.n = 1 and q.id = 2")
    assert (both["index"], both["key"]) == (["d.orders: by_n"], ["d.orders"])


def test_plan_text_has_one_indented_line_per_node() -> None:
    """Each node is one line, indented below its parent; positions and absent parts are omitted."""
    encoded_plan = b'{"n":"Query","at":[1,1],"lets":[],"arms":[{"n":"Scan","dataverse":["a","b"],"name":"t","position":null}],"limit":{"n":"Constant","value":3}}'

    assert json.loads(as_text(encoded_plan)).splitlines() == [
        "Query",
        '  arms: Scan name="t"',
        '    dataverse: "a", "b"',
        "  limit: Constant value=3",
    ]
    assert json.loads(as_text(b'{"spark": ["the whole query"], "plan": {"n": "Null"}}')).splitlines() == [
        "",
        '  spark: "the whole query"',
        "  plan: Null",
    ]
