# SPDX-License-Identifier: Apache-2.0
"""Children of a namespace: all kinds in one ordered and paged list of the objects that the caller may see."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.store.sql import Load
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import commit, make_space, make_table, make_view, set_properties, table_path

CHILDREN = f"{OWN}/metalakes/lake/catalogs/main/children"


def pages(node: DriverNode, path: str, *, limit: int, user: str = "admin", kind: str = "") -> list[dict]:
    """Return all children, read page by page."""
    children: list[dict] = []
    after = ""
    while True:
        query = f"?path={path}&limit={limit}&kind={kind}" + (f"&after={after}" if after else "")
        answer = node.get(CHILDREN + query, user=user)
        assert answer.status == 200, answer.body
        page = answer.json()
        assert len(page["children"]) <= limit
        children += page["children"]
        after = page["after"]
        if after is None:
            return children


def names(children: list[dict]) -> list[tuple[str, str]]:
    """Return the kind and the name of each child."""
    return [(child["kind"], child["name"]) for child in children]


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
def test_children_are_ordered_by_kind_and_name_in_all_pages(node: DriverNode, limit: int) -> None:
    """Namespaces come first, then tables, then views, each by name; every page size gives the same list."""
    make_space(node, "a", "inner")
    make_space(node, "a", "z")
    for name in ("t:1", "u", "B"):
        make_table(node, "a", name)
    make_view(node, "a", "v")

    children = pages(node, "a", limit=limit)

    assert names(children) == [
        ("namespace", "inner"),
        ("namespace", "z"),
        ("table", "B"),
        ("table", "t:1"),
        ("table", "u"),
        ("view", "v"),
    ]
    assert children[3]["path"] == ["main", "a", "t:1"]
    assert names(pages(node, "a", limit=limit, kind="table")) == [("table", "B"), ("table", "t:1"), ("table", "u")]


@pytest.mark.room("sqlpp")
def test_objects_of_sqlpp_are_children(node: DriverNode) -> None:
    """Datatypes and synonyms of SQL++ are children of their namespace in a catalog of tables."""
    make_space(node, "a")
    for statement in ("create type a.ty as {}", "create synonym a.sy for a.t"):
        node.done("POST", "/query/service", {"statement": statement})

    assert names(pages(node, "a", limit=9)) == [("datatype", "ty"), ("synonym", "sy")]


def test_child_has_format_owner_comment_and_times(node: DriverNode) -> None:
    """A child has its format, owner, comment, creator, and the times of its creation and its last change."""
    make_table(node, "a", "t")
    (before,) = pages(node, "a", limit=9)
    commit(node, "a", "t", updates=[set_properties(comment="flights of three airports")])
    (table,) = pages(node, "a", limit=9)
    (space,) = pages(node, "", limit=9)

    assert (table["format"], table["owner"], table["created_by"]) == (
        "iceberg",
        {"kind": "user", "name": "admin"},
        "admin",
    )
    assert (before["comment"], table["comment"]) == (None, "flights of three airports")
    assert table["changed_at"] >= before["changed_at"] >= before["created_at"]
    assert (space["kind"], space["name"], space["owner"]["name"]) == ("namespace", "a", "admin")


def test_hidden_children_are_not_listed(node: DriverNode) -> None:
    """A reader of one table sees only that table, and only the name of the namespace above it."""
    for name in ("t", "secret"):
        make_table(node, "a", name)
    make_table(node, "hidden", "x")
    grant(node, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "ana", "USE_SCHEMA", kind="SCHEMA", on="main.a")
    grant(node, "ana", "SELECT_TABLE", kind="TABLE", on="main.a.t")

    assert names(pages(node, "a", limit=1, user="ana")) == [("table", "t")]
    assert names(pages(node, "", limit=9, user="ana")) == [("namespace", "a")]
    node.ask("POST", f"{API}/lake/users", {"name": "bob"})
    assert node.get(f"{CHILDREN}?path=a", user="bob").status == 403
    assert node.get(f"{CHILDREN}?path=gone", user="bob").status == 403
    assert node.get(f"{CHILDREN}?path=hidden", user="ana").json()["children"] == []


def test_ancestor_visible_by_name_only_has_no_details(node: DriverNode) -> None:
    """A user with rights on a nested namespace sees the names of the namespaces above it, but none of their details."""
    make_table(node, "a", "b", "t")
    grant(node, "ana", "SELECT_TABLE USE_SCHEMA", kind="SCHEMA", on="main.a:b")

    (namespace,) = pages(node, "", limit=9, user="ana")

    assert namespace == {"kind": "namespace", "name": "a", "path": ["main", "a"]}


def test_missing_parent_is_404_and_invalid_query_400(node: DriverNode) -> None:
    """A missing namespace or catalog is 404; invalid cursors, kinds and limits are 400."""
    make_space(node, "a")

    assert node.get(f"{CHILDREN}?path=gone").status == 404
    assert node.get(f"{CHILDREN.replace('/main/', '/nowhere/')}?path=a").status == 404
    for query in ("limit=0", "limit=501", "limit=x", "after=t", "after=thing:t", "kind=thing", "path=a..b"):
        assert node.get(f"{CHILDREN}?{query}").status == 400, query


def test_listing_takes_a_constant_number_of_statements(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing forty tables and views with documents takes as many statements as listing two."""
    for number in range(40):
        make_table(node, "many" if number > 1 else "few", f"t{number}")
    services, statements = node.built.services, 0
    real = services.store.load

    def counted(epoch: int, known: object, load: Callable[[], Load[object]]) -> object:
        def counting() -> Load[object]:
            nonlocal statements
            reading = load()
            answer = None
            while True:
                try:
                    statement = reading.send(answer)  # type: ignore[arg-type]
                except StopIteration as end:
                    return end.value
                statements += 1
                answer = yield statement

        return real(epoch, known, counting)

    monkeypatch.setattr(services.store, "load", counted)
    costs = []
    for path in ("few", "many"):
        services.view.reset(services.view.epoch)
        statements = 0
        children = pages(node, path, limit=500)
        costs.append((statements, len(children)))

    assert [count for _, count in costs] == [2, 38]
    assert costs[0][0] == costs[1][0] > 0


def test_all_children_are_listed_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off, a page has all children with all details."""
    make_table(open_node, "a", "t")

    (table,) = pages(open_node, "a", limit=9, user="anyone")
    assert (table["name"], table["format"]) == ("t", "iceberg")
    assert open_node.get(table_path("a", "t")).status == 200
