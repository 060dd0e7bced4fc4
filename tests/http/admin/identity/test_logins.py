# SPDX-License-Identifier: Apache-2.0
"""Local users: passwords, sessions, and the events that end sessions."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.access import passwords
from limnos.access.passwords import DUMMY_HASH, hash_password, is_password
from limnos.model.principals import TokenTrust
from limnos.services.identity.password_hashing import WAITING_MAX, PasswordAttempts
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, node_at
from tests.http.iceberg.wire import rows_of
from tests.http.interference import InterferencePoint, interfere

pytestmark = pytest.mark.slow

LOGIN = f"{OWN}/login"
WORDS = "correct horse battery"
OTHER = "staple on the other"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A server, and ana with a password that its administrator has set."""
    with node_at(tmp_path / "data") as running_node:
        assert put(running_node, "ana", {"password": WORDS}).status == 200
        yield running_node


def admin(node: DriverNode) -> str:
    """The administrator's token."""
    return (node.data / "admin.token").read_text().strip()


def ask(node: DriverNode, method: str, target: str, body: object = None, *, token: str | None = None) -> DriverAnswer:
    """Send a request with a token, by default the admin's."""
    bearer = admin(node) if token is None else token
    return node.ask(method, target, body, user=None, authorization=f"Bearer {bearer}")


def put(node: DriverNode, user: str, body: object, *, token: str | None = None) -> DriverAnswer:
    """Set a password."""
    return ask(node, "PUT", f"{OWN}/users/{user}/password", body, token=token)


def login(node: DriverNode, user: str = "ana", password: str = WORDS) -> DriverAnswer:
    """Sign in with a password."""
    return node.post(LOGIN, {"user": user, "password": password}, user=None)


def refresh(node: DriverNode, session: dict) -> DriverAnswer:
    """Refresh a session."""
    return node.post(LOGIN, {"refresh_token": session["refresh_token"]}, user=None)


def whoami(node: DriverNode, token: str) -> DriverAnswer:
    """Return the user of a token."""
    return ask(node, "GET", f"{OWN}/whoami", token=token)


def test_session_token_is_valid_in_every_protocol(node: DriverNode) -> None:
    """A session's token works in every protocol for an hour. It is not listed, and the answer must not be cached."""
    answer = login(node)
    session = answer.json()
    ask(node, "POST", f"{API}/lake/users", {"name": "ana"})

    assert whoami(node, session["token"]).json() == {"user": "ana"}
    assert ask(node, "GET", "/iceberg/v1/config?warehouse=main", token=session["token"]).status in (200, 403, 404)
    assert ask(node, "GET", f"{API}/lake", token=session["token"]).status == 200
    assert (session["expires_in_s"], session["refresh_expires_in_s"]) == (3600, 1_209_600)
    assert answer.headers["cache-control"] == "no-store"
    assert [each["user"] for each in ask(node, "GET", f"{OWN}/tokens?all=true").json()["tokens"]] == ["admin"]


def test_refresh_token_renews_sessions_but_authenticates_nothing(node: DriverNode) -> None:
    """A refresh token returns new session tokens repeatedly, and authenticates no other request."""
    session = login(node).json()

    following = [refresh(node, session).json() for _ in range(2)]

    assert whoami(node, session["refresh_token"]).status == 401
    assert [whoami(node, each["token"]).status for each in (session, *following)] == [200, 200, 200]
    assert [each["refresh_token"] for each in following] == [None, None]
    assert refresh(node, {"refresh_token": session["token"]}).status == 401
    assert refresh(node, {"refresh_token": admin(node)}).status == 401


@pytest.mark.parametrize("ending", ["new", "gone", "own"])
def test_a_changed_password_ends_sessions(node: DriverNode, ending: str) -> None:
    """A changed password ends all sessions from the next request on, and the API tokens created in these sessions. An
    API token of the service admin stays valid.
    """
    ask(node, "POST", f"{API}/lake/users", {"name": "ana"})
    session = login(node).json()
    minted = ask(node, "POST", f"{OWN}/tokens", {}, token=session["token"]).json()["token"]
    api_token = ask(node, "POST", f"{OWN}/tokens", {"user": "ana"}).json()["token"]

    if ending == "new":
        assert put(node, "ana", {"password": OTHER}).json() == {"user": "ana", "replaced": True}
    elif ending == "gone":
        assert ask(node, "DELETE", f"{OWN}/users/ana/password").json() == {"removed": True}
    else:
        assert put(node, "ana", {"password": OTHER, "old": WORDS}, token=session["token"]).status == 200

    assert whoami(node, session["token"]).status == 401
    assert refresh(node, session).status == 401
    assert login(node).status == 401
    assert login(node, password=OTHER).status == (401 if ending == "gone" else 200)
    assert whoami(node, minted).status == 401
    assert whoami(node, api_token).status == 200


