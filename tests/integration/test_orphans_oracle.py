"""Iceberg's own search for orphan files, as a dry run, is the oracle of the server's: on tables that nobody writes to,
the server removes no file that Iceberg would keep.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from bench.maintenance_node import task_context
from limnos.services.maintenance.orphans.search import TableSearch, orphans_search
from limnos.store.activity.maintenance import tables_page
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAME = "main.quiet.t"
OLD_S = 10 * 86_400
ORPHANS = ("data/p=1/killed.parquet", "data/killed.parquet", "metadata/killed-m0.avro", "metadata/snap-1-1-killed.avro",
           "metadata/killed.stats")  # fmt: skip
OTHERS = ("data/notes.txt", "metadata/killed-1.metadata.json")
"""Files that Iceberg takes for orphans, and that the server keeps: no writer of Iceberg gives the first name, and
metadata files have a rule of their own.
"""


def make_table(spark: SparkSession, server: LiveServer) -> Path:
    """Make a table with all kinds of files that metadata can name. Returns its directory."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS main.quiet")
    properties = "'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.metadata.previous-versions-max'='3'"
    spark.sql(
        f"CREATE TABLE {NAME} (id BIGINT, p BIGINT) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({properties})"
    )
    for number in range(4):
        spark.range(10 * number, 10 * number + 10).selectExpr("id", "id % 2 AS p").coalesce(1).writeTo(NAME).append()
    spark.sql(f"DELETE FROM {NAME} WHERE id = 3")  # a file of position deletes
    spark.sql(f"ALTER TABLE {NAME} CREATE BRANCH kept")
    spark.sql(f"INSERT INTO {NAME}.branch_kept VALUES (1000, 0)")
    spark.sql(f"ALTER TABLE {NAME} CREATE TAG marked")
    spark.sql(f"INSERT OVERWRITE {NAME} SELECT id, p FROM {NAME} WHERE id < 20")
    spark.sql(f"CALL main.system.compute_table_stats(table => '{NAME}')")
    spark.sql(f"INSERT INTO {NAME} VALUES (2000, 1)")
    catalog = RestCatalog("oracle", uri=f"{server.uri}/iceberg", warehouse="lake/main", token=server.token)
    table = catalog.load_table("quiet.t")
    first = min(table.metadata.snapshots, key=lambda each: each.sequence_number or 0)
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()  # its files stay, and only the list is free
    return Path(table.location().removeprefix("file://"))


def age(folder: Path) -> None:
    """Make all files of a table old."""
    old = time.time() - OLD_S
    for path in folder.rglob("*"):
        os.utime(path, (old, old))


def searched(node: DriverNode) -> TableSearch:
    """The server's search of the table."""
    services = node.built.services
    heads = node.runner.run(services.gate.look_up(lambda: tables_page(0, limit=500)))
    for head in heads:
        document = node.runner.run(orphans_search(task_context(node), services, node_id=head.node_id))
        if (
            document.files is not None
            and Path(document.files.location.removeprefix("file://")).joinpath(ORPHANS[0]).exists()
        ):
            return document
    raise AssertionError("the table was not found")


def test_iceberg_finds_the_same_files(server: LiveServer, spark: SparkSession) -> None:
    """The orphans of the server are those of Iceberg, without files that no writer of Iceberg makes and old metadata
    files.
    """
    folder = make_table(spark, server)
    for name in (*ORPHANS, *OTHERS):
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_bytes(b"orphan")
    age(folder)
    rows = spark.sql(f"CALL main.system.remove_orphan_files(table => '{NAME}', dry_run => true)").collect()
    by_iceberg = {row[0].removeprefix("file:").replace("//", "/").removeprefix(f"{folder}/") for row in rows}
    with wire.node_over(server.data) as node:
        found = searched(node)
    ours = {each.name for each in found.candidates if not each.name.endswith(".crc")}  # Hadoop lists no checksum files
    off_the_log = {name for name in by_iceberg if name.endswith(".metadata.json")}

    assert found.blocked is None
    assert ours.issuperset(ORPHANS)
    assert ours - set(ORPHANS), "the files that only the expired snapshot named"
    assert ours <= by_iceberg, "the server would remove what Iceberg keeps"
    assert by_iceberg - ours == off_the_log | {"data/notes.txt"}
    assert spark.sql(f"SELECT count(*), sum(id) FROM {NAME}").collect() == [(20, 2000 + sum(range(20)) - 3)]
