# SPDX-License-Identifier: Apache-2.0
"""Sequences of statements, statements that change data, and the example slides of seed 4."""

from __future__ import annotations

import re

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse, parse_body
from limnos.rooms.sqlpp.language.printer import render
from limnos.rooms.sqlpp.language.tree import (
    CopyFrom,
    CopyTo,
    CreateDataset,
    CreateDataverse,
    CreateType,
    Delete,
    Explain,
    Insert,
    Load,
    NamedType,
    Object,
    QueryStatement,
    RecordType,
    SetOption,
    Update,
    Use,
)
from tests.rooms.sqlpp.language.parser.parsing import encountered, read, refusal, same

SLIDES = """
create dataverse sales.east;
create type sales.east.orderType as { oid: bigint };
create dataset sales.east.orders(sales.east.orderType) primary key oid;
create dataverse sales.west;
create type sales.west.orderType as { oid: bigint };
create dataset sales.west.orders(sales.west.orderType) primary key oid;
use sales.east;
insert into orders ({'oid' : 100, 'x': 1 });
use sales.east;
select value o from orders as o;
/* Backquote identifiers */
use `sales`.`east`;
select value o from orders as o;
/* Fully qualified dataset name in FROM clause */
select value o from sales.east.orders as o;
/* Join */
select *
from sales.east.orders as e, sales.west.orders as w
where e.oid = w.oid
"""


def test_statements_of_the_example_slides_are_parsed() -> None:
    """Every statement of the seed's example slides, in its order."""
    parsed = parse(SLIDES)
    kinds = [type(one.statement) for one in parsed]

    assert kinds[:6] == [CreateDataverse, CreateType, CreateDataset] * 2
    assert kinds[6:] == [Use, Insert, Use, QueryStatement, Use, QueryStatement, QueryStatement, QueryStatement]
    assert isinstance(parsed[10].statement, Use)
    assert parsed[10].statement.name.parts == ("sales", "east")
    assert parsed[10].text == "use `sales`.`east`"
    assert parsed[-1].text.startswith("select *\nfrom")
    assert parsed[-1].statement.at == (18, 1)


def test_semicolons_separate_statements() -> None:
    """Semicolons separate statements; further ones, and one at the end, are ignored."""
    assert [one.text for one in parse(";; use a ;\n;use b;;")] == ["use a", "use b"]
    assert parse("") == parse(" ; -- nothing\n") == ()


def test_each_statement_has_its_own_hints() -> None:
    """Each statement has its own hints."""
    first, second = parse("select 1 /*+ a */; select /*+ b */ 2 /*+ c */")

    assert [hint.text for hint in first.hints] == ["a"]
    assert [hint.text for hint in second.hints] == ["b", "c"]


def test_parameters_are_numbered_throughout_a_request() -> None:
    """`?` is numbered throughout one request."""
    assert same("[?, ?]", "[$1, $2]")


def test_insert_and_upsert_accept_expression_query_and_returning() -> None:
    """INSERT and UPSERT of an expression or a query, with RETURNING."""
    statement = read(Insert, "upsert into a.b.c as x (select value 1) returning x.y")

    assert (statement.upsert, statement.target.parts, statement.variable) == (True, ("a", "b", "c"), "x")
    assert statement.returning is not None
    assert isinstance(read(Insert, "insert into o {'a': 1}").source, Object)
    assert same("insert into o ({'a': 1})", "insert into o {'a': 1}")
    assert same("insert into o (select value 1)", "insert into o select value 1")


def test_delete_is_parsed_with_and_without_variable() -> None:
    """DELETE with a variable and without."""
    statement = read(Delete, "delete from a.b as x where x.y > 1")

    assert (statement.target.parts, statement.variable, statement.where is None) == (("a", "b"), "x", False)
    assert same("delete from a x", "delete from a as x")
    assert read(Delete, "delete from a").variable is None


def test_load_from_an_adapter_is_parsed() -> None:
    """LOAD from an adapter."""
    statement = read(Load, "load dataset a.d using localfs (('path'='x'),('format'='adm')) pre-sorted")

    assert (statement.target.parts, statement.adapter, len(statement.options), statement.presorted) == (
        ("a", "d"),
        "localfs",
        2,
        True,
    )


def test_copy_from_paths_or_an_adapter_is_parsed() -> None:
    """COPY from paths with settings, or from an adapter's options."""
    statement = read(CopyFrom, "copy a.d from localfs path ('x', 'y') with {'format': 'csv', 'header': true, 'n': 2}")

    assert (statement.target.parts, statement.adapter) == (("a", "d"), "localfs")
    assert [(each.name, each.value) for each in statement.options] == [
        ("path", "x,y"),
        ("format", "csv"),
        ("header", "true"),
        ("n", "2"),
    ]
    assert same("copy into d using f (('path'='x'))", "copy d from f path ('x')")


def test_copy_accepts_file_fields_or_a_type_name() -> None:
    """The fields of the files, or the name of a type, are in parentheses; AS is optional."""
    statement = read(CopyFrom, "copy into d as (a int, b string not unknown) from f path ('x')")

    assert isinstance(statement.type, RecordType)
    assert [(field.name, field.optional) for field in statement.type.fields] == [("a", True), ("b", False)]
    for head in ("copy into d", "copy d as", "copy d"):
        assert same(f"{head} (a int, b string not unknown) from f path ('x')", render(statement))
    assert isinstance(read(CopyFrom, "copy d (s.T) from f path ('x')").type, NamedType)


