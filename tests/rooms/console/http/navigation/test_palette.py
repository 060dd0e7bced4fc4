# SPDX-License-Identifier: Apache-2.0
"""The command palette: its links to pages, users, groups and roles, and the hints of its keys."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

pytestmark = pytest.mark.room("search")

PALETTE = "/console/search?metalake=lake&q="


def links(visitor: ConsoleVisitor, text: str) -> list[str]:
    """Return the URLs of the palette for a text."""
    page = PageReader(text_of(visitor.get(f"{PALETTE}{text}", x_limnos_part="1")))
    assert page.faults == []
    return page.hrefs


@pytest.mark.parametrize(
    "text,path",
    [
        ("trash", "/trash?metalake=lake"),
        pytest.param("Mainten", "/maintenance?metalake=lake", marks=pytest.mark.room("maintenance")),
        ("audit", "/audit?metalake=lake"),
        ("users", "/people?metalake=lake"),
        ("roles", "/people?kind=role&metalake=lake"),
        ("settings", "/settings?metalake=lake"),
        ("api+tok", "/tokens?metalake=lake"),
        pytest.param("sql", "/worksheet?metalake=lake", marks=pytest.mark.room("sqlpp")),
    ],
)
def test_pages_match_by_word_beginnings(admin: ConsoleVisitor, text: str, path: str) -> None:
    """A page is found by the beginnings of its words, and its link works."""
    assert f"/console{path}" in links(admin, text)
    assert admin.get(f"/console{path}").status == 200


def test_users_groups_and_roles_match_by_name(lake: DriverNode, admin: ConsoleVisitor) -> None:
    """An admin finds users, groups and roles by a part of their name; at most five of each."""
    for number in range(7):
        lake.done("POST", f"{API}/lake/users", {"name": f"kim{number}"})
    lake.done("POST", f"{API}/lake/groups", {"name": "old-kim"})
    lake.done("POST", f"{API}/lake/roles", {"name": "kim-reads", "properties": {}, "securableObjects": []})

    paths = links(admin, "KIM")

    assert [f"/console/people/user/lake/kim{number}" for number in range(5)] == paths[:5]
    assert "/console/people/group/lake/old-kim" in paths
    assert "/console/people/role/lake/kim-reads" in paths
    assert len(paths) == 7
    assert admin.get(paths[0]).status == 200


def test_member_gets_only_links_to_allowed_pages(lake: DriverNode) -> None:
    """The palette of a member has no links to users that the member may not see, or to pages that are refused."""
    for name in ("ana", "canary"):
        lake.done("POST", f"{API}/lake/users", {"name": name})
    ana = ConsoleVisitor(lake).sign_in("ana")

    for text in ("canary", "settings", "nodes", "operations", "service"):
        assert links(ana, text) == []
    assert "/console/people/user/lake/ana" in links(ana, "ana")
    for text in ("trash", "audit", "users", "tags", "jobs", "storage", "pipelines", "policies"):
        for path in links(ana, text):
            assert ana.get(path).status == 200, path


def test_keyboard_shortcuts_are_shown_on_the_page(admin: ConsoleVisitor) -> None:
    """The page shows the keys of the search, of the palette and of the list of keys beside the search box."""
    text = text_of(admin.get("/console/"))
    header = text.partition('<div class="layout')[0]

    assert '<kbd class="hint"' in header
    assert 'data-dialog="#palette"' in header
    assert "Ctrl-K" in header
    assert 'data-dialog="#keys"' in header
