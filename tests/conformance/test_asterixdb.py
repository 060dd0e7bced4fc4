# SPDX-License-Identifier: Apache-2.0
"""The runner of AsterixDB's test suite: it reads cases, compares results and judges steps. The cases here are our
own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from conformance.asterixdb.__main__ import earlier_outcomes, main
from conformance.asterixdb.eligibility import ineligible_reason
from conformance.asterixdb.ledger import MARK, write_ledger
from conformance.asterixdb.requests import request_of
from conformance.asterixdb.runner import DIFFERS, NOT_ELIGIBLE, OTHER_ERROR, PASSED, REFUSED, is_same_error, run_case
from conformance.asterixdb.suite import RUNTIME, Case, cases_of, root_of
from conformance.asterixdb.texts import DIGITS, DIGITS_AND_ORDER, ORDER, OTHER, SPACES, text_difference
from conformance.asterixdb.values import UnreadableResult, difference, read_values
from conformance.asterixdb.world import Answer, AsterixDb, QueryService

NAMESPACE = "urn:xml.testframework.asterix.apache.org"
UNIT = (
    '<test-case FilePath="{group}"><compilation-unit name="{name}"><output-dir'
    ' compare="Text">{name}</output-dir>{more}</compilation-unit></test-case>'
)


class ScriptedService:
    """A query service that returns prepared answers in order, and records the statements."""

    def __init__(self, *answers: dict[str, object]) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, dict[str, object]]] = []
        self.limit_s = 60.0
        self.file_scheme = "file"

    def state(self, statement: str, parameters: dict[str, object], *, as_json: bool, accept: str | None) -> Answer:
        """Return the next answer."""
        self.sent.append((statement, parameters))
        body = self.answers.pop(0)
        return Answer(400 if "errors" in body else 200, json.dumps(body), body)


def suite(
    directory: Path, named: tuple[str, str], steps: dict[str, str], *, results: dict[str, str], more: str = ""
) -> Path:
    """Write a suite of one case, in an included file."""
    group, name = named
    runtime = directory / RUNTIME
    runtime.mkdir(parents=True)
    (runtime / "testsuite_sqlpp.xml").write_text(
        '<!-- a licence --><!DOCTYPE test-suite [<!ENTITY More SYSTEM "more.xml">]>'
        f'<test-suite xmlns="{NAMESPACE}" ResultOffsetPath="results" QueryOffsetPath="queries">&More;</test-suite>'
    )
    unit = UNIT.format(group=group, name=name, more=more)
    (runtime / "more.xml").write_text(
        f'<!-- < --><test-group name="sqlpp_queries"><test-group name="{group}">{unit}</test-group></test-group>'
    )
    for folder, files in (("queries", steps), ("results", results)):
        place = runtime / folder / group / name
        place.mkdir(parents=True)
        for each, text in files.items():
            (place / f"{name}.{each}").write_text(text)
    return directory


def case_of(directory: Path, steps: dict[str, str], results: dict[str, str], more: str = "") -> Case:
    """Return a case of steps and results."""
    (case,) = cases_of(root_of(suite(directory, ("birds", "wren"), steps, results=results, more=more)))
    return case


def outcome(case: Case, *answers: dict[str, object]) -> tuple[str, str]:
    """Return the outcome of a case with prepared answers."""
    case_result = run_case(case, ScriptedService(*answers), root=Path("/data"))
    return case_result.outcome, case_result.reason


def test_steps_are_sent_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Step 10 comes after step 2; parameters in comments are sent, and paths lead to the checkout's data."""
    case = case_of(
        tmp_path,
        {
            "1.ddl.sqlpp": "create dataverse x",
            "10.query.sqlpp": "-- param $n:json=3\nselect value $n;",
            "2.update.sqlpp": 'load dataset d using localfs(("path"="asterix_nc1://data/birds.adm"))',
        },
        {"1.adm": "3"},
    )
    service = ScriptedService({}, {}, {"results": [3]})

    case_result = run_case(case, service, root=Path("/checkout"))

    assert (case_result.outcome, case.group, case.key) == (PASSED, "birds", "birds/wren")
    assert [text.split()[0] for text, _ in service.sent] == ["create", "load", "--"]
    assert "file:///checkout/data/birds.adm" in service.sent[1][0]
    assert service.sent[2][1] == {"$n": "3"}


