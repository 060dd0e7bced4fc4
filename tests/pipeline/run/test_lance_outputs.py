# SPDX-License-Identifier: Apache-2.0
"""Runs whose outputs are Iceberg tables and Lance tables, published by one commit."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from limnos.client import Client, NotFoundError
from limnos.pipeline.checks import check
from limnos.pipeline.run.held_runs import discard, publish_held
from limnos.pipeline.run.refs import heads_of
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
catalog: main
parameters: {day: {type: int, default: 1}}
steps:
  SPACE.docs:
    sql: SELECT id, concat('text ', id + :day) AS text FROM range(0, 1000, 1, 3)
  SPACE.vectors:
    catalog: lance
    sql: SELECT id, text, array(CAST(id AS FLOAT), 1.0F) AS vector FROM SPACE.docs
    vectors: {vector: 2}
    expect:
      - {row: id % 100 <> 7, action: quarantine}
      - {unique: id}
      - {rows: {min: 1}}
      - {no_fewer_rows: true}
  SPACE.log:
    catalog: lance
    sql: SELECT id, :day AS day FROM SPACE.docs WHERE id < 10 * :day
    write: append
    expect: [day > 0, {unique: [id, day]}]
"""


@pytest.fixture
def place(
    spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LancePlace]:
    """A place for the test."""
    space = "l" + "".join(filter(str.isalnum, request.node.name))[-30:].lower()
    opened = LancePlace(spark, server, file=tmp_path / f"{space}.yaml", space=space)
    opened.write(PIPELINE)
    yield opened
    opened.client.close()
    opened.heartbeat_client.close()


@contextmanager
def watched(place: LancePlace) -> Iterator[list[str]]:
    """Read both tables in turns, as two readers do: a read that finds one changed must find the other changed next."""
    broken: list[str] = []
    over = threading.Event()

    def look() -> None:
        with Client(place.server.uri, token=place.server.token) as client:
            tables = (("main", place.space, "docs"), ("lance", place.space, "vectors"))
            before = [heads_of(client, table) for table in tables]
            mains = [None if each is None else each.main for each in before]
            for order in itertools.cycle(((0, 1), (1, 0))):
                now = list(mains)
                for number in order:
                    heads = heads_of(client, tables[number])
                    now[number] = None if heads is None else heads.main
                if now[order[0]] != mains[order[0]] and now[order[1]] == mains[order[1]]:
                    broken.append(f"{order}: {mains} then {now}")
                mains = now if (now[0] != mains[0]) == (now[1] != mains[1]) else mains
                if over.wait(0.01):
                    return

    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    try:
        yield broken
    finally:
        over.set()
        reader.join(timeout=30)
        assert not reader.is_alive()


def test_lance_and_iceberg_tables_are_published_together(place: LancePlace) -> None:
    """Two runs replace and append: rows, quarantine, findings, vectors and lineage are as for Iceberg tables."""
    checked = check(place.pipeline, spark=place.spark, client=place.client)
    assert checked.problems == ()
    with watched(place) as broken:
        first = place.run()
        assert first.state == "published", first.message
        quarantined = [*range(7, 1000, 100)]
        assert place.ids("vectors") == [each for each in range(1000) if each not in quarantined]
        assert place.ids("vectors__quarantine") == quarantined
        second = place.run(day=2)
        assert second.state == "published", second.message

    assert broken == []
    assert place.dataset("vectors").schema.field("vector").type.list_size == 2
    assert place.versions("vectors") == [1, 2]
    texts = place.dataset("vectors").to_table(filter="id = 5")["text"].to_pylist()
    assert texts == ["text 7"]
    assert place.ids("log") == sorted([*range(10), *range(20)])
    assert len(place.ids("vectors__quarantine")) == 20
    findings = {(each.step, each.rule): each for each in place.client.runs.load(second.run).findings}
    assert findings[f"{place.space}.vectors", "id % 100 <> 7"].broken == 10
    assert findings[f"{place.space}.log", "unique id day"].held
    lineage = place.client.lineage.up(f"lance.{place.space}.vectors", column="vector")
    assert ("main", place.space, "docs") in [each.path for each in lineage.nodes]


