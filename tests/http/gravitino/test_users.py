"""Users over Gravitino REST."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant

ALL = f"{API}/lake/users"


def told(answer: DriverAnswer) -> tuple[int, object, object]:
    """Status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


def test_added_user_is_answered_whole(node: DriverNode) -> None:
    """A new user has no roles, is enabled unless told otherwise, and keeps the outside id."""
    plain = node.done("POST", ALL, {"name": "ana"})["user"]
    full = node.done("POST", ALL, {"name": "ben", "externalId": "b-1", "enabled": False})["user"]

    assert (plain["name"], plain["roles"], plain["enabled"], plain["audit"]["creator"]) == ("ana", [], True, "admin")
    assert "externalId" not in plain
    assert (full["externalId"], full["enabled"]) == ("b-1", False)


def test_list_gives_names_or_everything(node: DriverNode) -> None:
    """A list has names; with `details` whole users with their roles."""
    role = grant(node, "ana", "use_catalog", kind="catalog", on="main")

    names, details = node.get(ALL)["names"], node.get(f"{ALL}?details=true").json()["users"]

    assert names == ["admin", "ana"]
    assert [(user["name"], user["roles"]) for user in details] == [("admin", []), ("ana", [role])]


@pytest.mark.parametrize("kind", ["users", "groups", "roles"])
@pytest.mark.parametrize("name", ["limit", "pageSize", "pageToken"])
def test_a_page_is_refused_by_name(node: DriverNode, kind: str, name: str) -> None:
    """These lists come whole, as Gravitino's do: who asks for a part is told so, and is not given more than that."""
    refused = node.get(f"{API}/lake/{kind}?{name}=1")

    assert told(refused) == (400, 1001, "IllegalArgumentException")
    assert name in str(refused["message"])
    assert node.get(f"{API}/lake/{kind}?_t=1").status == 200


def test_list_shrinks_to_oneself(node: DriverNode) -> None:
    """A member without MANAGE_USERS sees only themselves."""
    node.done("POST", ALL, {"name": "ana"})

    assert node.get(ALL, user="ana")["names"] == ["ana"]


def test_user_is_loaded_by_managers_and_by_themselves(node: DriverNode) -> None:
    """Others are refused alike whether the user exists or not; who may know gets 404."""
    node.done("POST", ALL, {"name": "ana"})
    node.done("POST", ALL, {"name": "ben"})

    own, other, absent = (node.get(f"{ALL}/{name}", user="ana") for name in ("ana", "ben", "zoe"))

    assert own.json()["user"]["name"] == "ana"
    assert told(other) == told(absent) == (403, 1008, "ForbiddenException")
    assert other.body.replace(b"ben", b"zoe") == absent.body
    assert told(node.get(f"{ALL}/zoe")) == (404, 1003, "NoSuchUserException")


def test_existing_user_is_409(node: DriverNode) -> None:
    """A name that is taken is 409 with code 1004, in the words of the users' handler."""
    answer = node.post(ALL, {"name": "admin"})

    assert told(answer) == (409, 1004, "UserAlreadyExistsException")
    assert str(answer["message"]).startswith(
        "Failed to operate user admin operation [ADD] under metalake [lake], reason ["
    )


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "a\nb"}, {"name": "x" * 256}, {}, {"name": 1}], ids=str)
def test_bad_users_are_400(node: DriverNode, body: object) -> None:
    """A name that is empty, too long or holds control characters is 400 with code 1001."""
    answer = node.post(ALL, body)

    assert told(answer) == (400, 1001, "IllegalArgumentException")


def test_removal_says_whether_there_was_one(node: DriverNode) -> None:
    """Removing is answered with whether there was such a user; the next request of a removed user is refused."""
    node.done("POST", ALL, {"name": "ana"})

    answers = [node.delete(f"{ALL}/ana").json() for _ in range(2)]

    assert answers == [{"code": 0, "removed": True}, {"code": 0, "removed": False}]
    assert node.get(f"{API}/lake", user="ana").status == 403


def test_owner_of_the_metalake_stays(node: DriverNode) -> None:
    """The user who owns the metalake cannot be removed: 400 says to hand it over first."""
    answer = node.delete(f"{ALL}/admin")

    assert told(answer) == (400, 1001, "IllegalArgumentException")
    assert "another owner first" in str(answer["message"])


def test_managing_takes_manage_users(node: DriverNode) -> None:
    """Without MANAGE_USERS adding and removing is refused; with it allowed, at the next request."""
    node.done("POST", ALL, {"name": "ana"})

    refused = [node.post(ALL, {"name": "ben"}, user="ana"), node.delete(f"{ALL}/zoe", user="ana")]
    grant(node, "ana", "manage_users", kind="metalake", on="lake")
    added = node.post(ALL, {"name": "ben"}, user="ana")

    assert [told(answer) for answer in refused] == [(403, 1008, "ForbiddenException")] * 2
    assert added.status == 200


def test_names_may_hold_nearly_anything(node: DriverNode) -> None:
    """An address, a space, a percent sign and other alphabets come back as they went in."""
    for name, path in [("ana@x.org", "ana%40x.org"), ("a b", "a%20b"), ("50%", "50%25"), ("øle", "%C3%B8le")]:
        node.done("POST", ALL, {"name": name})

        assert node.get(f"{ALL}/{path}").json()["user"]["name"] == name


def test_percent_signs_in_messages_are_doubled(node: DriverNode) -> None:
    """Clients format messages as printf does: no percent sign stands alone, in whatever part of the message."""
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
