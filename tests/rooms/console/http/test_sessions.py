# SPDX-License-Identifier: Apache-2.0
"""Signing in and out: passwords, tokens, names, codes; a session ends with the credential that opened it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from limnos.rooms.console.http.protocol import ConsoleProtocol
from limnos.rooms.console.http.site import ConsoleSite
from tests.backends import Database
from tests.http.driver import DriverNode, grant, node_at
from tests.http.iceberg import wire
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

pytestmark = pytest.mark.slow

OWN = "/api/limnos/v1"
PASSWORD = "a long enough passphrase"


def is_in(visitor: ConsoleVisitor) -> bool:
    """Return whether the visitor's next request has a session."""
    return visitor.get("/console/sessions").status == 200


@pytest.fixture
def pair(fresh: Callable[[str], Path], database: Database) -> Iterator[tuple[DriverNode, DriverNode]]:
    """Two nodes over one store, on each backend, with the user ana, who has a password."""
    data, url = fresh("pair"), None if database.kind == "sqlite" else database.address
    with ExitStack() as stack:
        one, two = (stack.enter_context(node_at(data, database=url)) for _ in range(2))
        one.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
        one.done("PUT", f"{OWN}/users/ana/password", {"password": PASSWORD})
        yield one, two


def enter(node: DriverNode, fields: dict[str, str]) -> ConsoleVisitor:
    """Sign in by a form."""
    visitor = ConsoleVisitor(node)
    answer = visitor.post("/console/sign-in", fields)
    assert answer.status == 303, text_of(answer)
    return visitor


def elsewhere(visitor: ConsoleVisitor, node: DriverNode) -> ConsoleVisitor:
    """Return the same browser as a visitor of another node."""
    return ConsoleVisitor(node, cookies=dict(visitor.cookies))


def test_correct_password_opens_a_session_on_every_node(pair: tuple[DriverNode, DriverNode]) -> None:
    """A correct password opens a session on every node. A wrong one opens none and gets a message."""
    one, two = pair
    visitor = ConsoleVisitor(one)

    wrong = visitor.post("/console/sign-in", {"user": "ana", "password": "wrong"})

    assert (wrong.status, visitor.cookies) == (401, {})
    assert "wrong" in text_of(wrong)
    ana = enter(one, {"user": "ana", "password": PASSWORD})
    assert is_in(ana)
    assert is_in(elsewhere(ana, two))


