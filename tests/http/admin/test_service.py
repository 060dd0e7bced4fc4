# SPDX-License-Identifier: Apache-2.0
"""Routes of the server itself: health, metrics, public settings, and the caller's name."""

from __future__ import annotations

import pytest

from tests.http.driver import OWN, DriverNode


@pytest.mark.parametrize("path", ["/health", "/health.html", "/health/live", "/health/ready"])
def test_root_health_aliases_answer_without_credentials(node: DriverNode, path: str) -> None:
    """The aliases at the root answer like those below /api, without credentials."""
    answer = node.get(path, user=None, authorization="Nonsense")

    assert (answer.status, answer["code"], answer["status"]) == (200, 0, "UP")


def test_readiness_queries_the_store(node: DriverNode) -> None:
    """Readiness queries the store each time, liveness does not; a failing store is 503."""
    store = node.built.services.store
    before = store.statements
    node.get("/health/live", user=None)
    between = store.statements
    node.get("/health/ready", user=None)
    after = store.statements

    store._reader.close()

    assert between == before
    assert after > between
    assert node.get("/health/ready", user=None).status == 503


def test_metrics_count_requests(node: DriverNode) -> None:
    """Metrics are Prometheus text and count requests by protocol and operation."""
    node.get("/api/version")

    answer = node.get("/metrics", user=None)

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'limnos_requests_total{operation="get-version",protocol="gravitino",status="200"}' in answer.body


def test_metrics_of_the_process_have_prometheus_names(node: DriverNode) -> None:
    """Metrics of the process (memory, CPU, open files, start) have the standard names that dashboards use."""
    lines = node.get("/metrics", user=None).body.decode().splitlines()

    metrics = {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("process_")}
    assert metrics["process_resident_memory_bytes"] > 1 << 20
    assert metrics["process_open_fds"] > 2
    assert metrics["process_start_time_seconds"] > 1e9
    assert "process_cpu_seconds_total" in metrics


def test_configs_are_flat_and_public(node: DriverNode, open_node: DriverNode) -> None:
    """Public settings have Gravitino's names; the admins are included only with access control on."""
    on, off = node.get("/configs", user=None).json(), open_node.get("/configs", user=None).json()

    assert on == {
        "gravitino.authenticators": ["simple"],
        "gravitino.authorization.enable": True,
        "gravitino.schema.separator": ":",
        "gravitino.authorization.serviceAdmins": ["admin"],
    }
    assert off["gravitino.authorization.enable"] is False
    assert "gravitino.authorization.serviceAdmins" not in off


def test_whoami(node: DriverNode) -> None:
    """`whoami` returns the Basic user, the token's user, or `anonymous`."""
    token = (node.data / "admin.token").read_text().strip()

    answers = [
        node.get(f"{OWN}/whoami", user="ana"),
        node.get(f"{OWN}/whoami", user=None, authorization=f"Bearer {token}"),
        node.get(f"{OWN}/whoami", user=None),
    ]

    assert [answer.json() for answer in answers] == [{"user": "ana"}, {"user": "admin"}, {"user": "anonymous"}]


@pytest.mark.parametrize(
    "path, shape",
    [
        ("/nothing", "own"),
        (f"{OWN}/nothing", "own"),
        ("/api/limnos", "own"),
        ("/api/limnos/v2/whoami", "own"),
        (f"{OWN}/metalakes/lake/catalogs/main/nothing", "own"),
        pytest.param("/api/nothing", "gravitino", marks=pytest.mark.room("gravitino")),
        pytest.param("/api/metalakes/lake/catalogs/main/nothing", "gravitino", marks=pytest.mark.room("gravitino")),
        ("/iceberg/v1/lake.main/nothing", "iceberg"),
    ],
    ids=str,
)
def test_unknown_path_is_404_in_its_protocols_error_format(node: DriverNode, path: str, shape: str) -> None:
    """An unknown path is 404 in the error form of the protocol with the longest matching prefix."""
    answer = node.get(path)

    body = answer.json()
    error = body.get("error", {})
    assert answer.status == 404
    assert ("own" if "request_id" in error else "iceberg" if error else "gravitino") == shape


def test_wrong_method_is_405(node: DriverNode) -> None:
    """A wrong method is refused with 405 in the admin API's error format."""
    answer = node.put(f"{OWN}/whoami")

    assert answer.status == 405
    assert answer.json()["error"]["code"] == "unsupported"
