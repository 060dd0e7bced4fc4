# SPDX-License-Identifier: Apache-2.0
"""Views of a connector catalog of another Iceberg catalog, over Gravitino REST: a real server behind a socket, under
this server's rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.http.driver import API, DriverAnswer
from tests.http.iceberg.federated import MAIN, FarCatalog, far_at, new_table, table
from tests.http.iceberg.test_federated import VIEW

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]
VIEWS = f"{API}/lake/catalogs/far/schemas/sales/views"
TEXT = {
    "columns": [{"name": "x", "type": "long", "nullable": True}],
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1 AS x"}],
    "defaultCatalog": "far",
    "defaultSchema": "sales",
}


@pytest.fixture
def far(fresh: Callable[[str], Path]) -> Iterator[FarCatalog]:
    """Two nodes; the first has a catalog of the second one."""
    with far_at(fresh("near"), fresh("away")) as pair:
        yield pair


def _new(name: str, **more: object) -> dict[str, object]:
    return {"name": name, **TEXT, **more}


def _changed(far: FarCatalog, name: str, *updates: dict[str, object], user: str = "admin") -> DriverAnswer:
    return far.node.put(f"{VIEWS}/{name}", {"updates": list(updates)}, user=user)


def test_view_lifecycle(far: FarCatalog) -> None:
    """Views of the source can be created, listed, changed, renamed and dropped in Gravitino's format. Iceberg REST
    returns the same state.
    """
    created = far.node.done("POST", VIEWS, _new("v", comment="one", properties={"a": "1"}))["view"]

    view = far.node.done("GET", f"{VIEWS}/v")["view"]
    assert view == created
    assert (view["comment"], view["properties"], view["defaultCatalog"], view["defaultSchema"]) == (
        "one",
        {"a": "1"},
        "far",
        "sales",
    )
    assert view["representations"] == TEXT["representations"]
    assert [(each["name"], each["type"]) for each in view["columns"]] == [("x", "long")]
    assert view["audit"]["creator"] == "admin"
    at = table("sales", "v", root=MAIN, kind="views")
    assert far.source("GET", at).json()["metadata"]["properties"] == {"a": "1", "comment": "one"}
    text = {
        "@type": "replaceView",
        **TEXT,
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 2 AS x"}],
    }
    view = _changed(far, "v", text, {"@type": "setProperty", "property": "b", "value": "2"}).json()["view"]
    assert (view["representations"][0]["sql"], view["properties"], view.get("comment")) == (
        "SELECT 2 AS x",
        {"a": "1", "b": "2"},
        None,
    )
    assert _changed(far, "v", {"@type": "rename", "newName": "w"}).json()["view"]["name"] == "w"
    assert [each["name"] for each in far.node.done("GET", VIEWS)["identifiers"]] == ["w"]
    assert far.names("sales", what="views") == ["w"]
    assert far.node.done("DELETE", f"{VIEWS}/w")["dropped"] is True
    assert far.node.done("DELETE", f"{VIEWS}/w")["dropped"] is False
    assert far.source("GET", table("sales", "w", root=MAIN, kind="views")).status_code == 404


def test_invalid_requests_return_expected_exceptions(far: FarCatalog) -> None:
    """A name in use, a missing view or schema, and an invalid view are refused with the exceptions that clients
    expect.
    """
    far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table("t"))
    far.node.done("POST", VIEWS, _new("v"))

    answers = [
        far.node.post(VIEWS, _new("v")),
        far.node.post(VIEWS, _new("t")),
        far.node.get(f"{VIEWS}/gone"),
        far.node.get(f"{VIEWS}/t"),
        _changed(far, "gone", {"@type": "setProperty", "property": "a", "value": "1"}),
        far.node.post(VIEWS.replace("sales", "none"), _new("v")),
        far.node.get(VIEWS.replace("sales", "none")),
        _changed(far, "v", {"@type": "rename", "newName": "t"}),
        far.node.post(VIEWS, _new("w", columns=[{"name": "x", "type": "strange"}])),
        _changed(
            far, "v", {"@type": "rename", "newName": "w"}, {"@type": "setProperty", "property": "a", "value": "1"}
        ),
    ]

    assert [(each.status, each["code"]) for each in answers] == [
        (409, 1004),
        (409, 1004),
        (404, 1003),
        (404, 1003),
        (404, 1003),
        (404, 1003),
        (404, 1003),
        (409, 1004),
        (400, 1001),
        (400, 1001),
    ]
    far.bridge.cut()
    assert [each["code"] for each in (far.node.get(VIEWS), far.node.get(f"{VIEWS}/v"))] == [1007] * 2


GRANTS = {
    "uses": "use_catalog use_schema",
    "viewer": "use_catalog use_schema select_view",
    "drafter": "use_catalog use_schema create_view",
    "tabler": "use_catalog use_schema select_table",
    "visitor": "use_catalog",
    "keeper": "",
}
"""Each caller's privileges on the catalog. `keeper` owns the catalog."""
NEEDED = {
    "list": {"uses", "viewer", "drafter", "tabler", "keeper"},
    "load": {"viewer", "keeper"},
    "create": {"drafter", "keeper"},
    "alter": {"keeper"},
    "rename": {"keeper"},
    "drop": {"keeper"},
}
"""The callers who may send each request. All others are refused with 403."""


