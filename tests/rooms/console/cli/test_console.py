# SPDX-License-Identifier: Apache-2.0
"""`limnos console`: it prints an address that signs in, and opens a browser only on request."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

CODES = "/api/limnos/v1/console/codes"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that `webbrowser.open` received."""
    opened_urls: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened_urls.append)
    return opened_urls


def test_address_is_printed(fake: FakeServer, run: Run, opened: list[str]) -> None:
    """The command prints the server's own address with the code. Without a terminal it does not open a browser."""
    fake.on("POST", CODES, {"code": "lim_7_a b", "expires_in_s": 120, "public_url": None})

    done = run("console", "--uri", fake.uri, "--output", "json")

    assert json.loads(done.out)["url"] == f"{fake.uri}/console/enter?code=lim_7_a%20b"
    assert opened == []


def test_console_uses_the_public_url_behind_a_proxy(fake: FakeServer, run: Run, opened: list[str]) -> None:
    """Behind a proxy the printed address is the public URL, and `--open` opens it."""
    fake.on("POST", CODES, {"code": "lim_7_x", "expires_in_s": 120, "public_url": "https://data.example.com/lake"})

    done = run("console", "--uri", fake.uri, "--open")

    assert done.code == 0, done.err
    assert opened == ["https://data.example.com/lake/console/enter?code=lim_7_x"]


def test_console_as_another_user_is_refused(fake: FakeServer, run: Run) -> None:
    """With `--as` the token ends with the command, so no address is printed that would be dead at once."""
    done = run("console", "--uri", fake.uri, "--token", "t", "--as", "ana")

    assert (done.code, fake.asked, done.out) == (2, [], "")
    assert "--as" in str(done.error["message"])


def test_console_without_a_credential_fails_with_the_commands_to_sign_in(fake: FakeServer, run: Run) -> None:
    """Without a credential the command fails as not signed in, with the hint that `whoami` gives."""
    refusal = {"error": {"code": "forbidden", "message": "Authenticate: a session of the console needs a user"}}
    fake.on("GET", "/api/limnos/v1/whoami", {"user": "anonymous"})
    fake.on("POST", CODES, refusal, status=403)

    whoami = run("whoami", "--uri", fake.uri)
    console = run("console", "--uri", fake.uri)

    assert (whoami.code, console.code) == (4, 4)
    assert "'limnos login --local'" in str(console.error["hint"])
    assert console.error["hint"] == whoami.error["hint"]
