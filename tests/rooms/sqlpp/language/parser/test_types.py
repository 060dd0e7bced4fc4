# SPDX-License-Identifier: Apache-2.0
"""Types: where they are allowed."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import render
from tests.rooms.sqlpp.language.parser.parsing import statement


@pytest.mark.parametrize(
    "text,printed",
    [
        ("bigint", "bigint"),
        ("a.`b c`", "a.`b c`"),
        ("[[int]]", "[[int]]"),
        ("{{ {{int}} }}", "{{ {{ int }} }}"),
        ("{}", "OPEN {  }"),
        ("closed { `type`: int? }", "CLOSED { `type`: int? }"),
        ("[{ a: [int]? }]", "[OPEN { a: [int]? }]"),
    ],
)
def test_record_field_types_are_parsed_and_printed(text: str, printed: str) -> None:
    """A type in a record, as written and as printed."""
    definition = statement(f"create type t as {{ f: {text} }}")

    assert render(definition) == f"CREATE TYPE t AS OPEN {{ f: {printed} }}"
