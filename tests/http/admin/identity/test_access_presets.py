# SPDX-License-Identifier: Apache-2.0
"""Presets over the admin API: one request gives a user, group or role all that an object needs, and takes it back."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import SCHEMA

pytestmark = pytest.mark.slow

ACCESS = f"{OWN}/metalakes/lake/access"
PRESETS = f"{ACCESS}/presets"
TABLE: dict[str, object] = {"kind": "table", "path": ["main", "raw", "t"]}
READER = {"change": "grant", "preset": "reader", **TABLE}
WAY = ["USE_SCHEMA on main.raw", "USE_CATALOG on main"]


@pytest.fixture(name="lake")
def make_lake(node: DriverNode) -> DriverNode:
    """Return a node with two tables in main.raw, a table in main.other, and the users ana and ben."""
    for space in ("raw", "other"):
        node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": space})
        node.done("POST", f"/iceberg/v1/lake.main/namespaces/{space}/tables", {"name": "t", "schema": SCHEMA})
    node.done("POST", "/iceberg/v1/lake.main/namespaces/raw/tables", {"name": "u", "schema": SCHEMA})
    for user in ("ana", "ben"):
        node.done("POST", f"{API}/lake/users", {"name": user})
    return node


def words(answer: dict[str, list[dict[str, dict[str, str]]]], name: str = "changed") -> list[str]:
    """Return the grants of an answer as text."""
    return [f"{each['privilege']} on {each['object']['name']}" for each in answer[name]]


def may(node: DriverNode, action: str, path: list[str], user: str = "ana") -> bool:
    """Return whether a user may take an action."""
    body = {"action": action, "path": path, "user": user}
    return bool(node.done("POST", f"{ACCESS}/explain", body)["decision"]["allowed"])


def test_user_reads_a_table_after_one_request(lake: DriverNode) -> None:
    """A reader of a table gets the privileges on the table, its namespace and its catalog, by a new role of their
    own.
    """
    answer = lake.done("POST", PRESETS, {**READER, "user": "ana"})

    assert (answer["role"], answer["created"]) == ("user:ana", True)
    assert words(answer) == ["SELECT_TABLE on main.raw.t", *WAY]
    assert may(lake, "table_read", ["main", "raw", "t"])
    assert not may(lake, "table_read", ["main", "raw", "u"])
    assert not may(lake, "table_commit", ["main", "raw", "t"])


@pytest.mark.parametrize(
    "kind, path, action, on",
    [
        ("metalake", [], "table_commit", ["main", "raw", "t"]),
        ("catalog", ["main"], "table_commit", ["main", "raw", "t"]),
        ("namespace", ["main", "raw"], "table_create", ["main", "raw"]),
        ("table", ["main", "raw", "t"], "table_commit", ["main", "raw", "t"]),
    ],
)
def test_writer_of_any_object_writes(lake: DriverNode, kind: str, path: list[str], action: str, on: list[str]) -> None:
    """A writer of a metalake, catalog, namespace or table may write in it, and no grant is missing above it."""
    lake.done("POST", PRESETS, {"change": "grant", "preset": "writer", "kind": kind, "path": path, "user": "ana"})

    kinds = {"table_create": "namespace"}
    body = {"action": action, "path": on, "user": "ana", "kind": kinds.get(action)}
    assert lake.done("POST", f"{ACCESS}/explain", body)["decision"]["allowed"]


def test_group_and_role_get_presets(lake: DriverNode) -> None:
    """A group gets a role of its own; a named role gets the privileges itself and is assigned to nobody."""
    lake.done("POST", f"{API}/lake/groups", {"name": "crew"})
    lake.done("POST", f"{OWN}/metalakes/lake/groups/crew/members", {"users": ["ben"]})
    lake.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})

    of_group = lake.done("POST", PRESETS, {**READER, "group": "crew"})
    of_role = lake.done("POST", PRESETS, {**READER, "role": "r"})

    assert (of_group["role"], of_role["role"], of_role["created"]) == ("group:crew", "r", False)
    assert may(lake, "table_read", ["main", "raw", "t"], "ben")
    assert lake.done("GET", f"{API}/lake/users/ben")["user"]["roles"] == []


def test_repeated_grant_changes_nothing(lake: DriverNode) -> None:
    """The second grant of a preset finds all of it."""
    lake.done("POST", PRESETS, {**READER, "user": "ana"})
    again = lake.done("POST", PRESETS, {**READER, "user": "ana"})

    assert (again["created"], words(again)) == (False, [])
    assert sorted(words(again, "unchanged")) == sorted(["SELECT_TABLE on main.raw.t", *WAY])


def test_revoke_takes_back_what_the_grant_gave(lake: DriverNode) -> None:
    """After a revocation the role has no privileges left, and the user reads nothing."""
    lake.done("POST", PRESETS, {**READER, "user": "ana"})

    answer = lake.done("POST", PRESETS, {**READER, "change": "revoke", "user": "ana"})

    assert sorted(words(answer)) == sorted(["SELECT_TABLE on main.raw.t", *WAY])
    assert lake.done("GET", f"{API}/lake/roles/user:ana")["role"]["securableObjects"] == []
    assert not may(lake, "table_read", ["main", "raw", "t"])


def test_revoke_keeps_what_other_grants_need(lake: DriverNode) -> None:
    """USE_CATALOG and USE_SCHEMA stay while the role has other privileges in the container, and go with the last."""
    other = {**READER, "path": ["main", "other", "t"]}
    for body in (READER, other, {**READER, "path": ["main", "raw", "u"]}):
        lake.done("POST", PRESETS, {**body, "user": "ana"})

    first = lake.done("POST", PRESETS, {**READER, "change": "revoke", "user": "ana"})
    second = lake.done("POST", PRESETS, {**other, "change": "revoke", "user": "ana"})

    assert (words(first), sorted(words(first, "unchanged"))) == (["SELECT_TABLE on main.raw.t"], sorted(WAY))
    assert words(second) == ["SELECT_TABLE on main.other.t", "USE_SCHEMA on main.other"]
    assert words(second, "unchanged") == ["USE_CATALOG on main"]
    assert may(lake, "table_read", ["main", "raw", "u"])


def test_own_role_that_others_hold_is_refused(lake: DriverNode) -> None:
    """A preset for a user never goes to a role that somebody else holds, too."""
    lake.done("POST", PRESETS, {**READER, "user": "ana"})
    lake.done("PUT", f"{API}/lake/permissions/users/ben/grant", {"roleNames": ["user:ana"]})

    request = {**READER, "path": ["main", "raw", "u"], "user": "ana"}
    preview, refused = (lake.post(url, request) for url in (f"{ACCESS}/what-if", PRESETS))

    assert preview.status == refused.status == 409
    assert preview.json()["error"]["message"] == refused.json()["error"]["message"]
    assert "others have it, too" in refused.json()["error"]["message"]
    assert not may(lake, "table_read", ["main", "raw", "u"], "ben")


@pytest.mark.parametrize("kind", ["user", "group"])
def test_role_of_a_former_holder_is_not_given_to_the_next_one_of_the_name(lake: DriverNode, kind: str) -> None:
    """After a user or group was removed, and one of the same name was made, a preset does not give them the grants of
    the former one; it is refused until the role is deleted, and so is its preview.
    """
    lake.done("POST", f"{API}/lake/{kind}s", {"name": "zoe"})
    lake.done("POST", PRESETS, {**READER, "preset": "admin", "kind": "namespace", "path": ["main", "raw"], kind: "zoe"})
    lake.done("DELETE", f"{API}/lake/{kind}s/zoe")
    lake.done("POST", f"{API}/lake/{kind}s", {"name": "zoe"})
    request = {**READER, "path": ["main", "other", "t"], kind: "zoe"}

    preview, refused = (lake.post(url, request) for url in (f"{ACCESS}/what-if", PRESETS))
    lake.done("DELETE", f"{API}/lake/roles/{kind}:zoe")
    answer = lake.done("POST", PRESETS, request)

    assert preview.status == refused.status == 409
    assert preview.json()["error"]["message"] == refused.json()["error"]["message"]
    assert f"{kind} zoe does not have it" in refused.json()["error"]["message"]
    assert answer["created"]
    assert words(answer) == ["SELECT_TABLE on main.other.t", "USE_SCHEMA on main.other", "USE_CATALOG on main"]
    if kind == "user":
        assert not may(lake, "table_commit", ["main", "raw", "t"], "zoe")


def test_role_without_grants_is_not_given_to_its_namesake(lake: DriverNode) -> None:
    """A role without grants is refused as well, because restrictions may except it; assigned on purpose, it is used."""
    lake.done("POST", PRESETS, {**READER, "user": "ana"})
    lake.done("POST", PRESETS, {**READER, "change": "revoke", "user": "ana"})
    lake.done("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": ["user:ana"]})

    refused = lake.post(PRESETS, {**READER, "user": "ana"})
    lake.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["user:ana"]})
    answer = lake.done("POST", PRESETS, {**READER, "user": "ana"})

    assert refused.status == 409
    assert not answer["created"]
    assert may(lake, "table_read", ["main", "raw", "t"])


@pytest.mark.parametrize(
    "privileges, kind, on, holder",
    [
        ("create_role", "metalake", "lake", {"user": "ana"}),
        ("manage_grants", "table", "main.raw.t", {"user": "ana"}),
        ("manage_grants", "table", "main.raw.t", {"role": "r"}),
        ("manage_grants", "metalake", "lake", {"user": "ana"}),
    ],
    ids=["no right to grant", "no right to assign", "no right on the containers", "no right to create a role"],
)
def test_every_part_of_a_preset_is_decided(
    lake: DriverNode, privileges: str, kind: str, on: str, holder: dict[str, str]
) -> None:
    """A caller needs the rights to grant on the object and on each container, to assign roles and to create one: each
    of them missing, nothing is changed.
    """
    lake.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})
    grant(lake, "ben", privileges, kind=kind, on=on)

    refused = lake.ask("POST", PRESETS, {**READER, **holder}, user="ben")

    assert refused.status == 403
    assert lake.get(f"{API}/lake/roles/user:ana").status == 404
    assert lake.done("GET", f"{API}/lake/roles/r")["role"]["securableObjects"] == []


def test_owner_of_a_table_grants_to_a_role_that_may_use_its_namespace(lake: DriverNode) -> None:
    """The owner of a table alone gives a preset to a role that has USE_CATALOG and USE_SCHEMA, and takes it back; what
    the role has on the containers stays.
    """
    grant(lake, "ben", "use_catalog use_schema", kind="catalog", on="main")
    role = grant(lake, "ana", "use_catalog use_schema", kind="catalog", on="main")
    lake.done("PUT", f"{API}/lake/owners/TABLE/main.raw.t", {"name": "ben", "type": "USER"})

    grants = lake.done("POST", PRESETS, {**READER, "role": role}, user="ben")
    removals = lake.done("POST", PRESETS, {**READER, "change": "revoke", "role": role}, user="ben")

    assert words(grants) == words(removals) == ["SELECT_TABLE on main.raw.t"]


@pytest.mark.parametrize(
    "body",
    [
        {**READER},
        {**READER, "user": "ana", "group": "crew"},
        {**READER, "user": "ana", "preset": "owner"},
        {**READER, "user": "ana", "kind": "role", "path": ["r"]},
    ],
    ids=["no holder", "two holders", "no such preset", "no privileges"],
)
def test_incomplete_request_is_refused(lake: DriverNode, body: dict[str, object]) -> None:
    """A request without exactly one holder, with another preset, or about an object without privileges gets 400."""
    lake.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})

    assert lake.post(PRESETS, body).status == 400


def test_preview_of_a_preset_is_what_the_change_does(lake: DriverNode) -> None:
    """The what-if request says what a preset gives and takes, and changes nothing."""
    what_if = f"{ACCESS}/what-if"

    before = lake.done("POST", what_if, {**READER, "user": "ana"})
    assert lake.get(f"{API}/lake/roles/user:ana").status == 404
    lake.done("POST", PRESETS, {**READER, "user": "ana"})
    after = lake.done("POST", what_if, {**READER, "user": "ana"})
    revoked = lake.done("POST", what_if, {**READER, "change": "revoke", "user": "ana"})

    read = {"level": "read", "kind": "table", "users": 1, "objects": 1, "names": ["ana"]}
    assert {**read, "gains": True} in before["lines"]
    assert (before["gaining"], after["gaining"], after["losing"]) == (1, 0, 0)
    assert {**read, "gains": False} in revoked["lines"]
    assert may(lake, "table_read", ["main", "raw", "t"])


def test_denial_of_a_former_object_ends_with_its_restriction(lake: DriverNode) -> None:
    """A new table takes over the denials of the dropped table of its name. The answers about what is missing and why an
    action is refused name the restriction that has them; removed, nothing is denied.
    """
    role = grant(lake, "ana", "select_table", kind="table", on="main.raw.t", condition="deny")
    lake.done("DELETE", f"{API}/lake/catalogs/main/schemas/raw/tables/t")
    lake.done("POST", "/iceberg/v1/lake.main/namespaces/raw/tables", {"name": "t", "schema": SCHEMA})
    lake.done("POST", PRESETS, {**READER, "user": "ana"})
    missing = f"{ACCESS}/missing?path=main.raw.t&preset=reader&user=ana"

    (lack,) = lake.done("GET", missing)["missing"]
    body = {"action": "table_load", "path": ["main", "raw", "t"], "user": "ana"}
    advice = lake.done("POST", f"{ACCESS}/explain", body)["suggestions"]
    (denial,) = lack["denials"]
    assert denial["restriction"] == f"denials of {role}"
    assert f"it ends with the restriction 'denials of {role}'" in advice[-1]

    lake.done("DELETE", f"{OWN}/metalakes/lake/objects/table/main.raw.t/restrictions/denials%20of%20{role}")

    assert lake.done("GET", missing)["missing"] == []
    assert may(lake, "table_read", ["main", "raw", "t"])


def test_revoked_preset_of_a_catalog_leaves_nothing(lake: DriverNode) -> None:
    """USE_CATALOG and USE_SCHEMA on a catalog need each other for nothing, and both go."""
    body = {"preset": "writer", "kind": "catalog", "path": ["main"], "user": "ana"}
    lake.done("POST", PRESETS, {"change": "grant", **body})
    lake.done("POST", PRESETS, {"change": "revoke", **body})

    assert lake.done("GET", f"{API}/lake/roles/user:ana")["role"]["securableObjects"] == []


def test_preview_shows_the_refusal_of_a_denied_privilege(lake: DriverNode) -> None:
    """A role that denies a privilege is not granted it, and both previews of the change say so."""
    lake.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})
    denial = {"privileges": [{"name": "SELECT_TABLE", "condition": "DENY"}]}
    lake.done("PUT", f"{API}/lake/permissions/roles/r/table/main.raw.t/grant", denial)

    on = {"kind": "table", "path": ["main", "raw", "t"]}
    rules = {**on, "role": "r", "privileges": [{"name": "SELECT_TABLE", "condition": "ALLOW"}], "change": "grant"}
    answers = [lake.post(f"{ACCESS}/what-if", body) for body in ({**READER, **on, "role": "r"}, rules)]
    refused = lake.post(PRESETS, {**READER, **on, "role": "r"})

    assert [each.status for each in (*answers, refused)] == [400, 400, 400]
    assert {each.json()["error"]["message"] for each in (*answers, refused)} == {
        "Role r has SELECT_TABLE denied on this object: revoke that first"
    }


def test_preview_counts_users_of_a_role_without_grants(lake: DriverNode) -> None:
    """The preview of the first grant to a role counts the users of the role."""
    lake.done("POST", PRESETS, {**READER, "user": "ben"})
    lake.done("POST", f"{API}/lake/roles", {"name": "new", "properties": {}, "securableObjects": []})
    lake.done("PUT", f"{API}/lake/permissions/users/ben/grant", {"roleNames": ["new"]})
    denied = [{"name": "select_table", "condition": "deny"}]
    body = {"change": "grant", "role": "new", "kind": "table", "path": ["main", "raw", "t"], "privileges": denied}

    answer = lake.done("POST", f"{ACCESS}/what-if", body)

    assert {(line["level"], line["gains"], line["users"]) for line in answer["lines"]} == {("read", False, 1)}
