# SPDX-License-Identifier: Apache-2.0
"""Editing objects in the console: description, properties, columns' descriptions, tags; refused users."""

from __future__ import annotations

import pytest

from limnos.rooms.console.http.object_tabs import EDITABLE
from limnos.rooms.console.http.tree_changes import edits
from tests.http.driver import DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.console.http.conftest import ICEBERG, NASTY, add_table
from tests.rooms.console.http.test_other_objects import add_catalog
from tests.rooms.console.http.tree_changes.test_renames import LAKE, full
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

__all__ = ["full"]
FLIGHTS = "table/lake/main/raw/flights"
EDIT = f"/console/edit/{FLIGHTS}"


def table_of(node: DriverNode) -> dict:
    """Return the metadata of the table `raw.flights`."""
    return node.done("GET", f"{ICEBERG}/namespaces/raw/tables/flights")["metadata"]


def described(node: DriverNode) -> dict[str, str]:
    """Return the description of each column of the current schema of `raw.flights`, nested ones included."""
    metadata = table_of(node)
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    inner = [field for each in schema["fields"] if isinstance(each["type"], dict) for field in each["type"]["fields"]]
    return {field["name"]: field.get("doc", "") for field in (*schema["fields"], *inner)}


def test_edit_links_match_the_kinds_of_the_edit_route() -> None:
    """The kinds with an edit link are the kinds that the edit route can change."""
    assert set(edits._EDITS) == EDITABLE


@pytest.mark.parametrize("path", ["catalog/lake/main", "namespace/lake/main/raw", FLIGHTS])
def test_description_and_properties_are_edited(admin: ConsoleVisitor, path: str) -> None:
    """The page of an object leads to forms that save its description, set a property and remove it."""
    page = f"/console/edit/{path}"
    assert page in admin.read(f"/console/o/{path}").hrefs
    form = admin.read(page)
    assert ("post", page) in form.actions
    assert form.faults == []

    for fields, words in (
        ({"change": "comment", "value": f" {NASTY} "}, NASTY),
        ({"change": "set", "name": "team", "value": "south pole"}, "south pole"),
    ):
        done = admin.post(page, fields)
        assert done.status == 303, text_of(done)
        assert done.headers["location"].startswith(f"{page}?done=")
        edited = admin.read(done.headers["location"])
        assert words in edited.text or ("value", words) in edited.attributes
        assert edited.faults == []
    assert NASTY in admin.read(f"/console/o/{path}").text
    assert "south pole" in admin.read(f"/console/o/{path}?tab=properties").text
    assert admin.post(page, {"change": "remove", "name": "team"}).status == 303
    assert admin.post(page, {"change": "comment", "value": ""}).status == 303
    assert "south pole" not in admin.read(f"/console/o/{path}?tab=properties").text
    assert NASTY not in admin.read(f"/console/o/{path}").text.replace("Owner", "")[:200]


def test_column_is_described(admin: ConsoleVisitor) -> None:
    """A column and a nested one get a description; the rest of the schema stays, and an empty text removes it."""
    before = described(admin.node)

    for field, text in (("1", "the flight"), ("3", NASTY), ("2", "")):
        assert admin.post(EDIT, {"change": "describe", "name": "x", "field": field, "value": text}).status == 303

    assert before == {"id": "the number", "place": NASTY, "town": ""}
    assert described(admin.node) == {"id": "the flight", "place": "", "town": NASTY}
    assert "the flight" in admin.read(f"/console/o/{FLIGHTS}").text
    schemas = len(table_of(admin.node)["schemas"])
    assert admin.post(EDIT, {"change": "describe", "field": "1", "value": "the flight"}).status == 303
    assert len(table_of(admin.node)["schemas"]) == schemas
    assert admin.post(EDIT, {"change": "describe", "field": "99", "value": "x"}).status == 404


