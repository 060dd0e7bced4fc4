# SPDX-License-Identifier: Apache-2.0
"""The UPDATE statement and its steps: assignments and changes of arrays.

Must not know the effect of statements.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.tree.base import DottedName, Expression, Statement, SyntaxNode


class UpdateStep(SyntaxNode, frozen=True):
    """Base class of the steps of an UPDATE. The path begins with the variable of the object or item that the step
    changes.
    """

    path: tuple[str, ...]


class Assignment(UpdateStep, frozen=True):
    """The assignment `path = value`. A path of the variable alone replaces the object or item."""

    value: Expression
    follows: bool
    """Whether it follows another assignment of the same SET, after a comma."""


class ArrayInsert(UpdateStep, frozen=True):
    """The step `(INSERT INTO path [AT position] items)`: without a position, and for -1, items are appended."""

    position: int | None
    items: Expression


class ArrayDelete(UpdateStep, frozen=True, kw_only=True):
    """The step `(DELETE FROM path [AS variable] [AT position] [WHERE condition])`."""

    variable: str | None
    position: str | None
    where: Expression | None


class ArrayUpdate(UpdateStep, frozen=True, kw_only=True):
    """The step `(UPDATE path [AS variable] [AT position] steps [WHERE condition])`."""

    variable: str
    position: str | None
    steps: tuple[UpdateStep, ...]
    where: Expression | None


class Update(Statement, frozen=True, kw_only=True):
    """An UPDATE statement. The variable defaults to the dataset's name."""

    target: DottedName
    variable: str
    steps: tuple[UpdateStep, ...]
    where: Expression | None
    returning: Expression | None
