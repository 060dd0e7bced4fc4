# SPDX-License-Identifier: Apache-2.0
"""Dropping users, groups and roles lifts no restriction, and no denial without the right to lift it."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.test_restrictions import LAKE, of, restrict
from tests.http.iceberg.wire import ROOT, make_space, make_table, table_path

pytestmark = pytest.mark.slow

READ = "use_catalog use_schema select_table"


def assign(node: DriverNode, principal: str, role: str) -> None:
    """Grant a role to a user or group, given as `users/bob`."""
    node.done("PUT", f"{API}/lake/permissions/{principal}/grant", {"roleNames": [role]})


def denying_role(node: DriverNode, name: str, *, user: str = "admin") -> None:
    """Create a role that denies reading the table."""
    rules = [{"name": "select_table", "condition": "deny"}]
    objects = [{"fullName": "main.a.t", "type": "TABLE", "privileges": rules}]
    node.done("POST", f"{API}/lake/roles", {"name": name, "properties": {}, "securableObjects": objects}, user=user)


@pytest.fixture
def shop(lake: DriverNode) -> DriverNode:
    """A node with a table, its reader bob in group staff, and a manager mia of users and groups."""
    make_space(lake, "a")
    make_table(lake, "a", "t")
    grant(lake, "bob", READ, kind="CATALOG", on="main")
    lake.done("POST", f"{API}/lake/groups", {"name": "staff"})
    lake.done("POST", f"{LAKE}/groups/staff/members", {"users": ["bob"]})
    grant(lake, "mia", "manage_users manage_groups", kind="METALAKE", on="lake")
    return lake


def status_of(answer: DriverAnswer) -> tuple[int, bool]:
    """Return the status of a drop, and whether its message names the table."""
    return answer.status, b"eu of table main.a.t" in answer.body


@pytest.mark.parametrize("principal", ["users/bob", "groups/staff", "roles/r"])
@pytest.mark.parametrize("user", ["admin", "mia"])
def test_principals_that_a_restriction_names_are_not_dropped(shop: DriverNode, principal: str, user: str) -> None:
    """Nobody drops a user, group or role that a restriction applies to. Only users who may change the restriction
    learn its object. After its removal the drop succeeds.
    """
    kind, name = principal.split("/")
    if kind == "roles":
        grant_only = {"name": "r", "properties": {}, "securableObjects": []}
        shop.done("POST", f"{API}/lake/roles", grant_only)
        assign(shop, "users/bob", "r")
        shop.done("PUT", f"{API}/lake/owners/ROLE/r", {"name": user, "type": "USER"})
    assert restrict(shop, filter="id > 5", to={kind: [name]}).status == 200

    refused = shop.delete(f"{API}/lake/{principal}", user=user)

    assert status_of(refused) == (409, user == "admin")
    assert "read-restrictions" in shop.get(table_path("a", "t"), user="bob").json()
    shop.done("DELETE", of("eu"))
    assert shop.delete(f"{API}/lake/{principal}", user=user).status == 200


def test_manager_of_groups_lifts_no_denial_by_dropping_a_group(shop: DriverNode) -> None:
    """A group with a denying role, and its members, are dropped only with the right to grant on the metalake."""
    denying_role(shop, "never")
    assign(shop, "groups/staff", "never")

    refused = [shop.delete(f"{API}/lake/{each}", user="mia") for each in ("groups/staff", "users/bob")]

    assert [each.status for each in refused] == [403, 403]
    assert all("MANAGE_GRANTS" in each.json()["message"] for each in refused)
    assert shop.get(table_path("a", "t"), user="bob").status == 403
    assert [shop.delete(f"{API}/lake/{each}").status for each in ("users/bob", "groups/staff")] == [200, 200]


def test_restriction_of_a_role_binds_through_a_group(shop: DriverNode) -> None:
    """A group that holds a role which a restriction names is not dropped by its manager alone."""
    shop.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})
    assign(shop, "groups/staff", "r")
    assert restrict(shop, filter="id > 5", to={"roles": ["r"]}).status == 200

    assert shop.delete(f"{API}/lake/groups/staff", user="mia").status == 403
    assert shop.delete(f"{API}/lake/groups/staff").status == 200


def test_owner_of_a_role_drops_it_only_without_denials(shop: DriverNode) -> None:
    """A role's owner may not drop it with a denial on an object of others; without the denial they may."""
    denying_role(shop, "never")
    assign(shop, "users/bob", "never")
    shop.done("PUT", f"{API}/lake/owners/ROLE/never", {"name": "mia", "type": "USER"})

    assert shop.delete(f"{API}/lake/roles/never", user="mia").status == 403
    assert shop.get(table_path("a", "t"), user="bob").status == 403

    rules = [{"name": "select_table", "condition": "deny"}]
    shop.done("PUT", f"{API}/lake/permissions/roles/never/TABLE/main.a.t/revoke", {"privileges": rules})

    assert shop.delete(f"{API}/lake/roles/never", user="mia").status == 200


