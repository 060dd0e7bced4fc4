# SPDX-License-Identifier: Apache-2.0
"""Harvest of directories, over Spark against a real server: what each run reads and registers, and hostile directories.

The tables in the directories are PyIceberg's, Lance's and Arrow's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import Row, SparkSession

from limnos.client import Client, NotFoundError
from limnos.pipeline.project import load
from tests.integration.live import LiveServer
from tests.metastores import HiveServer, hive_server
from tests.pipeline.run.test_kills import Driver

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TABLES = 2_000
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32())})
PIPELINE = """
pipeline: SPACE
catalog: main
sources:
  lake: {harvest: ROOT}
  outcomes: {register: SPACE.tables, into: INTO}
steps:
  SPACE.tables: {load: lake}
  SPACE.outcomes: {load: outcomes}
environments: {dev: {prefix: dev_}}
"""


class Lake:
    """A directory with tables of a catalog in SQLite, a catalog of the server, and a pipeline that harvests it."""

    def __init__(self, spark: SparkSession, client: Client, *, place: Path, space: str) -> None:
        self.spark, self.client, self.root, self.space = spark, client, place / "wh", space
        self.into = f"{space}_in"
        self.root.mkdir()
        self.source: MetastoreCatalog = SqlCatalog(
            "source", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{self.root}"
        )
        client.catalogs.create(self.into, properties={"allowed-locations": f"file://{self.root}"})
        self.file = place / f"{space}.yaml"
        text = PIPELINE.replace("SPACE", space).replace("ROOT", str(self.root)).replace("INTO", self.into)
        self.file.write_text(text)

    def add(self, namespace: str, name: str) -> Path:
        """Create a table with a row group. Returns its directory."""
        self.source.create_namespace_if_not_exists(namespace)
        location = f"file://{self.root}/{namespace}/{name}"
        self.source.create_table((namespace, name), ROWS.schema, location=location).append(ROWS)
        return self.root / namespace / name

    def commit(self, namespace: str, name: str) -> None:
        """Append rows to a table of the directory."""
        self.source.load_table((namespace, name)).append(ROWS)

    def run(self, environment: str | None = None) -> None:
        """Run the pipeline and publish its tables."""
        project = load(self.file) if environment is None else load(self.file).in_environment(environment)
        project.run(self.spark, client=self.client).require()

    def states(self, prefix: str = "") -> dict[str, str]:
        """Return the states of the harvested tables by their directories below the root."""
        rows = self.spark.sql(f"SELECT directory, state FROM main.{prefix}{self.space}.tables").collect()
        return {row.directory.removeprefix(f"file://{self.root}/"): row.state for row in rows}

    def row(self, directory: str) -> Row:
        """Return the row of a harvested table."""
        location = f"file://{self.root}/{directory}"
        (row,) = self.spark.sql(f"SELECT * FROM main.{self.space}.tables WHERE directory = '{location}'").collect()
        return row

    def outcomes(self, prefix: str = "") -> dict[str, str]:
        """Return the outcomes by the paths of the tables below the catalog."""
        rows = self.spark.sql(f"SELECT path, outcome FROM main.{prefix}{self.space}.outcomes").collect()
        return {row.path.removeprefix(f"{self.into}."): row.outcome for row in rows}

    def message(self, path: str) -> str:
        """Return the message of a table's outcome."""
        table = f"main.{self.space}.outcomes"
        (row,) = self.spark.sql(f"SELECT message FROM {table} WHERE path = '{self.into}.{path}'").collect()
        return str(row.message)


