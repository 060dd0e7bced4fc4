# SPDX-License-Identifier: Apache-2.0
"""Static types of function calls."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.functions import FUNCTIONS
from limnos.rooms.sqlpp.language.inference import functions
from limnos.rooms.sqlpp.language.inference.functions import aggregate_type, call_type, window_type
from limnos.rooms.sqlpp.language.inference.static_types import ANY, MISSING_TYPE, NULL_TYPE, StaticType, array_of

INT, TEXT = StaticType(kind="bigint"), StaticType(kind="string")


@pytest.mark.parametrize(
    "function, types, kind",
    [
        ("lower", [ANY], "string"),
        ("lower", [INT], "null"),
        ("lower", [MISSING_TYPE], "missing"),
        ("length", [ANY], "bigint"),
        ("abs", [ANY], "any"),
        ("abs", [TEXT], "null"),
        ("round", [StaticType(kind="integer")], "bigint"),
        ("sqrt", [ANY], "double"),
        ("sqrt", [TEXT], "null"),
        ("power", [INT, StaticType(kind="double")], "double"),
        ("to_number", [TEXT], "any"),
        ("array_count", [ANY], "bigint"),
        ("array_sum", [ANY], "any"),
        ("array_max", [array_of(INT)], "bigint"),
        ("strict_avg", [ANY], "double"),
        ("array_concat", [array_of(INT), ANY], "array"),
        ("array_concat", [ANY, ANY], "any"),
        ("array_prepend", [ANY, array_of(INT)], "array"),
        ("switch_case", [ANY, ANY, INT], "bigint"),
        ("switch_case", [ANY, ANY, INT, TEXT], "any"),
        ("if_missing", [INT, TEXT], "bigint"),
        ("if_missing", [INT.optional(), TEXT], "any"),
        ("if_missing", [INT.optional(), INT], "bigint"),
        ("if_null", [NULL_TYPE, TEXT], "string"),
        ("if_null", [NULL_TYPE], "null"),
        ("if_null", [INT.optional()], "bigint"),
        ("null_if", [INT, INT], "bigint"),
        ("if_nan", [INT, INT], "bigint"),
        ("if_nan", [INT, ANY], "any"),
        ("nan_if", [INT, INT], "any"),
        ("greatest", [INT, INT], "bigint"),
        ("range", [INT, INT], "array"),
        ("range", [ANY, INT], "array"),
        ("array_range", [ANY, INT], "any"),
        ("to_array", [INT], "array"),
        ("parse_json", [TEXT], "any"),
        ("split", [ANY, ANY], "array"),
        ("array_except", [INT, array_of(INT)], "null"),
        ("sign", [INT], "tinyint"),
        ("object_concat", [ANY], "object"),
    ],
)
def test_call_result_type_is_inferred(function: str, types: list[StaticType], kind: str) -> None:
    """The result has a fixed type, or that of an argument; a strict function of NULL gives NULL."""
    assert call_type(function, types).kind == kind


def test_aggregate_result_type_is_inferred() -> None:
    """Counts and averages have a fixed type, other aggregates the type of their values."""
    assert [aggregate_type(name, ANY).kind for name in ("count", "avg", "sum", "max", "array_agg")] == [
        "bigint",
        "double",
        "any",
        "any",
        "array",
    ]
    assert [
        aggregate_type("sum", each).kind for each in (StaticType(kind="tinyint"), StaticType(kind="float"), TEXT)
    ] == [
        "bigint",
        "double",
        "null",
    ]
    assert aggregate_type("min", array_of(INT)) == NULL_TYPE


def test_window_function_result_type_is_inferred() -> None:
    """Row numbers have a fixed type; `lag` and `first_value` have the type of their argument."""
    kinds = [window_type(name, [INT]).kind for name in ("rank", "cume_dist", "lag", "first_value", "sum")]
    assert kinds == ["bigint", "double", "bigint", "bigint", "bigint"]


def test_type_rules_name_existing_functions() -> None:
    """Each rule names an existing function."""
    ruled = {*functions._KIND_OF, *functions._STRICT_RULES, *functions._OWN_RULES, *functions._CONSTRUCTORS}
    names = {function.name for function in FUNCTIONS.values()}

    assert sorted(ruled - names) == []
