# SPDX-License-Identifier: Apache-2.0
"""The data source `limnos.system`: its parts and filters with its tasks run in this process, and a query in Spark."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Iterator
from datetime import UTC, timedelta

import pytest
from pyspark.sql import SparkSession, datasource
from pyspark.sql.functions import spark_partition_id

from limnos.client import Client, ClientError
from limnos.model.errors import BadRequest
from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.system.source import SystemReader, source_of
from tests.integration.live import LiveServer

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def admin(server: LiveServer) -> Iterator[Client]:
    """A client of the administrator, with some namespaces."""
    with Client(server.uri, token=server.token) as client:
        for number in range(5):
            client.namespaces.create(f"main.system_{number}")
        yield client


def reader_of(server: LiveServer, table: str, *, user: str | None = None, **options: str) -> SystemReader:
    """Return a reader of a table, as Spark plans it."""
    home = ServerAccess(uri=server.uri, metalake="lake", token=None if user else server.token, user=user)
    source = source_of(home)({"table": table, **options})
    return source.reader(source.schema())


def paths(reader: SystemReader) -> list[list[str]]:
    """Return the paths that each task reads."""
    results = []
    for part in reader.partitions():
        copied: SystemReader = pickle.loads(pickle.dumps(reader))
        results.append([path for batch in copied.read(part) for path in batch.column("path").to_pylist()])
    return results


def test_parts_have_all_rows(server: LiveServer, admin: Client) -> None:
    """The tasks together read each object once; columns are those of the option."""
    parts = paths(reader_of(server, "nodes", columns="path,created_at,properties", parts="3"))

    assert len(parts) == 3
    names = [path for part in parts for path in part]
    assert len(names) == len(set(names))
    assert {f"main.system_{number}" for number in range(5)} <= set(names)
    del admin


def test_filters_are_sent_and_left_to_spark(server: LiveServer, admin: Client) -> None:
    """Comparisons of texts and numbers select rows on the server. Spark evaluates all filters, too."""
    reader = reader_of(server, "nodes", columns="id,path,kind")
    filters: list[datasource.Filter] = [
        datasource.EqualTo(("kind",), "namespace"),
        datasource.GreaterThanOrEqual(("path",), "main.system_3"),
        datasource.GreaterThan(("id",), 5),
        datasource.StringContains(("path",), "4"),
        datasource.LessThan(("path",), "main.system_z"),
    ]

    assert list(reader.pushFilters(filters)) == filters
    assert sorted(path for part in paths(reader) for path in part) == ["main.system_3", "main.system_4"]
    del admin


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_times_of_changes_are_sent_as_filters(server: LiveServer, admin: Client, spark: SparkSession) -> None:
    """A comparison of a time selects changes on the server, also with a part of a millisecond."""
    times = spark.read.format("limnos.system").option("table", "changes").load().where("kind = 'namespace'")
    last = max(row.occurred_at for row in times.collect()).astimezone(UTC)
    reader = reader_of(server, "changes", columns="path,occurred_at,kind", parts="2")
    later = datasource.GreaterThan(("occurred_at",), last - timedelta(microseconds=1))

    assert list(reader.pushFilters([later, datasource.EqualTo(("kind",), "namespace")])) != []
    assert [path for part in paths(reader) for path in part] == ["main.system_4"]
    assert times.where(f"occurred_at >= timestamp_millis({round(last.timestamp() * 1000)})").count() == 1
    gc.collect()  # closes PySpark's sockets, which would warn in another test
    del admin


def test_ended_revision_fails_the_read(server: LiveServer, admin: Client) -> None:
    """A part of a revision that is not held, and has passed, is no rows but an error."""
    reader = reader_of(server, "nodes", columns="path")
    part = reader.partitions()[0]
    part.revision = "0" * 32
    with pytest.raises(ClientError) as raised:
        list(reader.read(part))

    assert raised.value.code == "revision-ended"
    del admin


def test_bad_options_are_refused(server: LiveServer) -> None:
    """An unknown table, column or option is refused by name, before any task runs."""
    for options, message in (
        ({"table": "nothing"}, "no system table nothing"),
        ({"table": "nodes", "columns": "id,nothing"}, "no column nothing"),
        ({"table": "nodes", "color": "red"}, "no option color"),
        ({"table": "nodes", "parts": "x"}, "option parts"),
        ({"table": ""}, "Name a system table"),
    ):
        with pytest.raises(BadRequest, match=message):
            reader_of(server, **options)


@pytest.mark.room("exchange")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_query_in_spark_has_the_objects_of_the_export(server: LiveServer, admin: Client, spark: SparkSession) -> None:
    """Spark's tasks read each object of the export once, and join system tables by id; filters select rows."""
    nodes = spark.read.format("limnos.system").option("table", "nodes").option("parts", 4).load()
    owners = spark.read.format("limnos.system").option("table", "owners").load()
    exported = [json.loads(line) for line in b"".join(admin.export("lake", format="json")).splitlines()]
    kinds = ("metalake", "catalog", "namespace", "table", "entity")
    ids = sorted(int(record[kind]["id"]) for record in exported for kind in kinds if kind in record)
    joined = nodes.join(owners.select("id", "owner"), "id").where(
        "kind = 'namespace' and path >= 'main.system_3' and path < 'main.system_5'"
    )

    read = nodes.select("id", spark_partition_id().alias("part")).collect()
    assert sorted(row.id for row in read) == ids
    assert len({row.part for row in read}) == 4
    rows = sorted((row.path, row.created_at.year > 2000) for row in joined.collect())
    assert rows == [("main.system_3", True), ("main.system_4", True)]
    gc.collect()  # closes PySpark's sockets, which would warn in another test
    del server
