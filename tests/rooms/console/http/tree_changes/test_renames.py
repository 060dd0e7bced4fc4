# SPDX-License-Identifier: Apache-2.0
"""Renaming objects in the console: the form, messages about refused names, and refused users."""

from __future__ import annotations

import pytest

from limnos.rooms.console.http.object_tabs import RENAMABLE
from limnos.rooms.console.http.tree_changes import renames
from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG, NASTY, add_table
from tests.rooms.console.http.trash.test_drops import VIEW
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

LAKE = f"{API}/lake"
FLIGHTS = "table/lake/main/raw/flights"
TAGS = f"{LAKE}/objects/table/main.raw.{{}}/tags"
OBJECTS = {
    FLIGHTS: "table/lake/main/raw/trips",
    "view/lake/main/raw/late": "view/lake/main/raw/trips",
    "namespace/lake/main/raw": "namespace/lake/main/trips",
    "namespace/lake/main/raw/nyc": "namespace/lake/main/raw/trips",
    "catalog/lake/main": "catalog/lake/trips",
    "table/lake/vectors/s/t": "table/lake/vectors/s/trips",
}


@pytest.fixture
def full(admin: ConsoleVisitor) -> ConsoleVisitor:
    """The admin, in a lake with an object of each kind that can be renamed."""
    node = admin.node
    node.done("POST", f"{ICEBERG}/namespaces/raw/views", VIEW)
    node.done(
        "POST",
        f"{LAKE}/catalogs",
        {"name": "vectors", "type": "RELATIONAL", "provider": "lakehouse-generic", "properties": {}},
    )
    node.done("POST", "/lance/v1/namespace/vectors$s/create", {"properties": {}})
    node.done("POST", "/lance/v1/table/vectors$s$t/declare", {})
    return admin


def test_rename_links_match_the_kinds_of_the_rename_route() -> None:
    """The kinds with a rename link are the kinds that the rename route can rename."""
    assert set(renames._RENAMES) == RENAMABLE


@pytest.mark.room("lance")
@pytest.mark.parametrize("path", OBJECTS)
def test_each_kind_is_renamed(full: ConsoleVisitor, path: str) -> None:
    """The object's page links to a form that says what stays unchanged. The rename redirects to the page under the new
    name.
    """
    link = f"/console/rename/{path}"
    assert link in full.read(f"/console/o/{path}").hrefs
    page = full.read(link)
    assert "Grants, tags and policies stay" in page.text
    assert ("post", link) in page.actions
    assert ("aria-label", "New name") in page.attributes
    assert "New name Rename Cancel" in page.text

    done = full.post(link, {"name": " trips "})

    assert done.status == 303, text_of(done)
    assert done.headers["location"].startswith(f"/console/o/{OBJECTS[path]}?done=")
    assert "is now" in full.read(done.headers["location"]).text
    assert full.get(f"/console/o/{path}").status == 404
    assert full.post(link, {"name": "x"}).status == 404


def test_rename_keeps_grants_and_tags(admin: ConsoleVisitor) -> None:
    """Grants and tags of a renamed object apply under the new name, and not to a new object under the former name."""
    node = admin.node
    node.done("POST", f"{LAKE}/tags", {"name": "pii", "comment": "", "properties": {}})
    node.done("POST", TAGS.format("flights"), {"tagsToAdd": ["pii"], "tagsToRemove": []})
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "ana", "select_table", kind="TABLE", on="main.raw.flights")

    admin.post(f"/console/rename/{FLIGHTS}", {"name": "trips"})
    add_table(node, "raw", "flights")

    ana = ConsoleVisitor(node).sign_in("ana")
    assert "You may read" in ana.read("/console/o/table/lake/main/raw/trips").text
    assert ana.get(f"/console/o/{FLIGHTS}").status == 403
    assert [node.done("GET", TAGS.format(name))["names"] for name in ("trips", "flights")] == [["pii"], []]


@pytest.mark.parametrize(
    "name,status,words",
    [("", 400, "Give the new name"), ("nyc", 409, "nyc"), ("other", 409, "already exists"), ("x" * 300, 400, "x")],
)
def test_invalid_or_used_name_shows_the_form_with_a_message(
    admin: ConsoleVisitor, name: str, status: int, words: str
) -> None:
    """A name in use or an invalid name shows the form again with the sent name and the service's message. Nothing is
    renamed.
    """
    add_table(admin.node, "raw", "other")
    link = f"/console/rename/{FLIGHTS}" if name != "nyc" else "/console/rename/namespace/lake/main/far"
    if name == "nyc":
        admin.node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["far"]})
        admin.node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["nyc"]})

    answer = admin.post(link, {"name": name})
    page = PageReader(text_of(answer))

    assert answer.status == status
    assert ("post", link) in page.actions
    assert ("value", name) in page.attributes
    assert words in page.text
    assert page.faults == []
    assert admin.get(link.replace("/rename/", "/o/")).status == 200


