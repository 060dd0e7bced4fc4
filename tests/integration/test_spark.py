# SPDX-License-Identifier: Apache-2.0
"""Spark SQL against a real server: names, writes, evolution, time travel, rename, and access."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx2
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.spark import session
from tests.http.iceberg import wire
from tests.integration.conftest import STEERING
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REFUSAL = (PySparkException, Py4JJavaError)
ODD_NAMES = ["dot.ted", "sla/sh", "sp ace", "per%cent", "%2F", "Ünïcödé", "数据", "plus+sign", "q?u#ery"]


@pytest.fixture
def admin(server: LiveServer) -> Iterator[Client]:
    """A client with the administrator's token."""
    with Client(server.uri, token=server.token) as client:
        yield client


@pytest.fixture
def space(spark: SparkSession, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own: `main.<test>`."""
    name = f"main.`{request.node.name.partition('[')[0]}`"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}")
    return name


def rows(spark: SparkSession, statement: str) -> list[tuple[object, ...]]:
    """The rows of a query as plain tuples."""
    return [tuple(row) for row in spark.sql(statement).collect()]


def quoted(name: str) -> str:
    """A name in Spark's back quotes."""
    return f"`{name.replace('`', '``')}`"


def test_starting_spark_leaves_the_environment_alone(spark: SparkSession, environment: dict[str, str | None]) -> None:
    """The environment variables that affect a start of Spark are unchanged after the start."""
    assert spark.range(3).count() == 3
    assert {name: os.environ.get(name) for name in STEERING} == environment


def test_nested_namespaces_have_tables_at_any_depth(spark: SparkSession, space: str) -> None:
    """Nested namespaces are created one by one, listed by their full path, and have tables at any depth."""
    path = space
    for level in ("a", "b", "c", "d"):
        path += f".{level}"
        spark.sql(f"CREATE NAMESPACE {path}")
    spark.sql(f"CREATE TABLE {path}.t (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {path}.t VALUES (4)")

    assert rows(spark, f"SELECT * FROM {path}.t") == [(4,)]
    assert (
        rows(spark, f"SHOW NAMESPACES IN {space}.a.b.c")[0][0]
        == "test_nested_namespaces_have_tables_at_any_depth.a.b.c.d"
    )
    assert [row[1] for row in rows(spark, f"SHOW TABLES IN {path}")] == ["t"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_work_for_namespaces_and_tables(spark: SparkSession, space: str, name: str) -> None:
    """Names with dots, slashes, spaces, percent signs and Unicode are unchanged by create, insert, list, rename and
    drop.
    """
    namespace = f"{space}.{quoted(name)}"
    table = f"{namespace}.{quoted(name)}"
    spark.sql(f"CREATE NAMESPACE {namespace}")
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {table} VALUES (1), (2)")

    assert rows(spark, f"SELECT sum(id) FROM {table}") == [(3,)]
    assert [row[1] for row in rows(spark, f"SHOW TABLES IN {namespace}")] == [name]

    spark.sql(f"ALTER TABLE {table} RENAME TO {quoted(space.split('`')[1])}.{quoted(name)}.`{name} 2`")
    assert rows(spark, f"SELECT count(*) FROM {namespace}.`{name} 2`") == [(2,)]

    spark.sql(f"DROP TABLE {namespace}.`{name} 2`")
    spark.sql(f"DROP NAMESPACE {namespace}")
    assert name not in str(rows(spark, f"SHOW NAMESPACES IN {space}"))


def test_the_separator_is_refused_in_namespaces_only(spark: SparkSession, space: str) -> None:
    """A namespace part with the separator of nested names is refused with a message; a table name may contain it."""
    with pytest.raises(REFUSAL, match=r"holds ':', which separates"):
        spark.sql(f"CREATE NAMESPACE {space}.`a:b`")

    spark.sql(f"CREATE TABLE {space}.`a:b` AS SELECT 1 AS id")
    assert rows(spark, f"SELECT * FROM {space}.`a:b`") == [(1,)]


def test_merge_updates_inserts_and_deletes(spark: SparkSession, space: str) -> None:
    """MERGE updates matched rows, deletes the specified ones, and inserts the rest, in one commit."""
    spark.sql(f"CREATE TABLE {space}.t (id BIGINT, v STRING) USING iceberg")
    spark.sql(f"INSERT INTO {space}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    spark.sql(f"""
        MERGE INTO {space}.t t
        USING (SELECT * FROM VALUES (2, 'B'), (3, ''), (4, 'd') AS late(id, v)) s ON t.id = s.id
        WHEN MATCHED AND s.v = '' THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *""")

    assert rows(spark, f"SELECT * FROM {space}.t ORDER BY id") == [(1, "a"), (2, "B"), (4, "d")]
    assert rows(spark, f"SELECT count(*) FROM {space}.t.snapshots") == [(2,)]


def test_update_and_delete_change_only_matching_rows(spark: SparkSession, space: str) -> None:
    """UPDATE and DELETE change only the matching rows."""
    spark.sql(f"CREATE TABLE {space}.t AS SELECT id, id * 2 AS v FROM range(10)")

    spark.sql(f"UPDATE {space}.t SET v = 0 WHERE id < 5")
    spark.sql(f"DELETE FROM {space}.t WHERE id >= 8")

    assert rows(spark, f"SELECT count(*), sum(v) FROM {space}.t") == [(8, 36)]


def test_ctas_replace_keeps_the_older_snapshot(spark: SparkSession, space: str) -> None:
    """CTAS creates a table with rows in one step; replacing it keeps the older snapshot readable."""
    spark.sql(f"CREATE TABLE {space}.t USING iceberg AS SELECT 1 AS id")
    first = rows(spark, f"SELECT snapshot_id FROM {space}.t.snapshots")[0][0]

    spark.sql(f"CREATE OR REPLACE TABLE {space}.t USING iceberg AS SELECT 'x' AS name")

    assert rows(spark, f"SELECT name FROM {space}.t") == [("x",)]
    assert rows(spark, f"SELECT id FROM {space}.t VERSION AS OF {first}") == [(1,)]


def test_rows_keep_their_values_under_the_evolved_schema(spark: SparkSession, space: str) -> None:
    """Columns are added, renamed, widened, moved and dropped, and rows written before keep their values."""
    spark.sql(f"CREATE TABLE {space}.t (id INT, old STRING, gone INT) USING iceberg")
    spark.sql(f"INSERT INTO {space}.t VALUES (1, 'a', 9)")

    for change in (
        "ADD COLUMN note STRING COMMENT 'why' AFTER id",
        "RENAME COLUMN old TO new",
        "ALTER COLUMN id TYPE BIGINT",
        "DROP COLUMN gone",
    ):
        spark.sql(f"ALTER TABLE {space}.t {change}")
    spark.sql(f"INSERT INTO {space}.t VALUES ({2**40}, 'n', 'b')")

    assert spark.table(f"{space}.t").columns == ["id", "note", "new"]
    assert rows(spark, f"SELECT * FROM {space}.t ORDER BY id") == [(1, None, "a"), (2**40, "n", "b")]


def test_rows_of_each_partition_spec_are_read(spark: SparkSession, space: str) -> None:
    """The partitioning of a table changes between writes; rows of each spec are found."""
    spark.sql(f"CREATE TABLE {space}.t (day DATE, id BIGINT) USING iceberg PARTITIONED BY (months(day))")
    spark.sql(f"INSERT INTO {space}.t VALUES (DATE '2013-01-05', 1), (DATE '2013-02-05', 2)")

    spark.sql(f"ALTER TABLE {space}.t REPLACE PARTITION FIELD months(day) WITH days(day)")
    spark.sql(f"ALTER TABLE {space}.t ADD PARTITION FIELD bucket(4, id)")
    spark.sql(f"INSERT INTO {space}.t VALUES (DATE '2013-02-05', 3)")

    assert rows(spark, f"SELECT id FROM {space}.t WHERE day = DATE '2013-02-05' ORDER BY id") == [(2,), (3,)]
    assert rows(spark, f"SELECT count(DISTINCT spec_id) FROM {space}.t.files") == [(2,)]


def test_older_snapshots_tags_and_branches_are_read(spark: SparkSession, space: str) -> None:
    """Older snapshots are read by id, by tag and by timestamp; writes to a branch do not change main."""
    spark.sql(f"CREATE TABLE {space}.t (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {space}.t VALUES (1)")
    first, at = rows(spark, f"SELECT snapshot_id, CAST(committed_at AS STRING) FROM {space}.t.snapshots")[0]
    spark.sql(f"ALTER TABLE {space}.t CREATE TAG start")
    spark.sql(f"ALTER TABLE {space}.t CREATE BRANCH work")
    spark.sql(f"INSERT INTO {space}.t VALUES (2)")
    spark.sql(f"INSERT INTO {space}.t.branch_work VALUES (3)")

    assert rows(spark, f"SELECT * FROM {space}.t VERSION AS OF {first}") == [(1,)]
    assert rows(spark, f"SELECT * FROM {space}.t VERSION AS OF 'start'") == [(1,)]
    assert rows(spark, f"SELECT * FROM {space}.t TIMESTAMP AS OF '{at}'") == [(1,)]
    assert rows(spark, f"SELECT * FROM {space}.t VERSION AS OF 'work' ORDER BY id") == [(1,), (3,)]
    assert rows(spark, f"SELECT * FROM {space}.t ORDER BY id") == [(1,), (2,)]


def test_rename_across_namespaces_keeps_rows_and_history(spark: SparkSession, space: str) -> None:
    """A table moves to another namespace with its rows and history; its old name no longer exists."""
    bare = space.removeprefix("main.")
    for level in ("x", "x.y"):
        spark.sql(f"CREATE NAMESPACE {space}.{level}")
    spark.sql(f"CREATE TABLE {space}.t AS SELECT 1 AS id")

    spark.sql(f"ALTER TABLE {space}.t RENAME TO {bare}.x.y.moved")

    assert rows(spark, f"SELECT * FROM {space}.x.y.moved") == [(1,)]
    assert not spark.catalog.tableExists(f"{space}.t")


def test_drop_of_a_full_namespace_is_refused(spark: SparkSession, space: str) -> None:
    """A namespace with a table is not dropped, and the error says that it is not empty."""
    spark.sql(f"CREATE TABLE {space}.t (id BIGINT) USING iceberg")

    with pytest.raises(REFUSAL, match=r"(?i)not empty"):
        spark.sql(f"DROP NAMESPACE {space}")

    assert spark.catalog.tableExists(f"{space}.t")


def test_missing_table_raises_table_or_view_not_found(spark: SparkSession, space: str) -> None:
    """The error for a missing table is Spark's own TABLE_OR_VIEW_NOT_FOUND, not a server error."""
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"SELECT * FROM {space}.nothing")


def test_table_properties_are_shown_until_unset(spark: SparkSession, space: str) -> None:
    """Properties that are set at creation and later are shown; an unset one is not."""
    spark.sql(f"CREATE TABLE {space}.t (id INT COMMENT 'key') USING iceberg COMMENT 'things' TBLPROPERTIES ('k'='1')")
    spark.sql(f"ALTER TABLE {space}.t SET TBLPROPERTIES ('k2'='2')")
    spark.sql(f"ALTER TABLE {space}.t UNSET TBLPROPERTIES ('k')")

    properties = {row[0]: row[1] for row in rows(spark, f"SHOW TBLPROPERTIES {space}.t")}
    described = {row[0]: row[1] for row in rows(spark, f"DESCRIBE TABLE EXTENDED {space}.t")}
    assert properties["k2"] == "2"
    assert "k" not in properties
    assert described["Comment"] == "things"


def test_maintenance_procedures_run(spark: SparkSession, space: str) -> None:
    """Small files are rewritten into one and old snapshots expire; the rows are unchanged."""
    spark.sql(f"CREATE TABLE {space}.t (id BIGINT) USING iceberg")
    for number in range(3):
        spark.sql(f"INSERT INTO {space}.t VALUES ({number})")
    name = space.removeprefix("main.").strip("`") + ".t"

    spark.sql(f"CALL main.system.rewrite_data_files(table => '{name}', options => map('min-input-files', '2'))")
    spark.sql(f"CALL main.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2100-01-01 00:00:00')")

    assert rows(spark, f"SELECT count(*), sum(id) FROM {space}.t") == [(3, 3)]
    assert rows(spark, f"SELECT count(*) FROM {space}.t.snapshots") == [(1,)]


def test_second_session_has_its_own_identity(
    spark: SparkSession, space: str, server: LiveServer, admin: Client
) -> None:
    """A second session in one process has its own identity: it is refused, allowed after a grant, and refused after a
    revoke.
    """
    spark.sql(f"CREATE TABLE {space}.t AS SELECT 1 AS id")
    path = ("main", space.split("`")[1], "t")
    admin.users.add("bea")
    admin.roles.create("bea_reads")
    admin.roles.allow("bea_reads", ["USE_CATALOG"], on="main", kind="catalog")
    admin.roles.allow("bea_reads", ["USE_SCHEMA"], on=path[:2], kind="namespace")
    admin.roles.grant_to_user("bea", ["bea_reads"])
    bea = session(server.uri, user="bea")

    with pytest.raises(REFUSAL, match=r"(?i)select_table"):
        bea.sql(f"SELECT * FROM {space}.t").collect()

    admin.roles.allow("bea_reads", ["SELECT_TABLE"], on=path, kind="table")
    assert rows(bea, f"SELECT * FROM {space}.t") == [(1,)]
    with pytest.raises(REFUSAL, match=r"(?i)modify_table"):
        bea.sql(f"INSERT INTO {space}.t VALUES (2)")

    admin.roles.withdraw("bea_reads", ["SELECT_TABLE"], on=path, kind="table")
    with pytest.raises(REFUSAL, match=r"(?i)select_table"):
        bea.sql(f"SELECT * FROM {space}.t").collect()
    assert rows(spark, f"SELECT * FROM {space}.t") == [(1,)]


def test_refusals_after_a_head_request_name_the_reason(
    spark: SparkSession, space: str, server: LiveServer, admin: Client
) -> None:
    """Statements for which Spark first sends HEAD (DROP TABLE, CREATE NAMESPACE) are refused with the reason, as others
    are.
    """
    spark.sql(f"CREATE TABLE {space}.t AS SELECT 1 AS id")
    admin.users.add("dan")
    dan = session(server.uri, user="dan")

    refused = {}
    for statement in (f"DROP TABLE {space}.t", f"CREATE NAMESPACE {space}.inner", f"SELECT * FROM {space}.t"):
        with pytest.raises(REFUSAL) as error:
            dan.sql(statement).collect()
        refused[statement.partition(" ")[0]] = str(error.value)

    for message in refused.values():
        assert "USE_CATALOG" in message
        assert "Forbidden: Forbidden" not in message
    assert rows(spark, f"SELECT count(*) FROM {space}.t") == [(1,)]


def test_granted_nested_namespace_is_visible_from_the_root(
    spark: SparkSession, space: str, server: LiveServer, admin: Client
) -> None:
    """A user with a privilege on a nested namespace alone finds it from the root; its siblings are hidden."""
    for name in ("outer", "outer.inner", "outer.hidden", "other"):
        spark.sql(f"CREATE NAMESPACE {space}.{name}")
    home = space.split("`")[1]
    admin.users.add("eve")
    admin.roles.create("eve_reads")
    admin.roles.allow("eve_reads", ["USE_CATALOG"], on="main", kind="catalog")
    admin.roles.allow("eve_reads", ["USE_SCHEMA"], on=("main", home, "outer", "inner"), kind="namespace")
    admin.roles.grant_to_user("eve", ["eve_reads"])
    eve = session(server.uri, user="eve")

    listed = [rows(eve, f"SHOW NAMESPACES IN {path}") for path in ("main", space, f"{space}.outer")]

    assert listed == [[(home,)], [(f"{home}.outer",)], [(f"{home}.outer.inner",)]]


def test_rename_to_a_name_with_the_catalog_is_refused(spark: SparkSession, space: str) -> None:
    """The error for a catalog name after RENAME TO says to omit it."""
    spark.sql(f"CREATE TABLE {space}.t AS SELECT 1 AS id")

    with pytest.raises(REFUSAL, match=r"relative to its catalog: write \S+\.u, without main before it"):
        spark.sql(f"ALTER TABLE {space}.t RENAME TO {space}.u")


@pytest.mark.usefixtures("spark")
def test_catalogs_none_registers_all_visible_catalogs(server: LiveServer, admin: Client) -> None:
    """Without names, every Iceberg catalog that the caller may see is registered, and no other."""
    admin.catalogs.create("second_one", provider="lakehouse-iceberg")
    admin.users.add("cem")

    everything = session(server.uri, token=server.token, catalogs=None)
    nothing = session(server.uri, user="cem", catalogs=None)

    assert everything.sql("SHOW NAMESPACES IN second_one").collect() == []
    assert nothing.conf.get("spark.sql.catalog.second_one", "none") == "none"


def test_view_four_levels_deep_is_created_replaced_and_dropped(spark: SparkSession, space: str) -> None:
    """A view four levels deep is created, read by its full name, replaced, described, renamed and dropped; a table may
    have its name afterwards.
    """
    path = f"{space}.a.b.c"
    for depth in range(1, 4):
        spark.sql(f"CREATE NAMESPACE {'.'.join(path.split('.')[: 2 + depth])}")
    spark.sql(f"CREATE TABLE {path}.t (id BIGINT, city STRING) USING iceberg")
    spark.sql(f"INSERT INTO {path}.t VALUES (1, 'Oslo'), (2, 'Rome')")
    spark.sql(f"CREATE VIEW {path}.v (number COMMENT 'of the row') COMMENT 'all' AS SELECT id FROM {path}.t")
    first = rows(spark, f"SELECT number FROM {path}.v ORDER BY number")
    spark.sql(f"CREATE OR REPLACE VIEW {path}.v AS SELECT city FROM {path}.t WHERE id > 1")
    second = rows(spark, f"SELECT * FROM {path}.v")
    spark.sql(f"ALTER VIEW {path}.v SET TBLPROPERTIES ('team' = 'ops')")

    assert (first, second) == ([(1,), (2,)], [("Rome",)])
    assert [row[1] for row in rows(spark, f"SHOW VIEWS IN {path}")] == ["v"]
    assert [row[1] for row in rows(spark, f"SHOW TABLES IN {path}")] == ["t"]
    assert "'team' = 'ops'" in str(rows(spark, f"SHOW CREATE TABLE {path}.v"))
    with pytest.raises(REFUSAL, match="already exists"):
        spark.sql(f"CREATE VIEW {path}.t AS SELECT 1 AS x")
    with pytest.raises(REFUSAL):
        spark.sql(f"CREATE TABLE {path}.v (id BIGINT) USING iceberg")

    spark.sql(f"ALTER VIEW {path}.v RENAME TO {path}.w")  # with the catalog, unlike a table's new name
    assert rows(spark, f"SELECT * FROM {path}.w") == [("Rome",)]
    spark.sql(f"DROP VIEW {path}.w")
    assert rows(spark, f"SHOW VIEWS IN {path}") == []
    spark.sql(f"DROP VIEW IF EXISTS {path}.w")


def test_error_for_another_sql_dialect_names_the_view(spark: SparkSession, space: str, server: LiveServer) -> None:
    """Spark parses the text of another dialect as its own; if that fails, the error names the view."""
    level = space.split("`")[1]
    version = wire.view_version(
        "select cast(row(1) as row(x integer)) as id", dialect="trino", default_namespace=[level]
    )
    answer = httpx2.post(
        f"{server.uri}/iceberg/v1/lake.main/namespaces/{level}/views",
        json=wire.view_body("only_trino", version),
        headers={"Authorization": f"Bearer {server.token}"},
    )

    assert answer.status_code == 200
    with pytest.raises(REFUSAL, match="only_trino"):
        spark.sql(f"SELECT * FROM {space}.only_trino").collect()
