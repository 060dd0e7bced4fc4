# SPDX-License-Identifier: Apache-2.0
"""The navigation contains the pages that the caller may open, and no others."""

from __future__ import annotations

from limnos.rooms.console.http.navigation.console_pages import CONSOLE_PAGES
from limnos.rooms.console.http.protocol import CONSOLE_ROUTES, ConsoleProtocol
from limnos.rooms.console.http.site import ConsoleSite
from tests.http.driver import API, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader

OPERATIONS = "/console/operations?metalake=lake"
INSPECTED = {f"/console/{path}?metalake=lake" for path in ("nodes", "settings", "accounts")}


def sections(page: PageReader) -> set[str]:
    """Return the URLs of the navigation's entries."""
    own = {each.href("/console", "lake") for each in CONSOLE_PAGES}
    return own & set(page.hrefs)


def test_navigation_entries_depend_on_the_user_and_open(lake: DriverNode) -> None:
    """The admin, an owner of the metalake and a member get different entries. The entries, and the tabs of the
    operations page, of the first two can be opened.
    """
    for name in ("olga", "ana"):
        lake.done("POST", f"{API}/lake/users", {"name": name})
    lake.done("PUT", f"{API}/lake/owners/metalake/lake", {"name": "olga", "type": "USER"})
    admin, olga, ana = (ConsoleVisitor(lake).sign_in(user) for user in ("admin", "olga", "ana"))

    of_admin, of_olga, of_ana = (sections(visitor.read("/console/")) for visitor in (admin, olga, ana))

    assert OPERATIONS in of_admin & of_olga
    assert of_ana == of_admin - {OPERATIONS}
    for visitor, paths in ((admin, of_admin), (olga, of_olga)):
        for path in paths | sections(visitor.read(OPERATIONS)):
            assert visitor.get(path).status == 200, path
    assert sections(admin.read(OPERATIONS)) >= INSPECTED
    assert not sections(olga.read(OPERATIONS)) & INSPECTED
    assert not sections(ana.read("/console/storage")) & (INSPECTED | {OPERATIONS})


def test_worksheet_entry_is_hidden_without_statements(lake: DriverNode) -> None:
    """The entry of the worksheet is left out if the server runs no statements."""
    protocol = ConsoleProtocol(ConsoleSite(allows_name_only=True, rooms_off=frozenset({"sqlpp"})))
    application = lake.built.application
    application.protocols = [protocol if each.name == "console" else each for each in application.protocols]

    page = ConsoleVisitor(lake).sign_in().read("/console/")

    assert not [href for href in page.hrefs if href.startswith("/console/worksheet")]


def test_entries_are_routed_pages_with_unique_keys() -> None:
    """Each entry is a page of the console, and no two entries have the same key."""
    paths = {route.path for route in CONSOLE_ROUTES if route.method == "GET"}
    keys = [each.key for each in CONSOLE_PAGES if each.key]

    assert {each.path.partition("?")[0] for each in CONSOLE_PAGES} <= paths
    assert len(keys) == len(set(keys))


def test_create_forms_are_shown_only_with_the_privilege(lake: DriverNode) -> None:
    """The lists of tags and policies have a create form only for callers with the privilege."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    admin, ana = (ConsoleVisitor(lake).sign_in(user) for user in ("admin", "ana"))

    for plural in ("tags", "policies"):
        form = ("post", f"/console/{plural}/create")
        assert form in admin.read(f"/console/{plural}").actions
        assert form not in ana.read(f"/console/{plural}").actions
