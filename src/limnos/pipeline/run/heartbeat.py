# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of a run: they renew its lease and receive requests to stop.

One thread with its own connection, so that neither a long Spark job nor a slow response to another request delays a
heartbeat. An unreachable server does not stop a run. The run stops if another attempt has taken over or it was
cancelled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Self

from limnos.client import Client
from limnos.client.errors import ClientError, ConflictError, NotFoundError
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.stop import StopSignal

logger = logging.getLogger(__name__)

Progress = Callable[[], Mapping[str, Mapping[str, object]]]


class HeartbeatThread:
    """A context manager whose thread sends a heartbeat every third of the lease."""

    def __init__(
        self, client: Client, *, run: str, attempt: int, lease_s: float, stop: StopSignal, progress: Progress
    ) -> None:
        self._client = client
        self._run = run
        self._attempt = attempt
        self._pause_s = lease_s / 3
        self._stop = stop
        self._progress = progress
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="pipeline-heart", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ended.set()
        self._thread.join(timeout=self._pause_s)

    def _beat_on(self) -> None:
        while not self._ended.wait(self._pause_s):
            try:
                self.beat()
            except ClientError as error:
                logger.debug("a heartbeat of run %s was rejected: %s", self._run, error)

    def beat(self) -> None:
        """Send one heartbeat, and stop the run if the response requests it. Raises ClientError."""
        try:
            message = self._client.runs.beat(self._run, self._attempt, progress=self._progress())
        except (ConflictError, NotFoundError) as error:
            if not self._ended.is_set():
                self._stop.request(EndReason.SUPERSEDED, superseded_message(self._run, error))
            return
        if message.state == "cancelling":
            self._stop.request(EndReason.CANCELLED, "the run was cancelled by 'limnos pipeline cancel'")


def superseded_message(run: str, error: ClientError) -> str:
    """Return the message that another attempt has taken over the run."""
    return (
        f"this process no longer holds the run ({error.message}); it stopped and published nothing. 'limnos show run"
        f" {run}' names the present holder"
    )