def test_held_run_shows_nothing_until_it_is_published(place: LancePlace) -> None:
    """A held run has staged versions that no reader sees; discarding drops the new tables, publishing shows all."""
    held_run = place.run(hold=True)
    assert held_run.state == "held", held_run.message
    assert place.versions("vectors") == []
    with pytest.raises(NotFoundError):
        place.dataset("vectors")
    discard(place.client, held_run.run)
    assert heads_of(place.client, ("lance", place.space, "vectors")) is None

    held_run = place.run(hold=True)
    assert publish_held(place.client, held_run.run).state == "published"

    assert len(place.ids("vectors")) == 990


def test_failed_run_is_resumed_and_concurrent_writers_lose_nothing(place: LancePlace) -> None:
    """A run whose last step fails shows nothing, and its resume publishes each row once. A version that another client
    commits during a run makes the step run again, on that version.
    """
    text = PIPELINE.replace("day > 0", "day > :day - 2 AND id < 5")
    place.write(text)
    failed = place.run()
    assert failed.state == "failed", failed.message
    assert heads_of(place.client, ("lance", place.space, "vectors")) is None
    place.write(PIPELINE)
    resumed = place.resume(failed.run)
    assert resumed.state == "published", resumed.message
    assert place.ids("log") == [*range(10)]
    assert len(place.ids("vectors")) == 990

    def meddle() -> None:
        lance.write_dataset(
            pa.table({"id": pa.array([99], pa.int32()), "day": pa.array([1], pa.int32())}).cast(
                place.dataset("log").schema
            ),
            namespace_client=place.client.lance.namespace(),
            table_id=["lance", place.space, "log"],
            mode="append",
        )

    ended = place.run(engine=FailingEngine(place.spark, after="log", call=meddle), day=2)

    assert ended.state == "published", ended.message
    assert len(place.ids("log")) == 10 + 1 + 20


def test_malformed_rows_of_files_have_a_lance_table(place: LancePlace) -> None:
    """A file loaded into a Lance table has its malformed rows beside it, published by the same commit."""
    (place.file.parent / "rows.csv").write_text("id,text\n1,a\nx,b\n3,c\n")
    place.write("""
pipeline: SPACE
catalog: lance
parameters: {day: {type: int, default: 1}}
sources:
  rows: {files: rows.csv, schema: "id INT, text STRING", options: {header: true}, malformed: keep}
steps:
  SPACE.rows: {load: rows, write: append}
""")

    ended = place.run()

    assert ended.state == "published", ended.message
    assert place.ids("rows") == [1, 3]
    assert place.dataset("rows__malformed").count_rows() == 1


def test_check_refuses_what_lance_tables_do_not_have(place: LancePlace, tmp_path: Path) -> None:
    """Tables whose versions the storage keeps, histories, and partitions that are not replaced are refused."""
    place.client.namespaces.create(f"lance.{place.space}")
    place.client.lance.declare(f"lance.{place.space}.theirs")
    place.write("""
pipeline: SPACE
catalog: main
parameters: {day: {type: int, default: 1}}
steps:
  SPACE.theirs: {catalog: lance, sql: SELECT 1 AS id}
  SPACE.parts: {catalog: lance, sql: SELECT 1 AS id, write: {mode: history, keys: id}, partition: id}
  SPACE.plain: {sql: SELECT 1 AS id, vectors: {id: 2}}
""")

    problems = [each.message for each in check(place.pipeline, client=place.client).problems]

    expected = ("whose versions its storage keeps", "'write: history'", "'partition'")
    for words in (*expected, "'vectors' is for Lance tables"):
        assert any(words in each for each in problems), (words, problems)
    place.write(
        "pipeline: SPACE\ncatalog: main\nparameters: {day: int}\nsteps: {SPACE.theirs: {catalog: lance, sql: SELECT 1"
        " AS id}}\n"
    )
    ended = place.run()
    assert ended.state == "failed"
    assert "whose versions its storage keeps" in ended.message


