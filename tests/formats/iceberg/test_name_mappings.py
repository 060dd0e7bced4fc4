# SPDX-License-Identifier: Apache-2.0
"""Name mappings of tables: what readers cannot use is refused, and stored ones are corrected where nothing is lost."""

from __future__ import annotations

import json

import pytest

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.mending import MEND, MENDABLE, find_problems
from limnos.formats.iceberg.name_mappings import NAME_MAPPING, check_name_mapping, correct_name_mapping
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import appended, commit, table


def nested(levels: int, *, names: int = 1) -> str:
    """Return a mapping with one field in another, each with a number of names."""
    mapping: list[Json] = []
    for level in range(levels):
        fields = {"fields": mapping} if mapping else {}
        mapping = [{"field-id": level, "names": [str(each) for each in range(names)], **fields}]
    return json.dumps(mapping)


GOOD = (
    "[]",
    '[{"field-id":1,"names":["a","A"]},{"field-id":2,"names":["b"],"fields":[{"field-id":3,"names":["a"]}]}]',
    '[{"field-id":1,"names":["a"]},{"names":["b"]}]',
    '[{"field-id":null,"names":["a"]}]',
    '[{"field-id":1,"names":["a","a",""],"fields":[],"other":5}]',
    nested(100),
)
BAD: dict[str, tuple[str, str]] = {
    "nothing": ("", "is not valid JSON"),
    "word": ("x", "is not valid JSON"),
    "more after the end": ("[] x", "is not valid JSON"),
    "half a character": ('["\\ud800"]', "is not valid JSON"),
    "deep list": ("[" * 100_000, "is not valid JSON"),
    "object": ("{}", "must be an array"),
    "number": ("[5]", "element 0 must be an object"),
    "no names": ('[{"field-id":1}]', "field 0: field 'names' is required"),
    "null names": ('[{"field-id":1,"names":null}]', "'names' is required"),
    "a name that is a number": ('[{"field-id":1,"names":[5]}]', "element 0 must be a string"),
    "id as text": ('[{"field-id":"1","names":["a"]}]', "'field-id' must be an integer"),
    "id as a fraction": ('[{"field-id":1.0,"names":["a"]}]', "'field-id' must be an integer"),
    "large id": ('[{"field-id":2147483648,"names":["a"]}]', "'field-id' must be between"),
    "null fields": ('[{"field-id":1,"names":["a"],"fields":null}]', "level 1, field 0: field 'fields' is required"),
    "field of a field": (
        '[{"names":["a"],"fields":[{"field-id":5,"names":"b"}]}]',
        "level 2, field 0: field 'names' must be an",
    ),
    "a name twice": ('[{"field-id":1,"names":["a"]},{"field-id":2,"names":["a"]}]', "has the name 'a', too"),
    "a dotted name twice": (
        '[{"field-id":1,"names":["a"],"fields":[{"field-id":3,"names":["b"]}]},{"field-id":2,"names":["a.b"]}]',
        "has the name 'a.b', too",
    ),
    "an id twice": ('[{"field-id":1,"names":["a"],"fields":[{"field-id":1,"names":["a"]}]}]', "has field-id 1, too"),
    "two without an id": (
        '[{"names":["a"],"fields":[{"field-id":null,"names":["b"]}]}]',
        "level 2, field 0: another field has no field-id, too; leave both out",
    ),
    "too deep": (nested(101), "at most 100 levels"),
    "a name for each combination": (nested(40, names=2), "more than 4000000 characters"),
    "long names": (json.dumps([{"names": ["a" * 5000], "fields": []}]), "at most 4000 characters"),
}


@pytest.mark.parametrize("text", GOOD)
def test_mapping_that_readers_use_is_accepted(text: str) -> None:
    """Java's and Python's libraries read it, and a table keeps it as sent."""
    check_name_mapping(text)

    assert table(properties={NAME_MAPPING: text})["properties"][NAME_MAPPING] == text  # type: ignore[index]


@pytest.mark.parametrize("text,message", BAD.values(), ids=BAD)
def test_malformed_mapping_is_refused(text: str, message: str) -> None:
    """By creates, commits and registered files, with the place in the mapping."""
    update: Json = {"action": "set-properties", "updates": {NAME_MAPPING: text}}
    for attempt in (
        lambda: table(properties={NAME_MAPPING: text}),
        lambda: commit(table(), update),
        lambda: check_registrable({**table(), "properties": {NAME_MAPPING: text}}),
    ):
        with pytest.raises(BadRequest) as caught:
            attempt()

        assert message in caught.value.message
        assert len(caught.value.message) < 5_000


MENDED: dict[str, tuple[str, str | None]] = {
    "nothing": ("", None),
    "no names": ('[{"field-id":1}]', '[{"field-id":1,"names":[]}]'),
    "null names": ('[{"field-id":1,"names":null}]', '[{"field-id":1,"names":[]}]'),
    "id as text": ('[{"field-id":"1","names":["a"]}]', '[{"field-id":1,"names":["a"]}]'),
    "id as a fraction": ('[{"names":["a"],"field-id":1.0}]', '[{"names":["a"],"field-id":1}]'),
    "null fields": ('[{"names":["a"],"fields":null}]', '[{"names":["a"]}]'),
    "in a field": ('[{"names":["a"],"fields":[{"field-id":5,"names":["b"],"fields":null}]}]', None),
}


@pytest.mark.parametrize("text,mended", MENDED.values(), ids=MENDED)
def test_stored_mapping_is_corrected_without_loss(text: str, mended: str | None) -> None:
    """`table mend` corrects what says the same in a form that all readers know; other properties stay."""
    base: Json = {**appended(1), "properties": {"a": "b", NAME_MAPPING: text}}
    if "fields" in text and mended is None:
        mended = text.replace(',"fields":null', "")
    assert [each.remedy for each in find_problems(base)] == [MENDABLE]

    new = commit(base, {"action": MEND})

    assert new["properties"] == {"a": "b"} | ({} if mended is None else {NAME_MAPPING: mended})
    assert not find_problems(new)


@pytest.mark.parametrize("text", ["x", "{}", "[5]", BAD["a name twice"][0], BAD["an id twice"][0], nested(101)])
def test_ambiguous_mapping_is_left_to_its_owner(text: str) -> None:
    """The message names the updates that heal the table; other commits succeed meanwhile."""
    base: Json = {**appended(1), "properties": {NAME_MAPPING: text}}
    (problem,) = find_problems(base)

    assert "set-properties, remove-properties" in problem.remedy
    assert correct_name_mapping(text) == text
    assert commit(base, {"action": "set-properties", "updates": {"a": "b"}})["properties"] != base["properties"]
    healed = commit(base, {"action": "remove-properties", "removals": [NAME_MAPPING]})
    assert not find_problems(healed)
    with pytest.raises(BadRequest, match="cannot be mended without losing something"):
        commit(base, {"action": MEND})
