# SPDX-License-Identifier: Apache-2.0
"""The runner of DuckDB's suite: its reading of tests and its judgement of results. The suite itself is the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.duckdb.__main__ import HERE
from conformance.duckdb.player import outcome_of
from conformance.duckdb.suite import differs, parse, same
from conformance.pyiceberg.judge import judge

SETTINGS = {
    "attach": "ATTACH ':memory:' AS my_datalake; CREATE SCHEMA my_datalake.default",
    "extensions": {},
    "suite": "/suite",
    "work": "/work",
}
SCRIPT = """
# name: a.test
require-env CATALOG_TEST_CONFIG_SETUP

require parquet

statement ok
CREATE TABLE my_datalake.default.t (id INTEGER, city VARCHAR, big BOOLEAN)

loop i 0 3

onlyif i=1
continue

statement ok
INSERT INTO my_datalake.default.t VALUES (${i}, NULL, ${i} > 1)

endloop

statement ok con1
INSERT INTO my_datalake.default.t VALUES (7, '', false)

query ITI rowsort
FROM my_datalake.default.t ORDER BY id DESC
----
0	NULL	0
2	NULL	true
7	(empty)	false

query I nosort count
SELECT count(*) FROM my_datalake.default.t

query I nosort count
SELECT 3

query I nosort other
SELECT 4
----

query I nosort other
SELECT 4
----

statement ok
SET TimeZone = 'Europe/Berlin'

query I
SELECT TIMESTAMPTZ '2025-09-22 08:00:00+00'
----
2025-09-22 10:00:00+02

query I
SELECT {'a': 1, 'b': [NULL, 'x']}::VARIANT;
----
{'a': 1, 'b': [NULL, x]}

query I
FROM (VALUES (['y'::VARIANT, 21, true, {'hello': 'world'}]::VARIANT), (7::VARIANT));
----
[y, 21, true, {'hello': world}]
7

statement error
SELECT * FROM my_datalake.default.missing
----
<REGEX>:Catalog Error.*missing.*

mode skip

query I
SELECT 1
----
2

mode unskip

concurrentloop i 0 4

statement ok
SELECT ${i} FROM my_datalake.default.t

endloop

query II
SELECT 12, '__TEST_DIR__'
----
1.2e1
/work
"""


def _outcome(tmp_path: Path, text: str) -> tuple[str, str]:
    path = tmp_path / "a.test"
    path.write_text(text, encoding="utf-8")
    return outcome_of(path, SETTINGS)


def test_commands_of_a_test_are_run(tmp_path: Path) -> None:
    """Loops, conditions, connections, labels, sorted rows, errors and skipped parts have DuckDB's meaning."""
    assert _outcome(tmp_path, SCRIPT) == ("passed", "")


@pytest.mark.parametrize(
    "text, outcome, words",
    [
        ("query I\nSELECT 1\n----\n2\n", "failed", "line 1: '1' is not '2'"),
        ("query I\nSELECT 1\n----\n1\n1\n", "failed", "1 rows of 1"),
        ("query I\nSELECT 1 WHERE false\n----\n1\n", "failed", "0 rows"),
        ("query I\nSELECT 1 WHERE false\n----\n", "passed", ""),
        ("statement error\nSELECT 1\n----\nno\n", "failed", "not refused"),
        ("statement error\nSELECT x\n----\nother words\n", "failed", "Binder Error"),
        ("statement ok\nSELECT x\n", "failed", "Binder Error"),
        ("query I nosort a\nSELECT 1\n\nquery I nosort a\nSELECT 2\n", "failed", "'2' is not '1'"),
        ("loop i 0 2\n\nquery I\nSELECT ${i}\n----\n0\n\nendloop\n", "failed", "'1' is not '0'"),
        ("concurrentloop i 0 2\n\nquery I\nSELECT ${i}\n----\n0\n\nendloop\n", "failed", "'1' is not '0'"),
        ("require spatial\n\nstatement ok\nSELECT x\n", "skipped", "spatial"),
        ("require-env EQUALITY_DELETE_WRITES_ENABLED 1\n", "skipped", "EQUALITY_DELETE_WRITES_ENABLED"),
        ("template a\n", "skipped", "template"),
    ],
)
def test_each_difference_is_a_failure(tmp_path: Path, text: str, outcome: str, words: str) -> None:
    """A wrong value, row, error or label fails; what is missing here is skipped, with its name."""
    result, reason = _outcome(tmp_path, text)

    assert result == outcome
    assert words in reason


def test_values_are_compared_as_text_pattern_or_number() -> None:
    """Patterns fit the whole value, over several lines; booleans are also numbers."""
    assert same("a\nb", "<REGEX>:a.*b")
    assert not same("ab c", "<REGEX>:a.*b")
    assert same("abc", "<!REGEX>:x.*")
    assert same("true", "1")
    assert not same("true", "0")
    assert same("1.50", "1.5")
    assert not same("1.5", "one")
    assert same("9007199254740992.0", "9007199000000000.0")
    assert not same("1.51", "1.5")
    assert not same("1000001", "1000000")
    assert differs([["1", "2"]], ["1", "2"]) == ""
    assert differs([["1", "2"], ["3", "4"]], ["1\t2", "3\t4"]) == ""


def test_lines_of_commands_are_known() -> None:
    """A failure names the line of its command in the file."""
    commands = parse("\n# c\nloop i 0 2\n\nstatement ok\nSELECT 1\n\nendloop\n\nquery I\nSELECT 1\n----\n1\n")

    assert [(each.line, each.words[0]) for each in commands] == [(3, "loop"), (10, "query")]
    assert [(each.line, each.sql, each.expected) for each in commands[0].body] == [(5, "SELECT 1", None)]


def test_each_rule_of_the_ledger_has_a_reason() -> None:
    """Nothing is left out without saying why."""
    assert judge({}, (HERE / "ledger.toml").read_text(encoding="utf-8"), is_whole=False)[1] == []
