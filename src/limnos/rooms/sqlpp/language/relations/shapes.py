# SPDX-License-Identifier: Apache-2.0
"""Shapes: the static type and structure of a value, and the terms that compute its parts.

Must not know how plans are translated. A cell is a term with a type; a record has a shape for each field. A value
without a shape raises `UntranslatableExpression` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from limnos.rooms.sqlpp.language.plan import Expression
from limnos.rooms.sqlpp.language.relations.terms import Term, TruthTerm, all_of, any_of, call, not_of
from limnos.rooms.sqlpp.language.stored import DeclaredType, RecordType
from limnos.rooms.sqlpp.language.values.model import ScalarName


class UntranslatableExpression(Exception):
    """Raised for an expression that a columnar engine cannot execute; the message names the expression."""


class CellShape(Struct, frozen=True):
    """A scalar value. If its term is null, the value is MISSING if `missing` is true, else NULL.

    `known`: the value is never MISSING or NULL.
    """

    term: Term
    type: ScalarName | Literal["null"]
    missing: TruthTerm = False
    known: bool = False


class ItemsShape(Struct, frozen=True):
    """An array or a multiset in a column, with items of a declared type."""

    term: Term
    item: DeclaredType
    bag: bool = False
    missing: TruthTerm = False


class RecordShape(Struct, frozen=True, kw_only=True):
    """An object. If `is_present` is false the object is absent: MISSING if `missing` is true, else NULL.

    `declared` is its type if it is an object of a dataset, which may have undeclared fields in the column `open`.
    """

    fields: tuple[tuple[str, Shape], ...]
    is_present: TruthTerm = True
    missing: TruthTerm = True
    declared: RecordType | None = None
    open: Term | None = None

    def field(self, name: str) -> Shape | None:
        """Return the shape of a field; None for an unknown one."""
        return next((shape for called, shape in self.fields if called == name), None)


class FixedShape(Struct, frozen=True):
    """An array or a multiset of fixed length, with a shape for each item."""

    items: tuple[Shape, ...]
    bag: bool = False


class FinishedShape(Struct, frozen=True, kw_only=True):
    """A deferred expression, which the evaluator computes from a row, with the shapes of its input variables.

    Its value is MISSING if `missing` is true; `reason` is the reason why it is not translated.
    """

    inputs: tuple[Shape, ...]
    expression: Expression
    slots: tuple[int, ...]
    reason: str
    missing: TruthTerm = False


Shape: TypeAlias = "CellShape | ItemsShape | RecordShape | FixedShape | FinishedShape"


def is_null(term: Term) -> TruthTerm:
    """Return the term `term IS NULL`."""
    return call("is_null", term)


def unknown_of(shape: Shape) -> TruthTerm:
    """Return the flag for whether a value is NULL or MISSING.

    Raises UntranslatableExpression for a deferred expression.
    """
    if isinstance(shape, RecordShape):
        return not_of(shape.is_present)
    if isinstance(shape, FixedShape):
        return False
    if isinstance(shape, FinishedShape):
        raise UntranslatableExpression(shape.reason)
    if isinstance(shape, CellShape):
        if shape.known:
            return False
        if shape.type == "null":
            return True
    return is_null(shape.term)


def missing_of(shape: Shape) -> TruthTerm:
    """Return the flag for whether a value is MISSING."""
    return False if isinstance(shape, FixedShape) else all_of(unknown_of(shape), shape.missing)


def null_of(shape: Shape) -> TruthTerm:
    """Return the flag for whether a value is NULL."""
    return False if isinstance(shape, FixedShape) else all_of(unknown_of(shape), not_of(shape.missing))


def absent_where(shape: Shape, absent: TruthTerm) -> Shape:
    """Return a shape that is also MISSING if `absent` is true.

    It is for rows of an outer join without a match, whose terms are null. Raises UntranslatableExpression for an array
    of fixed length.
    """
    if isinstance(shape, FixedShape):
        raise UntranslatableExpression("an array of the optional side of a join")
    missing = any_of(absent, shape.missing)
    if isinstance(shape, CellShape):
        return structs.replace(shape, missing=missing, known=False)
    if isinstance(shape, (ItemsShape, FinishedShape)):
        return structs.replace(shape, missing=missing)
    fields = tuple((name, absent_where(field, absent)) for name, field in shape.fields)
    return structs.replace(shape, fields=fields, is_present=all_of(shape.is_present, not_of(absent)), missing=missing)


def map_terms(shape: Shape, change: Callable[[Term], Term]) -> Shape:
    """Apply a function to each term of a shape."""

    def flag(current: TruthTerm) -> TruthTerm:
        return current if isinstance(current, bool) else change(current)

    if isinstance(shape, (CellShape, ItemsShape)):
        return structs.replace(shape, term=change(shape.term), missing=flag(shape.missing))
    if isinstance(shape, FixedShape):
        return structs.replace(shape, items=tuple(map_terms(item, change) for item in shape.items))
    if isinstance(shape, FinishedShape):
        inputs = tuple(map_terms(one, change) for one in shape.inputs)
        return structs.replace(shape, inputs=inputs, missing=flag(shape.missing))
    return structs.replace(
        shape,
        fields=tuple((name, map_terms(field, change)) for name, field in shape.fields),
        is_present=flag(shape.is_present),
        missing=flag(shape.missing),
        open=None if shape.open is None else change(shape.open),
    )


def similar(one: Shape, other: Shape) -> bool:
    """Return whether two shapes have the same fields of the same types, so that UNION ALL can share their columns."""
    if isinstance(one, CellShape) and isinstance(other, CellShape):
        return one.type == other.type
    if isinstance(one, ItemsShape) and isinstance(other, ItemsShape):
        return one.item == other.item and one.bag == other.bag
    if isinstance(one, FixedShape) and isinstance(other, FixedShape):
        pairs = zip(one.items, other.items, strict=False)
        return len(one.items) == len(other.items) and one.bag == other.bag and all(similar(*pair) for pair in pairs)
    if not isinstance(one, RecordShape) or not isinstance(other, RecordShape):
        return False
    if one.declared != other.declared or [name for name, _ in one.fields] != [name for name, _ in other.fields]:
        return False
    return all(similar(left, right) for (_, left), (_, right) in zip(one.fields, other.fields, strict=True))


def terms_in(shape: Shape) -> list[Term]:
    """Return the terms of a shape, flags included, in the order of `map_terms`."""
    terms: list[Term] = []

    def take(term: Term) -> Term:
        terms.append(term)
        return term

    map_terms(shape, take)
    return terms
