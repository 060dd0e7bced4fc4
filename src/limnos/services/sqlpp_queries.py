"""Queries: bound with the caller's names, then worked out by the evaluator where no data is read, else by the engine.

May import the rooms below. Knows no wire format. What the evaluator is given is bounded: little is done on the loop, more by a process that is
ended at the deadline. A query that reads both data and the metadata dataverse gives the engine nothing to read metadata from, and is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.model.errors import BadRequest
from limnos.services.scene import Scope
from limnos.services.sqlpp_metadata import metadata_rows
from limnos.services.sqlpp_names import METADATA, with_names
from limnos.sqlpp import Budget, SqlppError, bind, results
from limnos.sqlpp.binder import RESOURCES
from limnos.sqlpp.chores import EVALUATE, lines_of, row_line, source_key
from limnos.sqlpp.errors import compilation
from limnos.sqlpp.plan import wire
from limnos.sqlpp.values.tagged import tagged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.sqlpp_names import Known
    from limnos.services.sqlpp_session import Session
    from limnos.sqlpp import BoundQuery, tree
    from limnos.sqlpp.values.model import Value

    Rows = Mapping[str, tuple[Value, ...]]

TEXT_SHORT: Final = 16_384
"""Statements up to this length are read and bound on the loop, in some tens of milliseconds at most."""
STEPS_HERE: Final = 5_000
"""So many steps of the evaluator are taken on the loop; who needs more goes to a process."""
PLAN_SHORT: Final = 32_768
"""So long may the plan be."""
UNCOUNTED: Final = (b"regexp_", b"edit_distance")
"""How names of functions begin that may take long for a single step."""


class Spent(Exception):
    """The little that may be done on the loop is done."""


class _Little(Budget):
    """A budget whose end is no refusal, for there is more elsewhere."""

    __slots__ = ()

    def step(self) -> None:
        """One row more was looked at."""
        self.steps -= 1
        if self.steps < 0:
            raise Spent


class Bound(NamedTuple):
    """A query ready to be worked out."""

    query: BoundQuery
    long: bool

    @property
    def metadata(self) -> tuple[tuple[Levels, str], ...]:
        """The datasets of the metadata dataverse that it reads, and what it asks of datasets themselves."""
        return tuple(each for each in self.query.reads if each[0] == METADATA or each[0][0] == RESOURCES)

    @property
    def reads_data(self) -> bool:
        """Whether it reads anything else."""
        return len(self.metadata) < len(self.query.reads)


async def query_bind(session: Session, body: tree.Expression, *, long: bool) -> Bound:
    """Bind a query; all names in it are decided for the caller. Raises SqlppError, Forbidden."""
    ctx = session.ctx

    def run(known: Known) -> BoundQuery:
        return bind(
            body, known, dataverse=session.dataverse, parameters=session.parameters, moment=session.moment,
            declared=session.declared,
        )  # fmt: skip

    found = Bound(await with_names(ctx, run, apart=long), long)
    if found.metadata and found.reads_data:
        raise compilation(
            "A query over data can't read the dataverse Metadata as well: ask for one after the other", body.at
        )
    return found


async def query_rows(ctx: Context, bound: Bound) -> AsyncGenerator[bytes, None]:
    """Work a query over constants and metadata out: a line of JSON for each result."""
    rows: Rows = {}
    if bound.metadata:
        rows = await metadata_rows(ctx, bound.metadata)
    size = sum(map(len, rows.values()))
    if not bound.long and size <= STEPS_HERE:
        plan = wire.encode(bound.query.expression)
        if len(plan) <= PLAN_SHORT and not any(name in plan for name in UNCOUNTED):
            try:
                made = [
                    row_line(value)
                    for value in results(
                        bound.query,
                        lambda dataverse, name: rows[source_key(dataverse, name)],
                        budget=_Little(steps=STEPS_HERE),
                    )
                ]
            except Spent:
                pass
            else:
                for line in made:
                    yield line
                return
    for line in await _apart(ctx, bound, rows=rows):
        yield line


async def _apart(ctx: Context, bound: Bound, *, rows: Rows) -> list[bytes]:
    """Have a process work a query out."""
    plan = wire.encode(bound.query.expression)
    given = msgspec.json.encode({name: [tagged(row) for row in held] for name, held in rows.items()})
    try:
        answer, told = await ctx.services.sqlpp_chores.do(
            EVALUATE,
            plan,
            str(bound.query.slots).encode(),
            given,
            caller=await ctx.read(Scope(), lambda scene: scene.user),
        )
    except BadRequest as error:  # the process ran out of memory
        raise compilation(error.message) from None
    if answer == b"refused":
        raise SqlppError(*msgspec.json.decode(told))
    return lines_of(told)
