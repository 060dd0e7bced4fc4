# SPDX-License-Identifier: Apache-2.0
"""The ledger of differences between the server and the readers of its documents."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from conformance.readable.documents import Chains
from conformance.readable.ledger import FILE, load_ledger

LACK = """
[[lack]]
name = "lists"
reader = "pyiceberg"
part = '"type":"(geometry)"'
instead = '"type":"binary"'
versions = [3]
reason = "not known"

[[refusal]]
name = "rows"
message = "^Rows of"
reason = "they could not be read"
"""


@pytest.mark.parametrize(
    "reader,document,known,names",
    [
        ("pyiceberg", '{"format-version":3,"type":"geometry"}', '{"format-version":3,"type":"binary"}', ["lists"]),
        ("pyiceberg", '{"format-version":2,"type":"geometry"}', '{"format-version":2,"type":"geometry"}', []),
        ("iceberg-go 1", '{"format-version":3,"type":"geometry"}', '{"format-version":3,"type":"geometry"}', []),
    ],
)
def test_part_is_replaced_for_its_reader_and_versions(reader: str, document: str, known: str, names: list[str]) -> None:
    """A reader's refusal is explained only by what it reads instead, in the versions that have the part."""
    assert load_ledger(LACK).known_to(reader, document) == (known, names)


def test_refusal_is_found_by_its_message() -> None:
    """A message of the server has the rule that names it, any other message none."""
    ledger = load_ledger(LACK)

    assert (ledger.refusal("Rows of the table"), ledger.refusal("No rows of")) == ("rows", None)


def test_rule_without_a_reason_is_an_error() -> None:
    """Nothing is left out without saying why."""
    with pytest.raises(ValueError, match="no reason: rows"):
        load_ledger(LACK.replace("they could not be read", ""))


def test_ledger_explains_no_supported_part() -> None:
    """The rules of the file change nothing in documents of types that all readers know."""
    ledger = load_ledger(FILE.read_text(encoding="utf-8"))
    document = '{"format-version":2,"fields":[{"id":1,"name":"variant","required":true,"type":"timestamptz"}]}'

    assert ledger.known_to("pyiceberg", document) == (document, [])
    assert ledger.known_to("iceberg-rust 0", document) == (document, [])


def test_refused_requests_have_their_parts() -> None:
    """The reference gets each refused request whole: what it asks for, the document before it, and the updates."""
    chains = Chains(1)
    list(islice(chains.documents(), 400))

    requests = [each for each in chains.take_refused() if each.parts]

    assert {each.parts[0] for each in requests} == {"create table", "create view", "change table", "change view"}
    assert all(json.loads(each.parts[-1]) is None or json.loads(each.parts[-1]) for each in requests)
    assert not chains.take_refused()
