# SPDX-License-Identifier: Apache-2.0
"""Definitions of dataverses, types, synonyms and views, and DROP."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.tree import (
    ArrayType,
    BagType,
    CreateDataverse,
    CreateSynonym,
    CreateType,
    CreateView,
    Drop,
    NamedType,
    PathExpression,
    QueryExpression,
    RecordType,
)
from tests.rooms.sqlpp.language.parser.parsing import encountered, read, refusal, same


def test_dataverse_name_may_have_several_parts() -> None:
    """A dataverse name may have several parts; dots in back-quotes do not separate parts."""
    statement = read(CreateDataverse, "create dataverse sales.`east.coast`")

    assert (statement.name.parts, statement.if_not_exists) == (("sales", "east.coast"), False)


def test_create_type_accepts_fields_records_arrays_and_multisets() -> None:
    """Fields, nested records, arrays, multisets and optional fields."""
    statement = read(CreateType, "create type a.t as closed { id: int, l: [string]?, m: {{ x.y }}, r: { } }")
    kinds = [type(field.type) for field in statement.type.fields]

    assert (statement.name.dataverse, statement.name.last, statement.type.open) == (("a",), "t", False)
    assert kinds == [NamedType, ArrayType, BagType, RecordType]
    assert [field.optional for field in statement.type.fields] == [False, True, False, False]
    assert isinstance(statement.type.fields[3].type, RecordType)
    assert statement.type.fields[3].type.open


def test_synonym_target_need_not_exist() -> None:
    """A synonym and its target, which need not exist."""
    statement = read(CreateSynonym, "create synonym a.s if not exists for b.c.d")

    assert (statement.name.parts, statement.target.parts, statement.if_not_exists) == (
        ("a", "s"),
        ("b", "c", "d"),
        True,
    )


def test_create_view_accepts_query_path_and_schema() -> None:
    """A view over a query, over a path, and one with a schema."""
    typed = read(
        CreateView,
        "create view v(a bigint not unknown, b date) default null date 'YYYY' primary key (a, b.c) not enforced"
        " foreign key (b) references x.w not enforced if not exists as select a, b from t",
    )

    assert isinstance(read(CreateView, "create or replace view v as a.b.c").body, PathExpression)
    assert isinstance(typed.body, QueryExpression)
    assert typed.schema is not None
    assert isinstance(typed.schema.type, RecordType)
    assert ([field.optional for field in typed.schema.type.fields], typed.schema.type.open) == ([False, True], False)
    assert [(option.name, option.value) for option in typed.schema.formats] == [("date", "YYYY")]
    assert typed.schema.keys == (("a",), ("b", "c"))
    assert [key.references.parts for key in typed.schema.foreign_keys] == [("x", "w")]


@pytest.mark.parametrize("kind", ["dataverse", "type", "dataset", "synonym", "view"])
def test_if_exists_may_precede_or_follow_the_dropped_name(kind: str) -> None:
    """IF EXISTS may precede or follow the name."""
    dropped = read(Drop, f"drop {kind} a.b")

    assert (dropped.kind, dropped.name.parts, dropped.if_exists) == (kind, ("a", "b"), False)
    assert read(Drop, f"drop {kind} if exists a.b").if_exists
    assert same(f"drop {kind} if exists a.b", f"drop {kind} a.b if exists")


@pytest.mark.parametrize(
    "text",
    [
        "create dataverse <>a<>",
        "create type <>t<> as {}",
        "create synonym <>s<> for t",
        "create view <>v<> as t",
        "create dataset <>d(t)<> primary key k",
        "create dataset <>d<>(t) primary key k",
        "create external dataset <>d(t)<> using localfs ()",
        "create index <>i<> on d(a)",
        "create primary index <>i<> on d",
        "create function <>f()<> { 1 }",
    ],
)
def test_if_not_exists_may_precede_or_follow_the_name(text: str) -> None:
    """IF NOT EXISTS may precede or follow the name, and changes the tree."""
    head, name, tail = text.split("<>")

    assert same(f"{head}if not exists {name}{tail}", f"{head}{name} if not exists {tail}")
    assert not same(f"{head}if not exists {name}{tail}", f"{head}{name}{tail}")


@pytest.mark.parametrize(
    "text,what,column",
    [
        ("create", "<EOF>", 6),
        ("create table t", '<IDENTIFIER> "table"', 8),
        ("create dataverse", "<EOF>", 16),
        ("create dataverse a if not", "<EOF>", 25),
        ("create dataverse if not exists a if not exists", '"if"', 34),
        ("create primary index if not exists i  if not exists on d;", '"if"', 39),
        ("create type t as [bigint]", '"["', 18),
        ("create type t as { a bigint }", '<IDENTIFIER> "bigint"', 22),
        ("create type t as { a: }", '"}"', 23),
        ("create type t as { a: int, }", '"}"', 28),
        ("create synonym s to t", '"to"', 18),
        ("create or view v as select 1", '"view"', 11),
        ("create or replace dataverse d", '"dataverse"', 19),
        ("create view v as 1", '<INTEGER_LITERAL> "1"', 18),
        ("create view v(a bigint) as select 1", '"as"', 25),
        ("create view v primary key (r) not enforced as", '"primary"', 15),
        ("create view v foreign key (r) references w not enforced as", '<IDENTIFIER> "foreign"', 15),
        ("create view v(r bigint, a [bigint]) default null as", '"["', 27),
        ("create view v as select * from range(1,2) r order by;", '";"', 53),
        ("drop a", '<IDENTIFIER> "a"', 6),
        ("drop dataverse", "<EOF>", 14),
        ("drop dataverse if exists a if exists", '"if"', 28),
    ],
)
def test_unexpected_token_error_has_token_and_position(text: str, what: str, column: int) -> None:
    """The error for an unexpected token has the token, line and column."""
    assert str(refusal(text)) == encountered(text, what, column)


def test_or_replace_excludes_if_not_exists() -> None:
    """OR REPLACE and IF NOT EXISTS exclude each other."""
    message = "ASX1001: Syntax error: Unexpected IF NOT EXISTS (in line 1, at column {})"

    assert str(refusal("create or replace view v if not exists as select 1")) == message.format(1)
    assert str(refusal("create or replace function f() if not exists { 1 }")) == message.format(39)
