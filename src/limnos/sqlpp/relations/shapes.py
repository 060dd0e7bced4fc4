"""Shapes: what is known of a value before there are rows, and which terms hold its parts.

May import `terms` and declared types. Must not know plans. A cell is a term with a type; a record has a shape for each field; what cannot be said so has no shape,
and whoever asks for one is refused with the reason (`Uncarried`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, structs

from limnos.sqlpp.relations.terms import Flag, Term, all_of, any_of, call, not_of
from limnos.sqlpp.stored import DeclaredType, RecordType

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.sqlpp.plan import Expression
    from limnos.sqlpp.stored.types import ScalarName


class Uncarried(Exception):
    """An engine of columns does not carry something; the message says what."""


class Cell(Struct, frozen=True):
    """A value without parts. Where its term is NULL it is MISSING if `missing` holds, else NULL; `known` says that it never is."""

    term: Term
    type: ScalarName | Literal["null"]
    missing: Flag = False
    known: bool = False


class Items(Struct, frozen=True):
    """An array, or a multiset, of items of a declared type."""

    term: Term
    item: DeclaredType
    bag: bool = False
    missing: Flag = False


class Record(Struct, frozen=True):
    """An object. Where `there` does not hold there is none: it is MISSING if `missing` holds, else NULL.

    `declared` is its type where it is an object of a dataset, which may have other fields in the column `open`.
    """

    fields: tuple[tuple[str, Shape], ...]
    there: Flag = True
    missing: Flag = True
    declared: RecordType | None = None
    open: Term | None = None

    def field(self, name: str) -> Shape | None:
        """The shape of a field; None for one that is not among them."""
        return next((shape for called, shape in self.fields if called == name), None)


class Fixed(Struct, frozen=True):
    """An array, or a multiset, that has been written item by item."""

    items: tuple[Shape, ...]
    bag: bool = False


class Finished(Struct, frozen=True):
    """What the evaluator works out when a row has come: an expression of variables, whose values are these shapes.

    It is MISSING where `missing` holds; `reason` says why columns do not say it.
    """

    inputs: tuple[Shape, ...]
    expression: Expression
    slots: tuple[int, ...]
    reason: str
    missing: Flag = False


Shape: TypeAlias = "Cell | Items | Record | Fixed | Finished"


def is_null(term: Term) -> Flag:
    """Whether a term is NULL."""
    return call("is_null", term)


def unknown_of(shape: Shape) -> Flag:
    """Whether a value is NULL or MISSING."""
    if isinstance(shape, Record):
        return not_of(shape.there)
    if isinstance(shape, Fixed):
        return False
    if isinstance(shape, Finished):
        raise Uncarried(shape.reason)
    if isinstance(shape, Cell):
        if shape.known:
            return False
        if shape.type == "null":
            return True
    return is_null(shape.term)


def missing_of(shape: Shape) -> Flag:
    """Whether a value is MISSING."""
    return False if isinstance(shape, Fixed) else all_of(unknown_of(shape), shape.missing)


def null_of(shape: Shape) -> Flag:
    """Whether a value is NULL."""
    return False if isinstance(shape, Fixed) else all_of(unknown_of(shape), not_of(shape.missing))


def absent_where(shape: Shape, absent: Flag) -> Shape:
    """A shape that is MISSING where rows have no partner: its terms are NULL there by themselves."""
    if isinstance(shape, Fixed):
        raise Uncarried("an array of the optional side of a join")
    missing = any_of(absent, shape.missing)
    if isinstance(shape, Cell):
        return structs.replace(shape, missing=missing, known=False)
    if isinstance(shape, (Items, Finished)):
        return structs.replace(shape, missing=missing)
    fields = tuple((name, absent_where(field, absent)) for name, field in shape.fields)
    return structs.replace(shape, fields=fields, there=all_of(shape.there, not_of(absent)), missing=missing)


def changed(shape: Shape, change: Callable[[Term], Term]) -> Shape:
    """A shape with each of its terms changed."""

    def flag(held: Flag) -> Flag:
        return held if isinstance(held, bool) else change(held)

    if isinstance(shape, (Cell, Items)):
        return structs.replace(shape, term=change(shape.term), missing=flag(shape.missing))
    if isinstance(shape, Fixed):
        return structs.replace(shape, items=tuple(changed(item, change) for item in shape.items))
    if isinstance(shape, Finished):
        inputs = tuple(changed(one, change) for one in shape.inputs)
        return structs.replace(shape, inputs=inputs, missing=flag(shape.missing))
    return structs.replace(
        shape,
        fields=tuple((name, changed(field, change)) for name, field in shape.fields),
        there=flag(shape.there),
        missing=flag(shape.missing),
        open=None if shape.open is None else change(shape.open),
    )


def similar(one: Shape, other: Shape) -> bool:
    """Whether two shapes have the same fields of the same types, so that rows of both can be one column each."""
    if isinstance(one, Cell) and isinstance(other, Cell):
        return one.type == other.type
    if isinstance(one, Items) and isinstance(other, Items):
        return one.item == other.item and one.bag == other.bag
    if isinstance(one, Fixed) and isinstance(other, Fixed):
        pairs = zip(one.items, other.items, strict=False)
        return len(one.items) == len(other.items) and one.bag == other.bag and all(similar(*pair) for pair in pairs)
    if not isinstance(one, Record) or not isinstance(other, Record):
        return False
    if one.declared != other.declared or [name for name, _ in one.fields] != [name for name, _ in other.fields]:
        return False
    return all(similar(left, right) for (_, left), (_, right) in zip(one.fields, other.fields, strict=True))


def terms_in(shape: Shape) -> list[Term]:
    """The terms of a shape, flags included, in the order in which `changed` meets them."""
    found: list[Term] = []

    def take(term: Term) -> Term:
        found.append(term)
        return term

    changed(shape, take)
    return found
