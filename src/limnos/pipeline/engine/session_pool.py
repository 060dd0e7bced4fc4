# SPDX-License-Identifier: Apache-2.0
"""A pool of Spark sessions: one for each running step, reused, and closed in order.

Lends sessions with the settings and catalogs of the session that it was created with. Must not know the use of
sessions.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from limnos.pipeline.engine.metadata import is_classic
from limnos.spark.gateway import disable_answer_delay, java_class, session_settings

logger = logging.getLogger(__name__)

_RETRIES = {"rest.client.max-retries": "60"}
"""The number of retries of a catalog that answers 503: about half a minute. Iceberg's own 5 retries take eight
seconds.
"""


_CONNECT_PAUSE_MS = 1_000
_CONNECT_TRIES = 120
_ANSWER_WITHIN_S = 10.0
"""The maximum time that a Spark Connect server may take to respond to an interrupt, in seconds. After that the
connection is closed.
"""


class SparkSessions:
    """Lends sessions to threads, and leaves them open until `close`.

    If the garbage collector ended a Spark Connect session, it would close the channel in an arbitrary thread and
    deadlock there.

    An unreachable Spark Connect server is retried for two minutes, or until `give_up` or `is_stopped`. Spark's own
    client would retry for ten.
    """

    def __init__(self, spark: SparkSession, *, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._spark = spark
        self._classic = is_classic(spark)
        self._given_up = threading.Event()
        self._is_stopped = is_stopped
        self._policies: Any = None if self._classic else _limit_retries(spark, lambda: not self._is_over())
        self._lock = threading.Lock()
        self._free: list[SparkSession] = []
        self._made: list[SparkSession] = []

    @contextmanager
    def borrow(self) -> Iterator[SparkSession]:
        """Borrow a session, which no other thread uses, as this thread's active session, for the body of a `with`."""
        with self._lock:
            spark = self._free.pop() if self._free else None
        spark = spark or self._another()
        try:
            with active(spark):
                yield spark
        finally:
            with self._lock:
                self._free.append(spark)

    def give_up(self) -> None:
        """Stop retrying an unreachable server."""
        self._given_up.set()

    def interrupt(self, busy: Sequence[SparkSession]) -> None:
        """Cancel the jobs of these sessions.

        If a Spark Connect server does not respond in time, all connections to it are closed.
        """
        asking = threading.Thread(target=_interrupt, args=(busy,), daemon=True)
        asking.start()
        asking.join(None if self._classic else _ANSWER_WITHIN_S)
        if asking.is_alive():
            logger.warning("Spark's server does not answer: its work for this run is not cancelled")
            self._close_connections()

    def _close_connections(self) -> None:
        """Close all connections to the server, including that of the session that the pool was created with, so that no
        caller waits forever.
        """
        with self._lock:
            every = (*self._made, self._spark)
        for spark in every:
            client = _client_of(spark)
            client._channel.close()  # noqa: SLF001 - its own `close` first waits for answers
            client.close()

    def close(self) -> None:
        """Close the sessions that the pool opened, but not the session that it was created with. Sessions of a classic
        Spark need no closing.
        """
        with self._lock:
            sessions, self._made, self._free = self._made, [], []
        if self._classic:
            return
        self.give_up()
        for spark in sessions:
            spark.stop()
        _client_of(self._spark).set_retry_policies(self._policies)

    def _is_over(self) -> bool:
        return self._given_up.is_set() or self._is_stopped()

    def _another(self) -> SparkSession:
        session = self._new_session() if self._classic else _clone_session(self._spark)
        if not self._classic:
            _limit_retries(session, lambda: not self._is_over())
        for name in _catalogs(session_settings(self._spark)):
            for key, value in _RETRIES.items():
                session.conf.set(f"spark.sql.catalog.{name}.{key}", value)
        with self._lock:
            self._made.append(session)
        return session

    def _new_session(self) -> SparkSession:
        other = self._spark.newSession()
        other_settings = session_settings(other)
        for key, value in session_settings(self._spark).items():
            if key.startswith("spark.sql.") and other_settings.get(key) != value:
                with suppress(AnalysisException):  # static settings are the same for all sessions of this Spark
                    other.conf.set(key, value)
        return other


def _interrupt(busy: Sequence[SparkSession]) -> None:
    for spark in busy:
        try:
            spark.interruptAll()
        except Exception:
            logger.debug("Spark rejected an interrupt", exc_info=True)


def _clone_session(spark: SparkSession) -> SparkSession:
    connected: Any = spark
    cloned: Any = connected.cloneSession()
    cloned.release_session_on_close = True  # a clone lacks this flag, and without it is never released
    session: SparkSession = cloned
    return session


def _client_of(spark: SparkSession) -> Any:  # noqa: ANN401 - Spark Connect's own
    connected: Any = spark
    return connected.client


def _limit_retries(spark: SparkSession, goes_on: Callable[[], bool]) -> Any:  # noqa: ANN401 - its policies before
    """Replace the session's retry policies by one that retries only while `goes_on` returns True.

    Retries also end after `_CONNECT_TRIES` tries. Returns the previous policies.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - only in the extra

    class Patience(DefaultPolicy):
        def can_retry(self, e: BaseException) -> bool:
            return goes_on() and bool(super().can_retry(e))

    client = _client_of(spark)
    former_policies = client.get_retry_policies()
    client.set_retry_policies([Patience(max_retries=_CONNECT_TRIES, max_backoff=_CONNECT_PAUSE_MS)])
    return former_policies


def active(spark: SparkSession) -> AbstractContextManager[None]:
    """Make a session the thread's active session for the body of a `with`, because parts of Spark and Iceberg use only
    the active session.
    """
    return _active_classic(spark) if is_classic(spark) else _active_connected(spark)


@contextmanager
def _active_classic(spark: SparkSession) -> Iterator[None]:
    """Make a classic session the thread's active session, in whose catalogs Iceberg's helpers look up tables."""
    disable_answer_delay(spark)
    sessions = java_class(spark._jvm, "org.apache.spark.sql.classic.SparkSession")  # noqa: SLF001
    former_session = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if former_session.isDefined():
            sessions.setActiveSession(former_session.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def _active_connected(spark: SparkSession) -> Iterator[None]:
    """Make a Spark Connect session the thread's active session, which its client needs to read staged rows."""
    from pyspark.sql.connect.session import SparkSession as Connected  # noqa: PLC0415 - only in the extra

    threads: Any = Connected._active_session  # noqa: SLF001
    former_session = getattr(threads, "session", None)
    threads.session = spark
    try:
        yield
    finally:
        threads.session = former_session


def _catalogs(settings: Mapping[str, str]) -> list[str]:
    """Return the names of the session's Iceberg REST catalogs, from the settings `spark.sql.catalog.<name>.type`."""
    prefix, suffix = "spark.sql.catalog.", ".type"
    return [
        key.removeprefix(prefix).removesuffix(suffix)
        for key, value in settings.items()
        if key.startswith(prefix) and key.endswith(suffix) and value == "rest"
    ]
