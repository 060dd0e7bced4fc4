# SPDX-License-Identifier: Apache-2.0
"""The flat signature of a query: the names and types of its result fields, which AsterixDB's JDBC driver needs.

Must not know names or types of datasets, except the metadata datasets: a field of another dataset is `any`, and the
driver then uses the type of each value. A query whose results are not objects with known names has no signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.language.metadata_types import METADATA_TYPES
from limnos.rooms.sqlpp.language.stored import BUILT_IN
from limnos.rooms.sqlpp.language.values.model import type_name

ANY: Final = "any"
_TYPES: Final[Mapping[str, str]] = {
    "tinyint": "int8",
    "smallint": "int16",
    "integer": "int32",
    "bigint": "int64",
    **{
        name: name
        for name in (
            "missing",
            "null",
            "boolean",
            "float",
            "double",
            "string",
            "uuid",
            "date",
            "time",
            "datetime",
            "duration",
            "array",
            "multiset",
            "object",
        )
    },
    "year_month_duration": "year-month-duration",
    "day_time_duration": "day-time-duration",
    "year-month-duration": "year-month-duration",
    "day-time-duration": "day-time-duration",
}
"""AsterixDB's names of the types that the driver supports, by our names and by those of their constructors."""
_RESULTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "array_count",
            "array_length",
            "binary_length",
            "bitcount",
            "count",
            "edit_distance",
            "get_day",
            "get_hour",
            "get_millisecond",
            "get_minute",
            "get_month",
            "get_second",
            "get_year",
            "length",
            "months_from_year_month_duration",
            "ms_from_day_time_duration",
            "object_length",
            "position",
            "position1",
            "rank",
            "dense_rank",
            "row_number",
            "ntile",
            "unix_time_from_date_in_days",
            "unix_time_from_datetime_in_ms",
            "unix_time_from_datetime_in_secs",
        ),
        "int64",
    ),
    **dict.fromkeys(
        (
            "codepoint_to_string",
            "concat",
            "get_type",
            "initcap",
            "lower",
            "lpad",
            "ltrim",
            "print_date",
            "print_datetime",
            "print_time",
            "regexp_replace",
            "repeat",
            "replace",
            "reverse",
            "rpad",
            "rtrim",
            "string_concat",
            "string_join",
            "substr",
            "substr1",
            "substring_after",
            "substring_before",
            "to_string",
            "trim",
            "upper",
        ),
        "string",
    ),
    **dict.fromkeys(
        ("avg", "cume_dist", "median", "percent_rank", "sqrt", "stddev_pop", "stddev_samp", "var_pop", "var_samp"),
        "double",
    ),
    **dict.fromkeys(
        (
            "contains",
            "ends_with",
            "like",
            "regexp_contains",
            "regexp_like",
            "starts_with",
            "string_equal",
            "to_boolean",
        ),
        "boolean",
    ),
    "date_from_unix_time_in_days": "date",
    "get_date_from_datetime": "date",
    "parse_date": "date",
    "time_from_unix_time_in_ms": "time",
    "get_time_from_datetime": "time",
    "parse_time": "time",
    "datetime_from_date_time": "datetime",
    "datetime_from_unix_time_in_ms": "datetime",
    "datetime_from_unix_time_in_secs": "datetime",
    "parse_datetime": "datetime",
    "get_year_month_duration": "year-month-duration",
    "get_day_time_duration": "day-time-duration",
    "duration_from_months": "duration",
    "duration_from_ms": "duration",
    "object_names": "array",
    "array_range": "array",
}
"""The result types of functions whose result type does not depend on their arguments."""
_WHOLE: Final = frozenset({"int8", "int16", "int32", "int64"})
_NUMBERS: Final = _WHOLE | {"float", "double"}
_KNOWN_FOR: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("tinyint", "smallint", "integer", "bigint", "float", "double", "string", "to_string", "boolean"),
        _NUMBERS | {"boolean"},
    ),
    **dict.fromkeys(
        (
            "date_from_unix_time_in_days",
            "datetime_from_unix_time_in_ms",
            "datetime_from_unix_time_in_secs",
            "duration_from_months",
            "duration_from_ms",
            "time_from_unix_time_in_ms",
        ),
        _WHOLE,
    ),
    "year_month_duration": frozenset({"duration"}),
    "day_time_duration": frozenset({"duration"}),
}
"""Functions whose result is not declared nullable if their argument has one of these types, as in AsterixDB. A number
beyond the range of a temporal type is NULL all the same.
"""
_NEVER_UNKNOWN: Final = frozenset({"count", "array_count", "rank", "dense_rank", "row_number"})


_KnownTypes = dict[int | tuple[int, str], str]
"""The types of variables by slot, and those of a variable's fields by slot and name."""


class FlatSignature(NamedTuple):
    """Names and types, in the order of the fields. A type ends with `?` if its value may be NULL or MISSING."""

    names: tuple[str, ...]
    types: tuple[str, ...]


def flat_signature(expression: plan.Expression) -> FlatSignature | None:
    """Return the signature of a bound query; None for results that are not objects with known names."""
    fields = _fields(expression.query if isinstance(expression, plan.Subquery) else expression, {})
    if not fields:
        return None
    return FlatSignature(tuple(fields), tuple(ANY if type_ == "missing" else type_ for type_ in fields.values()))


