# SPDX-License-Identifier: Apache-2.0
"""Backfill: one run per value of a parameter, one after the other.

Computes the values of a range, and runs them in order until a run does not end as requested. Must not know the
execution of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Parameter, ParameterType, Pipeline
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.run.parameters import find_parameter, typed_value
from limnos.pipeline.run.result import EndReason, RunResult

VALUES_MAX = 10_000
_FORM = "write NAME=FIRST..LAST, or NAME=FIRST..LAST/STEP, for example --backfill day=2026-01-01..2026-01-31"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRange:
    """The values of a parameter, in the order of their runs, and the step between them (days for a date)."""

    name: str
    values: tuple[Scalar, ...]
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillResult:
    """The last run's result, and the remaining part of the range as text for `--backfill`; None if the range is
    complete.
    """

    ended: RunResult
    done: int
    left: str | None


def parse_range(pipeline: Pipeline, text: str) -> ParameterRange:
    """Parse `day=2026-01-01..2026-01-31/7` into its values. Raises BadRequest with the expected form."""
    name, sign, span = text.partition("=")
    ends, _, width = span.partition("/")
    first, dots, last = ends.partition("..")
    if not (name and sign and dots):
        raise BadRequest(f"--backfill {text}: {_FORM}")
    parameter = find_parameter(pipeline, name)
    step = _step(width, text=text)
    low, high = (_number(parameter, each) for each in (first, last))
    if high < low:
        raise BadRequest(f"--backfill {text}: {last} is before {first}; the earlier one comes first")
    if (high - low) // step >= VALUES_MAX:
        raise BadRequest(f"--backfill {text}: more than {VALUES_MAX:,} runs; divide the range")
    values = tuple(_value(parameter, number) for number in range(low, high + 1, step))
    return ParameterRange(name=name, values=values, step=step)


def run_range(values: ParameterRange, run: Callable[[Scalar], RunResult]) -> BackfillResult:
    """Run once for each value in order.

    The first run that does not end as requested ends the backfill, because later runs may depend on it.
    """
    for number, value in enumerate(values.values):
        ended = run(value)
        if ended.why is not EndReason.DONE:
            return BackfillResult(ended=ended, done=number, left=_range_text(values, values.values[number:]))
    return BackfillResult(ended=ended, done=len(values.values), left=None)


def _range_text(values: ParameterRange, left: Sequence[Scalar]) -> str:
    width = "" if values.step == 1 else f"/{values.step}"
    return f"{values.name}={left[0]}..{left[-1]}{width}"


def _step(width: str, *, text: str) -> int:
    if not width:
        return 1
    if not width.isascii() or not width.isdigit() or int(width) < 1:
        raise BadRequest(f"--backfill {text}: {width!r} is not a step; {_FORM}")
    return int(width)


def _number(parameter: Parameter, text: str) -> int:
    """Convert a bound of a range to an integer; a date becomes its proleptic Gregorian ordinal.

    Raises BadRequest if the parameter is neither a date nor an integer.
    """
    if parameter.type not in (ParameterType.DATE, ParameterType.INT):
        raise BadRequest(
            f"parameter {parameter.name} is {parameter.type.value}, and only parameters of type date and int have"
            " ranges: run the pipeline once for each value"
        )
    value = typed_value(parameter, text)
    return date.fromisoformat(str(value)).toordinal() if parameter.type is ParameterType.DATE else int(str(value))


def _value(parameter: Parameter, number: int) -> Scalar:
    return (date.min + timedelta(days=number - 1)).isoformat() if parameter.type is ParameterType.DATE else number
