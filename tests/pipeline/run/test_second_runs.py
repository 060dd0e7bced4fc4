# SPDX-License-Identifier: Apache-2.0
"""The second run of a pipeline: its rows are those of a whole read, or it is refused, whatever has changed since."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline import load
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.result import RunResult

pytestmark = [
    pytest.mark.spark,
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CSV = 'options: {header: true}, schema: "id int, v int"'


class Folder:
    """A pipeline's directory, and the runs of its file in one session."""

    def __init__(self, spark: SparkSession, place: tuple[str, str], directory: Path) -> None:
        self.spark = spark
        self.name = place[1]
        self.directory = directory
        self.events: list[RunEvent] = []

    def write(self, name: str, text: str, *, at: int | None = None) -> None:
        """Write a file of the directory, with its time of change if `at` is given."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if at is not None:
            os.utime(path, (at, at))

    def declare(self, text: str) -> None:
        """Write the pipeline's file; `@` is the test's namespace."""
        name = f"p{zlib.crc32(self.name.encode()):x}"
        self.write("p.yaml", f"pipeline: {name}\ncatalog: main\n" + text.replace("@", self.name))

    def run(self, *, full: bool = False, **parameters: object) -> RunResult:
        """Load the file and run it."""
        self.events.clear()
        options = RunOptions(full=full)
        return load(self.directory / "p.yaml").run(
            self.spark, parameters=parameters, options=options, listener=self.events.append
        )

    def published(self, *, full: bool = False, **parameters: object) -> str:
        """Run, require that it was published, and return the messages of its steps."""
        self.run(full=full, **parameters).require()
        return "; ".join(event.message or "" for event in self.events if event.step and event.state == "done")

    def rows(self, table: str, columns: str = "*") -> list[tuple[object, ...]]:
        """Return the published rows of a table, sorted."""
        frame = self.spark.sql(f"SELECT {columns} FROM main.`{self.name}`.{table}")
        return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def folder(spark: SparkSession, place: tuple[str, str], tmp_path: Path) -> Folder:
    """A directory with the test's pipeline."""
    return Folder(spark, place, tmp_path)


PARAMETERS = f"""
parameters: {{least: {{type: int, default: 10}}, other: {{type: int, default: 1}}}}
sources:
  src: {{files: "d/*.csv", {CSV}}}
steps:
  @.merged: {{sql: "SELECT id, v FROM src WHERE v >= :least", incremental: true, write: {{mode: merge, keys: id}}}}
  @.added: {{sql: "SELECT id, v FROM src WHERE v >= :least", incremental: true, write: append}}
  @.ruled: {{load: src, incremental: true, write: append, expect: [{{row: "v >= :least", action: drop}}]}}
"""


def test_another_parameter_reads_everything_again(folder: Folder) -> None:
    """Another value of a parameter that the query or a removing rule uses is a change: all rows are read again, and the
    event and the run's record say why. A parameter that the step does not use changes nothing.
    """
    folder.write("d/a.csv", "id,v\n1,5\n2,15\n")
    folder.declare(PARAMETERS)
    folder.published()

    unchanged = folder.published(other=2)
    messages = folder.published(least=1)

    assert unchanged == "; ; "
    assert messages.count("read all of its inputs: parameter least changed since it was published") == 3
    for table in ("merged", "added", "ruled"):
        assert folder.rows(table) == [(1, 5), (2, 15)], table


def test_reason_is_in_the_record_of_the_run(folder: Folder, admin: Client) -> None:
    """The record of the run has the reason, for the step and for its source."""
    folder.write("d/a.csv", "id,v\n1,5\n2,15\n")
    folder.declare(PARAMETERS)
    folder.published()

    step = admin.runs.load(folder.run(least=1).run).steps[0]

    assert step.message == "read all of its inputs: parameter least changed since it was published"
    assert [each.get("whole_because") for each in step.inputs] == ["parameter least changed since it was published"]


REWRITTEN = f"""
sources:
  src: {{files: "d/*.csv", {CSV}}}
steps:
  @.raw: {{load: src, incremental: true, expect: [{{unique: id}}]}}
  @.sums: {{sql: "SELECT sum(v) AS v FROM main.@.raw", incremental: true}}
  @.parts: {{load: src, incremental: true, write: partitions, partition: id}}
  @.synced: {{load: src, incremental: true, write: {{mode: merge, keys: id, delete_missing: true}}}}
  @.stamped: {{sql: "SELECT id, now() AS at FROM src", incremental: true}}
"""
REWRITTEN_TABLES = ("raw", "sums", "parts", "synced")


