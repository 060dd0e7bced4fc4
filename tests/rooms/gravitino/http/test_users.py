# SPDX-License-Identifier: Apache-2.0
"""Users over Gravitino REST."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant

ALL = f"{API}/lake/users"


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


def test_create_returns_the_user(node: DriverNode) -> None:
    """A created user has no roles, is enabled by default, and has its external id."""
    plain = node.done("POST", ALL, {"name": "ana"})["user"]
    full = node.done("POST", ALL, {"name": "ben", "externalId": "b-1", "enabled": False})["user"]

    assert (plain["name"], plain["roles"], plain["enabled"], plain["audit"]["creator"]) == ("ana", [], True, "admin")
    assert "externalId" not in plain
    assert (full["externalId"], full["enabled"]) == ("b-1", False)


def test_list_returns_names_or_details(node: DriverNode) -> None:
    """A list has names; with `details` whole users with their roles."""
    role = grant(node, "ana", "use_catalog", kind="catalog", on="main")

    names, details = node.get(ALL)["names"], node.get(f"{ALL}?details=true").json()["users"]

    assert names == ["admin", "ana"]
    assert [(user["name"], user["roles"]) for user in details] == [("admin", []), ("ana", [role])]


@pytest.mark.parametrize("kind", ["users", "groups", "roles"])
@pytest.mark.parametrize("name", ["limit", "pageSize", "pageToken"])
def test_paging_parameters_are_refused_by_name(node: DriverNode, kind: str, name: str) -> None:
    """As in Gravitino, lists are not paged: paging parameters are refused by name."""
    refused = node.get(f"{API}/lake/{kind}?{name}=1")

    assert error_fields(refused) == (400, 1001, "IllegalArgumentException")
    assert name in str(refused["message"])
    assert node.get(f"{API}/lake/{kind}?_t=1").status == 200


def test_list_without_manage_users_has_only_the_caller(node: DriverNode) -> None:
    """A member without MANAGE_USERS sees only their own name in the list."""
    node.done("POST", ALL, {"name": "ana"})

    assert node.get(ALL, user="ana")["names"] == ["ana"]


def test_users_can_be_loaded_by_managers_and_by_themselves(node: DriverNode) -> None:
    """Members who do not manage users get the same refusal whether or not another user exists. Managers get 404."""
    node.done("POST", ALL, {"name": "ana"})
    node.done("POST", ALL, {"name": "ben"})

    own, other, absent = (node.get(f"{ALL}/{name}", user="ana") for name in ("ana", "ben", "zoe"))

    assert own.json()["user"]["name"] == "ana"
    assert error_fields(other) == error_fields(absent) == (403, 1008, "ForbiddenException")
    assert other.body.replace(b"ben", b"zoe") == absent.body
    assert error_fields(node.get(f"{ALL}/zoe")) == (404, 1003, "NoSuchUserException")


def test_existing_user_is_409(node: DriverNode) -> None:
    """A name in use is refused with 409, code 1004 and Gravitino's message for users."""
    answer = node.post(ALL, {"name": "admin"})

    assert error_fields(answer) == (409, 1004, "UserAlreadyExistsException")
    assert str(answer["message"]).startswith(
        "Failed to operate user admin operation [ADD] under metalake [lake], reason ["
    )


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "a\nb"}, {"name": "x" * 256}, {}, {"name": 1}], ids=str)
def test_bad_users_are_400(node: DriverNode, body: object) -> None:
    """An empty or too long name, or one with control characters, is 400 with code 1001."""
    answer = node.post(ALL, body)

    assert error_fields(answer) == (400, 1001, "IllegalArgumentException")


def test_removal_reports_whether_the_user_existed(node: DriverNode) -> None:
    """Removing answers whether the user existed; the removed user's next request is refused."""
    node.done("POST", ALL, {"name": "ana"})

    answers = [node.delete(f"{ALL}/ana").json() for _ in range(2)]

    assert answers == [{"code": 0, "removed": True}, {"code": 0, "removed": False}]
    assert node.get(f"{API}/lake", user="ana").status == 403


def test_owner_of_the_metalake_cannot_be_removed(node: DriverNode) -> None:
    """Removing the metalake's owner is refused with 400, and the message says to transfer the ownership first."""
    answer = node.delete(f"{ALL}/admin")

    assert error_fields(answer) == (400, 1001, "IllegalArgumentException")
    assert "another owner first" in str(answer["message"])


def test_changes_need_manage_users_privilege(node: DriverNode) -> None:
    """Adding and removing users need MANAGE_USERS. A grant of it takes effect with the next request."""
    node.done("POST", ALL, {"name": "ana"})

    refused = [node.post(ALL, {"name": "ben"}, user="ana"), node.delete(f"{ALL}/zoe", user="ana")]
    grant(node, "ana", "manage_users", kind="metalake", on="lake")
    added = node.post(ALL, {"name": "ben"}, user="ana")

    assert [error_fields(answer) for answer in refused] == [(403, 1008, "ForbiddenException")] * 2
    assert added.status == 200


def test_unusual_user_names_are_returned_unchanged(node: DriverNode) -> None:
    """Names with an address, a space, a percent sign or other alphabets are returned unchanged."""
    for name, path in [("ana@x.org", "ana%40x.org"), ("a b", "a%20b"), ("50%", "50%25"), ("øle", "%C3%B8le")]:
        node.done("POST", ALL, {"name": name})

        assert node.get(f"{ALL}/{path}").json()["user"]["name"] == name


def test_percent_signs_in_messages_are_doubled(node: DriverNode) -> None:
    """Percent signs are doubled in every part of a message, because clients format it with printf."""
    node.done("POST", ALL, {"name": "50%"})

    messages = [
        str(answer["message"])
        for answer in (
            node.post(ALL, {"name": "50%"}),
            node.get(f"{ALL}/60%25"),
            node.get(f"{ALL}/60%25", user="50%"),
            node.get(f"{API}/lake", user="60%"),
        )
    ]

    assert all("0%%" in message for message in messages)
    assert all("%" not in message.replace("%%", "") and "%%%" not in message for message in messages)
