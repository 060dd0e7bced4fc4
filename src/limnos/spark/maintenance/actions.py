"""Iceberg's actions on Spark: one application for many operations, with a session of its own for each.

May import this room, `client`, `model`, `names` and PySpark. Must not know leases. Iceberg's actions are called through
Py4J, since its procedures take no properties of snapshots. The token of an operation is set on its session alone, never
on a command line. A rewrite that conflicts with another commit is abandoned, not forced.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from limnos.model.errors import ServiceUnavailable, UnsupportedOperation
from limnos.names import display
from limnos.spark.maintenance.executor import DONE, FAILED, YIELDED, OperationEnd
from limnos.spark.session import another_session, is_local, session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from limnos.client.operation.maintenance_values import LeasedOperation
    from limnos.spark.files import SparkFiles

EXECUTOR_WAIT_S: Final = 60.0
"""The maximum seconds that a cluster may take to provide an application's first executor."""
SETTINGS: Final = {
    "spark.scheduler.mode": "FAIR",
    "spark.task.maxFailures": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
}
_GIVES_WAY: Final = re.compile(
    r"CommitFailedException|ValidationException|Cannot commit|missing required files|Cannot determine history",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"lim_\d+_\S+")
_MESSAGE_MAX: Final = 1_000


class SparkRunner:
    """Executes operations on Spark, which starts with the first one."""

    def __init__(
        self, uri: str, *, metalake: str, master: str, config: Mapping[str, str] | None = None,
        ca_file: str | None = None, s3: bool = False, files: SparkFiles | None = None,
    ) -> None:  # fmt: skip
        """Make a runner.

        Args:
            uri: The server.
            metalake: The metalake of the tables.
            master: The Spark master: `local[2]` or `spark://host:7077`.
            config: More Spark settings; on a cluster `spark.cores.max` bounds what the application takes.
            ca_file: Authorities to trust beside the machine's.
            s3: Whether tables lie on S3.
            files: Existing archives and a Java; without them they are found or fetched.
        """
        self._uri, self._metalake, self._master = uri, metalake, master
        self._config, self._ca_file, self._s3, self._files = dict(config or {}), ca_file, s3, files
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation and return its outcome. Raises only errors that are not the operation's."""
        try:
            spark = self._started()
            own = another_session(
                spark, self._uri, metalake=self._metalake, catalogs=[operation.catalog], token=operation.token,
                more={"header.X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"} if self._s3 else {},
            )  # fmt: skip
            spark.sparkContext.setJobGroup(str(operation.operation), f"maintenance {operation.kind}", True)
            return OperationEnd(DONE, _rewrite(own, operation))
        except (ServiceUnavailable, UnsupportedOperation) as error:
            return OperationEnd(YIELDED, error.message)
        except Exception as error:  # noqa: BLE001 - whatever Java raises ends this operation alone
            text = error_text(error)
            return OperationEnd(YIELDED if _GIVES_WAY.search(text) else FAILED, text)

    def cancel(self, operation: int) -> None:
        """Cancel the jobs of an operation."""
        if self._spark is not None:
            self._spark.sparkContext.cancelJobGroup(str(operation))

    def close(self) -> None:
        """Stop Spark if it was started."""
        with self._lock:
            if self._spark is not None:
                self._spark.stop()
                self._spark = None

    def _started(self) -> SparkSession:
        with self._lock:
            if self._spark is None:
                spark = session(
                    self._uri, metalake=self._metalake, catalogs=(), master=self._master, app_name="limnos-maintenance",
                    config={**SETTINGS, **self._config}, ca_file=self._ca_file, s3=self._s3, files=self._files,
                    lance=False,
                )  # fmt: skip
                try:
                    _await_executor(spark, self._master)
                except ServiceUnavailable:
                    spark.stop()
                    raise
                self._spark = spark
            return self._spark


