# SPDX-License-Identifier: Apache-2.0
"""The runner of the compatibility kit: parsing of the lock file, of reports and of expectations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.kit.jars import LOCK, cache_directory, parse_lock
from conformance.kit.junit import Outcome, as_json, as_text, complaints, parse_expectation, read_report

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Jupiter" tests="3">
  <testcase name="drops()" classname="T" time="0.25"/>
  <testcase name="creates()" classname="T" time="1,000.5">
    <failure message="
Expecting a table" type="java.lang.AssertionError">stack</failure>
  </testcase>
  <testcase name="views()" classname="T" time="0"><skipped>Assumption failed: no views</skipped></testcase>
</testsuite>
"""


@pytest.fixture
def outcomes(tmp_path: Path) -> list[Outcome]:
    """The outcomes of a report of three tests with different verdicts."""
    (tmp_path / "TEST-junit-jupiter.xml").write_text(REPORT)
    return read_report(tmp_path)


def test_report_is_read(outcomes: list[Outcome]) -> None:
    """Each test case becomes one outcome, sorted by name, with its verdict and the first line of the reason."""
    assert [(each.name, each.verdict, each.headline) for each in outcomes] == [
        ("creates()", "failed", "Expecting a table"),
        ("drops()", "passed", ""),
        ("views()", "skipped", "Assumption failed: no views"),
    ]
    assert [each.seconds for each in outcomes] == [1000.5, 0.25, 0.0]


def test_score_counts_verdicts_and_lists_failures(outcomes: list[Outcome]) -> None:
    """The score counts the verdicts and lists the tests that did not pass, as text and as JSON."""
    document = json.loads(as_json(outcomes, kit="9.9"))

    assert (document["kit"], document["passed"], document["failed"], document["skipped"]) == ("9.9", 1, 1, 1)
    assert as_text(outcomes).splitlines() == [
        "1 passed, 1 failed, 1 skipped",
        "  failed creates(): Expecting a table",
        "  skipped views(): Assumption failed: no views",
    ]


def test_expected_score_has_no_complaint(outcomes: list[Outcome]) -> None:
    """Known failures and skips, and the right number of tests, are accepted."""
    expected = parse_expectation("# known\ntotal 3\nfail creates()  # why\nskip views()\n")

    assert complaints(outcomes, expected) == []


@pytest.mark.parametrize(
    "text, word",
    [
        ("total 3\nskip views()", "expected to pass: creates()"),
        ("total 3\nfail creates()", "expected to run: views()"),
        ("total 3\nfail creates()\nskip views()\nfail drops()", "take it out of the expectation: drops()"),
        ("total 4\nfail creates()\nskip views()", "3 tests ran, 4 are expected"),
    ],
)
def test_unexpected_scores_are_reported(outcomes: list[Outcome], text: str, word: str) -> None:
    """A new failure, a new skip, an outdated expectation and a missing test are each reported."""
    messages = complaints(outcomes, parse_expectation(text))

    assert len(messages) == 1
    assert word in messages[0]


def test_lock_file_is_pinned() -> None:
    """Every archive of the lock file has a SHA-256 and a size, and occurs once."""
    artifacts = parse_lock(LOCK.read_text())

    assert len({artifact.relative_path for artifact in artifacts}) == len(artifacts) > 40
    assert all(len(artifact.sha256) == 64 and artifact.size_bytes > 0 for artifact in artifacts)


def test_classifier_is_part_of_the_file_name() -> None:
    """The file name of an archive with a classifier contains the classifier."""
    (artifact,) = parse_lock("org.example:lib:1.2:tests 00ff 7\n")

    assert artifact.relative_path == "org/example/lib/1.2/lib-1.2-tests.jar"


def test_cache_directory_is_in_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives are cached in XDG_CACHE_HOME; a relative path there is ignored."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chosen = cache_directory()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    passed_over = cache_directory()

    assert chosen == tmp_path / "limnos" / "conformance"
    assert passed_over == Path.home() / ".cache" / "limnos" / "conformance"
