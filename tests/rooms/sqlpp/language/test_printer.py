# SPDX-License-Identifier: Apache-2.0
"""Printing: the printed text is parsed to the same tree, for any spelling of the original."""

from __future__ import annotations

import os

import pytest

from limnos.names.sqlpp import KEYWORDS, SOFT, identifier
from limnos.rooms.sqlpp.language import descendants, outline, parse, parse_body, render, tree
from limnos.rooms.sqlpp.language.printer import printed_kinds
from limnos.rooms.sqlpp.language.tree import SyntaxNode
from tests.rooms.sqlpp.language.random_statements import Statements

STATEMENTS = int(os.environ.get("LIMNOS_TEST_STATEMENTS", "300"))


def test_printed_statements_are_read_as_the_same_tree() -> None:
    """A generated statement, printed and parsed, has the same tree, and printing it again gives the same text."""
    for seed in range(STATEMENTS):
        text = Statements(seed).statement()
        statement = parse(text)[0].statement

        printed = render(statement)
        again = parse(printed)

        assert len(again) == 1, (seed, text, printed)
        assert outline(again[0].statement) == outline(statement), (seed, text, printed)
        assert render(again[0].statement) == printed, (seed, text, printed)


def test_every_kind_of_node_is_generated() -> None:
    """The generator creates each kind of node, so that all are printed in tests."""
    left = set(printed_kinds())
    for seed in range(5000):
        left -= {type(node) for node in descendants(parse(Statements(seed).statement())[0].statement)}
        if not left:
            break

    assert left == set()


def test_every_kind_of_node_can_be_printed() -> None:
    """Every kind of node can be printed, apart from names, which are text."""
    kinds = {kind for kind in vars(tree).values() if isinstance(kind, type) and issubclass(kind, SyntaxNode)}
    bases = {tree.SyntaxNode, tree.Expression, tree.Statement, tree.TypeExpression, tree.DottedName, tree.UpdateStep}

    assert kinds - bases == printed_kinds()


@pytest.mark.parametrize(
    "text,printed",
    [
        ("(a or b) and c", "(a OR b) AND c"),
        ("(a and b) or c", "a AND b OR c"),
        ("(a - b) - c", "(a - b) - c"),
        ("a - (b - c)", "a - (b - c)"),
        ("((a - b - c))", "a - b - c"),
        ("- (- a)", "-(-a)"),
        ("a - -1", "a - -1"),
        ("(a.b).c", "a.b.c"),
        ("(a + b).c", "(a + b).c"),
        ("not (a and b)", "NOT (a AND b)"),
        ("(not a) = b", "(NOT a) = b"),
        ("(a = b) = c", "(a = b) = c"),
        ("(a is null) is null", "(a IS NULL) IS NULL"),
        ("(a between b and c) between d and e", "(a BETWEEN b AND c) BETWEEN d AND e"),
        ("a between (b or c) and d", "a BETWEEN (b OR c) AND d"),
        ("{{ {'a': {}} }}", '{{ { "a": {  } } }}'),
        ("some x in y satisfies z", "SOME x IN y SATISFIES z END"),
        ("(some x in y satisfies z) and a", "(SOME x IN y SATISFIES z END) AND a"),
        ("[(select value 1)]", "[(SELECT VALUE 1)]"),
        ("`a`.`b c`.`select`", "a.`b c`.`select`"),
        ("'it''s \"x\"'", '"it\'s \\"x\\""'),
        ("`\\u0007`", "`\\u0007`"),
    ],
)
def test_parentheses_and_quotes_are_printed_only_where_needed(text: str, printed: str) -> None:
    """Parentheses are printed only where the tree needs them; names and strings are quoted as needed."""
    assert render(parse_body(text)) == printed


@pytest.mark.parametrize("word", sorted(KEYWORDS | SOFT))
def test_keyword_names_are_printed_in_back_quotes(word: str) -> None:
    """A name that is a keyword is printed in back-quotes."""
    assert identifier(word.lower()) == f"`{word.lower()}`"
