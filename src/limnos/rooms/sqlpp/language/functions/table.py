# SPDX-License-Identifier: Apache-2.0
"""The table of built-in functions: names, arities, and implementations.

Must not know the syntax tree or plans. Names are case-insensitive, and `-` and `_` are equal; the table uses `_`. A
*strict* function is not called if an argument is MISSING (the result is MISSING) or NULL (the result is NULL).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition
from limnos.rooms.sqlpp.language.functions.absent import absent_function_subject
from limnos.rooms.sqlpp.language.functions.costs import Cost, linear_cost
from limnos.rooms.sqlpp.language.values.model import MISSING, Value

UNKNOWN_FUNCTION = 1081
ANY_NUMBER: Literal[-1] = -1
"""The value of `most` for an unlimited number of arguments."""

Kind = Literal["scalar", "aggregate", "window"]


class AggregateFold(Struct, frozen=True):
    """A moving aggregate: functions that add a value to a result, and remove one if the aggregate is invertible.

    Values that are NULL or MISSING are not passed to it.
    """

    first: Callable[[Value], Value]
    """Returns the result for one value."""
    step: Callable[[Value, Value], Value]
    """Returns the result with one more value added to a previous result."""
    without: Callable[[Value, Value], Value] | None = None
    """Returns the result without its first value, exactly; called only with a result that is an integer."""
    empty: Value = None
    """The result without values."""


class Function(Struct, frozen=True, kw_only=True):
    """An entry of the table of built-in functions.

    `run` accepts the arguments as values, that of an aggregate the list of its argument's values. A window function is
    evaluated elsewhere and has no `run`.
    """

    name: str
    least: int
    most: int
    run: Callable[..., Value]
    kind: Kind = "scalar"
    is_deterministic: bool = True
    counts_rows: bool = False
    """Whether it is an aggregate that accepts `*`."""
    family: str = ""
    """The module that defines it."""
    cost: Cost | None = None
    """The cost of a call. A function without a cost is never called on the event loop."""
    stray: Callable[[Sequence[Value]], Value] | None = None
    """A function that finds the first value that an aggregate ignores because of its type; the statement gets a warning
    about it.
    """
    fold: AggregateFold | None = None
    """The aggregate as a fold; None if it needs all values at once."""

    def takes(self, count: int) -> bool:
        """Return whether the function accepts `count` arguments."""
        return self.least <= count and (self.most == ANY_NUMBER or count <= self.most)


FUNCTIONS: dict[str, Function] = {}
"""Functions by name, aliases included."""


def normalize_name(name: str) -> str:
    """Normalize a function's name as in the table: lower case, with `_` in place of `-`."""
    return name.lower().replace("-", "_")


def find(name: str) -> Function | None:
    """Return the function of a name in any spelling; None if there is none."""
    return FUNCTIONS.get(normalize_name(name))


def unknown_function(name: str, count: int, *, place: TextPosition | None) -> SqlppError:
    """Return the error for a call of an unknown function, or with a wrong number of arguments."""
    arguments = f"{count} argument" + ("" if count == 1 else "s")
    family = absent_function_subject(normalize_name(name).replace("`", ""))
    more = "" if family is None else f": functions about {family} are not supported"
    return SqlppError(UNKNOWN_FUNCTION, f"Cannot find function with signature {name}({arguments}){more}", place)


def scalar(
    *names: str,
    least: int,
    most: int | None = None,
    strict: bool = True,
    is_deterministic: bool = True,
    cost: Cost | None = None,
    stray: Callable[[Sequence[Value]], Value] | None = None,
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a scalar function under one or more names.

    Args:
        *names: Its name and aliases.
        least: The smallest count of arguments.
        most: The largest count of arguments; by default `least`.
        strict: Whether the result is MISSING for a MISSING argument, else NULL for a NULL argument, without a call.
        is_deterministic: Whether equal arguments give equal results.
        cost: The cost of a call.
        stray: A function that finds the first item that an aggregate over an array ignores because of its type.
    """

    def put(run: Callable[..., Value]) -> Callable[..., Value]:
        entry = Function(
            name=names[0],
            least=least,
            most=least if most is None else most,
            run=_strict(run) if strict else run,
            is_deterministic=is_deterministic,
            family=run.__module__.rpartition(".")[2],
            cost=cost,
            stray=stray,
        )
        for name in names:
            FUNCTIONS[name] = entry
        return run

    return put


def aggregate(
    *names: str,
    counts_rows: bool = False,
    cost: Cost | None = None,
    stray: Callable[[Sequence[Value]], Value] | None = None,
    fold: AggregateFold | None = None,
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register the decorated function, which accepts the list of values, as an aggregate under these names."""

    def put(run: Callable[..., Value]) -> Callable[..., Value]:
        entry = Function(
            name=names[0],
            least=1,
            most=1,
            run=run,
            kind="aggregate",
            counts_rows=counts_rows,
            family="aggregates",
            cost=cost,
            stray=stray,
            fold=fold,
        )
        for name in names:
            FUNCTIONS[name] = entry
        return run

    return put


def window(name: str, *, least: int, most: int) -> None:
    """Register a window function's name and its smallest and largest count of arguments."""
    FUNCTIONS[name] = Function(
        name=name, least=least, most=most, run=_refuse_call, kind="window", family="windows", cost=linear_cost
    )


def _refuse_call(*_: Value) -> Value:
    raise TypeError("a window function has no value outside of a window")


def _strict(run: Callable[..., Value]) -> Callable[..., Value]:
    def run_if_known(*arguments: Value) -> Value:
        result: Value = True
        for argument in arguments:
            if argument is MISSING:
                return MISSING
            if argument is None:
                result = None
        return None if result is None else run(*arguments)

    return run_if_known
