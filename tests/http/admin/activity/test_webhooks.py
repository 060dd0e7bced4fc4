# SPDX-License-Identifier: Apache-2.0
"""Webhooks over HTTP: who may create them, their allowed addresses, and the fields that are shown."""

from __future__ import annotations

import msgspec
import pytest

from limnos.model.errors import BadRequest
from limnos.services.activity import webhooks
from limnos.services.activity.feed_positions import position_of
from limnos.services.activity.webhooks import url_check
from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import make_space

HOOKS = f"{OWN}/metalakes/lake/webhooks"
URL = "https://hooks.example.com/limnos"


def test_webhook_is_created_listed_and_deleted(node: DriverNode) -> None:
    """The secret is returned only at creation. The list shows how many changes are pending."""
    webhook = node.done("POST", HOOKS, {"url": URL})
    make_space(node, "a")

    (listed,) = node.get(HOOKS).json()["webhooks"]
    dropped = node.delete(f"{HOOKS}/{webhook['id']}")

    assert webhook["secret"].startswith("whsec_")
    assert "secret" not in listed
    assert webhook["secret"].removeprefix("whsec_") not in str(listed)
    assert {key: listed[key] for key in ("id", "url", "user", "state", "behind", "attempts", "error")} == {
        "id": webhook["id"],
        "url": URL,
        "user": "admin",
        "state": "well",
        "behind": 1,
        "attempts": 0,
        "error": None,
    }
    assert dropped.status == 200
    assert node.delete(f"{HOOKS}/{webhook['id']}").status == 404
    assert node.get(HOOKS).json() == {"webhooks": []}


def test_operations_of_a_webhook_are_stored(node: DriverNode) -> None:
    """A webhook for some operations lists each once. A word that no change has is refused with the nearest one."""
    node.done("POST", HOOKS, {"url": URL, "operations": ["fail", "late", "fail"]})
    refused = node.post(HOOKS, {"url": URL, "operations": ["failed"]})
    of_audit = node.post(HOOKS, {"url": URL, "operations": ["grant"]})

    (listed,) = node.get(HOOKS).json()["webhooks"]

    assert of_audit.status == 400
    assert "roles are assigned by give" in str(of_audit.json())
    assert listed["operations"] == ["fail", "late"]
    assert "did you mean fail?" in str(refused.json())


def test_webhook_may_start_at_the_oldest_change(node: DriverNode) -> None:
    """A webhook may begin with the oldest stored change."""
    make_space(node, "a")
    node.done("POST", HOOKS, {"url": URL, "after": "oldest"})

    (listed,) = node.get(HOOKS).json()["webhooks"]

    assert listed["behind"] > 1


@pytest.mark.parametrize(
    "body",
    [
        {"url": "https://elsewhere.example.com/limnos"},
        {"url": "http://hooks.example.com/limnos"},
        {"url": "https://hooks.example.com:8443/limnos"},
        {"url": "https://user@hooks.example.com/limnos"},
        {"url": "https://hooks.example.com@elsewhere.example.com/"},
        {"url": "https://hooks.example.com.elsewhere.example.com/"},
        {"url": "https://hooks.example.com/a\tb"},
        {"url": "https://hooks.example.com/a b"},
        {"url": "https://hooks.example.com/#x"},
        {"url": "ftp://hooks.example.com/"},
        {"url": "https://["},
        {"url": "https://[::1/"},
        {"url": "https://[hooks.example.com]/"},
        {"url": "https://hooks.example.com/" + "a" * 2000},
        {"url": ""},
        {"url": URL, "after": "x"},
        {"url": URL, "operations": ["failed"]},
        {"url": URL, "operations": "fail"},
        {"url": URL, "more": 1},
    ],
    ids=str,
)
def test_malformed_or_disallowed_url_is_400(node: DriverNode, body: dict[str, object]) -> None:
    """A URL that is malformed or that the server's settings do not allow is refused with 400."""
    assert node.post(HOOKS, body).status == 400
    assert node.get(HOOKS).json() == {"webhooks": []}


@pytest.mark.parametrize(
    "url, fine",
    [
        ("https://h.example.com/in", True),
        ("https://h.example.com/in/deep?x=1", True),
        ("https://H.example.com/in/deep", True),
        ("https://h.example.com/inner", False),
        ("https://h.example.com/", False),
        ("https://h.example.com/in/../out", False),
        ("https://h.example.com/in/%2e%2E/out", False),
        ("https://h.example.com/in/%252e%252E/out", False),
        ("https://h.example.com/in/..;x=1/out", False),
        ("https://h.example.com/in/%2e%2e%3b/out", False),
        ("https://h.example.com/in/%2525252525252e/out", False),
        ("https://h.example.com/in/100%25/x..;y", True),
        ("https://h.example.com/in/..%5Cout", False),
        ("https://h.example.com\\@elsewhere/in/", False),
        ("https://h.example.com/in\r\nx: y", False),
    ],
)
def test_allowed_url_covers_whole_path_segments_below_it(url: str, *, fine: bool) -> None:
    """An allowed URL with a path allows the URLs below that path, by whole path segments."""
    allowed = ("https://h.example.com/in/",)

    if fine:
        url_check(url, allowed)
    else:
        with pytest.raises(BadRequest):
            url_check(url, allowed)


