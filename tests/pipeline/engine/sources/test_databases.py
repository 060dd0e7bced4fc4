# SPDX-License-Identifier: Apache-2.0
"""Databases as sources, on a real PostgreSQL: tables and queries, partitions, refusals, and a password that is never
exposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest

from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.sources import SourceRead, SourceReadRequest, frame_of
from limnos.pipeline.engine.sources.databases import _spark_url, add_archive
from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import DeclaredSource, Jdbc
from tests.pipeline.reachable_socket import reachable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.backends import PostgresServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PASSWORD = "v3ry-Secret-Indeed"
VARIABLE, WRONG = "LIMNOS_TEST_PASSWORD", "LIMNOS_TEST_WRONG_PASSWORD"


Opens = Callable[..., SourceRead]


@pytest.fixture(scope="module")
def address(postgres_server: PostgresServer) -> str:
    """The address of the database for its administrator."""
    return postgres_server.empty_database()


@pytest.fixture(scope="module")
def url(address: str) -> Iterator[str]:
    """A database that `bea` may read with her password; yields the JDBC URL."""
    with psycopg.connect(address, autocommit=True) as connection:

        def ask(query: str) -> str:
            row = connection.execute(query.encode()).fetchone()
            assert row is not None
            return str(row[0])

        connection.execute(f"CREATE ROLE bea LOGIN PASSWORD '{PASSWORD}'".encode())
        rules = Path(ask("SHOW hba_file"))
        rules.write_text("local all bea scram-sha-256\n" + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
        connection.execute('CREATE TABLE people (id INT, name TEXT, "odd.name" NUMERIC(10,2), born DATE)')
        connection.execute(
            "INSERT INTO people SELECT g, 'n' || g, g / 2.0, DATE '2000-01-01' + g FROM generate_series(1, 1000) g"
        )
        connection.execute("INSERT INTO people VALUES (NULL, 'nobody', NULL, NULL)")
        connection.execute("CREATE TABLE nothing (id INT)")
        connection.execute("GRANT SELECT ON people, nothing TO bea")
        folder, database = ask("SHOW unix_socket_directories"), connection.info.dbname
    with reachable(Path(folder) / ".s.PGSQL.5432") as port:
        yield f"jdbc:postgresql://127.0.0.1:{port}/{database}"


@pytest.fixture
def database(here: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch) -> Opens:
    """Opens declared sources of the database."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    monkeypatch.setenv(WRONG, "another")

    def open_(
        *, pinned: ReadPin | None = None, before: ReadPin | None = None, incremental: bool = False, **fields: object
    ) -> SourceRead:
        declared: dict[str, Any] = {"url": url, "user": "bea", "password_env": VARIABLE, **fields}
        source = DeclaredSource(name="people", kind=Jdbc(**declared), at=SourcePosition("p.yaml", 4, 2))
        return frame_of(
            SourceReadRequest(spark=here, source=source, pinned=pinned, before=before, incremental=incremental)
        )

    return open_


def plans(frame: DataFrame) -> str:
    """Return every plan of a DataFrame, as Spark's pages show it."""
    execution = frame._jdf.queryExecution()
    return str(execution.toString()) + str(execution.logical().toJSON()) + str(execution.executedPlan().toJSON())


def test_table_and_query_are_read(database: Opens) -> None:
    """A table has its types, and a query its own; a trailing semicolon or comment is allowed."""
    table = database(table="people").frame
    query = database(query='SELECT id, "odd.name" AS half FROM people WHERE id <= 2 -- few\n;').frame

    assert dict(table.dtypes) == {"id": "int", "name": "string", "odd.name": "decimal(10,2)", "born": "date"}
    assert table.count() == 1001
    assert sorted(tuple(row) for row in query.collect()) == [(1, Decimal("0.50")), (2, Decimal("1.00"))]


