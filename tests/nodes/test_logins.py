# SPDX-License-Identifier: Apache-2.0
"""Password sessions at two nodes on one store: a session of one node is valid at the other, and its end takes effect
there at the next request.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import GRAVITINO, OWN, Wire

WORDS = "a few words of my own"
OTHERS = "another few words"
ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "2"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def nodes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Process, Process]]:
    """Two nodes on one store that accept no unauthenticated user names."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    directory = tmp_path_factory.mktemp(request.param)
    env = {"LIMNOS__ACCESS__AUTHENTICATION": "token"}
    database = cluster.database() if cluster else None
    pair = tuple(Process(directory / "data", log=directory / f"{i}.log", database=database, env=env) for i in (0, 1))
    try:
        for node in pair:
            node.start()
        yield pair[0], pair[1]
    finally:
        for node in pair:
            node.stop()
        if cluster is not None:
            cluster.stop()


@pytest.fixture
def admins(nodes: tuple[Process, Process]) -> Iterator[tuple[Wire, Wire]]:
    """The administrator at each node. Ana is a user of the metalake and has her initial password."""
    one, two = (Wire(node.uri, token=nodes[0].token) for node in nodes)
    one.do("POST", f"{GRAVITINO}/users", {"name": "ana"}, fine=(409,))
    set_password(one, WORDS)
    yield one, two
    one.close()
    two.close()


def set_password(admin: Wire, words: str) -> None:
    """Set ana's password."""
    admin.do("PUT", f"{OWN}/users/ana/password", {"password": words})


def log_in(node: Process, words: str = WORDS) -> dict[str, object]:
    """Open a session of ana. Raises AssertionError if it is refused."""
    status, body = ask_login(node, {"user": "ana", "password": words})
    assert status == 200, body
    return body


def ask_login(node: Process, body: dict[str, object]) -> tuple[int, dict[str, object]]:
    """Request a session."""
    wire = Wire(node.uri, user="nobody")
    wire._headers = {}
    try:
        answer = wire.ask("POST", f"{OWN}/login", body)
        return answer.status, answer.body
    finally:
        wire.close()


def statuses(nodes: tuple[Process, Process], session: dict[str, object]) -> list[int]:
    """Return each node's status for a load of the metalake with the session."""
    answer_statuses = []
    for node in nodes:
        wire = Wire(node.uri, token=str(session["token"]))
        answer_statuses.append(wire.ask("GET", GRAVITINO).status)
        wire.close()
    return answer_statuses


def test_session_is_valid_on_both_nodes(nodes: tuple[Process, Process], admins: tuple[Wire, Wire]) -> None:
    """A session that one node opens is valid at both at once, and its refresh token works at the other node."""
    for number in range(ROUNDS):
        here, other_node = nodes[number % 2], nodes[1 - number % 2]
        session = log_in(here)
        assert statuses(nodes, session) == [200, 200]
        status, following = ask_login(other_node, {"refresh_token": session["refresh_token"]})
        assert status == 200
        assert statuses(nodes, following) == [200, 200]


def test_disabled_user_is_refused_on_both_nodes(nodes: tuple[Process, Process], admins: tuple[Wire, Wire]) -> None:
    """After a user is disabled at one node, both refuse the next request and open no session. The session, and a token
    that was created in it, stay invalid after the user is enabled.
    """
    for number in range(ROUNDS):
        session = log_in(nodes[number % 2])
        own = Wire(nodes[number % 2].uri, token=str(session["token"]))
        minted = own.do("POST", f"{OWN}/tokens", {})[1]
        own.close()
        assert statuses(nodes, session) == statuses(nodes, minted) == [200, 200]

        admins[number % 2].do("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})
        assert statuses(nodes, session) == statuses(nodes, minted) == [401, 401]
        assert [ask_login(node, {"user": "ana", "password": WORDS})[0] for node in nodes] == [401, 401]
        admins[1 - number % 2].do("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": True})
        assert statuses(nodes, session) == statuses(nodes, minted) == [401, 401]


def test_password_change_ends_sessions_on_both_nodes(nodes: tuple[Process, Process], admins: tuple[Wire, Wire]) -> None:
    """After a password is changed at one node, sessions and refresh tokens of both nodes are invalid at the next
    request.
    """
    for number in range(ROUNDS):
        words, following = (WORDS, OTHERS) if number % 2 == 0 else (OTHERS, WORDS)
        sessions = [log_in(node, words) for node in nodes]
        assert [statuses(nodes, each) for each in sessions] == [[200, 200]] * 2

        set_password(admins[number % 2], following)
        assert [statuses(nodes, each) for each in sessions] == [[401, 401]] * 2
        for node in nodes:
            assert [ask_login(node, {"refresh_token": each["refresh_token"]})[0] for each in sessions] == [401, 401]
            assert ask_login(node, {"user": "ana", "password": words})[0] == 401


def test_sign_out_ends_session_on_both_nodes(nodes: tuple[Process, Process], admins: tuple[Wire, Wire]) -> None:
    """A sign-out at one node ends the session at both. Another session of the same user stays valid."""
    for number in range(ROUNDS):
        other, session = log_in(nodes[0]), log_in(nodes[1])
        assert statuses(nodes, session) == [200, 200]
        wire = Wire(nodes[number % 2].uri, token=str(session["token"]))
        for text in (session["refresh_token"], session["token"]):
            wire.do("DELETE", f"{OWN}/tokens/{str(text).split('_')[1]}")
        wire.close()

        assert statuses(nodes, session) == [401, 401]
        assert [ask_login(node, {"refresh_token": session["refresh_token"]})[0] for node in nodes] == [401, 401]
        assert statuses(nodes, other) == [200, 200]


def test_old_session_and_password_fail_for_readded_user(
    nodes: tuple[Process, Process], admins: tuple[Wire, Wire]
) -> None:
    """If a user is removed at one node and added again at the other, neither the old session nor one opened with the
    old password opens the new user's metalake.
    """
    session = log_in(nodes[0])
    assert statuses(nodes, session) == [200, 200]
    admins[0].do("DELETE", f"{GRAVITINO}/users/ana")
    admins[1].do("POST", f"{GRAVITINO}/users", {"name": "ana"})

    assert statuses(nodes, session) == [401, 401]
    assert statuses(nodes, log_in(nodes[1])) == [401, 401]
    set_password(admins[0], WORDS)
    assert statuses(nodes, log_in(nodes[1])) == [200, 200]
