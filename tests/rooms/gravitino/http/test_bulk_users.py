# SPDX-License-Identifier: Apache-2.0
"""Bulk requests for users: each user is handled separately, and an error for one does not affect the others."""

from __future__ import annotations

from tests.http.driver import API, DriverNode

BULK = "/api/bulk/metalakes/lake/users"


def test_valid_users_are_changed_and_invalid_ones_reported(node: DriverNode) -> None:
    """Valid users are added and removed; each other one is reported by its position with the error of a single
    request.
    """
    requested_users = [
        {"name": "ana", "externalId": "1"},
        {"name": "admin"},
        {"name": ""},
        {"name": "bob", "enabled": False},
        {"name": "ana"},
    ]
    added = node.done("POST", f"{BULK}/add", {"users": requested_users})
    removed = node.done("POST", f"{BULK}/remove", {"names": ["ana", "gone", "bob", "admin"]})

    assert [(each["name"], each.get("externalId"), each["enabled"]) for each in added["users"]] == [
        ("ana", "1", True),
        ("bob", None, False),
    ]
    assert [(each["index"], each["name"], each["code"]) for each in added["errors"]] == [
        (1, "admin", 1004),
        (2, "", 1001),
        (4, "ana", 1004),
    ]
    assert added["summary"] == {"total": 5, "succeeded": 2, "failed": 3}
    assert removed["names"] == ["ana", "bob"]
    assert [(each["index"], each["type"]) for each in removed["errors"]] == [
        (1, "NoSuchUserException"),
        (3, "IllegalArgumentException"),
    ]
    assert "ana" not in node.done("GET", f"{API}/lake/users")["names"]


def test_number_of_users_is_limited(node: DriverNode) -> None:
    """Zero or more than a hundred users are refused, and nothing is changed."""
    many = [{"name": f"u{number}"} for number in range(101)]

    for body in ({"users": []}, {"users": many}):
        answer = node.ask("POST", f"{BULK}/add", body)
        assert answer.status == 400
        assert "1 to 100 users" in answer.json()["message"]
    assert "u1" not in node.done("GET", f"{API}/lake/users")["names"]