def _await_executor(spark: SparkSession, master: str) -> None:
    """Wait for the first executor of a cluster. Raises ServiceUnavailable after `EXECUTOR_WAIT_S`."""
    if is_local(master):
        return
    context: Any = spark.sparkContext._jsc  # noqa: SLF001 - PySpark has no call for it
    until = time.monotonic() + EXECUTOR_WAIT_S
    while context.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > until:
            raise ServiceUnavailable(
                f"The cluster at {master} gave no executor within {EXECUTOR_WAIT_S:g} s: it has no free cores or memory,"
                " or its workers are gone. Free some, or set spark.cores.max for the applications that hold them"
            )
        time.sleep(0.5)


def _rewrite(spark: SparkSession, operation: LeasedOperation) -> str:
    """Execute an operation in its session. Returns the result for people."""
    machine: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to Iceberg's actions
    java: Any = spark._jsparkSession  # noqa: SLF001
    name = ".".join(map(display.quote_part, (operation.catalog, *operation.path)))
    sessions = machine.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(java)
    try:
        table = machine.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java, name)
        if table.currentSnapshot() is None:
            return "the table is empty"
        actions = machine.org.apache.iceberg.spark.actions.SparkActions.get(java)
        return _OPERATIONS[operation.kind](actions, table, operation=operation)
    finally:
        sessions.clearActiveSession()


def _compact(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401 - Java objects
    return _run_rewrite(_with_options(actions.rewriteDataFiles(table).binPack(), operation))


def _run_rewrite(action: Any) -> str:  # noqa: ANN401
    result = action.execute()
    return f"{result.rewrittenDataFilesCount()} files became {result.addedDataFilesCount()}"


def _deletes(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401
    """Apply delete files to their data files, then rewrite the remaining delete files.

    New data files get the sequence number of the rewrite's commit. With the sequence number at its start, an old delete
    file could still apply to them, and the server would refuse to remove it.
    """
    action = _with_options(actions.rewriteDataFiles(table).binPack(), operation)
    text = _run_rewrite(action.option("use-starting-sequence-number", "false"))
    table.refresh()
    if table.currentSnapshot().summary().get("total-delete-files") in (None, "0") or _format_version(table) != 2:
        return text
    action = actions.rewritePositionDeletes(table).snapshotProperty("limnos.operation", str(operation.operation))
    result = action.option("rewrite-all", "true").execute()
    return f"{text}; {result.rewrittenDeleteFilesCount()} delete files became {result.addedDeleteFilesCount()}"


def _format_version(table: Any) -> int:  # noqa: ANN401
    return int(table.operations().current().formatVersion())


def _manifests(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401
    action = actions.rewriteManifests(table).snapshotProperty("limnos.operation", str(operation.operation))
    result = action.execute()
    rewritten = sum(1 for _ in result.rewrittenManifests())
    return f"{rewritten} manifests became {sum(1 for _ in result.addedManifests())}"


def _statistics(actions: Any, table: Any, *, operation: LeasedOperation) -> str:  # noqa: ANN401
    del operation
    result = actions.computeTableStats(table).execute()
    return "statistics of all columns" if result.statisticsFile() is not None else "no statistics were needed"


_OPERATIONS: Final = {"compact": _compact, "deletes": _deletes, "manifests": _manifests, "statistics": _statistics}


def _with_options(action: Any, operation: LeasedOperation) -> Any:  # noqa: ANN401
    for name, value in operation.options.items():
        action = action.option(name, value)
    return action.snapshotProperty("limnos.operation", str(operation.operation))


def error_text(error: BaseException) -> str:
    """Return the message of an error of Java or Python, without its stack and without tokens."""
    java: Any = getattr(error, "java_exception", None)
    parts: list[str] = []
    while java is not None and len(parts) < 5:
        parts.append(f"{java.getClass().getSimpleName()}: {java.getMessage()}")
        java = java.getCause()
    text = "; ".join(parts) or f"{type(error).__name__}: {error}"
    return _TOKEN.sub("a token", text)[:_MESSAGE_MAX]
