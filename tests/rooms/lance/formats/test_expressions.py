# SPDX-License-Identifier: Apache-2.0
"""Expressions that are nested too deeply for Lance's library are refused before the library parses them. Long but
shallow ones are accepted.
"""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.rooms.lance.formats.expressions import DEPTH_MAX, check_expression

MANY = DEPTH_MAX


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id > 1 AND text = 'it''s (((' OR `a b` IS NOT NULL",
        " OR ".join(["id = 1"] * MANY),
        " and ".join(["id + 1 = 2"] * MANY),
        f"id IN ({', '.join(map(str, range(10 * MANY)))})",
        " OR ".join(f"id BETWEEN {each} AND {each + 1}" for each in range(MANY)),
        f"text = '{'+' * 10 * MANY}'",
        "+".join(["id"] * (MANY // 2)),
        f"coalesce({', '.join(['id + 1'] * MANY)}) = 1",
        "))))" * MANY,
    ],
    ids=["nothing", "column", "usual", "or", "and", "in", "between", "text", "chain", "arguments", "closing"],
)
def test_shallow_expression_is_accepted(text: str) -> None:
    """A shallow expression is accepted, however long it is. Invalid SQL is left to the library unless it contains a
    long chain.
    """
    check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "+".join(["id"] * MANY),
        "||".join(["text"] * MANY),
        "id" + "::int" * MANY,
        "id" + " IS NULL" * MANY,
        "text" + "[1]" * MANY + "+1" * MANY,
        f"id = 1 OR {'*'.join(['id'] * MANY)} = 1",
        f"({'+'.join(['id'] * (MANY // 3))} + ({'+'.join(['id'] * (MANY // 3))})) = 1",
        "id" + " BETWEEN 1 AND 2" * (MANY // 3),
        f"text = '{'a ' * MANY}",
    ],
    ids=["plus", "texts", "casts", "is null", "items", "behind or", "nested", "between", "open quote"],
)
def test_long_operator_chain_is_refused(text: str) -> None:
    """A long chain of operators is refused, also if parentheses divide it."""
    with pytest.raises(BadRequest, match="too many operators"):
        check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "id = $1",
        "$1 = id",
        "id = ?",
        "id=:x",
        ":x = id",
        "id = 1 AND :x",
        "(:x) = id",
        "text = N'a'",
        "text = b'01'",
        'text = B"a"',
        "text = R'a'",
        "text = $$a$$",
        "text = $t$a$t$",
    ],
)
def test_placeholder_and_prefixed_string_are_refused(text: str) -> None:
    """A parameter placeholder, and a string with a prefix, are refused, because the library cannot evaluate them."""
    with pytest.raises(BadRequest, match="in the place of a value"):
        check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "text = '$1 ? :x N'",
        "id::int = 1",
        "id :: int = 1",
        "a$b = 1",
        "text[1:2] = 'a'",
        "list[:2]",
        "`a?b` = 1",
        '"a:b" = 1',
        "text = X'ab'",
        "b = 'x'",
        "n LIKE 'a%'",
        "text LIKE 'N''a'",
    ],
)
def test_lookalikes_of_placeholders_are_accepted(text: str) -> None:
    """Characters within quotes, casts, slices or names are not mistaken for placeholders or prefixed strings."""
    check_expression(text)
