# SPDX-License-Identifier: Apache-2.0
"""Definitions of functions."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.tree import (
    VARIADIC,
    CreateExternalFunction,
    CreateFunction,
    DeclareFunction,
    DropFunction,
    Object,
    QueryExpression,
)
from tests.rooms.sqlpp.language.parser.parsing import encountered, read, refusal


def test_create_function_accepts_parameters_and_body() -> None:
    """Parameters have names; a body is an expression or a query."""
    statement = read(CreateFunction, "create or replace function x.y.echo(a, `b c`) { a }")

    assert (statement.name.parts, statement.parameters, statement.or_replace) == (
        ("x", "y", "echo"),
        ("a", "b c"),
        True,
    )
    assert isinstance(read(CreateFunction, "create function f() { select value 1 }").body, QueryExpression)
    assert isinstance(read(CreateFunction, "create function f() { {'a': {'b': 1}} }").body, Object)


def test_three_dots_declare_any_number_of_parameters() -> None:
    """Three dots declare any number of parameters."""
    assert read(CreateFunction, "create function f(...) { args }").parameters is None
    assert read(CreateFunction, "create function f() { 1 }").parameters == ()


def test_external_function_has_types_library_and_arguments() -> None:
    """An external function has types of parameters and of the result, a library and its arguments."""
    statement = read(
        CreateExternalFunction,
        "create function f(a: bigint, b [string], c) returns {{ x.y }} as 'module', 'class.method' at a.lib with"
        " {'n': 1}",
    )

    assert statement.parameters is not None
    assert [(parameter.name, parameter.type is None) for parameter in statement.parameters] == [
        ("a", False),
        ("b", False),
        ("c", True),
    ]
    assert (statement.identifiers, statement.library.parts) == (("module", "class.method"), ("a", "lib"))
    assert None not in (statement.returns, statement.settings)


def test_declare_function_is_parsed() -> None:
    """DECLARE FUNCTION declares a function for one request."""
    statement = read(DeclareFunction, "declare function f(a) { a + 1 }")

    assert (statement.name, statement.parameters) == ("f", ("a",))


@pytest.mark.parametrize(
    "spelling,arity",
    [("@2", 2), ("(a, b)", 2), ("(2)", 2), ("()", 0), ("(...)", VARIADIC), ("@0", 0)],
)
def test_drop_function_accepts_all_arity_spellings(spelling: str, arity: int) -> None:
    """A function is dropped by name and arity, in all spellings."""
    dropped = read(DropFunction, f"drop function a.b.f{spelling} if exists")

    assert (dropped.name.parts, dropped.library, dropped.arity) == (("a", "b", "f"), None, arity)


def test_drop_function_accepts_a_library() -> None:
    """The part before `#` is the library."""
    dropped = read(DropFunction, "drop function a.lib#f@1")

    assert (dropped.name.parts, dropped.library) == (("a", "f"), "lib")


@pytest.mark.parametrize(
    "text,what,column",
    [
        ("create function f", "<EOF>", 17),
        ("create function f(a) { }", '"}"', 24),
        ("create function f(..) { 1 }", '")"', 21),
        ("create function f(a,) { 1 }", '")"', 21),
        ("create function f(a) as g", '<IDENTIFIER> "g"', 25),
        ("declare function a.f() { 1 }", '"."', 19),
        ("drop function f", "<EOF>", 15),
        ("drop function f@", "<EOF>", 16),
        ("drop function f@x", '<IDENTIFIER> "x"', 17),
    ],
)
def test_unexpected_token_error_has_token_and_position(text: str, what: str, column: int) -> None:
    """The error for an unexpected token has the token, line and column."""
    assert str(refusal(text)) == encountered(text, what, column)


@pytest.mark.parametrize(
    "text,message",
    [
        (
            " create function f(a: int) { a }",
            "Unexpected type declaration for parameter a in function f (in line 1, at column 2)",
        ),
        (
            "create function g(a) returns int { a }",
            "Unexpected return type declaration for function g (in line 1, at column 1)",
        ),
        (
            "declare function f(a int) { a }",
            "Unexpected type declaration for parameter a in function f (in line 1, at column 1)",
        ),
        ("drop function f@1001", "Invalid arity: 1001 (in line 1, at column 17)"),
    ],
)
def test_types_outside_of_libraries_and_bad_arity_are_refused(text: str, message: str) -> None:
    """Types of a function without a library, and an arity that is too large, are refused with their position."""
    assert str(refusal(text)) == f"ASX1001: Syntax error: {message}"
