# SPDX-License-Identifier: Apache-2.0
"""Retries while the server is unreachable, for as long as a run's options allow.

Repeats idempotent calls. Must not know the calls.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from limnos.client.errors import NoSpaceError, ServerError, UnavailableError
from limnos.pipeline.failures import StepAway
from limnos.pipeline.run.stop import StopSignal

T = TypeVar("T")
logger = logging.getLogger(__name__)

PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 5.0


class RetryPolicy:
    """Retry policy of a run: seconds to wait per call, and the signal that ends waiting early."""

    def __init__(self, away_s: float, *, stop: StopSignal) -> None:
        self.away_s = away_s
        self.stop = stop

    def call(self, request: Callable[[], T]) -> T:
        """Repeat a request until the server answers, and return its result. Other errors are raised unchanged.

        Raises:
            NoSpaceError: Immediately, because waiting frees no space.
            RunStopped: A stop of the run was requested while waiting.
            UnavailableError: The server was unreachable for too long. ServerError and StepAway are retried and raised
                in the same way.
        """
        pause_s, until = PAUSE_FIRST_S, time.monotonic() + self.away_s
        while True:
            try:
                return request()
            except NoSpaceError:
                raise  # the server is reachable and out of space: waiting frees none
            except (UnavailableError, ServerError, StepAway) as error:
                if time.monotonic() + pause_s > until:
                    raise
                logger.info("the server does not answer (%s); trying again in %.1f s", error, pause_s)
            if self.stop.wait(pause_s):
                self.stop.check()
            pause_s = min(pause_s * 2, PAUSE_MAX_S)

    def wait_for_server(self, request: Callable[[], object]) -> None:
        """Repeat `request` until the server answers, and ignore its result. Raises as `call` does."""
        self.call(request)
