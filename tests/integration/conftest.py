"""Fixtures of the tests that talk to a real server process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from limnos.spark import session
from tests.integration.live import LiveServer, serving

STEERING = ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for the whole run: SQLite, access control on; tests keep to namespaces of their own.

    Catalogs may have warehouses below any test's directory.
    """
    data = tmp_path_factory.mktemp("server") / "data"
    with serving(data, "--allow-root", str(tmp_path_factory.getbasetemp())) as running:
        yield running


@pytest.fixture(scope="session")
def environment() -> dict[str, str | None]:
    """The variables that steer a Spark start, before any."""
    return {name: os.environ.get(name) for name in STEERING}


@pytest.fixture(scope="session")
def spark(server: LiveServer, environment: dict[str, str | None]) -> Iterator[SparkSession]:
    """One Spark for the whole run, as the server's administrator."""
    running = session(server.uri, token=server.token, config={"spark.sql.session.timeZone": "UTC"})
    running.sparkContext.setLogLevel("OFF")
    yield running
    running.stop()
