# SPDX-License-Identifier: Apache-2.0
"""Namespaces over Lance REST: catalogs at the root, nesting, modes, pages."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.rooms.lance.http.wire import declare, failure_of, make_space, names, space, table


def test_root_lists_the_callers_catalogs(node: DriverNode) -> None:
    """The first level lists the catalogs of every provider that the caller may use. A user without rights gets an empty
    list.
    """
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    assert names(node.get(f"{space()}/list")) == ["lance", "main"]
    assert names(node.get(f"{space()}/list", user="ana")) == []
    assert node.done("POST", f"{space()}/describe", {}) == {"properties": {}}
    assert node.post(f"{space()}/exists").body == b""


def test_namespaces_nest(node: DriverNode) -> None:
    """A namespace is created below an existing one, listed by its own name, and described with its properties."""
    make_space(node, "lance", "a", owner="me")
    make_space(node, "lance", "a", "b")
    make_space(node, "lance", "a", "b", "c")

    assert names(node.get(f"{space('lance')}/list")) == ["a"]
    assert names(node.get(f"{space('lance', 'a', 'b')}/list")) == ["c"]
    assert node.done("POST", f"{space('lance', 'a')}/describe") == {"properties": {"owner": "me"}}
    assert node.post(f"{space('lance', 'a', 'b', 'c')}/exists").status == 200


def test_create_below_a_missing_parent_returns_404(node: DriverNode) -> None:
    """Creating a namespace below a missing parent is 404 with code 1, and nothing is created."""
    assert failure_of(node.post(f"{space('lance', 'x', 'y')}/create", {})) == (404, 1)
    assert names(node.get(f"{space('lance')}/list")) == []


@pytest.mark.parametrize("mode", ["Create", "create", "", None])
def test_create_refuses_a_taken_name(node: DriverNode, mode: str | None) -> None:
    """By default a name in use is refused with 409 and code 2."""
    make_space(node, "lance", "a")

    assert failure_of(node.post(f"{space('lance', 'a')}/create", {"mode": mode})) == (409, 2)


@pytest.mark.parametrize("mode", ["ExistOk", "exist_ok", "EXISTOK"])
def test_exist_ok_returns_existing_namespace_unchanged(node: DriverNode, mode: str) -> None:
    """In the mode ExistOk, a create of an existing namespace returns it unchanged."""
    make_space(node, "lance", "a", k="old")

    response = node.done("POST", f"{space('lance', 'a')}/create", {"mode": mode, "properties": {"k": "new"}})

    assert response == {"properties": {"k": "old"}}


def test_exist_ok_refuses_the_name_of_an_existing_table(node: DriverNode) -> None:
    """In the mode ExistOk, a create of a namespace with an existing table's name is refused with 409 and code 2."""
    declare(node, "lance", "t")

    assert failure_of(node.post(f"{space('lance', 't')}/create", {"mode": "ExistOk"})) == (409, 2)


def test_overwrite_replaces_the_namespace_with_an_empty_one(node: DriverNode) -> None:
    """In the mode Overwrite, a create drops the existing namespace with its content and creates an empty one."""
    make_space(node, "lance", "a", k="old")
    declare(node, "lance", "a", "t")

    response = node.done("POST", f"{space('lance', 'a')}/create", {"mode": "Overwrite", "properties": {"k": "new"}})

    assert response == {"properties": {"k": "new"}}
    assert names(node.get(f"{space('lance', 'a')}/table/list")) == []
    assert failure_of(node.post(f"{table('lance', 'a', 't')}/exists")) == (404, 4)


def test_overwrite_creates_a_missing_namespace(node: DriverNode) -> None:
    """In the mode Overwrite, a create of a missing namespace creates it."""
    assert node.done("POST", f"{space('lance', 'a')}/create", {"mode": "overwrite"}) == {"properties": {}}


def test_modes_are_checked(node: DriverNode) -> None:
    """An unknown mode or behavior is refused with 400, code 13 and the known ones."""
    make_space(node, "lance", "a")

    for action, body in (("create", {"mode": "sometimes"}), ("drop", {"mode": "x"}), ("drop", {"behavior": "x"})):
        answer = node.post(f"{space('lance', 'a')}/{action}", body)
        assert failure_of(answer) == (400, 13)
        assert "must be one of" in answer.json()["error"]


