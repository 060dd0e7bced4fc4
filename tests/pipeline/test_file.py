# SPDX-License-Identifier: Apache-2.0
"""A pipeline's file: its declaration, and the errors of invalid files."""

from __future__ import annotations

import copy
import json
import random
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from limnos.pipeline.compound_schemas import Cases, ListOf, MapOf, Record, RecordKey
from limnos.pipeline.declaration import (
    Expectation,
    ExpectationAction,
    Load,
    ParameterType,
    Pipeline,
    PythonStep,
    RuleKind,
    Sql,
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.file import build_schema_text, load, read, schema_text
from limnos.pipeline.keys import FILE
from limnos.pipeline.node_schemas import NodeSchema
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.source_declarations import (
    Files,
    HarvestSource,
    Jdbc,
    MalformedRowPolicy,
    RegistrationSource,
    TableSource,
)

Json = Any
"""JSON values; the schema describes their shape."""

HEAD = "pipeline: p\ncatalog: main\n"


def _read(text: str, *, directory: Path = Path()) -> Pipeline:
    return read(textwrap.dedent(text), file="p.yaml", directory=directory)


def _problems(text: str, *, directory: Path = Path()) -> list[str]:
    with pytest.raises(InvalidPipeline) as refused:
        _read(text, directory=directory)
    return [str(problem) for problem in refused.value.problems]


def _steps(text: str) -> str:
    return HEAD + "steps:\n" + textwrap.indent(textwrap.dedent(text), "  ")


def test_harvest_and_its_registration_are_sources() -> None:
    """Both have their columns without a run; all formats are harvested, and Iceberg tables registered, by default."""
    sources = "{h: {harvest: s3://b/wh, formats: lance}, r: {register: a.t, into: main.raw}}"
    pipeline = _read(HEAD + f"sources: {sources}\nsteps: {{a.t: {{load: h}}, a.o: {{load: r}}}}\n")

    assert [source.kind for source in pipeline.sources] == [
        HarvestSource(root="s3://b/wh", formats=("lance",)),
        RegistrationSource(table=("a", "t"), into=("main", "raw")),
    ]
    assert all(source.schema is not None for source in pipeline.sources)
    for source in ("{harvest: /x, formats: [orc]}", "{register: a.t}", "{register: a.t, into: m, formats: delta}"):
        assert _problems(HEAD + f"sources: {{h: {source}}}\nsteps: {{a.t: {{load: h}}}}\n")


def test_harvest_of_a_metastore_has_iceberg_tables_alone() -> None:
    """A metastore is harvested for Iceberg tables, and other formats are refused."""
    steps = "steps: {a.t: {load: h}}\n"
    pipeline = _read(HEAD + "sources: {h: {harvest: 'thrift://hms:9083'}}\n" + steps)

    assert [source.kind for source in pipeline.sources] == [
        HarvestSource(root="thrift://hms:9083", formats=("iceberg",))
    ]
    (problem,) = _problems(HEAD + "sources: {h: {harvest: 'thrift://hms:9083', formats: [iceberg, delta]}}\n" + steps)
    assert "leave out 'formats'" in str(problem)


def test_file_needs_only_name_catalog_and_query() -> None:
    """A file needs only a name, a catalog and a query; everything else has a default."""
    pipeline = _read(_steps("a.t: {sql: SELECT 1}"))

    step = pipeline.steps[0]
    assert (pipeline.name, pipeline.catalog, step.table, step.body) == (
        "p",
        "main",
        ("main", "a", "t"),
        Sql(text="SELECT 1"),
    )
    assert step.write == WriteDeclaration(mode=WriteMode.REPLACE)


def test_step_names_another_catalog() -> None:
    """A step's `catalog` is that of its table, and `after` finds the step by its name."""
    pipeline = _read(_steps("a.t: {catalog: other, sql: SELECT 1}\na.u: {sql: SELECT 1, after: a.t}"))

    assert [step.table for step in pipeline.steps] == [("other", "a", "t"), ("main", "a", "u")]
    assert pipeline.steps[1].after == (("other", "a", "t"),)


LONG = """
pipeline: p
catalog: main
parameters: {day: date, limit: {type: int, default: 10, comment: Rows.}}
sources:
  flights: data/flights.csv.gz
  typed: {files: "s3://b/x/*", format: csv, schema: id bigint, options: {header: true, maxColumns: 1e3}, malformed: keep}
  airports: {table: raw.`n.y`.airports, comment: Places.}
  orders: {jdbc: "jdbc:postgresql://db/shop", query: SELECT 1, user: u, password_env: PW, partition_column: id, partitions: 4}
steps:
  a.merged:
    sql_file: q.sql
    write: {mode: merge, keys: id, delete_when: op = 'D', delete_missing: true}
    incremental: true
    partition: [days(day), "bucket(16, id)"]
    sort: day desc
    columns: {id: The number., op: {comment: What.}}
    allow: {drop: old, narrow: [x, y]}
    expect:
      - id > 0
      - {row: op IS NOT NULL, action: quarantine, tolerated: 1%, name: known}
      - {unique: [id, op], action: warn}
      - {references: raw.nyc.airlines, columns: op, to: code}
      - {rows: {min: 1, max: 5}}
      - {fresh: day, within: 36h}
      - {no_fewer_rows: true, tolerated: 0.05}
      - {empty: SELECT 1 WHERE false}
  a.python: {python: "delays:make", inputs: {flights: flights, other: raw.x.y}, after: [a.merged]}
  a.loaded: {load: flights, properties: {format-version: 3}}
"""


def test_every_part_of_declaration_can_be_written_in_file(tmp_path: Path) -> None:
    """Each part of the declaration can be written in a file."""
    (tmp_path / "q.sql").write_text("SELECT * FROM orders\n")
    (tmp_path / "delays.py").write_text("def make(flights, other): return flights\n")
    pipeline = _read(
        LONG,
        directory=tmp_path,
    )

    merged, python, loaded = pipeline.steps
    flights, typed, airports, orders = (source.kind for source in pipeline.sources)
    assert [(one.name, one.type, one.default) for one in pipeline.parameters] == [
        ("day", ParameterType.DATE, None),
        ("limit", ParameterType.INT, 10),
    ]
    assert flights == Files(path="data/flights.csv.gz", format="csv")
    assert typed == Files(
        path="s3://b/x/*",
        format="csv",
        schema="id bigint",
        options={"header": "true", "maxColumns": "1e3"},
        malformed=MalformedRowPolicy.KEEP,
    )
    assert airports == TableSource(table=("raw", "n.y", "airports"))
    assert orders == Jdbc(
        url="jdbc:postgresql://db/shop",
        query="SELECT 1",
        user="u",
        password_env="PW",
        partition_column="id",
        partitions=4,
    )
    assert merged.body == Sql(text="SELECT * FROM orders\n")
    assert merged.write == WriteDeclaration(
        mode=WriteMode.MERGE, keys=("id",), delete_when="op = 'D'", delete_missing=True
    )
    assert (merged.incremental, merged.partition, merged.sort) == (True, ("days(day)", "bucket(16, id)"), ("day desc",))
    assert [(one.name, one.comment) for one in merged.columns] == [("id", "The number."), ("op", "What.")]
    assert (merged.allowed.drop, merged.allowed.narrow) == (("old",), ("x", "y"))
    assert merged.expectations == (
        Expectation(name="id > 0", kind=RuleKind.ROW, condition="id > 0"),
        Expectation(
            name="known",
            kind=RuleKind.ROW,
            condition="op IS NOT NULL",
            action=ExpectationAction.QUARANTINE,
            tolerated=0.01,
        ),
        Expectation(name="unique id op", kind=RuleKind.UNIQUE, columns=("id", "op"), action=ExpectationAction.WARN),
        Expectation(
            name="references op",
            kind=RuleKind.REFERENCES,
            columns=("op",),
            table=("raw", "nyc", "airlines"),
            table_columns=("code",),
        ),
        Expectation(name="rows min 1 max 5", kind=RuleKind.ROWS, rows_min=1, rows_max=5),
        Expectation(name="fresh day", kind=RuleKind.FRESH, columns=("day",), within_s=36 * 3600),
        Expectation(name="no_fewer_rows", kind=RuleKind.NO_FEWER_ROWS, tolerated=0.05),
        Expectation(name="empty SELECT 1 WHERE false", kind=RuleKind.EMPTY, query="SELECT 1 WHERE false"),
    )
    assert python.body == PythonStep(function="delays:make", inputs={"flights": "flights", "other": ("raw", "x", "y")})
    assert (python.after, pipeline.python_files) == ((("main", "a", "merged"),), ("delays.py",))
    assert (loaded.body, loaded.properties) == (Load(source="flights"), {"format-version": "3"})


def test_history_mode_accepts_all_its_keys() -> None:
    """The write mode `history` accepts all of its keys."""
    step = _read(
        _steps(
            "a.t: {sql: SELECT 1, write: {mode: history, keys: [a, b], tracked: c, as_of: now(), valid_from: f,"
            " valid_to: t, current: is_now, delete_missing: true}}"
        )
    ).steps[0]

    assert step.write == WriteDeclaration(
        mode=WriteMode.HISTORY,
        keys=("a", "b"),
        tracked=("c",),
        as_of="now()",
        valid_from="f",
        valid_to="t",
        current="is_now",
        delete_missing=True,
    )


PLACES = {
    "a.t:\n  sql: SELECT 1": (5, 10),
    "a.t:\n  sql: 'SELECT 1'": (5, 11),
    "a.t:\n  sql: |\n    SELECT 1": (6, 7),
    "a.t:\n  sql: |\n\n      SELECT 1": (6, 9),
    "a.t: {sql: 😀 SELECT 1}": (4, 14),
}


@pytest.mark.parametrize("text", PLACES)
def test_error_in_query_is_reported_at_line_of_file(text: str) -> None:
    """An error in the third line of a query is reported at the line of the file."""
    body = _read(_steps(text)).steps[0].body

    assert isinstance(body, Sql)
    assert body.at == SourcePosition("p.yaml", *PLACES[text])


@pytest.mark.parametrize(
    "query, column",
    [
        ("SELECT * FROM {{ ref('orders') }}", 29),
        ("SELECT * FROM {{source('raw', 'orders')}}", 29),
        ("SELECT * FROM a.b WHERE x > {{ var('least') }}", 43),
        ("SELECT 1 {% if is_incremental() %} WHERE y {% endif %}", 24),
        ("SELECT * FROM {{ this }}", 29),
    ],
)
def test_jinja_in_a_query_is_refused_at_its_place(query: str, column: int) -> None:
    """A query with blocks or calls of Jinja is refused where the first one begins, with what to write in its place."""
    with pytest.raises(InvalidPipeline, match="Jinja is not rendered: a query names its tables") as error:
        _read(_steps(f'a.t: {{sql: "{query}"}}'))

    assert str(error.value).startswith(f"p.yaml:4:{column}: ")


WRONG = {
    "pipeline: p\ncatalog: main\nstep: {}": [
        "p.yaml:1:1: the file needs 'steps': steps: {curated.nyc.delays: {sql: SELECT 1}}",
        "p.yaml:3:1: unknown key 'step'; did you mean 'steps'?",
    ],
    _steps("a.t: {sqll: SELECT 1}"): [
        "p.yaml:4:8: a step needs one of sql, sql_file, python, load",
        "p.yaml:4:9: unknown key 'sqll'; did you mean 'sql'?",
    ],
    _steps("a.t: {sql: SELECT 1, unique_key: id, tags: [a]}"): [
        "p.yaml:4:24: unknown key 'unique_key'; keys belong to write: {mode: merge, keys: [id]}"
    ],
    "pipeline: p\ncatalog: main\nmodels: {}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:1: unknown key 'models'; steps: has a key for each table, as raw.shop.orders: {sql: SELECT …}"
    ],
    _steps("a.t: {sql: SELECT 1, load: x}"): ["p.yaml:4:24: a step has sql and load: only one of them"],
    _steps("a.t: {sql: SELECT 1, inputs: [x]}"): ["p.yaml:4:24: 'inputs' is only valid together with 'python'"],
    _steps("a.t: {sql: 5}"): ["p.yaml:4:14: SQL is expected, not '5'; put it in quotes"],
    _steps("a.t: {sql: ''}"): ["p.yaml:4:14: SQL is expected, not an empty string"],
    _steps("a.t: {sql: }"): ["p.yaml:4:14: SQL is expected, not nothing"],
    _steps("a.t: {sql: [SELECT 1]}"): ["p.yaml:4:14: SQL is expected, not a list"],
    _steps("a.t: {sql: SELECT 1, columns: {b: Sum, in grams}}"): [
        "p.yaml:4:50: text is expected, not nothing; a string with a comma within {…} needs quotes"
    ],
    _steps("a.t: SELECT 1"): [
        (
            "p.yaml:4:8: a step: a mapping (sql, sql_file, python, inputs, load, for_each, catalog, write, incremental,"
            " partition, sort, properties, embed, vectors, indexes, columns, comment, allow, expect, tests, tags, after) is"
            " expected, not 'SELECT 1'"
        )
    ],
    _steps("t: {sql: SELECT 1}"): ["p.yaml:4:3: 't' has no namespace: write it like curated.t"],
    _steps("main.a.t: {sql: SELECT 1}"): ["p.yaml:4:3: leave the catalog out: write a.t"],
    _steps("a.t: {sql: SELECT 1}\na.t: {sql: SELECT 2}"): ["p.yaml:5:3: 'a.t' is repeated here; first in line 4"],
    _steps("a..t: {sql: SELECT 1}"): ["p.yaml:4:3: The name 'a..t' has an empty part at character 3. Remove a dot."],
    _steps("a.t: {sql: SELECT 1, write: merge}"): ["p.yaml:4:31: 'merge' needs keys: write {mode: merge, keys: [id]}"],
    _steps("a.t: {sql: SELECT 1, write: replce}"): [
        "p.yaml:4:31: 'replce' is not one of replace, append, partitions; did you mean 'replace'?"
    ],
    _steps("a.t: {sql: SELECT 1, write: {mode: append, keys: [a]}}"): [
        "p.yaml:4:46: unknown key 'keys'; 'write: append' takes mode"
    ],
    _steps("a.t: {sql: SELECT 1, write: {mode: merge}}"): [
        "p.yaml:4:31: 'write: merge' needs 'keys': keys: [flight_id]"
    ],
    _steps("a.t: {sql: SELECT 1, write: {keys: [a]}}"): [
        "p.yaml:4:31: 'write' needs 'mode', one of replace, append, partitions, merge, history"
    ],
    _steps("a.t: {sql: SELECT 1, incremental: yes}"): ["p.yaml:4:37: true or false is expected, not 'yes'"],
    _steps("a.t: {sql: SELECT 1, partition: day(}"): None,
    _steps("a.t: {sql: SELECT 1, sort: []}"): ["p.yaml:4:30: the list is empty: leave the key out"],
    _steps("a.t: {sql: SELECT 1, expect: [{row: a, tolerated: 101%}]}"): [
        "p.yaml:4:53: a share from 0% to 100% is expected (1%, 0.01), not '101%'"
    ],
    _steps("a.t: {sql: SELECT 1, expect: [{row: a, tolerated: .nan}]}"): [
        "p.yaml:4:53: .nan is not a number that can be used here"
    ],
    _steps("a.t: {sql: SELECT 1, expect: [{unique: a, action: drop}]}"): [
        "p.yaml:4:53: 'drop' is not one of fail, warn"
    ],
    _steps("a.t: {sql: SELECT 1, expect: [{uniqe: a}]}"): [
        (
            "p.yaml:4:33: an expectation needs one of row, unique, not_null, references, rows, fresh, no_fewer_rows, empty;"
            " did you mean 'unique'?"
        )
    ],
    _steps("a.t: {sql: SELECT 1, expect: [{fresh: a, within: 2 dayz}]}"): [
        "p.yaml:4:52: a duration is expected ('2 days', 36h, '90 minutes'), not '2 dayz'"
    ],
    _steps("a.t: {sql: SELECT 1, expect: [{rows: {min: 3, max: 2}}]}"): ["p.yaml:4:40: min 3 is more than max 2"],
    _steps("a.t: {sql: SELECT 1, expect: [{rows: {}}]}"): ["p.yaml:4:40: 'rows' needs min or max"],
    _steps("a.t: {sql: SELECT 1, expect: [{no_fewer_rows: false}]}"): [
        "p.yaml:4:49: only 'true' is allowed here; leave the key out instead"
    ],
    _steps("a.t: {sql: SELECT 1, expect: [a > 1, {row: b, name: a > 1}]}"): [
        "p.yaml:4:8: two expectations are called 'a > 1': give them different names"
    ],
    _steps("a.t:\n  sql: >\n    SELECT 1 -- one\n    FROM b.c"): [
        "p.yaml:5:10: a comment (--) in lines that YAML joins hides the lines after it: begin the string with '|'"
    ],
    _steps("a.t: {sql_file: ../q.sql}"): [
        "p.yaml:4:8: '../q.sql' is outside of the pipeline's directory; move it to that directory or below"
    ],
    _steps("a.t: {sql_file: /etc/passwd}"): [
        "p.yaml:4:8: '/etc/passwd' is not inside the pipeline's directory: write a path relative to its file"
    ],
    _steps("a.t: {python: no_such_module:f}"): [
        "p.yaml:4:8: there is no module 'no_such_module': neither no_such_module.py beside the file nor installed"
    ],
    _steps("a.t: {python: make.py}"): [
        (
            "p.yaml:4:17: 'make.py' is not allowed here: write module:function, like delays:make for 'make' in delays.py"
            " beside the file"
        )
    ],
    _steps("a.t: {sql: SELECT 1, 2}"): [
        "p.yaml:4:24: '2' has no value; a comma within {…} ends a string, unless it is in quotes"
    ],
    _steps("a.t: {sql: &a SELECT 1, <<: *a}"): [
        "p.yaml:4:27: merge keys ('<<') are not supported: write the keys out, or use an alias for a whole value"
    ],
    HEAD + "parameters: {day: dat}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:19: 'dat' is not one of string, int, double, boolean, date, timestamp; did you mean 'date'?"
    ],
    HEAD + "parameters: {day: {type: date, default: 2026-02-31}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:19: the default '2026-02-31' is not a valid date: write it like 2026-01-31"
    ],
    HEAD + "parameters: {n: {type: int, default: 1.5}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:17: the default 1.5 is not a valid int"
    ],
    HEAD + "parameters: {run_id: string}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:14: every run has 'run_id' already: choose another name"
    ],
    HEAD + "sources: {x: raw.nyc.t}\nsteps: {a.t: {sql: SELECT 1}}": [
        (
            "p.yaml:3:14: 'raw.nyc.t' is not allowed here: a source written as a string is a path that ends in its format"
            " (data/*.csv); write 'files:' with 'format:' for others, 'table:' for a table, 'python:' for a function"
        )
    ],
    HEAD + "sources: {x: {files: data/*}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:14: the format of 'data/*' does not follow from its ending: add 'format: csv' (or another)"
    ],
    HEAD + "sources: {x: {tabel: a.b}}\nsteps: {a.t: {sql: SELECT 1}}": [
        (
            "p.yaml:3:14: a source needs one of files, jdbc, kafka, python, harvest, register, stream, storage, system,"
            " table; did you mean"
            " 'table'?"
        )
    ],
    HEAD + "sources: {x: {jdbc: 'jdbc:postgresql://u:secret@h/d', table: t}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:14: a password is not allowed in the file: name its environment variable in 'password_env'"
    ],
    HEAD + "sources: {x: {jdbc: 'jdbc:x', table: t, options: {password: secret}}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:14: a password is not allowed in the file: name its environment variable in 'password_env'"
    ],
    HEAD + "sources: {x: {jdbc: 'jdbc:oracle:thin:shop/secret@//h/d', table: t}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:14: a password is not allowed in the file: name its environment variable in 'password_env'"
    ],
    HEAD + "sources: {x: {stream: {files: a.csv}}}\nsteps: {a.t: {sql: SELECT 1}}": [
        "p.yaml:3:23: a stream of files needs 'schema': there may be no file yet to infer it from"
    ],
    HEAD + 'schedule: {cron: "0 25 * * MON-FRI"}\nsteps: {a.t: {sql: SELECT 1}}': [
        (
            "p.yaml:3:11: '0 25 * * MON-FRI' is not a cron expression: Bad hour; write minute, hour, day of month, month"
            " and day of week, like '0 6 * * MON-FRI'"
        )
    ],
    HEAD + 'schedule: {cron: "0 5 * * *", time_zone: CEST}\nsteps: {a.t: {sql: SELECT 1}}': [
        "p.yaml:3:11: 'CEST' is not a time zone; write a name like Europe/Paris"
    ],
    HEAD
    + 'schedule: {cron: "0 5 * * *", if_changed: true}\nsources: {x: a.csv}\nsteps: {a.t: {sql: SELECT * FROM x}}': [
        (
            "p.yaml:4:11: source 'x' is no table, and the schedule has 'if_changed': the server sees changes of tables"
            " only; leave 'if_changed' out"
        )
    ],
    HEAD + "python_files: [no.py]\nsteps: {a.t: {sql: SELECT 1}}": ["p.yaml:1:1: there is no 'no.py' in ."],
    HEAD + "steps: {}": [
        (
            "p.yaml:3:8: it is empty: a mapping from a table's name to a mapping (sql, sql_file, python, inputs, load,"
            " for_each, catalog, write, incremental, partition, sort, properties, embed, vectors, indexes, columns,"
            " comment, allow, expect, tests, tags, after) is expected"
        )
    ],
    "- a": [
        (
            "p.yaml:1:1: the file: a mapping (pipeline, catalog, comment, parameters, sources, steps, python_files,"
            " environments, schedule) is expected, not a list"
        )
    ],
    "": ["p.yaml:1:1: the file is empty: begin with 'pipeline: NAME'"],
    "a: [": None,
}


