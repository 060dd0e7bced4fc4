# SPDX-License-Identifier: Apache-2.0
"""Updates of table properties."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import commit, table

BASE = table(properties={"a": "1", "b": "2"})
CODEC = {"write.parquet.compression-codec": "zstd"}


@pytest.mark.parametrize("key", ["updates", "updated"])
def test_properties_are_set(key: str) -> None:
    """Properties are merged, reserved ones are not stored, and the field name of early clients is accepted."""
    new = commit(BASE, {"action": "set-properties", key: {"b": "3", "c": "", "snapshot-count": "9"}})

    assert new["properties"] == {**CODEC, "a": "1", "b": "3", "c": ""}


@pytest.mark.parametrize("key", ["removals", "removed"])
def test_properties_are_removed(key: str) -> None:
    """Properties are removed, missing ones and repetitions are ignored, and the field name of early clients is
    accepted.
    """
    new = commit(BASE, {"action": "remove-properties", key: ["a", "nope", "a"]})

    assert new["properties"] == {**CODEC, "b": "2"}


def test_format_version_property_upgrades_table() -> None:
    """Setting the property format-version upgrades the table. The property is not stored."""
    new = commit(BASE, {"action": "set-properties", "updates": {"format-version": "3"}})

    assert (new["format-version"], new["next-row-id"]) == (3, 0)
    assert new["properties"] == BASE["properties"]


@pytest.mark.parametrize(
    "update,text",
    [
        ({"action": "set-properties"}, "'updates' is required"),
        ({"action": "set-properties", "updates": ["a"]}, "'updates' must be an object"),
        ({"action": "set-properties", "updates": {"a": 1}}, "key 'a' must be a string, not an integer"),
        ({"action": "set-properties", "updates": {"a": None}}, "key 'a' must be a string, not null"),
        ({"action": "set-properties", "updates": {"format-version": "new"}}, "must be 1, 2 or 3"),
        ({"action": "set-properties", "updates": {"write.metadata.previous-versions-max": ""}}, "a whole number"),
        ({"action": "set-properties", "updates": {"write.metadata.compression-codec": "br"}}, "none or gzip"),
        ({"action": "remove-properties"}, "'removals' is required"),
        ({"action": "remove-properties", "removals": "a"}, "'removals' must be an array"),
        ({"action": "remove-properties", "removals": [1]}, "element 0 must be a string"),
    ],
    ids=str,
)
def test_bad_properties_are_refused(update: Json, text: str) -> None:
    """Properties of wrong types, or with values that the server cannot use, are refused by name."""
    with pytest.raises(BadRequest) as caught:
        commit(BASE, update)

    assert text in caught.value.message


def test_properties_are_set_on_table_without_any() -> None:
    """Properties can be set in a document that has none."""
    base = {key: value for key, value in BASE.items() if key != "properties"}

    new = commit(base, {"action": "set-properties", "updates": {"a": "b"}})

    assert new["properties"] == {"a": "b"}
