# SPDX-License-Identifier: Apache-2.0
"""`set` changes comment, columns, properties, allowed locations, owner and tags."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

M = "/api/metalakes/lake"


def test_set_sends_updates_then_owner_then_tags(fake: FakeServer, limnos: Run) -> None:
    """One request changes comment, columns and properties; owner and tags follow."""
    table = f"{M}/catalogs/main/schemas/raw/tables/trips"
    fake.on("PUT", table, {"table": {}})
    fake.on("PUT", f"{M}/owners/table/main.raw.trips", {"set": True})
    fake.on("POST", f"{M}/objects/table/main.raw.trips/tags", {"names": ["pii"]})
    flags = [
        "--comment",
        "All trips",
        "--column",
        "fare=in dollars",
        "--property",
        "team=log",
        "--remove-property",
        "old",
    ]
    done = limnos("set", "table", "main.raw.trips", *flags, "--owner", "group:ops", "--tag", "pii", "--untag", "raw")

    assert done.code == 0
    assert fake.asked[0].body == {
        "updates": [
            {"@type": "updateComment", "newComment": "All trips"},
            {"@type": "updateColumnComment", "fieldName": ["fare"], "newComment": "in dollars"},
            {"@type": "setProperty", "property": "team", "value": "log"},
            {"@type": "removeProperty", "property": "old"},
        ]
    }
    assert fake.asked[1].body == {"name": "ops", "type": "GROUP"}
    assert fake.asked[2].body == {"tagsToAdd": ["pii"], "tagsToRemove": ["raw"]}


def test_allowed_locations_are_a_property_of_the_catalog(fake: FakeServer, limnos: Run) -> None:
    """The allowed locations of a catalog are one property; an empty comment of a namespace removes it."""
    fake.on("PUT", f"{M}/catalogs/main", {"catalog": {"name": "main"}})
    fake.on("POST", "/iceberg/v1/lake.main/namespaces/raw/properties", {})

    assert limnos("set", "main", "--allowed-location", "s3://a", "--allowed-location", "s3://b").code == 0
    assert limnos("set", "namespace", "main.raw", "--comment", "").code == 0
    assert fake.asked[0].body == {
        "updates": [{"@type": "setProperty", "property": "allowed-locations", "value": "s3://a,s3://b"}]
    }
    assert fake.asked[1].body == {"updates": {}, "removals": ["comment"]}


@pytest.mark.parametrize(
    "words,message",
    [
        (["main.raw.t", "--kind", "view", "--column", "a=b"], "a view has no columns to describe"),
        (["main.raw", "--kind", "namespace", "--allowed-location", "s3://a"], "a namespace has no allowed locations"),
        (["main.raw"], "nothing to change is given"),
    ],
)
def test_changes_that_the_kind_lacks_are_usage_errors(
    fake: FakeServer, limnos: Run, words: list[str], message: str
) -> None:
    """What an object of the kind does not have is refused before a request is sent."""
    done = limnos("set", *words)

    assert (done.code, fake.asked) == (2, [])
    assert done.error["message"] == message
