# SPDX-License-Identifier: Apache-2.0
"""Results of unit tests: differing rows, and a report in JUnit's XML.

Pairs missing with unexpected rows, so that a difference names the columns that differ. Must not know Spark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as ET

from limnos.pipeline.problems import Problem

EXPECTED_ROWS_MAX = 10_000
DIFFERENCES_MAX = 20
"""The number of differing rows that a result has; its message has the number of all."""
_PAIRED_MAX = 200
"""The number of rows of each side among which pairs are looked for."""
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ColumnValue(NamedTuple):
    """A value of a row: what it is compared by, and its text."""

    key: object
    text: str


Values = tuple[ColumnValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """A differing row: `kind` is missing, unexpected or differs. Of a row that differs, a differing cell is
    `made (expected …)`.
    """

    kind: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestResult:
    """The result of one test. `state` is passed, failed, or invalid if the test itself is wrong."""

    step: str
    test: str
    state: str
    message: str | None
    columns: tuple[str, ...]
    differences: tuple[RowDifference, ...]
    seconds: float
    problem: Problem | None


def differing_rows(
    expected: Sequence[Values], results: Sequence[Values], *, keys: Sequence[int] = ()
) -> tuple[tuple[RowDifference, ...], int]:
    """Compare rows as multisets. Returns at most `DIFFERENCES_MAX` differences, and the number of all.

    A missing and an unexpected row are paired if they have the same values in the columns `keys`; without keys, if they
    agree in more columns than other rows do.
    """
    missing = _rest(expected, results)
    unexpected = _rest(results, expected)
    pairs = _pairs(missing[:_PAIRED_MAX], unexpected[:_PAIRED_MAX], keys=keys)
    paired_missing, paired_unexpected = {left for left, _ in pairs}, {right for _, right in pairs}
    rows = [_differing(missing[left], unexpected[right]) for left, right in pairs]
    rows += [_whole_row("missing", row) for index, row in enumerate(missing) if index not in paired_missing]
    rows += [_whole_row("unexpected", row) for index, row in enumerate(unexpected) if index not in paired_unexpected]
    return tuple(rows[:DIFFERENCES_MAX]), len(rows)


def _rest(rows: Sequence[Values], others: Sequence[Values]) -> list[Values]:
    """Return the rows that `others` lacks, as often as it lacks them."""
    counts = Counter(_key(row) for row in others)
    rest = []
    for row in rows:
        if counts[_key(row)] > 0:
            counts[_key(row)] -= 1
        else:
            rest.append(row)
    return rest


def _key(row: Values) -> tuple[object, ...]:
    return tuple(value.key for value in row)


def _pairs(missing: Sequence[Values], unexpected: Sequence[Values], *, keys: Sequence[int]) -> list[tuple[int, int]]:
    scored = sorted(
        (
            (-score, left, right)
            for left, row in enumerate(missing)
            for right, other in enumerate(unexpected)
            if (score := _likeness(row, other, keys=keys)) > 0
        ),
    )
    taken_left: set[int] = set()
    taken_right: set[int] = set()
    pairs = []
    for _, left, right in scored:
        if left not in taken_left and right not in taken_right:
            taken_left.add(left)
            taken_right.add(right)
            pairs.append((left, right))
    return sorted(pairs)


def _likeness(row: Values, other: Values, *, keys: Sequence[int]) -> int:
    if keys:
        return int(all(row[index].key == other[index].key for index in keys))
    return sum(one.key == two.key for one, two in zip(row, other, strict=True))


def _differing(expected: Values, results: Values) -> RowDifference:
    cells = tuple(
        two.text if one.key == two.key else f"{two.text} (expected {one.text})"
        for one, two in zip(expected, results, strict=True)
    )
    return RowDifference(kind="differs", cells=cells)


def _whole_row(kind: str, row: Values) -> RowDifference:
    return RowDifference(kind=kind, cells=tuple(value.text for value in row))


def junit_xml(pipeline: str, results: Sequence[UnitTestResult]) -> str:
    """Return the results as JUnit's XML: a suite for the pipeline, a case for each test with its step as class."""
    failures = sum(one.state == "failed" for one in results)
    errors = sum(one.state == "invalid" for one in results)
    suite = ET.Element(
        "testsuite",
        name=_xml(pipeline),
        tests=str(len(results)),
        failures=str(failures),
        errors=str(errors),
        time=f"{sum(one.seconds for one in results):.3f}",
    )
    for one in results:
        case = ET.SubElement(
            suite, "testcase", classname=_xml(one.step), name=_xml(one.test), time=f"{one.seconds:.3f}"
        )
        if one.state != "passed":
            tag = "failure" if one.state == "failed" else "error"
            detail = ET.SubElement(case, tag, message=_xml(one.message or ""))
            detail.text = _xml(difference_text(one))
    root = ET.Element("testsuites")
    root.append(suite)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def difference_text(result: UnitTestResult) -> str:
    """Return the position and the differing rows of a result as lines with `column=value`."""
    place = [str(result.problem)] if result.problem is not None else []
    rows = [
        f"{one.kind}: " + ", ".join(f"{name}={cell}" for name, cell in zip(result.columns, one.cells, strict=True))
        for one in result.differences
    ]
    return "\n".join([*place, *rows])


def _xml(text: str) -> str:
    """Replace characters that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)
