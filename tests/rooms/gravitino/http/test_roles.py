# SPDX-License-Identifier: Apache-2.0
"""Roles over Gravitino REST."""

from __future__ import annotations

import pytest

from limnos.services.identity import roles as role_service
from limnos.store.identity import roles as store_roles
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.interference import InterferencePoint, interfere

ALL = f"{API}/lake/roles"
SCHEMAS = f"{API}/lake/catalogs/main/schemas"


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


def on(full_name: str, kind: str, *privileges: str, condition: str = "allow") -> dict[str, object]:
    """Return a securable object as clients send it."""
    rules = [{"name": name, "condition": condition} for name in privileges]
    return {"fullName": full_name, "type": kind, "privileges": rules}


def role(*objects: dict[str, object], name: str = "r") -> dict[str, object]:
    """Return the request body that creates a role."""
    return {"name": name, "properties": {"p": "v"}, "securableObjects": list(objects)}


def test_role_is_returned_with_its_objects(node: DriverNode) -> None:
    """A role's objects are returned with types in lower case and complete names, sorted by path."""
    node.done("POST", SCHEMAS, {"name": "a:b"})
    body = role(
        on("main.a:b", "SCHEMA", "USE_SCHEMA", "CREATE_TABLE"),
        on("main", "catalog", "use_catalog", condition="DENY"),
        on("lake", "metalake", "create_role"),
    )

    created_role = node.done("POST", ALL, body)["role"]

    assert (created_role["name"], created_role["properties"], created_role["audit"]["creator"]) == (
        "r",
        {"p": "v"},
        "admin",
    )
    assert created_role["securableObjects"] == [
        on("lake", "metalake", "create_role"),
        on("main", "catalog", "use_catalog", condition="deny"),
        on("main.a:b", "schema", "use_schema", "create_table")
        | {
            "privileges": sorted(
                created_role["securableObjects"][2]["privileges"], key=lambda p: p["name"], reverse=True
            )
        },
    ]
    assert {p["name"] for p in created_role["securableObjects"][2]["privileges"]} == {"use_schema", "create_table"}
    assert node.get(f"{ALL}/r").json()["role"]["securableObjects"] == created_role["securableObjects"]


def test_dotted_schema_name_is_returned_in_back_quotes(node: DriverNode) -> None:
    """A schema name with a dot is returned in back-quotes, and accepted with and without them."""
    node.done("POST", SCHEMAS, {"name": "a.b"})

    bare = node.done("POST", ALL, role(on("main.a.b", "schema", "use_schema")))["role"]
    full_name = bare["securableObjects"][0]["fullName"]
    quoted = node.done("POST", ALL, role(on(full_name, "schema", "use_schema"), name="q"))["role"]

    assert full_name == "main.`a.b`"
    assert quoted["securableObjects"] == bare["securableObjects"]


def test_role_objects_follow_renames_and_drops(node: DriverNode) -> None:
    """A role lists its objects under their current names, and omits dropped ones."""
    for name in ("a", "b"):
        node.done("POST", SCHEMAS, {"name": name})
    node.done("POST", ALL, role(on("main.a", "schema", "use_schema"), on("main.b", "schema", "use_schema")))

    node.done("PUT", f"{API}/lake/catalogs/main", {"updates": [{"@type": "rename", "newName": "prime"}]})
    node.done("DELETE", f"{API}/lake/catalogs/prime/schemas/b")

    objects = node.get(f"{ALL}/r").json()["role"]["securableObjects"]
    assert [each["fullName"] for each in objects] == ["prime.a"]


@pytest.mark.parametrize("part", [1_000, 2])
def test_role_objects_are_read_with_the_rights_at_the_end_of_the_request(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """A user who loses the role after the decision and before its objects are read sees neither their new names nor
    new grants, whether the role is read at once or in parts.
    """
    for module in (role_service, store_roles):
        monkeypatch.setattr(module, "PART_MAX", part)
    for name in ("a", "b", "late"):
        node.done("POST", SCHEMAS, {"name": name})
    node.done("POST", ALL, role(on("main.a", "schema", "use_schema"), on("main.b", "schema", "use_schema")))
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["r"]})
    assert node.get(f"{ALL}/r", user="ana").status == 200

    async def act() -> None:
        grants = {"privileges": on("", "", "use_schema")["privileges"]}
        for path, body in (
            ("permissions/users/ana/revoke", {"roleNames": ["r"]}),
            ("permissions/roles/r/SCHEMA/main.late/grant", grants),
            ("catalogs/main", {"updates": [{"@type": "rename", "newName": "secret"}]}),
        ):
            answer = await node.answer("PUT", f"{API}/lake/{path}", body)
            assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = node.get(f"{ALL}/r", user="ana")

    assert interference.is_done
    assert (answer.status, b"secret" in answer.body, b"late" in answer.body) == (403, False, False), answer


def test_role_can_have_an_empty_list_of_objects(node: DriverNode) -> None:
    """An empty list of objects is accepted, a missing or null one is 400."""
    empty = node.post(ALL, role())
    missing = node.post(ALL, {"name": "q", "properties": {}})
    null = node.post(ALL, {"name": "q", "securableObjects": None})

    assert empty.json()["role"]["securableObjects"] == []
    assert error_fields(missing) == error_fields(null) == (400, 1001, "IllegalArgumentException")


