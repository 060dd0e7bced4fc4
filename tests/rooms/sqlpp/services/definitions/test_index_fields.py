# SPDX-License-Identifier: Apache-2.0
"""Fields of an index compared with the type of its dataset."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse, tree
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.services.definitions.index_fields import check_fields

OPEN = type_of("OPEN { id: int, a: int, o: OPEN { b: string } }")


def _check(fields: str) -> None:
    (parsed,) = parse(f"create index i on d {fields}")
    assert isinstance(parsed.statement, tree.CreateIndex)
    check_fields(OPEN, parsed.statement)


@pytest.mark.parametrize(
    "fields",
    [
        "(a)",
        "(c)",
        "(c, e)",
        "(a, o.b)",
        "(a, c: int)",
        "(a: int64)",
        "(o.c: string, a)",
        "(o.b: string)",
        "(a: string) cast (default null)",
    ],
)
def test_index_fields_with_fitting_types_are_accepted(fields: str) -> None:
    """A declared field has its declared type. An undeclared field may have a type in the index."""
    _check(fields)


@pytest.mark.parametrize(
    "fields, message",
    [
        ("(a: string?) enforced", "expected value of type bigint, but got the value of type string"),
        ("(o.b: int)", "expected value of type string, but got the value of type bigint"),
        ("(a, c)", "Typed keys cannot be combined with untyped keys"),
        ("(c, e: int)", "Typed keys cannot be combined with untyped keys"),
    ],
)
def test_index_fields_with_differing_types_are_refused(fields: str, message: str) -> None:
    """A type that differs from the declared one, and a mix of typed and untyped keys, are refused."""
    with pytest.raises(SqlppError, match=message):
        _check(fields)
