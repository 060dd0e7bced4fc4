"""Spark sessions for statements: one JVM for all, and one session with the caller's credential for each statement.

May import the sibling modules, `spark`, the jobs of `sqlpp` and PySpark. Must not know statements. Each statement may
use all task slots except one, and the size of its results on the driver is limited.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING

from limnos.engine.iceberg_library import library_of
from limnos.engine.names import STATEMENT
from limnos.spark.files import SparkFiles
from limnos.spark.session import another_session, session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from limnos.engine.wire import EngineStart
    from limnos.sqlpp.jobs import EngineJob

RESULT_BYTES_MAX = 512 << 20
"""The maximum size in bytes of a result on the driver."""
APP = "limnos-sqlpp"
PARSER_CACHE_PERCENT = 15
"""The maximum size of the cache of Spark's parser, in percent of the driver's memory."""
POOLS = 64
"""The number of Spark's scheduler pools.

Jobs in one pool get free slots in order, and pools in turn; concurrent statements use different pools.
"""


class StatementSessions:
    """The engine's Spark application; `begin` starts it."""

    def __init__(self, start: EngineStart) -> None:
        self._start = start
        self._spark: SparkSession | None = None
        self._pools = cycle(range(POOLS))

    def begin(self, network: Mapping[str, str] | None = None) -> None:
        """Start Spark, which takes seconds. `network` are settings of its ports.

        Raises the errors of `limnos.spark.session`.
        """
        start = self._start
        settings = {
            "spark.driver.memory": start.memory,
            "spark.driver.maxResultSize": str(RESULT_BYTES_MAX),
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
            # An event log masks only keys that Spark was started with, so the tokens of statements would be in it.
            "spark.eventLog.enabled": "false",
        }
        files = SparkFiles(start.jars, start.java_home, start.java_runtime) if start.jars else None
        self._spark = session(
            start.uri,
            metalake=start.metalake,
            catalogs=(),
            master=start.master,
            app_name=APP,
            config={**settings, **(network or {})},
            files=files,
        )
        self._spark.sparkContext.setLogLevel("ERROR")

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
        """Cancel a job's work in Spark. May be called from any thread."""
        if self._spark is not None:
            self._spark.sparkContext.cancelJobGroup(job)
            self._spark.sparkContext.cancelJobsWithTag(job)  # for actions that set job groups of their own

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
        more = {
            "rest-metrics-reporting-enabled": "false",  # metrics reports of statements are not used
            # A statement loads each table once: Spark reads the very metadata whose snapshot was compared with the pin.
            "cache-enabled": "true",
            "cache.expiration-interval-ms": "-1",
        }
        if job.lock:
            more["header.X-Limnos-Lock"] = job.lock
        spark = another_session(
            self._spark, start.uri, metalake=start.metalake, catalogs=catalogs, token=job.credential, more=more
        )
        context = spark.sparkContext
        spark.conf.set(STATEMENT, job.id)
        context.setLocalProperty("spark.scheduler.pool", f"statement-{next(self._pools)}")
        context.setJobGroup(job.id, APP, interruptOnCancel=True)
        context.addJobTag(job.id)
        # PySpark sets the thread's session, in which catalogs are looked up, only sometimes.
        library_of(spark).make_active(spark._jsparkSession)  # noqa: SLF001
        try:
            yield spark
        finally:
            context.removeJobTag(job.id)  # a thread may run several jobs, and each of them carries all its tags
