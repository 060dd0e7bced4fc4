# SPDX-License-Identifier: Apache-2.0
"""Queries: blocks of SELECT, FROM and the clauses between, joined by set operations.

Must not know statements. Blocks that begin with FROM or SELECT give the same nodes, and so do LET and WITH.
"""

from __future__ import annotations

from typing import Literal

from limnos.rooms.sqlpp.language.tree.base import Expression, SyntaxNode
from limnos.rooms.sqlpp.language.tree.expressions import GroupVariable, OrderItem


class Let(SyntaxNode, frozen=True):
    """The clause `LET name = value`, or `WITH name AS value`."""

    name: str
    value: Expression


class Projection(SyntaxNode, frozen=True):
    """A value of SELECT: `*` (no value), `value.*` (`every`), or a value with its given or implicit name."""

    value: Expression | None
    name: str | None
    every: bool


class Select(SyntaxNode, frozen=True, kw_only=True):
    """A SELECT clause: one `value`, or projections and the paths to exclude from them."""

    distinct: bool
    value: Expression | None
    projections: tuple[Projection, ...]
    exclude: tuple[tuple[str, ...], ...]


class Join(SyntaxNode, frozen=True, kw_only=True):
    """A join with the previous term of FROM; CROSS has no condition."""

    kind: Literal["inner", "left", "right", "cross"]
    source: Expression
    variable: str
    position: str | None
    condition: Expression | None


class Unnest(SyntaxNode, frozen=True, kw_only=True):
    """An UNNEST, CORRELATE or FLATTEN in FROM; `outer` keeps rows without items."""

    outer: bool
    source: Expression
    variable: str
    position: str | None


class Term(SyntaxNode, frozen=True, kw_only=True):
    """A term of FROM: a source, its variable, and its joins. The variable defaults to the last part of the source's
    name.
    """

    source: Expression
    variable: str
    position: str | None
    links: tuple[Join | Unnest, ...]


class GroupKey(SyntaxNode, frozen=True):
    """A grouping expression. Its variable defaults to the name of the last step; None if it has no such name."""

    value: Expression
    variable: str | None


class GroupSet(SyntaxNode, frozen=True):
    """A set of grouping keys; an empty set is the grand total."""

    keys: tuple[GroupKey, ...]


class Rollup(SyntaxNode, frozen=True):
    """A ROLLUP or CUBE of sets of grouping keys."""

    cube: bool
    sets: tuple[GroupSet, ...]


class GroupingSets(SyntaxNode, frozen=True):
    """A GROUPING SETS clause."""

    elements: tuple[Grouping, ...]


Grouping = GroupSet | Rollup | GroupingSets


class GroupBy(SyntaxNode, frozen=True):
    """A GROUP BY clause, with the variable of GROUP AS."""

    elements: tuple[Grouping, ...]
    variable: GroupVariable | None


class Block(SyntaxNode, frozen=True, kw_only=True):
    """One SELECT with its clauses, in the order of their evaluation."""

    terms: tuple[Term, ...]
    lets: tuple[Let, ...]
    where: Expression | None
    group: GroupBy | None
    group_lets: tuple[Let, ...]
    having: Expression | None
    select: Select


class SetArm(SyntaxNode, frozen=True):
    """A set operation with the previous block. Its input is a block, or a complete query in parentheses."""

    operator: Literal["union", "intersect", "except"]
    all: bool
    input: Block | QueryExpression


class QueryExpression(Expression, frozen=True, kw_only=True):
    """A query: WITH, blocks, ORDER BY and limits. In parentheses it is also an expression."""

    lets: tuple[Let, ...]
    block: Block
    arms: tuple[SetArm, ...]
    order: tuple[OrderItem, ...]
    limit: Expression | None
    offset: Expression | None
