# SPDX-License-Identifier: Apache-2.0
"""Moving aggregates: aggregates over the frames of a window, computed incrementally from one frame to the next.

Must not know how frames are computed. A running total over n rows then visits n values instead of n * n / 2.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.evaluator.context import EvaluationContext, Row
from limnos.rooms.sqlpp.language.evaluator.expressions import compile_expression, warn_of_strays
from limnos.rooms.sqlpp.language.functions.table import AggregateFold
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, is_unknown


class RunningAggregate:
    """A moving aggregate over the successive frames of a partition.

    The last result is continued for a frame with the same start that does not end earlier. It is also continued for a
    frame with a later start if the aggregate is invertible and its result is an integer. Any other frame is computed
    from its start.
    """

    __slots__ = ("_begin", "_end", "_fold", "_has_stray", "_known", "_result", "_value_of", "_values", "_warn", "_work")

    def __init__(
        self, call: plan.WindowCall, fold: AggregateFold, *, rows: list[Row], working: EvaluationContext
    ) -> None:
        argument = compile_expression(call.arguments[0], working) if call.arguments else None
        condition = None if call.filter is None else compile_expression(call.filter, working)

        def value_of(at: int) -> Value:
            row = rows[at]
            if condition is not None and condition(row) is not True:
                return MISSING
            return True if argument is None else argument(row)

        def warn(value: Value) -> bool:
            return warn_of_strays(call, (value,), name=call.function.name, working=working)

        self._fold, self._value_of, self._warn, self._work = fold, value_of, warn, working.budget.work
        self._values: list[Value] = []
        """The argument's values of the rows from the start of the partition."""
        self._restart(0)

    def _restart(self, begin: int) -> None:
        self._begin = self._end = begin
        self._known = 0
        self._result = self._fold.empty
        self._has_stray = False

    def over(self, begin: int, end: int) -> Value:
        """Return the aggregate over the rows from `begin` to `end` (exclusive)."""
        if begin >= end:
            return self._fold.empty
        if begin != self._begin or end < self._end:
            self._move_start(begin, end)
        self._work(end - self._end)
        for at in range(self._end, end):
            self._add(self._value(at))
        self._end = end
        return self._result

    def _move_start(self, begin: int, end: int) -> None:
        """Remove the values before `begin`; if they cannot be removed exactly, restart there."""
        remove = self._fold.without
        is_exact = isinstance(self._result, int) and not self._has_stray
        if remove is None or not is_exact or not self._begin <= begin < self._end <= end:
            self._restart(begin)
            return
        for at in range(self._begin, begin):
            value = self._value(at)
            if not is_unknown(value):
                self._known -= 1
                self._result = remove(self._result, value) if self._known else self._fold.empty
        self._begin = begin

    def _add(self, value: Value) -> None:
        if is_unknown(value):
            return
        self._result = self._fold.step(self._result, value) if self._known else self._fold.first(value)
        self._known += 1
        if not self._has_stray:  # one warning, about the first ignored value
            self._has_stray = self._warn(value)

    def _value(self, at: int) -> Value:
        while len(self._values) <= at:
            self._values.append(self._value_of(len(self._values)))
        return self._values[at]
