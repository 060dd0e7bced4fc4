# SPDX-License-Identifier: Apache-2.0
"""Files as sources: every format, patterns, unusual names, stored schemas, malformed rows, new files."""

from __future__ import annotations

import gzip
import os
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.declared_values import Scalar, SourcePosition
from limnos.pipeline.engine.sources import SourceRead, SourceReadRequest, frame_of, has_changed, listing
from limnos.pipeline.engine.sources.fingerprints import SourceFileState
from limnos.pipeline.engine.sources.listing import (
    base_path,
    content_digest,
    escape_pattern,
    list_files,
    locate_path,
    path_without_credentials,
    root_of,
)
from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy
from tests.pipeline.engine.spark_jobs import SparkJobCount

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.outcomes import ReadPin

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RUN: dict[str, Scalar] = {"run_id": "run-1", "run_at": "2026-01-02 03:04:05"}
BAD = "id,v\n1,x\nbad,y\n3\n4,a,b\n5,z\n"


class Folder:
    """A directory of files, and the sources over it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = path
        self._seconds = 1_700_000_000

    def add(self, name: str, text: str | bytes) -> Path:
        """Write a file; its modification time is one second later than that of the file before."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        self._seconds += 1
        os.utime(file, (self._seconds, self._seconds))
        return file

    def open(
        self,
        path: str,
        *,
        format_: str = "csv",
        schema: str | None = None,
        malformed: MalformedRowPolicy = MalformedRowPolicy.FAIL,
        options: dict[str, str] | None = None,
        before: ReadPin | None = None,
        pinned: ReadPin | None = None,
        incremental: bool = False,
        watched: bool = False,
    ) -> SourceRead:
        """Open files of this directory as a source."""
        chosen = {"header": "true"} if options is None and format_ == "csv" else options or {}
        kind = Files(path=path, format=format_, schema=schema, malformed=malformed, options=chosen)
        return frame_of(
            SourceReadRequest(
                spark=self.spark,
                source=DeclaredSource(name="people", kind=kind, at=SourcePosition("p.yaml", 3, 5)),
                parameters=RUN,
                directory=self.path,
                before=before,
                pinned=pinned,
                incremental=incremental,
                watched=watched,
            )
        )

    def rows(self, read: SourceRead) -> list[tuple[object, ...]]:
        """Return the rows, sorted."""
        return sorted((tuple(row) for row in read.frame.collect()), key=str)


@pytest.fixture
def folder(here: SparkSession, tmp_path: Path) -> Folder:
    """A directory of the test's own."""
    return Folder(here, tmp_path)


def test_every_file_format_is_read(folder: Folder) -> None:
    """CSV, JSON, Parquet, ORC and text are read, typed by the declared schema or the files' own."""
    folder.add("a.csv", "id,day\n1,2026-01-01\n")
    folder.add("a.json", '{"id": 1, "day": "2026-01-01"}\n')
    folder.add("a.txt", "one\ntwo\n")
    folder.add("b.csv.gz", gzip.compress(b"id;day\n1;2026-01-01\n"))
    for format_ in ("parquet", "orc"):
        frame = folder.spark.sql("SELECT 1 AS id, DATE '2026-01-01' AS day")
        frame.write.format(format_).save((folder.path / format_).as_uri())
    row = [(1, date(2026, 1, 1))]

    assert folder.rows(folder.open("a.csv", schema="id INT, day DATE")) == row
    assert folder.rows(folder.open("a.csv")) == row
    assert folder.rows(folder.open("*.csv.gz", options={"header": "true", "sep": ";"})) == row
    assert folder.rows(folder.open("a.json", format_="json", schema="id INT, day DATE")) == row
    assert folder.rows(folder.open("parquet", format_="parquet")) == row
    assert folder.rows(folder.open("orc/*.orc", format_="orc")) == row
    assert folder.rows(folder.open("a.txt", format_="text")) == [("one",), ("two",)]


def test_special_file_names_and_partition_directories_are_read(folder: Folder) -> None:
    """Pattern characters, blanks and percent signs in names are literal; `column=value` directories are columns."""
    folder.add("odd/a[1]{2}.csv", "id\n1\n")
    folder.add("odd/sp ace%20.csv", "id\n2\n")
    folder.add("parts/day=2026-01-01/x.csv", "id\n3\n")
    folder.add("parts/day=2026-01-02/x.csv", "id\n4\n")
    folder.add("parts/_SUCCESS", "")

    assert folder.rows(folder.open("odd")) == [(1,), (2,)]
    assert folder.rows(folder.open("odd/a\\[1\\]*")) == [(1,)]
    assert folder.rows(folder.open("parts", schema="id INT")) == [(3, date(2026, 1, 1)), (4, date(2026, 1, 2))]
    assert folder.rows(folder.open(f"file://{folder.path}/parts/day=*", schema="id INT"))[0] == (3, date(2026, 1, 1))


