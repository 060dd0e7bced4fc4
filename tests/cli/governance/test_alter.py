# SPDX-License-Identifier: Apache-2.0
"""`set` changes comment, columns, properties, allowed locations, owner and tags."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeAnswer, FakeServer

M = "/api/metalakes/lake"


def test_set_changes_tags_then_updates_then_owner(fake: FakeServer, limnos: Run) -> None:
    """Tags are changed first, then comment, columns and properties by one request, then the owner."""
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
    tags, updates, owner = [each for each in fake.asked if each.method != "GET"]
    assert updates.body == {
        "updates": [
            {"@type": "updateComment", "newComment": "All trips"},
            {"@type": "updateColumnComment", "fieldName": ["fare"], "newComment": "in dollars"},
            {"@type": "setProperty", "property": "team", "value": "log"},
            {"@type": "removeProperty", "property": "old"},
        ]
    }
    assert owner.body == {"name": "ops", "type": "GROUP"}
    assert tags.body == {"tagsToAdd": ["pii"], "tagsToRemove": ["raw"]}


def test_comment_of_a_view_is_its_property(fake: FakeServer, limnos: Run) -> None:
    """Iceberg's views have no comment but a property of that name, which other clients read."""
    fake.on("PUT", f"{M}/catalogs/main/schemas/raw/views/trips", {"view": {"name": "trips"}})

    done = limnos("set", "main.raw.trips", "--kind", "view", "--comment", "All trips")

    assert done.code == 0, done.err
    (updates,) = [each for each in fake.asked if each.method != "GET"]
    assert updates.body == {"updates": [{"@type": "setProperty", "property": "comment", "value": "All trips"}]}


def test_fields_of_a_dashboard_are_changed(fake: FakeServer, limnos: Run) -> None:
    """`--field` sets own fields of an object of a declared kind; a list has its values separated by commas."""
    fake.default = FakeAnswer(200, {"kind": "dashboard", "name": "d", "path": ["main", "raw", "d"]})
    url = "https://charts.example.com/2"

    done = limnos(
        "set", "main.raw.d", "--kind", "dashboard", "--field", f"url={url}", "--field", "tables=a,b", "--comment", "x"
    )

    assert done.code == 0, done.err
    assert fake.asked[-1].body == {"url": url, "tables": ["a", "b"], "comment": "x"}
    assert done.result["changed"] == ["field url, field tables, comment"]


@pytest.mark.parametrize(
    "flags, kind, messages",
    [
        (["--field", "colour=red"], "dashboard", ["a dashboard has no field colour", "url, tables"]),
        (["--field", "url=nowhere"], "dashboard", ["--field: ", "limnos create dashboard --help"]),
        (["--field", "url"], "dashboard", ["is not KEY=VALUE", "--field url="]),
        (["--field", "url=https://a.example"], "table", ["a table has no fields of its own", "--property"]),
        (["--property", "url=https://a.example"], "dashboard", ["url is a field of a dashboard", "--field url=VALUE"]),
    ],
)
def test_wrong_field_is_refused(
    fake: FakeServer, limnos: Run, flags: list[str], kind: str, messages: list[str]
) -> None:
    """An unknown field, an invalid value, a kind without fields, and a property with a field's name are refused, and
    nothing is sent.
    """
    done = limnos("set", "main.raw.d", "--kind", kind, *flags)

    assert done.code == 2
    assert all(message in done.err for message in messages), done.err
    assert [each for each in fake.asked if each.method != "GET"] == []


def test_missing_tag_leaves_the_object_unchanged(fake: FakeServer, limnos: Run) -> None:
    """If a tag does not exist, properties and owner are not changed."""
    error = {"code": 1003, "type": "NoSuchTagException", "message": "Tag nope does not exist in metalake lake"}
    fake.on("POST", f"{M}/objects/catalog/main/tags", error, status=404)

    done = limnos("set", "main", "--property", "best=1", "--owner", "bob", "--tag", "nope")

    assert done.code == 3
    assert [each.method for each in fake.asked if each.method != "GET"] == ["POST"]


