# SPDX-License-Identifier: Apache-2.0
"""Tabs that rooms add to the pages of tables: their place, and their absence while the room is off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.model.kinds import Kind
from limnos.rooms.console.http.object_tabs import LANCE_TABLE_TABS, TABLE_TABS, tabs_of
from limnos.rooms.console.http.site import ConsoleSite
from tests.http.driver import node_at
from tests.installed import has_room
from tests.rooms.console.http.conftest import ICEBERG, add_table
from tests.rooms.console.http.visitor import ConsoleVisitor

PAGE = "/console/o/table/lake/main/raw/flights"


@pytest.mark.room("maintenance", "lance")
def test_tabs_of_rooms_stand_in_their_places() -> None:
    """The tab of a room stands before the first of the tabs that it names. Only tables have it."""
    site = ConsoleSite()

    assert [*tabs_of(Kind.TABLE, is_lance=False, site=site)][3:6] == ["lineage", "maintenance", "scans"]
    assert [*tabs_of(Kind.TABLE, is_lance=True, site=site)][3:6] == ["indexes", "maintenance", "properties"]
    assert "maintenance" not in tabs_of(Kind.NAMESPACE, is_lance=False, site=site)
    off = site._replace(rooms_off=frozenset({"maintenance"}))
    assert tabs_of(Kind.TABLE, is_lance=False, site=off) == TABLE_TABS
    names = [*tabs_of(Kind.TABLE, is_lance=True, site=off)]
    assert names == ["columns", "preview", "versions", "indexes", "properties", "connect"]
    neither = site._replace(rooms_off=frozenset({"maintenance", "lance"}))
    assert tabs_of(Kind.TABLE, is_lance=True, site=neither) == LANCE_TABLE_TABS


def test_pages_have_no_tab_of_a_room_that_is_off(fresh: Callable[[str], Path]) -> None:
    """Without maintenance a table's page has no such tab, a request for it shows the first one, and the first page of
    the console has no lines about it.
    """
    with node_at(fresh("data"), off=("maintenance",) if has_room("maintenance") else ()) as node:
        node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["raw"]})
        add_table(node, "raw", "flights")
        admin = ConsoleVisitor(node).sign_in()
        page = admin.read(f"{PAGE}?tab=maintenance")

        assert not [each for each in page.hrefs if "tab=maintenance" in each]
        assert page.text == admin.read(f"{PAGE}?tab=columns").text
        assert "Due operations" not in page.text
        assert "need maintenance" not in admin.read("/console/").text
        assert "tab=maintenance" not in str(admin.read(PAGE.replace("/o/", "/access/")).hrefs)
