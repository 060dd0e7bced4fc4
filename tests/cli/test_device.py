# SPDX-License-Identifier: Apache-2.0
"""`limnos login --device` with an issuer that implements RFC 8628: polling, storing, refreshing and ending the
session.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from limnos.cli import issuers
from limnos.cli.common import CommonFlags
from tests.cli.conftest import Run
from tests.client.fake import FakeServer
from tests.issuer import TERMINAL, Issuer, issuing

WHO = "/api/limnos/v1/whoami"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """A running issuer at which ana approves the sign-in."""
    with issuing() as running:
        running.answers = [("ana", True)]
        yield running


@pytest.fixture(autouse=True)
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between polls, in seconds; no real time passes."""
    waited: list[float] = []
    monkeypatch.setattr(issuers, "pause", waited.append)
    return waited


@pytest.fixture
def lake(fake: FakeServer, issuer: Issuer) -> FakeServer:
    """A fake server that names the issuer."""
    oauth_settings = {
        "provider": "oidc",
        "authority": issuer.url,
        "clientId": TERMINAL,
        "scope": "openid offline_access",
    }
    fake.on(
        "GET", "/configs", {f"gravitino.authenticator.oauth.{name}": value for name, value in oauth_settings.items()}
    )
    return fake.on("GET", WHO, {"user": "ana"})


def read_profile() -> dict:
    """Return the only profile of the profiles file."""
    (profile,) = json.loads(Path(os.environ["LIMNOS_PROFILES"]).read_text())["profiles"].values()
    return profile


def over() -> None:
    """Set the end of the session into the past."""
    file = Path(os.environ["LIMNOS_PROFILES"])
    document = json.loads(file.read_text())
    for profile in document["profiles"].values():
        profile["ends_at"] = time.time() - 1
    file.write_text(json.dumps(document))


def test_device_login_prints_code_and_polls_the_issuer(
    lake: FakeServer, run: Run, issuer: Issuer, paused: list[float]
) -> None:
    """The command prints the code and polls the issuer at the requested interval. The token is sent to the server
    only.
    """
    issuer.answers = [None, "slow_down", None, ("ana", True)]

    done = run("login", "--device", "--uri", lake.uri)

    assert done.code == 0, done.err
    (code,) = (each["user_code"] for each in issuer.begun.values())
    assert f"{issuer.url}/activate" in done.err
    assert code in done.err
    assert paused == [1.0, 1.0, 6.0, 6.0]
    token = read_profile()["token"]
    assert token.count(".") == 2
    assert lake.asked[-1].headers["Authorization"] == f"Bearer {token}"
    assert run("whoami").code == 0
    assert lake.asked[-1].headers["Authorization"] == f"Bearer {token}"
    assert token not in done.out + done.err
    assert [row["user"] for row in run("profile", "list").result] == ["ana"]  # type: ignore[attr-defined]


def test_declined_or_expired_login_stores_no_profile(
    lake: FakeServer, run: Run, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user declines, or the code expires, the login fails and no profile is stored."""
    issuer.answers = [("ana", False)]
    no = run("login", "--device", "--uri", lake.uri)
    issuer.answers = [None]
    monkeypatch.setattr(issuers, "pause", lambda _: [each.update(expires_at=1.0) for each in issuer.begun.values()])
    late = run("login", "--device", "--uri", lake.uri)

    assert (no.code, late.code) == (4, 4)
    assert "refused in the browser" in str(no.err)
    assert "before it was entered" in str(late.err)
    assert not Path(os.environ["LIMNOS_PROFILES"]).exists()


def test_a_session_is_refreshed_on_use(lake: FakeServer, run: Run, issuer: Issuer) -> None:
    """A refresh returns a new access token and a new refresh token; each refresh token is valid once."""
    run("login", "--device", "--uri", lake.uri)
    before = read_profile()
    over()

    assert run("whoami").code == 0

    after = read_profile()
    assert after["token"] != before["token"]
    assert after["refresh_token"] != before["refresh_token"]
    assert list(issuer.kept) == [after["refresh_token"]]
    assert lake.asked[-1].headers["Authorization"] == f"Bearer {after['token']}"
    assert issuer.url not in [each.headers.get("Host") for each in lake.asked]


def test_concurrent_commands_refresh_the_session_once(lake: FakeServer, run: Run, issuer: Issuer) -> None:
    """Of eight concurrent commands with an expired session, one refreshes it at the issuer, and the others use its
    result.
    """
    run("login", "--device", "--uri", lake.uri)
    over()

    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(lambda _: CommonFlags().credential(os.environ)[0], range(8)))

    assert tokens == [read_profile()["token"]] * 8
    assert list(issuer.kept) == [read_profile()["refresh_token"]]


def test_session_ended_by_issuer_is_reported(lake: FakeServer, run: Run, issuer: Issuer) -> None:
    """If the issuer has ended the session, the error says what to do, and the profile is kept."""
    run("login", "--device", "--uri", lake.uri)
    issuer.kept.clear()
    over()

    done = run("whoami")

    assert done.code == 4
    assert "the session has expired" in str(done.error["message"])
    assert "limnos login --device" in str(done.error["hint"])


def test_logout_revokes_refresh_token_at_the_issuer(lake: FakeServer, run: Run, issuer: Issuer) -> None:
    """`logout` revokes the refresh token at the issuer and deletes the profile, also if the issuer does not answer."""
    run("login", "--device", "--uri", lake.uri)
    assert issuer.kept

    assert run("logout").code == 0

    assert not issuer.kept
    assert run("profile", "list").result == []
    run("login", "--device", "--uri", lake.uri)
    issuer.server.shutdown()
    issuer.server.server_close()
    assert run("logout", "--timeout", "1").code == 0
    assert run("profile", "list").result == []


def test_invalid_device_logins_are_refused(fake: FakeServer, run: Run, issuer: Issuer) -> None:
    """Refused with a message: a user together with `--device`, neither of both, a server without an issuer, an issuer
    with another identity, an issuer without TLS.
    """
    fake.on("GET", "/configs", {})
    assert run("login", "ana", "--device", "--uri", fake.uri).code == 2
    assert run("login", "--uri", fake.uri).code == 2
    assert "has no issuer" in str(run("login", "--device", "--uri", fake.uri).error["message"])
    for authority, words in (
        (f"{issuer.url}/", "has a discovery document with another issuer identifier"),
        ("http://sign.example.com", "is not https"),
        (f"{fake.uri}", "answers 404"),
    ):
        fake.routes.pop(("GET", "/configs"))
        oauth_settings = {"authority": authority, "clientId": TERMINAL, "scope": "openid"}
        fake.on(
            "GET",
            "/configs",
            {f"gravitino.authenticator.oauth.{name}": value for name, value in oauth_settings.items()},
        )
        done = run("login", "--device", "--uri", fake.uri)
        assert words in str(done.error["message"])
