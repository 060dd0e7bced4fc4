# SPDX-License-Identifier: Apache-2.0
"""Findings from counts: whether a rule holds within its tolerance, with a human-readable sentence.

Compares the share of broken rows with the tolerated share. Pure. Must not know Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind
from limnos.pipeline.outcomes import ExpectationFinding

SAMPLE_CHARACTERS_MAX = 2000


def has_failed_expectation(findings: Iterable[ExpectationFinding]) -> bool:
    """Return whether the findings forbid publishing: one does not hold and its action is not warn."""
    return any(not finding.held and finding.action != ExpectationAction.WARN.value for finding in findings)


def finding(
    rule: Expectation, *, broken: int, checked: int, what: str | None = None, sample: str | None = None
) -> ExpectationFinding:
    """Build the finding of a rule that `broken` of `checked` rows break.

    `what` replaces the default message, such as "2 of 9 rows (22.2222%) violate it".
    """
    is_held = is_within_tolerance(rule, broken=broken, checked=checked)
    return ExpectationFinding(
        rule=rule.name,
        kind=rule.kind.value,
        action=rule.action.value,
        broken=broken,
        checked=checked,
        tolerated=rule.tolerated,
        held=is_held,
        message=_sentence(rule, what or _count_sentence(broken, checked), broken=broken),
        sample=sample[:SAMPLE_CHARACTERS_MAX] if sample else None,
    )


def is_within_tolerance(rule: Expectation, *, broken: int, checked: int) -> bool:
    """Return whether at most the tolerated share of the rows is broken.

    Dropped and quarantined rows are not published, so for those actions a share of zero means no limit. The share is
    compared in decimal: 29 of 100 rows are exactly 0.29, which a binary float cannot represent.
    """
    if rule.action in (ExpectationAction.DROP, ExpectationAction.QUARANTINE) and not rule.tolerated:
        return True
    return broken <= Fraction(str(rule.tolerated)) * checked


def format_share(part: float) -> str:
    """Format a share as percent without trailing zeros: `1%`, `0.25%`."""
    return f"{round(100 * part, 4):g}%"


def _count_sentence(broken: int, checked: int) -> str:
    if not broken:
        return f"holds for all of {checked:,} rows"
    return f"{broken:,} of {checked:,} rows ({format_share(broken / checked) if checked else 'no rows'}) violate it"


def _sentence(rule: Expectation, what: str, *, broken: int) -> str:
    text = f"{rule.name}: {what}"
    if broken and rule.kind is RuleKind.ROW and rule.action is ExpectationAction.DROP:
        text += "; they were dropped"
    if broken and rule.kind is RuleKind.ROW and rule.action is ExpectationAction.QUARANTINE:
        text += "; they are in quarantine"
    if broken and rule.tolerated:
        text += f"; {format_share(rule.tolerated)} may"
    return text
