# SPDX-License-Identifier: Apache-2.0
"""Owners: a metalake, catalog or namespace never loses its last owner, and nobody becomes an owner without consent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Database
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import make_space, node_over

LAKE = f"{API}/lake"
PEOPLE = f"{OWN}/metalakes/lake"


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """A node on either database with a namespace `a`, a group `crew` without members, and users `ana`, `ben`, `gm`.

    `gm` manages groups, `ana` owns the namespace.
    """
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as node:
        make_space(node, "a")
        node.done("POST", f"{LAKE}/groups", {"name": "crew"})
        for user in ("ana", "ben"):
            grant(node, user, "use_catalog", kind="CATALOG", on="main")
        grant(node, "gm", "manage_groups", kind="METALAKE", on="lake")
        own(node, "schema/main.a", "ana")
        yield node


def own(node: DriverNode, what: str, owner: str, *, kind: str = "USER", user: str = "admin") -> DriverAnswer:
    """Set the owner of an object."""
    return node.put(f"{LAKE}/owners/{what}", {"name": owner, "type": kind}, user=user)


def owner_of(node: DriverNode, what: str) -> str:
    """Return the owner of an object."""
    return str(node.get(f"{LAKE}/owners/{what}").json()["owner"]["name"])


def join(node: DriverNode, *users: str) -> None:
    """Add users to the group."""
    node.done("POST", f"{PEOPLE}/groups/crew/members", {"users": list(users)})


def test_metalake_is_not_given_to_a_group_without_an_enabled_member(lake: DriverNode) -> None:
    """A group owns a metalake only with a member who is enabled."""
    assert own(lake, "metalake/lake", "crew", kind="GROUP").status == 400
    join(lake, "ana")
    assert lake.patch(f"{PEOPLE}/users/ana", {"enabled": False}).status == 200
    assert own(lake, "metalake/lake", "crew", kind="GROUP").status == 400
    assert owner_of(lake, "metalake/lake") == "admin"
    join(lake, "ben")

    assert own(lake, "metalake/lake", "crew", kind="GROUP").status == 200


@pytest.mark.parametrize("change", ["leave", "drop", "disable"])
def test_group_that_owns_the_metalake_keeps_an_enabled_member(lake: DriverNode, change: str) -> None:
    """The last enabled member of the group that owns the metalake does not leave it, and is not removed or disabled."""
    join(lake, "admin", "ben")
    assert own(lake, "metalake/lake", "crew", kind="GROUP").status == 200
    assert lake.delete(f"{PEOPLE}/groups/crew/members/admin").status == 200

    answer = {
        "leave": lambda: lake.delete(f"{PEOPLE}/groups/crew/members/ben", user="ben"),
        "drop": lambda: lake.delete(f"{LAKE}/users/ben", user="ben"),
        "disable": lambda: lake.patch(f"{PEOPLE}/users/ben", {"enabled": False}, user="ben"),
    }[change]()
    assert (answer.status, "give the metalake another owner" in str(answer.body)) == (400, True), answer.body
    assert lake.get(f"{LAKE}/users", user="ben").status == 200


@pytest.mark.parametrize("what", ["schema/main.a", "catalog/main"])
@pytest.mark.parametrize("kind", ["USER", "GROUP"])
def test_owner_of_a_container_is_not_removed(lake: DriverNode, what: str, kind: str) -> None:
    """A user or group that owns a catalog or namespace is not removed. The refusal names the objects only to users who
    may grant on everything.
    """
    name = "ben" if kind == "USER" else "crew"
    grant(lake, "gm", "manage_users", kind="METALAKE", on="lake")
    assert own(lake, what, name, kind=kind).status == 200
    address = f"{LAKE}/{kind.lower()}s/{name}"

    answers = [lake.delete(address, user=user) for user in ("gm", "admin")]
    assert [answer.status for answer in answers] == [409, 409]
    assert ["owns catalogs or schemas" in str(each.body) for each in answers] == [True, False]
    assert what.split("/", maxsplit=1)[0].replace("schema", "namespace") in str(answers[1].body)
    assert owner_of(lake, what) == name
    assert own(lake, what, "admin").status == 200
    assert lake.delete(address, user="gm").status == 200


def test_service_admin_gives_a_metalake_another_owner(lake: DriverNode) -> None:
    """A service admin who neither owns nor uses a metalake gives it another owner, also a disabled one, and the audit
    says by which right. Nobody else does, and a service admin sets no other owner there.
    """
    assert own(lake, "metalake/lake", "ben").status == 200
    for catalog in ("main", "lance"):
        assert own(lake, f"catalog/{catalog}", "ben", user="ben").status == 200
    assert lake.delete(f"{LAKE}/users/admin", user="ben").status == 200
    assert own(lake, "metalake/lake", "ana", user="ana").status == 403
    assert own(lake, "catalog/main", "ana").status == 403
    assert lake.patch(LAKE, {"inUse": False}, user="ben").status == 200

    assert own(lake, "metalake/lake", "ana").status == 200
    assert lake.patch(LAKE, {"inUse": True}, user="ana").status == 200
    lines = lake.get(f"{OWN}/audit?metalake=lake&action=own").json()["lines"]
    assert any("metalake_take" in str(line) for line in lines), lines


def test_owner_gives_objects_to_oneself_and_own_groups_only(lake: DriverNode) -> None:
    """An owner does not make another user or a foreign group the owner; a group of both hands the object over. Users
    who manage the recipient may do it.
    """
    assert own(lake, "schema/main.a", "ben", user="ana").status == 403
    assert own(lake, "schema/main.a", "crew", kind="GROUP", user="ana").status == 403
    assert owner_of(lake, "schema/main.a") == "ana"
    join(lake, "ana", "ben")
    assert own(lake, "schema/main.a", "ben", user="ben").status == 403
    assert own(lake, "schema/main.a", "crew", kind="GROUP", user="ana").status == 200
    assert own(lake, "schema/main.a", "ben", user="ben").status == 200
    assert own(lake, "schema/main.a", "ana", user="ben").status == 403
    grant(lake, "ben", "manage_users", kind="METALAKE", on="lake")

    assert own(lake, "schema/main.a", "ana", user="ben").status == 200
    assert owner_of(lake, "schema/main.a") == "ana"