@pytest.mark.parametrize("text", WRONG)
def test_problems_are_reported_by_position_with_advice(text: str) -> None:
    """All problems of the file are reported at once, in order of position, with advice."""
    problems = _problems(text)

    assert problems == (WRONG[text] or problems)
    assert all(problem.startswith("p.yaml:") for problem in problems)


def test_mistakes_in_several_steps_are_all_reported() -> None:
    """One mistake in each of three steps gives three problems."""
    text = _steps("a.x: {sql: 1}\na.y: {sql: SELECT 1, wriet: append}\na.z: {load: 'a b'}")

    assert [problem.split(" ")[0] for problem in _problems(text)] == ["p.yaml:4:14:", "p.yaml:5:24:", "p.yaml:6:15:"]


def test_symlink_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    """A symbolic link that leads out of the directory is refused."""
    (tmp_path / "outside.sql").write_text("SELECT 1")
    inside = tmp_path / "p"
    inside.mkdir()
    (inside / "q.sql").symlink_to(tmp_path / "outside.sql")

    assert "is outside" in _problems(_steps("a.t: {sql_file: q.sql}"), directory=inside)[0]


def test_load_reports_missing_and_invalid_files(tmp_path: Path) -> None:
    """`load` takes a path; files that are missing, not text, or not pipelines are errors with that reason."""
    good, binary = tmp_path / "p.yaml", tmp_path / "b.yml"
    good.write_text("\ufeff" + _steps("a.t: {sql: SELECT 1}"), encoding="utf-8")
    binary.write_bytes(b"pipeline: \xff")

    assert load(good).steps[0].at == SourcePosition(str(good), 4, 3)
    for path, reason in (
        (binary, "UTF-8"),
        (tmp_path / "no.yaml", "can't be read"),
        (tmp_path / "p.txt", ".yaml or .py"),
    ):
        with pytest.raises(InvalidPipeline, match=reason):
            load(path)


