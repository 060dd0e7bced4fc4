# SPDX-License-Identifier: Apache-2.0
"""Unit tests in a pipeline's file: mistakes in their keys, differing rows, and JUnit's XML."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.file import read
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.run.record_json import step_digest
from limnos.pipeline.unit_test_results import (
    DIFFERENCES_MAX,
    ColumnValue,
    UnitTestResult,
    Values,
    differing_rows,
    junit_xml,
)

HEAD = "pipeline: p\ncatalog: main\nsources: {x: x.csv}\nsteps:\n  a.t:\n    load: x\n    tests:\n"
SLIPS = {
    # the text of `tests`, from its first line on: the answer
    "      one: {givn: {x: []}, expect: []}": "p.yaml:8:13: unknown key 'givn'; did you mean 'given'?",
    "      one: {given: {x: []}}": "p.yaml:8:12: a test needs 'expect'",
    "      one: {given: x, expect: []}": "p.yaml:8:20: a mapping from a source or table",
    "      one: {given: {x: [1]}, expect: []}": "p.yaml:8:25: a row is a mapping {column: value}, not '1'",
    "      one: {given: {x: [{a: 1, A: 2}]}, expect: []}": "the columns 'a' and 'A' differ by case alone",
    "      one: {given: {x: rows.csv}, expect: []}": "p.yaml:8:24: there is no 'rows.csv'",
    "      one: {given: {x: ../x.csv}, expect: []}": "p.yaml:8:24: '../x.csv' is outside",
    "      one: {given: {x: ragged.csv}, expect: []}": "ragged.csv:3:1: the row has 1 value, and there are 2 columns (a, b)",
    "      one: {given: {x: twins.csv}, expect: []}": "twins.csv:1:1: there are two columns 'a': each has its own name",
    "      one: {given: {x: empty.csv}, expect: []}": "'empty.csv' is empty: its first line must have the names",
    "      one: {given: {x: quotes.csv}, expect: []}": "quotes.csv:2:1: text follows a closing quote",
    "      one: {given: {x: {row: []}}, expect: []}": "p.yaml:8:25: unknown key 'row'; did you mean 'rows'?",
    "      one: {given: {x: {rows: 1}}, expect: []}": "p.yaml:8:31: a list of rows is expected, not '1'",
    "      one: {parameters: {day: [1]}, expect: []}": "p.yaml:8:31: text or a number is expected, not a list",
    "      - {given: {x: []}, expect: []}": "p.yaml:8:7: a mapping from a test's name",
}


def _problems(text: str, directory: Path) -> str:
    (directory / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (directory / "twins.csv").write_text("a,a\n1,2\n")
    (directory / "empty.csv").write_text("")
    (directory / "quotes.csv").write_text('a\n"x"y\n')
    with pytest.raises(InvalidPipeline) as error:
        read(HEAD + text + "\n", file="p.yaml", directory=directory)
    return error.value.message


@pytest.mark.parametrize("text, answer", SLIPS.items())
def test_mistake_in_a_test_has_place_and_advice(text: str, answer: str, tmp_path: Path) -> None:
    """A mistake in the keys, the rows or the CSV file of a test is reported at its line and column."""
    assert answer in _problems(text, tmp_path)


def _row(*values: object) -> Values:
    return tuple(ColumnValue(value, str(value)) for value in values)


def test_rows_are_compared_as_multisets() -> None:
    """The order of rows does not matter, their number does."""
    same, none = differing_rows([_row(1), _row(2), _row(2)], [_row(2), _row(1), _row(2)])
    rows, count = differing_rows([_row(1)], [_row(1), _row(1)])

    assert (same, none) == ((), 0)
    assert ([(one.kind, one.cells) for one in rows], count) == ([("unexpected", ("1",))], 1)


def test_differing_rows_are_paired_by_keys_or_by_likeness() -> None:
    """With keys, rows of one key are a pair; without, the rows that agree most. A differing cell has both values."""
    expected = [_row("ana", 1, 7), _row("ben", 2, 7)]
    results = [_row("ben", 3, 8), _row("cem", 1, 7)]

    keyed, _ = differing_rows(expected, results, keys=[0])
    alike, _ = differing_rows(expected, results)

    assert [(one.kind, one.cells) for one in keyed] == [
        ("differs", ("ben", "3 (expected 2)", "8 (expected 7)")),
        ("missing", ("ana", "1", "7")),
        ("unexpected", ("cem", "1", "7")),
    ]
    assert [one.cells for one in alike] == [
        ("cem (expected ana)", "1", "7"),
        ("ben", "3 (expected 2)", "8 (expected 7)"),
    ]


def test_many_differences_are_counted_and_cut() -> None:
    """A result has the first differences, and the number of all."""
    rows, count = differing_rows([_row(number) for number in range(5000)], [])

    assert (len(rows), count) == (DIFFERENCES_MAX, 5000)


def test_report_for_junit_escapes_hostile_names() -> None:
    """Names and values with markup, control characters and quotes give well-formed XML with the same text."""
    text = 'a"<b>&]]>\x00\x1b'
    result = UnitTestResult(
        step=text,
        test=text,
        state="failed",
        message=text,
        columns=(text,),
        differences=differing_rows([_row(text)], [])[0],
        seconds=0.5,
        problem=Problem(text),
    )

    suite = ET.fromstring(junit_xml(text, [result]))[0]

    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("1", "1", "0")
    assert suite[0].attrib["name"] == 'a"<b>&]]>\ufffd\ufffd'
    assert "missing: " in (suite[0][0].text or "")


def test_rows_of_tests_stay_in_the_file(tmp_path: Path) -> None:
    """Tests and tags are not part of a step's digest, and rows of tests are not in the declaration that the server
    stores.
    """
    with_test = HEAD + "      one: {given: {x: [{a: secret}]}, expect: [{a: secret}]}\n    tags: nightly\n"
    without = HEAD.removesuffix("    tests:\n")
    tested, plain = (read(text, file="p.yaml", directory=tmp_path) for text in (with_test, without))

    assert tested.steps[0].tests[0].name == "one"
    assert "secret" not in str(encode_declaration(tested))
    assert step_digest(tested, tested.steps[0]) == step_digest(plain, plain.steps[0])
