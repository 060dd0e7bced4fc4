# SPDX-License-Identifier: Apache-2.0
"""Translates operators of SQL++ over cells: comparison, arithmetic, logic, LIKE.

Must not know plans. If an engine's operator differs, the term compensates so that the result is that of SQL++. Division
by zero is NULL, integers are compared exactly with doubles, and values of two types are not compared. An overflow is an
error in both. The functions raise UntranslatableExpression for operands that they do not support.
"""

from __future__ import annotations

from typing import Final

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.relations.shapes import (
    CellShape,
    FinishedShape,
    Shape,
    UntranslatableExpression,
    missing_of,
    null_of,
    unknown_of,
)
from limnos.rooms.sqlpp.language.relations.terms import (
    FALSE,
    LiteralTerm,
    Term,
    TruthTerm,
    all_of,
    any_of,
    call,
    not_of,
    term_of,
)
from limnos.rooms.sqlpp.language.values import text
from limnos.rooms.sqlpp.language.values.model import NUMERIC, ScalarName

WHOLE: Final = ("tinyint", "smallint", "integer", "bigint")
REAL: Final = ("float", "double")
ORDERED: Final = frozenset({*NUMERIC, "string", "boolean", "date", "datetime", "uuid", "binary"})
"""Types whose columns an engine orders as SQL++ orders their values."""
_EXACT_MAX = 1 << 53
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison with the same result if the operands change places."""
COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})


def null(type_: ScalarName = "boolean", *, missing: TruthTerm = False) -> CellShape:
    """Return a cell that is always NULL or MISSING."""
    return CellShape(LiteralTerm(None, type_), "null", missing)


def truth(term: Term, *operands: Shape) -> CellShape:
    """Return a boolean cell that is MISSING if an operand is MISSING, and NULL if its term is otherwise null."""
    is_known = all(unknown_of(one) is False for one in operands)
    return CellShape(term, "boolean", any_of(*map(missing_of, operands)), is_known)


def cell(shape: Shape) -> CellShape:
    """Check that a shape is scalar and return it. Raises UntranslatableExpression for an array or object."""
    if isinstance(shape, CellShape):
        return shape
    if isinstance(shape, FinishedShape):
        raise UntranslatableExpression(shape.reason)
    raise UntranslatableExpression("an operator on an array or an object")


def of_type(shape: Shape, *types: str) -> CellShape:
    """Check that a shape is a scalar of one of these types and return it. Raises UntranslatableExpression."""
    cell_shape = cell(shape)
    if cell_shape.type not in types:
        raise UntranslatableExpression(f"a value of type {cell_shape.type} in the place of {types[0]}")
    return cell_shape


def compare_shapes(left: Shape, right: Shape, *, by: str) -> CellShape:
    """Translate a comparison operator. Raises UntranslatableExpression."""
    one, other = cell(left), cell(right)
    if "null" in (one.type, other.type) or (_family(one) != _family(other) and by not in ("=", "!=")):
        return null(missing=any_of(missing_of(one), missing_of(other)))
    if _family(one) != _family(other):
        if unknown_of(one) is not False or unknown_of(other) is not False:
            raise UntranslatableExpression("the equality of two types of values that may be NULL")
        return truth(LiteralTerm(by == "!=", "boolean"), one, other)
    if by not in ("=", "!=") and one.type not in ORDERED:
        raise UntranslatableExpression(f"the order of values of type {one.type}")
    return truth(_compare_cells(one, other, by=by), one, other)


def _family(one: CellShape) -> str:
    return "number" if one.type in NUMERIC else one.type


def _compare_cells(one: CellShape, other: CellShape, *, by: str) -> Term:
    """Return the comparison of two cells of the same type family as a term.

    A comparison of a real number with a constant handles NaN explicitly, which is greater than any number. Spark has
    the same order, but pushes such a condition down to Iceberg, whose file bounds do not include NaN.
    """
    compared = _compare_numbers(one, other, by=by)
    for here, opposite, sign in ((one, other, by), (other, one, _TURNED.get(by, by))):
        constant = opposite.term
        if here.type in REAL and isinstance(constant, LiteralTerm) and constant.value == constant.value:
            if sign in (">", ">="):
                return call("or", compared, call("isnan", here.term))
            if sign in ("<", "<="):
                return call("and", compared, call("not", call("isnan", here.term)))
    return compared


def _compare_numbers(one: CellShape, other: CellShape, *, by: str) -> Term:
    if "bigint" not in (one.type, other.type) or not {one.type, other.type} & set(REAL):
        return call(by, one.term, other.term)
    for here, shape in ((one, other), (other, one)):
        if isinstance(here.term, LiteralTerm):
            same = _as_type(here.term, shape)
            if same is not None:
                return call(by, *((same, shape.term) if here is one else (shape.term, same)))
    if one.type == "bigint":
        return call("exact", one.term, call("cast", other.term, word="double"), word=by)
    return call("exact", other.term, call("cast", one.term, word="double"), word=_TURNED.get(by, by))


def _as_type(literal: LiteralTerm, other: CellShape) -> Term | None:
    """Return a number as a literal of the other cell's type; None if the conversion would lose precision."""
    value = literal.value
    if not isinstance(value, (int, float)) or value != value or abs(value) > _EXACT_MAX:  # noqa: PLR0124 - a NaN
        return None
    if other.type == "bigint":
        return LiteralTerm(int(value), "bigint") if float(value).is_integer() else None
    return LiteralTerm(float(value), "double") if other.type == "double" else None