def test_sign_in_after_too_many_wrong_passwords_is_429(lake: DriverNode) -> None:
    """Wrong passwords are 401 until no attempt is left; then even the right one is 429, with the time to wait."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    lake.done("PUT", f"{OWN}/users/ana/password", {"password": PASSWORD})
    visitor = ConsoleVisitor(lake)

    def post(password: str) -> int:
        return visitor.post("/console/sign-in", {"user": "ana", "password": password}).status

    statuses = [post("wrong") for _ in range(15)]
    right = visitor.post("/console/sign-in", {"user": "ana", "password": PASSWORD})

    assert statuses == sorted(statuses)
    assert set(statuses) == {401, 429}
    assert right.status == 429
    assert "Too many wrong passwords" in text_of(right)


@pytest.mark.parametrize("change", ["password", "forget", "everywhere"])
def test_password_change_and_sign_out_end_sessions_on_every_node(
    pair: tuple[DriverNode, DriverNode], change: str
) -> None:
    """Changing or deleting the password, and signing out everywhere, end all sessions of the user on both nodes."""
    one, two = pair
    ana = enter(one, {"user": "ana", "password": PASSWORD})
    other = elsewhere(enter(one, {"user": "ana", "password": PASSWORD}), two)
    assert is_in(other)

    if change == "password":
        one.done("PUT", f"{OWN}/users/ana/password", {"password": "another good passphrase"})
    elif change == "forget":
        one.done("DELETE", f"{OWN}/users/ana/password")
    else:
        ana.post("/console/sign-out", {"everywhere": "yes"})

    assert not is_in(other)
    assert not is_in(ana)


def test_disabled_user_is_refused_on_every_node(pair: tuple[DriverNode, DriverNode]) -> None:
    """A disabled user is signed out at the next request, on either node, and stays so when enabled again."""
    one, two = pair
    ana = elsewhere(enter(one, {"user": "ana", "password": PASSWORD}), two)
    assert "Catalogs" in text_of(ana.get("/console/"))

    one.done("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})

    assert "Catalogs" not in text_of(ana.get("/console/"))
    assert ana.get("/console/o/catalog/lake/main").status == 303
    assert ConsoleVisitor(two).post("/console/sign-in", {"user": "ana", "password": PASSWORD}).status == 401
    one.done("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": True})
    assert ana.get("/console/o/catalog/lake/main").status == 303


def test_revoked_privilege_applies_immediately_on_every_node(pair: tuple[DriverNode, DriverNode]) -> None:
    """A user whose role loses its privileges is refused the table's page from the next request on, on either node."""
    one, two = pair
    wire.make_space(one, "a")
    wire.make_table(one, "a", "t")
    role = grant(one, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    ana = enter(one, {"user": "ana", "password": PASSWORD})
    visits = ana, elsewhere(ana, two)
    page = "/console/o/table/lake/main/a/t"
    assert [each.get(page).status for each in visits] == [200, 200]

    one.done("PUT", "/api/metalakes/lake/permissions/users/ana/revoke", {"roleNames": [role]})

    assert [each.get(page).status for each in visits] == [403, 403]


def test_session_of_a_revoked_token_ends(pair: tuple[DriverNode, DriverNode]) -> None:
    """A sign-in with an API token opens a session, which ends when the token is revoked."""
    one, two = pair
    api_token = one.done("POST", f"{OWN}/tokens", {"user": "ana", "name": "laptop"})
    ana = enter(one, {"token": api_token["token"]})
    assert api_token["token"] not in str(ana.cookies)
    assert is_in(elsewhere(ana, two))

    one.done("DELETE", f"{OWN}/tokens/{api_token['id']}")

    assert not is_in(elsewhere(ana, two))
    assert ConsoleVisitor(one).post("/console/sign-in", {"token": api_token["token"]}).status == 401


def test_sign_out_ends_this_session_alone(admin: ConsoleVisitor) -> None:
    """Signing out deletes the cookie and ends the session; another browser of the user stays signed in."""
    other = ConsoleVisitor(admin.node).sign_in()
    stolen = dict(admin.cookies)

    answer = admin.post("/console/sign-out", {})

    assert answer.headers["location"] == "/console/sign-in"
    assert admin.cookies == {}
    assert not is_in(ConsoleVisitor(admin.node, cookies=stolen))
    assert is_in(other)


def test_user_can_end_only_own_sessions_from_the_list(admin: ConsoleVisitor) -> None:
    """The list has the user's own sessions; a button ends one of them, but not another user's."""
    other = ConsoleVisitor(admin.node).sign_in()
    strange = ConsoleVisitor(admin.node).sign_in("eve")
    page = text_of(admin.get("/console/sessions"))
    (other_id,) = [piece.split('"')[0] for piece in page.split('name="id" value="')[1:]]

    assert strange.post("/console/sessions/end", {"id": other_id}).status == 404
    assert is_in(other)
    assert admin.post("/console/sessions/end", {"id": other_id}).status == 303
    assert not is_in(other)
    assert is_in(admin)


def test_idle_session_ends(admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests extend a session up to its maximum lifetime; without requests it ends."""
    clock = admin.node.built.services.store.time
    real = clock.now_ms
    passed = 0

    def wait(minutes: int) -> None:
        nonlocal passed
        passed += minutes * 60_000
        monkeypatch.setattr(clock, "now_ms", lambda: real() + passed)

    for _ in range(30):  # 25 hours of requests
        wait(50)
        if not is_in(admin):
            break
    assert 23 * 3_600_000 <= passed <= 24 * 3_600_000 + 50 * 60_000
    later = ConsoleVisitor(admin.node).sign_in()
    wait(61)
    assert not is_in(later)


def test_console_code_works_only_once(lake: DriverNode) -> None:
    """`limnos console` prints a one-time code. Its page names the user, opens one session, and does not work again."""
    console_code = lake.done("POST", f"{OWN}/console/codes")
    visitor = ConsoleVisitor(lake)

    page = text_of(visitor.get(f"/console/enter?code={console_code['code']}"))

    assert "Continue as admin" in page
    assert visitor.post("/console/enter", {"code": console_code["code"]}).status == 303
    assert is_in(visitor)
    assert ConsoleVisitor(lake).post("/console/enter", {"code": console_code["code"]}).status == 401
    assert ConsoleVisitor(lake).get(f"/console/enter?code={console_code['code']}").status == 401
    assert lake.ask("GET", f"{OWN}/tokens", user=None, authorization=f"Bearer {console_code['code']}").status == 401


def test_name_without_password_opens_no_session(lake: DriverNode) -> None:
    """Where unauthenticated names are refused, a name without a password opens no session."""
    lake.built.application.protocols = [
        ConsoleProtocol(ConsoleSite()) if each.name == "console" else each for each in lake.built.application.protocols
    ]

    answer = ConsoleVisitor(lake).post("/console/sign-in", {"user": "admin"})

    assert answer.status == 401


def test_remote_sign_in_without_tls_is_refused(lake: DriverNode) -> None:
    """Without TLS the sign-in page refuses credentials from other machines."""
    visitor = ConsoleVisitor(lake, host="lake.example.com")

    assert "refuses sign-in over http" in text_of(visitor.get("/console/sign-in"))
    assert visitor.post("/console/sign-in", {"user": "admin"}).status == 403
    assert visitor.cookies == {}


def test_disabled_access_control_is_shown_in_a_banner(fresh: Callable[[str], Path]) -> None:
    """With access control off a banner says so, before and after sign-in."""
    with node_at(fresh("open"), access=False) as node:
        visitor = ConsoleVisitor(node)
        assert "Access control is off" in text_of(visitor.get("/console/sign-in"))
        assert "Access control is off" in text_of(visitor.sign_in().get("/console/"))
