# SPDX-License-Identifier: Apache-2.0
"""Metalakes over Gravitino REST."""

from __future__ import annotations

import re

import pytest

from tests.http.driver import API, DriverNode


def test_create_returns_the_metalake(node: DriverNode) -> None:
    """A create returns the metalake with its comment, its properties with `in-use`, and an ISO creation time."""
    metalake = node.done("POST", API, {"name": "sea", "comment": "deep", "properties": {"k": "v"}})["metalake"]

    assert (metalake["name"], metalake["comment"], metalake["properties"]) == (
        "sea",
        "deep",
        {"k": "v", "in-use": "true"},
    )
    assert metalake["audit"]["creator"] == "admin"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", metalake["audit"]["createTime"])
    assert "lastModifier" not in metalake["audit"]


def test_creator_is_user_and_owner(node: DriverNode) -> None:
    """The creator of a metalake is a user of it and owns it."""
    node.done("POST", API, {"name": "sea"})

    users, owner = node.get(f"{API}/sea/users"), node.get(f"{API}/sea/owners/metalake/sea")

    assert users["names"] == ["admin"]
    assert owner["owner"] == {"name": "admin", "type": "user"}


def test_only_service_admins_make_metalakes(node: DriverNode) -> None:
    """A user who is not a service admin cannot create a metalake. The refusal names the needed right."""
    answer = node.post(API, {"name": "sea"}, user="ana")

    assert (answer.status, answer["code"], answer["type"]) == (403, 1008, "ForbiddenException")
    assert "needs a service admin" in str(answer["message"])


def test_list_shows_metalakes_of_the_caller(node: DriverNode) -> None:
    """The list has exactly the metalakes of which the caller is a user, with all fields."""
    node.done("POST", API, {"name": "sea"})
    node.done("POST", f"{API}/sea/users", {"name": "ana"})

    names = [
        [each["name"] for each in node.get(API, user=user).json()["metalakes"]] for user in ("admin", "ana", "ben")
    ]

    assert names == [["lake", "sea"], ["sea"], []]


def test_member_loads_a_metalake(node: DriverNode) -> None:
    """Users of a metalake may load it."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    answer = node.get(f"{API}/lake", user="ana")

    assert answer.status == 200
    assert answer.json()["metalake"]["name"] == "lake"


def test_missing_and_foreign_metalake_return_the_same_403(node: DriverNode) -> None:
    """With access control on, a missing metalake and one without the caller as user are refused with the same 403, also
    for service admins.
    """
    real, absent = node.get(f"{API}/lake", user="zoe"), node.get(f"{API}/none", user="zoe")
    admin = node.get(f"{API}/none")

    assert real.status == absent.status == admin.status == 403
    assert real.json() == {**absent.json(), "message": str(absent["message"]).replace("none", "lake")}
    assert real["message"] == (
        "Current user zoe doesn't exist in the metalake lake, you should add the user to the metalake first"
    )


def test_missing_metalake_is_404_with_access_off(open_node: DriverNode) -> None:
    """With access control off, a missing metalake is 404 with code 1003 and the exception that clients expect."""
    answer = open_node.get(f"{API}/none")

    assert (answer.status, answer["code"], answer["type"]) == (404, 1003, "NoSuchMetalakeException")
    assert answer["message"] == (
        "Failed to operate metalake(s) [none] operation [LOAD], reason [Metalake none does not exist]"
    )


def test_alter_applies_all_changes(node: DriverNode) -> None:
    """One alter request changes name, comment and properties, and the audit fields name the user."""
    updates = [
        {"@type": "updateComment", "newComment": "x"},
        {"@type": "setProperty", "property": "a", "value": "1"},
        {"@type": "setProperty", "property": "b", "value": "2"},
        {"@type": "removeProperty", "property": "b"},
        {"@type": "rename", "newName": "pond"},
    ]

    changed = node.done("PUT", f"{API}/lake", {"updates": updates})["metalake"]

    assert (changed["name"], changed["comment"], changed["properties"]) == ("pond", "x", {"a": "1", "in-use": "true"})
    assert changed["audit"]["lastModifier"] == "admin"
    assert node.get(f"{API}/pond").status == 200


def test_comment_can_be_cleared(node: DriverNode) -> None:
    """A null comment removes the comment; fields without a value are omitted."""
    changed = node.done("PUT", f"{API}/lake", {"updates": [{"@type": "updateComment", "newComment": None}]})

    assert "comment" not in changed["metalake"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        {"updates": [{"@type": "explode"}]},
        {"updates": [{"newName": "x"}]},
        {"updates": [], "more": 1},
        {"updates": [{"@type": "setProperty", "property": "in-use", "value": "false"}]},
        {"updates": [{"@type": "setProperty", "property": "", "value": "x"}]},
        {"updates": [{"@type": "setProperty", "property": "a", "value": 1}]},
        {"updates": [{"@type": "rename", "newName": "not a name"}]},
    ],
    ids=str,
)
def test_bad_updates_are_400_and_change_nothing(node: DriverNode, body: object) -> None:
    """An invalid update is refused with code 1001, and nothing is changed."""
    before = node.get(f"{API}/lake").body

    answer = node.put(f"{API}/lake", body)

    assert (answer.status, answer["code"], answer["type"]) == (400, 1001, "IllegalArgumentException")
    assert node.get(f"{API}/lake").body == before


def test_unknown_field_is_a_malformed_request(node: DriverNode) -> None:
    """An unknown field of a body is 400 with Gravitino's message and the field's name."""
    answer = node.post(API, {"name": "sea", "colour": "blue"})

    assert (answer.status, answer["code"]) == (400, 1001)
    assert str(answer["message"]).startswith("Malformed json request")
    assert "colour" in str(answer["message"])


@pytest.mark.parametrize("name", ["", "a.b", "a b", "system", "x" * 65, "é"])
def test_illegal_names_are_refused(node: DriverNode, name: str) -> None:
    """The name of a new metalake must match Gravitino's pattern."""
    answer = node.post(API, {"name": name})

    assert (answer.status, answer["code"], answer["type"]) == (400, 1001, "IllegalArgumentException")


