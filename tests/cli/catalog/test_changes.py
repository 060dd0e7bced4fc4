# SPDX-License-Identifier: Apache-2.0
"""`changes --follow` continues after a restart of the server, and its last line says how to resume."""

from __future__ import annotations

import pytest

from limnos.cli.catalog import changes
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

FEED = "/api/limnos/v1/metalakes/lake/changes"
CHANGE = {
    "zone": 2,
    "revision": 7,
    "ordinal": 0,
    "operation": "create",
    "kind": "table",
    "id": 5,
    "path": ["main", "t"],
    "actor": "ana",
    "request_id": "r",
    "at": "2026-01-01T00:00:00Z",
}
AWAY = {"error": {"code": "unavailable", "message": "stopping"}}
END = {"error": {"code": "pruned", "message": "no longer kept"}}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pauses before retries."""
    monkeypatch.setattr(changes, "PAUSE_S", 0.0)


def test_follow_resumes_after_a_server_restart(fake: FakeServer, limnos: Run) -> None:
    """If the server is unavailable, the command repeats the request with the same position. If the position is no
    longer valid, the error names it.
    """
    waiting = f"{FEED}?after=x&wait_s=15"
    fake.on("GET", f"{FEED}?after=now", {"changes": [], "next": "x", "more": False})
    fake.on("GET", waiting, AWAY, status=503)
    fake.on("GET", waiting, {"changes": [CHANGE], "next": "y", "more": False})
    fake.on("GET", f"{FEED}?after=y&wait_s=15", END, status=410)

    done = limnos("changes", "--follow", "--after", "now", "--output", "table")

    assert done.code == 1
    assert done.out == "2026-01-01T00:00:00Z  ana  create table main.t\n"
    assert "continue with --after y" in done.err
    assert "--after oldest" in done.err.partition("next:")[2]
    assert fake.calls.count(f"GET {waiting}") == 2


@pytest.mark.parametrize("flags", [("--follow",), ()])
def test_unreachable_server_at_first_request_is_an_error(fake: FakeServer, limnos: Run, flags: tuple[str, ...]) -> None:
    """If the first request fails, the command exits with the code for unreachable servers and names no position."""
    fake.on("GET", f"{FEED}?after=x", AWAY, status=503)

    done = limnos("changes", "--after", "x", *flags, "--output", "table")

    assert done.code == 6
    assert "continue with" not in done.err