def test_modes_that_rewrite_write_only_after_a_change(folder: Folder) -> None:
    """Steps whose modes need all rows write nothing if no input has changed, and everything if one has: a new file, a
    changed file, a removed file, `full`. A clock in the query always counts as a change.
    """
    folder.write("d/a.csv", "id,v\n1,5\n2,15\n", at=1_700_000_000)
    folder.declare(REWRITTEN)
    folder.published()

    def snapshots() -> dict[str, int]:
        names = (*REWRITTEN_TABLES, "stamped")
        return {name: len(folder.rows(f"{name}.snapshots", "snapshot_id")) for name in names}

    first = snapshots()
    folder.published()
    unchanged = snapshots()
    folder.write("d/b.csv", "id,v\n3,1\n", at=1_700_000_100)
    messages = folder.published()
    added = [folder.rows(name) for name in REWRITTEN_TABLES]
    folder.write("d/b.csv", "id,v\n3,2\n", at=1_700_000_200)
    folder.published()
    changed = [folder.rows(name) for name in REWRITTEN_TABLES]
    settled = snapshots()
    folder.published(full=True)

    assert unchanged == {**first, "stamped": first["stamped"] + 1}
    assert "`replace` rewrites the whole table" in messages
    assert added == [[(1, 5), (2, 15), (3, 1)], [(21,)], [(1, 5), (2, 15), (3, 1)], [(1, 5), (2, 15), (3, 1)]]
    assert changed == [[(1, 5), (2, 15), (3, 2)], [(22,)], [(1, 5), (2, 15), (3, 2)], [(1, 5), (2, 15), (3, 2)]]
    assert all(snapshots()[name] > settled[name] for name in ("raw", "sums", "parts"))


def test_rewritten_table_loses_the_rows_of_a_removed_file_once(folder: Folder) -> None:
    """A removed file is a change of a step that replaces its table, and the next run is without one."""
    folder.write("d/a.csv", "id,v\n1,5\n")
    folder.write("d/b.csv", "id,v\n2,15\n")
    folder.declare(f'sources:\n  src: {{files: "d/*.csv", {CSV}}}\nsteps:\n  @.t: {{load: src, incremental: true}}\n')
    folder.published()
    (folder.directory / "d/b.csv").unlink()

    messages = [folder.published() for _ in range(2)]

    assert folder.rows("t") == [(1, 5)]
    assert ["read all of its inputs" in each for each in messages] == [True, False]


PYTHON = f"""
sources:
  src: {{files: "d/*.csv", {CSV}}}
steps:
  @.raw: {{load: src}}
  @.py: {{python: "f:make", inputs: {{src: @.raw}}, incremental: true, write: {{mode: merge, keys: id}}}}
"""
MAKE = "from helper import times\ndef make(src):\n    return src.selectExpr('id', f'v * {times()} AS w')\n"


@pytest.mark.parametrize("changed", ["f.py", "helper.py", "below/deep.py"])
def test_another_python_code_reads_everything_again(folder: Folder, changed: str) -> None:
    """Another code of the step's function, or of a module that it imports from the directory, runs in the same process,
    and all rows are read again.
    """
    texts = {
        "f.py": "from helper import times\ndef make(src):\n    return src.selectExpr('id', f'v * {times()} AS w')\n",
        "helper.py": "def times():\n    from below import deep\n    return deep.TIMES * 1\n",
        "below/__init__.py": "",
        "below/deep.py": "TIMES = 2\n",
    }
    edits = {"f.py": ("times()", "times() * 3"), "helper.py": ("* 1", "* 3"), "below/deep.py": ("2", "6")}
    folder.write("d/a.csv", "id,v\n1,5\n")
    for name, text in texts.items():
        folder.write(name, text)
    folder.declare(PYTHON)
    folder.published()
    before = folder.rows("py")

    folder.write(changed, "# a comment is not code\n" + texts[changed])
    commented = folder.published()
    folder.write(changed, texts[changed].replace(*edits[changed]))
    messages = folder.published()

    assert (before, folder.rows("py")) == ([(1, 10)], [(1, 30)])
    assert "code" not in commented
    assert "read all of its inputs: the Python code changed since it was published" in messages


