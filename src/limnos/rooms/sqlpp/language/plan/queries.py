# SPDX-License-Identifier: Apache-2.0
"""Bound queries: blocks as lists of steps in the order of their evaluation.

Must not know the storage of rows.
"""

from __future__ import annotations

from typing import Literal

from limnos.rooms.sqlpp.language.functions.table import Function
from limnos.rooms.sqlpp.language.plan.expressions import Expression, PlanNode

SourceKind = Literal["scan", "inner", "left", "right", "cross", "unnest", "outer unnest"]


class Let(PlanNode, frozen=True):
    """A LET clause: the slot of a variable, and its value."""

    slot: int
    value: Expression


class ForEach(PlanNode, frozen=True, kw_only=True):
    """One source of rows in FROM.

    The kind `scan` is a term of FROM. It may depend on earlier terms, like `unnest`. A join's source may not depend on
    them; its `condition` may. `left` and `right` keep rows without a match, with MISSING on the other side. `others`
    are the slots of the left side. `first` is the number of the first item for AT.
    """

    kind: SourceKind
    slot: int
    position: int | None
    source: Expression
    condition: Expression | None
    others: tuple[int, ...]
    first: int = 1


class Group(PlanNode, frozen=True, kw_only=True):
    """A GROUP BY clause. `keys` are slots with the key expressions; `sets` are the indexes of the keys in each grouping
    set.

    `members` are the names and values of the fields of GROUP AS's items. Without keys and with one empty set, all rows
    are one group.
    """

    keys: tuple[tuple[int, Expression], ...]
    sets: tuple[tuple[int, ...], ...]
    slot: int | None
    members: tuple[tuple[str, Expression], ...]
    number: int | None = None
    """The slot of the number of the group's grouping set."""


class Order(PlanNode, frozen=True):
    """One expression of ORDER BY. If `nulls_first` is None, MISSING and NULL are less than all other values: last in
    descending order.
    """

    value: Expression
    descending: bool
    nulls_first: bool | None


class FrameBound(PlanNode, frozen=True):
    """A bound of a window's frame; a value of None is unbounded."""

    side: Literal["preceding", "following", "current row"]
    value: Expression | None


class Frame(PlanNode, frozen=True, kw_only=True):
    """The frame of a window: its unit, its two bounds, and EXCLUDE."""

    mode: Literal["range", "rows", "groups"]
    start: FrameBound
    end: FrameBound
    exclude: Literal["current row", "group", "ties", "no others"]


class WindowCall(PlanNode, frozen=True, kw_only=True):
    """A window function, whose value for each row is stored in `slot` before the clause that uses it is evaluated."""

    slot: int
    function: Function
    arguments: tuple[Expression, ...]
    distinct: bool
    filter: Expression | None
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: Frame | None
    from_last: bool
    ignore_nulls: bool


class Projection(PlanNode, frozen=True):
    """A projection of SELECT: a value with a name; without a name, all fields of the value (`value.*`)."""

    name: str | None
    value: Expression


class Select(PlanNode, frozen=True, kw_only=True):
    """A SELECT clause: the result for each row is one value, or an object of projections."""

    distinct: bool
    value: Expression | None
    projections: tuple[Projection, ...]
    exclude: tuple[tuple[str, ...], ...]


class Block(PlanNode, frozen=True, kw_only=True):
    """One SELECT block with its clauses.

    A window function in `lets` or `group_lets` is computed over all rows at that point. ORDER BY sorts the rows before
    DISTINCT, which keeps the first of equal results.
    """

    sources: tuple[ForEach, ...]
    lets: tuple[Let | WindowCall, ...]
    where: Expression | None
    group: Group | None
    group_lets: tuple[Let | WindowCall, ...]
    having: Expression | None
    windows: tuple[WindowCall, ...]
    select: Select


class Query(PlanNode, frozen=True, kw_only=True):
    """A query: blocks joined by UNION ALL, then ORDER BY, LIMIT and OFFSET.

    With a single block ORDER BY uses the rows of the block; otherwise it uses the results in the slot `output`.
    """

    lets: tuple[Let, ...]
    arms: tuple[Block | Query, ...]
    order: tuple[Order, ...]
    output: int | None
    limit: Expression | None
    offset: Expression | None


class Subquery(Expression, frozen=True):
    """A query as an expression, whose value is the array of its results."""

    query: Query
