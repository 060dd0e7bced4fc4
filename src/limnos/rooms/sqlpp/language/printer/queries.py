# SPDX-License-Identifier: Apache-2.0
"""Prints queries. A block is printed with SELECT first, and a WITH clause as LET.

Must not omit a name: names that the parser inferred are printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.printer.base import Piece, list_pieces, operand, path, prints
from limnos.rooms.sqlpp.language.printer.expressions import order_by_pieces
from limnos.rooms.sqlpp.language.tree.expressions import POSTFIX


@prints(tree.QueryExpression)
def _query(node: tree.QueryExpression) -> Iterator[Piece]:
    if node.lets:
        yield from _lets(node.lets)
        yield " "
    yield node.block
    yield from node.arms
    yield from order_by_pieces(node.order)
    yield from _clause(" LIMIT ", node.limit)
    yield from _clause(" OFFSET ", node.offset)


def _clause(word: str, value: tree.Expression | None) -> Iterator[Piece]:
    if value is not None:
        yield word
        yield from operand(value)


def _lets(lets: tuple[tree.Let, ...]) -> Iterator[Piece]:
    if lets:
        yield "LET "
        yield from list_pieces(lets)


@prints(tree.Let)
def _let(node: tree.Let) -> Iterator[Piece]:
    yield f"{identifier(node.name)} = "
    yield from operand(node.value)


@prints(tree.SetArm)
def _arm(node: tree.SetArm) -> Iterator[Piece]:
    yield f" {node.operator.upper()} {'ALL ' if node.all else ''}"
    if isinstance(node.input, tree.QueryExpression):
        yield "("
        yield node.input
        yield ")"
    else:
        yield node.input


@prints(tree.Block)
def _block(node: tree.Block) -> Iterator[Piece]:
    yield node.select
    if node.terms:
        yield " FROM "
        yield from list_pieces(node.terms)
    yield " " if node.lets else ""
    yield from _lets(node.lets)
    yield from _clause(" WHERE ", node.where)
    if node.group is not None:
        yield node.group
    yield " " if node.group_lets else ""
    yield from _lets(node.group_lets)
    yield from _clause(" HAVING ", node.having)


@prints(tree.Select)
def _select(node: tree.Select) -> Iterator[Piece]:
    yield "SELECT DISTINCT " if node.distinct else "SELECT "
    if node.value is not None:
        yield "VALUE "
        yield from operand(node.value)
    yield from list_pieces(node.projections)
    if node.exclude:
        yield f" EXCLUDE {', '.join(map(path, node.exclude))}"


@prints(tree.Projection)
def _projection(node: tree.Projection) -> Iterator[Piece]:
    if node.value is None:
        yield "*"
        return
    yield from operand(node.value, POSTFIX if node.every else 0)
    yield ".*" if node.every else f" AS {identifier(node.name)}" if node.name is not None else ""


@prints(tree.Term)
def _term(node: tree.Term) -> Iterator[Piece]:
    yield from _source(node)
    yield from node.links


def _source(node: tree.Term | tree.Join | tree.Unnest) -> Iterator[Piece]:
    yield from operand(node.source)
    yield f" AS {identifier(node.variable)}"
    yield f" AT {identifier(node.position)}" if node.position is not None else ""


@prints(tree.Join)
def _join(node: tree.Join) -> Iterator[Piece]:
    yield f" {node.kind.upper()} JOIN "
    yield from _source(node)
    yield from _clause(" ON ", node.condition)


@prints(tree.Unnest)
def _unnest(node: tree.Unnest) -> Iterator[Piece]:
    yield " LEFT UNNEST " if node.outer else " UNNEST "
    yield from _source(node)


@prints(tree.GroupBy)
def _group_by(node: tree.GroupBy) -> Iterator[Piece]:
    yield " GROUP BY "
    yield from list_pieces(node.elements)
    if node.variable is not None:
        yield " GROUP AS "
        yield node.variable


@prints(tree.GroupSet)
def _group_set(node: tree.GroupSet) -> Iterator[Piece]:
    """Print a set of keys, always in parentheses, because without them a key could not begin with a parenthesis."""
    yield "("
    yield from list_pieces(node.keys)
    yield ")"


@prints(tree.GroupKey)
def _group_key(node: tree.GroupKey) -> Iterator[Piece]:
    yield from operand(node.value)
    yield f" AS {identifier(node.variable)}" if node.variable is not None else ""


@prints(tree.Rollup)
def _rollup(node: tree.Rollup) -> Iterator[Piece]:
    yield "CUBE (" if node.cube else "ROLLUP ("
    yield from list_pieces(node.sets)
    yield ")"


@prints(tree.GroupingSets)
def _grouping_sets(node: tree.GroupingSets) -> Iterator[Piece]:
    yield "GROUPING SETS ("
    yield from list_pieces(node.elements)
    yield ")"