@pytest.fixture
def lake(spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A lake of the test's own."""
    space = "h" + "".join(filter(str.isalnum, request.node.name))[-24:].lower()
    with Client(server.uri, token=server.token) as client:
        client.namespaces.create(f"main.{space}")
        yield Lake(spark, client, place=tmp_path, space=space)


def test_second_run_reads_and_registers_only_what_changed(lake: Lake) -> None:
    """A first run registers all tables, with their rows; a second one brings forward the one that has commits, keeps
    the rows of the others as they were, and says which has vanished, and which is below a directory that is not listed.
    """
    for name in ("a", "b", "c"):
        lake.add("sales", name)
    moved = lake.add("links", "e").parent
    lake.run()
    first, outcomes = lake.states(), lake.outcomes()
    before = lake.row("sales/a")
    lake.commit("sales", "b")
    shutil.rmtree(lake.root / "sales" / "c")
    moved.rename(lake.root.parent / "moved")
    moved.symlink_to(lake.root.parent / "moved")
    lake.add("sales.de", "d")
    lake.run()
    after = lake.row("sales/a")

    assert first == {**{f"sales/{name}": "new" for name in ("a", "b", "c")}, "links/e": "new"}
    assert outcomes == {**{f"sales.{name}": "registered" for name in ("a", "b", "c")}, "links.e": "registered"}
    assert (before.format, before.version, before.row_count, before.problem) == ("iceberg", 1, 3, None)
    assert [each["name"] for each in json.loads(before.columns)["fields"]] == ["id"]
    assert lake.states() == {
        "sales/a": "unchanged",
        "sales/b": "changed",
        "sales/c": "vanished",
        "sales.de/d": "new",
        "links": "unreadable",
        "links/e": "unlisted",
    }
    assert lake.outcomes() == {
        "sales.a": "unchanged",
        "sales.b": "brought-forward",
        "sales.c": "vanished",
        "`sales.de`.d": "registered",
        "links.e": "unchanged",
    }
    assert (after.read_at, after.seen_at > before.seen_at) == (before.read_at, True)
    table = lake.client.tables.load(f"{lake.into}.sales.b")
    assert table.metadata["snapshots"][-1]["summary"]["total-records"] == "6"  # type: ignore[index,call-overload]
    assert lake.client.tables.exists(f"{lake.into}.sales.c")


def test_hostile_directory_is_rows_and_the_run_goes_on(lake: Lake, tmp_path: Path) -> None:
    """Each thing that strangers left is a row with its problem, and its outcome says so; the good table is registered.
    An environment's run, before, registers nothing. Tables of formats that are not registered have their columns.
    """
    good, root = lake.add("ok", "good"), lake.root
    metadata = next((good / "metadata").glob("00001-*.json"))
    stolen = root / "evil" / "stolen" / "metadata"
    stolen.mkdir(parents=True)
    shutil.copy(metadata, stolen)
    for name, content in (("text", b"no JSON"), ("deep", b"[" * 100_000), ("empty", b"")):
        (root / "evil" / name / "metadata").mkdir(parents=True)
        (root / "evil" / name / "metadata" / "v1.metadata.json").write_bytes(content)
    (root / "evil" / "vast" / "metadata").mkdir(parents=True)
    with (root / "evil" / "vast" / "metadata" / "v1.metadata.json").open("wb") as file:
        file.truncate(10 << 30)
    (root / "evil" / "out").symlink_to(tmp_path)
    shutil.copytree(good, root / "ok" / "Good")
    place_of(root / "ok" / "Good")
    (root / root.name / "twice").mkdir(parents=True)
    shutil.copytree(good, root / "twice")
    place_of(root / "twice")
    shutil.copytree(good, root / root.name / "twice", dirs_exist_ok=True)
    place_of(root / root.name / "twice")
    (root / "evil" / os.fsdecode(b"bad-\xff")).mkdir()
    lance.write_dataset(ROWS, str(root / "ok" / "vectors.lance"))
    (root / "ok" / "files" / "day=1").mkdir(parents=True)
    pyarrow.parquet.write_table(ROWS, root / "ok" / "files" / "day=1" / "x.parquet")
    lake.run("dev")
    planned, tree = lake.outcomes("dev_"), list(lake.client.namespaces.list(lake.into))
    lake.run()
    outcomes = lake.outcomes()

    assert (planned["ok.good"], tree) == ("planned", [])
    assert outcomes == {
        "ok.good": "registered",
        "ok.Good": "registered",
        "ok.vectors": "left-out",
        "ok.files": "left-out",
        **{f"evil.{name}": "unreadable" for name in ("stolen", "text", "deep", "empty", "vast")},
        "wh.twice": outcomes["wh.twice"],
    }
    twice = lake.spark.sql(f"SELECT outcome, message FROM main.{lake.space}.outcomes WHERE path LIKE '%.wh.twice'")
    assert sorted(row.outcome for row in twice.collect()) == ["conflict", "registered"]
    assert "says that the table is at" in lake.message("evil.stolen")
    assert "at most 67,108,864 are read" in lake.message("evil.vast")
    problems = lake.spark.sql(f"SELECT name, problem FROM main.{lake.space}.tables WHERE format IS NULL").collect()
    assert {row.name: row.problem.partition(":")[0] for row in problems} == {
        "out": "it is a link, which is not followed",
        "bad-\\xff": "its name is not allowed",
    }
    assert (lake.row("ok/good").case_twin, lake.row("ok/vectors.lance").row_count) == ("ok.Good", 3)
    assert json.loads(lake.row("ok/files").columns)[0]["name"] == "id"


def test_refused_tables_come_when_the_location_is_allowed(lake: Lake) -> None:
    """A location that the catalog may not use is the outcome of its tables, which are sent again in the next run."""
    lake.add("sales", "a")
    lake.add("other", "b")
    lake.client.catalogs.alter(lake.into, updates={"allowed-locations": f"file://{lake.root}/sales"})
    lake.run()
    first, message = lake.outcomes(), lake.message("other.b")
    lake.client.catalogs.alter(lake.into, updates={"allowed-locations": f"file://{lake.root}"})
    lake.client.tables.drop(f"{lake.into}.sales.a")
    lake.run()

    assert first == {"sales.a": "registered", "other.b": "refused"}
    assert "location" in message
    assert lake.outcomes() == {"sales.a": "unchanged", "other.b": "registered"}
    assert not lake.client.tables.exists(f"{lake.into}.sales.a")


def test_resume_after_driver_kill_registers_each_table_once(lake: Lake, server: LiveServer) -> None:
    """The driver is killed between two batches. The resumed run says `registered` of all, also of those that the killed
    attempt had sent.
    """
    template = lake.add("t", "template")
    for number in range(TABLES):
        place_of(shutil.copytree(template / "metadata", lake.root / "many" / f"t{number:04}" / "metadata").parent)
    driver = Driver(server, "run", str(lake.file))
    run = str(next(driver.events())["run"])
    while not 0 < (count := len(tables_of(lake))) < TABLES:
        assert driver.process.poll() is None
        time.sleep(0.02)
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    while (seen := lake.client.runs.load(run)).state == "running":
        time.sleep(0.2)
    at_kill = len(tables_of(lake))
    ended = Driver(server, "resume", run).ended()

    assert seen.state == "lost"
    assert 0 < count <= at_kill < TABLES
    assert (ended["state"], ended["exit_code"]) == ("published", 0), ended
    assert lake.outcomes() == {"t.template": "registered"} | {
        f"many.t{number:04}": "registered" for number in range(TABLES)
    }
    names = tables_of(lake)
    assert (len(names), len(set(names))) == (TABLES, TABLES)


def tables_of(lake: Lake) -> list[str]:
    """Return the names of the registered tables of the namespace `many`."""
    try:
        return [each[-1] for each in lake.client.tables.list(f"{lake.into}.many")]
    except NotFoundError:
        return []


def place_of(directory: Path) -> None:
    """Make the metadata of a copied table that of its directory, with an identity of its own and without files."""
    for file in (directory / "metadata").glob("*.metadata.json"):
        document = json.loads(file.read_bytes())
        document |= {"location": f"file://{directory}", "table-uuid": str(uuid.uuid4()), "metadata-log": []}
        document |= {"current-snapshot-id": -1, "snapshots": [], "refs": {}, "snapshot-log": []}
        file.write_text(json.dumps(document))


@pytest.fixture
def metastore() -> Iterator[HiveServer]:
    """A Hive metastore of the test's own."""
    with hive_server(has_locks=True) as running:
        yield running


def test_metastore_is_harvested_like_a_directory(lake: Lake, metastore: HiveServer) -> None:
    """Tables of a metastore are registered by the files it names; a second run reads what has changed, brings it
    forward, and says what is gone.
    """
    uri = f"thrift://127.0.0.1:{metastore.bridge.port}"
    waits = {"lock-check-min-wait-time": "0.05", "lock-check-max-wait-time": "0.2"}
    lake.source = HiveCatalog("hms", uri=uri, warehouse=f"file://{lake.root}", **waits)
    lake.file.write_text(lake.file.read_text().replace(f"harvest: {lake.root}", f"harvest: '{uri}'"))
    for name in ("one", "two", "three"):
        lake.add("shop", name)

    lake.run()
    assert set(lake.states().values()) == {"new"}
    assert lake.outcomes() == {f"shop.{name}": "registered" for name in ("one", "two", "three")}

    lake.commit("shop", "two")
    lake.source.drop_table(("shop", "three"))
    lake.run()

    states = {path.rpartition("/")[2]: state for path, state in lake.states().items()}
    assert states == {"one": "unchanged", "two": "changed", "three": "vanished"}
    assert lake.outcomes() == {"shop.one": "unchanged", "shop.two": "brought-forward", "shop.three": "vanished"}
    here = lake.client.tables.load(f"{lake.into}.shop.two").metadata_location
    assert here == lake.source.load_table(("shop", "two")).metadata_location
