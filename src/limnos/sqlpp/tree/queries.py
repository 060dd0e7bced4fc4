"""Queries: blocks of SELECT, FROM and what stands between, joined by set operations.

May import `base` and `expressions`. Must not know statements. A block that began with FROM, one that began with SELECT, LET
and WITH give the same nodes: which was written makes no difference to anyone.
"""

from __future__ import annotations

from typing import Literal

from limnos.sqlpp.tree.base import Expression, SyntaxNode
from limnos.sqlpp.tree.expressions import GroupVariable, OrderItem


class Let(SyntaxNode, frozen=True):
    """`LET name = value`, or `WITH name AS value`."""

    name: str
    value: Expression


class Projection(SyntaxNode, frozen=True):
    """One of SELECT's: `*` (no value), `value.*` (`every`), or a value with the name given or taken from its last step."""

    value: Expression | None
    name: str | None
    every: bool


class Select(SyntaxNode, frozen=True):
    """SELECT: one `value`, or projections and the paths to leave out of them."""

    distinct: bool
    value: Expression | None
    projections: tuple[Projection, ...]
    exclude: tuple[tuple[str, ...], ...]


class Join(SyntaxNode, frozen=True):
    """A join with the term before it; CROSS has no condition."""

    kind: Literal["inner", "left", "right", "cross"]
    source: Expression
    variable: str
    position: str | None
    condition: Expression | None


class Unnest(SyntaxNode, frozen=True):
    """UNNEST, CORRELATE or FLATTEN; `outer` keeps what has nothing to unnest."""

    outer: bool
    source: Expression
    variable: str
    position: str | None


class Term(SyntaxNode, frozen=True):
    """One of FROM's: a source, its variable, and what is joined to it. The variable is the source's last name unless given."""

    source: Expression
    variable: str
    position: str | None
    links: tuple[Join | Unnest, ...]


class GroupKey(SyntaxNode, frozen=True):
    """An expression to group by; its variable is the last step's unless given, and None when there is neither."""

    value: Expression
    variable: str | None


class GroupSet(SyntaxNode, frozen=True):
    """Keys in parentheses, or one without; no key at all is the grand total."""

    keys: tuple[GroupKey, ...]


class Rollup(SyntaxNode, frozen=True):
    """ROLLUP or CUBE."""

    cube: bool
    sets: tuple[GroupSet, ...]


class GroupingSets(SyntaxNode, frozen=True):
    """GROUPING SETS."""

    elements: tuple[Grouping, ...]


Grouping = GroupSet | Rollup | GroupingSets


class GroupBy(SyntaxNode, frozen=True):
    """GROUP BY … GROUP AS."""

    elements: tuple[Grouping, ...]
    variable: GroupVariable | None


class Block(SyntaxNode, frozen=True):
    """One SELECT with what belongs to it, in the order in which it takes effect."""

    terms: tuple[Term, ...]
    lets: tuple[Let, ...]
    where: Expression | None
    group: GroupBy | None
    group_lets: tuple[Let, ...]
    having: Expression | None
    select: Select


class SetArm(SyntaxNode, frozen=True):
    """A set operation with what is before it. Its input is a block, or a whole query in parentheses."""

    operator: Literal["union", "intersect", "except"]
    all: bool
    input: Block | QueryExpression


class QueryExpression(Expression, frozen=True):
    """A query, which is also an expression when it stands in parentheses."""

    lets: tuple[Let, ...]
    block: Block
    arms: tuple[SetArm, ...]
    order: tuple[OrderItem, ...]
    limit: Expression | None
    offset: Expression | None
