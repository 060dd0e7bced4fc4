# SPDX-License-Identifier: Apache-2.0
"""Grants over Gravitino REST."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant

LAKE = f"{API}/lake"
GRANTS = f"{LAKE}/permissions"


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


@pytest.fixture
def filled(node: DriverNode) -> DriverNode:
    """A node with user ana, group staff, schema main.a:b and an empty role r."""
    node.done("POST", f"{LAKE}/users", {"name": "ana"})
    node.done("POST", f"{LAKE}/groups", {"name": "staff"})
    node.done("POST", f"{LAKE}/catalogs/main/schemas", {"name": "a:b"})
    node.done("POST", f"{LAKE}/roles", {"name": "r", "properties": {}, "securableObjects": []})
    return node


@pytest.mark.parametrize("holder, word", [("users/ana", "user"), ("groups/staff", "group")])
def test_roles_can_be_granted_and_revoked(filled: DriverNode, holder: str, word: str) -> None:
    """Granting and revoking roles return the holder with its roles; both are idempotent."""
    seen = [
        filled.done("PUT", f"{GRANTS}/{holder}/{verb}", {"roleNames": ["r"]})[word]["roles"]
        for verb in ("grant", "grant", "revoke", "revoke")
    ]

    assert seen == [["r"], ["r"], [], []]


def test_trailing_slash_is_the_same_route(filled: DriverNode) -> None:
    """Routes with and without a trailing slash are served."""
    answer = filled.put(f"{GRANTS}/users/ana/grant/", {"roleNames": ["r"]})

    assert answer.json()["user"]["roles"] == ["r"]


def test_role_grant_with_unknown_names_is_refused(filled: DriverNode) -> None:
    """An unknown role is 400, an unknown user or group 404; an empty list is 400."""
    answers = [
        filled.put(f"{GRANTS}/users/ana/grant", {"roleNames": ["none"]}),
        filled.put(f"{GRANTS}/users/none/grant", {"roleNames": ["r"]}),
        filled.put(f"{GRANTS}/groups/none/revoke", {"roleNames": ["r"]}),
        filled.put(f"{GRANTS}/users/ana/grant", {"roleNames": []}),
    ]

    assert [error_fields(answer) for answer in answers] == [
        (400, 1001, "IllegalRoleException"),
        (404, 1003, "NoSuchUserException"),
        (404, 1003, "NoSuchGroupException"),
        (400, 1001, "IllegalArgumentException"),
    ]
    assert "operation [GRANT] under user [ana], reason [" in str(answers[0]["message"])


def test_privileges_are_granted_and_revoked(filled: DriverNode) -> None:
    """Granting and revoking privileges return the role; types are case-insensitive, and both are idempotent."""
    body = {"privileges": [{"name": "create_table", "condition": "allow"}]}

    seen = [
        filled.done("PUT", f"{GRANTS}/roles/r/{kind}/main.a%3Ab/{verb}", body)["role"]["securableObjects"]
        for kind, verb in (("schema", "grant"), ("SCHEMA", "grant"), ("schema", "revoke"), ("schema", "revoke"))
    ]

    granted = [{"fullName": "main.a:b", "type": "schema", "privileges": body["privileges"]}]
    assert seen == [granted, granted, [], []]


def test_grants_and_denials_apply_to_the_next_request(filled: DriverNode) -> None:
    """A grant, a revoke and a denial take effect with the next request."""
    body = {"privileges": [{"name": "USE_CATALOG", "condition": "ALLOW"}]}
    filled.done("PUT", f"{GRANTS}/users/ana/grant", {"roleNames": ["r"]})
    statuses = [filled.get(f"{LAKE}/catalogs/main", user="ana").status]

    for verb in ("grant", "revoke"):
        filled.done("PUT", f"{GRANTS}/roles/r/catalog/main/{verb}", body)
        statuses.append(filled.get(f"{LAKE}/catalogs/main", user="ana").status)

    assert statuses == [403, 200, 403]


def test_denial_on_an_ancestor_overrides_a_grant(filled: DriverNode) -> None:
    """A denial on an ancestor overrides a grant on the object itself."""
    grant(filled, "ana", "use_catalog", kind="metalake", on="lake")
    grant(filled, "ana", "use_catalog", kind="catalog", on="main", condition="deny")

    answer = filled.get(f"{LAKE}/catalogs/main", user="ana")

    assert error_fields(answer) == (403, 1008, "ForbiddenException")
    assert "denied" in str(answer["message"])


@pytest.mark.parametrize(
    "path, privilege, expected",
    [
        ("roles/r/schema/main.none", "use_schema", (404, 1003, "NoSuchMetadataObjectException")),
        ("roles/r/catalog/none", "use_catalog", (404, 1003, "NoSuchMetadataObjectException")),
        ("roles/none/catalog/main", "use_catalog", (404, 1003, "NoSuchRoleException")),
        ("roles/r/catalog/main", "create_catalog", (400, 1001, "IllegalPrivilegeException")),
        ("roles/r/catalog/main", "fly", (400, 1001, "IllegalPrivilegeException")),
        ("roles/r/planet/main", "use_catalog", (400, 1001, "IllegalArgumentException")),
        ("roles/r/schema/main", "use_schema", (400, 1001, "IllegalNameIdentifierException")),
    ],
    ids=str,
)
def test_bad_grants_change_nothing(
    filled: DriverNode, path: str, privilege: str, expected: tuple[int, int, str]
) -> None:
    """Each invalid grant has its status and exception, and the role stays empty."""
    answer = filled.put(f"{GRANTS}/{path}/grant", {"privileges": [{"name": privilege, "condition": "allow"}]})

    assert error_fields(answer) == expected
    assert filled.get(f"{LAKE}/roles/r").json()["role"]["securableObjects"] == []


def test_grant_cannot_be_turned_into_a_denial(filled: DriverNode) -> None:
    """A grant cannot be turned into a denial directly: 400 says to revoke it first."""
    bodies = [{"privileges": [{"name": "use_catalog", "condition": word}]} for word in ("allow", "deny")]

    filled.done("PUT", f"{GRANTS}/roles/r/catalog/main/grant", bodies[0])
    answer = filled.put(f"{GRANTS}/roles/r/catalog/main/grant", bodies[1])

    assert error_fields(answer) == (400, 1001, "IllegalPrivilegeException")


def test_override_replaces_all_rules_of_a_role(filled: DriverNode) -> None:
    """Overriding a role's rules sets exactly the given ones."""
    filled.done(
        "PUT", f"{GRANTS}/roles/r/catalog/main/grant", {"privileges": [{"name": "use_catalog", "condition": "allow"}]}
    )
    objects = [{"fullName": "main.a", "type": "schema", "privileges": [{"name": "use_schema", "condition": "deny"}]}]

    changed = filled.done("PUT", f"{GRANTS}/roles/r", {"overrides": objects})["role"]

    assert changed["securableObjects"] == objects