# Logic.


def boolean(shape: Shape) -> CellShape:
    """Check that a shape is boolean and return it. Raises UntranslatableExpression."""
    return of_type(shape, "boolean", "null")


def both(operands: list[Shape]) -> CellShape:
    """Translate AND: false if an operand is false, else MISSING takes precedence over NULL, and NULL over true."""
    cells = [boolean(one) for one in operands]
    term = call("and", *(one.term for one in cells))
    return CellShape(term, "boolean", any_of(*map(missing_of, cells)), all(one.known for one in cells))


def either(operands: list[Shape]) -> CellShape:
    """Translate OR: true if an operand is true, else NULL takes precedence over MISSING, and MISSING over false."""
    cells = [boolean(one) for one in operands]
    term = call("or", *(one.term for one in cells))
    return CellShape(term, "boolean", not_of(any_of(*map(null_of, cells))), all(one.known for one in cells))


def negated(shape: Shape) -> CellShape:
    """Translate NOT."""
    one = boolean(shape)
    if one.type == "null":
        return one
    return CellShape(call("not", one.term), "boolean", one.missing, one.known)


def is_true(shape: Shape) -> Term:
    """Return a filter condition as a term, in which FALSE, NULL, MISSING and values of other types are equivalent.

    Raises UntranslatableExpression.
    """
    if isinstance(shape, FinishedShape):
        raise UntranslatableExpression(shape.reason)
    return shape.term if isinstance(shape, CellShape) and shape.type == "boolean" else FALSE


# Arithmetic.


def arithmetic(left: Shape, right: Shape, *, by: str) -> CellShape:
    """Translate `+`, `-`, `*`, `/`, DIV or MOD. Raises UntranslatableExpression."""
    one, other = cell(left), cell(right)
    missing = any_of(missing_of(one), missing_of(other))
    if "null" in (one.type, other.type):
        return null(missing=missing)
    if one.type not in NUMERIC or other.type not in NUMERIC:
        raise UntranslatableExpression(f"{by} of {one.type} and {other.type}")
    wider: ScalarName = NUMERIC[max(NUMERIC.index(one.type), NUMERIC.index(other.type))]  # type: ignore[assignment]
    if by == "/" and wider in WHOLE:
        wider = "double"
    if wider == "float":
        raise UntranslatableExpression("arithmetic of type float")
    terms = [as_type(each, wider) for each in (one, other)]
    is_known = one.known and other.known
    if by in ("+", "-", "*"):
        return CellShape(call(by, *terms), wider, missing, is_known)
    name = {"/": "/", "div": "div" if wider in WHOLE else "/", "mod": "mod"}.get(by)
    if name is None:
        raise UntranslatableExpression(f"the operator {by}")
    zero = _literal(0, wider)
    if isinstance(terms[1], LiteralTerm) and terms[1].value:
        return CellShape(call(name, *terms, word=wider), wider, missing, is_known)
    guarded_term = call("if", call("=", terms[1], zero), LiteralTerm(None, wider), call(name, *terms, word=wider))
    return CellShape(guarded_term, wider, missing, known=False)


