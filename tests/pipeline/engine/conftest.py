# SPDX-License-Identifier: Apache-2.0
"""A Spark for tests of the pipeline engine without a server: Iceberg tables are in a directory.

There is one per test process. If Spark already runs, this is another session of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from limnos.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "here"


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session whose catalog `here` has Iceberg tables in its own directory."""
    settings = {
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": tmp_path_factory.mktemp("warehouse").as_uri(),
        "spark.sql.session.timeZone": "UTC",
    }
    config = {"spark.driver.memory": "1500m", "spark.sql.shuffle.partitions": "2"}
    alone = SparkContext._active_spark_context is None
    running = session(catalogs=(), master="local[2]", config=config)
    running.sparkContext.setLogLevel("OFF")
    for key, value in settings.items():
        running.conf.set(key, value)
    yield running
    if alone:
        running.stop()


@pytest.fixture
def corner(here: SparkSession, request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The path of a namespace of the test."""
    parts = (CATALOG, "".join(letter if letter.isalnum() else "_" for letter in request.node.name))
    here.sql(f"CREATE NAMESPACE IF NOT EXISTS {'.'.join(parts)}")
    return parts
