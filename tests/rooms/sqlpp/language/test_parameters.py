# SPDX-License-Identifier: Apache-2.0
"""Parameters of requests: forms and JSON objects, and their limits."""

from __future__ import annotations

import msgspec
import pytest

from limnos.names.errors import InvalidName
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.offloaded_work import parameters_of, read_parameters, refusal_of
from limnos.rooms.sqlpp.language.parameters import PARAMETERS_MAX, VALUES_MAX, form_parameters, json_parameters

MANY = b"[" + b"1," * VALUES_MAX + b"1]"


def test_form_names_and_values_are_decoded() -> None:
    """Names and values are decoded; empty pairs are skipped, and a repeated name occurs twice."""
    parameters = form_parameters(b"statement=select+%41&&dataverse=a&dataverse=b&x")

    assert [(each.name, each.text) for each in parameters] == [
        ("statement", "select A"),
        ("dataverse", "a"),
        ("dataverse", "b"),
        ("x", ""),
    ]
    assert all(each.is_text for each in parameters)


def test_object_strings_are_decoded_and_other_values_remain_json() -> None:
    """Strings are decoded; other values remain JSON."""
    parameters = json_parameters(b'{"statement": "a\\n", "args": [1, "x"], "pretty": true}')

    assert parameters == [("statement", "a\n", True), ("args", '[1, "x"]', False), ("pretty", "true", False)]


@pytest.mark.parametrize(
    "body, words",
    [
        (b'{"args": ' + MANY + b"}", "more than 50000 values"),
        (
            b'{"a": ' + MANY[: len(MANY) // 2] + b'1], "b": ' + MANY[: len(MANY) // 2 + 1] + b"1]}",
            "more than 50000 values",
        ),
        (
            b"{" + b",".join(b'"%d": 1' % number for number in range(PARAMETERS_MAX + 1)) + b"}",
            "at most 1000 parameters",
        ),
        (b"[1]", "Unable to process JSON"),
        (b'{"a": ', "Unable to process JSON"),
        (b'{"a": "\\ud800"}', "Unable to process JSON"),
        (b'{"a": "\xff"}', "Unable to process JSON"),
    ],
)
def test_too_many_values_and_non_object_text_are_refused(body: bytes, words: str) -> None:
    """Too many values in all parameters together, too many parameters, and text that is not a JSON object are
    refused.
    """
    with pytest.raises(SqlppError, match=words):
        json_parameters(body)


def test_brackets_in_strings_do_not_count_as_values() -> None:
    """Commas and brackets in strings do not count as values."""
    assert json_parameters(msgspec.json.encode({"statement": MANY.decode()}))[0].text == MANY.decode()


def test_a_form_of_many_parameters_is_refused() -> None:
    """A form with one parameter more than the maximum is refused."""
    assert len(form_parameters(b"&".join([b"a=1"] * PARAMETERS_MAX))) == PARAMETERS_MAX
    with pytest.raises(SqlppError, match="at most 1000 parameters"):
        form_parameters(b"&".join([b"a=1"] * (PARAMETERS_MAX + 1)))


def test_worker_process_returns_the_same_parameters() -> None:
    """A worker process returns the same as this process, and refuses text that is not UTF-8."""
    body = b"statement=select+%41&a=1"

    outcome, response = read_parameters(body, b"form")

    assert (outcome, list(parameters_of(response))) == (b"done", form_parameters(body))
    with pytest.raises(InvalidName):
        form_parameters(b"a=%FF")
    outcome, response = read_parameters(b"a=%FF", b"form")
    assert outcome == b"refused"
    assert "UTF-8" in refusal_of(response).message