EMBEDDINGS = """
import os

import pyarrow as pa



def note(text):
    with open("CALLS_FILE", "a") as file:
        file.write(text + "\\n")


def load():
    note(f"model {os.getpid()}")
    return 2.0


def embed(batch, model):
    texts = batch.column("text").to_pylist()
    note(f"rows {len(texts)}")
    if any("bad" in each for each in texts):
        raise ValueError("a bad text")
    return [[model * len(each), 1.0, 0.0, 0.0] for each in texts]
"""
EMBEDDING_PIPELINE = """
pipeline: SPACE
catalog: main
parameters: {day: {type: int, default: 1}}
steps:
  SPACE.docs:
    sql: |
      SELECT id, CASE WHEN id % 97 = 96 THEN concat('bad ', id) ELSE concat('text ', id % 400) END AS text
      FROM range(0, 400 + 200 * :day, 1, 2)
  SPACE.vectors:
    catalog: lance
    sql: SELECT id, text FROM SPACE.docs
    embed: {function: 'MODULE:embed', model: 'MODULE:load', columns: text, dimension: 4, batch: 50, retries: 1}
    indexes: [{vector: embedding, metric: cosine}, {scalar: id}, {text: text}]
    expect: [{unique: id}, embedding_hash IS NOT NULL]
"""


def test_rows_are_embedded_once_and_indexed(place: LancePlace) -> None:
    """Equal inputs are embedded once, also over runs; rows that fail are in quarantine with their error, and fail
    alone; each worker loads the model once; the indexes have all rows.
    """
    calls, module = place.file.parent / "calls.txt", f"embed_{place.space}"
    (place.file.parent / f"{module}.py").write_text(EMBEDDINGS.replace("CALLS_FILE", str(calls)))
    place.write(EMBEDDING_PIPELINE.replace("MODULE", module))
    checked = check(place.pipeline, spark=place.spark, client=place.client)
    assert checked.problems == ()

    first = place.run()

    assert first.state == "published", first.message
    bad = [*range(96, 600, 97)]
    assert place.ids("vectors") == [each for each in range(600) if each not in bad]
    rows = place.dataset("vectors__quarantine").to_table().to_pylist()
    assert sorted(each["id"] for each in rows) == bad
    assert {each["embedding_error"] for each in rows} == {"ValueError: a bad text"}
    notes = calls.read_text().split("\n")
    models = [each for each in notes if each.startswith("model")]
    assert len(models) == len({*models})
    row = place.dataset("vectors").to_table(filter="id = 399").to_pylist()[0]
    assert row["embedding"] == [2.0 * len("text 399"), 1.0, 0.0, 0.0]
    indexes = {each.name: each.index_type for each in place.dataset("vectors").describe_indices()}
    assert indexes == {"embedding_idx": "IVF_PQ", "id_idx": "BTree", "text_text_idx": "Inverted"}
    assert place.versions("vectors") == [1, 2, 3, 4]
    calls.unlink()

    second = place.run(day=2)

    assert second.state == "published", second.message
    assert len(place.ids("vectors")) == 800 - 8
    # New are the bad rows alone: all good texts were embedded before.
    notes = calls.read_text().split("\n")
    assert sum(int(each.removeprefix("rows ")) == 1 for each in notes if each.startswith("rows")) >= 8
    assert sum(int(each.removeprefix("rows ")) for each in notes if each.startswith("rows")) < 100
    dataset = place.dataset("vectors")
    assert all(dataset.stats.index_stats(name)["num_unindexed_rows"] == 0 for name in indexes)