def test_ten_thousand_steps_and_a_megabyte_of_sql_are_accepted() -> None:
    """Ten thousand steps and a megabyte of SQL are accepted."""
    many = "".join(f"  a.t{index}:\n    sql: SELECT {index} AS x\n" for index in range(10_000))
    long = (
        "  a.long:\n    sql: |\n" + "      SELECT 'a long line of text' AS x UNION ALL\n" * 22_000 + "      SELECT 1\n"
    )

    assert len(_read(HEAD + "steps:\n" + many).steps) == 10_000
    assert len(_read(HEAD + "steps:\n" + long).steps) == 1


def test_message_lists_twenty_problems_and_counts_the_rest() -> None:
    """The message lists twenty problems and counts the rest."""
    text = _steps("".join(f"a.t{index}: {{sql: 1}}\n" for index in range(50)))

    with pytest.raises(InvalidPipeline) as refused:
        _read(text)

    assert len(refused.value.problems) == 50
    assert str(refused.value).splitlines()[-1] == "and 30 more problems"


# ------------------------------------------------------------------------------------------------- schema


def _children(schema: NodeSchema) -> Iterator[NodeSchema]:
    if isinstance(schema, Record):
        yield from (key.value_schema for key in schema.keys.values())
    elif isinstance(schema, Cases):
        yield from schema.cases.values()
    elif isinstance(schema, ListOf):
        yield schema.item
    elif isinstance(schema, MapOf):
        yield from (schema.key, schema.value)


