# SPDX-License-Identifier: Apache-2.0
"""A dry run of Iceberg's own search for orphan files is the oracle of the server's search: on tables without writers,
the server removes no file that Iceberg would keep.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from bench.maintenance_node import task_context
from limnos.rooms.maintenance.services.orphans.search import TableSearch, orphans_search
from limnos.store.activity.maintenance import tables_page
from limnos.store.objects.documents import document_read
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.room("maintenance"),
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAME = "main.quiet.t"
TABLES = int(os.environ.get("LIMNOS_TEST_ORPHAN_TABLES", "4"))
"""Number of random tables that are compared."""
OLD_S = 10 * 86_400
ORPHANS = (
    "data/p=1/killed.parquet",
    "data/killed.parquet",
    "metadata/killed-m0.avro",
    "metadata/snap-1-1-killed.avro",
    "metadata/killed.stats",
)
OTHERS = ("data/notes.txt", "metadata/killed-1.metadata.json")
"""Files that Iceberg considers orphans and that the server keeps: no writer of Iceberg creates the first name, and
metadata files have a separate rule.
"""


def make_table(spark: SparkSession, server: LiveServer) -> Path:
    """Create a table with all kinds of files that metadata can name. Returns its directory."""
    create_table(spark, NAME, "'write.delete.mode'='merge-on-read', 'write.metadata.previous-versions-max'='3'")
    for number in range(4):
        spark.range(10 * number, 10 * number + 10).selectExpr("id", "id % 2 AS p").coalesce(1).writeTo(NAME).append()
    spark.sql(f"DELETE FROM {NAME} WHERE id = 3")  # a file of position deletes
    spark.sql(f"ALTER TABLE {NAME} CREATE BRANCH kept")
    spark.sql(f"INSERT INTO {NAME}.branch_kept VALUES (1000, 0)")
    spark.sql(f"ALTER TABLE {NAME} CREATE TAG marked")
    spark.sql(f"INSERT OVERWRITE {NAME} SELECT id, p FROM {NAME} WHERE id < 20")
    spark.sql(f"CALL main.system.compute_table_stats(table => '{NAME}')")
    spark.sql(f"INSERT INTO {NAME} VALUES (2000, 1)")
    table = load(server, NAME)
    first = min(table.metadata.snapshots, key=lambda each: each.sequence_number or 0)
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()  # only its manifest list becomes an orphan
    return directory(table)


def create_table(spark: SparkSession, name: str, properties: str) -> None:
    """Create a partitioned table."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS main.quiet")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, p BIGINT) USING iceberg PARTITIONED BY (p)"
        f" TBLPROPERTIES ('format-version'='2', {properties})"
    )


def load(server: LiveServer, name: str) -> Table:
    """Load a table with PyIceberg."""
    catalog = RestCatalog("oracle", uri=f"{server.uri}/iceberg", warehouse="lake/main", token=server.token)
    return catalog.load_table(name.removeprefix("main."))


def directory(table: Table) -> Path:
    """Return the directory of a table."""
    return Path(table.location().removeprefix("file://"))


class RandomTable:
    """A table with a random history, and with files that no metadata names."""

    def __init__(self, spark: SparkSession, server: LiveServer, seed: int) -> None:
        self.random = random.Random(seed)
        self.spark = spark
        self.server = server
        self.name = f"main.quiet.t{seed}"
        self.refs = 0
        mode = self.random.choice(["merge-on-read", "copy-on-write"])
        versions_max = self.random.randint(1, 5)
        create_table(
            spark, self.name, f"'write.delete.mode'='{mode}', 'write.metadata.previous-versions-max'='{versions_max}'"
        )
        self.append()

    def append(self) -> None:
        """Append rows to both partitions, or to one."""
        first, count = self.random.randrange(1000), self.random.randint(1, 8)
        rows = self.spark.range(first, first + count).selectExpr("id", "id % 2 AS p")
        rows.coalesce(1).writeTo(self.name).append()

    def delete(self) -> None:
        """Delete some rows, by delete files or by rewritten files."""
        self.spark.sql(f"DELETE FROM {self.name} WHERE id % 5 = {self.random.randrange(5)}")

    def overwrite(self) -> None:
        """Replace all rows by some of them."""
        self.spark.sql(f"INSERT OVERWRITE {self.name} SELECT id, p FROM {self.name} WHERE id % 3 <> 0")

    def branch(self) -> None:
        """Write to a new branch, and tag the current snapshot."""
        self.refs += 1
        self.spark.sql(f"ALTER TABLE {self.name} CREATE BRANCH b{self.refs}")
        self.spark.sql(f"ALTER TABLE {self.name} CREATE TAG g{self.refs}")
        self.spark.sql(f"INSERT INTO {self.name}.branch_b{self.refs} VALUES ({5000 + self.refs}, 1)")

    def compute_statistics(self) -> None:
        """Write a statistics file."""
        self.spark.sql(f"CALL main.system.compute_table_stats(table => '{self.name}')")

    def rewrite(self) -> None:
        """Merge small files. The old files remain as long as their snapshots."""
        self.spark.sql(
            f"CALL main.system.rewrite_data_files(table => '{self.name}', options => map('min-input-files','2'))"
        )

    def expire(self) -> None:
        """Expire a snapshot; its files remain."""
        table = load(self.server, self.name)
        referenced_ids = {ref.snapshot_id for ref in table.metadata.refs.values()}
        old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id not in referenced_ids]
        if old:
            table.maintenance.expire_snapshots().by_id(self.random.choice(old)).commit()

    def plant(self) -> set[str]:
        """Write files that no metadata names, as killed writers leave them. Returns their names."""
        folder, names = directory(load(self.server, self.name)), set()
        for number in range(self.random.randint(1, 6)):
            kind = self.random.choice(
                ["data/p=0/{}.parquet", "data/{}.orc", "metadata/{}-m0.avro", "metadata/{}.stats"]
            )
            names.add(kind.format(f"killed{number}"))
        for name in names:
            folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(name).write_bytes(b"orphan")
        return names

    def live(self) -> None:
        """Run a random number of random steps."""
        steps = [self.append, self.append, self.delete, self.overwrite, self.branch, self.compute_statistics]
        for _ in range(self.random.randint(3, 7)):
            self.random.choice([*steps, self.rewrite, self.expire])()