def test_a_running_asterixdb_has_its_own_paths_and_names(tmp_path: Path) -> None:
    """With a real AsterixDB, file names have its node, and its canonical names have slashes."""
    service = AsterixDb("http://127.0.0.1:1", limit_s=1)
    case = case_of(
        tmp_path, {"1.update.sqlpp": 'load dataset d using localfs(("path"="asterix_nc1://data/b.adm"))'}, {}
    )

    request = request_of(case.steps[0], files=f"{service.file_scheme}:///checkout/")

    assert "asterix_nc1:///checkout/data/b.adm" in request.statement
    assert service.parts("a/b") == ["a", "b"]


def test_a_parameter_of_a_json_request_is_a_value(tmp_path: Path) -> None:
    """With the request type JSON a parameter is a value, not a string."""
    case = case_of(
        tmp_path, {"1.query.sqlpp": "// requesttype=application/json\n// param args:json=[1, 2]\nselect 1"}, {}
    )

    request = request_of(case.steps[0], files="file:///")

    assert (request.as_json, request.parameters) == (True, {"args": [1, 2]})


@pytest.mark.parametrize(
    "answer,expected",
    [
        ({"results": [1, 2]}, PASSED),
        ({"results": [2, 1]}, PASSED),
        ({"results": [1]}, DIFFERS),
        ({"results": [1, 3]}, DIFFERS),
        ({"errors": [{"msg": "ASX1001: Syntax error"}]}, REFUSED),
    ],
)
def test_an_outcome_follows_the_answer(tmp_path: Path, answer: dict[str, object], expected: str) -> None:
    """Results without an order are compared as multisets; an unexpected error is a refusal."""
    case = case_of(tmp_path, {"1.query.sqlpp": "select value x from [1, 2] x"}, {"1.adm": "1\n2"})

    assert outcome(case, answer)[0] == expected


def test_results_of_an_ordering_query_are_compared_in_order(tmp_path: Path) -> None:
    """An ORDER BY inside of brackets does not make the order significant."""
    steps = {"1.query.sqlpp": "from (select value 1 order by 1) t select t; select 2 order by 1"}
    case = case_of(tmp_path / "a", steps, {"1.adm": "1 2"})
    inner = case_of(tmp_path / "b", {"1.query.sqlpp": "from (select value 1 order by 1) t select t"}, {"1.adm": "1 2"})

    assert outcome(case, {"results": [2, 1]}) == (DIFFERS, "order of results")
    assert outcome(inner, {"results": [2, 1]})[0] == PASSED


def test_expected_errors_are_met_in_their_order(tmp_path: Path) -> None:
    """Another code, or no error, is a different error; the result of a refused step is skipped."""
    more = "<expected-error>ASX1063: Cannot find x (in line 2, at column 3)</expected-error>"
    case = case_of(tmp_path, {"1.query.sqlpp": "select 1", "2.query.sqlpp": "select 2"}, {"1.adm": "2"}, more)
    refused, other = {"errors": [{"msg": "ASX1063: no x"}]}, {"errors": [{"msg": "ASX1001: no"}]}

    assert outcome(case, refused, {"results": [2]})[0] == PASSED
    assert outcome(case, other, {"results": [2]})[0] == OTHER_ERROR
    assert outcome(case, {"results": [2]}, {"results": [2]})[0] == OTHER_ERROR


