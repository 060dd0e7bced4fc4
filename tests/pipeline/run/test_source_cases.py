# SPDX-License-Identifier: Apache-2.0
"""Whole runs over small files whose names, types or emptiness are unusual, with the rows that they must publish."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from limnos.pipeline.run.result import RunResult
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


_numbers = itertools.count(1)


@dataclass(frozen=True)
class Bench:
    """A directory of files with a pipeline, and a namespace of its own."""

    spark: SparkSession
    client: Client
    directory: Path
    space: str

    def add(self, name: str, text: str) -> None:
        """Write a file beside the pipeline."""
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def declare(self, text: str) -> Path:
        """Write the pipeline's file; SPACE is the namespace."""
        file = self.directory / "p.yaml"
        file.write_text(f"pipeline: SPACE\ncatalog: main\n{text}".replace("SPACE", self.space))
        return file

    def run(self, text: str) -> RunResult:
        """Declare the pipeline and run it once."""
        return load(self.declare(text)).run(self.spark)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Return the rows of a query, sorted."""
        rows = self.spark.sql(query.replace("SPACE", f"main.{self.space}")).collect()
        return sorted((tuple(row) for row in rows), key=repr)

    def problems(self, text: str) -> list[str]:
        """Return the problems that a check finds, with their positions in the file."""
        result = load(self.declare(text)).check()
        return [str(problem).removeprefix(f"{self.directory}/") for problem in result.problems]


@pytest.fixture
def bench(served_spark: SparkSession, server: LiveServer, tmp_path: Path) -> Iterator[Bench]:
    """A bench of the test's own."""
    name = f"cases{next(_numbers)}"
    with Client(server.uri, token=server.token) as client:
        client.namespaces.create(f"main.{name}")
        yield Bench(served_spark, client, tmp_path, name)


KEPT = """
sources:
  src: {files: "d/*.csv", schema: "id int, v int", malformed: keep, options: {header: true}}
steps:
  SPACE.bad: {load: src, write: append, incremental: true}
"""


def test_malformed_rows_are_read_by_spark(bench: Bench) -> None:
    """The side table has the row's text and file under names that Iceberg does not reserve."""
    bench.add("d/a.csv", "id,v\n1,x\n2,3\n")

    bench.run(KEPT).require()

    ((text, path, source),) = bench.rows("SELECT _text, _path, _source FROM SPACE.bad__malformed")
    assert (text, source) == ("1,x", "src")
    assert str(path).endswith("/d/a.csv")


@pytest.mark.parametrize("name", ["_file", "_pos", "_Deleted", "_row_id", "_change_type"])
def test_reserved_column_is_refused_with_its_place(bench: Bench, name: str) -> None:
    """A query that makes a column of a name that Iceberg reserves is refused by the check, with the position of the
    name; a run that meets such a column behind a star writes nothing.
    """
    steps = f"steps:\n  SPACE.r: {{sql: 'SELECT 1 AS id, 5 AS {name}'}}\n"
    hidden = f"steps:\n  SPACE.r: {{sql: 'SELECT * FROM (SELECT 1 AS id, 5 AS {name})'}}\n"

    (problem,) = bench.problems(steps)
    ended = bench.run(hidden)

    assert problem.startswith(f"p.yaml:4:{35 + len(bench.space)}: ")
    assert f"'{name}' has a name that Iceberg reserves" in problem
    assert ended.state == "failed"
    assert f"'{name}' has a name that Iceberg reserves" in ended.message
    assert not bench.client.tables.list(f"main.{bench.space}")


def test_sources_differing_by_case_are_refused(bench: Bench) -> None:
    """Sources `src` and `SRC` would be one temporary view; the check and the run refuse them."""
    text = """sources: {src: s.csv, SRC: t.csv}
steps:
  SPACE.both: {sql: SELECT * FROM src UNION ALL SELECT * FROM SRC}
"""
    (problem,) = bench.problems(text)

    assert "the sources 'src' and 'SRC' differ by case alone" in problem


def test_steps_differing_by_case_keep_their_own_rows(bench: Bench) -> None:
    """Tables `t` and `T` are two tables, and a step that reads both gets the rows of each."""
    bench.run(
        "steps:\n  SPACE.t: {sql: SELECT 1 AS id}\n  SPACE.T: {sql: SELECT 2 AS id}\n"
        "  SPACE.both: {sql: SELECT * FROM SPACE.t UNION ALL SELECT * FROM SPACE.T}\n"
    ).require()

    assert bench.rows("SELECT id FROM SPACE.both") == [(1,), (2,)]


