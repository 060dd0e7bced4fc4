# SPDX-License-Identifier: Apache-2.0
"""Listing of a real Hive metastore: databases, Iceberg tables with their metadata files, and what has a problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hive_metastore.ttypes import Database, SerDeInfo, StorageDescriptor, Table

from limnos.model.errors import BadRequest
from limnos.spark.harvest.listing import DirectoryLister, DirectoryVisit, HarvestRoot, ListingTask, visit_table
from limnos.spark.harvest.metastores import MetastoreLister, lister_of
from tests.metastores import HiveServer, hive_server

pytestmark = pytest.mark.integration
FILE = "metadata/00003-0a5f8d8e-95d1-4a6c-8a1f-0c3cfe0d9a11.metadata.json"
TABLES = {
    "local": {"table_type": "ICEBERG", "metadata_location": f"file:/wh/shop/local/{FILE}"},
    "bucket": {"table_type": "iceberg", "metadata_location": f"s3a://wh/shop/bucket/{FILE}"},
    "hdfs": {"table_type": "ICEBERG", "metadata_location": f"hdfs://name/wh/{FILE}"},
    "climbs": {"table_type": "ICEBERG", "metadata_location": "file:/wh/../etc/x.metadata.json"},
    "bare": {"table_type": "ICEBERG"},
    "hives": {},
}


@pytest.fixture(scope="module")
def root() -> Iterator[HarvestRoot]:
    """A metastore with a database of tables of each sort."""
    with hive_server() as server:
        _fill(server)
        yield HarvestRoot(location=f"thrift://127.0.0.1:{server.bridge.port}", formats=("iceberg",))


def _fill(server: HiveServer) -> None:
    with server.client() as client:
        client.create_database(Database(name="shop", parameters={}))
        for name, parameters in TABLES.items():
            storage = StorageDescriptor(cols=[], serdeInfo=SerDeInfo(serializationLib="x"))
            client.create_table(
                Table(
                    tableName=name,
                    dbName="shop",
                    tableType="EXTERNAL_TABLE",
                    parameters=parameters,
                    partitionKeys=[],
                    sd=storage,
                )
            )


def visit(root: HarvestRoot, *levels: str) -> DirectoryVisit:
    """List the databases, or the tables of a database."""
    with closing(lister_of(root)) as lister:
        return lister.visit(levels)


def test_databases_are_listed_next(root: HarvestRoot) -> None:
    """The root has the databases below it, and no table of its own."""
    databases = visit(root)

    assert not databases.candidates
    assert ("shop",) in databases.below


def test_tables_have_their_metadata_files_in_one_spelling(root: HarvestRoot) -> None:
    """Iceberg tables have their metadata files and versions; Hive's own tables have no row."""
    listed_tables = {each.levels[-1]: each for each in visit(root, "shop").candidates}

    assert sorted(listed_tables) == ["bare", "bucket", "climbs", "hdfs", "local"]
    assert listed_tables["local"].metadata_location == f"file:///wh/shop/local/{FILE}"
    assert listed_tables["bucket"].metadata_location == f"s3://wh/shop/bucket/{FILE}"
    assert {listed_tables[name].version for name in ("local", "bucket")} == {3}


@pytest.mark.parametrize(
    "name, problem",
    [
        ("hdfs", "executors read local files and s3://"),
        ("climbs", "executors read local files and s3://"),
        ("bare", "the metastore names no metadata file of it"),
    ],
)
def test_table_without_a_readable_metadata_file_has_a_problem(root: HarvestRoot, name: str, problem: str) -> None:
    """A table whose metadata file is missing or in a store that executors do not read is a row with the reason."""
    (table,) = [each for each in visit(root, "shop").candidates if each.levels[-1] == name]

    assert problem in str(table.problem)
    assert table.metadata_location is None


def test_task_lists_databases_of_the_metastore(root: HarvestRoot) -> None:
    """Executors list databases by the same lister; rows have the database as namespace and an address as directory."""
    databases = visit_table(root, DirectoryVisit(below=[("shop",)])).to_batches()
    (batch,) = ListingTask(root, lister_of)(databases)
    rows = {row["name"]: row for row in batch.to_pylist()}

    assert rows["local"]["namespace"] == ["shop"]
    assert rows["local"]["directory"] == f"{root.location}/shop/local"
    assert rows["local"]["problem"] is None


def test_missing_database_has_a_problem(root: HarvestRoot) -> None:
    """A database that was dropped since it was listed is a candidate with the problem, and ends no task."""
    (problem,) = visit(root, "gone").candidates

    assert problem.levels == ("gone",)
    assert "it cannot be listed" in str(problem.problem)


def test_silent_metastore_has_a_problem() -> None:
    """A metastore that does not answer is a problem of the root, which ends the run."""
    (problem,) = visit(HarvestRoot(location="thrift://127.0.0.1:9")).candidates

    assert problem.levels == ()
    assert "it cannot be listed" in str(problem.problem)


def test_wrong_address_is_refused() -> None:
    """An address without a host is refused with the reason."""
    with pytest.raises(BadRequest):
        MetastoreLister(HarvestRoot(location="thrift://"))


def test_directories_have_their_own_lister() -> None:
    """A root that is no metastore is listed as a directory."""
    assert isinstance(lister_of(HarvestRoot(location="file:///wh")), DirectoryLister)
