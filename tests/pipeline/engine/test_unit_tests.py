# SPDX-License-Identifier: Apache-2.0
"""Unit tests of steps, run by Spark: SQL, Python and loaded sources, types of inputs, and mistakes in tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.engine.preview import resolve_columns
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.engine.unit_tests import UnitTestWork, run_unit_tests
from limnos.pipeline.graph import order_steps
from limnos.pipeline.project import load
from limnos.pipeline.reads import all_reads, tables
from limnos.pipeline.unit_test_results import UnitTestResult

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

TEXT = """
pipeline: shop
catalog: main
parameters: {least: {type: double, default: 5}, day: date}
sources:
  orders: {files: data/*.csv, schema: "id bigint, customer string, amount decimal(9,2), at date, tags array<string>"}
  untyped: data/*.csv
steps:
  raw.orders:
    load: orders
    tests:
      loaded: {parameters: {day: 2026-01-31}, given: {orders: [{id: 1, tags: [a, b]}]}, expect: [{id: 1, tags: [a, b], at: null}]}
  raw.history: {load: orders, write: {mode: history, keys: id}}
  marts.sums:
    sql: SELECT customer, sum(amount) AS total, max(at) AS last FROM raw.orders WHERE amount >= :least GROUP BY customer
    write: {mode: merge, keys: customer}
    tests:
      sums:
        given: {raw.orders: orders.csv}
        parameters: {day: 2026-01-31}
        expect: [{customer: ana, total: 12.5, last: 2026-01-30}, {customer: ben, total: 7}]
      wrong total:
        given: {raw.orders: [{customer: ana, amount: 7}]}
        parameters: {day: 2026-01-31, least: 1}
        expect: [{customer: ana, total: 8}, {customer: cem, total: 1}]
      no day: {given: {raw.orders: []}, expect: []}
      wrong day: {given: {raw.orders: []}, parameters: {day: soon}, expect: []}
      unknown parameter: {given: {raw.orders: []}, parameters: {day: 2026-01-31, leest: 1}, expect: []}
      no input: {parameters: {day: 2026-01-31}, expect: []}
      other input: {given: {raw.order: [], raw.orders: []}, parameters: {day: 2026-01-31}, expect: []}
      no date: {given: {raw.orders: [{at: yesterday}]}, parameters: {day: 2026-01-31}, expect: []}
      no column: {given: {raw.orders: [{amuont: 1}]}, parameters: {day: 2026-01-31}, expect: []}
      other result: {given: {raw.orders: []}, parameters: {day: 2026-01-31}, expect: [{totl: 1}]}
  marts.current:
    sql: SELECT id FROM raw.history WHERE is_current AND :run_at > valid_from
    tests:
      current:
        given: {raw.history: [{id: 1, is_current: true, valid_from: 1999-01-01T00:00:00Z}, {id: 2, is_current: false}]}
        parameters: {day: 2026-01-31}
        expect: [{id: 1}]
  marts.free:
    sql: SELECT a, b * 3 AS b FROM untyped
    tests:
      guessed: {given: {untyped: [{a: x, b: 0.1}]}, parameters: {day: 2026-01-31}, expect: [{a: x, b: 0.3}]}
      hostile:
        given: {untyped: [{a: "'); DROP TABLE x; -- \\u2028 ä", b: 1}]}
        parameters: {day: 2026-01-31}
        expect: [{a: "'); DROP TABLE x; -- \\u2028 ä", b: 3}]
      nothing known: {given: {untyped: []}, parameters: {day: 2026-01-31}, expect: []}
      declared: {given: {untyped: {rows: [], schema: "a int, b int"}}, parameters: {day: 2026-01-31}, expect: []}
      bad schema: {given: {untyped: {rows: [], schema: a nosuchtype}}, parameters: {day: 2026-01-31}, expect: []}
  marts.python:
    python: functions:large
    inputs: {sums: marts.sums}
    tests:
      large:
        given: {marts.sums: [{customer: ana, total: 1}, {customer: ben, total: 9}]}
        parameters: {day: 2026-01-31}
        expect: [{customer: BEN}]
  marts.broken:
    python: functions:broken
    inputs: {sums: marts.sums}
    tests:
      broken: {given: {marts.sums: []}, parameters: {day: 2026-01-31}, expect: []}
"""
FUNCTIONS = """
from pyspark.sql import functions as f


def large(sums, least):
    return sums.where(sums.total >= least).select(f.upper("customer").alias("customer"))


def broken(sums):
    return sums.select("nmae")
"""
CSV = "id,customer,amount,at\n1,ana,12.50,2026-01-30\n2,ana,4.20,2026-01-31\n3,ben,7.00,\n"
PASSED = ("loaded", "sums", "current", "guessed", "declared", "large", "hostile")
INVALID = {
    "no day": "parameter day (date) has no default; write parameters: {day: 2026-01-31} in the test",
    "wrong day": "parameter day: 'soon' is not a valid date",
    "unknown parameter": "the pipeline has no parameter 'leest'; did you mean 'least'?",
    "no input": "'given' lacks rows of raw.orders, which the step reads; write raw.orders: [] for none",
    "other input": "'given' has rows of raw.order, which the step does not read; did you mean 'raw.orders'?",
    "no date": "raw.orders, row 1: 'yesterday' of column 'at' is not date",
    "no column": "raw.orders has no column 'amuont'; did you mean 'amount'?",
    "other result": "'expect' has a column 'totl', which the step does not make; did you mean 'total'?",
    "nothing known": "untyped: its columns are not known; write {rows: [], schema:",
    "bad schema": "untyped: 'a nosuchtype' is not a list of columns; write 'id bigint, name string'",
}


def _write(directory: Path) -> Path:
    (directory / "functions.py").write_text(FUNCTIONS)
    (directory / "orders.csv").write_text(CSV)
    file = directory / "shop.yaml"
    file.write_text(TEXT)
    return file


@pytest.fixture
def results(spark: SparkSession, tmp_path: Path) -> dict[str, UnitTestResult]:
    """The results of all tests, by name."""
    pipeline = load(_write(tmp_path)).bind_functions()
    reads = tables(all_reads(pipeline, queries=partial(query_names, spark), catalogs=frozenset()))
    levels = order_steps(pipeline, reads)
    columns = resolve_columns(spark, pipeline, levels=levels, catalogs=frozenset())
    work = UnitTestWork(pipeline=pipeline, columns=columns)
    return {one.test: one for one in run_unit_tests(spark, work, steps=pipeline.steps, chosen=lambda _: True)}


def test_results_of_all_tests_are_as_expected(results: dict[str, UnitTestResult]) -> None:
    """Right tests pass, wrong ones fail with the rows, and mistakes in a test are named with advice."""
    states = {name: one.state for name, one in results.items()}
    wrong = results["wrong total"]

    assert {name for name, state in states.items() if state == "passed"} == set(PASSED)
    assert {name for name, state in states.items() if state == "invalid"} == set(INVALID)
    assert {name: text for name, text in INVALID.items() if text not in (results[name].message or "")} == {}
    assert wrong.message == "2 rows differ"
    assert [(one.kind, one.cells) for one in wrong.differences] == [
        ("differs", ("ana", "7.00 (expected 8.00)")),
        ("missing", ("cem", "1.00")),
    ]
    assert (results["broken"].message or "").startswith('functions.py:10, in broken: return sums.select("nmae")')
    assert "Project" not in (results["broken"].message or "")


def test_command_runs_tests_without_a_server(tmp_path: Path) -> None:
    """`limnos pipeline test` needs no server; its exit code tells failed tests, and JUnit's file has each test."""
    file = _write(tmp_path)
    text = file.read_text().replace("      wrong total:", "      unused:\n        expect: []\n      wrong total:")
    file.write_text(text)
    report = tmp_path / "junit.xml"
    command = [str(Path(sys.executable).with_name("limnos")), "pipeline", "test", str(file), "--output", "json"]
    environment = {**os.environ, "LIMNOS_URI": "http://127.0.0.1:9"}

    ended = subprocess.run(
        [*command, "--select", "marts.sums", "--test", "*s*", "--junit", str(report)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )

    states = {one["test"]: one["state"] for one in json.loads(ended.stdout)}
    assert ended.returncode == 2
    assert states == {"sums": "passed", "unused": "invalid", "other result": "invalid"}
    assert report.read_text().count("<testcase") == 3


LOOP = """\
pipeline: p
catalog: main
sources: {orders: {files: x.csv, schema: "id bigint, country string"}}
steps:
  raw.orders_{{country}}:
    for_each: {query: "SELECT country FROM raw.countries"}
    sql: SELECT * FROM orders WHERE country = '{{country}}'
    tests:
      others are left out:
        given: {orders: [{id: 1, country: '{{country}}'}, {id: 2, country: fr}]}
        expect: [{id: 1, country: WORD}]
"""


@pytest.mark.parametrize(
    "word,example,state",
    [("any_country", "", "passed"), ("de", ", example: {country: de}", "passed"), ("de", "", "failed")],
)
def test_command_tests_the_step_of_a_loop_once(tmp_path: Path, word: str, example: str, state: str) -> None:
    """The test of a loop over a query runs once, with the loop's example or with a word that stands for any value."""
    file = tmp_path / "p.yaml"
    file.write_text(LOOP.replace("WORD", word).replace('countries"}', f'countries"{example}}}'))
    command = [str(Path(sys.executable).with_name("limnos")), "pipeline", "test", str(file), "--output", "json"]

    ended = subprocess.run(
        [*command, "--select", "raw.orders_*"],
        capture_output=True,
        text=True,
        env={**os.environ, "LIMNOS_URI": "http://127.0.0.1:9"},
        check=False,
    )

    results = json.loads(ended.stdout)
    assert [(one["step"], one["test"], one["state"]) for one in results] == [
        ("raw.orders_{{country}}", "others are left out", state)
    ], ended.stderr
