# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: sends the suite's REST catalogs to our server, its Spark to a local one, and records outcomes.

Job: patch what the suite's fixtures connect to, leave out tests of other catalogs, write each outcome. May import
PyIceberg and PySpark. It must not know what is expected.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pyiceberg.catalog import rest

ENVIRONMENT = "LIMNOS_PYICEBERG_SUITE"
"""The variable with the settings as JSON: `catalog` (properties), `jars`, `java_home`, `outcomes`, `provision`."""
REFERENCE = "http://localhost:8181"
OTHERS = ("hive", "memory_catalog", "sqlite_catalog", "rest_test_catalog")
"""Fixtures of other catalogs, and of one that a variable names."""
_SETTINGS: dict[str, Any] = json.loads(os.environ.get(ENVIRONMENT, "{}"))
_OUTCOMES: dict[str, tuple[str, str]] = {}
_connect = rest.RestCatalog.__init__


def _connect_here(self: rest.RestCatalog, name: str, **properties: str) -> None:
    if properties.get("uri") == REFERENCE:
        properties |= _SETTINGS["catalog"]
    _connect(self, name, **properties)


def _local_spark(_builder: object, _url: str) -> object:
    """Return the builder of a local session instead of one of Spark Connect."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = _SETTINGS["java_home"]
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(_SETTINGS["jars"]))
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": "integration",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",  # as Spark Connect makes data frames of pandas
    }
    for catalog in ("rest", "integration"):
        settings[f"spark.sql.catalog.{catalog}"] = "org.apache.iceberg.spark.SparkCatalog"
        settings[f"spark.sql.catalog.{catalog}.type"] = "rest"
        settings[f"spark.sql.catalog.{catalog}.cache-enabled"] = "false"
        for name, value in _SETTINGS["catalog"].items():
            settings[f"spark.sql.catalog.{catalog}.{name}"] = value
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def pytest_sessionstart() -> None:
    """Patch the clients, and create the suite's tables, as its container does."""
    from pyspark.sql import SparkSession

    rest.RestCatalog.__init__ = _connect_here  # type: ignore[method-assign]
    SparkSession.Builder.remote = _local_spark  # type: ignore[assignment,method-assign]
    text = Path(_SETTINGS["provision"]).read_text(encoding="utf-8")
    loop = "for catalog_name, catalog in catalogs.items():"
    assert loop in text
    exec(
        compile(text.replace(loop, 'for catalog_name, catalog in [("rest", catalogs["rest"])]:'), "provision", "exec"),
        {},
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of other catalogs."""
    others = [item for item in items if any(word in item.nodeid or word in item.fixturenames for word in OTHERS)]  # type: ignore[attr-defined]
    config.hook.pytest_deselected(items=others)
    _OUTCOMES.update({item.nodeid: ("other catalog", "") for item in others})
    items[:] = [item for item in items if item not in others]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a test's outcome: that of its call, unless its setup failed or was skipped."""
    if report.when == "call" or (report.when == "setup" and not report.passed):
        error = getattr(report.longrepr, "reprcrash", None)
        text = (
            report.longrepr[-1]
            if isinstance(report.longrepr, tuple)
            else getattr(error, "message", report.longreprtext)
        )
        outcome = report.outcome if not hasattr(report, "wasxfail") else "skipped"
        _OUTCOMES[report.nodeid] = (outcome, "" if report.passed else str(text))


def pytest_sessionfinish() -> None:
    """Write the outcomes."""
    Path(_SETTINGS["outcomes"]).write_text(json.dumps(_OUTCOMES), encoding="utf-8")