def test_only_the_metalake_owner_manages_webhooks(node: DriverNode) -> None:
    """Only the metalake's owner may list, create, retry and delete webhooks; an owner of a catalog may not."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PUT", f"{API}/lake/owners/catalog/main", {"name": "ana", "type": "USER"})
    webhook = node.done("POST", HOOKS, {"url": URL})

    answers = [
        node.get(HOOKS, user="ana"),
        node.post(HOOKS, {"url": URL}, user="ana"),
        node.post(f"{HOOKS}/{webhook['id']}/retry", user="ana"),
        node.delete(f"{HOOKS}/{webhook['id']}", user="ana"),
    ]

    assert [answer.status for answer in answers] == [403] * 4


def test_webhook_id_of_another_metalake_is_unknown(node: DriverNode) -> None:
    """The id of another metalake's webhook is answered like an unknown id."""
    node.done("POST", API, {"name": "other"})
    webhook = node.done("POST", f"{OWN}/metalakes/other/webhooks", {"url": URL})

    assert node.delete(f"{HOOKS}/{webhook['id']}").status == 404
    assert node.post(f"{HOOKS}/{webhook['id']}/retry").status == 404
    assert node.delete(f"{OWN}/metalakes/other/webhooks/{webhook['id']}").status == 200


@pytest.mark.parametrize("webhook_id", ["0", "x", "1e3", "9" * 30, "%F0%9F%90%9F"])
def test_malformed_webhook_id_is_404(node: DriverNode, webhook_id: str) -> None:
    """A malformed webhook id is 404."""
    assert node.delete(f"{HOOKS}/{webhook_id}").status == node.post(f"{HOOKS}/{webhook_id}/retry").status == 404


def test_forged_position_counts_no_foreign_pending_changes(node: DriverNode) -> None:
    """A webhook at a forged position with zones of another metalake does not count that metalake's pending changes."""
    other = node.done("POST", API, {"name": "other", "comment": "", "properties": {}})
    assert other["code"] == 0
    node.done("POST", f"{API}/other/groups", {"name": "crew"})
    own_position = position_of(node.done("GET", f"{OWN}/metalakes/lake/changes?after=now")["next"])
    theirs = position_of(node.done("GET", f"{OWN}/metalakes/other/changes?after=now")["next"])
    forged = msgspec.structs.replace(own_position, zones=own_position.zones | dict.fromkeys(theirs.zones, 0))
    assert all(theirs.zones.values())

    node.done("POST", HOOKS, {"url": URL, "after": forged.text()})

    assert [each["behind"] for each in node.get(HOOKS).json()["webhooks"]] == [0]


def test_position_of_another_metalake_is_refused(node: DriverNode) -> None:
    """A webhook cannot be created or retried at a position in another metalake's feed."""
    node.done("POST", API, {"name": "other", "comment": "", "properties": {}})
    theirs = node.done("GET", f"{OWN}/metalakes/other/changes?after=now")["next"]
    webhook = node.done("POST", HOOKS, {"url": URL})
    refused = [
        node.post(path, {"url": URL, "after": theirs} if path == HOOKS else {"after": theirs})
        for path in (HOOKS, f"{HOOKS}/{webhook['id']}/retry")
    ]

    assert [answer.status for answer in refused] == [400, 400]
    assert all("another metalake" in str(answer.json()) for answer in refused)
    assert len(node.get(HOOKS).json()["webhooks"]) == 1


def test_number_of_webhooks_is_limited_per_metalake(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of webhooks is limited in each metalake separately."""
    monkeypatch.setattr(webhooks, "WEBHOOKS_MAX", 2)
    node.done("POST", API, {"name": "other", "comment": "", "properties": {}})
    responses = [node.post(HOOKS, {"url": URL}) for _ in range(3)]
    other = node.post(f"{OWN}/metalakes/other/webhooks", {"url": URL})
    node.done("DELETE", f"{HOOKS}/{responses[0]['id']}")

    assert [answer.status for answer in responses] == [200, 200, 400]
    assert other.status == 200
    assert node.post(HOOKS, {"url": URL}).status == 200
