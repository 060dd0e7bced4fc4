# SPDX-License-Identifier: Apache-2.0
"""Spark reads tables that were altered over Gravitino REST and Iceberg REST: the model's columns, and every row under
the current names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from pyspark.sql import Row, SparkSession

from tests.integration.live import LiveServer
from tests.integration.test_pyiceberg import connect
from tests.integration.test_two_protocols import SCHEMAS, STORIES, Faces, alter_table_randomly
from tests.nodes.wire import Wire

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SPARK_STORIES = max(3, STORIES // 10)


@pytest.fixture
def faces(server: LiveServer) -> Iterator[Faces]:
    """A schema of this test's own."""
    with closing(Wire(server.uri, token=server.token)) as wire, closing(connect(server)) as catalog:
        wire.do("POST", SCHEMAS, {"name": "spark_faces", "properties": {}})
        yield Faces(wire, catalog, "spark_faces")


def test_spark_reads_columns_altered_over_both_protocols(faces: Faces, spark: SparkSession) -> None:
    """Spark returns the model's columns in their order, and every row under the current names."""
    for number in range(1000, 1000 + SPARK_STORIES):
        model = alter_table_randomly(faces, number)

        frame = spark.sql(f"SELECT * FROM main.spark_faces.t{number} ORDER BY n")
        assert frame.columns == [column.name for column in model.columns]
        assert [_plain(row) for row in frame.collect()] == model.read()


def _plain(value: object) -> object:
    return {key: _plain(each) for key, each in value.asDict().items()} if isinstance(value, Row) else value
