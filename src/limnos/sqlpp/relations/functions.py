"""Functions of SQL++ that an engine of columns carries: for each, the term that means the same.

May import `operators` and `shapes`. Must not know plans. A function that is not here is the evaluator's. Each takes shapes and gives one, or raises Uncarried for types with which it
would mean something else there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from limnos.sqlpp.relations.operators import (
    ORDERED,
    WHOLE,
    cell,
    chosen,
    compared,
    like,
    merged_type,
    null,
    of_type,
    truth,
    typed,
)
from limnos.sqlpp.relations.shapes import Cell, Items, Shape, Uncarried, missing_of, null_of, unknown_of
from limnos.sqlpp.relations.terms import FALSE, Column, Flag, Lambda, Literal, Term, any_of, call, not_of, term_of
from limnos.sqlpp.stored import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.sqlpp.stored.types import ScalarName

Make = Callable[..., Shape]
CARRIED: Final[dict[str, Make]] = {}
"""By the names that the table of functions has."""
_DIGITS_MAX = 15


def carried(*names: str) -> Callable[[Make], Make]:
    """Say how functions are carried."""

    def put(make: Make) -> Make:
        for name in names:
            CARRIED[name] = make
        return make

    return put


def _strict(term: Term, type_: ScalarName, *operands: Cell) -> Cell:
    """What is MISSING where an operand is, and NULL where one is."""
    return Cell(term, type_, any_of(*map(missing_of, operands)), all(one.known for one in operands))


def _of_string(name: str, type_: ScalarName) -> None:
    @carried(name)
    def make(value: Shape) -> Shape:
        one = of_type(value, "string")
        return _strict(call(name, one.term), type_, one)


_of_string("length", "bigint")
_of_string("lower", "string")
_of_string("upper", "string")


def _of_two_strings(name: str, type_: ScalarName) -> None:
    @carried(name)
    def make(value: Shape, other: Shape) -> Shape:
        one, two = of_type(value, "string"), of_type(other, "string")
        return _strict(call(name, one.term, two.term), type_, one, two)


for _name in ("contains", "starts_with", "ends_with"):
    _of_two_strings(_name, "boolean")
_of_two_strings("position", "bigint")


@carried("concat")
def concat(*values: Shape) -> Shape:
    """Strings one after the other."""
    cells = [of_type(value, "string") for value in values]
    return _strict(call("concat", *(one.term for one in cells)), "string", *cells)


CARRIED["like"] = like


def _part(value: Shape, offset: Shape, *length: Shape, first: int) -> Cell:
    """A part of a string from a known offset on, for a known length; NULL where the offset is outside."""
    one, start = of_type(value, "string"), _number(offset)
    count = _number(length[0]) if length else None
    if start is None or (length and count is None) or (count or 0) < 0 or start < 0:
        raise Uncarried("substr with an offset or a length that is not known, or is negative")
    start -= 1 if first == 1 and start > 0 else 0
    term = call(
        "substr", one.term, Literal(start + 1, "integer"), *([] if count is None else [Literal(count, "integer")])
    )
    inside = call("<=", Literal(start, "bigint"), call("length", one.term))
    found = term if start == 0 else call("if", inside, term, Literal(None, "string"))
    return Cell(found, "string", missing_of(one), known=one.known and start == 0)


def _number(shape: Shape) -> int | None:
    """A whole number that is known."""
    if isinstance(shape, Cell) and isinstance(shape.term, Literal) and shape.type in WHOLE:
        value = shape.term.value
        return int(value) if isinstance(value, int) and abs(value) < 1 << 31 else None
    return None


@carried("substr")
def substr(value: Shape, offset: Shape, *length: Shape) -> Shape:
    """A part, counted from 0."""
    return _part(value, offset, *length, first=0)


@carried("substr1")
def substr1(value: Shape, offset: Shape, *length: Shape) -> Shape:
    """A part, counted from 1."""
    return _part(value, offset, *length, first=1)


# Time.


def _of_time(name: str, *types: str) -> None:
    @carried(name)
    def make(value: Shape) -> Shape:
        one = of_type(value, *types)
        return _strict(call(name, one.term, word=one.type), "bigint", one)


for _name in ("get_year", "get_month", "get_day"):
    _of_time(_name, "date", "datetime")
for _name in ("get_hour", "get_minute", "get_second"):
    _of_time(_name, "datetime")
_of_time("unix_time_from_date_in_days", "date")
_of_time("unix_time_from_datetime_in_ms", "datetime")


# Numbers.


@carried("abs")
def absolute(value: Shape) -> Shape:
    """Without its sign."""
    one = of_type(value, "integer", "bigint", "double")
    return _strict(call("abs", one.term), one.type, one)  # type: ignore[arg-type]


def _rounded(name: str) -> None:
    @carried(name)
    def make(value: Shape, *digits: Shape) -> Shape:
        one = of_type(value, *WHOLE, "double")
        places = _number(digits[0]) if digits else 0
        if places is None or not 0 <= places <= _DIGITS_MAX:
            raise Uncarried(f"{name} to digits that are not known, or are too many")
        if one.type in WHOLE:
            return one
        return _strict(call(name, one.term, Literal(10.0**places, "double")), "double", one)


for _name in ("ceil", "floor", "round", "trunc"):
    _rounded(_name)


@carried("sqrt")
def sqrt(value: Shape) -> Shape:
    """The square root; NaN of what has none."""
    one = of_type(value, "double")
    return _strict(call("sqrt", one.term), "double", one)


def _extreme(name: str) -> None:
    @carried(name)
    def make(*values: Shape) -> Shape:
        cells = [cell(value) for value in values]
        if len({one.type for one in cells}) > 1 or cells[0].type not in ORDERED:
            raise Uncarried(f"{name} of several types")
        unknown = any_of(*map(unknown_of, cells))
        found = call(name, *(one.term for one in cells)) if len(cells) > 1 else cells[0].term
        term = found if unknown is False else call("if", term_of(unknown), Literal(None, cells[0].type), found)  # type: ignore[arg-type]
        return _strict(term, cells[0].type, *cells)  # type: ignore[arg-type]


_extreme("greatest")
_extreme("least")


# What is unknown.


def _first(name: str, passed: Callable[[Shape], Flag]) -> None:
    @carried(name)
    def make(*values: Shape) -> Shape:
        cells = [cell(value) for value in values]
        found = null()
        for one in reversed(cells):
            found = chosen(passed(one), then=found, otherwise=one)
        return found


_first("if_missing", missing_of)
_first("if_null", null_of)
_first("if_missing_or_null", unknown_of)


@carried("nvl")
def nvl(value: Shape, other: Shape) -> Shape:
    """The other value if the first is unknown."""
    return chosen(unknown_of(value), then=cell(other), otherwise=cell(value))


@carried("nvl2")
def nvl2(value: Shape, *others: Shape) -> Shape:
    """One value if the first is known, another if not."""
    known, unknown = others
    return chosen(unknown_of(value), then=cell(unknown), otherwise=cell(known))


@carried("null_if")
def null_if(value: Shape, other: Shape) -> Shape:
    """NULL if both are equal, else the first."""
    one, equal = cell(value), compared(value, other, by="=")
    type_ = merged_type([one])
    if equal.type == "null":
        return equal
    term = call("if", call("=", equal.term, FALSE), typed(one, type_), Literal(None, type_))
    return Cell(term, type_, missing_of(equal))


# Arrays.


@carried("array_count", "coll_count")
def array_count(value: Shape) -> Shape:
    """How many items are known; NULL of what is no array."""
    if not isinstance(value, Items):
        raise Uncarried("array_count of what is no column")
    return Cell(call("count_known", value.term), "bigint", missing=False)


@carried("len", "array_length")
def array_length(value: Shape) -> Shape:
    """How many items there are."""
    if not isinstance(value, Items):
        raise Uncarried("len of what is no column")
    return Cell(call("size", value.term), "bigint", missing_of(value))


def within(value: Shape, items: Shape, *, item: int) -> Shape:
    """`value IN items`, for a column of arrays; `item` is a column's number that is free."""
    if not isinstance(items, Items) or not isinstance(items.item, Scalar):
        raise Uncarried("IN of what is no array of scalars")
    one = cell(value)
    equal = compared(Cell(Column(item), items.item.name), one, by="=")
    missing = any_of(missing_of(items), missing_of(one))
    if one.type == "null":
        return null(missing=missing)
    body = (
        call("if", unknown, Literal(None, "boolean"), equal.term)
        if (unknown := _flagged(one)) is not None
        else equal.term
    )
    term = call("exists", items.term, Lambda(item, body))
    found = truth(term, one)
    emptied = call("if", unknown, Literal(None, "boolean"), term) if unknown is not None else term
    return Cell(emptied, found.type, missing)


def _flagged(one: Cell) -> Term | None:
    """Whether a cell is unknown, if it may be."""
    flag = unknown_of(one)
    return None if flag is False else term_of(flag)


KINDS: Mapping[str, frozenset[str]] = {
    "sum": frozenset({*WHOLE, "float", "double"}),
    "avg": frozenset({*WHOLE, "float", "double"}),
    "min": ORDERED,
    "max": ORDERED,
    "stddev_samp": frozenset({"double", *WHOLE}),
    "stddev_pop": frozenset({"double", *WHOLE}),
    "var_samp": frozenset({"double", *WHOLE}),
    "var_pop": frozenset({"double", *WHOLE}),
}
"""Aggregates beside `count`, and of which types they are carried."""


def result_type(function: str, type_: str) -> ScalarName:
    """The type of an aggregate's value."""
    if function in ("min", "max"):
        return type_  # type: ignore[return-value]
    return "bigint" if function == "count" or (function == "sum" and type_ in WHOLE) else "double"


def negation(flag: Flag) -> Term:
    """A flag's opposite as a term."""
    return term_of(not_of(flag))
