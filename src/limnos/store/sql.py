# SPDX-License-Identifier: Apache-2.0
"""`Sql`: a statement as text with `:name` parameters, rendered once for each driver.

Must not know tables. The whole store writes SQL this way (decision record 0004): each statement is written once, and
nothing is compiled at run time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeVar

Value = int | str | bytes | bool | None | Sequence[int] | Sequence[str]
Params = Mapping[str, Value]
Row = tuple[Any, ...]  # a driver's row, with the columns of its statement
T = TypeVar("T")

_PARAM = re.compile(r"(?<![:\w]):(\w+)")


class Sql:
    """A statement with a rendering for each driver. sqlite3 would accept `text` directly, but resolves named parameters
    slowly.

    `on_sqlite` is a different text for SQLite with the same parameters, used where SQLite lacks the syntax of the
    common text, or executes it much slower.
    """

    def __init__(self, text: str, *, on_sqlite: str | None = None) -> None:
        self.text = text
        self._on_sqlite = text if on_sqlite is None else on_sqlite

    @cached_property
    def psycopg(self) -> str:
        return _PARAM.sub(r"%(\1)s", self.text.replace("%", "%%"))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The parameter names in the order of their first use, which is that of the numbered placeholders."""
        return tuple(dict.fromkeys(_PARAM.findall(self.text)))

    @cached_property
    def asyncpg(self) -> str:
        return self._number_parameters(self.text, "$")

    @cached_property
    def sqlite(self) -> str:
        return self._number_parameters(self._on_sqlite, "?")

    @cached_property
    def values(self) -> Callable[[Params], tuple[Value, ...]]:
        """A function that converts a mapping of parameters to a tuple in the order of `order`."""
        if len(self.order) > 1:
            return itemgetter(*self.order)
        return lambda params: tuple([params[name] for name in self.order])

    def _number_parameters(self, text: str, sign: str) -> str:
        numbers = {name: number for number, name in enumerate(self.order, 1)}
        return _PARAM.sub(lambda match: f"{sign}{numbers[match[1]]}", text)


Query = tuple[Sql, Params]
Load = Generator[Query, list[Row], T]
"""A read that may need several statements: it yields each query, receives its rows, and returns a value.

It is run inline on SQLite and awaited on PostgreSQL.
"""


def read_rows(statement: Sql, **params: Value) -> Load[list[Row]]:
    """Return a load that reads the rows of one statement."""
    return (yield statement, params)


def drive_load(load: Load[T], rows: Callable[[Sql, Params], list[Row]]) -> T:
    """Run a load (a generator that yields statements) and return its result.

    `rows` executes one statement, for example in a transaction.
    """
    try:
        statement, params = next(load)
        while True:
            statement, params = load.send(rows(statement, params))
    except StopIteration as stop:
        result: T = stop.value
        return result
