# SPDX-License-Identifier: Apache-2.0
"""Pages about the server: nodes and clocks, settings without secrets, service accounts, and the needed rights."""

from __future__ import annotations

import asyncio

import pytest

from limnos.app.node_beats import NodeBeats
from limnos.services.request.concurrency.commit_watcher import WAITING
from limnos.services.upkeep.effective_settings import EFFECTIVE_SETTINGS, SettingLine
from limnos.store.activity.node_beats import LIST
from tests.http.driver import API, OWN, DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

PAGES = ("/console/nodes", "/console/settings", "/console/accounts")
ROUTES = ("nodes", "settings", "service-accounts")


def beats_of(node: DriverNode) -> NodeBeats:
    """Write this node's first heartbeat."""
    beats = NodeBeats(node.built.services)
    node.runner.run(beats.beat())
    return beats


def test_nodes_and_clocks_are_shown(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page marks the node that answers, a node without recent heartbeats as silent, and a wrong clock."""
    beats_of(lake)
    beats_of(lake)
    monkeypatch.setattr(type(lake.built.services.store.time), "offset_ms", 61_000)
    monkeypatch.setitem(WAITING, (), 3)
    lake.runner.run(NodeBeats(lake.built.services).beat())
    page = ConsoleVisitor(lake).sign_in().read("/console/nodes").text

    assert page.count("alive") == 3
    assert page.count("serves this page") == 1
    assert page.count("correct it") == 1
    assert "+61.0 s" in page
    assert "Search index" in page
    assert "feed waiting" in page


def test_failing_background_work_is_shown_with_its_error(lake: DriverNode) -> None:
    """The page lists the background loops of this node whose last step failed, with the error and the next attempt."""
    before = ConsoleVisitor(lake).sign_in().read("/console/nodes").text

    async def fail() -> None:
        raise OSError(5, "Input/output error")

    async def story() -> None:
        await lake.built.services.loops.add("webhooks", every_s=2.0).attempt(fail)

    lake.runner.run(story())
    page = ConsoleVisitor(lake).sign_in().read("/console/nodes").text

    assert "All background work of this node succeeds." in before
    assert "OSError: [Errno 5] Input/output error" in page
    assert "webhooks" in page
    assert "All background work of this node succeeds." not in page


def test_failing_background_work_of_other_nodes_is_shown(lake: DriverNode) -> None:
    """A node reports its failing loops with its heartbeat: their names, the times and the classes of the errors, but no
    message, which may hold a secret. The page and the API of another node show them until they succeed.
    """

    async def fail() -> None:
        raise OSError(5, "token of db.internal")

    async def succeed() -> None:
        pass

    services = lake.built.services
    loop = services.loops.add("webhooks", every_s=2.0)
    lake.runner.run(loop.attempt(fail))
    other = beats_of(lake)
    lake.runner.run(loop.attempt(succeed))
    own = beats_of(lake)
    page = ConsoleVisitor(lake).sign_in().read("/console/nodes").text
    failing = {each["id"]: each["failing"] for each in lake.done("GET", f"{OWN}/nodes")["nodes"]}

    assert [(each["name"], each["error"]) for each in failing[other.id]] == [("webhooks", "OSError")]
    assert failing[other.id][0]["since"].startswith("20")
    assert failing[own.id] == []
    assert "All background work of this node succeeds." in page
    assert "OSError" in page
    assert "db.internal" not in page
    lake.runner.run(other.beat())
    assert "The other nodes report no failing" in ConsoleVisitor(lake).sign_in().read("/console/nodes").text


def test_heartbeat_follows_a_failure_at_once(lake: DriverNode) -> None:
    """A node whose background work begins to fail does not wait half a minute with its next heartbeat."""

    async def fail() -> None:
        raise OSError(5, "Input/output error")

    beats = beats_of(lake)
    lake.runner.run(beats._beat_if_due())
    lake.runner.run(lake.built.services.loops.add("webhooks", every_s=2.0).attempt(fail))

    lake.runner.run(beats._beat_if_due())

    (row,) = lake.built.services.store.find((LIST, {"limit": 2}))
    assert '"webhooks"' in row[6]


def test_silent_node_is_marked_and_forgotten(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is silent after two minutes without a heartbeat, and removed after a day. A node that stops is removed
    immediately.
    """
    silent_node, beats = beats_of(lake), beats_of(lake)
    clock = lake.built.services.store.time
    real = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 120_000)
    nodes = lake.done("GET", f"{OWN}/nodes")["nodes"]
    assert {each["id"]: (each["silent"], each["own"]) for each in nodes} == {
        silent_node.id: (True, False),
        beats.id: (True, True),
    }

    lake.runner.run(beats.beat())
    nodes = lake.done("GET", f"{OWN}/nodes")["nodes"]
    assert {each["id"]: each["silent"] for each in nodes} == {silent_node.id: True, beats.id: False}
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 90_000_000)
    lake.runner.run(beats.beat())
    assert [each["id"] for each in lake.done("GET", f"{OWN}/nodes")["nodes"]] == [beats.id]
    lake.runner.run(_left(beats))
    assert lake.done("GET", f"{OWN}/nodes")["nodes"] == []


async def _left(beats: NodeBeats) -> None:
    beats_task = asyncio.create_task(beats.run())
    await asyncio.sleep(0)
    beats_task.cancel()
    await asyncio.wait([beats_task])


