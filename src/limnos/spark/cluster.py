# SPDX-License-Identifier: Apache-2.0
"""Waits for a cluster: its master, and the executors of an application.

Must not know the work of the application. A cluster without free cores starts an application all the same, and lets its
tasks wait without a limit and without a message, so callers ask here whether there is an executor.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from limnos.model.errors import ServiceUnavailable
from limnos.spark.session import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

STANDALONE: Final = "spark://"
"""The scheme of the URL of a standalone master."""
EXECUTOR_WAIT_S: Final = 60.0
"""The maximum seconds that a cluster may take to provide an application's first executor."""
NO_EXECUTOR: Final = (
    "it has no free cores or memory, no workers, or its executors end at their start, as their logs on the workers say."
    " Free resources, or limit other applications with spark.cores.max"
)
"""The reason for an application without executors, and what to do."""
_CONNECT_S: Final = 10.0
REPORT_AFTER_S: Final = 10.0
LOOK_EVERY_S: Final = 2.0


def require_master(master: str, *, wait_s: float = _CONNECT_S) -> None:
    """Raise ServiceUnavailable if no standalone master accepts connections at a URL within `wait_s` seconds: Spark
    itself would try for two minutes. No-op for other masters.
    """
    if not master.startswith(STANDALONE):
        return
    for each in master.removeprefix(STANDALONE).split(","):
        host, _, port = each.rpartition(":")
        with (
            contextlib.suppress(OSError, ValueError, OverflowError),
            socket.create_connection((host, int(port)), timeout=min(wait_s, _CONNECT_S)),
        ):
            return
    raise ServiceUnavailable(f"No Spark master accepts connections at {master}")


def has_executor(spark: SparkSession) -> bool:
    """Return whether the session's application has an executor, apart from its driver. True for a local master."""
    context: Any = spark.sparkContext
    if is_local(str(context.master)):
        return True
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) > 1  # noqa: SLF001 - PySpark has no call for it


def stages_of(spark: SparkSession, tag: str) -> Iterator[SparkStageInfo]:
    """Yield the known stages of Spark jobs with a tag."""
    context: Any = spark.sparkContext
    tracker = context.statusTracker()
    for job in map(tracker.getJobInfo, context._jsc.sc().statusTracker().getJobIdsForTag(tag)):  # noqa: SLF001
        for stage in () if job is None else map(tracker.getStageInfo, job.stageIds):
            if stage is not None:
                yield stage


def lacks_executor(spark: SparkSession, tag: str) -> bool:
    """Return whether tasks of Spark jobs with a tag wait, and the cluster has no executor for the application."""
    return not has_executor(spark) and any(each.numCompletedTasks < each.numTasks for each in stages_of(spark, tag))


def further_settings(config: Mapping[str, str], *, fixed: Mapping[str, str], setting: str) -> dict[str, str]:
    """Return an operator's settings of Spark without the `fixed` ones, and log those. `setting` is their place."""
    for key in sorted(config.keys() & fixed.keys()):
        logger.warning("%s: %s is left out, because Limnos sets it", setting, key)
    return {key: value for key, value in config.items() if key not in fixed}


class ExecutorWait:
    """For how long a job has been waiting for an executor without a break."""

    def __init__(self, lacks: Callable[[], bool], *, max_s: float) -> None:
        """`lacks` returns whether the job waits; `max_s` is the longest wait."""
        self._lacks, self._max_s = lacks, max_s
        self._since: float | None = None
        self.seconds = 0.0
        self.is_over = False
        """Whether the wait was too long."""

    def look(self) -> bool:
        """Measure the wait, and return whether it is too long. A job whose Spark does not answer does not wait."""
        try:
            lacks = self._lacks()
        except Exception:  # noqa: BLE001 - the Java process has ended; the job's own thread reports it
            lacks = False
        now = time.monotonic()
        self._since = (self._since or now) if lacks else None
        self.seconds = 0.0 if self._since is None else now - self._since
        self.is_over = self.seconds > self._max_s
        return self.is_over


@contextmanager
def reporting_wait(spark: SparkSession, work: str) -> Iterator[None]:
    """Log a warning, once, if the application has no executor for `REPORT_AFTER_S` seconds in the body of a `with`.

    `work` is the work that waits. Spark itself warns only before an application's first task.
    """
    over = threading.Event()
    wait = ExecutorWait(lambda: not has_executor(spark), max_s=REPORT_AFTER_S)

    def watch() -> None:
        while not over.wait(LOOK_EVERY_S):
            if wait.look():
                logger.warning(
                    "%s waits: the cluster has had no executor for %.0f s: %s", work, wait.seconds, NO_EXECUTOR
                )
                return

    threading.Thread(target=watch, name="executor-wait", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def await_executor(spark: SparkSession, master: str, *, wait_s: float) -> None:
    """Wait for the first executor of an application. Raises ServiceUnavailable after `wait_s` seconds."""
    until = time.monotonic() + wait_s
    while not has_executor(spark):
        if time.monotonic() > until:
            raise no_executor(master, wait_s=wait_s)
        time.sleep(0.5)


def no_executor(master: str, *, wait_s: float) -> ServiceUnavailable:
    """Return the error of a cluster that provided no executor in time."""
    return ServiceUnavailable(f"The cluster at {master} allocated no executor within {wait_s:g} s: {NO_EXECUTOR}")
