# SPDX-License-Identifier: Apache-2.0
"""Binds window functions, and ORDER BY.

Must not know clauses. A window function becomes a variable, which is computed before the clause that uses it.
"""

from __future__ import annotations

from msgspec import structs

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.binder.expressions import ILLEGAL_FILTER, ExpressionBinder
from limnos.rooms.sqlpp.language.binder.scope import VariableScope
from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.functions import FUNCTIONS, normalize_name
from limnos.rooms.sqlpp.language.plan.queries import Frame, FrameBound

NO_WINDOW_FUNCTION, WRONG_MODIFIER = 1102, 1104
_FROM_END = frozenset({"nth_value"})
"""The window functions that allow FROM FIRST and FROM LAST."""
_NULLS = frozenset({"first_value", "last_value", "nth_value", "lag", "lead"})
"""The window functions that allow RESPECT NULLS and IGNORE NULLS."""


class WindowBinder(ExpressionBinder):
    """Binds the window functions of one statement."""

    def orders(self, items: tuple[tree.OrderItem, ...], scope: VariableScope) -> tuple[plan.Order, ...]:
        """Bind ORDER BY."""
        return tuple(
            plan.Order(
                item.at,
                self.expression(item.value, scope),
                item.descending,
                None if item.nulls is None else item.nulls == "first",
            )
            for item in items
        )

    def window(self, node: tree.Call, scope: VariableScope) -> plan.Expression:
        """Bind a call with OVER as a variable that is computed before SELECT.

        Raises SqlppError if the function, the clause or a FILTER does not allow OVER.
        """
        window = node.window
        count = 1 if node.star else len(node.arguments)
        entry = self.built_in(node.function)
        is_of_arrays = entry is not None and entry.kind == "scalar" and entry.takes(count)
        if is_of_arrays and window is not None and window.variable is not None:
            return self.over_variable(node, window, variable=window.variable, scope=scope)
        if entry is not None and entry.kind == "scalar" and entry.takes(count):
            words = f"Expected window or aggregate function, got: {node.function.last}"
            raise SqlppError(NO_WINDOW_FUNCTION, words, node.at)
        if entry is None or window is None or not (node.star or entry.takes(count)):
            raise self.no_function(node, count)
        if entry.kind == "window" and node.filter is not None:
            raise SqlppError(ILLEGAL_FILTER, "Illegal use of aggregate FILTER clause", node.at)
        _check_modifiers(entry.name, window)
        if self.windows is None:
            raise compilation(
                f"Function {node.function.last} with OVER is only allowed in SELECT, LET, WHERE and ORDER BY", node.at
            )
        collected, self.windows = self.windows, None
        try:
            call = plan.WindowCall(
                at=node.at,
                slot=self.slots.new(),
                function=entry,
                arguments=self.all(node.arguments, scope),
                distinct=node.distinct,
                filter=self.maybe(node.filter, scope),
                partition=self.all(window.partition, scope),
                order=self.orders(window.order, scope),
                frame=self.frame(window.frame, scope),
                from_last=window.from_end == "last",
                ignore_nulls=window.nulls == "ignore",
            )
        finally:
            self.windows = collected
        self.windows.append(call)
        return plan.Local(node.at, call.slot, normalize_name(node.function.last))

    def over_variable(
        self, node: tree.Call, window: tree.Window, *, variable: tree.GroupVariable, scope: VariableScope
    ) -> plan.Expression:
        """Bind `f(…) OVER w AS (…)` for a function of arrays: `w` is the array of the frame's rows, as objects like
        those of GROUP AS.

        Raises SqlppError in a clause without window functions.
        """
        if self.rows is None or self.windows is None:
            raise compilation("A variable of a window is only allowed in SELECT, LET, WHERE and ORDER BY", window.at)
        names = None if variable.fields is None else {field.variable: field.name for field in variable.fields}
        bound_rows = [(name, slot) for name, slot in self.rows if names is None or name in names]
        pairs = tuple(
            (plan.Constant(window.at, name if names is None else names[name]), plan.Local(window.at, slot, name))
            for name, slot in bound_rows
        )
        collected, self.windows = self.windows, None
        try:
            call = plan.WindowCall(
                at=node.at,
                slot=self.slots.new(),
                function=FUNCTIONS["array_agg"],
                arguments=(plan.ObjectOf(window.at, pairs),),
                distinct=False,
                filter=None,
                partition=self.all(window.partition, scope),
                order=self.orders(window.order, scope),
                frame=self.frame(window.frame, scope),
                from_last=False,
                ignore_nulls=False,
            )
        finally:
            self.windows = collected
        self.windows.append(call)
        return self.expression(structs.replace(node, window=None), scope.with_({variable.name: call.slot}))

    def frame(self, node: tree.Frame | None, scope: VariableScope) -> Frame | None:
        """Bind a window's frame."""
        if node is None:
            return None
        start = FrameBound(node.start.at, node.start.side, self.maybe(node.start.value, scope))
        end = start if node.end is None else FrameBound(node.end.at, node.end.side, self.maybe(node.end.value, scope))
        if node.end is None:
            end = FrameBound(node.at, "current row", None)
        return Frame(at=node.at, mode=node.mode, start=start, end=end, exclude=node.exclude or "no others")


def _check_modifiers(function: str, window: tree.Window) -> None:
    """Check that a window function allows the modifiers before OVER (FROM LAST, IGNORE NULLS). Raises SqlppError
    (ASX1104).
    """
    for modifier, allowed_functions, words in (
        (window.from_end, _FROM_END, "FROM FIRST/LAST"),
        (window.nulls, _NULLS, "RESPECT/IGNORE NULLS"),
    ):
        if modifier is not None and function not in allowed_functions:
            raise SqlppError(WRONG_MODIFIER, f"Invalid modifier {words} for function {function}", window.at)