def _fields(node: plan.PlanNode, known: _KnownTypes) -> dict[str, str] | None:
    """Return the types of a query's or an object's fields by name; None if the names are unknown."""
    if isinstance(node, plan.Query):
        _learn(node.lets, known)
        arms = [_fields(arm, dict(known)) for arm in node.arms]
        if any(arm is None or list(arm) != list(arms[0] or ()) for arm in arms):
            return None
        return {name: _common(arm[name] for arm in arms if arm is not None) for name in arms[0] or ()}
    if isinstance(node, plan.Block):
        _learn_items(node.sources, known)
        _learn(node.lets, known)
        if node.group is not None:
            known |= {slot: _type(value, known) for slot, value in node.group.keys}
        _learn(node.group_lets, known)
        _learn(node.windows, known)
        return _selected_fields(node.select, known)
    if isinstance(node, plan.ObjectOf):
        pairs = [(name.value, value) for name, value in node.pairs if isinstance(name, plan.Constant)]
        if len(pairs) < len(node.pairs) or not all(isinstance(name, str) for name, _ in pairs):
            return None
        return {str(name): _type(value, known) for name, value in pairs}
    return None


def _selected_fields(select: plan.Select, known: _KnownTypes) -> dict[str, str] | None:
    if select.value is not None:
        return _fields(select.value, known)
    if select.exclude or any(each.name is None for each in select.projections):
        return None
    return {str(each.name): _type(each.value, known) for each in select.projections}


def _learn_items(sources: Iterable[plan.ForEach], known: _KnownTypes) -> None:
    """Record the types of variables of FROM: integers of `range()`, and the declared fields of metadata datasets."""
    for each in sources:
        if each.kind not in ("scan", "inner", "cross", "unnest"):
            continue
        match each.source:
            case plan.FunctionCall(function=function, arguments=arguments) if function.name == "range":
                if {_type(argument, known) for argument in arguments} <= _WHOLE:
                    known[each.slot] = "int64"
            case plan.Scan(dataverse=dataverse, name=name) if dataverse == METADATA:
                record = METADATA_TYPES[name]
                known |= {(each.slot, field.name): _declared_type(field) for field in record.fields}


def _declared_type(field: tree.FieldType) -> str:
    """Return the signature's type for a declared field of a metadata dataset, with `?` if it is optional."""
    match field.type:
        case tree.NamedType(name=name):
            type_ = _TYPES.get(BUILT_IN.get(name.last, name.last), ANY)
        case tree.ArrayType():
            type_ = "array"
        case tree.BagType():
            type_ = "multiset"
        case _:
            type_ = "object"
    return f"{type_}?" if field.optional else type_


def _learn(lets: Iterable[plan.Let | plan.WindowCall], known: _KnownTypes) -> None:
    """Record the types of the variables of LET and of window functions in `known`, by slot."""
    for each in lets:
        if isinstance(each, plan.Let):
            known[each.slot] = _type(each.value, known)
        else:
            known[each.slot] = _result_type(each.function.name)


def _common(types: Iterable[str]) -> str:
    """Return the common type of several types: `any` if they differ, with `?` if one is NULL or MISSING."""
    distinct = set(types)
    if len(distinct) == 1:
        return distinct.pop()
    bare = {each.removesuffix("?") for each in distinct} - {"null", "missing"}
    if len(bare) != 1:
        return ANY
    (name,) = bare
    return name if distinct == {name} or name == ANY else f"{name}?"


def _result_type(function: str) -> str:
    name = _RESULTS.get(function) or _TYPES.get(function)
    if name is None and function.startswith("is_"):
        name = "boolean"
    if name is None:
        return ANY
    return name if function in _NEVER_UNKNOWN else f"{name}?"


def _type(node: plan.Expression, known: _KnownTypes) -> str:
    """Return the static type of an expression; `any` if the type depends on values."""
    match node:
        case plan.Constant(value=value):
            return _TYPES.get(type_name(value), ANY)
        case plan.Local(slot=slot):
            return known.get(slot, ANY)
        case plan.FieldOf(base=plan.Local(slot=slot), name=name):
            return known.get((slot, name), ANY)
        case plan.FunctionCall(function=function, arguments=arguments) if function.name in _KNOWN_FOR:
            is_known = {_type(each, known) for each in arguments} <= _KNOWN_FOR[function.name]
            return _result_type(function.name).removesuffix("?" if is_known else "")
        case plan.FunctionCall(function=function) | plan.Aggregate(function=function):
            return _result_type(function.name)
        case plan.Operate(operators=operators, operands=operands):
            return _operation_type(operators[0], [_type(each, known) for each in operands])
        case plan.Exists() | plan.IsTest() | plan.Quantified():
            return "boolean"
        case plan.Negated() | plan.Between():
            return "boolean?"
        case plan.SignOf(operand=operand):
            return _type(operand, known)
        case plan.CaseOf(branches=branches, otherwise=otherwise):
            results = [_type(value, known) for _, value in branches]
            return _common([*results, "null" if otherwise is None else _type(otherwise, known)])
        case plan.ArrayOf() | plan.Subquery():
            return "array"
        case plan.BagOf():
            return "multiset"
        case plan.ObjectOf():
            return "object"
    return ANY


def _operation_type(operator: str, operands: list[str]) -> str:
    bare = [each.removesuffix("?") for each in operands]
    optional = "" if bare == operands else "?"
    if operator == "||":
        return f"string{optional}" if set(bare) == {"string"} else "string?"
    if operator in ("+", "-", "*", "/", "div", "mod", "^"):
        whole = {"int8", "int16", "int32", "int64"}
        if set(bare) == {"int64"} and operator not in ("/", "^"):
            return f"int64{optional}"
        return f"double{optional}" if "double" in bare and set(bare) <= {*whole, "float", "double"} else ANY
    return "boolean?"
