# SPDX-License-Identifier: Apache-2.0
"""Incremental steps of Lance tables: the checkpoint is published with the rows, and belongs to the version."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.checks import check
from limnos.pipeline.plan import plan
from limnos.pipeline.run.held_runs import discard
from tests.integration.live import LiveServer
from tests.pipeline.run.lance_place import FailingEngine, LancePlace
from tests.pipeline.run.test_kills import Driver

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KILLS = int(os.environ.get("LIMNOS_TEST_LANCE_KILLS", "2"))
PIPELINE = """
pipeline: SPACE
catalog: lance
parameters: {day: {type: int, default: 1}}
sources:
  events: {files: 'events/*.csv', schema: "id INT, x INT", options: {header: true}, malformed: keep}
steps:
  SPACE.added:
    sql: SELECT id, x FROM main.SPACE.source WHERE x < 1000
    write: append
    incremental: true
    expect: [{row: id % 10 <> 7, action: quarantine}, {rows: {min: 1}}]
    indexes: [{scalar: id}]
  SPACE.merged:
    sql: SELECT id % 100 AS id, id AS newest, x FROM main.SPACE.source
    write: {mode: merge, keys: id}
    incremental: true
  SPACE.loaded: {load: events, write: append, incremental: true}
  SPACE.counted: {catalog: main, sql: "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM lance.SPACE.added"}
"""


@pytest.fixture
def place(
    spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LancePlace]:
    """A place with an Iceberg table as a source, and a directory of files."""
    space = "i" + "".join(filter(str.isalnum, request.node.name))[-30:].lower()
    opened = LancePlace(spark, server, file=tmp_path / f"{space}.yaml", space=space)
    opened.write(PIPELINE)
    (tmp_path / "events").mkdir()
    spark.sql(f"CREATE TABLE main.{space}.source (id INT, x INT)")
    yield opened
    opened.client.close()
    opened.heartbeat_client.close()


def insert(place: LancePlace, first: int, *, rows: int, x: str = "1") -> None:
    """Add rows to the source, and a file with the same ids and a malformed row."""
    ids = f"SELECT CAST(id AS INT), CAST({x} AS INT) FROM range({first}, {first + rows})"
    place.spark.sql(f"INSERT INTO main.{place.space}.source {ids}")
    lines = [f"{number},1" for number in range(first, first + rows)]
    path = place.file.parent / "events" / f"{first}.csv"
    path.write_text("\n".join(["id,x", *lines, f"wrong {first},1", ""]))


def config(place: LancePlace, table: str) -> dict[str, str]:
    """Return the configuration of a table's newest version."""
    return dict(place.dataset(table).config())


def step_rows(place: LancePlace, run: str) -> dict[str, tuple[int | None, str | None]]:
    """Return the rows that each step wrote, and the reason of a full read."""
    return {each.name.rpartition(".")[2]: (each.rows, each.message) for each in place.client.runs.load(run).steps}


def assert_each_once(place: LancePlace, count: int, *, keys: int = 100) -> None:
    """The tables have the ids below `count`, each once, and the malformed rows of each file once."""
    good = [each for each in range(count) if each % 10 != 7]
    assert place.ids("added") == good
    assert place.ids("added__quarantine") == [each for each in range(count) if each % 10 == 7]
    assert place.ids("loaded") == list(range(count))
    files = len(list((place.file.parent / "events").iterdir()))
    assert place.dataset("loaded__malformed").count_rows() == files
    merged = place.dataset("merged").to_table(columns=["id", "newest"]).to_pylist()
    newest = {each % keys: each for each in range(count)}
    assert sorted((row["id"], row["newest"]) for row in merged) == sorted(newest.items())


def test_increments_are_read_once(place: LancePlace) -> None:
    """Runs append and merge new rows of a table and of files, and set bad ones aside; the checkpoint stays through a
    compaction. Without new rows nothing is written; new rows of which the query keeps none move the checkpoint alone.
    """
    insert(place, 0, rows=100)
    first = place.run()
    assert first.state == "published", first.message
    assert "nothing was published yet" in str(step_rows(place, first.run)["added"][1])
    insert(place, 100, rows=50)
    planned = plan(check(place.pipeline, spark=place.spark, client=place.client))
    assert "the rows after snapshot" in planned[0].reads[0].why
    second = place.run()
    assert second.state == "published", second.message
    assert step_rows(place, second.run)["added"] == (45, None)
    assert step_rows(place, second.run)["merged"] == (50, None)
    assert_each_once(place, 150)
    place.dataset("added").optimize.compact_files(target_rows_per_fragment=1000)
    versions = place.versions("added"), place.versions("merged"), place.versions("loaded")
    third = place.run()
    assert third.state == "published", third.message
    assert (place.versions("added"), place.versions("merged"), place.versions("loaded")) == versions
    place.spark.sql(f"INSERT INTO main.{place.space}.source VALUES (1, 2000)")
    before = json.loads(config(place, "added")["limnos.inputs"])

    fourth = place.run()

    assert fourth.state == "published", fourth.message
    assert step_rows(place, fourth.run)["added"] == (0, None)
    assert json.loads(config(place, "added")["limnos.inputs"]) != before
    insert(place, 150, rows=7)
    assert place.run().state == "published"
    assert place.dataset("added").stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    assert place.ids("added") == [each for each in range(157) if each % 10 != 7]


