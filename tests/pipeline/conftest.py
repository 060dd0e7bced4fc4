# SPDX-License-Identifier: Apache-2.0
"""A real server and one warm Spark for all pipeline tests in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from conformance.tpch.data import deliveries
from conformance.tpch.trial import Line, Trial
from limnos.client import Client
from limnos.spark import session
from tests.integration.live import LiveServer, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for the whole test run: SQLite, access control on. Tests use their own namespaces."""
    data = tmp_path_factory.mktemp("server") / "data"
    with serving(data, "--allow-root", str(tmp_path_factory.getbasetemp())) as running:
        yield running


@pytest.fixture(scope="session")
def served_spark(server: LiveServer) -> Iterator[SparkSession]:
    """One Spark for the whole test run, as the server's admin. The fixture that started it stops it."""
    alone = SparkContext._active_spark_context is None
    settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.memory": "1500m", "spark.scheduler.mode": "FAIR"}
    running = session(server.uri, token=server.token, master="local[2]", config=settings)
    running.conf.set("spark.sql.session.timeZone", "UTC")
    running.sparkContext.setLogLevel("OFF")
    yield running
    if alone:
        running.stop()


@pytest.fixture
def spark(served_spark: SparkSession) -> SparkSession:
    """A separate session per test, so that tests do not share settings and temporary views."""
    own = served_spark.newSession()
    for key, value in served_spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog.") or key == "spark.sql.session.timeZone":
            own.conf.set(key, value)
    return own


@pytest.fixture
def admin(server: LiveServer) -> Iterator[Client]:
    """A client with the admin's token."""
    with Client(server.uri, token=server.token) as client:
        yield client


@pytest.fixture
def place(spark: SparkSession, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A namespace of the test on the server: catalog and name."""
    name = re.sub(r"\W", "_", request.node.name)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS main.`{name}`")
    return ("main", name)


@dataclass(frozen=True)
class TpchRuns:
    """TPC-H, run on the base and on two days of changes: the location of the data, and the comparison of tables for
    each day.
    """

    directory: Path
    lines: tuple[tuple[Line, ...], ...]


@pytest.fixture(scope="session")
def tpch(served_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TpchRuns:
    """TPC-H at scale 0.01, run and compared for each day, once for all tests of its results."""
    place = tmp_path_factory.mktemp("tpch")
    deliveries(place / "deliveries", scale=0.01, days=2)
    trial = Trial(place, served_spark, deliveries=place / "deliveries")
    return TpchRuns(trial.directory, tuple(trial.day(day) for day in range(3)))


@pytest.fixture
def namespace(admin: Client, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own in catalog `main`."""
    name = request.node.name.replace("[", "_").replace("]", "")
    admin.namespaces.create(("main", name))
    return str(name)


@pytest.fixture
def ana(server: LiveServer, admin: Client, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A user with one role and no privileges; their names end in the test's name."""
    name = f"ana_{request.node.name}"
    admin.users.add(name)
    admin.roles.create(f"role_{request.node.name}")
    admin.roles.grant_to_user(name, [f"role_{request.node.name}"])
    with Client(server.uri, token=admin.tokens.create(user=name).token) as client:
        yield client