def test_grants_need_manage_grants_privilege(filled: DriverNode) -> None:
    """Every grant needs MANAGE_GRANTS: on the metalake, or on the object or one of its ancestors."""
    rules = {"privileges": [{"name": "use_schema", "condition": "allow"}]}
    refused = [
        filled.put(f"{GRANTS}/users/ana/grant", {"roleNames": ["r"]}, user="ana"),
        filled.put(f"{GRANTS}/groups/staff/grant", {"roleNames": ["r"]}, user="ana"),
        filled.put(f"{GRANTS}/roles/r/schema/main.a/grant", rules, user="ana"),
        filled.put(f"{GRANTS}/roles/r", {"overrides": []}, user="ana"),
    ]

    grant(filled, "ana", "use_catalog manage_grants", kind="catalog", on="main")
    allowed = filled.put(f"{GRANTS}/roles/r/schema/main.a/grant", rules, user="ana")

    assert [error_fields(answer) for answer in refused] == [(403, 1008, "ForbiddenException")] * 4
    assert allowed.status == 200


def test_refused_grant_does_not_reveal_existence(filled: DriverNode) -> None:
    """A user who may not grant on an object is refused alike whether it exists or not."""
    rules = {"privileges": [{"name": "use_schema", "condition": "allow"}]}
    grant(filled, "ana", "use_catalog", kind="catalog", on="main")

    real, absent = (filled.put(f"{GRANTS}/roles/r/schema/main.{name}/grant", rules, user="ana") for name in ("a", "z"))

    assert error_fields(real) == (403, 1008, "ForbiddenException")
    assert real.body.replace(b"main.a", b"main.z") == absent.body


@pytest.mark.parametrize("verb", ["grant", "revoke"])
def test_change_of_a_role_answers_only_what_the_caller_may_load(filled: DriverNode, verb: str) -> None:
    """The owner of an object who may not load a role gets its grants on that object alone, without its properties and
    other objects. Its owner gets all.
    """
    rules = [{"name": "USE_SCHEMA", "condition": "ALLOW"}]
    filled.done("POST", f"{LAKE}/catalogs/main/schemas", {"name": "own"})
    grant(filled, "low", "use_catalog", kind="CATALOG", on="main")
    filled.done("PUT", f"{LAKE}/owners/schema/main.own", {"name": "low", "type": "USER"})
    objects = [
        {"fullName": name, "type": "schema", "privileges": [{"name": privilege, "condition": "ALLOW"}]}
        for name, privilege in (("main.own", "CREATE_TABLE"), ("main.`a:b`", "SELECT_TABLE"))
    ]
    filled.done("POST", f"{LAKE}/roles", {"name": "wide", "properties": {"k": "v"}, "securableObjects": objects})
    assert filled.get(f"{LAKE}/roles/wide", user="low").status == 403
    address = f"{GRANTS}/roles/wide/schema/main.own/{verb}"

    role = filled.put(address, {"privileges": rules}, user="low").json()["role"]
    own = {each["name"] for each in role["securableObjects"][0]["privileges"]}
    assert ([each["fullName"] for each in role["securableObjects"]], role["properties"]) == (["main.own"], {})
    assert own == {"create_table", *(["use_schema"] if verb == "grant" else [])}
    role = filled.put(address, {"privileges": rules}).json()["role"]
    assert ({each["fullName"] for each in role["securableObjects"]}, role["properties"]) == (
        {"main.own", "main.a:b"},
        {"k": "v"},
    )