@pytest.mark.parametrize(
    "expected,actual,same",
    [
        ("ASX1063: Cannot find x", "ASX1063: other words", True),
        ("ASX1063: Cannot find x", "ASX1064: Cannot find y", False),
        ("Invalid thing (in line 3, at column 4)", "ASX0046: Invalid thing", True),
        ("Syntax error: In line 2", "ASX1001: Syntax error", True),
        ("no code", "ASX1001: Syntax error", False),
        ("no dataset x in dataverse {0} (in line 1, at column 2)", "ASX1077: no dataset x in dataverse a.b", True),
        ("no dataset x in dataverse {0}", "ASX1077: no dataset y in dataverse a", False),
    ],
)
def test_errors_are_compared_by_code_or_text(expected: str, actual: str, same: bool) -> None:
    """Positions in errors are ignored."""
    assert is_same_error(expected, actual) is same


@pytest.mark.parametrize(
    "text,reason",
    [
        ("create feed f", "feeds"),
        ("create nodegroup g on n1", "node groups"),
        ("create external dataset d(t) using S3 (x)", "adapters of clouds and HDFS"),
        ("use x; explain select 1", "AsterixDB's plans"),
        ('load dataset d using localfs(("path"="asterix_nc1://data/gone.adm"))', "data absent"),
        ("// create feed f\nselect 1", None),
    ],
)
def test_cases_that_cannot_run_are_classified(tmp_path: Path, text: str, reason: str | None) -> None:
    """Cases that cannot be run are classified by their text, without comments."""
    case = case_of(tmp_path, {"1.query.sqlpp": text}, {"1.adm": "1"})

    assert ineligible_reason(case, root=tmp_path) == reason


def test_values_of_adm_are_read() -> None:
    """Temporal values become strings, numbers lose their width, multisets remain multisets."""
    text = '{ "a": 1i8, "b": date("2020-01-01"), "c": {{ 1, 2 }}, "d": [ -2.5f, INF ] }\n"x" true null'

    assert read_values(text) == [{"a": 1, "b": "2020-01-01", "c": [1, 2], "d": [-2.5, math.inf]}, "x", True, None]
    with pytest.raises(UnreadableResult):
        read_values("{ 1 }")


@pytest.mark.parametrize(
    "expected,actual,expected_difference",
    [
        ("0.1", [0.10000000149], None),
        ("1 2", [1, 3], "expected 2, found 3"),
        ("1", [True], "expected 1, found true"),
        ("{{1,2}}", [[2, 1]], None),
        ("[1,2]", [[2, 1]], "order of an array's items"),
        ('"a/b"', ["a.b"], None),
        ('{"a":null}', [{}], 'expected {"a": null}, found {}'),
        ('time("07:22:35.000")', ["07:22:35"], None),
    ],
)
def test_results_are_compared_as_values(expected: str, actual: list[object], expected_difference: str | None) -> None:
    """Numbers are compared with a tolerance, names in both spellings, multisets without order; NULL differs from
    MISSING.
    """
    assert difference(read_values(expected), actual, ordered=True) == expected_difference


def test_the_ledger_counts_by_group_and_kind(tmp_path: Path) -> None:
    """The ledger has the counts by group and kind; the text above its marker is kept."""
    page, file = tmp_path / "page.md", tmp_path / "outcomes.json"
    page.write_text(f"# Title\n{MARK}\nold")
    file.write_text(
        json.dumps(
            [
                {
                    "key": "g/a",
                    "group": "g",
                    "outcome": PASSED,
                    "reason": "",
                    "texts": 3,
                    "text_differences": ["spaces: a, b"],
                },
                {
                    "key": "g/b",
                    "group": "g",
                    "outcome": REFUSED,
                    "reason": "ASX1081: Cannot find function with signature f(1)",
                },
                {"key": "g/c", "group": "g", "outcome": NOT_ELIGIBLE, "reason": "feeds"},
                {"key": "g/serial_kurtosis_int8", "group": "g", "outcome": DIFFERS, "reason": "expected 1, found 2"},
                {"key": "g/kurtosis", "group": "g", "outcome": DIFFERS, "reason": "expected 1, found 2"},
            ]
        )
    )

    write_ledger(file, page)

    text = page.read_text()
    assert text.startswith("# Title\n")
    assert "old" not in text
    assert "1 of 4 cases" in text
    assert "| g | 4 | 1 | 2 | 1 | 0 |" in text
    assert "| a function that is not built in | 1 | open" in text
    assert "| kurtosis of groups | 1 | AsterixDB contradicts itself" in text
    assert "| other values | 1 | open" in text
    assert "| feeds | 1 |" in text
    assert "Of 3 results in ADM and CSV that are equal as values, 2 are equal byte for byte" in text
    assert "| spaces | 1 |" in text