@pytest.mark.parametrize("column", ["id", "ID", "odd.name", "born"])
def test_partitioned_read_returns_each_row_once(database: Opens, column: str) -> None:
    """If the table is read in partitions by a number, a decimal or a date, each row is read once, including rows with
    NULL.
    """
    read = database(table="people", partition_column=column, partitions=4)

    assert read.frame.rdd.getNumPartitions() == 4
    assert read.frame.count() == 1001
    assert read.frame.distinct().count() == 1001


def test_empty_table_is_read_in_one_partition(database: Opens) -> None:
    """A table without rows has no bounds for partitions and is read in one partition."""
    assert database(table="nothing", partition_column="id", partitions=4).frame.count() == 0


def test_database_is_not_pinned(database: Opens) -> None:
    """The pin states that the read rows are not fixed."""
    pin = database(table="people").pin

    assert (pin.name, pin.fingerprint, pin.whole_because) == ("people", None, "a database is read as it is")


@pytest.mark.parametrize(
    "fields,words",
    [
        ({"url": "postgresql://x/y"}, "write jdbc:postgresql://"),
        ({"url": "jdbc:postgresql://h/d?user=a&password=b"}, "its URL contains a password"),
        ({"url": "jdbc:mysql://a:b@h/d"}, "its URL contains a password"),
        ({"table": None}, "write either `table` or `query`"),
        ({"query": "SELECT 1"}, "write either `table` or `query`"),
        ({"options": {"Password": "x"}}, "the option Password has its own key"),
        ({"partitions": 0}, "at least 1"),
        ({"partition_column": "nobody", "partitions": 2}, "there is no column 'nobody'"),
        ({"partition_column": "name", "partitions": 2}, "which is string"),
        ({"password_env": "LIMNOS_TEST_NO_SUCH_VARIABLE"}, "LIMNOS_TEST_NO_SUCH_VARIABLE is not set"),
        ({"table": "nobodys"}, "does not exist"),
        ({"password_env": WRONG}, "authentication failed"),
    ],
)
def test_unreadable_source_is_refused_without_password(database: Opens, fields: dict[str, object], words: str) -> None:
    """A wrong declaration, a missing table or a missing right is refused with its position and without the password."""
    with pytest.raises(SourceFailed, match=r"^p\.yaml:4:2: source people: ") as refused:
        database(**{"table": "people", **fields})

    assert words in refused.value.message
    assert PASSWORD not in refused.value.message
    assert refused.value.__cause__ is None


