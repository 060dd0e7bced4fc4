# SPDX-License-Identifier: Apache-2.0
"""Iceberg's procedures over Spark Connect: a separate session for each operation.

Must not know leases. Spark Connect reaches no Java object, so the procedures are called by SQL. The server names the
operation in the snapshot, and moves checkpoints to it.
"""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from limnos.rooms.maintenance.engine.executor import DONE, OperationEnd
from limnos.rooms.maintenance.engine.old_rows import RETENTION, delete_old_rows
from limnos.rooms.maintenance.engine.outcomes import (
    CATALOG,
    RewriteCount,
    data_file_count,
    end_of_error,
    quote_identifier,
    rewrite_text,
    table_identifier,
)
from limnos.spark.allowed_classes import check_names
from limnos.spark.cluster import EXECUTOR_WAIT_S, no_executor
from limnos.spark.connect import connect_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from limnos.client.operation.maintenance_values import LeasedOperation

_WAREHOUSE: Final = f"spark.sql.catalog.{CATALOG}.warehouse"
_WAITS: Final = "limnos-waits-for-an-executor"


class ConnectRunner:
    """Executes operations on a Spark Connect server, each in its own session."""

    def __init__(
        self,
        uri: str,
        *,
        metalake: str,
        address: str,
        config: Mapping[str, str] | None = None,
        s3: bool = False,
        executor_wait_s: float = EXECUTOR_WAIT_S,
    ) -> None:
        """Prepare a runner; it connects with the first operation.

        Args:
            uri: The base URL of the Limnos server.
            metalake: The metalake of the tables.
            address: The Spark Connect server, `sc://host:15002`.
            config: More settings of each session.
            s3: Whether tables are on S3.
            executor_wait_s: The timeout in seconds for the cluster to run a first task.
        """
        self._uri, self._metalake, self._address = uri, metalake, address
        self._config, self._s3 = dict(config or {}), s3
        self._executor_wait_s = executor_wait_s
        self._lock = threading.Lock()
        self._has_executor = False
        self._sessions: dict[int, SparkSession] = {}

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation in a new session. Returns its outcome, also for an error."""
        try:
            spark = connect_session(
                self._address,
                self._uri,
                metalake=self._metalake,
                catalogs=[CATALOG],
                token=operation.token,
                config={**self._config, _WAREHOUSE: f"{self._metalake}/{operation.catalog}"},
                s3=self._s3,
            )
            self._sessions[operation.operation] = spark
            try:
                self._await_executor(spark)
                return OperationEnd(DONE, _call(spark, operation))
            finally:
                del self._sessions[operation.operation]
                connected: Any = spark
                connected.client.set_retry_policies([])  # do not retry to end the session on a server that has stopped
                spark.stop()
        except Exception as error:  # noqa: BLE001 - whatever the server raises ends this operation alone
            return end_of_error(error)

    def cancel(self, operation: int) -> None:
        """Interrupt the session of an operation, whose lease is lost. `operation` is its id."""
        spark = self._sessions.get(operation)
        if spark is not None:
            spark.interruptAll()

    def close(self) -> None:
        """No-op: each operation ends its own session."""

    def _await_executor(self, spark: SparkSession) -> None:
        """Run a first task on the cluster, once per runner. Raises ServiceUnavailable if it does not end within the
        timeout.
        """
        with self._lock:
            if self._has_executor:
                return
            is_late = threading.Event()

            def interrupt() -> None:
                is_late.set()
                spark.interruptTag(_WAITS)

            timer = threading.Timer(self._executor_wait_s, interrupt)
            timer.start()
            spark.addTag(_WAITS)
            try:
                spark.range(0, 1, 1, 1).selectExpr("rand() AS r").collect()
            except Exception:
                if is_late.is_set():
                    raise no_executor(self._address, wait_s=self._executor_wait_s) from None
                raise
            finally:
                timer.cancel()
                spark.removeTag(_WAITS)
            self._has_executor = True


def _call(spark: SparkSession, operation: LeasedOperation) -> str:
    """Call the procedures of an operation. Returns the result as human-readable text. Raises UnsafeTable."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {table_identifier(operation.path)}").collect()
    check_names(row["key"] for row in rows)
    return _OPERATIONS[operation.kind](spark, operation)


def _procedure(
    spark: SparkSession, operation: LeasedOperation, *, name: str, options: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Call the Iceberg procedure `name` on the operation's table. Returns the first row of its result; empty if it has
    no rows.
    """
    table = ".".join(map(quote_identifier, operation.path))
    arguments = f"table => {_text(table)}"
    if options:
        pairs = ", ".join(f"{_text(key)}, {_text(value)}" for key, value in options.items())
        arguments += f", options => map({pairs})"
    rows = spark.sql(f"CALL {CATALOG}.system.{name}({arguments})").collect()
    return rows[0].asDict() if rows else {}


def _text(value: str) -> str:
    """Quote a string as a literal of Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _compact(spark: SparkSession, operation: LeasedOperation) -> str:
    return rewrite_text([_files(_procedure(spark, operation, name="rewrite_data_files", options=operation.options))])


def _files(row: Mapping[str, Any]) -> RewriteCount:
    removed_count, added_count = row.get("rewritten_data_files_count", 0), row.get("added_data_files_count", 0)
    return data_file_count(removed_count, added_count, failed=row.get("failed_data_files_count", 0))


def _deletes(spark: SparkSession, operation: LeasedOperation) -> str:
    """Apply delete files to their data files; in format version 2, then rewrite the remaining position delete files by
    a second procedure.
    """
    options = {**operation.options, "use-starting-sequence-number": "false"}
    count = _files(_procedure(spark, operation, name="rewrite_data_files", options=options))
    name = table_identifier(operation.path)
    (version,) = spark.sql(f"SHOW TBLPROPERTIES {name} ('format-version')").collect()
    if version["value"] != "2":
        return rewrite_text([count])
    row = _procedure(spark, operation, name="rewrite_position_delete_files", options={"rewrite-all": "true"})
    removed_count, added_count = row.get("rewritten_delete_files_count", 0), row.get("added_delete_files_count", 0)
    return rewrite_text([count, RewriteCount("delete files", removed_count, added_count)])


def _manifests(spark: SparkSession, operation: LeasedOperation) -> str:
    row = _procedure(spark, operation, name="rewrite_manifests")
    removed_count, added_count = row.get("rewritten_manifests_count", 0), row.get("added_manifests_count", 0)
    return rewrite_text([RewriteCount("manifests", removed_count, added_count)])


def _statistics(spark: SparkSession, operation: LeasedOperation) -> str:
    row = _procedure(spark, operation, name="compute_table_stats")
    return "statistics of all columns" if row.get("statistics_file") else "no statistics were needed"


_OPERATIONS: Final = {
    "compact": _compact,
    "deletes": _deletes,
    "manifests": _manifests,
    "statistics": _statistics,
    RETENTION: delete_old_rows,
}