QUERY = f"""
sources:
  src: {{files: "d/*.csv", {CSV}}}
steps:
  @.t: {{sql: "SELECT id, v, QUERY AS w FROM src", incremental: true, write: append}}
"""


@pytest.mark.parametrize(
    "query, word",
    [
        ("current_date()", "current_date()"),
        ("year(now()) * 0", "now()"),
        ("(SELECT max(current_timestamp()))", "current_timestamp()"),
        ("rand(7) * 0", "rand(7)"),
        ("length(uuid()) * 0", "uuid()"),
        ("current_user()", "current_user()"),
        ("length(:run_id) * 0", "run_id"),
    ],
)
def test_queries_that_vary_between_runs_read_everything(folder: Folder, query: str, word: str) -> None:
    """A clock, a random number, the caller or the run's id in a query makes each run read everything, with the
    reason.
    """
    folder.write("d/a.csv", "id,v\n1,5\n")
    folder.declare(QUERY.replace("QUERY", query))
    folder.published()

    folder.write("d/b.csv", "id,v\n2,5\n")
    messages = folder.published()

    assert word in messages
    assert folder.rows("t", "id") == [(1,), (2,)]


def test_stamps_of_the_run_and_names_of_files_stay_incremental(folder: Folder) -> None:
    """The run's id as a column of its own, the file of a row, and clocks in text or names do not prevent increments."""
    folder.write("d/a.csv", "id,v\n1,5\n")
    folder.declare(QUERY.replace("QUERY", ":run_id AS r, 'now() rand()' AS `now()`, length(input_file_name())"))
    folder.published()
    first = folder.rows("t", "id, r")

    folder.write("d/b.csv", "id,v\n2,5\n")
    messages = folder.published()

    assert messages == ""
    assert first[0] in folder.rows("t", "id, r")
    assert len({run for _, run in folder.rows("t", "id, r")}) == 2


def test_clock_in_a_rule_lets_rows_in_when_their_time_comes(folder: Folder) -> None:
    """A rule that drops rows by the time of day reads everything, also when there is nothing new."""
    folder.write("d/a.csv", "id,v\n1,5\n")
    rule = "expect: [{row: 'v < unix_timestamp(now())', action: drop}]"
    folder.declare(
        f'sources:\n  src: {{files: "d/*.csv", {CSV}}}\nsteps:\n  @.t: {{load: src, incremental: true, write: append,'
        f" {rule}}}"
    )
    folder.published()

    messages = folder.published()

    assert "a rule that removes rows has now(), whose value is another one in each run" in messages
    assert folder.rows("t") == [(1, 5)]


CHANGES: dict[str, Callable[[str], str]] = {
    "the query": lambda text: text.replace("v AS w", "v + 1 AS w"),
    "the write mode": lambda text: text.replace("keys: id", "keys: id, delete_when: v > 100"),
    "the rules that remove rows": lambda text: text.replace("v > 0", "v > 1"),
    "source src": lambda text: text.replace("header: true", "header: true, nullValue: x"),
}


@pytest.mark.parametrize("part", sorted(CHANGES))
def test_each_changed_part_is_named(folder: Folder, part: str) -> None:
    """A change of the query, the write mode, a removing rule or a source's options is named; a comment or a new
    warning is no change.
    """
    text = f"""
sources:
  src: {{files: "d/*.csv", {CSV}}}
steps:
  @.t:
    sql: "SELECT id, v AS w, v FROM src"
    incremental: true
    write: {{mode: merge, keys: id}}
    expect: [{{row: "v > 0", action: drop}}]
"""
    folder.write("d/a.csv", "id,v\n1,5\n2,1\n")
    folder.declare(text)
    folder.published()
    folder.declare(text.replace("[{row", "[{row: id > 5, action: warn}, {row") + "    comment: c\n")
    same = folder.published()
    folder.declare(CHANGES[part](text))

    assert same == ""
    assert folder.published() == f"read all of its inputs: {part} changed since it was published"


def test_session_settings_that_change_results_are_noticed(folder: Folder) -> None:
    """Another time zone, or another setting that changes results, reads everything; other settings do not."""
    folder.write("d/a.csv", "id,v\n1,5\n")
    folder.declare(QUERY.replace("QUERY", "hour(timestamp_seconds(v))"))
    folder.published()
    folder.spark.conf.set("spark.sql.shuffle.partitions", "3")
    same = folder.published()
    folder.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    messages = folder.published()
    folder.spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    further = folder.published()

    assert same == ""
    assert (
        messages == "read all of its inputs: session setting spark.sql.session.timeZone changed since it was published"
    )
    assert "other session settings changed" in further
    assert folder.rows("t") == [(1, 5, 9)]


