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
from limnos.services.sqlpp_names import METADATA, NODES_SHORT, with_names
from limnos.sqlpp import BoundQuery, BudgetSpent, MeteredBudget, results
from limnos.sqlpp.binder import RESOURCES
from limnos.sqlpp.binding import Binding
from limnos.sqlpp.chores import (
    BIND,
    EVALUATE,
    bound_of,
    lines_of,
    packed_binding,
    questions_of,
    refusal_of,
    row_line,
    source_key,
)
from limnos.sqlpp.errors import Place, compilation
from limnos.sqlpp.plan import EncodedPlan, wire
from limnos.sqlpp.values.tagged import tagged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.sqlpp_session import Session
    from limnos.sqlpp import tree
    from limnos.sqlpp.binding import Known
    from limnos.sqlpp.values.model import Value

    Rows = Mapping[str, tuple[Value, ...]]

NOTHING_BOUND: Final = BoundQuery(EncodedPlan(Place(1, 1), b""), 0, ())
"""In place of a query as long as names are not known."""
UNITS_HERE: Final = 20_000
"""Units of work (`sqlpp.functions.costs`) that a query may take on the event loop: about 5 ms. A query that takes more goes to a process."""
ROWS_HERE: Final = 500
"""Most rows of the metadata that a query on the event loop reads."""
PLAN_SHORT: Final = 32_768
"""Most bytes of the plan of such a query."""


class Bound(NamedTuple):
    """A query ready to be worked out."""

    query: BoundQuery

    @property
    def metadata(self) -> tuple[tuple[Levels, str], ...]:
        """The datasets of the metadata dataverse that it reads, and what it asks of datasets themselves."""
        return tuple(each for each in self.query.reads if each[0] == METADATA or each[0][0] == RESOURCES)

    @property
    def reads_data(self) -> bool:
        """Whether it reads anything else."""
        return len(self.metadata) < len(self.query.reads)


def binding_of(session: Session, body: tree.Expression, *, variables: tuple[str, ...] = ()) -> Binding:
    """What binding a body takes in a session."""
    return Binding(body, session.dataverse, session.parameters, session.moment, session.declared, variables)


async def query_bind(session: Session, body: tree.Expression, *, variables: tuple[str, ...] = ()) -> Bound:
    """Bind a query; all names in it are decided for the caller. A long one is bound by a process. Raises SqlppError, Forbidden."""
    ctx = session.ctx
    binding = binding_of(session, body, variables=variables)

    def run(known: Known) -> BoundQuery:
        return binding.bind(known, nodes_max=NODES_SHORT)

    async def elsewhere(known: Known) -> BoundQuery:
        outcome, *told = await process_do(ctx, BIND, packed_binding(binding, known))
        if outcome == b"wanted":
            known.wanted.update(dict.fromkeys(questions_of(told[0])))
        return bound_of(told[0], told[1], at=body.at) if outcome == b"done" else NOTHING_BOUND

    found = Bound(await with_names(ctx, run, elsewhere=elsewhere))
    if found.metadata and found.reads_data:
        raise compilation(
            "A query over data can't read the dataverse Metadata as well: ask for one after the other", body.at
        )
    return found


async def process_do(ctx: Context, name: str, *parts: bytes) -> list[bytes]:
    """Have a process do something about a statement for the caller. Raises SqlppError for what it refuses, Unavailable."""
    caller = await ctx.read(Scope(), lambda scene: scene.user)
    try:
        told = await ctx.services.sqlpp_chores.do(name, *parts, caller=caller)
    except BadRequest as error:  # the process ran out of memory
        raise compilation(error.message) from None
    if told[0] == b"refused":
        raise refusal_of(told[1])
    return told


async def query_rows(ctx: Context, bound: Bound) -> AsyncGenerator[bytes, None]:
    """Work a query over constants and metadata out: a line of JSON for each result."""
    rows: Rows = {}
    if bound.metadata:
        rows = await metadata_rows(ctx, bound.metadata)
    try:
        made = _little_of(bound.query, rows)
    except BudgetSpent:
        async for line in _rows_of_process(ctx, bound, rows=rows):
            yield line
    else:
        for line in made:
            yield line


def _little_of(query: BoundQuery, rows: Rows) -> list[bytes]:
    """The results of a query that is quickly worked out. Raises BudgetSpent for any other, SqlppError."""
    if isinstance(query.expression, EncodedPlan) or sum(map(len, rows.values())) > ROWS_HERE:
        raise BudgetSpent
    budget = MeteredBudget(UNITS_HERE, slots=query.slots)
    made = []
    for value in results(query, lambda dataverse, name: rows[source_key(dataverse, name)], budget=budget):
        budget.show(value)
        made.append(row_line(value))
    return made


async def _rows_of_process(ctx: Context, bound: Bound, *, rows: Rows) -> AsyncGenerator[bytes, None]:
    """Have a process work a query out."""
    plan = wire.encode(bound.query.expression)
    given = msgspec.json.encode({name: [tagged(row) for row in held] for name, held in rows.items()})
    _, *parts = await process_do(ctx, EVALUATE, plan, str(bound.query.slots).encode(), given)
    parts.reverse()
    while parts:
        for line in lines_of(parts.pop()):
            yield line
