# SPDX-License-Identifier: Apache-2.0
"""Moves of namespaces, tables and views."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import make_table, make_view, view_path

MOVE = f"{OWN}/metalakes/lake/catalogs/main/move"
SCHEMAS = f"{API}/lake/catalogs/main/schemas"
FIELDS = [{"id": 1, "name": "x", "type": "int", "required": False}]
TABLE = {"name": "t", "schema": {"type": "struct", "schema-id": 0, "fields": FIELDS}}


def body(source: str, target: str, kind: str = "namespace") -> dict[str, object]:
    """Return the body of a move; names are separated by dots."""
    return {"kind": kind, "source": source.split("."), "target": target.split(".")}


def test_namespace_moves_with_its_subtree(node: DriverNode) -> None:
    """A moved namespace has its children and its owner under the new name, and nothing under the old one."""
    node.done("POST", SCHEMAS, {"name": "a:b:c"})
    node.done("POST", SCHEMAS, {"name": "x"})

    moved = node.done("POST", MOVE, body("a.b", "x.y"))

    statuses = [node.get(f"{SCHEMAS}/{name}").status for name in ("x%3Ay%3Ac", "a%3Ab", "a%3Ab%3Ac", "a")]
    assert moved == {"kind": "namespace", "path": ["main", "x", "y"]}
    assert statuses == [200, 404, 404, 200]


def test_table_moves(node: DriverNode) -> None:
    """A moved table is loaded under the new name, with the same metadata."""
    node.done("POST", SCHEMAS, {"name": "a:b"})
    tables = "/iceberg/v1/lake.main/namespaces/a/tables"
    table_uuid = node.done("POST", tables, TABLE)["metadata"]["table-uuid"]

    moved = node.done("POST", MOVE, body("a.t", "a.b.u", kind="table"))

    loaded_table = node.done("GET", "/iceberg/v1/lake.main/namespaces/a%1Fb/tables/u")
    assert moved == {"kind": "table", "path": ["main", "a", "b", "u"]}
    assert loaded_table["metadata"]["table-uuid"] == table_uuid
    assert node.get(f"{tables}/t").status == 404


def test_view_moves(node: DriverNode) -> None:
    """A moved view is loaded under its new name with the same metadata; a table cannot be moved as a view."""
    view_metadata = make_view(node, "a", "v")["metadata"]
    make_table(node, "a", "t")

    moved = node.done("POST", MOVE, body("a.v", "a.w", kind="view"))
    wrong = [
        node.post(MOVE, body(source, "a.x", kind=kind)).status for source, kind in (("a.t", "view"), ("a.w", "table"))
    ]

    assert moved == {"kind": "view", "path": ["main", "a", "w"]}
    assert node.done("GET", view_path("a", "w"))["metadata"] == view_metadata
    assert node.get(view_path("a", "v")).status == 404
    assert wrong == [404, 404]


@pytest.mark.parametrize(
    "move, status, code",
    [
        (body("none", "x"), 404, "not-found"),
        (body("a", "none.x"), 404, "not-found"),
        (body("a", "c"), 409, "already-exists"),
        (body("a", "a.b.c"), 400, "bad-request"),
        (body("a", "d:e"), 400, "illegal-name"),
        ({"kind": "namespace", "source": [], "target": ["x"]}, 400, "illegal-name"),
        ({"kind": "namespace", "source": ["a"], "target": [""]}, 400, "illegal-name"),
        ({"kind": "catalog", "source": ["a"], "target": ["x"]}, 400, "bad-request"),
        (body("a", "x", kind="table"), 400, "bad-request"),
        (body("a.none", "a.x", kind="table"), 404, "not-found"),
    ],
    ids=str,
)
def test_bad_moves_change_nothing(node: DriverNode, move: dict[str, object], status: int, code: str) -> None:
    """Each invalid move has its status and code, and changes nothing."""
    for name in ("a:b", "c"):
        node.done("POST", SCHEMAS, {"name": name})

    answer = node.post(MOVE, move)

    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
    assert [each["name"] for each in node.get(SCHEMAS).json()["identifiers"]] == ["a", "c"]


def test_move_needs_ownership_and_create_at_the_target(node: DriverNode) -> None:
    """Privileges on a namespace are not enough to move it. Its owner may rename it, and move it where they may create
    namespaces.
    """
    for name in ("a", "c"):
        node.done("POST", SCHEMAS, {"name": name})
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    for name in ("a", "c"):
        grant(node, "ana", "use_schema", kind="schema", on=f"main.{name}")
    assert node.get(f"{SCHEMAS}/a", user="ana").status == 200
    user = node.post(MOVE, body("a", "b"), user="ana")

    node.done("PUT", f"{API}/lake/owners/schema/main.a", {"name": "ana", "type": "USER"})
    renamed = node.post(MOVE, body("a", "b"), user="ana")
    elsewhere = node.post(MOVE, body("b", "c.b"), user="ana")
    grant(node, "ana", "create_schema", kind="schema", on="main.c")
    allowed = node.post(MOVE, body("b", "c.b"), user="ana")

    assert [answer.status for answer in (user, renamed, elsewhere, allowed)] == [403, 200, 403, 200]


def test_grants_are_retained_by_a_move(node: DriverNode) -> None:
    """A grant on a namespace applies under its new name from the next request on."""
    node.done("POST", SCHEMAS, {"name": "a"})
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema", kind="schema", on="main.a")

    node.done("POST", MOVE, body("a", "b"))

    assert node.get(f"{SCHEMAS}/b", user="ana").status == 200