def test_revoking_both_tokens_logs_out(node: DriverNode) -> None:
    """A user logs out by revoking both tokens of the session."""
    session = login(node).json()
    refreshing = session["refresh_token"].split("_")[1]

    assert ask(node, "DELETE", f"{OWN}/tokens/{refreshing}", token=session["token"]).json() == {"revoked": True}
    assert refresh(node, session).status == 401
    own = session["token"].split("_")[1]
    assert ask(node, "DELETE", f"{OWN}/tokens/{own}", token=session["token"]).json() == {"revoked": True}
    assert whoami(node, session["token"]).status == 401


def test_disabled_or_recreated_user_loses_sessions_and_password(node: DriverNode) -> None:
    """Disabling a user ends their sessions, and the tokens created in them, from the next request on; logins are
    refused. A user who was removed and added again has neither the old sessions nor the old password.
    """
    ask(node, "POST", f"{API}/lake/users", {"name": "ana"})
    session = login(node).json()
    minted = ask(node, "POST", f"{OWN}/tokens", {}, token=session["token"]).json()["token"]
    ask(node, "PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})
    disabled = ask(node, "GET", f"{API}/lake", token=session["token"]).status
    logins = [login(node), node.post(f"{OWN}/login", {"refresh_token": session["refresh_token"]}, user=None)]
    ask(node, "PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": True})
    enabled = [ask(node, "GET", f"{API}/lake", token=each).status for each in (session["token"], minted)]
    session = login(node).json()
    ask(node, "DELETE", f"{API}/lake/users/ana")
    ask(node, "POST", f"{API}/lake/users", {"name": "ana"})

    assert (disabled, enabled) == (401, [401, 401])
    assert [each.status for each in logins] == [401, 401]
    assert "disabled" in str(logins[0].json()["error"]["message"])
    assert ask(node, "GET", f"{API}/lake", token=session["token"]).status == 401
    assert ask(node, "GET", f"{API}/lake", token=login(node).json()["token"]).status == 401


def test_only_the_user_or_a_service_admin_sets_a_password(node: DriverNode) -> None:
    """Users change their own password with the old one. Changes to another user's password, and requests without
    credentials, are refused.
    """
    ask(node, "POST", f"{API}/lake/users", {"name": "bob"})
    bob = ask(node, "POST", f"{OWN}/tokens", {"user": "bob"}).json()["token"]
    ana = login(node).json()["token"]

    assert put(node, "ana", {"password": OTHER}, token=bob).status == 403
    assert put(node, "ana", {"password": OTHER}, token=ana).status == 401
    assert put(node, "ana", {"password": OTHER, "old": OTHER}, token=ana).status == 401
    assert ask(node, "DELETE", f"{OWN}/users/ana/password", token=bob).status == 403
    assert node.put(f"{OWN}/users/ana/password", {"password": OTHER}, user=None).status in (401, 403)
    assert put(node, "bob", {"password": OTHER}, token=bob).status == 403
    assert login(node).status == 200


def test_first_password_needs_a_sign_in_and_no_token(node: DriverNode) -> None:
    """An API token sets no first password. A service admin does, also their own with a token that never ends, but not
    with one that expires.
    """
    ask(node, "POST", f"{API}/lake/users", {"name": "bob"})
    bob = ask(node, "POST", f"{OWN}/tokens", {"user": "bob"}).json()["token"]
    short = ask(node, "POST", f"{OWN}/tokens", {"expires_in_s": 60}).json()["token"]

    refused = [put(node, user, {"password": OTHER}, token=token) for user, token in (("bob", bob), ("admin", short))]
    assert [each.status for each in refused] == [403, 403]
    assert "sign-in at the external issuer" in refused[0].json()["error"]["message"]
    assert login(node, "bob", OTHER).status == login(node, "admin", OTHER).status == 401
    assert put(node, "admin", {"password": OTHER}).status == 200
    assert put(node, "bob", {"password": OTHER}, token=short).status == 200


def test_disabled_user_sets_no_password(node: DriverNode) -> None:
    """A user who is disabled in every metalake neither sets, changes nor deletes a password, so none of theirs is valid
    once they are enabled again.
    """
    ask(node, "POST", f"{API}/lake/users", {"name": "ana"})
    token = ask(node, "POST", f"{OWN}/tokens", {"user": "ana"}).json()["token"]
    ask(node, "PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})

    changed = put(node, "ana", {"password": OTHER, "old": WORDS}, token=token)

    assert changed.status == 403
    assert "disabled" in changed.json()["error"]["message"]
    ask(node, "PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": True})
    assert login(node, password=OTHER).status == 401
    assert login(node).status == 200


