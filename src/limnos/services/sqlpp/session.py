"""One request's statements as they go on: the dataverse in use, options that were set, functions that were declared, parameters.

May import `sqlpp` and `names`. Must not know what a statement does. It lives as long as a request, and is changed by its statements alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limnos.services.sqlpp.names import DEFAULT
from limnos.sqlpp.values.model import Date, DateTime, Time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.sqlpp import SqlppError, tree
    from limnos.sqlpp.values.model import Value

DAY_MS = 86_400_000


@dataclass(slots=True)
class StatementSession:
    """What later statements of a request rest on, and who asks. `now_ms` is the moment of all of them."""

    ctx: Context
    now_ms: int
    parameters: Mapping[str | int, Value]
    deadline_ms: int
    compiles_only: bool = False
    plans_as_text: bool = False
    dataverse: Levels = DEFAULT
    options: dict[str, str] = field(default_factory=dict)
    declared: tuple[tree.DeclareFunction, ...] = ()
    warnings: list[SqlppError] = field(default_factory=list)

    @property
    def moment(self) -> Mapping[str, Value]:
        """The functions that are the request's own."""
        at = DateTime(self.now_ms)
        return {
            "current_datetime": at,
            "current_date": Date(self.now_ms // DAY_MS),
            "current_time": Time(self.now_ms % DAY_MS),
            "now": at,
        }

    @property
    def seconds_left(self) -> float:
        """How long the request may still take."""
        return max(0.001, (self.deadline_ms - self.ctx.services.store.time.now_ms()) / 1000)

    def whole(self, name: tree.DottedName) -> Levels:
        """A name with its dataverse: the one in use where it names none."""
        return name.parts if name.dataverse else (*self.dataverse, name.last)

    def flag(self, name: str) -> bool:
        """An option that is true or not."""
        return self.options.get(name.lower(), "").lower() == "true"
