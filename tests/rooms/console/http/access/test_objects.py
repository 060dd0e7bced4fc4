# SPDX-License-Identifier: Apache-2.0
"""The access page of an object: holders, rules, explanations and reach for users who manage grants, and their own
access for other users.
"""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor

TABLE = "/console/access/table/lake/main/raw/flights"


def add_reader(node: DriverNode, user: str = "ana") -> str:
    """Grant a user the privilege to read the table. Returns the user's role."""
    grant(node, user, "use_catalog", kind="catalog", on="main")
    grant(node, user, "use_schema", kind="schema", on="main.raw")
    return grant(node, user, "select_table", kind="table", on="main.raw.flights")


def test_page_shows_holders_and_rules(lake: DriverNode) -> None:
    """A grant manager sees users with their levels, the rules with their objects, and a form to grant."""
    role = add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    page = admin.read(TABLE)

    assert "Who may" in page.text
    assert "ana yes" in page.text
    assert role in page.text
    assert "granted here" in page.text
    assert "from catalog main" in page.text
    assert "/console/people/user/lake/ana" in page.hrefs
    assert any("change=revoke" in href and "privileges=select_table" in href for href in page.hrefs)
    assert ("get", "/console/grant/table/lake/main/raw/flights") in page.actions
    assert page.faults == []


def test_manager_gets_an_explanation_of_a_refusal(lake: DriverNode) -> None:
    """A manager sees why another user is refused, and which grants would allow the access."""
    add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    page = admin.read(f"{TABLE}?user=ana&action=table_drop")

    assert "lacks ownership" in page.text
    assert admin.get(f"{TABLE}?action=fly").status == 400


def test_readers_see_only_their_own_access(lake: DriverNode) -> None:
    """A reader sees the table's owner and an explanation of their own access. The page names no other user and has no
    grant form.
    """
    add_reader(lake)
    add_reader(lake, "bob")
    ana = ConsoleVisitor(lake).sign_in("ana")

    page = ana.read(f"{TABLE}?action=table_scan")

    assert "You may not see other users' access" in page.text
    assert "bob" not in page.text
    assert "has SELECT_TABLE" in page.text
    assert all("/grant/" not in action for _, action in page.actions)
    assert ana.get(f"{TABLE}?action=table_scan&user=bob").status == 403


def test_accessible_objects_are_counted_by_level_and_kind(lake: DriverNode) -> None:
    """The page of a container counts a user's accessible objects by level and kind."""
    add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    page = admin.read("/console/access/catalog/lake/main?reach=ana")

    assert "read 1 catalog, 2 namespaces, 1 table" in page.text


def test_object_pages_link_to_their_access_page(admin: ConsoleVisitor) -> None:
    """Pages of objects link to their access page."""
    for kind, path in (("catalog", "main"), ("namespace", "main/raw"), ("table", "main/raw/flights")):
        assert f"/console/access/{kind}/lake/{path}" in admin.read(f"/console/o/{kind}/lake/{path}").hrefs


def test_access_page_has_the_objects_tabs(admin: ConsoleVisitor) -> None:
    """The access page has the same tabs as the object's own page."""
    for kind, path in (("catalog", "main"), ("namespace", "main/raw"), ("table", "main/raw/flights")):
        own = admin.read(f"/console/o/{kind}/lake/{path}").hrefs
        tabs = {each for each in own if each.startswith(f"/console/o/{kind}/lake/{path}?tab=")}

        assert tabs
        assert tabs <= set(admin.read(f"/console/access/{kind}/lake/{path}").hrefs)


def test_grant_form_and_levels_list_reading_first(lake: DriverNode) -> None:
    """The grant form offers reading first and suggests the roles. The levels of access begin with reading."""
    role = add_reader(lake)
    page = ConsoleVisitor(lake).sign_in().read(TABLE)

    values = [value for name, value in page.attributes if name == "value"]
    assert values.index("reader") < values.index("writer") < values.index("admin") < values.index("select_table")
    assert role in values
    assert ("selected", "") in page.attributes


@pytest.mark.parametrize(
    "path",
    [TABLE, pytest.param(TABLE.replace("/access/", "/lineage/"), marks=pytest.mark.room("pipelines"))],
)
def test_access_and_lineage_pages_have_format_and_comment(admin: ConsoleVisitor, path: str) -> None:
    """The access and lineage pages of a table have its format and comment."""
    page = admin.read(path)

    assert "Iceberg v2" in page.text
    assert "Flights of three airports" in page.text


def test_explanation_for_a_non_member_suggests_adding_the_user(lake: DriverNode) -> None:
    """For a user who is not in the metalake, the explanation says so and suggests adding the user. For a member, it
    does not.
    """
    add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    stranger = admin.read(f"{TABLE}?user=nobody&action=table_load").text

    assert "nobody is not a user of the metalake lake." in stranger
    assert "is not a user of the metalake lake Add user nobody to the metalake lake." in stranger
    assert "doesn't exist" not in stranger
    assert "not a user" not in admin.read(f"{TABLE}?user=ana&action=table_load").text


def test_catalog_access_page_has_the_catalog_heading(lake: DriverNode) -> None:
    """The access page of a catalog has the provider and the link to create a namespace, like the catalog's own page."""
    admin = ConsoleVisitor(lake).sign_in()

    first, page = (admin.read(f"/console/{each}/catalog/lake/main") for each in ("o", "access"))

    for each in (first, page):
        assert "/console/create-namespace/catalog/lake/main" in each.hrefs
        assert "lakehouse-iceberg" in each.text