def test_no_case_runs_without_a_suite(capsys: pytest.CaptureFixture[str]) -> None:
    """Without `--suite` nothing is run: the user supplies the checkout."""
    assert main([]) == 0

    assert "give --suite DIR" in capsys.readouterr().out


def test_outcomes_marked_for_repetition_are_run_again(tmp_path: Path) -> None:
    """Earlier outcomes that are to be repeated, and cases that were not eligible, are run again."""
    file = tmp_path / "outcomes.json"
    outcomes = [{"key": name, "group": "g", "outcome": name} for name in (PASSED, DIFFERS, NOT_ELIGIBLE)]
    file.write_text(json.dumps(outcomes))

    assert set(earlier_outcomes(file, again=[DIFFERS])) == {PASSED}
    assert set(earlier_outcomes(file, again=[])) == {PASSED, DIFFERS}
    assert earlier_outcomes(tmp_path / "none.json", again=[]) == {}


@pytest.mark.parametrize(
    "expected, answer, expected_difference",
    [
        ('{ "a": 1 }\n{ "a": 2 }', '{ "a": 2 }\n{ "a": 1 }', None),
        ('{ "a": 1.1234567 }', '{ "a": 1.1234568 }', DIGITS),
        ('{ "a": 1 }', '{ "a": 1.0 }', DIGITS),
        ('{ "a": 1 }', '{ "a": 2 }', OTHER),
        ('{ "a": "1.0" }', '{ "a": "1" }', OTHER),
        ('{ "a": 1, "b": 2 }', '{ "b": 2, "a": 1 }', ORDER),
        ("[ 1 ]", "[1]", SPACES),
        ('{ "a": 1.5d }', '{ "a": 1.5 }', DIGITS),
        ('{ "a": 0.041249999999999995 }', '{ "a": 0.04125 }', DIGITS),
        ('{ "a": 1.5, "b": 2 }', '{ "b": 2, "a": 1.500000001 }', DIGITS_AND_ORDER),
        ("1\n1", "1", OTHER),
        ('{ "a": "x y" }', '{ "a": "y x" }', OTHER),
        ('{ "Timestamp": "Mon", "DatasetId": 104, "a": 1 }', '{ "Timestamp": "Tue", "DatasetId": 7, "a": 1 }', None),
    ],
)
def test_unordered_text_results_are_compared_as_line_sets(
    expected: str, answer: str, expected_difference: str | None
) -> None:
    """Text results without an order are compared as sets of lines, without the metadata fields that differ between
    runs.
    """
    assert text_difference(expected, answer, ordered=False) == expected_difference


def test_line_order_matters_for_ordered_queries() -> None:
    """If the query has ORDER BY, two swapped lines are a difference."""
    assert text_difference("1\n2", "2\n1", ordered=True) is not None
    assert text_difference("1\n2", "2\n1", ordered=False) is None


def test_suite_server_settings_apply_unless_overridden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings that affect results are those of the suite's servers; a step's own parameters take precedence."""
    sent: list[dict[str, object]] = []

    def ask(*_: object, body: bytes, **__: object) -> Answer:
        sent.append(json.loads(body))
        return Answer(200, "{}", {})

    monkeypatch.setattr(QueryService, "ask", ask)
    QueryService("http://127.0.0.1:1", "", limit_s=1).state("1", as_json=True)
    QueryService("http://127.0.0.1:1", "", limit_s=1).state("1", {"compiler.ordered.fields": "true"}, as_json=True)
    AsterixDb("http://127.0.0.1:1", limit_s=1).state("1", as_json=True)

    assert [each.get("compiler.ordered.fields") for each in sent] == ["false", "true", None]
