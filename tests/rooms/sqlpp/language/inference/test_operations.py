# SPDX-License-Identifier: Apache-2.0
"""Static types of arithmetic."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.inference.operations import chain_type
from limnos.rooms.sqlpp.language.inference.static_types import StaticType


@pytest.mark.parametrize(
    "left, operator, right, kind",
    [
        ("bigint", "+", "tinyint", "bigint"),
        ("tinyint", "*", "tinyint", "tinyint"),
        ("bigint", "/", "bigint", "double"),
        ("float", "/", "bigint", "float"),
        ("double", "-", "any", "any"),
        ("any", "+", "string", "null"),
        ("any", "*", "date", "null"),
        ("date", "-", "date", "duration"),
        ("date", "+", "date", "null"),
        ("time", "+", "year-month-duration", "null"),
        ("day-time-duration", "+", "datetime", "datetime"),
        ("bigint", "+", "missing", "missing"),
        ("null", "+", "bigint", "null"),
        ("any", "||", "any", "string"),
        ("any", "=", "any", "boolean"),
        ("string", "and", "any", "boolean"),
        ("bigint", "^", "double", "double"),
        ("date", "*", "duration", "null"),
        ("any", "-", "date", "any"),
    ],
)
def test_operation_with_an_any_operand_has_type_any(left: str, operator: str, right: str, kind: str) -> None:
    """If one operand has type any, the result has, too, unless the other can never be an operand."""
    assert chain_type([operator], [StaticType(kind=left), StaticType(kind=right)]).kind == kind


def test_optional_operands_give_optional_results() -> None:
    """A result may be NULL or MISSING if an operand may; a quotient always may."""
    number = StaticType(kind="bigint")

    assert chain_type(["+", "+"], [number, number.optional(null=False), number]) == StaticType(
        kind="bigint", missing=True
    )
    assert chain_type(["div"], [number, number]).null
