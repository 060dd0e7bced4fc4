# SPDX-License-Identifier: Apache-2.0
"""Creating namespaces in the console: the form, messages about refused names, and refused users."""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG, NASTY, add_table
from tests.rooms.console.http.test_other_objects import add_catalog
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

MAIN, RAW = "catalog/lake/main", "namespace/lake/main/raw"


@pytest.mark.parametrize("parent,path", [(MAIN, "namespace/lake/main/fresh"), (RAW, "namespace/lake/main/raw/fresh")])
def test_a_namespace_is_created(admin: ConsoleVisitor, parent: str, path: str) -> None:
    """The page of the catalog or namespace links to a form. The form creates the namespace with its comment."""
    link = f"/console/create-namespace/{parent}"
    assert link in admin.read(f"/console/o/{parent}").hrefs
    page = admin.read(link)
    assert ("post", link) in page.actions
    assert "Create Cancel" in page.text
    assert "`" not in page.text
    assert {("aria-label", "Name"), ("aria-label", "Description")} <= set(page.attributes)

    done = admin.post(link, {"name": " fresh ", "comment": NASTY})

    assert done.headers["location"].startswith(f"/console/o/{path}?done=")
    namespace_page = admin.read(done.headers["location"])
    assert "is created" in namespace_page.text
    assert "<script>x</script>" in namespace_page.text
    assert namespace_page.faults == []
    assert "Owner admin" in namespace_page.text


@pytest.mark.parametrize("name,status", [("", 400), ("nyc", 409), ("x" * 300, 400)])
def test_invalid_or_used_name_shows_the_form_with_a_message(admin: ConsoleVisitor, name: str, status: int) -> None:
    """A name in use or an invalid name shows the form again, with the sent values and the service's message."""
    link = f"/console/create-namespace/{RAW}"

    answer = admin.post(link, {"name": name, "comment": NASTY})
    page = PageReader(text_of(answer))

    assert answer.status == status
    assert ("post", link) in page.actions
    assert {("value", name), ("value", NASTY)} <= set(page.attributes)
    assert ("already exists" in page.text) is (status == 409)


def test_reader_cannot_create_namespaces(lake: DriverNode) -> None:
    """A reader sees no link and no form, and is refused; a hidden or missing parent is refused as its own page is."""
    lake.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["hidden"]})
    add_table(lake, "hidden", "t")
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema", kind="SCHEMA", on="main.raw")
    ana = ConsoleVisitor(lake).sign_in("ana")

    for parent in (MAIN, RAW):
        link = f"/console/create-namespace/{parent}"
        assert link not in text_of(ana.get(f"/console/o/{parent}"))
        page = ana.read(link)
        assert "You may not create a namespace here" in page.text
        assert ("post", link) not in page.actions
        for name in ("fresh", "nyc", "raw"):
            assert ana.post(link, {"name": name}).status == 403
    for name in ("hidden", "nothing"):  # the same status as the page of the namespace itself
        link = f"/console/create-namespace/namespace/lake/main/{name}"
        status = ana.get(f"/console/o/namespace/lake/main/{name}").status
        assert (ana.get(link).status, ana.post(link, {"name": "fresh"}).status) == (status, status)
        assert status in {403, 404}
    admin = ConsoleVisitor(lake).sign_in()
    assert admin.get("/console/o/namespace/lake/main/fresh").status == 404
    assert admin.get("/console/o/namespace/lake/main/raw/fresh").status == 404


def test_create_schema_privilege_allows_creating_namespaces(lake: DriverNode) -> None:
    """A user with CREATE_SCHEMA on a namespace may create namespaces in it, but not in the catalog."""
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema create_schema", kind="SCHEMA", on="main.raw")
    ana = ConsoleVisitor(lake).sign_in("ana")

    assert f"/console/create-namespace/{RAW}" in ana.read(f"/console/o/{RAW}").hrefs
    assert ana.post(f"/console/create-namespace/{RAW}", {"name": "fresh"}).status == 303
    assert ana.post(f"/console/create-namespace/{MAIN}", {"name": "fresh"}).status == 403


def test_flat_schemas_have_no_form_for_nested_schemas(admin: ConsoleVisitor) -> None:
    """In a catalog with flat schemas, the catalog's page has the link and a schema's page does not. A POST for a nested
    schema is refused.
    """
    add_catalog(admin.node, "ml", type="model", provider="model")
    inner = "/console/create-namespace/namespace/lake/ml/s"

    assert "/console/create-namespace/catalog/lake/ml" in admin.read("/console/o/catalog/lake/ml").hrefs
    assert inner not in admin.read("/console/o/namespace/lake/ml/s").hrefs
    assert ("post", inner) not in admin.read(inner).actions
    answer = admin.post(inner, {"name": "fresh"})
    assert answer.status in {405, 406}
    assert "do not nest" in text_of(answer)
    assert admin.post("/console/create-namespace/catalog/lake/ml", {"name": "fresh"}).status == 303


def test_parent_of_another_kind_returns_400(admin: ConsoleVisitor) -> None:
    """A parent of another kind is refused with 400, and a missing parent is 404."""
    flights = "/console/create-namespace/table/lake/main/raw/flights"

    assert (admin.get(flights).status, admin.post(flights, {"name": "x"}).status) == (400, 400)
    assert admin.post("/console/create-namespace/namespace/lake/main/nothing", {"name": "x"}).status == 404
