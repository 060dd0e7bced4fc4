# SPDX-License-Identifier: Apache-2.0
"""Owners over Gravitino REST."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant

OWNERS = f"{API}/lake/owners"


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


@pytest.fixture
def filled(node: DriverNode) -> DriverNode:
    """A node with user ana, group staff, schema main.a:b and role r."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("POST", f"{API}/lake/groups", {"name": "staff"})
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "a:b"})
    node.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})
    return node


@pytest.mark.parametrize("path", ["metalake/lake", "CATALOG/main", "schema/main.a", "schema/main.a%3Ab", "role/r"])
def test_creator_owns_and_can_transfer_ownership(filled: DriverNode, path: str) -> None:
    """The creator of any object owns it and may transfer it to a user or group; types are returned in lower case."""
    grant(filled, "ana", "use_catalog", kind="catalog", on="main")  # the owner of a schema must be able to reach it
    grant(filled, "ana", "manage_users", kind="metalake", on="lake")
    filled.done("POST", "/api/limnos/v1/metalakes/lake/groups/staff/members", {"users": ["ana"]})
    seen = [filled.get(f"{OWNERS}/{path}")["owner"]]
    for name, kind in (("ana", "USER"), ("admin", "user")):
        answer = filled.put(f"{OWNERS}/{path}", {"name": name, "type": kind}, user=seen[-1]["name"])
        assert answer.json() == {"code": 0, "set": True}
        seen.append(filled.get(f"{OWNERS}/{path}")["owner"])

    filled.done("PUT", f"{OWNERS}/{path}", {"name": "staff", "type": "GROUP"})

    assert [owner["name"] for owner in seen] == ["admin", "ana", "admin"]


def test_group_members_own_the_objects_of_their_group(filled: DriverNode) -> None:
    """An object owned by a group belongs to the group's members."""
    filled.done("PUT", f"{OWNERS}/catalog/main", {"name": "staff", "type": "GROUP"})

    assert filled.get(f"{OWNERS}/catalog/main")["owner"] == {"name": "staff", "type": "group"}


@pytest.mark.parametrize(
    "path, body, expected",
    [
        ("schema/main.none", {"name": "ana", "type": "USER"}, (404, 1003, "NoSuchMetadataObjectException")),
        ("catalog/none", {"name": "ana", "type": "USER"}, (404, 1003, "NoSuchMetadataObjectException")),
        ("metalake/other", {"name": "ana", "type": "USER"}, (404, 1003, "NoSuchMetadataObjectException")),
        ("role/none", {"name": "ana", "type": "USER"}, (404, 1003, "NoSuchRoleException")),
        ("catalog/main", {"name": "none", "type": "USER"}, (404, 1003, "NoSuchUserException")),
        ("catalog/main", {"name": "ana", "type": "GROUP"}, (404, 1003, "NoSuchGroupException")),
        ("catalog/main", {"name": "ana", "type": "ROBOT"}, (400, 1001, "IllegalArgumentException")),
        ("planet/main", {"name": "ana", "type": "USER"}, (400, 1001, "IllegalArgumentException")),
        ("column/main.a.t.c", {"name": "ana", "type": "USER"}, (400, 1001, "IllegalArgumentException")),
    ],
    ids=str,
)
def test_bad_transfers_change_nothing(
    filled: DriverNode, path: str, body: dict[str, str], expected: tuple[int, int, str]
) -> None:
    """Each invalid transfer has its status and exception, and the owner is unchanged."""
    answer = filled.put(f"{OWNERS}/{path}", body)

    assert error_fields(answer) == expected
    assert str(answer["message"]).startswith(
        f"Failed to execute {path.replace('/', ' ')} owner operation [SET] under metalake"
    )
    assert filled.get(f"{OWNERS}/catalog/main")["owner"] == {"name": "admin", "type": "user"}


def test_only_owners_can_transfer_ownership(filled: DriverNode) -> None:
    """A user with rights on an object sees its owner but cannot change it."""
    grant(filled, "ana", "use_catalog", kind="catalog", on="main")

    seen = filled.get(f"{OWNERS}/catalog/main", user="ana")
    refused = filled.put(f"{OWNERS}/catalog/main", {"name": "ana", "type": "USER"}, user="ana")

    assert seen["owner"] == {"name": "admin", "type": "user"}
    assert error_fields(refused) == (403, 1008, "ForbiddenException")


@pytest.mark.parametrize(
    "kind, name, privilege", [("GROUP", "staff", "manage_groups"), ("USER", "ana", "manage_users")]
)
def test_owner_gives_an_object_to_others_only_with_the_right_to_manage_them(
    filled: DriverNode, kind: str, name: str, privilege: str
) -> None:
    """An owner who may not manage a user or group, and is no member of it, cannot give it an object."""
    filled.done("POST", f"{API}/lake/users", {"name": "eve"})
    filled.done("PUT", f"{OWNERS}/catalog/main", {"name": "eve", "type": "USER"})

    refused = filled.put(f"{OWNERS}/catalog/main", {"name": name, "type": kind}, user="eve")
    grant(filled, "eve", privilege, kind="metalake", on="lake")
    done = filled.put(f"{OWNERS}/catalog/main", {"name": name, "type": kind}, user="eve")

    assert error_fields(refused) == (403, 1008, "ForbiddenException")
    assert done.json() == {"code": 0, "set": True}


def test_refusal_does_not_reveal_existence(filled: DriverNode) -> None:
    """A user without rights on the object is refused alike whether it exists or not."""
    grant(filled, "ana", "use_catalog", kind="catalog", on="main")

    real, absent = (filled.get(f"{OWNERS}/schema/main.{name}", user="ana") for name in ("a", "z"))

    assert error_fields(real) == (403, 1008, "ForbiddenException")
    assert real.body.replace(b"main.a", b"main.z") == absent.body


def test_owner_of_an_ancestor_can_drop_descendants(filled: DriverNode) -> None:
    """The owner of `a` may drop `a:b` if they have USE_CATALOG."""
    grant(filled, "ana", "use_catalog", kind="catalog", on="main")
    filled.done("PUT", f"{OWNERS}/schema/main.a", {"name": "ana", "type": "USER"})

    assert filled.delete(f"{API}/lake/catalogs/main/schemas/a%3Ab", user="ana")["dropped"] is True


def test_owner_of_a_disabled_metalake_can_be_loaded(filled: DriverNode) -> None:
    """The owner of a disabled metalake can be loaded, as Gravitino's web UI needs, but nothing else of it. Other users
    are refused.
    """
    grant(filled, "ana", "use_catalog", kind="catalog", on="main")
    filled.patch(f"{API}/lake", {"inUse": False})

    for user in ("admin", "ana"):
        assert filled.get(f"{OWNERS}/metalake/lake", user=user)["owner"] == {"name": "admin", "type": "user"}
    assert filled.get(f"{OWNERS}/metalake/lake", user="stranger").status == 403
    assert filled.get(f"{OWNERS}/catalog/main").status == 409
    assert filled.put(f"{OWNERS}/metalake/lake", {"name": "ana", "type": "USER"}).status == 409
