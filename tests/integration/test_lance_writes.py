# SPDX-License-Identifier: Apache-2.0
"""The writes of a Spark job to a Lance table, with its tasks run in this process: the server is real, Spark is not
needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import lance
import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from limnos.client import Client, DeniedError, NotFoundError, RefusedError
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.lance.source import LanceSource, source_of
from limnos.spark.lance.writing import LanceWriter
from tests.integration.live import LiveServer

pytestmark = pytest.mark.integration
COLUMNS = spark.StructType(
    [
        spark.StructField("id", spark.LongType()),
        spark.StructField("vector", spark.ArrayType(spark.FloatType())),
    ]
)


def rows(*ids: int, length: int = 2) -> list[pa.RecordBatch]:
    """Return the rows of one task, as arrays, because Spark has no vectors."""
    vectors = pa.array([[float(each)] * length for each in ids], pa.list_(pa.float32()))
    return [pa.record_batch({"id": pa.array(ids, pa.int64()), "vector": vectors})]


@pytest.fixture
def admin(server: LiveServer) -> Iterator[Client]:
    """A client of the administrator."""
    with Client(server.uri, token=server.token) as client:
        yield client


@pytest.fixture
def space(admin: Client, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = f"lance.{re.sub(r'[^a-z_]', '_', request.node.name)}"
    admin.namespaces.create(name)
    return name


def source(server: LiveServer, path: str, *, token: str | None = None, **options: str) -> LanceSource:
    """Return a session's data source for one table."""
    home = ServerAccess(uri=server.uri, metalake="lake", token=token or server.token)
    return source_of(home)({"path": path, **options})


def written(
    server: LiveServer, path: str, *tasks: Sequence[pa.RecordBatch], overwrite: bool = False, **options: str
) -> LanceWriter:
    """Write as a Spark job does: plan, run each task, commit."""
    writer = source(server, path, **options).writer(COLUMNS, overwrite)
    writer.commit([writer.write(iter(task)) for task in tasks])
    return writer


def read(server: LiveServer, path: str, **options: str) -> list[int]:
    """Return the ids that a job reads."""
    data_source = source(server, path, **options)
    reader = data_source.reader(data_source.schema())
    return sorted(row["id"] for each in reader.partitions() for batch in reader.read(each) for row in batch.to_pylist())


def test_table_is_created_appended_to_and_replaced(server: LiveServer, admin: Client, space: str) -> None:
    """Rows of all tasks are one version, and vectors have a fixed size. Older versions are read by number; a write
    without rows adds no version.
    """
    path = f"{space}.docs"

    written(server, path, rows(1, 2), [], rows(3), vectors="vector=2")
    first = admin.lance.load(path)
    written(server, path, rows(4))
    written(server, path, [])
    second = admin.lance.load(path)
    written(server, path, rows(9), overwrite=True)

    assert first.version is not None
    assert second.version == first.version + 1
    assert lance.dataset(first.location).checkout_version(first.version).schema.field("vector").type.list_size == 2
    assert read(server, path) == [9]
    assert read(server, path, version=str(second.version)) == [1, 2, 3, 4]
    assert read(server, path, version=str(first.version), columns="id") == [1, 2, 3]
    written(server, path, [], overwrite=True)
    assert read(server, path) == []


@pytest.mark.parametrize("managed", ["false", "true"])
def test_read_by_tag_returns_the_tagged_version(server: LiveServer, admin: Client, space: str, managed: str) -> None:
    """A job reads the version of a tag, also after later versions. A missing tag, and a tag together with a version,
    are errors.
    """
    path = f"{space}.{managed}"
    admin.lance.declare(path, properties={"managed_versioning": managed})
    written(server, path, rows(1, 2), vectors="vector=2")
    admin.lance.dataset(path).tags.create("first", admin.lance.load(path).version)
    written(server, path, rows(9), overwrite=True)

    assert read(server, path, tag="first") == [1, 2]
    assert read(server, path) == [9]
    with pytest.raises(NotFoundError, match="other"):
        source(server, path, tag="other").schema()
    with pytest.raises(RefusedError, match="leave out version"):
        source(server, path, tag="first", version="1").schema()


def test_failed_job_creates_no_table_and_no_version(server: LiveServer, admin: Client, space: str) -> None:
    """A failed job releases the name that it declared, and leaves an existing table unchanged."""
    path = f"{space}.docs"
    writer = source(server, path, vectors="vector=2").writer(COLUMNS, False)
    assert admin.lance.load(path).version is None
    message = writer.write(iter(rows(1)))
    with pytest.raises(BadRequest, match="does not fit"):
        writer.write(iter(rows(1, length=3)))
    writer.abort([message])
    with pytest.raises(NotFoundError):
        admin.lance.load(path)
    with pytest.raises(BadRequest, match="names other"):
        source(server, path, vectors="other=2").writer(COLUMNS, False)
    with pytest.raises(NotFoundError):
        admin.lance.load(path)

    written(server, path, rows(1))
    source(server, path).writer(COLUMNS, True).abort([])

    assert read(server, path) == [1]