def test_principals_of_dropped_objects_can_be_dropped(shop: DriverNode) -> None:
    """A restriction of a table in the trash still names its group; after the table left the trash it does not."""
    assert restrict(shop, filter="id > 5", to={"groups": ["staff"]}).status == 200
    assert shop.delete(table_path("a", "t")).status == 204

    assert shop.delete(f"{API}/lake/groups/staff").status == 409


def test_restriction_of_a_restored_table_is_named_once(shop: DriverNode) -> None:
    """The refusal to drop a group names the restriction of a dropped and restored table once, with its command."""
    assert restrict(shop, filter="id > 5", to={"groups": ["staff"]}).status == 200
    assert shop.delete(table_path("a", "t")).status == 204
    trash = f"{LAKE}/catalogs/main/trash"
    shop.done("POST", f"{trash}/{shop.done('GET', trash)['trash'][0]['id']}/undrop", {})

    message = shop.delete(f"{API}/lake/groups/staff").json()["message"]

    assert message.count("eu of table main.a.t ('limnos delete restriction eu main.a.t --kind table')") == 1
    assert "remembers" not in message


def test_principal_of_a_free_name_is_named_with_the_name(shop: DriverNode) -> None:
    """A name that a table left for another namespace remembers its restriction, and the refusal says which name it is.
    The name in the same namespace forgets it with the restriction of the table.
    """
    make_space(shop, "b")
    assert restrict(shop, filter="id > 5", to={"groups": ["staff"]}).status == 200
    for source, target in ((["a", "t"], ["a", "u"]), (["a", "u"], ["a", "t"])):
        ends = {
            key: {"namespace": path[:-1], "name": path[-1]}
            for key, path in (("source", source), ("destination", target))
        }
        assert shop.ask("POST", f"{ROOT}/tables/rename", ends).status == 204
    refused = shop.delete(f"{API}/lake/groups/staff")

    assert refused.status == 409
    assert "eu, which the free name main.a.u remembers" in refused.json()["message"]
    shop.done("DELETE", of("eu"))
    assert shop.delete(f"{API}/lake/groups/staff").status == 200


def test_name_in_another_namespace_keeps_its_restriction(shop: DriverNode) -> None:
    """Who removes the restriction where the table is now lifts nothing from the name that it left elsewhere."""
    make_space(shop, "b")
    assert restrict(shop, filter="id > 5", to={"groups": ["staff"]}).status == 200
    ends = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["b"], "name": "t"}}
    assert shop.ask("POST", f"{ROOT}/tables/rename", ends).status == 204

    shop.done("DELETE", of("eu", on="main.b.t"))
    refused = shop.delete(f"{API}/lake/groups/staff")
    assert refused.status == 409
    assert "create a table of that name, 'limnos delete restriction eu main.a.t'" in refused.json()["message"]
    make_table(shop, "a", "t")
    shop.done("DELETE", of("eu"))
    assert shop.ask("DELETE", table_path("a", "t")).status == 204
    assert shop.delete(f"{API}/lake/groups/staff").status == 200


def test_own_api_and_the_trash_of_principals_agree(shop: DriverNode) -> None:
    """A refusal leaves members and roles of the group unchanged."""
    assert restrict(shop, filter="id > 5", to={"groups": ["staff"]}).status == 200
    shop.delete(f"{API}/lake/groups/staff")

    assert shop.done("GET", f"{OWN}/metalakes/lake/groups/staff/members") == {"members": ["bob"]}
