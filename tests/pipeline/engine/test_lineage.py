# SPDX-License-Identifier: Apache-2.0
"""Lineage of queries from Spark's analyzed plans, compared with known results, and the event made from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from limnos.pipeline.engine.increments import increment
from limnos.pipeline.engine.lineage import lineage_of
from limnos.pipeline.engine.metadata import require_metadata
from limnos.pipeline.engine.naming import BAD, FILE
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.engine.sources.listing import root_of
from limnos.pipeline.lineage import LineageSource, QueryLineage

SpaceOf = tuple[str, ...]


class World(NamedTuple):
    """A session whose current namespace has two tables: `orders` and `people`."""

    spark: SparkSession
    space: SpaceOf

    def sql(self, text: str) -> DataFrame:
        """Run a query; `{s}` is replaced by the namespace."""
        return self.spark.sql(text.replace("{s}", ".".join(self.space)))


@pytest.fixture
def world(here: SparkSession, corner: SpaceOf) -> Iterator[World]:
    """The tables, empty."""
    world = World(here, corner)
    world.sql(
        "CREATE TABLE IF NOT EXISTS {s}.orders (id BIGINT, person BIGINT, amount DOUBLE, day DATE, tags ARRAY<STRING>)"
    )
    world.sql("CREATE TABLE IF NOT EXISTS {s}.people (id BIGINT, name STRING, city STRING)")
    yield world
    for name in ("orders", "people"):
        world.sql(f"DROP TABLE IF EXISTS {{s}}.{name} PURGE")


def format_lineage(query_lineage: QueryLineage) -> dict[str, set[str]]:
    """Return each column's origins as `table.column SUBTYPE`, in parentheses if they are indirect; `*` is the whole
    table.
    """

    def one(origin: ColumnOrigin) -> str:
        source = origin.source
        assert isinstance(source, LineageSource)
        name = source.table[-1] if source.table else source.name.rpartition("/")[2]
        text = f"{name}.{origin.column} {origin.subtype}"
        return text if origin.direct else f"({text})"

    columns = {name: {one(each) for each in origins} for name, origins in query_lineage.columns.items()}
    return columns | ({"*": {one(each) for each in query_lineage.rows}} if query_lineage.rows else {})


def of(world: World, text: str) -> dict[str, set[str]]:
    """Return the lineage of a query."""
    return format_lineage(lineage_of(world.sql(text)))


pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


KNOWN: list[tuple[str, str, dict[str, set[str]]]] = [
    (
        "plain",
        (
            "SELECT id, amount * 2 AS twice, CAST(id AS STRING) AS text, 1 AS one FROM {s}.orders WHERE day >"
            " DATE'2026-01-01'"
        ),
        {
            "id": {"orders.id IDENTITY"},
            "twice": {"orders.amount TRANSFORMATION"},
            "text": {"orders.id TRANSFORMATION"},
            "one": set(),
            "*": {"(orders.day FILTER)"},
        },
    ),
    (
        "join and aggregate",
        (
            "SELECT p.city, sum(o.amount) AS total, count(*) AS n FROM {s}.orders o JOIN {s}.people p ON o.person ="
            " p.id GROUP BY p.city HAVING max(o.day) > DATE'2026-01-01' ORDER BY 2"
        ),
        {
            "city": {"people.city IDENTITY"},
            "total": {"orders.amount AGGREGATION"},
            "n": set(),
            "*": {
                "(orders.person JOIN)",
                "(people.id JOIN)",
                "(people.city GROUP_BY)",
                "(orders.day FILTER)",
                "(orders.amount SORT)",
            },
        },
    ),
    (
        "with",
        (
            "WITH a AS (SELECT person, amount + 1 AS more FROM {s}.orders), b AS (SELECT person, more FROM a WHERE more"
            " > 5) SELECT x.more, y.more AS other FROM a x JOIN b y USING (person)"
        ),
        {
            "more": {"orders.amount TRANSFORMATION"},
            "other": {"orders.amount TRANSFORMATION"},
            "*": {"(orders.amount FILTER)", "(orders.person JOIN)"},
        },
    ),
    (
        "subqueries",
        (
            "SELECT id, (SELECT max(name) FROM {s}.people p WHERE p.id = o.person) AS who FROM {s}.orders o WHERE"
            " EXISTS (SELECT 1 FROM {s}.people q WHERE q.id = o.person AND q.city = 'x') AND id IN (SELECT id FROM"
            " {s}.people)"
        ),
        {
            "id": {"orders.id IDENTITY"},
            "who": {"people.name AGGREGATION"},
            "*": {"(people.id FILTER)", "(orders.person FILTER)", "(people.city FILTER)", "(orders.id FILTER)"},
        },
    ),
    (
        "window",
        (
            "SELECT id, row_number() OVER (PARTITION BY person ORDER BY day) AS nth, sum(amount) OVER (PARTITION BY"
            " person) AS running FROM {s}.orders"
        ),
        {
            "id": {"orders.id IDENTITY"},
            "nth": {"(orders.person WINDOW)", "(orders.day WINDOW)"},
            "running": {"orders.amount AGGREGATION", "(orders.person WINDOW)"},
        },
    ),
    (
        "union",
        "SELECT id, name AS what FROM {s}.people UNION ALL SELECT person, tags[0] FROM {s}.orders",
        {
            "id": {"people.id IDENTITY", "orders.person IDENTITY"},
            "what": {"people.name IDENTITY", "orders.tags TRANSFORMATION"},
        },
    ),
    (
        "lateral view",
        "SELECT id, tag FROM {s}.orders LATERAL VIEW explode(tags) AS tag",
        {"id": {"orders.id IDENTITY"}, "tag": {"orders.tags TRANSFORMATION"}},
    ),
    (
        "lateral join",
        "SELECT o.id, l.name FROM {s}.orders o, LATERAL (SELECT name FROM {s}.people p WHERE p.id = o.person) l",
        {
            "id": {"orders.id IDENTITY"},
            "name": {"people.name IDENTITY"},
            "*": {"(people.id FILTER)", "(orders.person FILTER)"},
        },
    ),
    (
        "case",
        (
            "SELECT CASE WHEN amount > 5 THEN id WHEN day IS NULL THEN person ELSE 0 END AS c, IF(amount > 1, id,"
            " person) AS i FROM {s}.orders"
        ),
        {
            "c": {
                "orders.id TRANSFORMATION",
                "orders.person TRANSFORMATION",
                "(orders.amount CONDITIONAL)",
                "(orders.day CONDITIONAL)",
            },
            "i": {"orders.id TRANSFORMATION", "orders.person TRANSFORMATION", "(orders.amount CONDITIONAL)"},
        },
    ),
    (
        "variant",
        (
            "SELECT variant_get(v, '$.a', 'bigint') AS a, pos FROM (SELECT parse_json(name) AS v, city FROM"
            " {s}.people), LATERAL variant_explode(v) AS t(pos, key, value)"
        ),
        {"a": {"people.name TRANSFORMATION"}, "pos": {"people.name TRANSFORMATION"}},
    ),
    (
        "except",
        "SELECT id FROM {s}.orders EXCEPT SELECT id FROM {s}.people",
        {"id": {"orders.id IDENTITY"}, "*": {"(people.id FILTER)"}},
    ),
    (
        "distinct",
        "SELECT DISTINCT city FROM {s}.people",
        {"city": {"people.city IDENTITY"}, "*": {"(people.city GROUP_BY)"}},
    ),
    (
        "cube",
        "SELECT city, name, count(id) AS n FROM {s}.people GROUP BY CUBE (city, name)",
        {
            "city": {"people.city IDENTITY"},
            "name": {"people.name IDENTITY"},
            "n": {"people.id AGGREGATION"},
            "*": {"(people.city GROUP_BY)", "(people.name GROUP_BY)"},
        },
    ),
    (
        "itself twice",
        "SELECT a.id, b.name FROM {s}.people a JOIN {s}.people b ON a.id = b.id",
        {"id": {"people.id IDENTITY"}, "name": {"people.name IDENTITY"}, "*": {"(people.id JOIN)"}},
    ),
    (
        "recursive",
        (
            "WITH RECURSIVE r(n, who) AS (SELECT 1, name FROM {s}.people UNION ALL SELECT n + 1, who FROM r WHERE n <"
            " 3) SELECT who FROM r"
        ),
        {"who": {"people.name IDENTITY"}},
    ),
    (
        "recursive, round and round",
        (
            "WITH RECURSIVE r(n, a, b) AS (SELECT 1, name, city FROM {s}.people UNION ALL SELECT n + 1, b, a FROM r"
            " WHERE n < 3) SELECT a FROM r"
        ),
        {"a": {"people.name IDENTITY", "people.city IDENTITY"}},
    ),
    (
        "pivot",
        (
            "SELECT * FROM (SELECT city, amount, person FROM {s}.orders o JOIN {s}.people p ON o.person = p.id)"
            " PIVOT (sum(amount) FOR city IN ('a' AS a))"
        ),
        {"person": {"orders.person IDENTITY"}, "a": {"orders.amount AGGREGATION", "people.city AGGREGATION"}},
    ),
]


@pytest.mark.parametrize("text,known", [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN])
def test_query_columns_have_expected_origins(world: World, text: str, known: dict[str, set[str]]) -> None:
    """Each column has exactly the expected origins."""
    columns = of(world, text)

    if "PIVOT" in text:
        columns = {name: {one for one in origins if "(" not in one} for name, origins in columns.items() if name != "*"}
    assert columns == known


def test_files_of_a_pattern_have_directory_as_source(world: World, tmp_path: Path) -> None:
    """A read of one or several files has the directory as its source; a file elsewhere is its own source."""
    for name in ("a/1.csv", "a/2.csv", "b/3.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    root = str(tmp_path / "a")

    def sources(*names: str) -> list[str]:
        frame = world.spark.read.schema("x STRING").csv([str(tmp_path / name) for name in names])
        return [each.name for each in lineage_of(frame, file_roots=(root,)).inputs]

    assert root_of(f"{root}/*.csv") == root
    assert sources("a/2.csv") == sources("a/1.csv", "a/2.csv") == [root]
    assert sources("b/3.csv") == [str(tmp_path / "b/3.csv")]


def test_dataframes_views_and_files_have_lineage(world: World, tmp_path: Path) -> None:
    """Python DataFrames, temporary views, user functions and files have the same plans; files are external sources."""
    frame = world.sql("SELECT id, name FROM {s}.people")
    frame.createOrReplaceTempView("named")
    viewed = world.sql("SELECT upper(name) AS up FROM named")
    mapped = frame.mapInArrow(lambda batches: batches, "id BIGINT, who STRING")
    renamed = frame.withColumnRenamed("name", "who").filter(f.col("id") > 1).select("who")
    world.spark.range(3).withColumn("v", f.lit("x")).write.parquet(str(tmp_path / "p"))
    file = lineage_of(world.spark.read.parquet(str(tmp_path / "p")).select(f.col("v").alias("w")))
    literal = lineage_of(world.spark.createDataFrame([(1, "x")], "a INT, b STRING"))

    assert format_lineage(lineage_of(viewed)) == {"up": {"people.name TRANSFORMATION"}}
    both = {"people.id TRANSFORMATION", "people.name TRANSFORMATION"}
    assert format_lineage(lineage_of(mapped)) == {"id": both, "who": both}
    assert format_lineage(lineage_of(renamed)) == {"who": {"people.name IDENTITY"}, "*": {"(people.id FILTER)"}}
    assert [(each.namespace, each.name) for each in file.inputs] == [("file", str(tmp_path / "p"))]
    assert format_lineage(file) == {"w": {"p.v IDENTITY"}}
    assert literal.inputs == ()


def test_internal_columns_are_not_in_lineage(world: World, tmp_path: Path) -> None:
    """Internal columns for malformed rows do not occur in the lineage."""
    (tmp_path / "p.csv").write_text("1,x\n", encoding="utf-8")
    parsed = world.spark.read.schema(f"id BIGINT, v STRING, {BAD} STRING").csv(str(tmp_path / "p.csv"))
    parsed = parsed.select("*", f.col("_metadata.file_path").alias(FILE))

    lineage = lineage_of(parsed.where(f.col(BAD).isNull() & (f.col("id") > 0)).drop(BAD, FILE))

    assert format_lineage(lineage) == {
        "id": {"p.csv.id IDENTITY"},
        "v": {"p.csv.v IDENTITY"},
        "*": {"(p.csv.id FILTER)"},
    }


def test_branch_and_snapshot_reads_have_table_as_source(world: World) -> None:
    """A table that is read by its branch, or at a snapshot, is that table; a table whose name looks like a branch is
    itself.
    """
    world.sql("INSERT INTO {s}.people VALUES (1, 'a', 'b')")
    world.sql("ALTER TABLE {s}.people CREATE BRANCH `run_1`")
    (snapshot,) = world.sql("SELECT snapshot_id FROM {s}.people.snapshots").first() or ()
    world.sql("CREATE TABLE {s}.branch_x (id BIGINT)")
    table = (*world.space, "people")
    queries = ["SELECT id FROM {s}.people.branch_run_1", f"SELECT id FROM {{s}}.people VERSION AS OF {snapshot}"]
    input_tables = [[each.table for each in lineage_of(world.sql(text)).inputs] for text in queries]
    own = [each.table for each in lineage_of(world.sql("SELECT id FROM {s}.branch_x")).inputs]
    world.sql("DROP TABLE {s}.branch_x PURGE")

    assert input_tables == [[table], [table]]
    assert own == [(*world.space, "branch_x")]


@pytest.mark.parametrize(
    "version, change",
    [
        (2, "INSERT INTO {s}.people VALUES (2, 'c', 'd')"),
        (2, "UPDATE {s}.people SET city = 'e'"),
        (3, "UPDATE {s}.people SET city = 'e'"),
    ],
    ids=["appended", "changelog", "row lineage"],
)
def test_increment_has_lineage_of_its_table(world: World, version: int, change: str) -> None:
    """The lineage of an increment is that of the table, for every way to compute it."""
    world.sql(f"ALTER TABLE {{s}}.people SET TBLPROPERTIES ('format-version' = '{version}')")
    world.sql("INSERT INTO {s}.people VALUES (1, 'a', 'b')")
    table = (*world.space, "people")
    since = require_metadata(world.spark, table).head()
    world.sql(change)
    until = require_metadata(world.spark, table).head()
    frame = increment(world.spark, table, since=since, until=until).frame
    assert frame is not None
    frame.createOrReplaceTempView("changed_people")

    lineage = lineage_of(
        world.sql("SELECT c.name, o.amount FROM changed_people c JOIN {s}.orders o ON o.person = c.id")
    )

    assert {each.table for each in lineage.inputs} == {table, (*world.space, "orders")}
    assert format_lineage(lineage) == {
        "name": {"people.name IDENTITY"},
        "amount": {"orders.amount IDENTITY"},
        "*": {"(people.id JOIN)", "(orders.person JOIN)"},
    }