def age(folder: Path) -> None:
    """Set the modification time of all files of a table into the past."""
    old = time.time() - OLD_S
    for path in folder.rglob("*"):
        os.utime(path, (old, old))


def searched(node: DriverNode, folder: Path) -> TableSearch:
    """The server's search of the table in a directory."""
    services = node.built.services
    heads = node.runner.run(services.gate.look_up(lambda: tables_page(0, limit=500)))
    for head in heads:
        document = node.runner.run(services.gate.look_up(lambda node_id=head.node_id: document_read(node_id)))
        if document is not None and document.location == f"file://{folder}":
            return node.runner.run(orphans_search(task_context(node), services, node_id=head.node_id))
    raise AssertionError("the table was not found")


def orphans_by_iceberg(spark: SparkSession, name: str, folder: Path) -> set[str]:
    """Return the files that Iceberg's dry run would remove, as names below the table's location."""
    rows = spark.sql(f"CALL main.system.remove_orphan_files(table => '{name}', dry_run => true)").collect()
    return {row[0].removeprefix("file:").replace("//", "/").removeprefix(f"{folder}/") for row in rows}


def orphans_by_server(server: LiveServer, folder: Path) -> set[str]:
    """Return the candidates of the server's search, by name, without checksum files, which Hadoop does not list."""
    with wire.node_over(server.data) as node:
        table_search = searched(node, folder)
    assert table_search.blocked is None
    return {each.name for each in table_search.candidates if not each.name.endswith(".crc")}


@pytest.mark.parametrize("seed", range(1, TABLES + 1))
def test_random_tables_have_the_same_orphans(server: LiveServer, spark: SparkSession, seed: int) -> None:
    """For tables with a random history and without writers, the server finds the orphans that Iceberg finds, apart from
    metadata files that are no longer in the metadata log.
    """
    table = RandomTable(spark, server, seed)
    table.live()
    planted = table.plant()
    folder = directory(load(server, table.name))
    age(folder)
    by_iceberg, ours = orphans_by_iceberg(spark, table.name, folder), orphans_by_server(server, folder)

    assert ours >= planted
    assert {name for name in by_iceberg if not name.endswith(".metadata.json")} == ours


def test_server_and_iceberg_report_the_same_orphans(server: LiveServer, spark: SparkSession) -> None:
    """The server finds the orphans that Iceberg finds, except for files that Iceberg's writers do not create and old
    metadata files.
    """
    folder = make_table(spark, server)
    for name in (*ORPHANS, *OTHERS):
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_bytes(b"orphan")
    age(folder)
    by_iceberg, ours = orphans_by_iceberg(spark, NAME, folder), orphans_by_server(server, folder)
    off_the_log = {name for name in by_iceberg if name.endswith(".metadata.json")}

    assert ours.issuperset(ORPHANS)
    assert ours - set(ORPHANS), "files that only the expired snapshot named"
    assert ours <= by_iceberg, "the server would remove files that Iceberg keeps"
    assert by_iceberg - ours == off_the_log | {"data/notes.txt"}
    assert spark.sql(f"SELECT count(*), sum(id) FROM {NAME}").collect() == [(20, 2000 + sum(range(20)) - 3)]
