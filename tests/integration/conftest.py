# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests with a real server process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from limnos.spark import session
from tests.integration.live import LiveServer, serving

CHROMIUM = os.environ.get("LIMNOS_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
collect_ignore = (
    []
    if CHROMIUM or os.environ.get("LIMNOS_CHROMIUM_REQUIRED")
    else [
        "test_console_browser.py",
        "test_console_hour.py",
        "test_console_issuer.py",
        "test_pipeline_pictures_browser.py",
    ]
)
"""Without a Chromium the browser tests are deselected, unless `LIMNOS_CHROMIUM_REQUIRED` makes that a failure."""
STEERING = ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")


def pytest_report_header() -> str:
    """Say how to install a Chromium if the browser tests are deselected."""
    return "no Chromium: the console's browser tests are left out; apt-get install chromium" if collect_ignore else ""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for the whole test run: SQLite, access control on; tests use their own namespaces.

    Catalogs may have warehouses below any test's directory.
    """
    data = tmp_path_factory.mktemp("server") / "data"
    with serving(data, "--allow-root", str(tmp_path_factory.getbasetemp())) as running:
        yield running


@pytest.fixture(scope="session")
def environment() -> dict[str, str | None]:
    """The environment variables that affect a start of Spark, as they are before any start."""
    return {name: os.environ.get(name) for name in STEERING}


@pytest.fixture(scope="session")
def spark(server: LiveServer, environment: dict[str, str | None]) -> Iterator[SparkSession]:
    """One Spark for the whole test run, as the server's administrator."""
    running = session(server.uri, token=server.token, config={"spark.sql.session.timeZone": "UTC"})
    running.sparkContext.setLogLevel("OFF")
    yield running
    running.stop()