def _records(schema: NodeSchema) -> Iterator[Record]:
    if isinstance(schema, Record):
        yield schema
    for child in _children(schema):
        yield from _records(child)


def test_committed_schema_equals_generated_schema() -> None:
    """The committed schema equals the generated one; `make docs` writes it."""
    assert schema_text() == build_schema_text()


def test_schema_is_valid_and_describes_every_key() -> None:
    """The schema is valid JSON Schema 2020-12 and has a description for every key."""
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))

    assert [
        (record.name, name) for record in _records(FILE) for name, key in record.keys.items() if not key.description
    ] == []


def _example(name: str, key: RecordKey) -> Json:
    return yaml.load(key.example, Loader=yaml.BaseLoader if "2026" in key.example else yaml.SafeLoader)[name]


def _random_value(dice: random.Random, schema: NodeSchema, example: Json) -> Json:
    """A random value of a schema: of records, random keys with the values of their examples, or random ones again."""
    if isinstance(schema, Cases):
        if schema.short is not None and isinstance(example, (str, int, float)) and dice.random() < 0.3:
            return example
        return _random_value(dice, dice.choice(list(schema.cases.values())), None)
    if isinstance(schema, ListOf) and isinstance(schema.item, (Record, Cases)):
        return [_random_value(dice, schema.item, None) for _ in range(dice.randrange(1, 3))]
    if isinstance(schema, MapOf) and isinstance(schema.value, (Record, Cases)):
        names = ["x.y", "z.`w w`"] if schema.key.word == "a table's name" else ["x", "y_1"]
        values = {name: _random_value(dice, schema.value, None) for name in names[: dice.randrange(1, 3)]}
        return {_loop_name(name, value): value for name, value in values.items()}
    if not isinstance(schema, Record):
        return example
    chosen = {dice.choice(schema.one_of)} if schema.one_of else set()
    chosen |= {dice.choice(schema.some_of)} if schema.some_of else set()
    for name, key in schema.keys.items():
        free = name not in schema.one_of and schema.together.get(name, name) in {name, *chosen}
        if key.required or (free and dice.random() < 0.4):
            chosen.add(name)
    return {
        name: _random_value(dice, key.value_schema, _example(name, key))
        for name, key in schema.keys.items()
        if name in chosen
    }


