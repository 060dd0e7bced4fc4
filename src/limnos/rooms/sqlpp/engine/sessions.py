# SPDX-License-Identifier: Apache-2.0
"""Spark sessions for statements: one JVM for all, and one session with the caller's credential for each statement.

Must not know statements. Each statement may use all task slots except one, and the size of its results on the driver is
limited.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING

from limnos.rooms.sqlpp.engine.arrow import AHEAD_MAX
from limnos.rooms.sqlpp.engine.iceberg_library import library_of
from limnos.rooms.sqlpp.engine.names import STATEMENT
from limnos.spark.allowed_classes import LOCAL_IO, catalog_settings, hadoop_settings, pin_file_io, restrict
from limnos.spark.cluster import further_settings, lacks_executor, stages_of
from limnos.spark.files import SparkFiles
from limnos.spark.gateway import disable_answer_delay
from limnos.spark.session import another_session, session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from limnos.rooms.sqlpp.engine.wire import EngineStart
    from limnos.rooms.sqlpp.language.jobs import EngineJob

RESULT_BYTES_MAX = 512 << 20
"""The maximum size in bytes of a piece of a result on the driver: a partition of a streamed result, or a whole one."""
BROADCAST_BYTES_LEAST = 16 << 20
BROADCASTS_PERCENT = 60
"""The part of the heap that the broadcast tables of all concurrent statements may use together, in percent."""
APP = "limnos-sqlpp"
CONNECTS_MS, WAITS_MAX_MS = 5_000, 60_000
"""The maximum times in ms in which the server accepts a connection, and in which it sends a part of an answer."""
WAITING_PART = 0.8
"""The maximum fraction of a statement's time that it waits for a part of an answer."""
PARSER_CACHE_PERCENT = 15
"""The maximum size of the cache of Spark's parser, in percent of the driver's memory."""
POOLS = 64
"""The number of Spark's scheduler pools.

Jobs in one pool get free slots in order, and pools in turn; concurrent statements use different pools.
"""


_OPEN_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
"""Settings that an operator may change. Spark's pages show the statements of all users."""


def broadcast_bytes_max(start: EngineStart) -> int:
    """Return the maximum size in bytes of a table that a statement broadcasts.

    The tables of all concurrent statements, some of which have two, stay below `BROADCASTS_PERCENT` of the heap.
    """
    heap = int(start.memory[:-1]) << (30 if start.memory[-1] == "g" else 20)
    share = heap * BROADCASTS_PERCENT // 100 // (start.statements_max + AHEAD_MAX)
    return max(BROADCAST_BYTES_LEAST, min(RESULT_BYTES_MAX, share))


def client_settings(deadline_ms: int) -> dict[str, str]:
    """Return the catalog settings of a statement's client: time-outs before its deadline, and no metrics reports."""
    waits_ms = max(1, min(WAITS_MAX_MS, round(deadline_ms * WAITING_PART)))
    return {
        "rest-metrics-reporting-enabled": "false",
        "rest.client.connection-timeout-ms": str(min(CONNECTS_MS, waits_ms)),
        "rest.client.socket-timeout-ms": str(waits_ms),
    }