def test_concurrent_jobs_creating_one_table_both_add_rows(server: LiveServer, admin: Client, space: str) -> None:
    """Of two jobs that create one table, the first to commit creates it and the second appends; a job with other
    columns is refused.
    """
    path = f"{space}.docs"
    admin.lance.declare(path)
    one, two = (source(server, path).writer(COLUMNS, False) for _ in range(2))
    other = source(server, path, vectors="vector=2").writer(COLUMNS, False)
    messages = [each.write(iter(rows(number))) for number, each in enumerate((one, two, other))]

    one.commit([messages[0]])
    two.commit([messages[1]])

    assert read(server, path) == [0, 1]
    with pytest.raises(BadRequest, match="with other columns"):
        other.commit([messages[2]])


def test_invalid_jobs_fail_before_any_task_runs(server: LiveServer, admin: Client, space: str) -> None:
    """A missing namespace, columns that do not match, a table without data, and a missing version are errors before any
    task runs.
    """
    with pytest.raises(NotFoundError, match="nowhere"):
        source(server, "lance.nowhere.docs").writer(COLUMNS, False)
    admin.lance.declare(f"{space}.empty")
    with pytest.raises(NotFound, match="has no data yet"):
        source(server, f"{space}.empty").schema()
    written(server, f"{space}.docs", rows(1))
    with pytest.raises(BadRequest, match="no column more"):
        source(server, f"{space}.docs").writer(spark.StructType([spark.StructField("more", spark.LongType())]), False)
    with pytest.raises(BadRequest, match="are for reading"):
        source(server, f"{space}.docs", version="1").writer(COLUMNS, False)
    with pytest.raises(NotFoundError):
        source(server, f"{space}.docs", version="99").schema()


def test_jobs_commit_server_managed_tables_through_the_server(server: LiveServer, admin: Client, space: str) -> None:
    """On a server-managed table each job's commit goes to the server. Rows written by path are not read, and two
    concurrent jobs both succeed.
    """
    path = f"{space}.docs"
    admin.lance.declare(path, properties={"managed_versioning": "true"})

    written(server, path, rows(1), rows(2), vectors="vector=2")
    first = admin.lance.load(path)
    one, two = (source(server, path).writer(COLUMNS, False) for _ in range(2))
    messages = [one.write(iter(rows(3))), two.write(iter(rows(4)))]
    one.commit([messages[0]])
    two.commit([messages[1]])

    assert first.managed
    assert read(server, path) == [1, 2, 3, 4]
    past = pa.Table.from_batches(rows(99)).cast(lance.dataset(first.location).schema)
    lance.write_dataset(past, first.location, mode="append")
    assert read(server, path) == [1, 2, 3, 4]
    written(server, path, rows(5))
    assert read(server, path) == [1, 2, 3, 4, 5]
    written(server, path, rows(6), overwrite=True)
    assert read(server, path) == [6]


def test_reader_is_refused_to_write(server: LiveServer, admin: Client, space: str) -> None:
    """Without privileges both reads and writes are refused; a reader may read and the error for writes names the
    reason; a writer may write.
    """
    path, user = f"{space}.docs", space.partition(".")[2]
    written(server, path, rows(1))
    admin.users.add(user)
    token = admin.tokens.create(user=user, name="t").token
    admin.roles.create(user)
    admin.roles.grant_to_user(user, [user])

    with pytest.raises(DeniedError, match="SELECT_TABLE"):
        source(server, path, token=token).schema()
    with pytest.raises(DeniedError):
        source(server, path, token=token).writer(COLUMNS, False)
    admin.roles.allow(user, ["use_catalog", "use_schema", "select_table"], on="lance", kind="catalog")
    assert source(server, path, token=token).schema().fieldNames() == ["id", "vector"]
    with pytest.raises(PermissionDenied, match="MODIFY_TABLE"):
        source(server, path, token=token).writer(COLUMNS, False)
    with pytest.raises(DeniedError):
        source(server, f"{path}2", token=token).writer(COLUMNS, False)
    admin.roles.allow(user, ["modify_table"], on=path, kind="table")
    writer = source(server, path, token=token).writer(COLUMNS, False)
    writer.commit([writer.write(iter(rows(2)))])

    assert read(server, path) == [1, 2]