def test_settings_hide_secrets(lake: DriverNode) -> None:
    """Settings that differ from the default come first. A secret is masked on the page and over the API."""
    lines = (
        SettingLine(name="names.separator", value='"."', is_default=True, is_secret=False),
        SettingLine(name="storage.keys", value='"***"', is_default=False, is_secret=True, origin="environment X"),
    )
    EFFECTIVE_SETTINGS.put(lake.built.services, lines)
    page = ConsoleVisitor(lake).sign_in().read("/console/settings").text

    assert page.index("storage.keys") < page.index("names.separator")
    assert "environment X" in page
    assert lake.done("GET", f"{OWN}/settings")["settings"] == [
        {"name": "names.separator", "value": ".", "default": True, "secret": False, "origin": "default"},
        {"name": "storage.keys", "value": "***", "default": False, "secret": True, "origin": "environment X"},
    ]


def add_robot_elsewhere(node: DriverNode) -> None:
    """Create a service account that is a user of another metalake alone."""
    node.done("POST", API, {"name": "other"})
    node.done("POST", f"{API}/other/users", {"name": "robot"})
    node.done("POST", f"{OWN}/users/robot/secrets", {})


def test_service_accounts_are_listed(lake: DriverNode) -> None:
    """A service account is listed while it has a valid secret, with its creator and a link to its secrets."""
    lake.done("POST", f"{API}/lake/users", {"name": "bot"})
    first = lake.done("POST", f"{OWN}/users/bot/secrets", {"expires_in_s": 1000})
    add_robot_elsewhere(lake)
    admin = ConsoleVisitor(lake).sign_in()
    page = admin.read("/console/accounts")

    assert "added by admin" in page.text
    assert "not a user of it" in page.text
    assert {"/console/secrets/lake/bot", "/console/people/user/lake/bot", "/console/secrets/lake/robot"} <= set(
        page.hrefs
    )
    assert "/console/people/user/lake/robot" not in page.hrefs
    accounts = lake.done("GET", f"{OWN}/service-accounts")["service_accounts"]
    assert [(each["user"], each["secrets"], each["ends_at"] is None) for each in accounts] == [
        ("bot", 1, False),
        ("robot", 1, True),
    ]
    lake.done("DELETE", f"{OWN}/users/bot/secrets/{first['id']}")
    assert [each["user"] for each in lake.done("GET", f"{OWN}/service-accounts")["service_accounts"]] == ["robot"]


def test_service_account_roles_are_listed_and_changed(lake: DriverNode) -> None:
    """The list of service accounts names the roles. The account's page assigns and revokes roles, links to the secrets,
    and disables the account.
    """
    role = grant(lake, "bot", "use_catalog", kind="catalog", on="main")
    lake.done("POST", f"{OWN}/users/bot/secrets", {})
    admin = ConsoleVisitor(lake).sign_in()

    (row,) = [href for href in admin.read("/console/accounts").hrefs if href.endswith("/people/user/lake/bot")]
    page = admin.read(row)

    assert role in admin.read("/console/accounts").text
    assert "A service account" in page.text
    assert ("get", "/console/assign/user/lake/bot") in page.actions
    assert {("post", "/console/secrets/end"), ("post", "/console/people/enable")} <= set(page.actions)
    assert "/console/secrets/lake/bot" in page.hrefs
    admin.post("/console/people/enable", {"metalake": "lake", "name": "bot", "enabled": "no"})
    assert "disabled" in admin.read("/console/accounts").text


def test_a_service_account_is_added_to_the_metalake(lake: DriverNode) -> None:
    """The page of a service account that is not a user of the metalake says so, and has a form that adds it."""
    add_robot_elsewhere(lake)
    admin = ConsoleVisitor(lake).sign_in()

    page = admin.read("/console/secrets/lake/robot")
    done = admin.post("/console/people/create", {"metalake": "lake", "kind": "user", "name": "robot"})

    assert "robot is not a user of the metalake lake" in page.text
    assert ("post", "/console/people/create") in page.actions
    assert done.headers["location"].startswith("/console/people/user/lake/robot")
    after = admin.read("/console/secrets/lake/robot")
    assert "is not a user" not in after.text
    assert ("post", "/console/people/create") not in after.actions


def test_server_state_is_visible_to_service_admins_only(lake: DriverNode) -> None:
    """The metalake's owner and a member are refused, on the pages and over the API."""
    for name in ("olga", "ana"):
        lake.done("POST", f"{API}/lake/users", {"name": name})
    lake.done("PUT", f"{API}/lake/owners/metalake/lake", {"name": "olga", "type": "USER"})

    for user in ("olga", "ana"):
        visitor = ConsoleVisitor(lake).sign_in(user)
        assert [visitor.get(page).status for page in PAGES] == [403] * len(PAGES)
        assert [lake.get(f"{OWN}/{route}", user=user).status for route in ROUTES] == [403] * len(ROUTES)


def test_storage_of_a_catalog_is_checked(lake: DriverNode) -> None:
    """The button runs the storage check and shows each of its steps. Members who do not own the catalog are refused."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    admin, ana = ConsoleVisitor(lake).sign_in(), ConsoleVisitor(lake).sign_in("ana")
    listed = admin.read("/console/storage")
    fields = {"metalake": "lake", "catalog": "main"}
    page = text_of(admin.post("/console/storage/check", fields))

    assert ("post", "/console/storage/check") in listed.actions
    assert "Storage of main" in page
    assert "passed" in page
    assert ana.post("/console/storage/check", fields).status == 403
    assert admin.post("/console/storage/check", {"metalake": "lake", "catalog": "none"}).status == 404


@pytest.mark.parametrize("route", ["nodes", "settings"])
def test_refusal_names_the_right_that_is_missing(lake: DriverNode, route: str) -> None:
    """The refusal names the missing right of a service admin."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})

    refused = lake.get(f"{OWN}/{route}", user="ana")

    assert (refused.status, b"service admin" in refused.body) == (403, True), refused.body