@pytest.mark.room("lance")
def test_used_name_of_catalog_or_view_shows_the_form_with_a_message(full: ConsoleVisitor) -> None:
    """A name in use by a catalog or a view shows the form again, with the service's message and status."""
    for path, name in (("catalog/lake/main", "vectors"), ("view/lake/main/raw/late", "flights")):
        answer = full.post(f"/console/rename/{path}", {"name": name})
        assert answer.status == 409, path
        assert ("post", f"/console/rename/{path}") in PageReader(text_of(answer)).actions
        assert full.get(f"/console/o/{path}").status == 200


def test_name_with_markup_is_escaped(admin: ConsoleVisitor) -> None:
    """A name with markup is escaped in the form, in the message and on the page of the renamed object."""
    answer = admin.post(f"/console/rename/{FLIGHTS}", {"name": NASTY})
    page = PageReader(text_of(answer) if answer.status != 303 else text_of(admin.get(answer.headers["location"])))

    assert page.tags.count("script") == 1
    assert page.faults == []


def test_reader_cannot_rename_objects(lake: DriverNode) -> None:
    """A reader sees no link and no form, and their POST is refused. A hidden object is refused like a missing one."""
    add_table(lake, "raw", "hidden")
    lake.done("POST", f"{ICEBERG}/namespaces/raw/views", VIEW)
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")
    grant(lake, "ana", "select_view", kind="VIEW", on="main.raw.late")
    ana = ConsoleVisitor(lake).sign_in("ana")

    for path in (FLIGHTS, "view/lake/main/raw/late", "namespace/lake/main/raw", "catalog/lake/main"):
        link = f"/console/rename/{path}"
        assert "/console/rename/" not in text_of(ana.get(f"/console/o/{path}")), path
        page = ana.read(link)
        assert "You may not rename it" in page.text
        assert ("post", link) not in page.actions
        for name in ("trips", "hidden", ""):
            assert ana.post(link, {"name": name}).status in ({403} if name else {400, 403}), path
    answers = {
        (ana.get(link).status, ana.post(link, {"name": "trips"}).status)
        for link in (f"/console/rename/table/lake/main/raw/{name}" for name in ("hidden", "nothing"))
    }
    assert answers in ({(403, 403)}, {(404, 404)})
    assert ConsoleVisitor(lake).sign_in().get(f"/console/o/{FLIGHTS}").status == 200


def test_modify_table_privilege_is_enough_to_rename_a_table(lake: DriverNode) -> None:
    """MODIFY_TABLE is enough to see the rename link of a table and to rename it; ownership is not required."""
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "modify_table", kind="TABLE", on="main.raw.flights")
    ana = ConsoleVisitor(lake).sign_in("ana")

    assert f"/console/rename/{FLIGHTS}" in ana.read(f"/console/o/{FLIGHTS}").hrefs
    assert ana.post(f"/console/rename/{FLIGHTS}", {"name": "trips"}).status == 303


def test_objects_of_external_systems_cannot_be_renamed(admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of external systems cannot be renamed, with this reason. A user who may not see the object is refused
    without the reason.
    """
    monkeypatch.setattr(renames, "is_sourced", lambda _: True)
    admin.node.done("POST", f"{LAKE}/users", {"name": "ana"})
    ana = ConsoleVisitor(admin.node).sign_in("ana")
    link = f"/console/rename/{FLIGHTS}"

    for answer in (admin.get(link), admin.post(link, {"name": "trips"})):
        assert answer.status in {405, 406}
        assert "are in an external system" in text_of(answer)
    for answer in (ana.get(link), ana.post(link, {"name": "trips"})):
        assert answer.status in {403, 404}
        assert "external" not in text_of(answer)


def test_kinds_without_rename_are_refused(admin: ConsoleVisitor) -> None:
    """A kind that cannot be renamed is refused before the object is loaded."""
    answer = admin.post("/console/rename/model/lake/main/raw/m", {"name": "x"})

    assert answer.status == 400
    assert "does not rename a model" in text_of(answer)