def test_drop_of_namespace_with_content_needs_cascade(node: DriverNode) -> None:
    """Dropping a namespace with content is refused with 409 and code 3. With Cascade, the namespace and its content are
    dropped to the trash.
    """
    make_space(node, "lance", "a", k="v")
    make_space(node, "lance", "a", "b")
    declare(node, "lance", "a", "b", "t")

    refused = node.post(f"{space('lance', 'a')}/drop")
    dropped = node.done("POST", f"{space('lance', 'a')}/drop", {"behavior": "Cascade"})

    assert failure_of(refused) == (409, 3)
    assert dropped == {"properties": {"k": "v"}}
    trash = node.done("GET", "/api/limnos/v1/metalakes/lake/catalogs/lance/trash")["trash"]
    assert sorted(each["kind"] for each in trash) == ["namespace", "namespace", "table"]


def test_drop_of_missing_namespace_returns_404_unless_skip(node: DriverNode) -> None:
    """Dropping a missing namespace is 404 with code 1, unless the mode is Skip, which returns an empty object."""
    assert failure_of(node.post(f"{space('lance', 'a')}/drop")) == (404, 1)
    assert node.done("POST", f"{space('lance', 'a')}/drop", {"mode": "Skip"}) == {}
    assert failure_of(node.post(f"{space('nowhere')}/describe")) == (404, 1)
    assert failure_of(node.get(f"{space('lance', 'a')}/list")) == (404, 1)
    assert failure_of(node.get(f"{space('lance', 'a')}/table/list")) == (404, 1)


def test_catalog_is_created_and_dropped_as_a_namespace(node: DriverNode) -> None:
    """A namespace of the first level is a catalog for Lance tables; it is dropped when it is empty, or with its
    content.
    """
    make_space(node, "side", comment="mine")
    declare(node, "side", "t")

    catalog = node.done("GET", f"{API}/lake/catalogs/side")["catalog"]
    assert (catalog["provider"], catalog["comment"]) == ("lakehouse-generic", "mine")
    assert failure_of(node.post(f"{space('side')}/drop")) == (409, 3)
    node.done("POST", f"{space('side')}/drop", {"behavior": "cascade"})
    assert failure_of(node.post(f"{space('side')}/exists")) == (404, 1)


def test_root_and_iceberg_catalogs_cannot_be_dropped(node: DriverNode) -> None:
    """The root can be neither created nor dropped, and Iceberg catalogs cannot be dropped over this protocol."""
    assert failure_of(node.post(f"{space()}/create", {})) == (409, 2)
    assert failure_of(node.post(f"{space()}/drop", {})) == (400, 13)
    assert failure_of(node.post(f"{space('main')}/drop", {"behavior": "cascade"})) == (406, 0)
    assert failure_of(node.post(f"{space('lance')}/create", {"mode": "overwrite"})) == (406, 0)


def test_iceberg_namespaces_are_listed_without_tables(node: DriverNode) -> None:
    """Namespaces of Iceberg catalogs are listed and described; their tables are not Lance tables."""
    iceberg.make_space(node, "a", k="v")
    iceberg.make_table(node, "a", "t")

    assert names(node.get(f"{space('main')}/list")) == ["a"]
    assert node.done("POST", f"{space('main', 'a')}/describe")["properties"]["k"] == "v"
    assert names(node.get(f"{space('main', 'a')}/table/list")) == []
    assert failure_of(node.post(f"{table('main', 'a', 't')}/describe", {})) == (404, 4)
    assert (
        "an Iceberg table: open it over Iceberg REST" in node.post(f"{table('main', 'a', 't')}/exists").json()["error"]
    )
    assert failure_of(node.post(f"{table('main', 'a', 'n')}/declare", {})) == (400, 13)


def test_cascade_stops_at_iceberg_tables(node: DriverNode) -> None:
    """A cascade over an Iceberg table is refused, and nothing is dropped."""
    iceberg.make_table(node, "a", "t")
    iceberg.make_space(node, "a", "b")

    assert failure_of(node.post(f"{space('main', 'a')}/drop", {"behavior": "cascade"})) == (409, 3)
    assert names(node.get(f"{space('main', 'a')}/list")) == ["b"]


