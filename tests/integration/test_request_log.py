# SPDX-License-Identifier: Apache-2.0
"""The log of a real server has each answer's request id, with user, operation and reason."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx2
import pytest

from tests.integration.live import LiveServer, serving

pytestmark = pytest.mark.integration
SPACES = "/iceberg/v1/lake.main/namespaces"


def lines_with(data: Path, request_id: str) -> list[dict]:
    """Return the log lines with a request id, as soon as the request's own line exists; a warning may precede it."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        texts = [file.read_text() for file in data.parent.glob("*.log")]
        lines = [json.loads(line) for text in texts for line in text.splitlines() if request_id in line]
        request_lines = [line for line in lines if "status" in line]
        if request_lines:
            return request_lines
        time.sleep(0.02)
    return []


def ask(server: LiveServer, method: str, path: str, **more: object) -> tuple[httpx2.Response, dict]:
    """Send a request, and return the answer and its log line."""
    headers = {"authorization": f"Bearer {server.token}", **more.pop("headers", {})}  # type: ignore[dict-item]
    answer = httpx2.request(method, server.uri + path, headers=headers, **more)  # type: ignore[arg-type]
    (line,) = lines_with(server.data, answer.headers["x-request-id"])
    return answer, line


@pytest.mark.parametrize("lane", [True, False])
def test_each_request_has_one_log_line_with_the_reason(
    tmp_path: Path, lane: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Successful, failed, unauthenticated and misdirected requests each have one log line, with the reason of the
    answer.
    """
    monkeypatch.setenv("LIMNOS__SERVER__LANE", str(lane).lower())
    with serving(tmp_path / "data") as server:
        served, good = ask(server, "GET", SPACES)
        response, change = ask(server, "POST", SPACES, json={"namespace": ["n"]})
        missing, refused = ask(server, "GET", f"{SPACES}/none")
        denied, wrong = ask(server, "GET", SPACES, headers={"authorization": "Bearer lim_1_wrong"})
        foreign, misdirected = ask(server, "GET", SPACES, headers={"host": "evil.example.com"})

    assert (good["status"], good["operation"], good["user"], good["path"]) == (200, "list-namespaces", "admin", SPACES)
    assert good["bytes"] == len(served.content)
    assert good["client"] == "127.0.0.1"
    assert 0 < good["duration_ms"] < 60_000
    assert "reason" not in good
    assert (response.status_code, change["status"], change["operation"]) == (200, 200, "create-namespace")
    assert refused["reason"] == missing.json()["error"]["message"]
    assert (wrong["status"], wrong["user"]) == (denied.status_code, None) == (401, None)
    assert misdirected["reason"] == foreign.json()["error"]["message"]
    assert misdirected["status"] == 421
