"""Rules that data must meet before it is published.

Job: measure a DataFrame against named rules in one pass, and fail with words when a rule is broken. May import
`model` and PySpark's types. It must not know which data it looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limnos.model.errors import LimnosError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


class ExpectationFailed(LimnosError):
    """Data broke at least one rule; nothing of it was published."""

    code = "expectation-failed"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A rule: `holds` is a SQL condition on one row; at most the share `tolerated` (0 to 1) of the rows may break it.

    A condition that comes out NULL counts as broken: "unknown" is no evidence.
    """

    name: str
    holds: str
    tolerated: float = 0.0


@dataclass(frozen=True, slots=True)
class Unique:
    """A rule: no two rows agree in all of `columns`."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured for one rule: `broken` of `rows` rows, against the share `tolerated`."""

    name: str
    rows: int
    broken: int
    tolerated: float

    @property
    def met(self) -> bool:
        """Whether the rule holds. No rows at all meet no rule: an empty input is a broken one."""
        return self.rows > 0 and self.broken <= self.tolerated * self.rows

    def __str__(self) -> str:
        if not self.rows:
            return f"{self.name}: there are no rows to judge"
        share = 100 * self.broken / self.rows
        return f"{self.name}: {self.broken:,} of {self.rows:,} rows ({share:.2f} %) break it, {self.tolerated:.2%} may"


def check(data: DataFrame, rules: Sequence[Expectation | Unique], *, what: str) -> tuple[Finding, ...]:
    """Measure `data` against `rules` in one Spark job; raise ExpectationFailed naming each broken rule."""
    findings = measure(data, rules)
    require(findings, what=what)
    return findings


def measure(data: DataFrame, rules: Sequence[Expectation | Unique]) -> tuple[Finding, ...]:
    """Count the rows that break each rule, all rules in one aggregation."""
    counted = data.selectExpr("count(*)", *(_broken_rows(rule) for rule in rules)).collect()[0]
    rows = int(counted[0])
    return tuple(
        Finding(
            name=rule.name,
            rows=rows,
            broken=int(broken or 0),
            tolerated=rule.tolerated if isinstance(rule, Expectation) else 0.0,
        )
        for rule, broken in zip(rules, counted[1:], strict=True)
    )


def require(findings: Sequence[Finding], *, what: str) -> None:
    """Raise ExpectationFailed when a finding is not met; `what` names the data in the message."""
    broken = [finding for finding in findings if not finding.met]
    if broken:
        listed = "\n".join(f"  - {finding}" for finding in broken)
        raise ExpectationFailed(
            f"{what} breaks {len(broken)} of {len(findings)} expectations; it was not published:\n{listed}\n"
            "Look at those rows in the source, correct them, and run again."
        )


def _broken_rows(rule: Expectation | Unique) -> str:
    if isinstance(rule, Unique):
        key = ", ".join(f"`{column}`" for column in rule.columns)
        return f"count(*) - count(DISTINCT struct({key}))"
    return f"count_if(NOT coalesce({rule.holds}, false))"