@pytest.mark.parametrize(
    "fields", [{}, {"change": "purge"}, {"change": "set"}, {"change": "remove", "name": " "}, {"change": "describe"}]
)
def test_invalid_forms_change_nothing(admin: ConsoleVisitor, fields: dict[str, str]) -> None:
    """A form without a known change, a name or a column is refused with 400, and leads back to the form."""
    before = table_of(admin.node)

    answer = admin.post(EDIT, fields)

    assert answer.status == 400
    assert EDIT in PageReader(text_of(answer)).hrefs
    assert table_of(admin.node) == before


def test_tags_are_attached_and_detached(admin: ConsoleVisitor) -> None:
    """Forms attach a tag to the table and to a column, list both, detach them, and lead back to the page."""
    admin.node.done("POST", f"{LAKE}/tags", {"name": "pii", "comment": "", "properties": {}})
    own = {"metalake": "lake", "kind": "table", "path": "main.raw.flights", "next": EDIT}
    page = admin.read(EDIT)
    assert ("value", EDIT) in page.attributes
    assert ("value", "main.raw.flights") in page.attributes

    for column in ("", "place"):
        done = admin.post("/console/tag/attach", own | {"name": "pii", "change": "attach", "column": column})
        assert done.headers["location"].startswith(f"{EDIT}?done=")

    listed = admin.read(EDIT).text
    assert "column place" in listed
    assert [
        admin.node.done("GET", f"{LAKE}/objects/{path}/tags")["names"]
        for path in ("table/main.raw.flights", "column/main.raw.flights.place")
    ] == [["pii"], ["pii"]]
    admin.post(
        "/console/tag/attach",
        own | {"name": "pii", "change": "detach", "kind": "column", "path": "main.raw.flights.place"},
    )
    left = admin.read(EDIT).text
    assert "column place" not in left
    assert "Detach" in left


@pytest.mark.parametrize("target", ["https://evil.example.com/", "//evil.example.com", "/console/../api"])
def test_tag_form_does_not_redirect_elsewhere(admin: ConsoleVisitor, target: str) -> None:
    """A form of tags that names a page outside of the console leads to the first page."""
    admin.node.done("POST", f"{LAKE}/tags", {"name": "pii", "comment": "", "properties": {}})

    done = admin.post(
        "/console/tag/attach",
        {
            "metalake": "lake",
            "name": "pii",
            "kind": "table",
            "path": "main.raw.flights",
            "change": "attach",
            "next": target,
        },
    )

    assert done.headers["location"].startswith("/console/?done=")


def test_reader_cannot_edit(lake: DriverNode) -> None:
    """A reader sees no link and no form but that of tags, and each change is refused; MODIFY_TABLE allows them."""
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema", kind="SCHEMA", on="main.raw")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")
    grant(lake, "mod", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "mod", "use_schema", kind="SCHEMA", on="main.raw")
    grant(lake, "mod", "modify_table", kind="TABLE", on="main.raw.flights")
    ana, mod = (ConsoleVisitor(lake).sign_in(user) for user in ("ana", "mod"))
    changes = (
        {"change": "comment", "value": "mine"},
        {"change": "set", "name": "a", "value": "b"},
        {"change": "remove", "name": "comment"},
        {"change": "describe", "field": "1", "value": "mine"},
    )
    before = table_of(lake)

    assert EDIT not in ana.read(f"/console/o/{FLIGHTS}").hrefs
    page = ana.read(EDIT)
    assert "You may not change main.raw.flights" in page.text
    assert ("post", EDIT) not in page.actions
    for place in (FLIGHTS, "namespace/lake/main/raw", "catalog/lake/main"):
        for fields in changes[:3]:
            answer = ana.post(f"/console/edit/{place}", fields)
            assert answer.status == 403, (place, fields)
            assert "You may not do this" in text_of(answer)
    assert ana.post(EDIT, changes[3]).status == 403
    assert table_of(lake) == before
    assert EDIT in mod.read(f"/console/o/{FLIGHTS}").hrefs
    assert {mod.post(EDIT, fields).status for fields in changes} == {303}
    assert mod.post("/console/edit/namespace/lake/main/raw", changes[0]).status == 403