def test_existing_name_is_409(node: DriverNode) -> None:
    """A name in use is refused with 409 and code 1004."""
    answer = node.post(API, {"name": "lake"})

    assert (answer.status, answer["code"], answer["type"]) == (409, 1004, "MetalakeAlreadyExistsException")
    assert str(answer["message"]).startswith("Failed to operate metalake(s) [lake] operation [CREATE], reason [")


def test_requests_below_a_disabled_metalake_return_409(node: DriverNode) -> None:
    """Every request below a disabled metalake is refused with 409 and code 1009. Enabling it is idempotent."""
    node.done("PATCH", f"{API}/lake", {"inUse": False})

    refused = [
        node.get(f"{API}/lake/{path}")
        for path in ("catalogs", "catalogs/main", "catalogs/main/schemas", "users", "roles", "owners/catalog/main")
    ]
    enabled = [node.patch(f"{API}/lake", {"inUse": True}).json() for _ in range(2)]

    assert [(a.status, a["code"], a["type"]) for a in refused] == [(409, 1009, "MetalakeNotInUseException")] * 6
    assert enabled == [{"code": 0}, {"code": 0}]
    assert node.get(f"{API}/lake/catalogs").status == 200


def test_drop_needs_an_empty_disabled_metalake_or_force(node: DriverNode) -> None:
    """Dropping an enabled metalake is 1010, one with catalogs 1005, and `force` (in any case) drops it."""
    in_use = node.delete(f"{API}/lake")
    node.done("PATCH", f"{API}/lake", {"inUse": False})
    not_empty = node.delete(f"{API}/lake?force=False")
    dropped = node.delete(f"{API}/lake?force=True")

    assert (in_use.status, in_use["code"], in_use["type"]) == (409, 1010, "MetalakeInUseException")
    assert (not_empty.status, not_empty["code"], not_empty["type"]) == (409, 1005, "NonEmptyMetalakeException")
    assert dropped.json() == {"code": 0, "dropped": True}


def test_drop_of_a_missing_metalake_is_refused(node: DriverNode) -> None:
    """With access control on, dropping a missing metalake is refused like dropping one without the caller as user."""
    answer = node.delete(f"{API}/none")

    assert (answer.status, answer["code"]) == (403, 1008)


def test_drop_of_a_missing_metalake_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off, dropping a missing metalake returns `dropped: false`."""
    answer = open_node.delete(f"{API}/none")

    assert answer.json() == {"code": 0, "dropped": False}


def test_only_the_owner_can_alter_disable_or_drop(node: DriverNode) -> None:
    """A member who does not own the metalake may neither alter, disable nor drop it."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    refused = [
        node.put(f"{API}/lake", {"updates": []}, user="ana"),
        node.patch(f"{API}/lake", {"inUse": False}, user="ana"),
        node.delete(f"{API}/lake", user="ana"),
    ]

    assert [(a.status, a["code"]) for a in refused] == [(403, 1008)] * 3


@pytest.mark.parametrize("name", ["lake", "prod"])
def test_rename_takes_no_name_that_settings_use_for_another(node: DriverNode, name: str) -> None:
    """A metalake does not get the name of the default metalake, or the first name of another one, after that has been
    renamed; the renamed one gets its name back.
    """

    def rename(metalake: str, target: str) -> int:
        return node.put(f"{API}/{metalake}", {"updates": [{"@type": "rename", "newName": target}]}).status

    if name != "lake":
        node.done("POST", API, {"name": name})
    node.done("POST", API, {"name": "beta"})
    renamed = rename(name, "former")

    assert [renamed, rename("beta", name), rename("former", name)] == [200, 409, 200]
    assert rename("beta", "gamma") == 200