def test_attached_tag_does_not_stop_other_changes(fake: FakeServer, limnos: Run) -> None:
    """A tag that the object has already is left as it is: the other tag, and the comment, are set."""
    tags = {"tags": [{"name": "pii", "properties": {}, "inherited": False}]}
    fake.on("GET", f"{M}/objects/catalog/main/tags?details=true", tags)
    fake.on("POST", f"{M}/objects/catalog/main/tags", {"names": ["pii", "raw"]})
    fake.on("PUT", f"{M}/catalogs/main", {"catalog": {"name": "main"}})

    done = limnos("set", "main", "--comment", "x", "--tag", "pii", "--tag", "raw")

    assert done.code == 0
    (change,) = [each.body for each in fake.asked if each.method == "POST"]
    assert change == {"tagsToAdd": ["raw"], "tagsToRemove": []}


def test_refusal_names_the_changes_before_it(fake: FakeServer, limnos: Run) -> None:
    """If the owner is refused after tags and properties were changed, the error names both."""
    fake.on("POST", f"{M}/objects/catalog/main/tags", {"names": ["pii"]})
    fake.on("PUT", f"{M}/catalogs/main", {"catalog": {"name": "main"}})
    fake.on("PUT", f"{M}/owners/catalog/main", {"code": 1003, "message": "there is no user bob"}, status=404)

    done = limnos("set", "main", "--property", "best=1", "--owner", "bob", "--tag", "pii")

    assert done.code == 3
    assert done.error["message"] == "there is no user bob (changed before it, and still so: tags, property best)"


def test_missing_column_leaves_the_tags_unchanged(fake: FakeServer, limnos: Run) -> None:
    """If a table has no such column, no tag is changed, and the error has the table's columns."""
    schema = {"schema-id": 0, "type": "struct", "fields": [{"id": 1, "name": "fare"}, {"id": 2, "name": "day"}]}
    table = {"metadata-location": "file:/1", "metadata": {"current-schema-id": 0, "schemas": [schema]}, "config": {}}
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/trips?snapshots=refs", table)

    done = limnos("set", "table", "main.raw.trips", "--column", "fair=x", "--tag", "pii")

    assert done.code == 3
    assert done.error["message"] == "main.raw.trips has no column fair: it has fare, day"
    assert {each.method for each in fake.asked} == {"GET"}


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


def test_removal_of_a_missing_property_names_the_existing_ones(fake: FakeServer, limnos: Run) -> None:
    """A property that the object lacks is refused with those that it has, and nothing is changed."""
    space = {"namespace": ["raw"], "properties": {"team": "log"}}
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw", space)

    done = limnos("set", "namespace", "main.raw", "--remove-property", "tema", "--comment", "x")

    assert done.code == 3
    assert done.error["message"] == "namespace main.raw has no property tema: it has team"
    assert {each.method for each in fake.asked} == {"GET"}


@pytest.mark.parametrize(
    "command", [("set", "main.eu", "--owner", "group:ops"), ("set", "owner", "main.eu", "group:ops")]
)
def test_new_owner_that_restrictions_name_gets_a_note(fake: FakeServer, limnos: Run, command: tuple[str, ...]) -> None:
    """Restrictions of an object and of those below it that name the new owner no longer apply, which notes say. Those
    of other groups, and of objects above, have no note.
    """
    own = "/api/limnos/v1/metalakes/lake"
    table = {"kind": "table", "name": "people", "path": ["main", "eu", "people"]}

    def rule(name: str, on: str, group: str) -> dict[str, object]:
        to = {"users": [], "groups": [group], "roles": []}
        about = {"kind": "table", "name": on}
        return {"name": name, "on": about, "masks": {}, "to": to, "except": {}, "set_by": "x", "set_at": "x"}

    rules = [rule("r", "main.eu.people", "ops"), rule("s", "main.eu.people", "dev"), rule("t", "main", "ops")]
    fake.on("GET", f"{own}/catalogs/main/children?path=eu&limit=500", {"children": [table]})
    fake.on("GET", f"{own}/objects/schema/main.eu/restrictions", {"restrictions": []})
    fake.on("GET", f"{own}/objects/table/main.eu.people/restrictions", {"restrictions": rules})
    fake.on("PUT", f"{M}/owners/schema/main.eu", {"set": True})

    done = limnos(*command, "--kind", "namespace")

    assert done.code == 0, done.err
    assert done.err.splitlines() == [
        "note: restriction r of main.eu.people no longer applies to group ops, which owns it now"
    ]