def test_restored_version_continues_at_its_own_checkpoint(place: LancePlace) -> None:
    """A table that was restored reads again what it has lost; rows of held and discarded runs are read by the next one;
    a table that was dropped, a changed query and `--full` are read whole.
    """
    insert(place, 0, rows=30)
    assert place.run().state == "published"
    first_version = place.versions("added")[-1]
    insert(place, 30, rows=20)
    assert place.run().state == "published"
    place.client.lance.dataset(f"lance.{place.space}.added", version=first_version).restore()
    assert max(place.ids("added")) == 29
    staged = place.run(hold=True)
    assert staged.state == "held", staged.message
    discard(place.client, staged.run)
    restored = place.run()
    assert restored.state == "published", restored.message
    assert step_rows(place, restored.run)["added"] == (18, None)
    assert place.ids("added") == [each for each in range(50) if each % 10 != 7]

    place.write(PIPELINE.replace("x < 1000", "id < 40"))
    changed = place.run()
    assert "the query changed" in str(step_rows(place, changed.run)["added"][1])
    assert place.ids("added") == [each for each in range(40) if each % 10 != 7]
    place.client.lance.drop(f"lance.{place.space}.added")
    again = place.run(full=True)
    assert again.state == "published", again.message
    assert place.ids("added") == [each for each in range(40) if each % 10 != 7]


def test_steps_without_increments_leave_no_checkpoint(place: LancePlace) -> None:
    """A table that was written by a step that is no longer incremental has no checkpoint, so that a later incremental
    step reads everything.
    """
    insert(place, 0, rows=10)
    assert place.run().state == "published"
    plain = PIPELINE.replace("    write: append\n    incremental: true\n", "    write: replace\n")
    place.write(plain)
    assert place.run().state == "published"
    assert "limnos.inputs" not in config(place, "added")
    place.write(PIPELINE)

    ended = place.run()

    assert "nothing was published yet" in str(step_rows(place, ended.run)["added"][1])
    assert place.ids("added") == [each for each in range(10) if each % 10 != 7]


def test_another_client_during_a_run_costs_no_row(place: LancePlace) -> None:
    """A version that another client restores while a run is in progress makes the step run again at its checkpoint."""
    insert(place, 0, rows=20)
    assert place.run().state == "published"
    first_version = place.versions("added")[-1]
    insert(place, 20, rows=20)
    assert place.run().state == "published"
    insert(place, 40, rows=20)

    def restore() -> None:
        place.client.lance.dataset(f"lance.{place.space}.added", version=first_version).restore()

    ended = place.run(engine=FailingEngine(place.spark, after="added", call=restore))

    assert ended.state == "published", ended.message
    assert place.ids("added") == [each for each in range(60) if each % 10 != 7]


@pytest.mark.parametrize("number", range(KILLS))
def test_killed_drivers_read_each_row_once(place: LancePlace, number: int) -> None:
    """Drivers are killed at random moments, with Java still writing; runs are resumed or started anew, while the source
    grows. At the end each row is in the tables once.
    """
    chance = random.Random(314 + number)
    place.write(PIPELINE.replace("id % 100", "id % 1000"))  # a run may read all rows at once, each with its own key
    insert(place, 0, rows=100)
    if number % 2:
        assert place.run().state == "published"
        insert(place, 100, rows=100)
    count = 100 * (1 + number % 2)
    driver, run = Driver(place.server, "run", str(place.file)), ""
    waited_for = chance.choice(["running", "done"])
    for event in driver.events():
        run = str(event["run"])
        if event["state"] == waited_for:
            break
    time.sleep(chance.uniform(0, 4))
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    seen = place.client.runs.load(run)
    while seen.state == "running":
        time.sleep(0.2)
        seen = place.client.runs.load(run)
    is_resumed = seen.state == "lost" and chance.random() < 0.5
    print(number, waited_for, seen.state, is_resumed)
    if is_resumed:
        ended = Driver(place.server, "resume", run).ended()
        assert (ended["state"], ended["exit_code"]) == ("published", 0), ended
        assert_each_once(place, count, keys=1000)
    insert(place, count, rows=50)
    ended = Driver(place.server, "run", str(place.file)).ended()

    assert (ended["state"], ended["exit_code"]) == ("published", 0), ended
    assert_each_once(place, count + 50, keys=1000)
    row = place.spark.table(f"main.{place.space}.counted").collect()[0]
    assert row["n"] == row["ids"] == len(place.ids("added"))


def test_streams_are_read_once(place: LancePlace) -> None:
    """A Lance table of a stream has the progress of its own version, so each file is appended once."""
    place.write("""
pipeline: SPACE
catalog: lance
parameters: {day: {type: int, default: 1}}
sources: {arriving: {stream: {files: events/, format: csv, schema: "id INT, x INT"}}}
steps: {SPACE.streamed: {load: arriving, write: append}}
""")
    (place.file.parent / "events" / "1.csv").write_text("1,1\n2,1\n")
    assert place.run().state == "published"
    (place.file.parent / "events" / "2.csv").write_text("3,1\n")
    assert place.run().state == "published"
    again = place.run()

    assert again.state == "published", again.message
    assert place.ids("streamed") == [1, 2, 3]
