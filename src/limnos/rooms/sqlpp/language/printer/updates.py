# SPDX-License-Identifier: Apache-2.0
"""Prints UPDATE with its SET and array steps.

Must not know the effect of statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.printer.base import Piece, dotted_name, operand, path, prints


@prints(tree.Assignment)
def _assignment(node: tree.Assignment) -> Iterator[Piece]:
    yield f"{',' if node.follows else ' SET'} {path(node.path)} = "
    yield from operand(node.value)


@prints(tree.ArrayInsert)
def _array_insert(node: tree.ArrayInsert) -> Iterator[Piece]:
    yield f"(INSERT INTO {path(node.path)} "
    yield f"AT {node.position} " if node.position is not None else ""
    yield from operand(node.items)
    yield ")"


@prints(tree.ArrayDelete)
def _array_delete(node: tree.ArrayDelete) -> Iterator[Piece]:
    yield "(DELETE FROM "
    yield path(node.path)
    yield f" AS {identifier(node.variable)}" if node.variable is not None else ""
    yield from _rest(node.position, (), where=node.where)
    yield ")"


@prints(tree.ArrayUpdate)
def _array_update(node: tree.ArrayUpdate) -> Iterator[Piece]:
    yield f"(UPDATE {path(node.path)} AS {identifier(node.variable)}"
    yield from _rest(node.position, node.steps, where=node.where)
    yield ")"


@prints(tree.Update)
def _update(node: tree.Update) -> Iterator[Piece]:
    yield f"UPDATE {dotted_name(node.target)} AS {identifier(node.variable)}"
    yield from _rest(None, node.steps, where=node.where)
    if node.returning is not None:
        yield " RETURNING "
        yield from operand(node.returning)


def _rest(
    position: str | None, steps: tuple[tree.UpdateStep, ...], *, where: tree.Expression | None
) -> Iterator[Piece]:
    yield f" AT {identifier(position)}" if position is not None else ""
    for each in steps:
        yield "" if isinstance(each, tree.Assignment) else " "
        yield each
    if where is not None:
        yield " WHERE "
        yield from operand(where)
