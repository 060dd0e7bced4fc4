# SPDX-License-Identifier: Apache-2.0
"""Lineage reported by the listener of a real Spark: tables and columns, in both directions, also after a rename of a
namespace.

Spark adds a listener only at its start, so this one runs in its own process.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.client import Client, NotFoundError
from limnos.client.values import LineageGraph
from tests.integration.live import LiveServer, serving

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

SCRIPT = """
import sys
from limnos.client import Client
from limnos.pipeline.engine.lineage import lineage_of
from limnos.pipeline.lineage import report_lineage
from limnos.spark import session

uri, token, out = sys.argv[1:]
spark = session(uri, token=token, master="local[2]", lineage=True, config={"spark.driver.memory": "1g"})
for statement in (
    "CREATE NAMESPACE main.ol", "CREATE NAMESPACE main.ol.deep",
    "CREATE TABLE main.ol.deep.src (id BIGINT, name STRING, amt DOUBLE)",
    "INSERT INTO main.ol.deep.src VALUES (1, 'a', 2.0), (2, 'b', 3.0)",
    "CREATE TABLE main.ol.deep.agg AS SELECT upper(name) AS nm, sum(amt) AS total FROM main.ol.deep.src GROUP BY name",
    "INSERT INTO main.ol.deep.agg SELECT name, amt FROM main.ol.deep.src WHERE id > 1",
    "CREATE TABLE main.ol.deep.more AS SELECT total * 2 AS twice FROM main.ol.deep.agg",
    "MERGE INTO main.ol.deep.more t USING main.ol.deep.src s ON t.twice = s.amt WHEN NOT MATCHED THEN INSERT (twice) VALUES (s.amt)",
    "UPDATE main.ol.deep.agg SET total = total + 1",
):
    spark.sql(statement)
spark.table("main.ol.deep.src").write.mode("overwrite").parquet(out)
spark.read.parquet(out).createOrReplaceTempView("files")
spark.sql("CREATE TABLE main.ol.deep.back AS SELECT id + 1 AS next FROM files")
with Client(uri, token=token) as client:
    client.namespaces.create("lance.ml")
written = spark.table("main.ol.deep.src").select("id", "name").write.format("limnos.lance")
for mode in ("append", "overwrite"):
    written.mode(mode).save("lance.ml.docs")
docs = spark.read.format("limnos.lance").load("lance.ml.docs")
docs.where("id > 0").write.format("limnos.lance").mode("append").save("lance.ml.copies")
docs.writeTo("main.ol.deep.loaded").using("iceberg").create()
docs.writeTo("main.ol.deep.loaded").append()
step = lineage_of(spark.sql("SELECT amt AS twice FROM main.ol.deep.src WHERE name IS NOT NULL"))
with Client(uri, token=token) as client:
    taken = report_lineage(client, pipeline="p", run_id="r1", step="more", targets=[("main", "ol", "deep", "more")], lineage=step)
print("kept", taken.kept, flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def lineage_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Path]]:
    """A server to which a Spark has reported its statements."""
    data = tmp_path_factory.mktemp("lineage") / "data"
    out = data.parent / "out.parquet"
    with serving(data) as server:
        command = [sys.executable, "-c", textwrap.dedent(SCRIPT), server.uri, server.token, str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.stdout.strip().endswith("kept 1"), done.stderr[-3000:]
        out.with_suffix(".log").write_text(done.stderr)
        yield server, out


@pytest.fixture
def client(lineage_server: tuple[LiveServer, Path]) -> Iterator[Client]:
    """A client of that server."""
    with Client(lineage_server[0].uri, token=lineage_server[0].token) as client:
        yield client


def names(graph: LineageGraph) -> set[tuple[str, str]]:
    """Sources and targets by their names."""

    def one(node_id: str) -> str:
        (node,) = [each for each in graph.nodes if each.id == node_id]
        name = node.path[-1] if node.path else (node.name or "").rpartition("/")[2]
        return f"{name}.{node.column}" if node.column else name

    return {(one(edge.source), one(edge.target)) for edge in graph.edges}


def test_lance_tables_are_linked_with_what_they_come_from(
    lineage_server: tuple[LiveServer, Path], client: Client
) -> None:
    """A Lance table that Spark writes, appends to or overwrites has lineage, from tables and from other Lance tables,
    and so has a table that gets its rows.
    """
    loaded = client.lineage.up("main.ol.deep.loaded", depth=5)
    copies = client.lineage.up("lance.ml.copies", depth=5)

    assert names(loaded) == {("src", "docs"), ("docs", "loaded")}
    assert names(copies) == {("src", "docs"), ("docs", "copies")}
    assert names(client.lineage.down("main.ol.deep.src", depth=1)) >= {("src", "docs")}


def test_listener_of_openlineage_logs_no_warnings(lineage_server: tuple[LiveServer, Path]) -> None:
    """At Spark's own level of logs, nothing is written about reflective access, class loaders or unknown plans."""
    log = lineage_server[1].with_suffix(".log").read_text()

    assert "reflective access" not in log
    assert "OpenLineage" not in log
    assert "RelationDatasetExtractor" not in log


def test_spark_statements_link_tables_and_columns(lineage_server: tuple[LiveServer, Path], client: Client) -> None:
    """Tables and columns are linked as in the statements, MERGE by table, files with tables; renames change only
    names.
    """
    tables = client.lineage.up("main.ol.deep.more", depth=5)
    total = client.lineage.up("main.ol.deep.agg", column="total", depth=5)
    amount = client.lineage.down("main.ol.deep.src", column="amt", depth=5)
    back = client.lineage.up("main.ol.deep.back", depth=5)
    kinds = {kind for edge in total.edges if edge.direct for saying in edge.said for kind in saying.kinds}
    client.namespaces.move("main.ol", "main.renamed")
    after = client.lineage.up("main.renamed.deep.more", column="twice", depth=5)

    assert names(tables) == {("agg", "more"), ("src", "more"), ("src", "agg")}
    assert ("src.amt", "agg.total") in names(total)
    assert kinds == {"AGGREGATION", "IDENTITY"}
    assert {("src.amt", "agg.total"), ("agg.total", "more.twice"), ("src.amt", "more.twice")} <= names(amount)
    assert names(back) == {("out.parquet", "back"), ("src", "out.parquet")}
    assert {edge for edge in names(after) if edge[0] != "src.name"} >= {
        ("agg.total", "more.twice"),
        ("src.amt", "more.twice"),
    }
    assert {node.path[1] for node in after.nodes if node.path} == {"renamed"}
    with pytest.raises(NotFoundError):
        client.lineage.up("main.ol.deep.more")
