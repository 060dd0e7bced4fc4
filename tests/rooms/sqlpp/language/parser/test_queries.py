# SPDX-License-Identifier: Apache-2.0
"""Queries: clause by clause, in both orders, and positions of errors."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import parse_body
from limnos.rooms.sqlpp.language.tree import GroupSet, Join, QueryExpression, Rollup, Unnest
from tests.rooms.sqlpp.language.parser.parsing import encountered, refusal, same


def query(text: str) -> QueryExpression:
    """Return a text as a query."""
    node = parse_body(text)
    assert isinstance(node, QueryExpression)
    return node


@pytest.mark.parametrize(
    "one,other",
    [
        ("from a select b", "select b from a"),
        (
            "from a let b = c where d group by e having f select g",
            "select g from a let b = c where d group by e having f",
        ),
        ("with a as b select c", "let a = b select c"),
        ("select element a", "select value a"),
        ("select raw a", "select value a"),
        ("select all a", "select a"),
        ("select a from b", "select a as a from b as b"),
        ("select a.b from c.d.e", "select a.b as b from c.d.e as e"),
        ("select from a", "select * from a"),
        ("from a select", "from a select *"),
        ("from a join b on c select 1", "from a inner join b on c select 1"),
        ("from a left join b on c select 1", "from a left outer join b on c select 1"),
        ("from a unnest b select 1", "from a inner flatten b select 1"),
        ("from a correlate b select 1", "from a unnest b select 1"),
        ("from a left unnest b select 1", "from a left outer unnest b select 1"),
        ("select 1 limit 2 offset 3", "select 1 offset 3 limit 2"),
        ("select 1 from t order by a", "select 1 from t order by a asc"),
        ("select 1 from t group by a.b", "select 1 from t group by a.b as b"),
        ("select 1 from t group by (a)", "select 1 from t group by a"),
        ("select 1 from t group by (a + b) * c as d", "select 1 from t group by (((a + b) * c) as d)"),
        ("select 1 from t group by (a).b", "select 1 from t group by a.b"),
        ("select 1 from t group by (select value 2) b", "select 1 from t group by ((select value 2) as b)"),
        ("select 1 from t group by (a) x", "select 1 from t group by a as x"),
        ("select 1 letting a = b", "select 1 let a = b"),
    ],
)
def test_equivalent_spellings_have_the_same_tree(one: str, other: str) -> None:
    """Equivalent spellings have the same tree, including inferred names."""
    assert same(one, other)


def test_each_clause_has_its_field_of_the_tree() -> None:
    """Each clause is stored in its field of the tree."""
    node = query(
        "with w as 1 select distinct v.*, *, x as y, z.q from d.s as v at i, u"
        " let l = 2 where c group by k as j, m group as g (v as vv) let h = 3 having n"
        " order by o desc, p nulls first limit 4 offset 5"
    )
    block = node.block

    assert ([let.name for let in node.lets], [let.name for let in block.lets]) == (["w"], ["l"])
    assert [(term.variable, term.position) for term in block.terms] == [("v", "i"), ("u", None)]
    assert [(item.every, item.name) for item in block.select.projections] == [
        (True, None),
        (False, None),
        (False, "y"),
        (False, "q"),
    ]
    assert block.select.distinct
    assert block.group is not None
    assert block.group.variable is not None
    assert block.group.variable.fields is not None
    assert [(field.variable, field.name) for field in block.group.variable.fields] == [("v", "vv")]
    assert [let.name for let in block.group_lets] == ["h"]
    assert None not in (block.where, block.having, node.limit, node.offset)
    assert [(item.descending, item.nulls) for item in node.order] == [(True, None), (False, "first")]


def test_joins_and_unnests_follow_their_term_in_the_tree() -> None:
    """Joins and unnests are stored in a list after their term."""
    links = (
        query("from a join b on c right join d on e cross join f left unnest g.h at i, j select 1").block.terms[0].links
    )

    assert [(type(link), link.variable) for link in links] == [(Join, "b"), (Join, "d"), (Join, "f"), (Unnest, "h")]
    assert [link.kind for link in links if isinstance(link, Join)] == ["inner", "right", "cross"]
    assert (isinstance(links[3], Unnest) and links[3].outer, links[3].position) == (True, "i")


def test_order_and_limit_apply_to_the_whole_set_operation() -> None:
    """Set operations are stored in a list; ORDER BY and LIMIT apply to the whole, unless parentheses say otherwise."""
    node = query("select 1 union all (select 2 limit 1) except select 3 order by a limit 2")

    assert [(arm.operator, arm.all, isinstance(arm.input, QueryExpression)) for arm in node.arms] == [
        ("union", True, True),
        ("except", False, False),
    ]
    assert (len(node.order), node.limit is None) == (1, False)


def test_grouping_set_keywords_need_a_parenthesis() -> None:
    """ROLLUP, CUBE and GROUPING SETS are keywords only before a parenthesis."""
    group = query(
        "select 1 from t group by rollup, rollup (a, (b, c)), cube(d), grouping sets ((), (e), rollup(f))"
    ).block.group

    assert group is not None
    assert [type(element).__name__ for element in group.elements] == ["GroupSet", "Rollup", "Rollup", "GroupingSets"]
    assert isinstance(group.elements[1], Rollup)
    assert [len(keys.keys) for keys in group.elements[1].sets] == [1, 2]
    assert isinstance(group.elements[0], GroupSet)
    assert group.elements[0].keys[0].variable == "rollup"


def test_exclude_after_a_projection_is_not_an_alias() -> None:
    """EXCLUDE after a projection excludes paths; after AS or in back-quotes it is a name."""
    assert query("select a exclude b.c, d from t").block.select.exclude == (("b", "c"), ("d",))
    assert query("select a as exclude from t").block.select.projections[0].name == "exclude"
    assert query("select a `exclude` from t").block.select.projections[0].name == "exclude"


def test_unnamed_projections_have_no_name() -> None:
    """An expression that does not end with a name has none; the binder numbers it."""
    projections = query("select 1, a + b, f(c), d[0], $e, (select 1)").block.select.projections

    assert [item.name for item in projections] == [None] * 6


@pytest.mark.parametrize(
    "text,what,column",
    [
        ("select select", '"select"', 8),
        ("select value", "<EOF>", 12),
        ("select value x from", "<EOF>", 19),
        ("select value x from t where", "<EOF>", 27),
        ("select value x from t group x", '<IDENTIFIER> "x"', 29),
        ("select value x from t order by x nulls", "<EOF>", 38),
        ("select value x where y group by z", '"group"', 24),
        ("select value x from t join u", "<EOF>", 28),
        ("select value x from t cross join u on v", '"on"', 36),
        ("select value x from t right unnest u", '"unnest"', 29),
        ("select x y z from t", '<IDENTIFIER> "z"', 12),
        ("select b + c.* from t", '"."', 13),
        ("select x from t union", "<EOF>", 21),
        ("(select 1) union all (select 2)", '"union"', 12),
        ("from t", "<EOF>", 6),
        ("from t select value x where y", '"where"', 23),
        ("let x 1 select x", '<INTEGER_LITERAL> "1"', 7),
        ("with x = 1 select x", '"="', 8),
        ("select 1 select 2", '"select"', 10),
        ("select value U exclude a", '<IDENTIFIER> "exclude"', 16),
        ("f(select 1)", '"select"', 3),
    ],
)
def test_unexpected_token_error_has_token_and_position(text: str, what: str, column: int) -> None:
    """The error for an unexpected token has the token, line and column."""
    assert str(refusal(text)) == encountered(text, what, column)


def test_error_message_contains_only_the_line_of_the_error() -> None:
    """The message contains only the line of the error."""
    text = "select value o\nfrom orders as o\n\twhere o.value = 1"

    assert str(refusal(text)) == encountered(text, '"."', 9, line=3)


def test_error_message_truncates_long_lines() -> None:
    """Of a long line the message has only the part around the position."""
    text = "select value x from t where " + "a and " * 1000 + "and b"
    message = str(refusal(text))

    assert '<< Encountered "and" at column 6029.' in message
    assert "and and b<<" in message
    assert len(message) < 350


@pytest.mark.parametrize("source", ["1", "f(x)", "(select 1)", "[a]", "a[0]", "$a"])
def test_from_expression_without_a_name_needs_an_alias(source: str) -> None:
    """An expression in FROM that does not end with a name needs an alias; the message shows the expression."""
    message = str(refusal(f"select * from {source}"))

    assert message.startswith("ASX1001: Syntax error: Need an alias for the enclosed expression:\n")
    assert message.endswith(f" (in line 1, at column {16 if source.startswith('(') else 15})")
