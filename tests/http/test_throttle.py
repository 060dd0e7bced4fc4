# SPDX-License-Identifier: Apache-2.0
"""Wrong credentials: too many from one address are 429, valid ones never are, and the log has one line per second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from limnos.http import throttle
from limnos.http.throttle import ADDRESSES_MAX, BURST, PER_S, CredentialThrottle, address_of
from limnos.model.errors import AuthenticationFailed, TooManyAttempts
from tests.http.driver import API, OWN, DriverNode

if TYPE_CHECKING:
    from limnos.telemetry.request_log import RequestLog

WRONG = AuthenticationFailed("The token is wrong")


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@dataclass
class Log:
    """A fake log."""

    lines: list[dict[str, object]] = field(default_factory=list)

    def warning(self, _event: str, **fields: object) -> None:
        """Record an event."""
        self.lines.append(fields)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The throttle's log."""
    recorder = Log()
    monkeypatch.setattr(throttle, "log", recorder)
    return recorder


def statuses(many: int, ask: Callable[[], object]) -> list[bool]:
    """Return whether each of several answers is 429."""
    return [isinstance(ask(), TooManyAttempts) for _ in range(many)]


def test_allowance_is_a_burst_and_then_a_rate() -> None:
    """A burst of wrong credentials is 401, further ones 429; the allowance returns with time."""
    clock = Clock()
    credential_throttle = CredentialThrottle(now=clock)

    first = statuses(BURST + 5, lambda: credential_throttle.answer("a", WRONG))
    clock.now += 3 / PER_S
    later = statuses(5, lambda: credential_throttle.answer("a", WRONG))
    clock.now += 1000
    fresh = statuses(BURST + 1, lambda: credential_throttle.answer("a", WRONG))

    assert first == [False] * BURST + [True] * 5
    assert later == [False] * 2 + [True] * 3
    assert fresh == [False] * BURST + [True]


def test_addresses_have_allowances_of_their_own() -> None:
    """Too many wrong credentials from one address do not affect others."""
    credential_throttle = CredentialThrottle(now=Clock())
    statuses(BURST + 1, lambda: credential_throttle.answer("10.0.0.1", WRONG))

    assert statuses(1, lambda: credential_throttle.answer("10.0.0.2", WRONG)) == [False]


@pytest.mark.parametrize(
    "peer, address",
    [
        ("10.0.0.1", "10.0.0.1"),
        ("", "unknown"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8::9", "2001:db8:0:0::/64"),
        ("::1", "0:0:0:0::/64"),
    ],
)
def test_addresses_of_one_ipv6_network_share_an_allowance(peer: str, address: str) -> None:
    """All addresses of one IPv6 network share an allowance."""
    assert address_of(peer) == address


def test_memory_is_bounded() -> None:
    """The number of remembered addresses is limited, and the least recently used is forgotten."""
    credential_throttle = CredentialThrottle(now=Clock())
    statuses(BURST + 1, lambda: credential_throttle.answer("first", WRONG))

    for i in range(ADDRESSES_MAX + 10):
        credential_throttle.answer(f"10.{i}", WRONG)
        credential_throttle.answer("busy", WRONG)

    assert len(credential_throttle._used) <= ADDRESSES_MAX
    assert statuses(1, lambda: credential_throttle.answer("busy", WRONG)) == [True]
    assert statuses(1, lambda: credential_throttle.answer("first", WRONG)) == [False]


def test_log_has_one_line_a_second(log: Log) -> None:
    """The first wrong credential is logged immediately, those of the next second together, the rest at the stop."""
    clock = Clock()
    credential_throttle = CredentialThrottle(now=clock)

    for i in range(1000):
        clock.now = i / 400
        credential_throttle.answer(f"10.0.0.{i % 3}", WRONG)
    credential_throttle.flush()

    assert [line["count"] for line in log.lines] == [1, 400, 400, 199]
    assert log.lines[1]["addresses"] == 3
    assert log.lines[0]["reason"] == "The token is wrong"


@pytest.mark.parametrize("path", ["/iceberg/v1/lake.main/namespaces", f"{API}/lake", f"{OWN}/whoami"])
def test_too_many_wrong_credentials_return_429(node: DriverNode, log: Log, path: str) -> None:
    """In each protocol, wrong tokens are refused with 401, and after too many with 429 and `Retry-After`. Valid tokens
    are always accepted.
    """
    node.built.application.outcomes.throttle = CredentialThrottle(now=Clock())
    token = node.done("POST", f"{OWN}/tokens", {})["token"]
    wrong = [node.get(path, user=None, authorization="Bearer lim_1_wrong") for _ in range(BURST + 5)]

    right = node.get(path, user=None, authorization=f"Bearer {token}")

    assert [answer.status for answer in wrong] == [401] * BURST + [429] * 5
    assert wrong[-1].headers["retry-after"] == "1"
    assert "correct this client's credential" in wrong[-1].body.decode()
    assert right.status == 200
    assert [line["count"] for line in log.lines] == [1]


def test_throttled_requests_are_logged_once_per_second(node: DriverNode) -> None:
    """Requests refused with 429 are logged at most once per second, and other requests are logged independently."""
    clock = Clock()
    node.built.application.outcomes.throttle = CredentialThrottle(burst=0, now=clock)
    lines: list[tuple[object, ...]] = []
    node.built.application.outcomes.request_log = cast(
        "RequestLog", SimpleNamespace(add=lines.append, flush=lambda: None)
    )

    for i in range(9):
        clock.now = i / 4
        assert node.get(f"{API}/lake", user=None, authorization="Bearer lim_1_wrong").status == 429
    node.get(f"{API}/lake")

    assert [line[6] for line in lines] == [429, 429, 429, 200]


def test_refusals_of_known_callers_are_not_counted(node: DriverNode) -> None:
    """Missing credentials, users without rights and revoked tokens do not count as wrong credentials."""
    node.built.application.outcomes.throttle = CredentialThrottle(burst=0)
    created_token = node.done("POST", f"{OWN}/tokens", {})
    node.done("DELETE", f"{OWN}/tokens/{created_token['id']}")
    for user in (None, "stranger"):
        for _ in range(BURST + 5):
            assert node.get(f"{API}/lake", user=user).status == 403
    for _ in range(BURST + 5):
        assert node.get("/iceberg/v1/namespaces", user=None).status == 401
        assert node.get(f"{API}/lake", user=None, authorization=f"Bearer {created_token['token']}").status == 401
