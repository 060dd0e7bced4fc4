# SPDX-License-Identifier: Apache-2.0
"""The shipped pipeline `verify`: planted faults are found, each by its own finding, and a healthy lake has none."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest
from lance.namespace import CreateNamespaceRequest, RestNamespace
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from limnos.pipeline.run.options import RunOptions
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SPACE = "verified"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32())})


def local(location: str) -> Path:
    """Return the path of a location on this machine."""
    return Path("/" + location.removeprefix("file:").lstrip("/"))


class Lake:
    """A namespace with a table for each fault, and the shipped pipeline."""

    def __init__(self, spark: SparkSession, client: Client, *, server: LiveServer) -> None:
        self.spark, self.client, self.server = spark, client, server
        properties = {"type": "rest", "uri": f"{server.uri}/iceberg", "warehouse": "main", "token": server.token}
        catalog = load_catalog("limnos", **properties)
        assert isinstance(catalog, RestCatalog)
        self.catalog = catalog

    def add(self, name: str) -> None:
        """Create a table with two snapshots."""
        table = self.catalog.create_table((SPACE, name), ROWS.schema)
        table.append(ROWS)
        table.append(ROWS)

    def metadata_file(self, name: str) -> Path:
        """Return the path of a table's metadata file."""
        return local(self.client.tables.load(f"main.{SPACE}.{name}").metadata_location or "")

    def snapshot_file(self, name: str) -> Path:
        """Return the path of the manifest list of a table's current snapshot."""
        snapshot = self.table(name).current_snapshot()
        assert snapshot is not None
        return local(snapshot.manifest_list)

    def manifest(self, name: str) -> Path:
        """Return the path of a manifest of a table's current snapshot."""
        table = self.table(name)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        return local(snapshot.manifests(table.io)[0].manifest_path)

    def data_file(self, name: str, content: int = 0) -> Path:
        """Return the path of a file of the current snapshot: of data, or of deletes."""
        files = self.table(name).inspect.files().to_pylist()
        return local(next(each["file_path"] for each in files if each["content"] == content))

    def table(self, name: str) -> Table:
        """Load a table with PyIceberg."""
        return self.catalog.load_table((SPACE, name))

    def lance_directory(self, name: str) -> Path:
        """Return the directory of a Lance table."""
        return local(self.client.lance.load(("lance", SPACE, name)).location)

    def run(self, *, select: tuple[str, ...] = (), **parameters: object) -> None:
        """Run the pipeline, or some steps, and publish its tables."""
        options = RunOptions(select=select)
        load("shipped:verify").run(self.spark, parameters=parameters, options=options, client=self.client).require()

    def findings(self, condition: str = "state = 'present'") -> set[tuple[str, str]]:
        """Return the paths and findings of this lake."""
        rows = self.spark.sql(
            f"SELECT path, finding FROM main.lake_history.storage_findings WHERE path LIKE '%{SPACE}%' AND {condition}"
        ).collect()
        return {(row.path.removeprefix(f"main.{SPACE}.").removeprefix(f"lance.{SPACE}."), row.finding) for row in rows}


def edit(path: Path, **fields: object) -> None:
    """Replace fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def cut(path: Path) -> None:
    """Remove the second half of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def lengthen(path: Path) -> None:
    """Add bytes to a file."""
    path.write_bytes(path.read_bytes() + b"more")


def set_aside(lake: Lake, name: str) -> None:
    """Rename a data file."""
    path = lake.data_file(name)
    path.rename(path.with_suffix(".aside"))


def make_directory(path: Path) -> None:
    """Replace a file by a directory."""
    path.unlink()
    path.mkdir()


def older(lake: Lake, name: str) -> None:
    """Replace the metadata file by an older one."""
    newest = lake.metadata_file(name)
    older_location = lake.client.tables.load(f"main.{SPACE}.{name}").metadata["metadata-log"][-1]["metadata-file"]  # type: ignore[index,call-overload]
    shutil.copy(local(str(older_location)), newest)


def nest(lake: Lake, name: str) -> None:
    """Write into the store that a table is inside the location of the table `healthy`."""
    outer = lake.client.tables.load(f"main.{SPACE}.healthy").metadata["location"]
    uuid = lake.client.tables.load(f"main.{SPACE}.{name}").metadata["table-uuid"]
    with closing(sqlite3.connect(next(lake.server.data.glob("*.db")), timeout=30)) as connection, connection:
        done = connection.execute("UPDATE document SET location = ? WHERE uuid = ?", (f"{outer}/inner", uuid))
        assert done.rowcount == 1


def share(lake: Lake, name: str) -> None:
    """Add one file to two tables. It lies in the location of the second."""
    table = lake.table(name)
    path = f"{local(table.location())}/data/shared.parquet"
    pyarrow.parquet.write_table(ROWS, path)
    table.add_files([f"file://{path}"])
    lake.table("sharing").add_files([f"file://{path}"])