def test_publication_of_an_older_release_is_read_whole_once(folder: Folder) -> None:
    """A table that was published without a definition is read whole once, with the reason, and then by increments."""
    folder.write("d/a.csv", "id,v\n1,5\n")
    folder.declare(QUERY.replace("QUERY", "v"))
    folder.published()
    head = f"main.`{folder.name}`.t"
    summaries = folder.spark.sql(f"SELECT summary FROM {head}.snapshots").collect()
    inputs = next(one[0]["limnos.inputs"] for one in summaries if "limnos.inputs" in one[0])
    for key, value in (("limnos.inputs", inputs), ("limnos.query", "0123456789abcdef")):
        folder.spark.conf.set(f"spark.sql.iceberg.snapshot-property.{key}", value)
    folder.spark.sql(f"INSERT OVERWRITE {head} SELECT 1, 5, 4")
    for key in ("limnos.inputs", "limnos.query"):
        folder.spark.conf.unset(f"spark.sql.iceberg.snapshot-property.{key}")

    first, second = folder.published(), folder.published()

    assert "by an earlier release" in first
    assert second == ""
    assert folder.rows("t") == [(1, 5, 5)]


QUALIFIED = {
    "full": "SELECT main.@.orders.id, @.orders.v FROM @.orders WHERE @.orders.v > 0",
    "star": "SELECT @.orders.* FROM main.@.orders",
    "two": "SELECT @.orders.id, @.orders.v FROM @.orders LEFT JOIN @.sub.orders ON @.sub.orders.id = @.orders.id + 100",
}


@pytest.mark.parametrize("name", sorted(QUALIFIED))
def test_columns_qualified_by_whole_names_are_read_by_increments(folder: Folder, name: str) -> None:
    """Columns may be qualified by a table's whole name, in the first run, in an increment, and of an empty table."""
    spark = folder.spark
    spark.sql(f"CREATE NAMESPACE main.{folder.name}.sub")
    for table in ("orders", "sub.orders"):
        spark.sql(f"CREATE TABLE main.{folder.name}.{table} (id INT, v INT) USING iceberg")
    spark.sql(f"INSERT INTO main.{folder.name}.orders VALUES (1, 1)")
    folder.declare(f'steps:\n  @.t: {{sql: "{QUALIFIED[name]}", incremental: true, write: append}}')
    folder.published()

    spark.sql(f"INSERT INTO main.{folder.name}.orders VALUES (2, 2)")
    messages = folder.published()

    assert messages == ""
    assert folder.rows("t") == [(1, 1), (2, 2)]


def test_two_empty_tables_of_the_same_name_can_be_joined(folder: Folder) -> None:
    """Two tables with the same last name are distinguished by their whole names, also if neither has a snapshot."""
    spark = folder.spark
    for number in ("a", "b"):
        spark.sql(f"CREATE NAMESPACE main.{folder.name}.{number}")
        spark.sql(f"CREATE TABLE main.{folder.name}.{number}.t (id INT, {number} INT) USING iceberg")
    query = "SELECT count(@.a.t.a) AS n, count(@.b.t.b) AS m FROM @.a.t FULL JOIN @.b.t ON @.a.t.id = @.b.t.id"
    folder.declare(f'steps:\n  @.n: {{sql: "{query}"}}')

    folder.published()

    assert folder.rows("n") == [(0, 0)]


BACK = """
sources:
  s: {files: s.csv, schema: "id int, a string, at timestamp", options: {header: true}}
steps:
  @.h: {load: s, write: {mode: history, keys: id, as_of: at, delete_missing: true}}
"""