def test_refreshed_session_ends_with_its_refresh_token(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session token that was issued for a refresh token ends when that is revoked, and expires no later."""
    session = login(node).json()
    clock = node.built.services.store.time
    real = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 1000 * (session["refresh_expires_in_s"] - 60))

    last = refresh(node, session).json()

    assert 0 < last["expires_in_s"] <= 60
    ask(node, "DELETE", f"{OWN}/tokens/{session['refresh_token'].split('_')[1]}")
    assert whoami(node, last["token"]).status == 401


def test_weak_or_malformed_passwords_are_refused(node: DriverNode) -> None:
    """Passwords that are too short, too uniform, too long, not text, or that contain control characters or the name are
    refused.
    """
    texts = ["", "short", "a" * 40, "ab" * 20, "words\0with nothing", "the words of ANA say", "ü" * 513, 7, None]

    assert [put(node, "ana", {"password": text}).status for text in texts] == [400] * len(texts)
    assert login(node).status == 200


def test_bad_logins_are_400(node: DriverNode) -> None:
    """A login has either a user with a password, or only a refresh token."""
    both = {"user": "ana", "password": WORDS, "refresh_token": "x"}
    bodies: list[object] = [{}, {"user": "ana"}, {"password": WORDS}, both, {"user": 1, "password": WORDS}, []]

    assert [node.post(LOGIN, body, user=None).status for body in bodies] == [400] * len(bodies)


def test_unknown_user_and_wrong_password_get_the_same_answer(node: DriverNode) -> None:
    """An unknown user and any wrong password get the same answer. A body of a megabyte is not read."""
    tries = [("ana", OTHER), ("nobody", WORDS), ("ana", "x" * 10_000), ("ana", WORDS + "\0"), ("a\nb", WORDS), ("", "")]

    answers = [login(node, *each) for each in tries]

    assert {(each.status, each.json()["error"]["message"]) for each in answers} == {
        (401, "The user or the password is wrong")
    }
    assert login(node, "ana", "x" * 1_000_000).status == 413
    assert login(node).status == 200


def test_password_is_compared_in_normalized_unicode(node: DriverNode) -> None:
    """A password matches whether its accents are sent as combined or separate characters."""
    put(node, "ana", {"password": "Grüße aus Übersee"})

    assert login(node, password=unicodedata.normalize("NFD", "Grüße aus Übersee")).status == 200


def test_login_is_429_after_ten_wrong_passwords(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten wrong passwords for a name, even a right one is 429 and is not hashed; other names are unaffected."""
    checked_passwords: list[str] = []
    monkeypatch.setattr(
        "limnos.services.identity.logins.is_password", lambda text, _: bool(checked_passwords.append(text))
    )
    statuses = [login(node, password=OTHER).status for _ in range(12)]

    assert statuses == [401] * 10 + [429] * 2
    assert len(checked_passwords) == 10
    assert login(node, "bob").status == 401


def test_login_attempts_are_replenished_over_time() -> None:
    """Each name gets one more attempt every ten seconds. Attempts with the right password are not counted."""
    now = [0.0]
    tries = PasswordAttempts(now=lambda: now[0])

    def wrong() -> None:
        with tries.one(user="ana", address="::1"):
            pass

    for _ in range(10):
        wrong()
    with pytest.raises(Exception, match="Too many wrong passwords"):
        wrong()
    now[0] = 10.0
    for _ in range(50):
        with tries.one(user="ana", address="::1") as right:
            right()
    wrong()
    with pytest.raises(Exception, match="Too many wrong passwords"):
        wrong()


def test_concurrent_wrong_logins_do_not_block_other_requests(node: DriverNode) -> None:
    """During 64 concurrent wrong logins other requests are answered; excess logins are 503 or 429."""

    async def crowd() -> tuple[list[int], int]:
        wrong = [
            asyncio.ensure_future(node.answer("POST", LOGIN, {"user": f"user{number}", "password": OTHER}, user=None))
            for number in range(WAITING_MAX)
        ]
        during = 0
        while not all(each.done() for each in wrong):
            assert (await node.answer("GET", "/health/live", user=None)).status == 200
            during += 1
            await asyncio.sleep(0.005)
        return [each.result().status for each in wrong], during

    statuses, during = node.runner.run(crowd())

    assert set(statuses) <= {401, 429, 503}
    assert 401 in statuses
    assert during > 20
    assert login(node, password=WORDS).status in (200, 429)


def test_dummy_hash_costs_as_much_as_a_real_one() -> None:
    """The dummy hash for unknown users has the same cost as a real one, and matches no password."""
    real = hash_password(WORDS)

    assert real.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert DUMMY_HASH.split("$")[:4] == real.split("$")[:4]
    assert passwords._HASHER.check_needs_rehash(DUMMY_HASH) is False
    assert is_password(WORDS, real)
    assert not is_password(WORDS, DUMMY_HASH)
    assert not is_password(WORDS, "no hash")


def test_password_set_by_an_unauthenticated_name_is_invalid(node: DriverNode) -> None:
    """Where unauthenticated names are not trusted, a password that such a name set is invalid: it opens no session and
    refreshes none.
    """
    assert node.put(f"{OWN}/users/bob/password", {"password": WORDS}).status == 200  # by Basic, whose user is believed
    session = login(node, "bob").json()
    rules = node.built.services.rules
    node.built.services.rules = rules._replace(trusts=frozenset({TokenTrust.PROVEN}))

    answers = [login(node, "bob"), refresh(node, session)]

    assert [each.status for each in answers] == [401, 401]
    assert all("is not valid on this server" in each.json()["error"]["message"] for each in answers)
    assert "is not valid on this server" not in login(node, "bob", OTHER).json()["error"]["message"]
    assert login(node).status == 200


MEANWHILE = "another password altogether"


@pytest.mark.parametrize("request_", ["login", "refresh", "own", "another administrator's"])
def test_password_change_is_refused_after_a_concurrent_reset(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    """A change with the old password is refused without effect if an administrator sets a new password during the
    request.
    """
    session = login(node).json()
    asks = {
        "login": lambda: login(node),
        "refresh": lambda: refresh(node, session),
        "own": lambda: put(node, "ana", {"password": OTHER, "old": WORDS}, token=session["token"]),
        "another administrator's": lambda: put(node, "ana", {"password": OTHER}),
    }

    async def change() -> None:
        answer = await node.answer("PUT", f"{OWN}/users/ana/password", {"password": MEANWHILE}, user="admin")
        assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.SUBMIT, act=change) as interference:
        answer = asks[request_]()

    assert interference.is_done
    assert answer.status == 401, answer
    assert rows_of(node) == interference.rows
    assert [login(node, password=each).status for each in (WORDS, OTHER, MEANWHILE)] == [401, 401, 200]


def test_refresh_token_revoked_during_refresh_opens_no_session(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh token that is revoked during a refresh opens no session."""
    session = login(node).json()
    revoke = f"{OWN}/tokens/{session['refresh_token'].split('_')[1]}"

    async def end() -> None:
        answer = await node.answer("DELETE", revoke, user="admin")
        assert answer.json() == {"revoked": True}

    with interfere(node, monkeypatch, step=InterferencePoint.SUBMIT, act=end) as interference:
        answer = refresh(node, session)

    assert interference.is_done
    assert answer.status == 401, answer
    assert rows_of(node) == interference.rows
    assert whoami(node, session["token"]).status == 200


def audited(node: DriverNode, query: str) -> list[tuple[str | None, ...]]:
    """Return operation, path and detail of the server's audit records of a query, oldest first."""
    lines = ask(node, "GET", f"{OWN}/audit?after=0&{query}").json()["lines"]
    return [(each["operation"], each["object"]["path"], each["detail"]) for each in lines]


def test_family_of_tokens_has_sign_ins_and_all_new_tokens(node: DriverNode) -> None:
    """The family `token` of the audit has a sign-in with a password, with its operation, protocol and client, and the
    admin's token of the first start.
    """
    node.ask("POST", LOGIN, {"user": "ana", "password": WORDS}, user=None, user_agent="limnos/9")

    records = audited(node, "action=token")
    (sign_in, _) = ask(node, "GET", f"{OWN}/audit?user=ana&action=login").json()["lines"]

    assert (None, "admin", None) in records
    assert [each for each in records if each[0] == "login"] == [
        ("login", "ana", "session"),
        ("login", "ana", "refresh token of a session"),
    ]
    assert (sign_in["protocol"], sign_in["client"]) == ("admin", "limnos/9")


def test_record_of_a_new_password_names_its_user(node: DriverNode) -> None:
    """The audit says whose password was set, replaced or deleted, and the filter by the user's name has it, with and
    without sessions that ended.
    """
    assert put(node, "ana", {"password": OTHER}).status == 200
    assert login(node, password=OTHER).status == 200
    assert ask(node, "DELETE", f"{OWN}/users/ana/password").status == 200

    details = [each[2] for each in audited(node, "path=ana&action=token") if "password" in str(each[2])]

    assert details == [f"password of user ana {word}" for word in ("set", "replaced", "deleted")]
    assert audited(node, "path=ana&action=set-password")[-1][0] == "set-password"
