# SPDX-License-Identifier: Apache-2.0
"""Iceberg's actions on Spark: one application for many operations, with a separate session for each.

Must not know leases. Iceberg's actions are called through Py4J, since its procedures take no properties of snapshots.
The token of an operation is set on its session alone, never on a command line. A rewrite that conflicts with another
commit is abandoned, not forced.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from limnos.model.errors import ServiceUnavailable
from limnos.rooms.maintenance.engine.executor import DONE, YIELDED, OperationEnd
from limnos.rooms.maintenance.engine.old_rows import RETENTION, delete_old_rows
from limnos.rooms.maintenance.engine.outcomes import (
    CATALOG,
    RewriteCount,
    data_file_count,
    end_of_error,
    error_text,
    rewrite_text,
    table_identifier,
)
from limnos.rooms.maintenance.engine.restricted_files import RESTRICTED_FILES, SpanPool
from limnos.rooms.maintenance.engine.span_files import probe_worker, write_span
from limnos.spark.allowed_classes import (
    LOCAL_IO,
    STORAGE_IO,
    catalog_settings,
    check_storage,
    check_table,
    hadoop_settings,
    pin_file_io,
    restrict,
    schemes_of,
)
from limnos.spark.cluster import EXECUTOR_WAIT_S, await_executor, reporting_wait, require_master
from limnos.spark.session import another_session, session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from limnos.client.operation.maintenance_values import LeasedOperation
    from limnos.spark.files import SparkFiles

logger = logging.getLogger(__name__)
TASKS_MAX: Final = 64
"""The maximum number of spans that are written at the same time for one operation."""
SETTINGS: Final = {
    "spark.scheduler.mode": "FAIR",
    "spark.task.maxFailures": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
}
_TOKEN_KEY: Final = f"spark.sql.catalog.{CATALOG}.header.Authorization"
"""The key of each session's token; Spark starts with it, and without a token."""
_DELEGATION: Final = {"header.X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}


class SparkRunner:
    """Executes operations in one Spark application, which starts with the first operation."""

    def __init__(
        self,
        uri: str,
        *,
        metalake: str,
        master: str,
        config: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        s3: bool = False,
        files: SparkFiles | None = None,
        executor_wait_s: float = EXECUTOR_WAIT_S,
    ) -> None:
        """Prepare a runner; Spark starts with the first operation.

        Args:
            uri: The base URL of the Limnos server.
            metalake: The metalake of the tables.
            master: The Spark master: `local[2]` or `spark://host:7077`.
            config: More Spark settings; on a cluster `spark.cores.max` limits the application's cores.
            ca_file: Certificate authorities to trust in addition to the system's.
            s3: Whether tables are on S3.
            files: Existing JAR archives and a Java runtime; without them both are found or fetched.
            executor_wait_s: The timeout for the cluster's first executor.
        """
        self._uri, self._metalake, self._master = uri, metalake, master
        self._config, self._ca_file, self._s3, self._files = dict(config or {}), ca_file, s3, files
        self._executor_wait_s = executor_wait_s
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None
        self._refused: tuple[float, ServiceUnavailable] | None = None
        """The time of the last failure to get an executor from the cluster, and its error; None without a failure."""

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation in a new session of the application. Returns its outcome, also for an error."""
        try:
            spark = self._running_session()
            more = {"warehouse": f"{self._metalake}/{operation.catalog}", **catalog_settings(self._file_io)}
            more |= _DELEGATION if self._s3 else {}
            own_session = another_session(
                spark, self._uri, metalake=self._metalake, catalogs=[CATALOG], token=operation.token, more=more
            )
            spark.sparkContext.setJobGroup(str(operation.operation), f"maintenance {operation.kind}", True)
            with reporting_wait(spark, f"operation {operation.operation}"):
                return OperationEnd(DONE, _rewrite(own_session, operation, file_io=self._file_io, uri=self._uri))
        except Exception as error:  # noqa: BLE001 - whatever Java raises ends this operation alone
            if self._forget_stopped():
                return OperationEnd(YIELDED, f"Spark at {self._master} has stopped: {error_text(error)}")
            return end_of_error(error)

    @property
    def _file_io(self) -> str:
        """The class of FileIO for all tables: for files of this machine, unless the JAR archives include others."""
        has_storage = self._s3 or any(key.startswith("spark.jars") for key in self._config)
        return STORAGE_IO if has_storage else LOCAL_IO

    def cancel(self, operation: int) -> None:
        """Cancel the Spark jobs of an operation, whose lease is lost. `operation` is its id."""
        if self._spark is not None:
            self._spark.sparkContext.cancelJobGroup(str(operation))

    def span_pool(self, operation: int) -> SpanPool:
        """Return what writes the spans of an operation: one task of Spark for each. Spark starts if it has not.

        If Python on the workers cannot write spans, threads of this process do. Raises ServiceUnavailable if Spark does
        not start.
        """
        spark = self._running_session()
        context = spark.sparkContext
        at_once = max(1, min(TASKS_MAX, int(context.defaultParallelism)))

        def run_task(function: Callable[[bytes], list[str]], request: bytes) -> list[str]:
            context.setJobGroup(str(operation), f"maintenance {RESTRICTED_FILES}", True)
            rows = context.parallelize([request], 1).mapPartitions(lambda requests: map(function, requests))
            (files,) = rows.collect()
            return files

        try:
            run_task(probe_worker, b"")
        except Exception as error:  # noqa: BLE001 - Java wraps the error of a worker
            reason = error_text(error)
            logger.warning("workers of %s write no files for restricted users: %s", self._master, reason)
            return SpanPool(write_span, at_once=os.cpu_count() or 1)
        return SpanPool(partial(run_task, write_span), at_once)

    def close(self) -> None:
        """Stop Spark if it was started."""
        with self._lock:
            if self._spark is not None:
                self._spark.stop()
                self._spark = None

    def _forget_stopped(self) -> bool:
        """Discard the application if it has stopped, so that the next operation starts another one. Returns whether it
        had stopped.
        """
        with self._lock:
            spark: Any = self._spark
            if spark is None:
                return False
            try:
                is_stopped = bool(spark.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - PySpark has no method for it
            except Exception:  # noqa: BLE001 - the Java process has ended
                is_stopped = True
            if is_stopped:
                self._spark = None
            return is_stopped

    def _running_session(self) -> SparkSession:
        asked_at = time.monotonic()
        with self._lock:
            if self._spark is not None:
                return self._spark
            if self._refused is not None and self._refused[0] >= asked_at:
                raise self._refused[1]  # another thread's attempt failed while this one waited for the lock
            try:
                self._spark = self._start()
            except ServiceUnavailable as error:
                self._refused = (time.monotonic(), error)
                raise
            return self._spark

    def _start(self) -> SparkSession:
        """Start Spark. Raises ServiceUnavailable if it does not start or the cluster gives no executor in time."""
        require_master(self._master, wait_s=self._executor_wait_s)
        try:
            spark = session(
                self._uri,
                metalake=self._metalake,
                catalogs=(),
                master=self._master,
                app_name="limnos-maintenance",
                config={**SETTINGS, **hadoop_settings(self._config), **self._config, _TOKEN_KEY: ""},
                ca_file=self._ca_file,
                s3=self._s3,
                files=self._files,
                lance=False,
            )
        except Exception as error:
            raise ServiceUnavailable(f"Spark did not start with master {self._master}: {error_text(error)}") from error
        try:
            restrict(spark, schemes=schemes_of(self._config))
            await_executor(spark, self._master, wait_s=self._executor_wait_s)
        except Exception as error:
            with contextlib.suppress(Exception):  # a stopped application cannot be stopped again
                spark.stop()
            if isinstance(error, ServiceUnavailable):
                raise
            raise ServiceUnavailable(f"Spark at {self._master} has stopped: {error_text(error)}") from error
        return spark


def _rewrite(spark: SparkSession, operation: LeasedOperation, *, file_io: str, uri: str) -> str:
    """Execute an operation in its session, with a class of FileIO; `uri` is the server. Returns the result as text."""
    machine: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to Iceberg's actions
    java: Any = spark._jsparkSession  # noqa: SLF001
    name = table_identifier(operation.path)
    sessions = machine.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(java)
    try:
        pin_file_io(spark, CATALOG, implementation=file_io, uri=uri)
        table = machine.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java, name)
        check_table(table)
        check_storage(table)
        if table.currentSnapshot() is None:
            return "the table is empty"
        if operation.kind == RETENTION:
            return delete_old_rows(spark, operation)
        actions = machine.org.apache.iceberg.spark.actions.SparkActions.get(java)
        return _OPERATIONS[operation.kind](actions, table, operation=operation)
    finally:
        sessions.clearActiveSession()


def _compact(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401 - Java objects
    return rewrite_text([_run_rewrite(_with_options(actions.rewriteDataFiles(table).binPack(), operation))])


def _run_rewrite(action: Any) -> RewriteCount:  # noqa: ANN401
    result = action.execute()
    removed_count, added_count = result.rewrittenDataFilesCount(), result.addedDataFilesCount()
    return data_file_count(removed_count, added_count, failed=result.failedDataFilesCount())


def _deletes(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401
    """Apply delete files to their data files; in format version 2, then rewrite the remaining position delete files. A
    table without delete files is left unchanged.

    New data files get the sequence number of the rewrite's commit. If they got the sequence number at the rewrite's
    start, an old delete file could still apply to them, and the server would refuse to remove that file.
    """
    if table.currentSnapshot().summary().get("total-delete-files") == "0":
        return rewrite_text([])
    action = _with_options(actions.rewriteDataFiles(table).binPack(), operation)
    count = _run_rewrite(action.option("use-starting-sequence-number", "false"))
    table.refresh()
    if table.currentSnapshot().summary().get("total-delete-files") in (None, "0") or _format_version(table) != 2:
        return rewrite_text([count])
    action = actions.rewritePositionDeletes(table).snapshotProperty("limnos.operation", str(operation.operation))
    result = action.option("rewrite-all", "true").execute()
    removed_count, added_count = result.rewrittenDeleteFilesCount(), result.addedDeleteFilesCount()
    return rewrite_text([count, RewriteCount("delete files", removed_count, added_count)])


def _format_version(table: Any) -> int:  # noqa: ANN401
    return int(table.operations().current().formatVersion())


def _manifests(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401
    action = actions.rewriteManifests(table).snapshotProperty("limnos.operation", str(operation.operation))
    result = action.execute()
    removed_count, added_count = (
        sum(1 for _ in each) for each in (result.rewrittenManifests(), result.addedManifests())
    )
    return rewrite_text([RewriteCount("manifests", removed_count, added_count)])


def _statistics(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401
    del operation
    result = actions.computeTableStats(table).execute()
    return "statistics of all columns" if result.statisticsFile() is not None else "no statistics were needed"


_OPERATIONS: Final = {"compact": _compact, "deletes": _deletes, "manifests": _manifests, "statistics": _statistics}


def _with_options(action: Any, operation: LeasedOperation) -> Any:  # noqa: ANN401
    for name, value in operation.options.items():
        action = action.option(name, value)
    return action.snapshotProperty("limnos.operation", str(operation.operation))
