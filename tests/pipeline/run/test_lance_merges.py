# SPDX-License-Identifier: Apache-2.0
"""Runs that merge rows into Lance tables: the table has the rows of a plain computation, and unchanged rows stay."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.engine.differences import difference
from limnos.pipeline.run.held_runs import branches_of, publish_held
from tests.integration.live import LiveServer
from tests.pipeline.run.lance_place import FailingEngine, LancePlace

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PIPELINE = """
pipeline: SPACE
catalog: lance
parameters: {day: {type: int, default: 1}}
sources: {changes: {files: changes.csv, schema: "id INT, x INT, op STRING", options: {header: true}}}
steps:
  SPACE.merged:
    sql: SELECT id, x, op, array(CAST(x AS FLOAT), 1.0F) AS vector FROM changes
    vectors: {vector: 2}
    write: {mode: merge, keys: [id], delete_when: "op = 'D'"}
    indexes: [{scalar: id}]
    expect: [{row: x >= 0, action: quarantine}, {unique: id}, {rows: {min: 1}}]
  SPACE.mirrored:
    sql: SELECT id, x FROM changes WHERE op <> 'D'
    write: {mode: merge, keys: [id], delete_missing: true}
    expect: [{row: x >= 0, action: quarantine}]
  SPACE.counted:
    catalog: main
    sql: SELECT id, x, vector[0] AS first FROM lance.SPACE.merged
"""
IDS = 12
RUNS = 4


@pytest.fixture
def place(
    spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LancePlace]:
    """A place with an empty namespace."""
    space = "m" + "".join(filter(str.isalnum, request.node.name))[-30:].lower()
    opened = LancePlace(spark, server, file=tmp_path / f"{space}.yaml", space=space)
    opened.write(PIPELINE)
    yield opened
    opened.client.close()
    opened.heartbeat_client.close()


def write_changes(place: LancePlace, rows: list[tuple[int, int, str]]) -> None:
    """Write the file from which the steps read."""
    text = "".join(f"{number},{x},{op}\n" for number, x, op in rows)
    (place.file.parent / "changes.csv").write_text(f"id,x,op\n{text}")


def pairs(place: LancePlace, table: str) -> dict[int, int]:
    """Return the published values by key; a repeated key fails."""
    rows = place.dataset(table).to_table(columns=["id", "x"]).to_pylist()
    assert len(rows) == len({row["id"] for row in rows})
    return {row["id"]: row["x"] for row in rows}


def test_merged_tables_have_rows_of_plain_computation(place: LancePlace) -> None:
    """Over several runs of inserted, changed, deleted, missing, equal and bad rows, both tables have the rows that a
    plain computation has, an Iceberg step of the same run reads them, and the index has all rows.
    """
    chance = random.Random(310)
    merged: dict[int, int] = {}
    mirrored: dict[int, int] = {}
    for day in range(1, RUNS + 1):
        ids = sorted(chance.sample(range(IDS), 8))
        ops = ["N" if day == 1 else chance.choice("NNND") for _ in ids]
        rows = [(each, chance.randrange(-1 if day > 1 else 0, 3), op) for each, op in zip(ids, ops, strict=True)]
        write_changes(place, rows)
        for number, x, op in rows:
            if x >= 0 and op == "D":
                merged.pop(number, None)
            elif x >= 0:
                merged[number] = x
        present = {number: x for number, x, op in rows if op != "D"}
        retained = {number: x for number, x in mirrored.items() if present.get(number) == -1}
        mirrored = retained | {number: x for number, x in present.items() if x >= 0}

        ended = place.run(day=day)

        assert ended.state == "published", ended.message
        assert pairs(place, "merged") == merged, f"day {day}"
        assert pairs(place, "mirrored") == mirrored, f"day {day}"
        table = place.spark.table(f"main.{place.space}.counted")
        assert {row["id"]: row["first"] for row in table.collect()} == {each: float(x) for each, x in merged.items()}
        dataset = place.dataset("merged")
        assert dataset.stats.index_stats("id_idx")["num_unindexed_rows"] == 0
        assert dataset.to_table(filter="id = 3").num_rows == (3 in merged)


def test_equal_rows_are_not_written_again(place: LancePlace) -> None:
    """A merge of equal rows stages no version; one of a changed row writes this row and leaves the other fragments."""
    write_changes(place, [(each, 1, "N") for each in range(IDS)])
    assert place.run().state == "published"
    before = place.dataset("mirrored")
    again = place.run()
    assert again.state == "published", again.message
    assert place.versions("mirrored") == [1]
    write_changes(place, [(each, 2 if each == 5 else 1, "N") for each in range(IDS)])

    third = place.run(hold=True)

    recorded = place.client.runs.load(third.run)
    branch = next(each for each in branches_of(recorded) if each.table[-1] == "mirrored")
    compared = difference(place.spark, branch, keys=("id",), rows=5)
    assert (compared.added, compared.removed, compared.changed) == (0, 0, 1)
    assert sorted(str(each["side"]) for each in compared.sample) == ["added", "removed"]
    assert place.versions("mirrored") == [1]
    assert publish_held(place.client, third.run).state == "published"
    steps = {each.name.rpartition(".")[2]: each for each in place.client.runs.load(third.run).steps}
    assert steps["mirrored"].rows == 1
    after = place.dataset("mirrored")
    known = {file.path for each in before.get_fragments() for file in each.metadata.files}
    assert known <= {file.path for each in after.get_fragments() for file in each.metadata.files}
    assert pairs(place, "mirrored") == {each: 2 if each == 5 else 1 for each in range(IDS)}


def test_repeated_keys_are_refused_before_writing(place: LancePlace) -> None:
    """Two rows of a key fail the step before anything is written. A version that another client commits during the run
    makes the step run again on it, so a killed and repeated merge has no row twice.
    """
    write_changes(place, [(1, 1, "N"), (1, 2, "N")])
    refused = place.run()
    assert refused.state == "failed"
    assert "share their key (id) with another row: id=1 (2 rows)" in refused.message
    write_changes(place, [(each, 1, "N") for each in range(IDS)])
    assert place.run().state == "published"
    write_changes(place, [(each, 2, "N") for each in range(IDS + 1)])

    def meddle() -> None:
        schema = place.dataset("mirrored").schema
        rows = pa.table({"id": [IDS, 100], "x": [7, 8]}).cast(schema)
        lance.write_dataset(
            rows,
            namespace_client=place.client.lance.namespace(),
            table_id=["lance", place.space, "mirrored"],
            mode="append",
        )

    ended = place.run(engine=FailingEngine(place.spark, after="mirrored", call=meddle))

    assert ended.state == "published", ended.message
    assert pairs(place, "mirrored") == dict.fromkeys(range(IDS + 1), 2)
    assert pairs(place, "merged") == dict.fromkeys(range(IDS + 1), 2)