def _loop_name(name: str, value: Json) -> str:
    """The name of a step, with the variable of its loop if it has one."""
    return f"looped.{name[0]}_{{{{country}}}}" if isinstance(value, dict) and "for_each" in value else name


SPOILED = ("unknown", "missing", "type")


def _spoil(dice: random.Random, value: Json, kind: str) -> bool:
    """Make one structural mistake in a file. Returns whether the file has a place for it."""
    step = dice.choice(list(value["steps"].values()))
    record = dice.choice([value, step])
    if kind == "unknown":
        record["no_such_key"] = 1
    elif kind == "missing":
        del value[dice.choice(["pipeline", "catalog", "steps"])]
    else:
        record[dice.choice(list(record))] = {"no": [{"such": 1}]}
    return True


def _both(value: Json, directory: Path) -> tuple[bool, bool]:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    try:
        read(json.dumps(value), file="p.yaml", directory=directory)
    except InvalidPipeline:
        return validator.is_valid(value), False
    return validator.is_valid(value), True


def test_schema_and_loader_agree_on_random_files(tmp_path: Path) -> None:
    """The schema accepts every file that the loader accepts; both refuse files with a structural mistake."""
    (tmp_path / "delays.py").write_text("def make(flights=None, airlines=None): ...")
    (tmp_path / "weather.py").write_text("def batches(): ...")
    (tmp_path / "embeddings.py").write_text("def embed(batch, model): ...\n\n\ndef load(): ...")
    (tmp_path / "units.py").touch()
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "delays.sql").write_text("SELECT 1")
    dice = random.Random(20261121)
    right = 0
    for _ in range(120):
        value = _random_value(dice, FILE, None)
        by_schema, by_loader = _both(value, tmp_path)
        assert by_schema or not by_loader, value
        right += by_loader
        for kind in SPOILED:
            spoiled = copy.deepcopy(value)
            _spoil(dice, spoiled, kind)
            assert _both(spoiled, tmp_path) == (False, False), (kind, spoiled)
    assert right > 80


