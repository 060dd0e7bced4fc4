# SPDX-License-Identifier: Apache-2.0
"""The judge of the outcomes of PyIceberg's suite. The suite itself runs in `make conformance`."""

from __future__ import annotations

from conformance.pyiceberg.__main__ import HERE
from conformance.pyiceberg.judge import judge, lines

LEDGER = """
[[difference]]
name = "separator"
test = "test_separator"
message = "x1f"
reason = "configured"
"""


def test_known_failure_is_distinguished() -> None:
    """A rule explains only failures of its tests with its message."""
    outcomes = {
        "a.py::test_separator": ("failed", "'.' is not 'x1f'"),
        "a.py::test_other": ("failed", "x1f"),
        "b.py::test_separator": ("passed", ""),
    }

    decisions, complaints = judge(outcomes, LEDGER, is_whole=True)

    assert [outcome for outcome, _ in decisions.values()] == ["known", "failed", "passed"]
    assert complaints == []
    assert [line.split() for line in lines(decisions)[1:4]] == [
        ["a.py", "0", "1", "1", "0", "0"],
        ["b.py", "1", "0", "0", "0", "0"],
        ["all", "1", "1", "1", "0", "0"],
    ]


def test_rule_that_explains_nothing_is_a_complaint() -> None:
    """Rules are removed when their test passes; a run of a part of the suite says nothing of the others."""
    assert judge({}, LEDGER, is_whole=True)[1] == ["the rule 'separator' explains nothing"]
    assert judge({}, LEDGER, is_whole=False)[1] == []
    assert judge({}, f"{LEDGER}passes_at_times = true\n", is_whole=True)[1] == []


def test_each_rule_of_the_ledger_has_a_reason() -> None:
    """Nothing is left out without saying why."""
    assert judge({}, (HERE / "ledger.toml").read_text(encoding="utf-8"), is_whole=False)[1] == []
