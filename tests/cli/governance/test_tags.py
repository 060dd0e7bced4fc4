# SPDX-License-Identifier: Apache-2.0
"""`set tag`, `tag remove` and `list tags` with the columns of a table."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

COLUMN = "/api/metalakes/lake/objects/column/main.raw.trips.fare/tags"
SCHEMA = {"schema-id": 0, "type": "struct", "fields": [{"id": 1, "name": "fare"}, {"id": 2, "name": "day"}]}
TABLE = {"metadata-location": "file:/1", "metadata": {"current-schema-id": 0, "schemas": [SCHEMA]}, "config": {}}


@pytest.fixture(autouse=True)
def trips(fake: FakeServer) -> None:
    """A table with two columns."""
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/trips?snapshots=refs", TABLE)


def test_tags_are_put_on_and_taken_from_columns(fake: FakeServer, limnos: Run) -> None:
    """With `--column` the tags are those of the column: it is the target of the requests and of the message."""
    fake.on("POST", COLUMN, {"names": ["pii"]})
    fake.on("GET", f"{COLUMN}?details=true", {"tags": [{"name": "pii", "properties": {}, "inherited": False}]})

    added = limnos("set", "tag", "pii", "main.raw.trips", "--column", "fare", "--kind", "table", "--output", "table")
    removed = limnos("tag", "remove", "pii", "main.raw.trips", "--column", "fare", "--kind", "table")
    listed = limnos("list", "tags", "main.raw.trips", "--column", "fare", "--kind", "table")

    assert added.out == "tag pii is on column fare of main.raw.trips\n"
    assert removed.result == {"object": "main.raw.trips", "column": "fare", "tags": ["pii"]}
    assert [row["name"] for row in listed.rows] == ["pii"]
    bodies = [each.body for each in fake.asked if each.method == "POST"]
    assert bodies == [{"tagsToAdd": ["pii"], "tagsToRemove": []}, {"tagsToAdd": [], "tagsToRemove": ["pii"]}]


def test_list_of_a_table_has_the_tags_of_its_columns(fake: FakeServer, limnos: Run) -> None:
    """Tags on columns are rows with the column's name, after those of the table. Their number of requests is that of
    the tags or of the columns, whichever is smaller.
    """
    own = {"tags": [{"name": "gold", "inherited": True}]}
    fake.on("GET", "/api/metalakes/lake/objects/table/main.raw.trips/tags?details=true", own)
    fake.on("GET", "/api/metalakes/lake/tags?details=true", {"tags": [{"name": "pii"}]})
    on_others = [{"fullName": "main.raw.zones.fare", "type": "column"}, {"fullName": "main.raw.trips", "type": "table"}]
    tagged = {"metadataObjects": [{"fullName": "main.raw.trips.fare", "type": "column"}, *on_others]}
    fake.on("GET", "/api/metalakes/lake/tags/pii/objects", tagged)

    rows = limnos("list", "tags", "main.raw.trips", "--kind", "table").rows

    assert [(row["name"], row.get("column")) for row in rows] == [("gold", None), ("pii", "fare")]


def test_tag_of_unknown_column_names_the_known_ones(fake: FakeServer, limnos: Run) -> None:
    """A column that the table lacks is refused with the table's columns, before any change."""
    done = limnos("set", "tag", "pii", "main.raw.trips", "--column", "fair", "--kind", "table")

    assert done.code == 3
    assert done.error["message"] == "main.raw.trips has no column fair: it has fare, day"
    assert {each.method for each in fake.asked} == {"GET"}


def test_column_without_its_table_is_refused(fake: FakeServer, limnos: Run) -> None:
    """A column is a table's: `list tags` without a path, and the tag of a namespace's column, are refused."""
    alone = limnos("list", "tags", "--column", "fare")
    of_namespace = limnos("set", "tag", "pii", "main.raw.x", "--column", "fare", "--kind", "namespace")

    assert (alone.code, alone.error["hint"]) == (2, "'limnos list tags PATH --column fare'")
    assert of_namespace.code != 0
    assert "a namespace has no columns with tags" in of_namespace.error["message"]
    assert not [each for each in fake.asked if each.method == "POST"]
