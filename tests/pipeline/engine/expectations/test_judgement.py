# SPDX-License-Identifier: Apache-2.0
"""Findings from counts: shares, warnings, removed rows, and their messages."""

from __future__ import annotations

import pytest

from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind
from limnos.pipeline.engine.expectations.judgement import finding, format_share, has_failed_expectation


def rule(action: ExpectationAction = ExpectationAction.FAIL, tolerated: float = 0.0) -> Expectation:
    """A row rule."""
    return Expectation(name="r", kind=RuleKind.ROW, action=action, tolerated=tolerated, condition="x > 0")


@pytest.mark.parametrize(
    "tolerated,bad,rows,expected",
    [
        (0.0, 0, 10, True),
        (0.0, 1, 10, False),
        (0.29, 29, 100, True),  # 0.29 * 100 is less than 29 in binary
        (0.29, 30, 100, False),
        (0.07, 7, 100, True),
        (1.0, 10, 10, True),
        (0.0, 0, 0, True),
        (1e-9, 1, 999_999_999, False),
        (1e-9, 1, 1_000_000_000, True),
    ],
)
def test_tolerated_share_is_compared_without_rounding(tolerated: float, bad: int, rows: int, expected: bool) -> None:
    """The tolerated share is compared as the declared decimal number, without rounding."""
    expectation_finding = finding(rule(tolerated=tolerated), broken=bad, checked=rows)

    assert expectation_finding.held is expected
    assert has_failed_expectation([expectation_finding]) is not expected


def test_violated_warning_does_not_prevent_publication() -> None:
    """A violated rule with the action `warn` is reported and does not prevent the publication."""
    expectation_finding = finding(rule(ExpectationAction.WARN), broken=3, checked=3)

    assert not expectation_finding.held
    assert not has_failed_expectation([expectation_finding])


@pytest.mark.parametrize("action", [ExpectationAction.DROP, ExpectationAction.QUARANTINE])
def test_removed_rows_violate_rule_only_beyond_share(action: ExpectationAction) -> None:
    """Rows that are dropped or quarantined do not violate a rule, unless they exceed a declared share."""
    assert finding(rule(action), broken=9, checked=10).held
    assert finding(rule(action, 0.5), broken=5, checked=10).held
    assert has_failed_expectation([finding(rule(action, 0.5), broken=6, checked=10)])


def test_message_has_counts_action_and_share() -> None:
    """The message has the counts, the action, and the tolerated share."""
    assert finding(rule(ExpectationAction.DROP, 0.01), broken=25, checked=1000).message == (
        "r: 25 of 1,000 rows (2.5%) violate it; they were dropped; 1% may"
    )
    assert finding(rule(ExpectationAction.QUARANTINE), broken=1, checked=4).message.endswith("they are in quarantine")
    assert finding(rule(), broken=0, checked=1000).message == "r: holds for all of 1,000 rows"


def test_share_is_shown_without_trailing_zeros() -> None:
    """A share is shown without trailing zeros."""
    assert [format_share(0.01), format_share(0.0025), format_share(1), format_share(1 / 3)] == [
        "1%",
        "0.25%",
        "100%",
        "33.3333%",
    ]