def test_step_named_like_a_quarantine_table_is_refused(bench: Bench) -> None:
    """A step must not create the table in which another step keeps its quarantined rows."""
    problems = bench.problems(
        "steps:\n  SPACE.x: {sql: SELECT 1 AS id, expect: [{row: id > 1, action: quarantine}]}\n"
        "  SPACE.x__quarantine: {sql: SELECT 2 AS id}\n"
    )

    assert [one.partition(": ")[0] for one in problems] == ["p.yaml:5:3"]
    assert f"{bench.space}.x__quarantine is the table in which step {bench.space}.x keeps" in problems[0]


@pytest.mark.parametrize("allowed,columns", [("drop: [c]", ["id", "a", "_rule", "_run", "_at"]), ("narrow: [a]", None)])
def test_allowed_change_applies_to_the_quarantine_table(bench: Bench, allowed: str, columns: list[str] | None) -> None:
    """A column that the step may drop or narrow is dropped or narrowed in the quarantine table, too."""
    bench.add("s.csv", "id,a,c\n1,1,x\n2,2,y\n")
    source = "sources: {{src: {{files: s.csv, schema: '{}', options: {{header: true}}}}}}\n"
    step = "steps: {{SPACE.q: {{load: src, {} expect: [{{row: id > 1, action: quarantine}}]}}}}\n"
    bench.run(source.format("id int, a int, c string") + step.format("")).require()
    if columns is not None:
        bench.add("s.csv", "id,a\n1,1\n2,2\n")
        second = source.format("id int, a int")
    else:
        second = source.format("id int, a string, c string")

    bench.run(second + step.format(f"allow: {{{allowed}}},")).require()

    assert bench.rows("SELECT id, a FROM SPACE.q") == [(2, 2)]
    assert bench.rows("SELECT id, a FROM SPACE.q__quarantine") == [(1, 1), (1, 1)]
    if columns is not None:
        assert bench.spark.table(f"main.{bench.space}.q__quarantine").columns == columns
        assert bench.spark.table(f"main.{bench.space}.q").columns == ["id", "a"]


def test_json_map_and_variant_are_loaded(bench: Bench) -> None:
    """Maps and variants, also inside of a struct, are read, and malformed rows are still found in columns that no query
    reads.
    """
    bench.add("a.json", '{"id": 1, "m": {"a": 1}, "s": {"m": {"b": 2}}, "v": {"x": [1]}}\n{"id": 2, "m": {"a": "q"}}\n')
    source = (
        "src: {files: a.json, malformed: count, schema: 'id int, m map<string,int>, s struct<m: map<string,int>>, v"
        " variant'}"
    )
    text = f"sources: {{{source}}}\nsteps:\n  SPACE.ids: {{sql: SELECT id FROM src}}\n"
    whole = "  SPACE.m: {load: src, properties: {format-version: 3}}\n"

    bench.run(text + whole).require()

    assert bench.rows("SELECT id, m['a'], s.m['b'], to_json(v) FROM SPACE.m") == [(1, 1, 2, '{"x":[1]}')]
    assert bench.rows("SELECT id FROM SPACE.ids") == [(1,)]


def test_json_field_metadata_is_a_field(bench: Bench) -> None:
    """A field `_metadata` of the files hides Spark's column of this name, and is loaded as any other."""
    bench.add("a.json", '{"id": 1, "_metadata": {"x": 1}}\n')

    bench.run("sources: {src: a.json}\nsteps: {SPACE.meta: {load: src}}\n").require()

    assert bench.rows("SELECT id, _metadata.x FROM SPACE.meta") == [(1, 1)]


def test_empty_files_have_no_rows(bench: Bench) -> None:
    """Files of zero bytes are no error: alone they make a table without rows, and they are read when they have rows."""
    bench.add("d/a.csv", "")
    text = """
sources: {src: {files: "d/*.csv", schema: "id int, v int", options: {header: true}}}
steps: {SPACE.zero: {load: src, incremental: true, write: append}}
"""
    bench.run(text).require()
    assert bench.rows("SELECT * FROM SPACE.zero") == []
    bench.add("d/b.csv", "id,v\n1,2\n")
    bench.run(text).require()
    bench.add("d/a.csv", "id,v\n3,4\n")

    bench.run(text).require()

    assert bench.rows("SELECT * FROM SPACE.zero") == [(1, 2), (3, 4)]