class StatementSessions:
    """The engine's Spark application; `begin` starts it."""

    def __init__(self, start: EngineStart) -> None:
        self._start = start
        self._spark: SparkSession | None = None
        self._pools = cycle(range(POOLS))
        self._threads: dict[str, JavaObject] = {}
        """The JVM thread of each running job."""

    def begin(self, network: Mapping[str, str] | None = None) -> None:
        """Start Spark, which takes seconds. `network` are settings of its ports.

        Raises the errors of `limnos.spark.session`.
        """
        start = self._start
        settings = hadoop_settings({}) | {
            "spark.driver.memory": start.memory,
            "spark.driver.maxResultSize": str(RESULT_BYTES_MAX),
            "spark.sql.maxBroadcastTableSize": str(broadcast_bytes_max(start)),
            "spark.sql.shuffle.partitions": str(self.parts),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.caseSensitive": "true",
            "spark.local.dir": start.scratch,
            "spark.sql.warehouse.dir": f"{start.scratch}/nothing",
            "spark.sql.artifact.isolation.enabled": "false",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={start.scratch} -Duser.timezone=UTC",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
            "spark.scheduler.mode": "FAIR",
            # Without a limit, the cache of Spark's parser grows with each statement whose text has a new structure.
            "spark.sql.parser.manageParserCaches": "true",
            "spark.sql.parser.parserDfaCacheFlushRatio": str(PARSER_CACHE_PERCENT),
            # A task without memory fails its statement, not the JVM with all statements.
            "spark.executor.killOnFatalError.depth": "0",
            # An event log masks only keys that Spark was started with, so the tokens of statements would be in it.
            "spark.eventLog.enabled": "false",
            "spark.sql.runSQLOnFiles": "false",
            "spark.sql.catalogImplementation": "in-memory",
        }
        fixed = {**settings, **(network or {})}
        files = SparkFiles(start.jars, start.java_home, start.java_runtime) if start.jars else None
        spark = session(
            start.uri,
            metalake=start.metalake,
            catalogs=(),
            master=start.master,
            app_name=APP,
            config={**_OPEN_SETTINGS, **further_settings(start.config, fixed=fixed, setting="engine.conf"), **fixed},
            files=files,
        )
        spark.sparkContext.setLogLevel("ERROR")
        restrict(spark)
        self._spark = spark

    def warm_up(self) -> None:
        """Run a small job to load the classes that every first statement needs. Raises RuntimeError before `begin`."""
        if self._spark is None:
            raise RuntimeError("Spark has not been started")
        spark = self._spark.newSession()
        library_of(spark)
        spark.sql("SELECT id % 2 AS k, count(*) AS n FROM range(10) GROUP BY id % 2").toArrow()

    @property
    def parts(self) -> int:
        """The number of tasks that one statement runs concurrently: all task slots except one."""
        return max(1, self._start.slots - 1)

    def is_alive(self) -> bool:
        """Return whether the JVM responds."""
        machine = None if self._spark is None else self._spark._jvm  # noqa: SLF001 - PySpark has no API for it
        try:
            return machine is not None and machine.java.lang.System.currentTimeMillis() > 0
        except Exception:  # noqa: BLE001 - any failure to answer
            return False

    def end(self, job: str) -> None:
        """Cancel a job's work in Spark, and interrupt its thread in the JVM. May be called from any thread, repeatedly:
        a call does not reach work that begins later.
        """
        if self._spark is not None:
            self._spark.sparkContext.cancelJobGroup(job)
            self._spark.sparkContext.cancelJobsWithTag(job)  # for actions that set job groups of their own
        thread = self._threads.get(job)
        if thread is not None:
            thread.interrupt()  # of a plan, a commit's retry or a wait for tasks

    def has_tasks(self, job: str) -> bool:
        """Return whether Spark tasks of a job run. A cancelled task runs on while it ignores its interrupt, for example
        in a call to the file system that does not return.
        """
        return self._spark is not None and any(each.numActiveTasks > 0 for each in stages_of(self._spark, job))

    def lacks_executor(self, job: str) -> bool:
        """Return whether tasks of a job wait, and the cluster has no executor for the engine."""
        return self._spark is not None and lacks_executor(self._spark, job)

    @contextmanager
    def of(self, job: EngineJob) -> Iterator[SparkSession]:
        """Yield a session for one statement, on the current thread.

        The session has the rights of the job's credential, and its snapshots record the job's id. Raises RuntimeError
        if Spark is not started.
        """
        start = self._start
        refs = (*job.reads, *(() if job.target is None else (job.target,)))
        catalogs = sorted({ref.path[0] for ref in refs})
        if self._spark is None:
            raise RuntimeError("Spark has not been started")
        more = catalog_settings(LOCAL_IO) | client_settings(job.deadline_ms)
        # A statement loads each table once: Spark reads the very metadata whose snapshot was compared with the pin.
        more |= {"cache-enabled": "true", "cache.expiration-interval-ms": "-1"}
        if job.lock:
            more["header.X-Limnos-Lock"] = job.lock
        spark = another_session(
            self._spark, start.uri, metalake=start.metalake, catalogs=catalogs, token=job.credential, more=more
        )
        disable_answer_delay(spark)
        context = spark.sparkContext
        spark.conf.set(STATEMENT, job.id)
        context.setLocalProperty("spark.scheduler.pool", f"statement-{next(self._pools)}")
        context.setJobGroup(job.id, APP, interruptOnCancel=True)
        context.addJobTag(job.id)
        library = library_of(spark)
        self._threads[job.id] = library.current_thread()
        try:
            # PySpark sets the thread's session, in which catalogs are looked up, only sometimes.
            library.make_active(spark._jsparkSession)  # noqa: SLF001
            for name in catalogs:
                pin_file_io(spark, name, implementation=LOCAL_IO, uri=start.uri)
            yield spark
        finally:
            del self._threads[job.id]
            context.removeJobTag(job.id)  # a thread may run several jobs, and each of them carries all its tags