@contextmanager
def logged(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """Collect everything that Spark's Java logs, at the most detailed level, during the body."""
    machine = spark._jvm.org.apache.logging.log4j
    root = machine.LogManager.getContext(False).getRootLogger()
    writer = spark._jvm.java.io.StringWriter()
    appender = machine.core.appender.WriterAppender.createAppender(None, None, writer, "seen", False, True)
    appender.start()
    root.addAppender(appender)
    spark.sparkContext.setLogLevel("DEBUG")
    try:
        yield lambda: str(writer.toString())
    finally:
        spark.sparkContext.setLogLevel("OFF")
        root.removeAppender(appender)


def test_password_is_not_in_plans_logs_or_event_log(
    database: Opens, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The password is neither in plans, logs, settings and command lines nor in Spark's event log."""
    caplog.set_level("DEBUG", logger="limnos")
    spark = database(table="people").frame.sparkSession
    with logged(spark) as log:
        read = database(table="people", partition_column="id", partitions=2)
        read.frame.write.parquet((tmp_path / "copy").as_uri())
        logs = log()
    settings = str(spark.conf.getAll) + str(spark.sparkContext.getConf().getAll())
    commands = "".join(
        file.read_bytes().decode(errors="replace") for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()
    )
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    executed_plans = "".join(
        str(executions.apply(number).physicalPlanDescription()) + str(executions.apply(number).details())
        for number in range(executions.size())
    )

    assert "people" in plans(read.frame)
    assert "people" in executed_plans
    assert "people" in logs
    for place in (plans(read.frame), repr(read), settings, commands, executed_plans, logs, caplog.text):
        assert PASSWORD not in place


@dataclass
class ConnectSession:
    """The part of a Spark Connect session that `add_archive` uses."""

    session_id: str
    artifacts: list[str] = field(default_factory=list)

    def addArtifact(self, path: str) -> None:  # noqa: N802 - Spark's name
        """Record the artifact."""
        self.artifacts.append(path)


def test_each_spark_connect_session_gets_the_driver_once(tmp_path: Path) -> None:
    """The server's sessions have class paths of their own, so the driver is added per session id, and once in each."""
    archive = tmp_path / "driver.jar"
    sessions = [ConnectSession(f"{tmp_path}-a"), ConnectSession(f"{tmp_path}-b"), ConnectSession(f"{tmp_path}-a")]

    for session in sessions:
        add_archive(cast("SparkSession", session), archive)

    assert [each.artifacts for each in sessions] == [[str(archive)], [str(archive)], []]


@pytest.fixture
def change(address: str, url: str) -> Iterator[Callable[[str], None]]:
    """Executes statements on a table `sales` with times of the last change, which `bea` may read."""
    del url  # its database has the role
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS sales")
        connection.execute("CREATE TABLE sales (id INT PRIMARY KEY, amount INT, changed TIMESTAMPTZ, at TIMESTAMP)")
        connection.execute("GRANT SELECT ON sales TO bea")

        def execute(statement: str) -> None:
            connection.execute(statement.encode())

        yield execute


def ids(read: SourceRead) -> list[int]:
    """The keys of the rows that were read."""
    return sorted(row["id"] for row in read.frame.select("id").collect())


@pytest.mark.parametrize(
    "column,lateness", [("changed", "10 minutes"), ("at", "10 minutes"), ("id", "1"), ("CHANGED", "600 s")]
)
def test_increment_has_changed_rows_and_those_within_the_lateness(
    database: Opens, change: Callable[[str], None], column: str, lateness: str
) -> None:
    """After the first read an increment has the rows from the published value on, less the lateness, and no others;
    a row that was committed late below the newest value is one of them.
    """
    at = "TIMESTAMP '2026-11-29 10:00:00' + g * INTERVAL '10 minutes'"
    change(f"INSERT INTO sales SELECT g, g, ({at}) AT TIME ZONE 'UTC', {at} FROM generate_series(1, 4) g")
    fields = {"table": "sales", "cursor_column": column, "lateness": lateness}
    first = database(**fields)
    assert ids(first) == [1, 2, 3, 4]

    again = database(**fields, before=first.pin, incremental=True)
    assert ids(again) == [3, 4]
    assert "*GreaterThanOrEqual(" in plans(again.frame)
    late = "TIMESTAMP '2026-11-29 10:39:00'"
    change(f"INSERT INTO sales VALUES (5, 5, ({late}) AT TIME ZONE 'UTC', {late})")
    later = database(**fields, before=first.pin, incremental=True)

    assert again.pin.fingerprint == first.pin.fingerprint
    assert later.pin.fingerprint != first.pin.fingerprint
    assert ids(later) == [3, 4, 5]
    assert later.pin.whole_because is None


def test_rows_above_the_pin_are_left_to_the_next_run(database: Opens, change: Callable[[str], None]) -> None:
    """All steps of a run read up to the value that its start pinned, also when rows came after it."""
    change("INSERT INTO sales VALUES (1, 1, TIMESTAMPTZ '2026-11-29 10:00:00Z', NULL)")
    pin = database(table="sales", cursor_column="changed").pin
    change("INSERT INTO sales VALUES (2, 2, TIMESTAMPTZ '2026-11-29 11:00:00Z', NULL)")

    read = database(table="sales", cursor_column="changed", pinned=pin)
    after = database(table="sales", cursor_column="changed", before=read.pin, incremental=True)

    assert ids(read) == [1]
    assert ids(after) == [1, 2]  # the published value itself is read again: another row may have it


def test_whole_read_follows_a_restored_database(database: Opens, change: Callable[[str], None]) -> None:
    """A lower newest value than the published one, and another cursor, are read as a whole, with the reason."""
    change(
        "INSERT INTO sales SELECT g, g, TIMESTAMPTZ '2026-11-29 10:00:00Z' + g * INTERVAL '1 hour', NULL"
        " FROM generate_series(1, 3) g"
    )
    before = database(table="sales", cursor_column="changed").pin
    change("DELETE FROM sales WHERE id > 1")

    restored = database(table="sales", cursor_column="changed", before=before, incremental=True)
    assert ids(restored) == [1]
    other = database(table="sales", cursor_column="id", before=before, incremental=True)
    change("DELETE FROM sales")
    empty = database(table="sales", cursor_column="changed", before=before, incremental=True)

    assert "lower newest changed" in str(restored.pin.whole_because)
    assert "by the cursor changed" in str(other.pin.whole_because)
    assert "no rows" in str(empty.pin.whole_because)
    assert ids(empty) == []


@pytest.mark.parametrize(
    "fields,words",
    [
        ({"cursor_column": "nope"}, "there is no column 'nope' to read new rows by; its columns are id, amount"),
        ({"cursor_column": "at"}, "is NULL in some rows"),
        ({"cursor_column": "changed", "lateness": "5"}, "write a time"),
        ({"query": "SELECT id::text AS word FROM sales", "table": None, "cursor_column": "word"}, "is string"),
    ],
)
def test_unusable_cursor_column_is_refused(
    database: Opens, change: Callable[[str], None], fields: dict[str, object], words: str
) -> None:
    """A column that is missing, has NULL or does not order is refused before rows are read."""
    change("INSERT INTO sales VALUES (1, 1, TIMESTAMPTZ '2026-11-29 10:00:00Z', NULL)")

    with pytest.raises(SourceFailed, match=r"^p\.yaml:4:2: source people: ") as refused:
        database(**{"table": "sales", **fields})

    assert words in refused.value.message


def test_query_with_a_cursor_is_read_in_partitions(database: Opens, change: Callable[[str], None]) -> None:
    """A query is a source with a cursor as a table is, also in partitions."""
    change(
        "INSERT INTO sales SELECT g, g, TIMESTAMPTZ '2026-11-29 10:00:00Z' + g * INTERVAL '1 hour', NULL"
        " FROM generate_series(1, 100) g"
    )
    fields: dict[str, object] = {
        "query": "SELECT * FROM sales WHERE id % 2 = 0;",
        "cursor_column": "changed",
        "partition_column": "id",
        "partitions": 3,
    }
    first = database(**fields)
    assert ids(first) == list(range(2, 101, 2))
    change("UPDATE sales SET changed = TIMESTAMPTZ '2026-12-24 10:00:00Z' WHERE id IN (7, 8)")

    assert ids(database(**fields, before=first.pin, incremental=True)) == [8, 100]


@pytest.mark.parametrize(
    "url,options,expected",
    [
        ("jdbc:mariadb://db/shop", {}, "jdbc:mysql://db/shop?permitMysqlScheme"),
        ("jdbc:mariadb://db/shop?useSsl=true", {}, "jdbc:mysql://db/shop?useSsl=true&permitMysqlScheme"),
        ("jdbc:mysql://db/shop", {}, "jdbc:mysql://db/shop?permitMysqlScheme"),
        ("jdbc:mysql://db/shop?permitMysqlScheme", {}, "jdbc:mysql://db/shop?permitMysqlScheme"),
        ("jdbc:mariadb://db/s", {"Driver": "org.mariadb.jdbc.Driver"}, "jdbc:mysql://db/s?permitMysqlScheme"),
        ("jdbc:mysql://db/shop", {"driver": "com.mysql.cj.jdbc.Driver"}, "jdbc:mysql://db/shop"),
        ("jdbc:postgresql://db/shop", {}, "jdbc:postgresql://db/shop"),
    ],
)
def test_spark_gets_url_with_dialect(url: str, options: dict[str, str], expected: str) -> None:
    """URLs of MariaDB's driver become URLs of MySQL, of which Spark has a dialect; others stay as they are."""
    assert _spark_url(Jdbc(url=url, table="t", options=options)) == expected
