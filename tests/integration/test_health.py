# SPDX-License-Identifier: Apache-2.0
"""Health requests of a load balancer: over a real connection, where reads run in no separate task."""

from __future__ import annotations

import httpx2
import pytest

from tests.integration.live import LiveServer


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/api/health/ready"])
def test_serving_server_reports_up(server: LiveServer, path: str) -> None:
    """A server whose store answers is UP, under every path of the health check."""
    answer = httpx2.get(f"{server.uri}{path}", trust_env=False)

    assert (answer.status_code, answer.json()["status"]) == (200, "UP"), answer.text
