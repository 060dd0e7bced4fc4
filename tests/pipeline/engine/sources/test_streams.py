# SPDX-License-Identifier: Apache-2.0
"""Streams as sources: each read continues after the last published one, and a discarded run consumes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.sources import SourceRead, SourceReadRequest, frame_of
from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.outcomes import ReadPin

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Streams:
    """Streams over a directory of files and over tables."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = path
        (path / "in").mkdir()

    def add(self, name: str, text: str) -> None:
        """Write a file."""
        (self.path / "in" / name).write_text(text)

    def files(
        self, before: ReadPin | None = None, *, schema: str | None = "id INT, v STRING", pinned: ReadPin | None = None
    ) -> SourceRead:
        """Read the new files, one file per batch."""
        options = {"header": "true", "maxFilesPerTrigger": "1"}
        kind = Files(path="in", format="csv", schema=schema, options=options, malformed=MalformedRowPolicy.COUNT)
        return self.open(Stream(files=kind), before=before)

    def open(self, stream: Stream, *, before: ReadPin | None = None) -> SourceRead:
        """Read the new rows of a stream."""
        source = DeclaredSource(name="arriving", kind=stream, at=SourcePosition("p.yaml", 6, 2))
        return frame_of(SourceReadRequest(spark=self.spark, source=source, directory=self.path, before=before))


@pytest.fixture
def streams(here: SparkSession, tmp_path: Path) -> Streams:
    """Streams of the test's own."""
    return Streams(here, tmp_path)


def rows(read: SourceRead) -> list[tuple[object, ...]]:
    """Return the rows, sorted, and release the cached data."""
    sorted_rows = sorted((tuple(row) for row in read.frame.collect()), key=str)
    read.release()
    return sorted_rows


def test_run_continues_from_last_published_run(streams: Streams) -> None:
    """A run reads what was added since the last published run; a discarded run consumes nothing."""
    streams.add("a.csv", "id,v\n1,x\n")
    streams.add("b.csv", "id,v\n2,y\n")
    first = streams.files()
    read_rows = [rows(first)]
    streams.add("c.csv", "id,v\n3,z\n")
    read_rows.append(rows(streams.files(first.pin)))  # discarded: its pin is not continued
    third = streams.files(first.pin)
    read_rows.append(rows(third))

    assert read_rows == [[(1, "x"), (2, "y")], [(3, "z")], [(3, "z")]]
    assert rows(streams.files(third.pin)) == []
    assert rows(streams.files()) == [(1, "x"), (2, "y"), (3, "z")]
    assert (first.pin.whole_because, third.pin.whole_because) == ("nothing was read before", None)


def test_stream_rows_remain_readable_after_its_end(streams: Streams) -> None:
    """The DataFrame can be read again and joined after the stream has ended and its files are deleted."""
    streams.add("a.csv", "id,v\n1,x\n2,y\n")

    read = streams.files()
    shutil.rmtree(streams.path / "in")

    assert read.frame.alias("a").join(read.frame.alias("b"), "id").count() == 2
    assert read.frame.where("id = 2").count() == 1


def test_malformed_stream_rows_are_counted_and_stored(streams: Streams) -> None:
    """Malformed rows are counted over all batches and stored with their file."""
    streams.add("a.csv", "id,v\n1,x\nbad,y\n")
    streams.add("b.csv", "id,v\n3\n")

    read = streams.files()
    assert read.malformed is not None
    (finding,) = read.malformed.findings()

    assert [tuple(row) for row in read.frame.collect()] == [(1, "x")]
    assert (finding.broken, finding.checked) == (2, 3)
    assert sorted(Path(row._path).name for row in read.malformed.rows.collect()) == ["a.csv", "b.csv"]


def test_inferred_schema_is_stored_in_the_pin(streams: Streams) -> None:
    """The schema that the first read inferred is stored in the pin and not inferred again."""
    streams.add("a.csv", "id,v\n1,x\n")
    first = streams.files(schema=None)
    streams.add("b.csv", "id,v\nword,y\n")
    second = streams.files(first.pin, schema=None)

    assert dict(first.frame.dtypes) == {"id": "int", "v": "string"}
    assert dict(second.frame.dtypes) == dict(first.frame.dtypes)
    assert second.malformed is not None
    assert second.malformed.findings()[0].broken == 1


def test_appends_to_iceberg_table_are_read_once(streams: Streams, corner: Parts) -> None:
    """Appends to an Iceberg table are read once; after a rewrite the error says what to declare instead."""
    table = (*corner, "t")
    sql = streams.spark.sql
    sql(f"CREATE TABLE {quote_identifier(table)} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO {quote_identifier(table)} VALUES (1)")
    first = streams.open(Stream(table=table))
    sql(f"INSERT INTO {quote_identifier(table)} VALUES (2)")
    second = streams.open(Stream(table=table), before=first.pin)
    sql(f"INSERT OVERWRITE {quote_identifier(table)} VALUES (3)")

    assert (rows(first), rows(second)) == ([(1,)], [(2,)])
    assert second.pin.table == table
    with pytest.raises(SourceFailed, match="read the table itself in an `incremental` step"):
        streams.open(Stream(table=table), before=second.pin)


def test_old_checkpoints_are_deleted(streams: Streams) -> None:
    """Checkpoints that no run continues are deleted when they are older than the branches of runs can be."""
    streams.add("a.csv", "id,v\n1,x\n")
    first = streams.files()
    folder = streams.path / ".limnos" / "streams" / "arriving"
    (folder / "old").mkdir()
    (folder / "recent").mkdir()
    import os

    os.utime(folder / "old", (1, 1))
    second = streams.files(first.pin)

    names = {json.loads(read.pin.fingerprint or "")["checkpoint"] for read in (first, second)}
    assert {path.name for path in folder.iterdir()} == names | {"recent"}


def test_unreadable_stream_errors_have_advice(streams: Streams) -> None:
    """The errors for a missing checkpoint and for no input say what to do."""
    streams.add("a.csv", "id,v\n1,x\n")
    first = streams.files()

    def open_error(stream: Stream) -> str:
        with pytest.raises(SourceFailed, match=r"^p\.yaml:6:2: source arriving: ") as refused:
            streams.open(stream)
        return refused.value.message

    assert "write one of" in open_error(Stream())
    shutil.rmtree(streams.path / ".limnos")
    with pytest.raises(SourceFailed, match="run with --full"):
        streams.files(first.pin)
