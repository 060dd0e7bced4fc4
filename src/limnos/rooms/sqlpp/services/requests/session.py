# SPDX-License-Identifier: Apache-2.0
"""Statement session: the state of one request's statements: active dataverse, options, declared functions, parameters.

Must not know the statements. It lives as long as the request, and only its statements change it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.signatures import FlatSignature
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Time, Value
from limnos.rooms.sqlpp.services.requests.names import DEFAULT
from limnos.services.request.context import Context

DAY_MS = 86_400_000


@dataclass(slots=True)
class StatementDescription:
    """The description of a statement for AsterixDB's JDBC driver: its category, its parameters, and its result
    columns.
    """

    category: Literal["query", "update", "ddl"] = "query"
    explains: bool = False
    parameters: UnsetParameters | None = None
    """The parameters of a statement that is only compiled."""
    signature: FlatSignature | None = None


class UnsetParameters(dict["str | int", "Value"]):
    """Parameters of a statement that is compiled but not executed: each is NULL unless set. `used` has the names of
    those that the statement refers to.
    """

    def __init__(self, values: Mapping[str | int, Value]) -> None:
        super().__init__(values)
        self.used: dict[str | int, None] = {}

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        if isinstance(name, (str, int)):
            self.used[name] = None
        return True

    def __missing__(self, name: str | int) -> Value:
        return None


@dataclass(slots=True, kw_only=True)
class StatementSession:
    """The state that later statements of a request use, and its caller. All statements of a request have the same time,
    `now_ms`.
    """

    ctx: Context
    now_ms: int
    parameters: Mapping[str | int, Value]
    ends_at: float
    """The deadline of the request, by the monotonic clock: a wall clock that is set does not move it."""
    compiles_only: bool = False
    plans_as_text: bool = False
    results_tagged: bool = False
    """Whether results keep their types, for a format that `result_text` writes."""
    sql_compat: bool = False
    """Whether queries have SQL's meaning (`sqlpp.sql_compat`)."""
    dataverse: Levels = DEFAULT
    options: dict[str, str] = field(default_factory=dict)
    declared: tuple[tree.DeclareFunction, ...] = ()
    warnings: list[SqlppError] = field(default_factory=list)
    datasets_read: set[int] = field(default_factory=set)
    """The node ids of the datasets whose rows the statements read so far."""
    uses_cached_plan: bool = False
    """Whether the last query was bound before, for another request."""
    description: StatementDescription | None = None
    """The description of the last statement, for clients that read results as a table; None unless requested."""

    @property
    def moment(self) -> Mapping[str, Value]:
        """The values of functions that are constant during a request, such as `current_datetime`, by function name."""
        at = DateTime(self.now_ms)
        moments: dict[str, Value] = {
            "current_datetime": at,
            "current_date": Date(self.now_ms // DAY_MS),
            "current_time": Time(self.now_ms % DAY_MS),
        }
        return {**moments, **{f"{name}_immediate": value for name, value in moments.items()}, "now": at}

    @property
    def seconds_left(self) -> float:
        """The remaining time of the request, in seconds."""
        return max(0.001, self.ends_at - time.monotonic())

    def qualify(self, name: tree.DottedName) -> Levels:
        """Qualify a name with the active dataverse, unless it has a dataverse."""
        return name.parts if name.dataverse else (*self.dataverse, name.last)

    def flag(self, name: str) -> bool:
        """Return whether the option of a SET statement is `true`."""
        return self.options.get(name.lower(), "").lower() == "true"