@pytest.mark.parametrize(
    "declared,words",
    [
        (("none/*.csv", "csv", None, None), "there is no file at"),
        (("empty", "csv", None, None), "there is no file at"),
        (("", "csv", None, None), "its path is empty"),
        (("a.csv", "xml", None, None), "write one of csv, json"),
        (("a.csv", "csv", "id NOTHING", None), "is not a list of columns"),
        (("a.csv", "csv", "int", None), "is not a list of columns"),
        (("none.parquet", "parquet", "id INT", None), "none.parquet is empty, so it is not a Parquet file"),
        (("none.json", "json", None, None), "its files are empty, so no schema can be inferred"),
        (("_late.csv", "csv", "id INT", None), "Spark hides files whose names begin with _ or a dot"),
        (("twins.csv", "csv", "id INT, v INT", None), "twins.csv has the column 'id' and the column 'id': rename one"),
        (("nameless.csv", "csv", None, None), "nameless.csv has no name for column 2"),
        (("a.csv", "csv", None, {"Mode": "DROPMALFORMED"}), "the option Mode is set by `malformed`"),
        (("a.csv", "csv", "v STRING, id INT", {"header": "true"}), "begins with id, v, and v, id was expected"),
        (
            ("a.csv", "csv", "id INT, v STRING, w INT", {"header": "true"}),
            "begins with id, v, and id, v, w was expected",
        ),
        (("a.csv", "parquet", None, {}), "no schema can be inferred"),
        (("mixed", "csv", "id INT", None), "recursiveFileLookup"),
    ],
)
def test_unreadable_source_is_refused_before_writing(
    folder: Folder, declared: tuple[str, str, str | None, dict[str, str] | None], words: str
) -> None:
    """A source that is missing, or differs from the declaration, is refused with its position before anything is
    written.
    """
    folder.add("a.csv", "id,v\n1,x\n")
    folder.add("mixed/day=1/a.csv", "id\n1\n")
    folder.add("mixed/plain/a.csv", "id\n1\n")
    (folder.path / "empty").mkdir()
    for name in ("none.parquet", "none.json"):
        folder.add(name, "")
    for name, header in (("_late", "id"), ("twins", "id,id"), ("nameless", "id,,v")):
        folder.add(f"{name}.csv", f"{header}\n1,2\n")
    path, format_, schema, options = declared

    with pytest.raises(SourceFailed, match=r"^p\.yaml:3:5: source people: ") as refused:
        folder.open(path, format_=format_, schema=schema, options=options)

    assert words in refused.value.message


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize(
    "action,expected",
    [(MalformedRowPolicy.FAIL, False), (MalformedRowPolicy.KEEP, True), (MalformedRowPolicy.COUNT, True)],
)
def test_malformed_csv_rows_are_counted(
    folder: Folder, action: MalformedRowPolicy, expected: bool, watched: bool
) -> None:
    """Rows with wrong types, missing or extra columns are counted exactly, with text and file, for any selected
    columns.
    """
    file = folder.add("a.csv", BAD)

    read = folder.open("a.csv", schema="id INT, v STRING", malformed=action, watched=watched)
    values = sorted(row[0] for row in read.frame.select("v").collect())
    assert read.malformed is not None
    (finding,) = read.malformed.findings()

    assert values == ["x", "z"]
    assert (finding.broken, finding.checked, finding.held) == (3, 5, expected)
    assert finding.sample is not None
    assert "4,a,b" in finding.sample
    assert read.malformed.keep is (action is MalformedRowPolicy.KEEP)
    malformed_rows = sorted(read.malformed.rows.collect(), key=lambda row: str(row[0]))
    assert [row._text for row in malformed_rows] == ["3", "4,a,b", "bad,y"]
    assert {row._path for row in malformed_rows} == {f"file:{file}"}
    assert malformed_rows[0]._source == "people"
    assert malformed_rows[0]._run == "run-1"
    assert malformed_rows[0]._at == datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - the session's zone is UTC


def test_malformed_json_rows_are_counted(folder: Folder) -> None:
    """Lines that are not JSON, and values of another type, are malformed; a missing key is not."""
    folder.add("a.json", '{"id": 1}\n{"id": "x", "v": "y"}\nno json\n{"v": "z"}\n')

    read = folder.open("a.json", format_="json", schema="id INT, v STRING", malformed=MalformedRowPolicy.COUNT)

    assert folder.rows(read) == [(1, None), (None, "z")]
    assert read.malformed is not None
    assert read.malformed.findings()[0].broken == 2


