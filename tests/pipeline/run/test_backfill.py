# SPDX-License-Identifier: Apache-2.0
"""`--backfill`: the values of a range, and their runs in order, until one fails."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Parameter, ParameterType, Pipeline
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.run.backfill import BackfillResult, parse_range, run_range
from limnos.pipeline.run.result import EndReason, RunResult

PIPELINE = Pipeline(
    name="x",
    catalog="main",
    steps=(),
    parameters=tuple(Parameter(name=kind.value, type=kind) for kind in ParameterType),
)


@pytest.mark.parametrize(
    "text,values",
    [
        ("date=2024-02-28..2024-03-01", ("2024-02-28", "2024-02-29", "2024-03-01")),
        ("date=2026-01-01..2026-01-20/7", ("2026-01-01", "2026-01-08", "2026-01-15")),
        ("date=2026-01-01..2026-01-01", ("2026-01-01",)),
        ("date=0001-01-01..0001-01-02", ("0001-01-01", "0001-01-02")),
        ("date=9999-12-30..9999-12-31", ("9999-12-30", "9999-12-31")),
        ("int=-1..1", (-1, 0, 1)),
        ("int=0..10/5", (0, 5, 10)),
    ],
)
def test_range_includes_both_ends(text: str, values: tuple[Scalar, ...]) -> None:
    """Both ends are included, if the step reaches the last one."""
    assert parse_range(PIPELINE, text).values == values


@pytest.mark.parametrize(
    "text,words",
    [
        ("date", "write NAME=FIRST..LAST"),
        ("date=2026-01-01", "write NAME=FIRST..LAST"),
        ("=1..2", "write NAME=FIRST..LAST"),
        ("dat=1..2", "did you mean date"),
        ("date=2026-01-31..2026-01-01", "2026-01-01 is before 2026-01-31"),
        ("date=2026-01-01..yesterday", "'yesterday' is not a valid date"),
        ("int=1..2/0", "'0' is not a step"),
        ("int=1..2/-1", "'-1' is not a step"),
        ("int=1..2/²", "'²' is not a step"),
        ("int=1..10001", "more than 10,000 runs"),
        ("string=a..b", "only parameters of type date and int"),
        ("timestamp=2026-01-01T00:00..2026-01-02T00:00", "only parameters of type date and int"),
    ],
)
def test_invalid_range_error_shows_the_syntax(text: str, words: str) -> None:
    """The error for an invalid range shows the syntax, the nearest parameter name, and the expected type."""
    if words.startswith("more"):
        assert len(parse_range(PIPELINE, "int=1..10000").values) == 10_000

    with pytest.raises(BadRequest, match=words.replace(".", r"\.")):
        parse_range(PIPELINE, text)


def test_failed_run_stops_backfill_and_shows_remaining_range() -> None:
    """After a failed run the remaining values are not run; the output has the range that continues from there."""
    seen: list[Scalar] = []

    def run(value: Scalar) -> RunResult:
        seen.append(value)
        why = EndReason.DATA if value == "2026-01-15" else EndReason.DONE
        return RunResult(run="r", pipeline="x", attempt=1, state="", why=why, message="")

    backfill = run_range(parse_range(PIPELINE, "date=2026-01-01..2026-01-25/7"), run)
    rest = run_range(parse_range(PIPELINE, "int=1..2"), run)

    assert seen == ["2026-01-01", "2026-01-08", "2026-01-15", 1, 2]
    assert (backfill.done, backfill.left, backfill.ended.exit_code) == (2, "date=2026-01-15..2026-01-22/7", 10)
    assert parse_range(PIPELINE, backfill.left or "").values == ("2026-01-15", "2026-01-22")
    assert rest == BackfillResult(ended=rest.ended, done=2, left=None)
