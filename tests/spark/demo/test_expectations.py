"""Expectations that can fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame

from limnos.spark.demo.expectations import Expectation, ExpectationFailed, Finding, Unique, check, measure, require


class Counted:
    """A stand-in for a DataFrame: remembers what was asked and answers with given counts."""

    def __init__(self, *counts: int) -> None:
        self.counts = counts
        self.asked: tuple[str, ...] = ()

    def selectExpr(self, *expressions: str) -> SimpleNamespace:  # noqa: N802 - PySpark's name
        """Take the expressions; one row of counts comes back."""
        self.asked = expressions
        return SimpleNamespace(collect=lambda: [self.counts])


RULES = (Expectation("positive", "x > 0"), Unique("once", ("a", "b")), Expectation("mostly", "y", tolerated=0.1))


def test_a_violated_expectation_fails_with_words() -> None:
    """One row over the line fails the check: the message names the data, the rule, and the rows."""
    data = cast("DataFrame", Counted(1000, 1, 0, 0))

    with pytest.raises(ExpectationFailed) as caught:
        check(data, RULES, what="The late delivery")

    assert "The late delivery breaks 1 of 3 expectations" in caught.value.message
    assert "positive: 1 of 1,000 rows" in caught.value.message
    assert "once" not in caught.value.message


def test_every_broken_rule_is_named() -> None:
    """All broken rules stand in one message, so that one run shows all there is to mend."""
    data = cast("DataFrame", Counted(100, 2, 3, 11))

    with pytest.raises(ExpectationFailed) as caught:
        check(data, RULES, what="It")

    for name in ("positive", "once", "mostly"):
        assert f"- {name}:" in caught.value.message


def test_met_expectations_are_returned() -> None:
    """When all rules hold, the findings come back, the tolerated share included."""
    data = cast("DataFrame", Counted(100, 0, 0, 10))

    findings = check(data, RULES, what="It")

    assert findings == (Finding("positive", 100, 0, 0.0), Finding("once", 100, 0, 0.0), Finding("mostly", 100, 10, 0.1))


def test_unknown_counts_as_broken_and_one_pass_is_enough() -> None:
    """NULL conditions count as broken, and all rules are asked in one select."""
    data = Counted(1, 0, 0, 0)

    measure(cast("DataFrame", data), RULES)

    assert data.asked == (
        "count(*)",
        "count_if(NOT coalesce(x > 0, false))",
        "count(*) - count(DISTINCT struct(`a`, `b`))",
        "count_if(NOT coalesce(y, false))",
    )


def test_no_rows_meet_nothing() -> None:
    """An empty input fails: nothing arrived, so nothing was checked."""
    with pytest.raises(ExpectationFailed, match="no rows"):
        require((Finding("positive", 0, 0, 0.0),), what="It")