@pytest.mark.parametrize("full", [False, True])
def test_key_that_comes_back_opens_a_new_interval(folder: Folder, full: bool) -> None:
    """With `as_of` and `delete_missing`, a key that the source has again is current again from the run's time, although
    its time is old. The interval that ended stays, and a further run changes nothing.
    """
    head, one = "id,a,at\n", "1,A,2026-01-01 00:00:00\n"
    later = [
        f"{head}{one}2,B,2026-01-05 00:00:00\n3,C,2026-01-05 00:00:00\n",
        f"{head}{one}",
        f"{head}{one}2,B,2026-01-05 00:00:00\n3,D,2026-02-05 00:00:00\n",
    ]
    folder.declare(BACK)
    for text in [*later, later[-1]]:
        folder.write("s.csv", text)
        folder.published(full=full)

    states = folder.rows("h", "id, a, is_current, valid_from = at, valid_to IS NULL")
    assert states == [
        (1, "A", True, True, True),
        (2, "B", False, True, False),
        (2, "B", True, False, True),
        (3, "C", False, True, False),
        (3, "D", False, True, False),
        (3, "D", True, False, True),
    ]


def test_late_row_among_merged_states_gives_the_timeline_of_a_whole_read(folder: Folder) -> None:
    """A late row that falls among equal states, of which the history has one row, makes the step read everything."""
    head = "id,v,w,at\n"
    folder.declare("""
sources:
  s: {files: "d/*.csv", schema: "id int, v string, w int, at timestamp", options: {header: true}}
steps:
  @.h: {load: s, incremental: true, write: {mode: history, keys: id, as_of: at, tracked: v}}
""")
    files = [
        "1,a,1,2026-01-01 00:00:00\n",
        "1,a,2,2026-01-03 00:00:00\n1,a,3,2026-01-09 00:00:00\n",
        "2,x,1,2026-01-01 00:00:00\n",
        "1,b,4,2026-01-02 00:00:00\n",
    ]
    messages = []
    for number, text in enumerate(files):
        folder.write(f"d/{number}.csv", head + text)
        messages.append(folder.published())

    assert messages[1:3] == ["", ""]
    assert "a late row falls among equal states of its key" in messages[3]
    assert folder.rows("h", "id, v, w, day(valid_from), day(valid_to), is_current") == [
        (1, "a", 1, 1, 2, False),
        (1, "a", 3, 3, None, True),
        (1, "b", 4, 2, 3, False),
        (2, "x", 1, 1, None, True),
    ]


@pytest.mark.parametrize("action", ["quarantine", "drop"])
def test_keys_of_rows_that_rules_take_out_are_not_missing(folder: Folder, action: str) -> None:
    """A row that a rule takes out is in the source: `delete_missing` neither deletes nor closes its key."""
    rule = f"expect: [{{row: v > 0, action: {action}}}]"
    folder.declare(f"""
sources:
  s: {{files: s.csv, {CSV}}}
steps:
  @.m: {{load: s, write: {{mode: merge, keys: id, delete_missing: true}}, {rule}}}
  @.h: {{load: s, write: {{mode: history, keys: id, delete_missing: true}}, {rule}}}
""")
    folder.write("s.csv", "id,v\n1,1\n2,2\n3,3\n")
    folder.published()

    folder.write("s.csv", "id,v\n1,1\n2,-2\n4,-4\n")
    folder.published()

    assert folder.rows("m") == [(1, 1), (2, 2)]
    assert folder.rows("h", "id, v, is_current") == [(1, 1, True), (2, 2, True), (3, 3, False)]


def test_whole_read_is_refused_if_it_would_lose_rows_of_removed_files(folder: Folder) -> None:
    """Removed files are ignored. If a whole read would lose their rows, the run is refused with the reason, and
    `--full` makes the table from the files that are there.
    """
    folder.declare(
        f'sources:\n  src: {{files: "d/*.csv", {CSV}}}\nsteps:\n  @.t: {{load: src, incremental: true, write: append}}'
    )
    folder.write("d/a.csv", "id,v\n1,1\n", at=1)
    folder.write("d/b.csv", "id,v\n2,2\n", at=2)
    folder.published()
    (folder.directory / "d/a.csv").unlink()
    folder.write("d/c.csv", "id,v\n3,3\n", at=3)
    archived = folder.published()

    folder.write("d/c.csv", "id,v\n3,3\n4,4\n", at=4)
    refused = folder.run()
    before = folder.rows("t")
    full = folder.published(full=True)

    assert archived == ""
    assert refused.state == "failed"
    assert "c.csv was changed since it was read" in refused.message
    assert "files of source src that it has read are gone" in refused.message
    assert before == [(1, 1), (2, 2), (3, 3)]
    assert full == "read all of its inputs: a full run was requested"
    assert folder.rows("t") == [(2, 2), (3, 3), (4, 4)]