def test_source_read_twice_in_query_has_same_rows(folder: Folder) -> None:
    """A query may read a source twice: its rows and its malformed rows are the same as for one read."""
    folder.add("a.csv", BAD)
    read = folder.open("a.csv", schema="id INT, v STRING", malformed=MalformedRowPolicy.COUNT)
    read.frame.createOrReplaceTempView("people")

    joined = folder.spark.sql("SELECT a.id, b.v FROM people a JOIN people b ON a.id = b.id WHERE a.id > 1").collect()

    assert [tuple(row) for row in joined] == [(5, "z")]
    assert read.malformed is not None
    assert (read.malformed.findings()[0].broken, read.malformed.findings()[0].checked) == (3, 5)


def test_inferred_schema_is_reused_by_next_run(folder: Folder) -> None:
    """The schema that the first run inferred is used by the next one: a column of numbers does not become text."""
    folder.add("in/a.csv", "id,v\n1,x\n")
    first = folder.open("in")
    folder.add("in/b.csv", "id,v\nnone,y\n")

    second = folder.open("in", before=first.pin)

    assert dict(second.frame.dtypes) == {"id": "int", "v": "string"}
    assert second.malformed is not None
    assert second.malformed.findings()[0].broken == 1
    assert dict(folder.open("in").frame.dtypes)["id"] == "string"


@pytest.mark.parametrize(
    "format_,old,new,words",
    [
        ("csv", "id,v\n1,x\n", "id,w,v\n1,2,x\n", "begins with id, w, v, and id, v was expected"),
        ("json", '{"id": 1}\n', '{"id": 1, "more": true}\n', "more is new"),
        ("json", '{"id": 1}\n', '{"id": 1.5}\n', "id is double, and was bigint"),
    ],
)
def test_changed_schema_is_refused(folder: Folder, format_: str, old: str, new: str, words: str) -> None:
    """Files whose columns differ from the inferred schema are refused, not read by position or in part."""
    folder.add("in/a", old)
    first = folder.open("in", format_=format_)
    folder.add("in/b", new)

    with pytest.raises(SourceFailed, match="--full") as refused:
        folder.open("in", format_=format_, before=first.pin)

    assert words in refused.value.message


def test_changed_parquet_schema_is_refused(folder: Folder) -> None:
    """Parquet files with a new column or another type are refused; the inferred schema is the union over all files."""
    save = lambda sql, name: folder.spark.sql(sql).write.parquet((folder.path / "in" / name).as_uri())  # noqa: E731
    save("SELECT 1 AS id", "a")
    first = folder.open("in/*", format_="parquet")
    save("SELECT 1 AS id, 'x' AS more", "b")

    with pytest.raises(SourceFailed, match="more is new"):
        folder.open("in/*", format_="parquet", before=first.pin)

    assert folder.rows(folder.open("in/*", format_="parquet")) == [(1, "x"), (1, None)]


def test_incremental_reads_new_files_only(folder: Folder) -> None:
    """An increment has the files that were added since. Without new files it has no rows; if a file changed, all files
    are read.
    """
    folder.add("in/a.csv", "id\n1\n")
    first = folder.open("in", incremental=True)
    read_rows = [folder.rows(first)]
    folder.add("in/b.csv", "id\n2\n")
    second = folder.open("in", incremental=True, before=first.pin)
    third = folder.open("in", incremental=True, before=second.pin)
    read_rows += [folder.rows(second), folder.rows(third)]
    folder.add("in/a.csv", "id\n9\n")
    fourth = folder.open("in", incremental=True, before=third.pin)

    assert [*read_rows, folder.rows(fourth)] == [[(1,)], [(2,)], [], [(2,), (9,)]]
    assert second.pin.whole_because is None
    assert third.frame.dtypes == first.frame.dtypes
    assert fourth.pin.whole_because is not None
    assert "a.csv was changed" in fourth.pin.whole_because


@pytest.mark.parametrize("format_", ["json", "parquet", "orc", "csv"])
def test_increment_without_new_files_starts_no_job(folder: Folder, format_: str) -> None:
    """An increment without new files has the columns of the last one, and reads no file, not even for its schema."""
    frame = folder.spark.sql("SELECT 1 AS id, 'x' AS name")
    frame.write.options(header="true").format(format_).save((folder.path / "in").as_uri())
    first = folder.open("in/*", format_=format_, incremental=True)
    assert folder.rows(first) == [(1, "x")]
    jobs = SparkJobCount(folder.spark)

    second = folder.open("in/*", format_=format_, incremental=True, before=first.pin)

    assert jobs.count() == 0
    assert second.frame.dtypes == first.frame.dtypes
    assert folder.rows(second) == []
    assert second.pin.fingerprint == first.pin.fingerprint