def test_restricted_user_edits_no_text(lake: DriverNode) -> None:
    """A user who may alter a table but has a read restriction on it gets no form with its texts."""
    grant(lake, "mod", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "mod", "use_schema", kind="SCHEMA", on="main.raw")
    grant(lake, "mod", "select_table modify_table", kind="TABLE", on="main.raw.flights")
    admin = ConsoleVisitor(lake).sign_in()
    admin.post(f"/console/restrictions/{FLIGHTS}", {"change": "set", "name": "few", "filter": "id = 1"})

    page = ConsoleVisitor(lake).sign_in("mod").read(EDIT)

    assert "Flights of three airports" not in page.text
    assert ("post", EDIT) not in page.actions


def test_objects_in_namespaces_are_edited(admin: ConsoleVisitor) -> None:
    """A model is edited as well. Dashboards are refused with the reason."""
    add_catalog(admin.node, "ml", type="model", provider="model")
    admin.node.done("POST", f"{LAKE}/catalogs/ml/schemas/s/models", {"name": "m", "comment": "", "properties": {}})
    page = "/console/edit/model/lake/ml/s/m"

    assert page in admin.read("/console/o/model/lake/ml/s/m").hrefs
    assert admin.post(page, {"change": "comment", "value": "trained"}).status == 303
    assert "trained" in admin.read("/console/o/model/lake/ml/s/m").text
    assert admin.get("/console/edit/dashboard/lake/main/raw/d").status == 400


def test_view_is_edited(admin: ConsoleVisitor) -> None:
    """The page of a view leads to forms that save its description and properties; its text stays. A missing view is
    not found, and a reader of the view is refused.
    """
    admin.node.done("POST", f"{ICEBERG}/namespaces/raw/views", wire.view_body("v"))
    page = "/console/edit/view/lake/main/raw/v"
    before = admin.node.done("GET", f"{ICEBERG}/namespaces/raw/views/v")["metadata"]

    linked = page in admin.read("/console/o/view/lake/main/raw/v").hrefs
    for fields in ({"change": "comment", "value": NASTY}, {"change": "set", "name": "team", "value": "south pole"}):
        done = admin.post(page, fields)
        assert done.status == 303, text_of(done)
    form = admin.read(page)
    removed = admin.post(page, {"change": "remove", "name": "team"})
    after = admin.node.done("GET", f"{ICEBERG}/namespaces/raw/views/v")["metadata"]

    assert linked
    assert NASTY in form.text or ("value", NASTY) in form.attributes
    assert ("value", "south pole") in form.attributes
    assert removed.status == 303
    assert after["properties"] == before["properties"] | {"comment": NASTY}
    assert (after["versions"], after["current-version-id"]) == (before["versions"], before["current-version-id"])
    assert admin.get("/console/edit/view/lake/main/raw/w").status == 404
    grant(admin.node, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(admin.node, "ana", "use_schema", kind="SCHEMA", on="main.raw")
    grant(admin.node, "ana", "select_view", kind="VIEW", on="main.raw.v")
    ana = ConsoleVisitor(admin.node).sign_in("ana")
    assert page not in ana.read("/console/o/view/lake/main/raw/v").hrefs
    assert ("post", page) not in ana.read(page).actions
    assert ana.post(page, {"change": "comment", "value": "mine"}).status == 403


@pytest.mark.room("lance")
def test_lance_tables_are_not_edited(full: ConsoleVisitor) -> None:
    """The page of a Lance table has no edit link, and its edit page says which protocol changes it."""
    add_table(full.node, "raw", "other")

    assert not [href for href in full.read("/console/o/table/lake/vectors/s/t").hrefs if "/edit/" in href]
    answer = full.get("/console/edit/table/lake/vectors/s/t")
    assert answer.status in {405, 406}
    assert "Lance REST" in text_of(answer)