def test_merge_reads_a_changed_file_again_alone(folder: Folder) -> None:
    """A merge reads a changed file again and merges it, although several files have the same key."""
    folder.declare(
        f'sources:\n  src: {{files: "d/*.csv", {CSV}}}\nsteps:\n  @.t: {{load: src, incremental: true, write: {{mode:'
        " merge, keys: id}}"
    )
    folder.write("d/a.csv", "id,v\n1,1\n2,2\n", at=1)
    folder.published()
    folder.write("d/b.csv", "id,v\n1,10\n", at=2)
    folder.published()

    folder.write("d/b.csv", "id,v\n1,11\n3,3\n", at=3)
    messages = folder.published()

    assert messages == ""
    assert folder.rows("t") == [(1, 11), (2, 2), (3, 3)]


@pytest.mark.parametrize("column", ["_changed_at", "_Change_Type"])
def test_columns_that_begin_like_those_of_changelogs_are_read(folder: Folder, column: str) -> None:
    """A column whose name begins with `_change` is read by increments of changed rows; one with a changelog's own name
    makes the step read everything.
    """
    spark, source = folder.spark, f"main.{folder.name}.source"
    spark.sql(f"CREATE TABLE {source} (id INT, {column} INT) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    spark.sql(f"INSERT INTO {source} VALUES (1, 1), (2, 2)")
    sql = f"SELECT id, {column} AS v FROM @.source"
    folder.declare(f"steps:\n  @.t: {{sql: '{sql}', incremental: true, write: {{mode: merge, keys: id}}}}")
    folder.published()

    spark.sql(f"UPDATE {source} SET {column} = 20 WHERE id = 2")
    messages = folder.published()

    assert folder.rows("t") == [(1, 1), (2, 20)]
    assert ("a changelog can't have its columns" in messages) == (column == "_Change_Type")


SOURCE = (
    "import pyarrow as pa\nimport helper\ndef rows():\n    yield pa.RecordBatch.from_pydict({'id': [helper.VALUE]})\n"
)
UDF = """
from pyspark.sql.functions import udf
import helper
def make(src):
    return src.withColumn('w', udf(lambda v: v + helper.VALUE, 'int')('v'))
"""


def test_two_pipelines_with_modules_of_the_same_name_share_a_session(
    spark: SparkSession, place: tuple[str, str], tmp_path: Path
) -> None:
    """Two pipelines in one session each run their own modules, in the driver and in executors, in any order, also
    after an edit; and the session stays usable.
    """
    folders = {name: Folder(spark, place, tmp_path / name) for name in ("a", "b")}
    for number, (name, folder) in enumerate(folders.items(), start=1):
        folder.write("f.py", SOURCE + UDF)
        folder.write("helper.py", f"VALUE = {number}\n")
        folder.write(
            "p.yaml",
            f"""
pipeline: two_{name}_{number}
catalog: main
python_files: [helper.py]
sources: {{src: {{python: 'f:rows', schema: 'id bigint'}}}}
steps:
  {place[1]}.{name}: {{load: src}}
  {place[1]}.{name}_udf: {{python: 'f:make', inputs: {{src: {place[1]}.{name}_in}}}}
  {place[1]}.{name}_in: {{sql: SELECT 10 AS v}}
""",
        )
    results = []
    for name in ("a", "b", "a"):
        folders[name].published()
        results.append((folders[name].rows(name), folders[name].rows(f"{name}_udf")))
        assert spark.range(3).repartition(2).count() == 3
    folders["b"].write("helper.py", "VALUE = 5\n")
    folders["b"].write("f.py", SOURCE + UDF + "# edited\n")
    folders["b"].published()

    assert results == [([(1,)], [(10, 11)]), ([(2,)], [(10, 12)]), ([(1,)], [(10, 11)])]
    assert (folders["b"].rows("b"), folders["b"].rows("b_udf")) == ([(5,)], [(10, 15)])
    assert spark.range(3).repartition(2).count() == 3


@pytest.mark.parametrize("policy", ["keep", "count"])
def test_missing_keys_and_malformed_rows_are_refused_together(folder: Folder, policy: str) -> None:
    """`delete_missing` over files whose malformed rows are left out is refused by the check, at the step."""
    folder.write("s.csv", "id,v\n1,x\n")
    folder.declare(f"""
sources:
  s: {{files: s.csv, {CSV}, malformed: {policy}}}
steps:
  @.m: {{load: s, write: {{mode: merge, keys: id, delete_missing: true}}}}
""")

    problems = load(folder.directory / "p.yaml").check().problems

    assert [
        (problem.at.line if problem.at else 0, "write `malformed: fail`" in problem.message) for problem in problems
    ] == [(7, True)]


def test_source_that_names_a_table_is_read_whole(folder: Folder) -> None:
    """A source that is a table has no increments: a second run does not append its rows again."""
    spark, source = folder.spark, f"main.{folder.name}.source"
    spark.sql(f"CREATE TABLE {source} (id INT) USING iceberg")
    spark.sql(f"INSERT INTO {source} VALUES (1)")
    folder.declare("sources:\n  src: {table: @.source}\nsteps:\n  @.t: {load: src, incremental: true, write: append}")
    folder.published()

    spark.sql(f"INSERT INTO {source} VALUES (2)")
    messages = folder.published()

    assert "source src has no increments: name" in messages
    assert folder.rows("t") == [(1,), (2,)]


def test_newest_file_counts_if_files_repeat_a_key(folder: Folder) -> None:
    """If several files have a key, a merge takes the row of the newest one, in an increment and in a whole read; within
    one file a repeated key is refused.
    """
    folder.declare(f"""
sources:
  src: {{files: "d/*.csv", {CSV}}}
steps:
  @.t: {{sql: 'SELECT id, v * 10 AS v FROM src WHERE v > 0', incremental: true, write: {{mode: merge, keys: id}}}}
""")
    folder.write("d/b.csv", "id,v\n1,1\n2,2\n", at=1)
    folder.published()
    folder.write("d/a.csv", "id,v\n1,3\n3,3\n", at=2)
    folder.write("d/c.csv", "id,v\n1,4\n2,-1\n", at=3)
    folder.published()
    rows = folder.rows("t")
    folder.published(full=True)
    folder.write("d/d.csv", "id,v\n1,5\n1,6\n", at=4)

    assert rows == folder.rows("t") == [(1, 40), (2, 20), (3, 30)]
    assert "with another row" in folder.run().message


UNIONS = """
steps:
  @.added: {sql: "SELECT id, v FROM @.a UNION ALL SELECT id, v FROM @.b", incremental: true, write: append}
  @.inner:
    sql: "WITH u AS (SELECT * FROM @.b UNION ALL SELECT * FROM @.a) SELECT u.id, v + w AS v FROM u JOIN @.dim USING (id)"
    incremental: true
    write: append
  @.branch:
    sql: "SELECT id, v FROM @.a UNION ALL SELECT b.id, w FROM @.b AS b LEFT JOIN @.dim AS d ON d.id = b.id"
    incremental: true
    write: append
  @.merged:
    sql: "SELECT id, v FROM @.a UNION ALL SELECT id + 100, v FROM @.b"
    incremental: true
    write: {mode: merge, keys: id}
  @.code: {python: "f:unite", inputs: {one: @.a, other: @.b}, incremental: true, write: append}
"""
UNITE = "def unite(one, other):\n    return one.select('id', 'v').unionByName(other.select('v', 'id'))\n"
UNITED = {
    "added": "SELECT id, v FROM @.a UNION ALL SELECT id, v FROM @.b",
    "inner": "SELECT u.id, v + w FROM (SELECT * FROM @.b UNION ALL SELECT * FROM @.a) u JOIN @.dim USING (id)",
    "branch": "SELECT id, v FROM @.a UNION ALL SELECT b.id, w FROM @.b AS b LEFT JOIN @.dim AS d ON d.id = b.id",
    "merged": "SELECT id, v FROM @.a UNION ALL SELECT id + 100, v FROM @.b",
    "code": "SELECT id, v FROM @.a UNION ALL SELECT id, v FROM @.b",
}


def test_branches_of_unions_are_written_once(folder: Folder) -> None:
    """Each run writes the new rows of each branch of a UNION, and the rows of no unchanged branch again: if one input
    has changed, the other, both or none; in SQL, in Python, with joined tables, and by key.
    """
    spark, name = folder.spark, f"main.{folder.name}"
    for table in ("a", "b"):
        spark.sql(f"CREATE TABLE {name}.{table} AS SELECT 1 AS id, 10 AS v")
    spark.sql(f"CREATE TABLE {name}.dim AS SELECT id, 1000 AS w FROM VALUES (1), (2), (3) AS t(id)")
    folder.write("f.py", UNITE)
    folder.declare(UNIONS)
    folder.published()
    messages = []

    for row, changed in enumerate([("a",), ("b",), ("a", "b"), ()], start=2):
        for table in changed:
            spark.sql(f"INSERT INTO {name}.{table} VALUES ({row}, {row})")
        messages.append(folder.published())
        for table, query in UNITED.items():
            whole = sorted((tuple(each) for each in spark.sql(query.replace("@.", f"{name}.")).collect()), key=repr)
            assert folder.rows(table) == whole, (table, changed)

    assert messages == ["; ; ; ; "] * 4


def test_table_at_a_branch_is_read_whole(folder: Folder) -> None:
    """The rows of a branch that the query names are read in each run, for no pin tells whether the branch has moved; a
    snapshot that it names by its id has the same rows always.
    """
    spark, name = folder.spark, f"main.{folder.name}"
    spark.sql(f"CREATE TABLE {name}.a AS SELECT 1 AS id, 10 AS v")
    spark.sql(f"ALTER TABLE {name}.a CREATE BRANCH fresh")
    (first,) = spark.sql(f"SELECT snapshot_id FROM {name}.a.snapshots").collect()
    moving = "{sql: \"SELECT id, v FROM @.a VERSION AS OF 'fresh'\", incremental: true, write: append}"
    fixed = f'{{sql: "SELECT id, v FROM main.@.a VERSION AS OF {first.snapshot_id}", incremental: true, write: append}}'
    folder.declare(f"steps:\n  @.moving: {moving}\n  @.fixed: {fixed}\n")
    folder.published()

    spark.sql(f"INSERT INTO {name}.a.branch_fresh VALUES (2, 20)")
    messages = folder.published()

    assert "reads " in messages
    assert "at a branch, a tag or a time" in messages
    assert (folder.rows("moving"), folder.rows("fixed")) == ([(1, 10), (2, 20)], [(1, 10)])


FILES_AND_TABLE = f"""
sources:
  src: {{files: "d/*.csv", {CSV}}}
  lines: {{files: "d/*.csv", format: text}}
steps:
  @.both: {{sql: "SELECT id, v FROM @.a UNION ALL SELECT id, v FROM src", incremental: true, write: append}}
  @.alias:
    sql: "SELECT id, n FROM (SELECT id, count(*) AS n FROM src GROUP BY id) AS src"
    incremental: true
    write: append
  @.counted: {{python: "f:count", inputs: {{src: src}}, incremental: true, write: append}}
  @.placed: {{python: "f:placed", inputs: {{src: lines}}, incremental: true, write: append}}
  @.known: {{python: "f:known", inputs: {{src: src, old: @.a}}, incremental: true, write: append}}
"""
COUNT = """
def count(src):
    return src.groupBy("id").count()

def placed(src):
    return src.where("value LIKE 'id%'").select("_metadata.file_name")

def known(src, old):
    ids = [row.id for row in src.collect()]
    return old.where(old.id.isin(ids)).select("id", "v")
"""


def test_files_beside_tables_give_the_rows_of_a_whole_read(folder: Folder) -> None:
    """New files do not write the rows of an unchanged table again. An aggregate over files reads everything: in Python,
    and in SQL also if its alias is the name of the source. Rows that come from no new row read everything. Files
    have their hidden columns in Python, and are read by increments.
    """
    spark, name = folder.spark, f"main.{folder.name}"
    spark.sql(f"CREATE TABLE {name}.a AS SELECT * FROM VALUES (1, 10), (2, 20) AS t(id, v)")
    folder.write("f.py", COUNT)
    folder.write("d/1.csv", "id,v\n1,1\n", at=1)
    folder.declare(FILES_AND_TABLE)
    folder.published()

    folder.write("d/2.csv", "id,v\n1,2\n2,2\n", at=2)
    messages = folder.published()

    assert folder.rows("both") == [(1, 1), (1, 10), (1, 2), (2, 2), (2, 20)]
    assert folder.rows("alias") == folder.rows("counted") == [(1, 2), (2, 1)]
    assert folder.rows("placed") == [("1.csv",), ("2.csv",)]
    assert folder.rows("known") == [(1, 10), (2, 20)]
    assert messages.count("the query has an aggregate") == 2
    assert messages.count("no row of the query comes from an input with new rows") == 1
