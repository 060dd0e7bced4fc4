# SPDX-License-Identifier: Apache-2.0
"""Runs that replace partitions of Lance tables: the tables have the rows of Iceberg tables with the same steps."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.checks import check
from limnos.pipeline.run.refs import heads_of
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

PARTITIONS = ("kind", "[days(at), KIND]", "bucket(3, id)", "[months(at), 'truncate(2, kind)']", "hours(at)", "place.x")
RUNS = 3
HEAD = """
pipeline: SPACE
catalog: main
parameters: {day: {type: int, default: 1}}
sources: {rows: {files: rows.csv, schema: "id INT, kind STRING, at TIMESTAMP, x INT", options: {header: true}}}
steps:
"""
STEP = """
  SPACE.NAME:
    catalog: CATALOG
    sql: SELECT id, kind, at, named_struct('x', x) AS place, :day AS run FROM rows
    write: partitions
    partition: PARTITION
    expect: [{row: id >= 0, action: quarantine}]
"""


@pytest.fixture
def place(
    spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LancePlace]:
    """A place with an empty namespace."""
    space = "p" + "".join(filter(str.isalnum, request.node.name))[-30:].lower()
    opened = LancePlace(spark, server, file=tmp_path / f"{space}.yaml", space=space)
    yield opened
    opened.client.close()
    opened.heartbeat_client.close()


def write_rows(place: LancePlace, rows: list[tuple[object, ...]]) -> None:
    """Write the file from which the steps read. An empty text is a NULL."""
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    (place.file.parent / "rows.csv").write_text("\n".join(["id,kind,at,x", *lines, ""]))


def iceberg_rows(place: LancePlace, table: str) -> list[str]:
    """Return the rows of an Iceberg table."""
    columns = "id", "kind", "CAST(CAST(at AS DOUBLE) AS BIGINT) AS at", "place.x AS x", "run"
    return sorted(
        str(tuple(row)) for row in place.spark.table(f"main.{place.space}.{table}").selectExpr(*columns).collect()
    )


def lance_rows(place: LancePlace, table: str) -> list[str]:
    """Return the rows of a Lance table in the same form."""
    return sorted(
        str((row["id"], row["kind"], row["at"] and int(row["at"].timestamp()), row["place"]["x"], row["run"]))
        for row in place.dataset(table).to_table().to_pylist()
    )


def test_lance_tables_have_rows_of_iceberg_tables(place: LancePlace) -> None:
    """Over several runs of random rows, a Lance table and an Iceberg table have the same rows for each kind of
    partition: values, NULLs, times, buckets, beginnings of texts, nested fields, names in another case. Some rows are
    replaced, and some stay.
    """
    steps = [
        STEP.replace("NAME", f"{prefix}{number}").replace("CATALOG", catalog).replace("PARTITION", partition)
        for number, partition in enumerate(PARTITIONS)
        for prefix, catalog in (("i", "main"), ("l", "lance"))
    ]
    place.write(HEAD + "".join(steps))
    assert check(place.pipeline, client=place.client).problems == ()
    chance = random.Random(314)
    runs: dict[int, set[int]] = {}
    for day in range(1, RUNS + 1):
        kinds = [None, "a", "abc", "abd", "b"] if day == 1 else chance.sample([None, "a", "abc", "b", "new"], 2)
        times = [None, *(f"2026-0{month}-01T{hour}:30:00Z" for month in (1, 2) for hour in ("00", "01", "23"))]
        chosen = times if day == 1 else chance.sample(times, 2)
        write_rows(
            place,
            [
                (number - 1, chance.choice(kinds), chance.choice(chosen), chance.choice([None, 1, 2, 3]))
                for number in range(60 if day == 1 else 4)
            ],
        )

        ended = place.run(day=day)

        assert ended.state == "published", ended.message
        for number, partition in enumerate(PARTITIONS):
            rows = lance_rows(place, f"l{number}")
            assert rows == iceberg_rows(place, f"i{number}"), (day, partition)
            runs[number] = {int(row.rpartition(" ")[2][:-1]) for row in rows}
        assert day in set.intersection(*runs.values())
        assert 1 in runs[0] & runs[1]
    assert place.versions("l0") == [1, 2, 3]


def test_failed_and_changed_replacements_are_made_once(place: LancePlace) -> None:
    """A run that fails after the step shows nothing, and its resume publishes the rows once. Values get the types of
    the table's columns, and their names in the query may differ by case. Without rows nothing changes.
    """
    text = HEAD + STEP.replace("NAME", "l").replace("CATALOG", "lance").replace("PARTITION", "kind")
    last = "  SPACE.last: {sql: SELECT 1 AS i, after: SPACE.l, expect: [i > 0]}\n"
    place.write(text + last)
    write_rows(place, [(1, "a", None, 1), (2, "b", None, 1), (3, None, None, 1)])
    assert place.run().state == "published"
    write_rows(place, [(4, "b", None, 1), (5, None, None, 1)])
    place.write(text.replace("SELECT id", "SELECT CAST(id AS SMALLINT) AS ID") + last.replace("i > 0", "i < 0"))
    failed = place.run(day=2)
    assert failed.state == "failed", failed.message
    assert place.ids("l") == [1, 2, 3]

    resumed = place.resume(failed.run)
    assert resumed.state == "failed", resumed.message
    place.write(text.replace("SELECT id", "SELECT CAST(id AS SMALLINT) AS ID") + last)
    resumed = place.resume(failed.run)

    assert resumed.state == "published", resumed.message
    assert place.ids("l") == [1, 4, 5]
    assert place.versions("l") == [1, 2]
    write_rows(place, [])
    assert place.run(day=3).state == "published"
    assert place.versions("l") == [1, 2]


def test_killed_driver_replaces_partitions_once(place: LancePlace) -> None:
    """After a kill at a random moment, with Java still writing, the resume replaces the partitions as an
    undisturbed run would.
    """
    chance = random.Random(3)
    place.write(HEAD + STEP.replace("NAME", "l").replace("CATALOG", "lance").replace("PARTITION", "bucket(4, id)"))
    write_rows(place, [(number, "a", None, 1) for number in range(2000)])
    assert place.run().state == "published"
    write_rows(place, [(number, "b", None, 2) for number in range(2000)])
    driver, run = Driver(place.server, "run", str(place.file)), ""
    for event in driver.events():
        run = str(event["run"])
        if event["state"] == "running":
            break
    time.sleep(chance.uniform(0, 3))
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    seen = place.client.runs.load(run)
    while seen.state == "running":
        time.sleep(0.2)
        seen = place.client.runs.load(run)

    if seen.state == "lost":
        assert place.versions("l") == [1]
        ended = Driver(place.server, "resume", run).ended()
        assert (ended["state"], ended["exit_code"]) == ("published", 0), ended

    rows = place.dataset("l").to_table(columns=["id", "kind"]).to_pylist()
    assert sorted((row["id"], row["kind"]) for row in rows) == [(number, "b") for number in range(2000)]


def test_other_writer_during_a_replacement_is_noticed(place: LancePlace) -> None:
    """A version that another client commits during the run makes the step run again on it."""
    place.write(HEAD + STEP.replace("NAME", "l").replace("CATALOG", "lance").replace("PARTITION", "kind"))
    write_rows(place, [(1, "a", None, 1), (2, "b", None, 1)])
    assert place.run().state == "published"
    write_rows(place, [(3, "b", None, 1)])

    def delete() -> None:
        place.dataset("l").delete("kind = 'a'")

    ended = place.run(engine=FailingEngine(place.spark, after="l", call=delete), day=2)

    assert ended.state == "published", ended.message
    assert place.ids("l") == [3]


WRONG = {
    "partition: [kind, nix]": "`partition` names 'nix', which the query does not return. It returns id, kind, at, place",
    "partition: place": "`partition` names 'place', which is struct<",
    "partition: days(kind)": "`partition` days(kind) does not fit the types of its columns",
}


def test_wrong_partitions_are_answered_before_anything_is_written(place: LancePlace) -> None:
    """Columns that the query lacks, compound values, and transforms of other types fail the step with the reason, and
    leave no table. A missing `partition`, or one with another write mode, is found by the check.
    """
    text = HEAD + STEP.replace("NAME", "l").replace("CATALOG", "lance")
    write_rows(place, [(1, "a", None, 1)])
    for partition, words in WRONG.items():
        place.write(text.replace("partition: PARTITION", partition))
        ended = place.run()
        assert ended.state == "failed", (partition, ended.message)
        assert words in ended.message, (partition, ended.message)
        assert heads_of(place.client, ("lance", place.space, "l")) is None

    place.write(text.replace("    partition: PARTITION\n", ""))
    (missing,) = [each.message for each in check(place.pipeline, client=place.client).problems]
    place.write(text.replace("PARTITION", "kind").replace("write: partitions", "write: append"))
    (needless,) = [each.message for each in check(place.pipeline, client=place.client).problems]

    assert missing.endswith("replaces partitions, and none are declared: write 'partition', as partition: [day]")
    assert "leave 'partition' out, or write 'write: partitions', which replaces the rows of the same" in needless
