# SPDX-License-Identifier: Apache-2.0
"""Typed access to JSON documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.formats.iceberg import json_types as j
from limnos.model.errors import BadRequest

Reader = Callable[[j.Json], object]

READERS: dict[str, tuple[Reader, object, list[object]]] = {
    "object": (lambda d: j.object_at(d, "k", where="w"), {"a": 1}, ["", 1, [], True, 1.5]),
    "list": (lambda d: j.list_at(d, "k", where="w"), [1, "a"], ["", 1, {}]),
    "objects": (lambda d: j.objects_at(d, "k", where="w"), [{}], [[1], ["a"], {}, [None]]),
    "string": (lambda d: j.string_at(d, "k", where="w"), "", [1, [], {}, True]),
    "text": (lambda d: j.text_at(d, "k", where="w"), "x", ["", 1]),
    "integer": (lambda d: j.integer_at(d, "k", where="w"), -5, [True, 1.0, "1", 2**63, -(2**63) - 1, 10**400]),
    "boolean": (lambda d: j.boolean_at(d, "k", where="w"), False, [0, "true"]),
    "integers": (lambda d: j.integers_at(d, "k", where="w"), [1, 2], [[1, "2"], [True], [1.0], 1]),
    "strings": (lambda d: j.strings_at(d, "k", where="w"), ["a"], [["a", 1], "a"]),
    "string map": (lambda d: j.string_map_at(d, "k", where="w"), {"a": "b"}, [{"a": 1}, {"a": None}, []]),
}


@pytest.mark.parametrize("name", READERS)
def test_right_type_is_read(name: str) -> None:
    """A value of the expected type is returned unchanged."""
    read, good, _ = READERS[name]

    value = read({"k": good})

    assert value == good


@pytest.mark.parametrize("name", READERS)
def test_missing_field_is_named(name: str) -> None:
    """A missing or null field is refused by name."""
    read, _, _ = READERS[name]
    messages = []
    docs: list[j.Json] = [{}, {"k": None}]

    for doc in docs:
        with pytest.raises(BadRequest) as caught:
            read(doc)
        messages.append(caught.value.message)

    assert messages == ["w: field 'k' is required"] * 2


@pytest.mark.parametrize("name,bad", [(name, bad) for name, (_, _, bads) in READERS.items() for bad in bads])
def test_wrong_type_is_named(name: str, bad: object) -> None:
    """A value of another type is refused with a short message that has the field's name and the expected type."""
    read, _, _ = READERS[name]

    with pytest.raises(BadRequest) as caught:
        read({"k": bad})

    assert caught.value.message.startswith("w: field 'k'")
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "value,word",
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "an integer"),
        (1.5, "a fraction"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
        (b"", "bytes"),
    ],
)
def test_kind_uses_json_words(value: object, word: str) -> None:
    """Messages call types by their JSON names."""
    assert j.json_kind(value) == word


def test_optional_fields_may_be_missing_or_null() -> None:
    """An optional field that is missing or null reads as None."""
    docs: list[j.Json] = [{}, {"k": None}]

    values = [(j.optional_integer_at(d, "k", where="w"), j.optional_string_at(d, "k", where="w")) for d in docs]

    assert values == [(None, None)] * 2
