# SPDX-License-Identifier: Apache-2.0
"""Translates SQL++ functions to terms with the same semantics.

Must not know plans. A function that is not registered here is left to the evaluator. Each translation takes shapes and
returns a shape. It raises UntranslatableExpression for types for which the engine would return another result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from limnos.rooms.sqlpp.language.relations.operators import (
    ORDERED,
    WHOLE,
    cell,
    choose_cell,
    compare_shapes,
    like,
    merged_type,
    null,
    of_type,
    typed_term,
)
from limnos.rooms.sqlpp.language.relations.shapes import (
    CellShape,
    ItemsShape,
    Shape,
    UntranslatableExpression,
    missing_of,
    null_of,
    unknown_of,
)
from limnos.rooms.sqlpp.language.relations.terms import (
    ColumnTerm,
    LambdaTerm,
    LiteralTerm,
    Term,
    TruthTerm,
    all_of,
    any_of,
    call,
    not_of,
    term_of,
)
from limnos.rooms.sqlpp.language.stored import Scalar
from limnos.rooms.sqlpp.language.values.model import ScalarName

ShapeMaker = Callable[..., Shape]
CARRIED: Final[dict[str, ShapeMaker]] = {}
"""The translations, by the function's name."""
_DIGITS_MAX = 15


def translates_function(*names: str) -> Callable[[ShapeMaker], ShapeMaker]:
    """Register the translation of one or more functions."""

    def put(make: ShapeMaker) -> ShapeMaker:
        for name in names:
            CARRIED[name] = make
        return make

    return put


def _strict(term: Term, type_: ScalarName, *operands: CellShape) -> CellShape:
    """Return a cell of a strict function: MISSING if an operand is MISSING, else NULL if an operand is NULL."""
    return CellShape(term, type_, any_of(*map(missing_of, operands)), all(one.known for one in operands))


def _translate_string(name: str, type_: ScalarName) -> None:
    @translates_function(name)
    def make(value: Shape) -> Shape:
        one = of_type(value, "string")
        return _strict(call(name, one.term), type_, one)


_translate_string("length", "bigint")
_translate_string("lower", "string")
_translate_string("upper", "string")


def _translate_two_strings(name: str, type_: ScalarName) -> None:
    @translates_function(name)
    def make(value: Shape, other: Shape) -> Shape:
        one, two = of_type(value, "string"), of_type(other, "string")
        return _strict(call(name, one.term, two.term), type_, one, two)


for _name in ("contains", "starts_with", "ends_with"):
    _translate_two_strings(_name, "boolean")
_translate_two_strings("position", "bigint")


@translates_function("concat")
def concat(*values: Shape) -> Shape:
    """Translate `concat` of strings."""
    cells = [of_type(value, "string") for value in values]
    return _strict(call("concat", *(one.term for one in cells)), "string", *cells)


CARRIED["like"] = like


def _part(value: Shape, offset: Shape, *length: Shape, first: int) -> CellShape:
    """Translate a substring with constant offset and length; NULL if the offset is out of bounds.

    Raises UntranslatableExpression.
    """
    one, start = of_type(value, "string"), _number(offset)
    count = _number(length[0]) if length else None
    if start is None or (length and count is None) or (count or 0) < 0 or start < 0:
        raise UntranslatableExpression("substr with an offset or a length that is not constant, or is negative")
    start -= 1 if first == 1 and start > 0 else 0
    term = call(
        "substr",
        one.term,
        LiteralTerm(start + 1, "integer"),
        *([] if count is None else [LiteralTerm(count, "integer")]),
    )
    inside = call("<", LiteralTerm(start, "bigint"), call("length", one.term))
    call_term = term if start == 0 else call("if", inside, term, LiteralTerm(None, "string"))
    return CellShape(call_term, "string", missing_of(one), known=one.known and start == 0)


def _number(shape: Shape) -> int | None:
    """Return the value of a constant integer; None for other shapes."""
    if isinstance(shape, CellShape) and isinstance(shape.term, LiteralTerm) and shape.type in WHOLE:
        value = shape.term.value
        return int(value) if isinstance(value, int) and abs(value) < 1 << 31 else None
    return None


@translates_function("substr")
def substr(value: Shape, offset: Shape, *length: Shape) -> Shape:
    """Translate `substr`, whose offset is 0-based."""
    return _part(value, offset, *length, first=0)


@translates_function("substr1")
def substr1(value: Shape, offset: Shape, *length: Shape) -> Shape:
    """Translate `substr1`, whose offset is 1-based."""
    return _part(value, offset, *length, first=1)


# Time.


def _translate_time(name: str, *types: str) -> None:
    @translates_function(name)
    def make(value: Shape) -> Shape:
        one = of_type(value, *types)
        return _strict(call(name, one.term, word=one.type), "bigint", one)


def _translate_day(name: str) -> None:
    @translates_function(name)
    def make(value: Shape) -> Shape:
        one = of_type(value, "date", "datetime", "string")
        term = call(name, one.term, word=one.type)
        if one.type == "string":  # a text that is neither a date nor a datetime gives NULL
            return CellShape(term, "bigint", missing_of(one), known=False)
        return _strict(term, "bigint", one)


for _name in ("get_year", "get_month", "get_day"):
    _translate_day(_name)
for _name in ("get_hour", "get_minute", "get_second"):
    _translate_time(_name, "datetime")
_translate_time("unix_time_from_date_in_days", "date")
_translate_time("unix_time_from_datetime_in_ms", "datetime")


# Numbers.