FAULTS: Mapping[str, tuple[Callable[[Lake, str], object], str]] = {
    "metadata_gone": (lambda lake, name: lake.metadata_file(name).unlink(), "metadata file missing"),
    "metadata_cut": (lambda lake, name: cut(lake.metadata_file(name)), "metadata file unreadable"),
    "metadata_other": (
        lambda lake, name: shutil.copy(lake.metadata_file("healthy"), lake.metadata_file(name)),
        "metadata file of another object",
    ),
    "metadata_older": (older, "metadata file is older"),
    "list_gone": (lambda lake, name: lake.snapshot_file(name).unlink(), "manifest list missing"),
    "manifest_gone": (lambda lake, name: lake.manifest(name).unlink(), "manifest missing"),
    "manifest_cut": (lambda lake, name: cut(lake.manifest(name)), "manifest shorter"),
    "data_gone": (set_aside, "data file missing"),
    "data_cut": (lambda lake, name: cut(lake.data_file(name)), "data file shorter"),
    "data_long": (lambda lake, name: lengthen(lake.data_file(name)), "data file longer"),
    "data_directory": (lambda lake, name: make_directory(lake.data_file(name)), "data file is a directory"),
    "deletes_gone": (lambda lake, name: lake.data_file(name, content=1).unlink(), "delete file missing"),
    "statistics_gone": (
        lambda lake, name: local(lake.table(name).metadata.statistics[0].statistics_path).unlink(),
        "statistics file missing",
    ),
    "a_view": (
        lambda lake, name: local(lake.client.views.load(f"main.{SPACE}.{name}").metadata_location).unlink(),
        "metadata file missing",
    ),
    "lance_manifest": (
        lambda lake, name: [each.unlink() for each in (lake.lance_directory(name) / "_versions").glob("*.manifest")],
        "version manifest missing",
    ),
    "lance_fragment": (
        lambda lake, name: next((lake.lance_directory(name) / "data").iterdir()).unlink(),
        "fragment file missing",
    ),
    "uuid_wrong": (
        lambda lake, name: edit(lake.metadata_file(name), **{"table-uuid": "00000000-0000-4000-8000-000000000001"}),
        "uuid differs",
    ),
    "location_wrong": (
        lambda lake, name: edit(lake.metadata_file(name), location="file:///elsewhere"),
        "location differs",
    ),
    "shared": (share, "file of another table"),
    "nested": (nest, "location inside another"),
}
"""For each table the fault that is planted, and the finding that it must have."""


@pytest.fixture
def lake(spark: SparkSession, server: LiveServer) -> Iterator[Lake]:
    """The lake with a table for each fault, without faults."""
    with Client(server.uri, token=server.token) as client:
        for name in ("lake_history", SPACE):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS main.{name}")
        planted = Lake(spark, client, server=server)
        special = {"deletes_gone", "statistics_gone", "a_view", "lance_manifest", "lance_fragment"}
        for name in ("healthy", "sharing", *FAULTS.keys() - special):
            planted.add(name)
        spark.sql(
            f"CREATE TABLE main.{SPACE}.deletes_gone TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
            " AS SELECT id FROM range(0, 9, 1, 1)"
        )
        spark.sql(f"DELETE FROM main.{SPACE}.deletes_gone WHERE id = 3")
        spark.sql(f"CREATE TABLE main.{SPACE}.statistics_gone AS SELECT id FROM range(3)")
        spark.sql(f"CALL main.system.compute_table_stats(table => '{SPACE}.statistics_gone')")
        spark.sql(f"CREATE VIEW main.{SPACE}.a_view AS SELECT 1 AS one")
        space = RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"})
        space.create_namespace(CreateNamespaceRequest(id=["lance", SPACE]))
        for name in ("lance_manifest", "lance_fragment"):
            lance.write_dataset(ROWS, namespace_client=space, table_id=["lance", SPACE, name], mode="create")
        yield planted


def test_each_planted_fault_has_its_own_finding(lake: Lake) -> None:
    """A healthy lake has no finding. Twenty faults have one finding each. The finding of an object that was not checked
    is of unknown state, and those of repaired files and dropped tables are gone.
    """
    lake.run(footers=True)
    assert lake.findings("TRUE") == set()
    checked = lake.spark.sql(
        f"SELECT min(files) AS files FROM main.lake_history.storage_check WHERE path LIKE '%{SPACE}%'"
    ).collect()
    assert checked[0].files >= 1

    for name, (plant, _) in FAULTS.items():
        plant(lake, name)
    lake.run()
    present = lake.findings()

    expected = {(name, finding) for name, (_, finding) in FAULTS.items()}
    beside = {("sharing", "file of another table"), ("sharing", "data file outside of the location")}
    assert present == expected | beside
    rows = lake.spark.sql(
        "SELECT expected, actual, severity, first_seen = last_seen AS is_new FROM main.lake_history.storage_findings"
        f" WHERE path = 'main.{SPACE}.data_long'"
    ).collect()
    assert [(row.severity, row.is_new) for row in rows] == [("error", True)]
    assert int(rows[0].actual.split()[0]) == int(rows[0].expected.split()[0]) + len("more")
    lake.spark.sql(f"UPDATE main.lake_history.storage_check SET files = NULL WHERE path = 'main.{SPACE}.data_cut'")
    lake.run(select=("lake_history.storage_findings",))
    assert lake.findings("state = 'unknown'") == {("data_cut", "data file shorter")}

    for aside in lake.data_file("data_gone").parent.glob("*.aside"):
        aside.rename(aside.with_suffix(".parquet"))
    lake.catalog.drop_table((SPACE, "data_long"))
    lake.run()
    ended = {("data_gone", "data file missing"), ("data_long", "data file longer")}
    assert lake.findings("state = 'gone' AND last_seen < current_timestamp()") == ended
    assert lake.findings() == present - ended