def test_copy_to_accepts_query_order_type_and_settings() -> None:
    """COPY of a dataset or of a query, with its order, its type, formats of dates and settings."""
    statement = read(
        CopyTo,
        "copy (select value 1) as x to localfs path ('/a', b) over (partition by x.b b, x.c order by x.d desc)"
        " type ({a: bigint}) date 'YYYY' with {'format': 'csv', 'header': true}",
    )

    assert (statement.variable, statement.adapter, len(statement.path)) == ("x", "localfs", 2)
    assert [key.variable for key in statement.partition] == ["b", "c"]
    assert [item.descending for item in statement.order] == [True]
    assert isinstance(statement.type, RecordType)
    assert [(each.name, each.value) for each in statement.formats] == [("date", "YYYY")]
    assert [(each.name, each.value) for each in statement.options] == [("format", "csv"), ("header", "true")]
    assert same("copy a.d to f path ('x') with {}", "copy a.d as d to f path ('x') with {}")


@pytest.mark.parametrize(
    "text,says",
    [
        ("copy d to f path ('x') over () with {}", "OVER-clause cannot be empty"),
        ("copy d to f path ('x') type ({a: int}) as (a int) with {}", "Both 'TYPE()' and 'AS()' are provided"),
        ("copy d to f path ('x')", "<EOF>"),
        ("copy (select 1) to f path ('x') with {}", '"to" at column 17'),
    ],
)
def test_copy_to_with_empty_over_or_two_types_is_refused(text: str, says: str) -> None:
    """OVER must not be empty, and only one type is allowed."""
    with pytest.raises(SqlppError, match=re.escape(says)):
        parse(text)


def test_update_paths_begin_with_the_optional_variable() -> None:
    """Paths begin with the object's variable, which may be omitted."""
    statement = read(Update, "update a.d as x set x.b.c = x.n + 1, e = 2 set f = missing where x.id = 1 returning x.b")

    assert (statement.target.parts, statement.variable, statement.where is None) == (("a", "d"), "x", False)
    assert [each.path for each in statement.steps] == [("x", "b", "c"), ("x", "e"), ("x", "f")]
    assert statement.returning is not None
    assert read(Update, "update d set a = 1").variable == "d"
    assert same("update d set d.a = 1", "update d as d set a = 1")


@pytest.mark.parametrize(
    "text,printed",
    [
        ("update d as x (delete from a at n where n = 1)", "UPDATE d AS x (DELETE FROM x.a AT n WHERE n = 1)"),
        (
            "update d set a = b (insert into d.a at -1 ([1])) set e = 1",
            "UPDATE d AS d SET d.a = b (INSERT INTO d.a AT -1 [1]) SET d.e = 1",
        ),
        (
            "update d as x (update x.a as i at n set i.b = 1, c = 2 (delete from i.e as f) where n = -1) returning x",
            "UPDATE d AS x (UPDATE x.a AS i AT n SET i.b = 1, i.c = 2 (DELETE FROM i.e AS f) WHERE n = -1) RETURNING x",
        ),
    ],
)
def test_update_step_parenthesis_is_not_a_call(text: str, printed: str) -> None:
    """The parenthesis of an UPDATE step does not turn the preceding value into a call."""
    assert render(read(Update, text)) == printed


def test_use_set_explain_and_expression_statements_are_parsed() -> None:
    """USE, SET, EXPLAIN, an expression alone."""
    assert read(Use, "use a.`b.c`").name.parts == ("a", "b.c")
    assert read(SetOption, 'set `import-private-functions` "true"').value == "true"
    assert same("set a `true`", "set a 'true'")
    assert isinstance(read(Explain, "explain select 1").query, QueryStatement)
    assert read(QueryStatement, " 1 + 1").at == (1, 2)


@pytest.mark.parametrize(
    "text,what,column",
    [
        ("use", "<EOF>", 3),
        ("use a.", "<EOF>", 6),
        ('use "a"', '<STRING_LITERAL> "\\"a\\""', 5),
        ("use a b", '<IDENTIFIER> "b"', 7),
        ("use a use b", '"use"', 7),
        ("insert orders (1)", '<IDENTIFIER> "orders"', 8),
        ("insert into orders", "<EOF>", 18),
        ('insert into orders ({"a": 1}) returning', "<EOF>", 39),
        ("upsert into", "<EOF>", 11),
        ("delete orders", '<IDENTIFIER> "orders"', 8),
        ("delete from orders where", "<EOF>", 24),
        ("copy d from f", "<EOF>", 13),
        ("load orders", '<IDENTIFIER> "orders"', 6),
        ("load dataset d using localfs", "<EOF>", 28),
        ("set a", "<EOF>", 5),
        ("set a b", '<IDENTIFIER> "b"', 7),
        ("explain explain select 1", '"explain"', 9),
        ("update a where b", '"where"', 10),
        ("truncate a", '"truncate"', 1),
    ],
)
def test_unexpected_token_error_has_token_and_position(text: str, what: str, column: int) -> None:
    """The error for an unexpected token has the token, line and column."""
    assert str(refusal(text)) == encountered(text, what, column)


def test_explain_accepts_only_queries() -> None:
    """EXPLAIN accepts only queries."""
    message = "ASX1001: Syntax error: EXPLAIN is not supported for this kind of statement (in line 1, at column 1)"

    assert str(refusal("explain use a")) == message


def test_stored_body_is_one_query_or_expression() -> None:
    """A stored body is one query or expression, without further text."""
    with pytest.raises(SqlppError) as caught:
        parse_body("select value 1; select value 2")

    assert str(caught.value) == encountered("select value 1; select value 2", '";"', 15)