def test_pages_have_the_requested_size_and_a_token(node: DriverNode) -> None:
    """Pages have the requested size and continue with a token, which the last page lacks. A limit of 0 returns an empty
    page.
    """
    for name in "abcde":
        make_space(node, "lance", name)

    first = node.done("GET", f"{space('lance')}/list?limit=2")
    second = node.done("GET", f"{space('lance')}/list?limit=2&page_token={first['page_token']}")
    third = node.done("GET", f"{space('lance')}/list?limit=2&page_token={second['page_token']}")

    assert [first["namespaces"], second["namespaces"], third] == [["a", "b"], ["c", "d"], {"namespaces": ["e"]}]
    assert node.done("GET", f"{space('lance')}/list?limit=0") == {"namespaces": []}
    root = node.done("GET", f"{space()}/list?limit=1")
    assert (root["namespaces"], "page_token" in root) == (["lance"], True)
    assert node.done("GET", f"{space()}/list?limit=1&page_token={root['page_token']}") == {"namespaces": ["main"]}
    for query in ("limit=-1", "limit=x", "page_token=%21"):
        assert failure_of(node.get(f"{space('lance')}/list?{query}")) == (400, 13)


def test_hidden_objects_are_removed_before_paging(node: DriverNode) -> None:
    """Hidden objects are removed before the list is divided into pages."""
    for name in "abcd":
        make_space(node, "lance", name)
    grant(node, "ana", "use_catalog", kind="CATALOG", on="lance")
    grant(node, "ana", "use_schema", kind="SCHEMA", on="lance.b")
    grant(node, "ana", "use_schema", kind="SCHEMA", on="lance.d")

    first = node.get(f"{space('lance')}/list?limit=1", user="ana").json()
    second = node.get(f"{space('lance')}/list?limit=1&page_token={first['page_token']}", user="ana").json()

    assert (first["namespaces"], second) == (["b"], {"namespaces": ["d"]})


def test_protected_namespace_cannot_be_dropped(node: DriverNode) -> None:
    """A protected namespace cannot be dropped, not even by a cascade from its parent: 409 with code 19."""
    make_space(node, "lance", "a")
    make_space(node, "lance", "a", "b")
    node.done("PUT", "/api/limnos/v1/metalakes/lake/objects/SCHEMA/lance.a:b/protection", {})

    assert failure_of(node.post(f"{space('lance', 'a')}/drop", {"behavior": "cascade"})) == (409, 19)
    assert names(node.get(f"{space('lance', 'a')}/list")) == ["b"]


@pytest.mark.parametrize("what", ["CATALOG/lance", "SCHEMA/lance.a", "TABLE/lance.a.t"])
def test_cascade_over_a_protected_catalog_drops_nothing(node: DriverNode, what: str) -> None:
    """A cascade over a catalog is refused before anything is dropped if the catalog or an object in it is protected,
    because the drop of a catalog is permanent.
    """
    make_space(node, "lance", "a")
    declare(node, "lance", "a", "t")
    declare(node, "lance", "other")
    node.done("PUT", f"/api/limnos/v1/metalakes/lake/objects/{what}/protection", {})

    answer = node.post(f"{space('lance')}/drop", {"behavior": "Cascade"})

    assert failure_of(answer) == (409, 19)
    assert node.post(f"{table('lance', 'a', 't')}/exists").status == 200
    assert node.post(f"{table('lance', 'other')}/exists").status == 200


def test_refusal_of_a_tables_name_names_the_table(node: DriverNode) -> None:
    """A namespace with a table's name is refused, and the message names the table."""
    declare(node, "lance", "t")

    for _ in range(2):  # before and after the name is cached
        answer = node.post(f"{space('lance', 't')}/create", {})
        assert failure_of(answer) == (409, 2)
        assert "Table already exists: lance.t" in answer.json()["detail"]


def test_cascade_without_drop_privilege_on_catalog_drops_nothing(node: DriverNode) -> None:
    """A cascade by a user who may not drop the catalog is refused before anything is dropped."""
    make_space(node, "lance", "a")
    declare(node, "lance", "a", "t")
    grant(node, "ana", "use_catalog use_schema create_schema create_table modify_table", kind="CATALOG", on="lance")

    answer = node.post(f"{space('lance')}/drop", {"behavior": "Cascade"}, user="ana")

    assert answer.status == 403, answer.body
    assert node.post(f"{table('lance', 'a', 't')}/exists").status == 200
