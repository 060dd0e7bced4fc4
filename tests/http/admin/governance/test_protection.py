# SPDX-License-Identifier: Apache-2.0
"""Protection of objects: over every protocol, for the object alone or everything below it, also against forced drops,
until a user with more rights ends it.
"""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import (
    ROOT,
    SPACES,
    commit,
    make_table,
    make_view,
    set_properties,
    space_path,
    table_path,
    view_path,
)

LAKE = f"{OWN}/metalakes/lake"


def of(kind: str, name: str) -> str:
    """Return the URL of an object's protection."""
    return f"{LAKE}/objects/{kind}/{name}/protection"


def furnish(node: DriverNode) -> None:
    """Create a table, a view and a metadata file."""
    make_table(node, "a", "t")
    make_view(node, "a", "v")
    make_table(node, "a", "x")


def words(answer: DriverAnswer) -> str:
    """Return the message of an error in any protocol's form."""
    body = answer.json()
    return str(body.get("message") or body["error"]["message"])


def transaction(node: DriverNode, *path: str) -> DriverAnswer:
    """Drop a table in a transaction."""
    body = {"operations": [{"do": "drop-table", "path": list(path)}]}
    return node.post(f"{LAKE}/catalogs/main/transactions", body)


@pytest.mark.parametrize("at,below", [("TABLE/main.a.t", False), ("SCHEMA/main.a", True), ("CATALOG/main", True)])
def test_drop_of_a_protected_table_is_409_over_every_protocol(node: DriverNode, at: str, below: bool) -> None:
    """A drop, purge, unregister, transaction, overwrite and forced drop are refused with 409. The message names the
    command that removes the protection.
    """
    furnish(node)
    location = node.post(f"{table_path('a', 'x')}/unregister").json()["metadata-location"]
    node.done("PUT", of(*at.split("/")), {"below": below})
    answers = [
        node.delete(table_path("a", "t")),
        node.delete(f"{table_path('a', 't')}?purgeRequested=true"),
        node.post(f"{table_path('a', 't')}/unregister"),
        transaction(node, "a", "t"),
        node.post(f"{space_path('a')}/register", {"name": "t", "metadata-location": location, "overwrite": True}),
        node.delete(f"{API}/lake/catalogs/main?force=true"),
        node.delete(f"{API}/lake?force=true"),
    ]

    assert [answer.status for answer in answers] == [409] * 7, [answer.body for answer in answers]
    path = at.partition("/")[2]
    assert all(f"'limnos unprotect {path}'" in words(answer) for answer in answers)
    assert commit(node, "a", "t", updates=[set_properties(k="v")]).status == 200
    assert node.done("DELETE", of(*at.split("/"))) == {"removed": True}
    assert node.delete(table_path("a", "t")).status == 204


def test_namespaces_and_views_can_be_protected(node: DriverNode) -> None:
    """Namespaces and views can be protected, also against drops over the Gravitino API. Objects below a protected
    namespace are not protected by default.
    """
    furnish(node)
    node.done("POST", SPACES, {"namespace": ["empty"]})
    node.done("PUT", of("SCHEMA", "main.empty"))
    node.done("PUT", of("VIEW", "main.a.v"))
    node.done("PUT", of("SCHEMA", "main.a"))
    answers = [
        node.delete(f"{SPACES}/empty"),
        node.delete(f"{API}/lake/catalogs/main/schemas/empty"),
        node.delete(view_path("a", "v")),
    ]

    assert [answer.status for answer in answers] == [409] * 3, [answer.body for answer in answers]
    assert node.delete(table_path("a", "t")).status == 204


def test_nearest_protection_of_an_object_is_returned(node: DriverNode) -> None:
    """An object shows its nearest protection. A second, narrower request does not narrow it. Tags cannot be
    protected.
    """
    furnish(node)
    node.done("POST", f"{API}/lake/tags", {"name": "red"})
    before = node.get(of("TABLE", "main.a.t")).json()
    node.done("PUT", of("SCHEMA", "main.a"), {"below": True})
    node.done("PUT", of("SCHEMA", "main.a"), {"below": False})
    protection = node.get(of("TABLE", "main.a.t")).json()

    assert before == {"protected": False}
    assert (protection["protected"], protection["by"], protection["below"], protection["set_by"]) == (
        True,
        {"kind": "namespace", "name": "main.a"},
        True,
        "admin",
    )
    assert node.put(of("TAG", "red")).status == 400
    assert node.done("DELETE", of("TABLE", "main.a.t")) == {"removed": False}


def test_table_owner_may_protect_but_not_unprotect(node: DriverNode) -> None:
    """A table's owner may protect it but not end the protection; the namespace's owner may."""
    furnish(node)
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "bob", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    node.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "ana", "type": "USER"})
    node.done("PUT", f"{API}/lake/owners/SCHEMA/main.a", {"name": "bob", "type": "USER"})
    answers = [
        node.put(of("TABLE", "main.a.x"), user="ana"),
        node.put(of("TABLE", "main.a.t"), user="ana"),
        node.delete(of("TABLE", "main.a.t"), user="ana"),
        node.delete(of("SCHEMA", "main.a"), user="bob"),
        node.delete(of("TABLE", "main.a.t"), user="bob"),
    ]

    assert [answer.status for answer in answers] == [403, 200, 403, 403, 200], [answer.body for answer in answers]


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "SCHEMA"])
def test_owner_cannot_escape_protection_by_moving(node: DriverNode, kind: str) -> None:
    """The owner of a protected object cannot move it into a namespace of their own and remove the protection there."""
    make_table(node, "a", "t")
    make_view(node, "a", "v")
    node.done("POST", SPACES, {"namespace": ["a", "s"]})
    name, word = {"TABLE": ("t", "table"), "VIEW": ("v", "view"), "SCHEMA": ("s", "namespace")}[kind]
    between = ":" if kind == "SCHEMA" else "."
    at = f"main.a{between}{name}"
    grant(node, "ana", "use_catalog use_schema create_schema", kind="CATALOG", on="main")
    node.done("PUT", f"{API}/lake/owners/{kind}/{at}", {"name": "ana", "type": "USER"})
    assert node.post(SPACES, {"namespace": ["mine"]}, user="ana").status == 200
    node.done("PUT", of(kind, at))
    transactions = f"{LAKE}/catalogs/main/transactions"

    def move(user: str, *target: str) -> DriverAnswer:
        step = {"do": f"move-{word}", "source": ["a", name], "target": list(target)}
        return node.post(transactions, {"operations": [step]}, user=user)

    ends = {"source": {"namespace": ["a"], "name": name}, "destination": {"namespace": ["mine"], "name": name}}
    refused = [move("ana", "mine", name)]
    if kind != "SCHEMA":
        refused.append(node.post(f"{ROOT}/{word}s/rename", ends, user="ana"))

    assert {answer.status for answer in refused} == {409}
    assert all(f"limnos unprotect main.a.{name}" in words(answer) for answer in refused)
    assert node.delete(of(kind, at), user="ana").status == 403
    assert move("ana", "a", "renamed").status == 200
    assert (
        node.post(
            transactions, {"operations": [{"do": f"move-{word}", "source": ["a", "renamed"], "target": ["mine", name]}]}
        ).status
        == 200
    )
    assert node.done("GET", of(kind, f"main.mine{between}{name}"))["protected"] is True
