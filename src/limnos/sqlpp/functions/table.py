"""The table of functions: what each is called, how many arguments it takes, and what works it out.

May import `values` and `errors`. Must not know the syntax tree nor plans. Names are of any case, `-` and `_` are one; a name is written
here with `_`. A *strict* function is not asked when an argument is MISSING (then it is MISSING) or NULL (then it is NULL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.functions.absent import absent_function_subject
from limnos.sqlpp.functions.costs import Cost, linear_cost
from limnos.sqlpp.values.model import MISSING, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.sqlpp.errors import TextPosition

UNKNOWN_FUNCTION = 1081
ANY_NUMBER: Literal[-1] = -1
"""In place of the most arguments: no limit."""

FunctionBody = "Callable[..., Value]"
Kind = Literal["scalar", "aggregate", "window"]


class Function(Struct, frozen=True):
    """A function of the language.

    `run` takes the arguments as values. Of an aggregate it takes the list of its argument's values; a window function is worked out where
    the windows are, and has none. `settled` says that equal arguments give equal results.
    """

    name: str
    least: int
    most: int
    run: Callable[..., Value]
    kind: Kind = "scalar"
    settled: bool = True
    counts_rows: bool = False
    """An aggregate that may stand with `*`."""
    family: str = ""
    """The module that it stands in."""
    cost: Cost | None = None
    """What a call costs. A function without a declared cost is never called on the event loop."""

    def takes(self, count: int) -> bool:
        """Whether so many arguments are right."""
        return self.least <= count and (self.most == ANY_NUMBER or count <= self.most)


FUNCTIONS: dict[str, Function] = {}
"""By their names, other spellings included."""


def normalize_name(name: str) -> str:
    """A name as the table has it."""
    return name.lower().replace("-", "_")


def find(name: str) -> Function | None:
    """The function of a name, if there is one."""
    return FUNCTIONS.get(normalize_name(name))


def unknown_function(name: str, count: int, *, place: TextPosition | None) -> SqlppError:
    """A call of what there is not, or not with so many arguments."""
    arguments = f"{count} argument" + ("" if count == 1 else "s")
    family = absent_function_subject(normalize_name(name).replace("`", ""))
    more = "" if family is None else f": functions about {family} are not built in here"
    return SqlppError(UNKNOWN_FUNCTION, f"Cannot find function with signature {name}({arguments}){more}", place)


def scalar(
    *names: str,
    least: int,
    most: int | None = None,
    strict: bool = True,
    settled: bool = True,
    cost: Cost | None = None,
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Put a function into the table under these names; `most` None: exactly as many arguments as `least`."""

    def put(run: Callable[..., Value]) -> Callable[..., Value]:
        entry = Function(
            names[0], least, least if most is None else most, _strict(run) if strict else run, settled=settled,
            family=run.__module__.rpartition(".")[2], cost=cost,
        )  # fmt: skip
        for name in names:
            FUNCTIONS[name] = entry
        return run

    return put


def aggregate(
    *names: str, counts_rows: bool = False, cost: Cost | None = None
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Put an aggregate into the table: `run` takes the list of values."""

    def put(run: Callable[..., Value]) -> Callable[..., Value]:
        entry = Function(names[0], 1, 1, run, kind="aggregate", counts_rows=counts_rows, family="aggregates", cost=cost)
        for name in names:
            FUNCTIONS[name] = entry
        return run

    return put


def window(name: str, *, least: int, most: int) -> None:
    """Put a window function into the table."""
    FUNCTIONS[name] = Function(name, least, most, _never, kind="window", family="windows", cost=linear_cost)


def _never(*_: Value) -> Value:
    raise TypeError("a window function has no value by itself")


def _strict(run: Callable[..., Value]) -> Callable[..., Value]:
    def guarded(*arguments: Value) -> Value:
        found: Value = True
        for argument in arguments:
            if argument is MISSING:
                return MISSING
            if argument is None:
                found = None
        return None if found is None else run(*arguments)

    return guarded