def test_pinned_files_are_read_identically_by_later_steps(folder: Folder) -> None:
    """Another step of the run reads the same files: later files are ignored, and changed files stop the run."""
    folder.add("in/a.csv", "id\n1\n")
    first = folder.open("in")
    folder.add("in/b.csv", "id\n2\n")

    again = folder.open("in", pinned=first.pin)
    assert folder.rows(again) == [(1,)]
    assert again.pin == first.pin

    folder.add("in/a.csv", "id\n7\n")
    with pytest.raises(SourceFailed, match="during the run"):
        folder.open("in", pinned=first.pin)


def test_files_are_listed_alike_with_and_without_a_query(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many files are listed by a query, few without one: paths, sizes and times are the same, with any characters in
    names. Otherwise a step would read all files again when their number passes the limit.
    """
    for name in ("plain", "with space", "per%20cent", "ünï", "plus+hash#q?", "colon;comma,", "k=a b/part"):
        folder.add(f"in/{name}.csv", "id\n1\n")
    folder.add("in/empty.csv", "")
    files = Files(path="in", format="csv", options={"recursiveFileLookup": "true"})
    source = DeclaredSource(name="s", kind=files)
    request = SourceReadRequest(spark=folder.spark, source=source, parameters=RUN, directory=folder.path)
    path = locate_path(request, files.path)

    few = list_files(request, files, path=path)
    monkeypatch.setattr(listing, "_STATUSES_MAX", 0)
    many = list_files(request, files, path=path)

    assert few == many
    assert len(few) == 7
    assert all(content_digest([state]) is not None for state in few)


def test_content_of_small_local_files_is_digested(tmp_path: Path) -> None:
    """An edit that keeps size and time is detected, except in files that are too large, not local, or deleted."""
    file = tmp_path / "a b%20c.csv"
    file.write_text("1,good")
    listed = [SourceFileState(f"file:{file}", 6, 1)]

    before = content_digest(listed)
    file.write_text("1,evil")

    assert before is not None
    assert content_digest(listed) not in (None, before)
    assert content_digest(listed, bytes_max=5) is None
    assert content_digest([*listed, SourceFileState("s3://b/c", 1, 1)]) is None
    file.unlink()
    assert content_digest(listed) is None


def test_edited_added_and_deleted_files_are_detected(folder: Folder) -> None:
    """A source counts as changed if a file was edited, even with the same size and time, or added, or deleted."""
    file = folder.add("a.csv", "id\n1\n")
    source = DeclaredSource(
        name="people", kind=Files(path="*.csv", format="csv", schema="id INT", options={"header": "true"})
    )
    pin = frame_of(SourceReadRequest(spark=folder.spark, source=source, parameters=RUN, directory=folder.path)).pin

    def changed() -> bool | None:
        return has_changed(folder.spark, source, pinned=pin, directory=folder.path)

    assert not changed()
    times = file.stat()
    file.write_text("id\n2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert changed()
    file.write_text("id\n1\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not changed()
    folder.add("b.csv", "id\n1\n")
    assert changed()
    for each in folder.path.glob("*.csv"):
        each.unlink()
    assert changed()


def test_paths_hide_credentials_and_escape_patterns() -> None:
    """Credentials in a URL are hidden; pattern characters are escaped; the base path of partitions ends before the
    pattern.
    """
    assert path_without_credentials("s3a://key:secret@bucket/x") == "s3a://***@bucket/x"
    assert escape_pattern("a[1]*.csv") == "a\\[1\\]\\*.csv"
    inside = [SourceFileState("file:/d/p/day=1/x.csv", 1, 1)]
    assert base_path(inside, "file:///d/p/day=*/x.csv") == "file:///d/p"
    assert base_path(inside, "/d/p") == "/d/p"
    assert base_path([SourceFileState("file:/d/p/x.csv", 1, 1)], "/d/p") is None


@pytest.mark.parametrize(
    "path, root",
    [
        ("/d/p/x*.csv", "/d/p"),
        ("/d/lake/../p/x*.csv", "/d/p"),
        ("file:///d/a/b/../../p/*.csv", "file:///d/p"),
        ("/d/p", "/d/p"),
    ],
)
def test_root_of_a_pattern_is_a_directory_of_its_files(path: str, root: str) -> None:
    """The root begins the paths of the files that Spark lists, which have no `..`: their lineage is the directory, so
    that a run of one new file keeps the source of the runs before.
    """
    assert root_of(path) == root