def _literal(value: int, type_: ScalarName) -> LiteralTerm:
    return LiteralTerm(float(value) if type_ in REAL else value, type_)


def as_type(one: CellShape, expected: ScalarName) -> Term:
    """Return a number's term cast to a type. A tinyint or smallint is cast even if it has the type, as its column is
    wider.
    """
    if isinstance(one.term, LiteralTerm) and isinstance(one.term.value, (int, float)):
        value = one.term.value
        if expected not in REAL:
            return LiteralTerm(int(value), expected)
        if isinstance(value, float) or abs(value) <= _EXACT_MAX:
            return LiteralTerm(float(value), expected)
    if one.type == expected and expected not in ("tinyint", "smallint"):
        return one.term
    return call("cast", one.term, word=expected)


def minus(shape: Shape) -> CellShape:
    """Translate unary minus. Raises UntranslatableExpression."""
    one = cell(shape)
    if one.type == "null":
        return one
    if one.type not in ("integer", "bigint", "double"):
        raise UntranslatableExpression(f"a sign before {one.type}")
    return CellShape(call("negative", one.term), one.type, one.missing, one.known)


# Strings.


def concatenate_shapes(left: Shape, right: Shape) -> CellShape:
    """Translate `||`, the concatenation of strings."""
    one, other = of_type(left, "string"), of_type(right, "string")
    missing = any_of(missing_of(one), missing_of(other))
    return CellShape(call("concat", one.term, other.term), "string", missing, one.known and other.known)


def like(left: Shape, right: Shape) -> CellShape:
    """Translate LIKE. Raises UntranslatableExpression unless the pattern is a valid constant."""
    one, other = of_type(left, "string"), cell(right)
    if not isinstance(other.term, LiteralTerm) or not isinstance(other.term.value, str):
        raise UntranslatableExpression("LIKE with a pattern that is not constant")
    try:
        text.like("", other.term.value)
    except SqlppError as error:
        raise UntranslatableExpression(error.message) from None
    return truth(call("like", one.term, other.term), one)


def distinct(left: Shape, right: Shape) -> CellShape:
    """Translate `IS DISTINCT FROM`, which is never NULL."""
    one, other = cell(left), cell(right)
    if "null" in (one.type, other.type) or _family(one) != _family(other):
        objects: TruthTerm = not_of(_both_alike(one, other))
    else:
        differ = call("coalesce", _compare_cells(one, other, by="!="), FALSE)
        objects = any_of(differ, not_of(_are_alike(one, other)))
    return CellShape(term_of(objects), "boolean", missing=False, known=True)


def _both_alike(one: CellShape, other: CellShape) -> TruthTerm:
    """Return the flag for whether both cells are MISSING or both are NULL."""
    return any_of(all_of(missing_of(one), missing_of(other)), all_of(null_of(one), null_of(other)))


def _are_alike(one: CellShape, other: CellShape) -> TruthTerm:
    """Return the flag for whether both cells are known values, both MISSING, or both NULL."""
    return any_of(all_of(not_of(unknown_of(one)), not_of(unknown_of(other))), _both_alike(one, other))


# Choice.


def merged_type(cells: list[CellShape]) -> ScalarName:
    """Return the common type of cells; cells that are always NULL have any type. Raises UntranslatableExpression."""
    types: set[ScalarName] = {one.type for one in cells if one.type != "null"}
    if len(types) > 1:
        raise UntranslatableExpression(f"values of the types {', '.join(sorted(types))} in one place")
    return types.pop() if types else "boolean"


def typed_term(one: CellShape, type_: ScalarName) -> Term:
    """Return a cell's term; for a cell that is always NULL, a NULL of the given type."""
    return LiteralTerm(None, type_) if one.type == "null" else one.term


def choose_cell(flag: TruthTerm, *, then: CellShape, otherwise: CellShape) -> CellShape:
    """Return a cell that is `then` if the flag is true, else `otherwise`."""
    if isinstance(flag, bool):
        return then if flag else otherwise
    type_ = merged_type([then, otherwise])
    term = call("if", flag, typed_term(then, type_), typed_term(otherwise, type_))
    missing = any_of(all_of(flag, missing_of(then)), all_of(not_of(flag), missing_of(otherwise)))
    return CellShape(term, type_, missing, then.known and otherwise.known)
