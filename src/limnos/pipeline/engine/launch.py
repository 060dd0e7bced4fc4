# SPDX-License-Identifier: Apache-2.0
"""Spark sessions for runs of pipelines: local, on a cluster, or by Spark Connect.

Starts and ends a session with the catalogs of a metalake, configured so that steps share Spark fairly. Must not know
pipelines. The credential is set only on the running session, so that command lines and the Spark UI never show it.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limnos.client import Client
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import StopSignal
from limnos.spark.cluster import require_master
from limnos.spark.connect import connect_session
from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.machine import end_session
from limnos.spark.session import PROVIDER, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.scheduler.mode": "FAIR", "spark.log.level": "ERROR"}
"""Settings of a started Spark. FAIR scheduling lets concurrent steps share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConnection:
    """The server, the metalake and the caller of a session."""

    uri: str
    metalake: str = "lake"
    token: str | None = None
    user: str | None = None
    ca_file: str | None = None

    def client(self, timeout_s: float = 60.0) -> Client:
        """Create a client for this server, metalake and credential."""
        return Client(
            self.uri,
            token=self.token,
            user=self.user,
            metalake=self.metalake,
            timeout_s=timeout_s,
            ca_file=self.ca_file,
        )

    def lance_access(self, connect: str | None) -> ServerAccess | None:
        """Return the access to Lance tables for a session of this connection; None for Spark Connect (`connect`), by
        which they are not written.
        """
        if connect is not None:
            return None
        return ServerAccess(
            uri=self.uri, metalake=self.metalake, token=self.token, user=self.user, ca_file=self.ca_file
        )


@contextmanager
def spark_for(
    connection: ServerConnection,
    *,
    master: str = "local[*]",
    connect: str | None = None,
    config: Mapping[str, str] | None = None,
    away_s: float = 0,
) -> Iterator[SparkSession]:
    """Open a session with all Iceberg catalogs of the metalake that the caller may see, for the body of a `with`.

    `connect` is the URL of a Spark Connect server, `sc://host:15002`; if None, Spark is started for `master`. An
    unreachable server is retried for `away_s` seconds. Raises ServiceUnavailable if no standalone master accepts
    connections at `master`.
    """
    if connect is None:
        require_master(master)
    with connection.client() as client:
        listed = RetryPolicy(away_s, stop=StopSignal()).call(client.catalogs.list)
        catalogs = sorted(each.name for each in listed if each.provider == PROVIDER)
    with _quiet():
        spark = (
            _start_session(connection, catalogs, master=master, config=config)
            if connect is None
            else connect_session(
                connect,
                connection.uri,
                metalake=connection.metalake,
                catalogs=catalogs,
                token=connection.token,
                user=connection.user,
                config=config,
            )
        )
    _silence_query_errors()
    try:
        yield spark
    finally:
        if connect is not None:  # do not retry for ten minutes to close a session whose server is gone
            connected: Any = spark
            connected.client.set_retry_policies([])
            spark.stop()
        else:
            end_session(spark)


@contextmanager
def local_spark(master: str = "local[2]") -> Iterator[SparkSession]:
    """Open a session without catalogs, for unit tests: few partitions, because their rows are few."""
    config = {**_SETTINGS, "spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
    with _quiet():
        spark = session(catalogs=(), master=master, app_name="limnos-pipeline-test", config=config, lance=False)
    _silence_query_errors()
    try:
        yield spark
    finally:
        end_session(spark)


def _start_session(
    connection: ServerConnection, catalogs: Sequence[str], *, master: str, config: Mapping[str, str] | None
) -> SparkSession:
    return session(
        connection.uri,
        metalake=connection.metalake,
        catalogs=catalogs,
        token=connection.token,
        user=connection.user,
        master=master,
        app_name="limnos-pipeline",
        config={**_SETTINGS, **(config or {})},
        ca_file=connection.ca_file,
    )


def _silence_query_errors() -> None:
    """Turn off PySpark's log of errors of queries and DataFrames: this package reports them, without Java's stack."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - heavy, and only in the extra

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the stderr output of a starting Spark; print it if the start fails."""
    sys.stderr.flush()
    try:
        terminal = os.dup(2)
    except OSError:
        yield
        return
    handle, name = tempfile.mkstemp(prefix="limnos-spark-", suffix=".log")
    os.dup2(handle, 2)
    try:
        yield
    except BaseException:
        os.write(terminal, Path(name).read_bytes())
        raise
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(handle)
        Path(name).unlink()
