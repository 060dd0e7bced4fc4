# SPDX-License-Identifier: Apache-2.0
"""Version, health, and the caller's name over Gravitino REST."""

from __future__ import annotations

import re

import pytest

import limnos
from limnos.http.build_info import BuildInfo, installed_extras
from limnos.rooms.gravitino.http.service import version_fields
from tests.http.driver import DriverAnswer, DriverNode


def test_version_is_accepted_by_current_clients(node: DriverNode) -> None:
    """The version has three numbers, that of the newest release whose calls are served; code is 0."""
    answer = node.get("/api/version")

    assert answer.status == 200
    assert answer["code"] == 0
    assert re.match(r"\d+\.\d+\.\d+", answer.json()["version"]["version"])
    assert answer.json()["version"]["version"] == "1.3.1"


def test_version_names_release_and_installed_extras(node: DriverNode) -> None:
    """The answer names the product's release and extras; commit and time of a checkout are unknown."""
    answer = node.get("/api/version")

    product = {"version": limnos.__version__, "commit": "unknown", "builtAt": "unknown", "extras": installed_extras()}
    assert answer["limnos"] == product
    assert answer["version"] == {"version": "1.3.1", "compileDate": "unknown", "gitCommit": "unknown"}


def test_principal_is_the_caller(node: DriverNode) -> None:
    """The principal is the user of the credential, and `anonymous` without one."""
    names = [node.get("/api/authn/me", user=user)["principal"] for user in ("ana", None)]

    assert names == ["ana", "anonymous"]


@pytest.mark.parametrize("path", ["/api/health", "/api/health/live", "/api/health/ready"])
def test_health_is_up_for_everyone(node: DriverNode, path: str) -> None:
    """Health answers UP for every credential, also for an invalid one."""
    answer = node.get(path, user=None, authorization="Nonsense x")

    assert answer.status == 200
    assert answer["status"] == "UP"
    assert [check["status"] for check in answer.json()["checks"]] == ["UP"] * len(answer.json()["checks"])


def test_ready_is_down_when_the_store_does_not_answer(node: DriverNode) -> None:
    """If the store cannot be read, readiness is 503 and DOWN, while liveness is UP."""
    node.built.services.gate.store._reader.close()

    ready, live = node.get("/api/health/ready"), node.get("/api/health/live")

    assert (ready.status, ready["status"]) == (503, "DOWN")
    assert (live.status, live["status"]) == (200, "UP")


@pytest.mark.parametrize(
    "headers",
    [
        {"accept": "application/vnd.gravitino.v1+json"},
        {"accept": "application/vnd.gravitino.v2+json"},
        {"accept": "*/*"},
        {"accept": "*/*", "content_type": "application/vnd.gravitino.v1+json"},
        {"accept": "application/vnd.gravitino.v1+json", "content_type": "application/vnd.gravitino.v9+json"},
    ],
    ids=str,
)
def test_known_media_types_are_served(node: DriverNode, headers: dict[str, str]) -> None:
    """Versions 1 and 2 of the media type are served. Accept takes precedence over Content-Type."""
    answer = node.get("/api/version", **headers)

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("header", ["accept", "content_type"])
def test_unknown_version_is_406(node: DriverNode, header: str) -> None:
    """Another version of the media type is 406, in Gravitino's error form."""
    answer = node.get("/api/metalakes", **{header: "application/vnd.gravitino.v3+json"})

    assert answer.status == 406
    assert answer["code"] != 0
    assert "version 1" in str(answer["message"])


def expect_unauthenticated(answer: DriverAnswer) -> None:
    """Missing credentials are 401 with code 1011, and a challenge without a browser's password prompt."""
    assert answer.status == 401
    assert (answer["code"], answer["type"]) == (1011, "UnauthorizedException")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer lim_1_nothing", "Bearer x", "Basic !", "Digest x"])
def test_credential_that_cannot_be_verified_is_401(node: DriverNode, header: str) -> None:
    """A wrong token, a malformed header and an unknown scheme are 401 before any lookup."""
    answer = node.get("/api/metalakes", user=None, authorization=header)

    expect_unauthenticated(answer)


def test_unknown_routes_return_gravitino_errors(node: DriverNode) -> None:
    """An unknown path below /api is 404 with code 1003; a wrong method is 405 with code 1006."""
    missing, later, wrong = (
        node.get("/api/nothing"),
        node.post("/api/bulk/metalakes/lake/groups/add"),
        node.put("/api/version"),
    )

    assert [(a.status, a["code"]) for a in (missing, later, wrong)] == [(404, 1003), (404, 1003), (405, 1006)]
    assert missing["type"] == "NotFoundException"


def test_answer_has_commit_and_time_for_both_readers() -> None:
    """Gravitino's fields and the product's own name the same build, and each has its release."""
    fields = version_fields(BuildInfo("abc", "2026-11-27"), ["server"])

    assert fields["version"] == {"version": "1.3.1", "compileDate": "2026-11-27", "gitCommit": "abc"}
    product = {"version": "0.1.0", "commit": "abc", "builtAt": "2026-11-27", "extras": ["server"]}
    assert fields["limnos"] == product