@pytest.mark.parametrize(
    "securable, name",
    [
        (on("main", "catalog", "select_tabel"), "IllegalPrivilegeException"),
        (on("main", "catalog", "create_catalog"), "IllegalPrivilegeException"),
        (on("main", "catalog", "read_fileset"), "IllegalPrivilegeException"),
        (on("main", "catalog", "use_catalog", condition="maybe"), "IllegalPrivilegeException"),
        (on("none", "catalog", "use_catalog"), "IllegalMetadataObjectException"),
        (on("main.none", "schema", "use_schema"), "IllegalMetadataObjectException"),
        (on("main", "catalog"), "IllegalMetadataObjectException"),
        (on("main", "planet", "use_catalog"), "IllegalArgumentException"),
        (on("main.x", "catalog", "use_catalog"), "IllegalNameIdentifierException"),
        (on("main", "schema", "use_schema"), "IllegalNameIdentifierException"),
    ],
    ids=str,
)
def test_bad_objects_are_400(node: DriverNode, securable: dict[str, object], name: str) -> None:
    """An invalid privilege, binding, kind or object is 400 with code 1001 and its exception; nothing is created."""
    answer = node.post(ALL, role(securable))

    assert error_fields(answer) == (400, 1001, name)
    assert node.get(ALL)["names"] == []


def test_same_privilege_both_ways_is_refused(node: DriverNode) -> None:
    """A privilege both allowed and denied on one object, or an object listed twice, is 400."""
    both = on("main", "catalog", "use_catalog")
    both["privileges"] = [{"name": "use_catalog", "condition": word} for word in ("allow", "deny")]
    twice = on("main", "catalog", "use_catalog")

    assert error_fields(node.post(ALL, role(both))) == (400, 1001, "IllegalPrivilegeException")
    assert error_fields(node.post(ALL, role(twice, twice))) == (400, 1001, "IllegalArgumentException")


def test_existing_role_is_409(node: DriverNode) -> None:
    """A name in use is refused with 409 and code 1004."""
    node.done("POST", ALL, role())

    answer = node.post(ALL, role())

    assert error_fields(answer) == (409, 1004, "RoleAlreadyExistsException")
    assert str(answer["message"]).startswith(
        "Failed to operate role r operation [CREATE] under metalake [lake], reason ["
    )


def test_roles_can_be_loaded_only_by_their_holders(node: DriverNode) -> None:
    """Users can load the roles that they hold. Other roles are refused alike whether or not they exist."""
    node.done("POST", ALL, role(name="secret"))
    role_name = grant(node, "ana", "use_catalog", kind="catalog", on="main")

    own, other, absent = (node.get(f"{ALL}/{name}", user="ana") for name in (role_name, "secret", "absent"))

    assert node.get(ALL, user="ana")["names"] == [role_name]
    assert own.status == 200
    assert error_fields(other) == error_fields(absent) == (403, 1008, "ForbiddenException")
    assert other.body.replace(b"secret", b"absent") == absent.body
    assert error_fields(node.get(f"{ALL}/absent")) == (404, 1003, "NoSuchRoleException")


def test_drop_returns_dropped_and_deleted_and_ends_rights(node: DriverNode) -> None:
    """A drop returns `dropped` and `deleted`, also for a missing role. The role's rights end immediately."""
    role_name = grant(node, "ana", "use_catalog", kind="catalog", on="main")

    answers = [node.delete(f"{ALL}/{role_name}").json() for _ in range(2)]

    assert answers == [{"code": 0, "dropped": flag, "deleted": flag} for flag in (True, False)]
    assert node.get(f"{API}/lake/catalogs/main", user="ana").status == 403


def test_create_needs_create_role_privilege(node: DriverNode) -> None:
    """Creating a role needs CREATE_ROLE, and its creator may drop it."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    refused = node.post(ALL, role(), user="ana")
    grant(node, "ana", "create_role", kind="metalake", on="lake")
    node.done("POST", ALL, role(), user="ana")

    assert error_fields(refused) == (403, 1008, "ForbiddenException")
    assert node.delete(f"{ALL}/r", user="ana")["dropped"] is True


def test_visible_roles_on_an_object_are_listed(node: DriverNode) -> None:
    """The list has the roles with rules on the object that the caller may load. A missing object is 404 for the owner
    and 403 for others.
    """
    node.done("POST", ALL, role(on("main", "catalog", "use_catalog"), name="hidden"))
    role_name = grant(node, "ana", "use_catalog", kind="catalog", on="main")
    path = f"{API}/lake/objects/CATALOG/main/roles"

    assert node.get(path)["names"] == ["hidden", role_name]
    assert node.get(path, user="ana")["names"] == [role_name]
    assert error_fields(node.get(f"{API}/lake/objects/schema/main.none/roles")) == (
        404,
        1003,
        "NoSuchMetadataObjectException",
    )
    assert error_fields(node.get(f"{API}/lake/objects/schema/main.none/roles", user="ana")) == (
        403,
        1008,
        "ForbiddenException",
    )


@pytest.mark.parametrize(
    "existing, absent",
    [
        (on("main", "catalog", "use_catalog"), on("none", "catalog", "use_catalog")),
        (on("main.a", "schema", "use_schema"), on("main.b", "schema", "use_schema")),
        (on("main", "catalog", "select_tabel"), on("none", "catalog", "select_tabel")),
        (on("main.a", "schema", "read_fileset"), on("main.b", "schema", "read_fileset")),
    ],
    ids=str,
)
def test_create_does_not_reveal_existence_of_objects(
    node: DriverNode, existing: dict[str, object], absent: dict[str, object]
) -> None:
    """A user with only CREATE_ROLE gets the same refusal for a role on an existing object and on a missing one."""
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "a"})
    grant(node, "rolf", "create_role", kind="metalake", on="lake")

    answers = [node.post(ALL, role(each), user="rolf") for each in (existing, absent)]

    assert error_fields(answers[0]) == error_fields(answers[1])
    names = [str(each["fullName"]) for each in (existing, absent)]
    messages = [str(answer["message"]).replace(name, "X") for answer, name in zip(answers, names, strict=True)]
    assert messages[0] == messages[1]
    assert answers[0].status == 400
