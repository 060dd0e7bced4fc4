# SPDX-License-Identifier: Apache-2.0
"""The start of a node on a database under load: no request waits for it, so it waits for minutes where a request would
get an error, and says so in one line of the log.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from limnos.model.errors import CannotStart, ServiceUnavailable
from limnos.store.backends.direct_connection import START_CONNECT_S
from limnos.store.interface import Store
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.server")
START_S: float = START_CONNECT_S
"""How long a start waits for one answer of the database, and how long it tries again after failures, in seconds."""
SLOW_S = 5.0
"""After this time a start that still waits logs that it does, in seconds."""
PAUSE_S = 1.0


@contextmanager
def log_slow_start() -> Iterator[None]:
    """Log one line if the `with` block, steps of a start, takes longer than `SLOW_S`."""
    timer = threading.Timer(SLOW_S, _log_waiting)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # a supervisor forks afterwards, with one thread


def _log_waiting() -> None:
    log.warning("the start still waits for the database: it waits for minutes before it fails", waited_s=SLOW_S)


async def run_patiently(store: Store, step: Callable[[], Awaitable[None]]) -> None:
    """Run a step of the start, which may be repeated, with the patience of a start.

    Raises CannotStart if the database still fails after `START_S`, and the errors of the step.
    """
    until = time.monotonic() + START_S
    is_logged = False
    with _wait_longer(store):
        while True:
            try:
                return await step()
            except ServiceUnavailable as error:
                if time.monotonic() > until:
                    raise _slow_start_error(error) from error
                if not is_logged:
                    log.warning("the start tries again until the database answers, for minutes", reason=error.message)
                    is_logged = True
                await asyncio.sleep(PAUSE_S)


def _wait_longer(store: Store) -> AbstractContextManager[None]:
    """Return the context in which the store waits longer; an SQLite file has no connections that could be silent."""
    if store.inline:
        return nullcontext()
    from limnos.store.backends.postgres import PostgresStore

    return store.start_patience(START_S) if isinstance(store, PostgresStore) else nullcontext()


def _slow_start_error(error: ServiceUnavailable) -> CannotStart:
    return CannotStart(
        f"The database did not let this server start within {START_S:.0f} seconds",
        why=error.message,
        advice="see the database's own log and load, then start again",
    )