def test_blanks_after_commas_are_ignored_by_option(bench: Bench) -> None:
    """`ignoreLeadingWhiteSpace` counts for the header, too, with a schema and without one."""
    bench.add("a.csv", "id,  name,  amount\n1,  ann,  2.5\n")
    options = "options: {header: true, ignoreLeadingWhiteSpace: true}"

    bench.run(
        f"sources:\n  src: {{files: a.csv, schema: 'id int, name string, amount double', {options}}}\n"
        f"  own: {{files: a.csv, {options}}}\n"
        "steps:\n  SPACE.blanks: {load: src}\n  SPACE.inferred: {load: own}\n"
    ).require()

    assert bench.rows("SELECT * FROM SPACE.blanks") == [(1, "ann", 2.5)]
    assert bench.rows("SELECT * FROM SPACE.inferred") == [(1, "ann", 2.5)]


@pytest.mark.parametrize("kinds", [("string", "int"), ("int", "string"), ("date", "string")])
def test_reference_between_types_warns(bench: Bench, kinds: tuple[str, str]) -> None:
    """A text that is no value of the other column's type matches nothing, and the run is published with a warning."""
    queries = {
        "int": "SELECT 1 AS code UNION ALL SELECT 2",
        "string": "SELECT 'x' AS code UNION ALL SELECT '2'",
        "date": "SELECT DATE '2026-01-01' AS code UNION ALL SELECT DATE '2026-01-02'",
    }
    codes, rows = (queries[kind] for kind in kinds)
    rule = "expect: [{references: SPACE.codes, columns: code, action: warn}]"

    ended = bench.run(f'steps:\n  SPACE.codes: {{sql: "{codes}"}}\n  SPACE.rows: {{sql: "{rows}", {rule}}}\n')

    ended.require()
    (finding,) = [each for each in bench.client.runs.load(ended.run).findings if each.kind == "references"]
    assert (finding.action, finding.broken) == ("warn", 2 if "date" in kinds else 1)


def test_equal_header_names_are_refused_with_the_names(bench: Bench) -> None:
    """Two columns of a header that are equal, or differ by case alone, are named."""
    bench.add("a.csv", "id,v,ID\n1,2,3\n")

    ended = bench.run("sources: {src: {files: a.csv, options: {header: true}}}\nsteps: {SPACE.t: {load: src}}\n")

    assert ended.state == "failed"
    assert "a.csv has the column 'id' and the column 'ID'" in ended.message


def test_null_time_of_a_history_is_named_as_declared(bench: Bench) -> None:
    """A row without a time names the declared `as_of`, and no column of the engine's own."""
    ended = bench.run(
        "steps:\n  SPACE.h:\n    sql: SELECT 1 AS id, CAST(NULL AS timestamp) AS changed\n"
        "    write: {mode: history, keys: id, as_of: changed}\n"
    )

    assert ended.state == "failed"
    assert "as_of changed=NULL" in ended.message
    assert "_limnos" not in ended.message


def test_comment_of_a_column_with_a_dot(bench: Bench) -> None:
    """The comment of a column whose name has a dot is set when the table is made, and changed later."""
    step = (
        "steps:\n  SPACE.t:\n    sql: 'SELECT 1 AS `a.b`, named_struct(''c'', 1) AS a'\n    columns: {{a.b: {}, a.c:"
        " two}}\n"
    )
    for comment in ("one", "new"):
        bench.run(step.format(comment)).require()

        fields = bench.client.tables.load(f"main.{bench.space}.t").metadata["schemas"][-1]["fields"]  # type: ignore[index]
        assert (fields[0]["doc"], fields[1]["type"]["fields"][0]["doc"]) == (comment, "two")


def test_source_of_a_steps_table_has_the_rows_of_the_run(bench: Bench) -> None:
    """A short name of a table that the run writes reads what the run wrote, not what was published before."""
    text = """
sources: {numbers: {table: SPACE.numbers}}
parameters: {count: {type: int, default: 1}}
steps:
  SPACE.numbers: {sql: SELECT id FROM range(:count)}
  SPACE.copy: {load: numbers}
"""
    bench.run(text).require()
    bench.run(text.replace("default: 1", "default: 2")).require()

    assert bench.rows("SELECT * FROM SPACE.copy") == [(0,), (1,)]
