"""Spark sessions for runs of pipelines: local, on a cluster, or by Spark Connect.

Starts and ends a session with the catalogs of a metalake, configured so that steps share Spark fairly. May import
`spark`, `client`, `model` and PySpark. Must not know pipelines. The credential is set only on the running session, so
that command lines and the Spark UI never show it.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limnos.client import Client
from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import StopSignal
from limnos.spark.session import PROVIDER, authorization, config_for, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_CATALOG = "spark.sql.catalog."
_CONNECT_PORT = 15002
_CONNECT_WITHIN_S = 10
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
        """Open a client with this connection."""
        return Client(
            self.uri,
            token=self.token,
            user=self.user,
            metalake=self.metalake,
            timeout_s=timeout_s,
            ca_file=self.ca_file,
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

    `connect` is the address of a Spark Connect server, `sc://host:15002`; if None, Spark is started for `master`. An
    unreachable server is retried for `away_s` seconds.
    """
    with connection.client() as client:
        listed = RetryPolicy(away_s, stop=StopSignal()).on(client.catalogs.list)
        catalogs = sorted(each.name for each in listed if each.provider == PROVIDER)
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - heavy, and only in the extra

    with _quiet():
        spark = (
            _start_session(connection, catalogs, master=master, config=config)
            if connect is None
            else _connect_session(connection, catalogs, address=connect, config=config)
        )
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(
        logging.CRITICAL
    )  # errors are reported by this package, without Java's stack
    try:
        yield spark
    finally:
        if connect is not None:  # do not retry for ten minutes to close a session whose server is gone
            connected: Any = spark
            connected.client.set_retry_policies([])
        spark.stop()


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


def _connect_session(
    connection: ServerConnection, catalogs: Sequence[str], *, address: str, config: Mapping[str, str] | None
) -> SparkSession:
    """Open a session of a running Spark Connect server. The server must have Iceberg's runtime and extensions."""
    if not address.startswith("sc://"):
        raise BadRequest(f"--connect {address}: the address of a Spark Connect server is written sc://HOST:15002")
    _require_listener(address)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy, and only in the extra

    settings = config_for(
        connection.uri,
        metalake=connection.metalake,
        catalogs=catalogs,
        authorization=authorization(token=connection.token, user=connection.user),
        master=address,
    )
    try:
        spark: SparkSession = SparkSession.builder.remote(address).create()
    except Exception as error:
        raise ServiceUnavailable(f"No Spark Connect server answers at {address}: {error}") from error
    requested = {key: value for key, value in settings.items() if key.startswith(_CATALOG)}
    for key, value in {**requested, "spark.sql.session.timeZone": "UTC", **(config or {})}.items():
        spark.conf.set(key, value)
    return spark


def _require_listener(address: str) -> None:
    """Raise ServiceUnavailable if nothing listens at the address; otherwise Spark's client would retry for minutes."""
    place = urlsplit(address.partition(";")[0])
    try:
        with socket.create_connection((place.hostname or "", place.port or _CONNECT_PORT), timeout=_CONNECT_WITHIN_S):
            return
    except (OSError, ValueError) as error:
        raise ServiceUnavailable(
            f"No Spark Connect server answers at {address}: {error}. Start it, or use `--master`."
        ) from error


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
