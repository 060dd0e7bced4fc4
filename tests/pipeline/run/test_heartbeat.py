# SPDX-License-Identifier: Apache-2.0
"""The heartbeat thread: its interval, the answers that stop the run, and those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from limnos.client.activity.runs import RunStanding
from limnos.client.errors import ClientError, ConflictError, NotFoundError
from limnos.pipeline.run.heartbeat import HeartbeatThread
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.stop import StopSignal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.client import Client

RUNNING = RunStanding("running", 2)


class EndAfter:
    """An event that is set after it was waited for `count` times. It records the length of each wait."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        """Return whether the event is set, without waiting."""
        self.waits.append(seconds)
        return self.is_set()

    def is_set(self) -> bool:
        """Return whether the event is set."""
        return len(self.waits) > self._count

    def set(self) -> None:
        """Ignore the call."""


class FakeClient:
    """A client whose server gives each heartbeat the same answer, and which records the heartbeats."""

    def __init__(self, answer: RunStanding | ClientError) -> None:
        self._answer = answer
        self.beats: list[tuple[str, int, Mapping[str, Mapping[str, object]]]] = []

    @property
    def runs(self) -> FakeClient:
        """The client's calls about runs."""
        return self

    def beat(self, run: str, attempt: int, *, progress: Mapping[str, Mapping[str, object]]) -> RunStanding:
        """Record the heartbeat, and return the answer."""
        self.beats.append((run, attempt, progress))
        if isinstance(self._answer, ClientError):
            raise self._answer
        return self._answer


def heart_of(client: FakeClient, stop: StopSignal, *, lease_s: float, beats: int) -> tuple[HeartbeatThread, EndAfter]:
    """Return a thread that ends after a number of heartbeats, without waiting between them."""
    heartbeat_client = HeartbeatThread(
        cast("Client", client), run="r", attempt=2, lease_s=lease_s, stop=stop, progress=lambda: {"s": {"rows": 1}}
    )
    ended = EndAfter(beats)
    heartbeat_client._ended = ended  # type: ignore[assignment]
    return heartbeat_client, ended


def run_whole(heartbeat_client: HeartbeatThread) -> None:
    """Start the thread, and wait for its end."""
    heartbeat_client._thread.start()
    heartbeat_client._thread.join(timeout=30)
    assert not heartbeat_client._thread.is_alive()


def test_heartbeat_interval_is_a_third_of_the_lease() -> None:
    """The thread waits a third of the lease before each heartbeat, so that two lost ones do not lose the run."""
    client = FakeClient(RUNNING)
    heartbeat_client, ended = heart_of(client, StopSignal(), lease_s=30, beats=3)

    run_whole(heartbeat_client)

    assert ended.waits == [10, 10, 10, 10]
    assert client.beats == [("r", 2, {"s": {"rows": 1}})] * 3


def test_an_unreachable_server_does_not_stop_the_run() -> None:
    """After a failed heartbeat the thread sends the next one, and the run goes on."""
    client, stop = FakeClient(ClientError("away", code="unavailable")), StopSignal()
    heartbeat_client, _ = heart_of(client, stop, lease_s=30, beats=3)

    run_whole(heartbeat_client)

    assert len(client.beats) == 3
    assert stop.reason is None


@pytest.mark.parametrize(
    "answer, why",
    [
        (ConflictError("held by another", status=409), EndReason.SUPERSEDED),
        (NotFoundError("no such run", status=404), EndReason.SUPERSEDED),
        (RunStanding("cancelling", 2), EndReason.CANCELLED),
        (RUNNING, None),
    ],
    ids=["another attempt", "run dropped", "cancelled", "running"],
)
def test_run_stops_if_superseded_missing_or_cancelled(answer: RunStanding | ClientError, why: EndReason | None) -> None:
    """A run stops if another attempt owns it, if it does not exist, and if it was cancelled."""
    stop = StopSignal()
    heartbeat_client, _ = heart_of(FakeClient(answer), stop, lease_s=30, beats=1)

    heartbeat_client.beat()

    assert (None if stop.reason is None else stop.reason.why) is why


def test_heartbeat_refused_after_publication_is_ignored() -> None:
    """A heartbeat that is refused because the run has been published meanwhile does not stop the run."""
    stop = StopSignal()
    heartbeat_client, _ = heart_of(FakeClient(ConflictError("is published", status=409)), stop, lease_s=30, beats=0)
    heartbeat_client._ended.wait(0)

    heartbeat_client.beat()

    assert stop.reason is None