@translates_function("abs")
def absolute(value: Shape) -> Shape:
    """Translate `abs`, which returns -0.0 unchanged."""
    one = of_type(value, "integer", "bigint", "double")
    term = call("abs", one.term)
    if one.type == "double":
        term = call("if", call("=", one.term, LiteralTerm(0.0, "double")), one.term, term)
    return _strict(term, one.type, one)  # type: ignore[arg-type]


def _register_rounding(name: str) -> None:
    @translates_function(name)
    def make(value: Shape, *digits: Shape) -> Shape:
        one = of_type(value, *WHOLE, "double")
        decimal_places = _number(digits[0]) if digits else 0
        if decimal_places is None or not 0 <= decimal_places <= _DIGITS_MAX:
            raise UntranslatableExpression(f"{name} to digits that are not constant, or are too many")
        if one.type in WHOLE:
            return one
        if name == "trunc" and decimal_places:
            raise UntranslatableExpression("trunc to digits, which truncates the text of a number")
        return _strict(call(name, one.term, LiteralTerm(10.0**decimal_places, "double")), "double", one)


for _name in ("ceil", "floor", "round", "trunc"):
    _register_rounding(_name)


@translates_function("sqrt")
def sqrt(value: Shape) -> Shape:
    """Translate `sqrt`, which is NaN for a negative number."""
    one = of_type(value, "double")
    return _strict(call("sqrt", one.term), "double", one)


def _extreme(name: str) -> None:
    @translates_function(name)
    def make(*values: Shape) -> Shape:
        cells = [cell(value) for value in values]
        if len({one.type for one in cells}) > 1 or cells[0].type not in ORDERED:
            raise UntranslatableExpression(f"{name} of several types")
        result = call(name, *(one.term for one in cells)) if len(cells) > 1 else cells[0].term
        return CellShape(result, cells[0].type, known=any(one.known for one in cells))


_extreme("greatest")
_extreme("least")


# NULL and MISSING.


def _first(name: str, passed: Callable[[Shape], TruthTerm]) -> None:
    @translates_function(name)
    def make(*values: Shape) -> Shape:
        cells = [cell(value) for value in values]
        shape = null()
        for one in reversed(cells):
            shape = choose_cell(passed(one), then=shape, otherwise=one)
        return shape


_first("if_missing", missing_of)
_first("if_null", null_of)
_first("if_missing_or_null", unknown_of)


@translates_function("nvl")
def nvl(value: Shape, other: Shape) -> Shape:
    """Translate `nvl`: the second value if the first is NULL or MISSING, else the first."""
    return choose_cell(unknown_of(value), then=cell(other), otherwise=cell(value))


@translates_function("nvl2")
def nvl2(value: Shape, *others: Shape) -> Shape:
    """Translate `nvl2`: the second value if the first is neither NULL nor MISSING, else the third."""
    known_case, unknown = others
    return choose_cell(unknown_of(value), then=cell(unknown), otherwise=cell(known_case))


@translates_function("null_if")
def null_if(value: Shape, other: Shape) -> Shape:
    """Translate `nullif`: NULL if both values are equal, else the first."""
    one, equal = cell(value), compare_shapes(value, other, by="=")
    if equal.type == "null":
        return one
    type_ = merged_type([one])
    term = call("if", equal.term, LiteralTerm(None, type_), typed_term(one, type_))
    return CellShape(term, type_, missing_of(one))


# Arrays.


@translates_function("array_count", "coll_count")
def array_count(value: Shape) -> Shape:
    """Translate `array_count`: the count of items that are neither NULL nor MISSING.

    Raises UntranslatableExpression.
    """
    if not isinstance(value, ItemsShape):
        raise UntranslatableExpression("array_count of a value that is not a column")
    return CellShape(call("count_known", value.term), "bigint", missing=False)


@translates_function("len", "array_length")
def array_length(value: Shape) -> Shape:
    """Translate `array_length`: the count of items. Raises UntranslatableExpression."""
    if not isinstance(value, ItemsShape):
        raise UntranslatableExpression("len of a value that is not a column")
    return CellShape(call("size", value.term), "bigint", missing_of(value))


def is_within(value: Shape, items: Shape, *, item: int) -> Shape:
    """Translate `value IN items` for an array column; `item` is an unused column id.

    Raises UntranslatableExpression.
    """
    if not isinstance(items, ItemsShape) or not isinstance(items.item, Scalar):
        raise UntranslatableExpression("IN of a value that is not an array of scalars")
    one = cell(value)
    equal = compare_shapes(CellShape(ColumnTerm(item), items.item.name), one, by="=")
    unknown, no_value = _unknown_flag(one), missing_of(one)
    missing = missing_of(items)
    if no_value is not False:  # without items the result is false
        some = call(
            "!=", call("coalesce", call("size", items.term), LiteralTerm(1, "bigint")), LiteralTerm(0, "bigint")
        )
        missing = any_of(missing, all_of(no_value, some))
    body: Term = equal.term
    if one.type == "null":
        body = LiteralTerm(None, "boolean")
    elif unknown is not None:
        body = call("if", unknown, LiteralTerm(None, "boolean"), equal.term)
    return CellShape(call("exists", items.term, LambdaTerm(item, body)), "boolean", missing)


def _unknown_flag(one: CellShape) -> Term | None:
    """Return the flag for whether a cell is NULL or MISSING as a term; None if it never is."""
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
"""Aggregates except `count`, and the types for which they are translated."""


def result_type(function: str, type_: str) -> ScalarName:
    """Return the type of the value of an aggregate, given the type of its argument."""
    if function in ("min", "max"):
        return type_  # type: ignore[return-value]
    return "bigint" if function == "count" or (function == "sum" and type_ in WHOLE) else "double"


def negation(flag: TruthTerm) -> Term:
    """Return the negation of a flag as a term."""
    return term_of(not_of(flag))