@pytest.mark.parametrize(
    "source,parameters,words",
    [
        ("system: audit, last_days: days", "day: int", "there is no parameter 'days'"),
        (
            "system: audit, last_days: days",
            "days: date",
            "'last_days' needs a parameter of type int, and 'days' is date",
        ),
        ("system: audit, last_days: 2", "days: int", "text is expected, not '2'"),
        ("system: nodes, last_days: days", "days: int", "'last_days' needs a table with the column occurred_at"),
        ("system: nodes, columns: [id, size]", "days: int", "'columns' has 'size', which is not one of the columns id"),
        (
            "storage: findings, footers: deep",
            "days: int",
            "'footers' names a parameter, and there is no parameter 'deep'",
        ),
        ("storage: findings, footers: days", "days: int", "'footers' needs a parameter of type boolean"),
        ("storage: files", "days: int", "findings"),
        ("storage: columns, footers: deep", "deep: boolean", "'footers' belongs to 'storage: findings'"),
        ("storage: findings, where: {kind: table}", "days: int", "where"),
    ],
)
def test_parameters_of_sources_are_checked(source: str, parameters: str, words: str) -> None:
    """A source names a declared parameter of the type that it needs."""
    text = f"parameters: {{{parameters}}}\nsources: {{s: {{{source}}}}}\nsteps: {{a.t: {{sql: SELECT * FROM s}}}}\n"

    assert words in _problems(HEAD + text)[0]
