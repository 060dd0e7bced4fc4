"""What a count means: from numbers to findings, in words for people.

Job: say whether so many broken of so many rows hold against the tolerated share, and put it into a sentence. May import
`declaration` and `outcomes`; pure: it must not know of Spark.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from limnos.pipeline.declaration import ExpectationAction, RuleKind
from limnos.pipeline.outcomes import ExpectationFinding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limnos.pipeline.declaration import Expectation

SAMPLE_CHARACTERS_MAX = 2000


def broken_sentence(findings: Iterable[ExpectationFinding]) -> bool:
    """Whether a finding forbids to publish: one that does not hold, and was not declared as a warning only."""
    return any(not finding.held and finding.action != ExpectationAction.WARN.value for finding in findings)


def finding(
    rule: Expectation, *, broken: int, checked: int, what: str | None = None, sample: str | None = None
) -> ExpectationFinding:
    """Judge one rule: `broken_sentence` of `checked` rows. `what` replaces the sentence's middle, "… of … rows break it"."""
    held = is_within_tolerance(rule, broken=broken, checked=checked)
    return ExpectationFinding(
        rule=rule.name,
        kind=rule.kind.value,
        action=rule.action.value,
        broken=broken,
        checked=checked,
        tolerated=rule.tolerated,
        held=held,
        message=_sentence(rule, what or _count_sentence(broken, checked), broken=broken),
        sample=sample[:SAMPLE_CHARACTERS_MAX] if sample else None,
    )


def is_within_tolerance(rule: Expectation, *, broken: int, checked: int) -> bool:
    """Whether at most the tolerated share is broken.

    Rows that are dropped or kept aside break nothing that is published: a share of zero sets no limit to them. The share
    is taken as the decimal it was written as: 29 of 100 rows are 0.29 of them, which in binary they are not.
    """
    if rule.action in (ExpectationAction.DROP, ExpectationAction.QUARANTINE) and not rule.tolerated:
        return True
    return broken <= Fraction(str(rule.tolerated)) * checked


def format_share(part: float) -> str:
    """A share as percent, without zeros that say nothing: `1%`, `0.25%`."""
    return f"{round(100 * part, 4):g}%"


def _count_sentence(broken: int, checked: int) -> str:
    if not broken:
        return f"holds for all of {checked:,} rows"
    return f"{broken:,} of {checked:,} rows ({format_share(broken / checked) if checked else 'no rows'}) break it"


def _sentence(rule: Expectation, what: str, *, broken: int) -> str:
    told = f"{rule.name}: {what}"
    if broken and rule.kind is RuleKind.ROW and rule.action is ExpectationAction.DROP:
        told += "; they were dropped"
    if broken and rule.kind is RuleKind.ROW and rule.action is ExpectationAction.QUARANTINE:
        told += "; they are in quarantine"
    if broken and rule.tolerated:
        told += f"; {format_share(rule.tolerated)} may"
    return told