def test_view_operations_need_the_same_rights_as_iceberg_rest(far: FarCatalog) -> None:
    """Each operation needs the same right as over Iceberg REST; a list has the views that its reader may load."""
    for user, privileges in GRANTS.items():
        far.node.done("POST", f"{API}/lake/users", {"name": user})
        if privileges:
            far.use(user, privileges)
        for verb in ("load", "alter", "rename", "drop"):
            far.made("POST", f"{MAIN}/namespaces/sales/views", {"name": f"{verb}_{user}", **VIEW})
    far.node.done("PUT", f"{API}/lake/owners/catalog/far", {"name": "keeper", "type": "USER"})
    allowed_users: dict[str, set[str]] = {verb: set() for verb in NEEDED}
    for user in GRANTS:
        prop = {"@type": "setProperty", "property": "a", "value": "1"}
        answers = {
            "list": far.node.get(VIEWS, user=user),
            "load": far.node.get(f"{VIEWS}/load_{user}", user=user),
            "create": far.node.post(VIEWS, _new(f"new_{user}"), user=user),
            "alter": _changed(far, f"alter_{user}", prop, user=user),
            "rename": _changed(far, f"rename_{user}", {"@type": "rename", "newName": f"renamed_{user}"}, user=user),
            "drop": far.node.delete(f"{VIEWS}/drop_{user}", user=user),
        }
        assert {each.status for each in answers.values()} <= {200, 403}, user
        for verb, answer in answers.items():
            allowed_users[verb] |= {user} if answer.status == 200 else set()
        seen = [each["name"] for each in answers["list"].json().get("identifiers", [])]
        assert bool(seen) is (user in NEEDED["load"]), user

    assert allowed_users == NEEDED
    assert far.node.get(f"{VIEWS}/gone", user="tabler").status == 404, (
        "who works with tables learns that a name is free"
    )
    assert far.node.get(f"{VIEWS}/gone", user="uses").status == 403


def test_creator_owns_view_and_grants_follow_renames(far: FarCatalog) -> None:
    """The creator of a view may alter and drop it. Grants follow a rename of the view and end with its drop."""
    far.use("ann", "use_catalog use_schema create_view")
    far.use("bea", "use_catalog use_schema")
    far.node.done("POST", VIEWS, _new("v"), user="ann")
    far.use("bea", "select_view", on="far.sales.v", kind="VIEW")

    assert _changed(far, "v", {"@type": "rename", "newName": "w"}, user="ann").status == 200

    assert [far.node.get(f"{VIEWS}/{name}", user="bea").status for name in ("v", "w")] == [403, 200]
    assert far.node.delete(f"{VIEWS}/w", user="bea").status == 403
    assert far.node.delete(f"{VIEWS}/w", user="ann").status == 200
    far.node.done("POST", VIEWS, _new("w"), user="ann")
    assert far.node.get(f"{VIEWS}/w", user="bea").status == 403


def test_select_view_without_use_schema_is_refused(far: FarCatalog) -> None:
    """SELECT_VIEW without USE_SCHEMA is not enough, as in native catalogs."""
    far.node.done("POST", VIEWS, _new("v"))
    far.use("ana", "use_catalog select_view")

    assert far.node.get(f"{VIEWS}/v", user="ana").status == 403
