"""Bound queries: blocks as lists of steps in the order in which they take effect.

May import `expressions`. Must not know how rows are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from limnos.sqlpp.plan.expressions import Expression, PlanNode

if TYPE_CHECKING:
    from limnos.sqlpp.functions.table import Function


SourceKind = Literal["scan", "inner", "left", "right", "cross", "unnest", "outer unnest"]


class Let(PlanNode, frozen=True):
    """A variable and its value."""

    slot: int
    value: Expression


class ForEach(PlanNode, frozen=True):
    """One source of rows.

    `scan` goes with what is left of it (a comma list) and may depend on it. A join's source does not, its `condition` does; `left` and
    `right` keep rows without a partner, whose side is MISSING: `others` are the slots of the left side. `unnest` depends on what is before it.
    """

    kind: SourceKind
    slot: int
    position: int | None
    source: Expression
    condition: Expression | None
    others: tuple[int, ...]


class Group(PlanNode, frozen=True):
    """GROUP BY. `keys` are slots with the expressions before grouping; `sets` says for each grouping set which of them take part.

    `members` has the names and slots of what each item of GROUP AS holds. No keys and one empty set is one group of everything.
    """

    keys: tuple[tuple[int, Expression], ...]
    sets: tuple[tuple[int, ...], ...]
    slot: int | None
    members: tuple[tuple[str, int], ...]


class Order(PlanNode, frozen=True):
    """One expression of ORDER BY; `nulls_first` None: with the order of values, where unknowns are least."""

    value: Expression
    descending: bool
    nulls_first: bool | None


class FrameBound(PlanNode, frozen=True):
    """An edge of a window's frame; a value of None is unbounded."""

    side: Literal["preceding", "following", "current row"]
    value: Expression | None


class Frame(PlanNode, frozen=True):
    """The frame of a window."""

    mode: Literal["range", "rows", "groups"]
    start: FrameBound
    end: FrameBound
    exclude: Literal["current row", "group", "ties", "no others"]


class WindowCall(PlanNode, frozen=True):
    """A window function: its value for each row goes into `slot` before SELECT is worked out."""

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
    """One of SELECT's: a named value; or, without a name, an object whose fields are all taken over."""

    name: str | None
    value: Expression


class Select(PlanNode, frozen=True):
    """What a block gives for each row: one value, or an object of projections."""

    distinct: bool
    value: Expression | None
    projections: tuple[Projection, ...]
    exclude: tuple[tuple[str, ...], ...]


class Block(PlanNode, frozen=True):
    """One SELECT with what belongs to it."""

    sources: tuple[ForEach, ...]
    lets: tuple[Let, ...]
    where: Expression | None
    group: Group | None
    group_lets: tuple[Let, ...]
    having: Expression | None
    windows: tuple[WindowCall, ...]
    select: Select


class Query(PlanNode, frozen=True):
    """Blocks joined by UNION ALL, then ordered and cut.

    Where there is one block and it is not distinct, ORDER BY sees its rows; else it sees the output in the slot `output`.
    """

    lets: tuple[Let, ...]
    arms: tuple[Block | Query, ...]
    order: tuple[Order, ...]
    output: int | None
    limit: Expression | None
    offset: Expression | None


class Subquery(Expression, frozen=True):
    """A query whose result is an array."""

    query: Query
