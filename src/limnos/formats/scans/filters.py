# SPDX-License-Identifier: Apache-2.0
"""Filters of scans: parsed from both of Iceberg's JSON forms, bound to columns, and reduced to residuals.

Must not know files. `not` occurs only at the leaves of the tree. A leaf keeps its original JSON, so a client gets its
own JSON back. A leaf that cannot be evaluated here (a transform, a function) may be true for any row: no file is pruned
by it, and it stays in the residual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, cast

import msgspec
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    StartsWith,
)
from pyiceberg.expressions.literals import AboveMax, BelowMin
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)

from limnos.formats.scans.field_lookup import FieldLookup
from limnos.formats.scans.values import literal_of
from limnos.model.errors import BadRequest

DEPTH_MAX: Final = 300
LEAVES_MAX: Final = 20_000
VALUES_MAX: Final = 100_000
_UNARY: Final = {"is-null": IsNull, "not-null": NotNull, "is-nan": IsNaN, "not-nan": NotNaN}
_COMPARED: Final = {
    "lt": LessThan,
    "lt-eq": LessThanOrEqual,
    "gt": GreaterThan,
    "gt-eq": GreaterThanOrEqual,
    "eq": EqualTo,
    "not-eq": NotEqualTo,
    "starts-with": StartsWith,
    "not-starts-with": NotStartsWith,
}
_UNREAD: Final = (TimestampNanoType, TimestamptzNanoType, UnknownType)
"""The types whose values pyiceberg cannot compare."""
_SETS: Final = {"in": In, "not-in": NotIn}


class FilterLeaf(NamedTuple):
    """One predicate: its JSON for clients, and its pyiceberg expression.

    The expression is None if it cannot be evaluated here.
    """

    expression_json: object
    predicate: BooleanExpression | None


class AndFilter(NamedTuple):
    """A conjunction: true for a row if all of its parts are true."""

    parts: tuple[ScanFilter, ...]


class OrFilter(NamedTuple):
    """A disjunction: true for a row if at least one of its parts is true."""

    parts: tuple[ScanFilter, ...]


ScanFilter = bool | FilterLeaf | AndFilter | OrFilter


def filter_of(raw: bytes, schema: Schema, *, naming: FieldLookup) -> ScanFilter:
    """Parse a filter in JSON; `null` stands for a filter that is true for every row.

    Raises BadRequest for a malformed or too deeply nested filter, an unknown column, or a value of another type than
    its column.
    """
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest(f"The filter cannot be read: {error}") from None
    if value is None:
        return True
    return _FilterReader(schema, naming).read(value, holds=True, depth=0)


def join_filters(parts: list[ScanFilter], *, every: bool) -> ScanFilter:
    """Join filters by AND (`every`) or OR, and simplify constant parts."""
    results: list[ScanFilter] = []
    for part in parts:
        if part is (not every):
            return part
        if isinstance(part, AndFilter if every else OrFilter):
            results.extend(part.parts)
        elif part is not every:
            results.append(part)
    if len(results) < 2:
        return results[0] if results else every
    return AndFilter(tuple(results)) if every else OrFilter(tuple(results))


class _FilterReader:
    """Parses one filter within limits."""

    def __init__(self, schema: Schema, naming: FieldLookup) -> None:
        self._schema = schema
        self._naming = naming
        self._leaves = self._values = 0

    def read(self, value: object, *, holds: bool, depth: int) -> ScanFilter:
        """Parse a filter; if `holds` is False, return its negation.

        Raises BadRequest for a malformed filter, or one that exceeds a limit.
        """
        if depth > DEPTH_MAX:
            raise BadRequest(f"The filter is nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, bool):
            return value is holds
        if not isinstance(value, dict):
            raise BadRequest(f"A filter must be true, false or an object, not {str(value)[:100]!r}")
        node = cast("dict[str, object]", value)
        kind = node.get("type")
        if not isinstance(kind, str):
            raise BadRequest(f"The type of a filter must be a string, not {str(kind)[:100]!r}")
        if kind in ("true", "false"):
            return (kind == "true") is holds
        if kind == "not":
            return self.read(_part(node, "child"), holds=not holds, depth=depth + 1)
        if kind in ("and", "or"):
            parts = [self.read(_part(node, side), holds=holds, depth=depth + 1) for side in ("left", "right")]
            return join_filters(parts, every=(kind == "and") is holds)
        return self._leaf(node, kind, holds=holds)

    def _leaf(self, node: dict[str, object], kind: object, *, holds: bool) -> FilterLeaf:
        self._leaves += 1
        if self._leaves > LEAVES_MAX:
            raise BadRequest(f"The filter has more than {LEAVES_MAX} predicates")
        predicate = self._predicate(node, kind)
        if holds:
            return FilterLeaf(node, predicate)
        return FilterLeaf({"type": "not", "child": node}, None if predicate is None else ~predicate)

    def _predicate(self, node: dict[str, object], kind: object) -> BooleanExpression | None:
        if kind in _UNARY:
            column = self._column(_part_of_either_name(node, "child", older="term"))
            return None if column is None else self._unary(str(kind), column)
        if kind in _COMPARED:
            column = self._column(_part_of_either_name(node, "left", older="term"))
            value = _value(_part_of_either_name(node, "right", older="value"))
            if column is None:
                return None
            return self._read_comparison(str(kind), column, value=value)
        if kind in _SETS:
            column = self._column(_part_of_either_name(node, "child", older="term"))
            values = node.get("values")
            if not isinstance(values, list):
                raise BadRequest(f"A filter of type {kind} needs an array 'values'")
            self._values += len(values)
            if self._values > VALUES_MAX:
                raise BadRequest(f"The filter has more than {VALUES_MAX} values")
            if column is None:
                return None
            name, sort = column
            literals = {literal_of(sort, _value(each)) for each in values}
            # Out of the type's range, so no row has the value.
            literals = {each for each in literals if not isinstance(each, (AboveMax, BelowMin))}
            return cast("BooleanExpression", _SETS[str(kind)](Reference(name), literals))
        raise BadRequest(f"A filter of type {str(kind)[:50]!r} is unknown")

    def _unary(self, kind: str, column: tuple[str, IcebergType]) -> BooleanExpression:
        name, sort = column
        if kind.endswith("nan") and not isinstance(sort, (FloatType, DoubleType)):
            raise BadRequest(f"The filter tests column {name} of type {sort} for NaN: only float and double have NaN")
        return cast("BooleanExpression", _UNARY[kind](Reference(name)))

    def _read_comparison(
        self, kind: str, column: tuple[str, IcebergType], *, value: object
    ) -> BooleanExpression | None:
        name, sort = column
        if kind.endswith("starts-with") and not isinstance(sort, StringType):
            raise BadRequest(f"The filter tests the prefix of column {name} of type {sort}: only strings have prefixes")
        literal = literal_of(sort, value)
        if isinstance(literal, (AboveMax, BelowMin)):
            return None  # PyIceberg reduces such a comparison to a constant, which is wrong for nulls
        return cast("BooleanExpression", _COMPARED[kind](Reference(name), literal))

    def _column(self, term: object) -> tuple[str, IcebergType] | None:
        """Return the name and type of a term's column; None if the term is not a plain column or cannot be compared.

        Raises BadRequest for an unknown column or a malformed term.
        """
        node = cast("dict[str, object]", term) if isinstance(term, dict) else {"type": "reference", "name": term}
        if node.get("type") in ("transform", "apply"):
            return None
        target: object = node.get("id")
        try:
            if isinstance(target, int) and not isinstance(target, bool):
                field = self._naming.field(target)
            else:
                target = node.get("name", node.get("term"))
                if not isinstance(target, str):
                    raise BadRequest(f"The term of a predicate must be a column, not {str(term)[:100]!r}")
                field = self._naming.field(target)
        except ValueError:
            raise BadRequest(f"The filter names a column that the table does not have: {str(target)[:100]!r}") from None
        if field is None:
            return None
        name = self._schema.find_column_name(field.field_id)
        if name is None or not field.field_type.is_primitive:
            raise BadRequest(f"The filter compares {str(target)[:100]!r}, which has nested fields: name one of them")
        return None if isinstance(field.field_type, _UNREAD) else (name, field.field_type)


def _part_of_either_name(node: dict[str, object], name: str, *, older: str) -> object:
    if name in node:
        return node[name]
    return _part(node, older)


def _part(node: dict[str, object], name: str) -> object:
    if name not in node:
        raise BadRequest(f"A filter of type {str(node.get('type'))[:50]!r} lacks '{name}'")
    return node[name]


def _value(value: object) -> object:
    """Return the value of a literal, which may be wrapped in an object of type `literal`."""
    if isinstance(value, dict) and value.get("type") == "literal":
        return value.get("value")
    return value


def expression_of(request: ScanFilter) -> BooleanExpression:
    """Return a filter as a pyiceberg expression that is equivalent or less strict. Long sequences of AND or OR become
    balanced trees.
    """
    if isinstance(request, bool):
        return AlwaysTrue() if request else AlwaysFalse()
    if isinstance(request, FilterLeaf):
        return AlwaysTrue() if request.predicate is None else request.predicate
    parts = [expression_of(part) for part in request.parts]
    return _balanced_tree(parts, And if isinstance(request, AndFilter) else Or)


def _balanced_tree(parts: list[BooleanExpression], join: Callable[..., BooleanExpression]) -> BooleanExpression:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_balanced_tree(parts[:middle], join), _balanced_tree(parts[middle:], join))


def residual_of(request: ScanFilter, decide: Callable[[BooleanExpression], bool | None]) -> ScanFilter:
    """Return the residual of a filter after some predicates are decided; `decide` returns True or False for a decided
    predicate, else None.
    """
    if isinstance(request, bool):
        return request
    if isinstance(request, FilterLeaf):
        decision = None if request.predicate is None else decide(request.predicate)
        return request if decision is None else decision
    return join_filters([residual_of(part, decide) for part in request.parts], every=isinstance(request, AndFilter))


def filter_json(request: ScanFilter) -> object:
    """Return a filter as JSON. Long sequences of AND or OR become balanced trees."""
    if isinstance(request, bool):
        return request
    if isinstance(request, FilterLeaf):
        return request.expression_json
    return _balanced_json(
        [filter_json(part) for part in request.parts], "and" if isinstance(request, AndFilter) else "or"
    )


def _balanced_json(parts: list[object], word: str) -> object:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return {"type": word, "left": _balanced_json(parts[:middle], word), "right": _balanced_json(parts[middle:], word)}
