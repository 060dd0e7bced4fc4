# SPDX-License-Identifier: Apache-2.0
"""Queries: bound with the names visible to the caller, then run by the evaluator if they read no data, else by the
engine.

Must not know any wire format. The evaluator's work is bounded: a little runs on the event loop, more in a worker
process that is killed at the deadline. A query over both data and the dataverse Metadata is refused, since the engine
has no metadata.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

import msgspec

from limnos.model.errors import BadRequest
from limnos.rooms.sqlpp.language import BoundQuery, BudgetSpent, MeteredBudget, ParsedStatement, results, tree
from limnos.rooms.sqlpp.language.binder import RESOURCES
from limnos.rooms.sqlpp.language.binding import QueryBinding, ResolvedNames
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition, compilation
from limnos.rooms.sqlpp.language.metadata import METADATA, metadata_records
from limnos.rooms.sqlpp.language.offloaded_work import (
    BIND,
    EVALUATE,
    PLAIN,
    SCANS,
    TAGGED,
    SourceRows,
    bound_of,
    decode_lookups,
    lines_of,
    packed_binding,
    refusal_of,
    row_line,
    scans_of,
    source_key,
    warnings_of,
)
from limnos.rooms.sqlpp.language.plan import EncodedPlan, wire
from limnos.rooms.sqlpp.language.scans import NUMBERED, ScanRequirement, prepare_scans, runs_functions
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.language.values.tagged import to_tagged_json
from limnos.rooms.sqlpp.services.execution.dataset_resources import resources_read
from limnos.rooms.sqlpp.services.execution.metadata import GatheredObjects, metadata_gather
from limnos.rooms.sqlpp.services.execution.metadata_requests import MetadataRequest, narrowing_advice
from limnos.rooms.sqlpp.services.execution.prepared import PREPARED, PlanKey, ReadyQuery
from limnos.rooms.sqlpp.services.execution.row_access import rows_require
from limnos.rooms.sqlpp.services.requests.names import BUILT_IN, NODES_SHORT, TEXT_SHORT, bind_with_names
from limnos.rooms.sqlpp.services.requests.node_limits import GATHERING_SLOTS, SQLPP_OFFLOADER
from limnos.rooms.sqlpp.services.requests.open_results import OPEN_RESULTS
from limnos.rooms.sqlpp.services.requests.options import has_ordered_fields, similarity_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

NOTHING_BOUND: Final = BoundQuery(EncodedPlan(TextPosition(1, 1), b""), 0, ())
"""A placeholder for a query whose names are not bound yet."""
UNITS_HERE: Final = 20_000
"""The maximum number of units of work (`sqlpp.functions.costs`) for a query on the event loop: about 5 ms; a larger
query uses a process.
"""
ROWS_HERE: Final = 500
"""The maximum number of metadata objects that a query on the event loop reads; it parses their texts up to TEXT_SHORT
characters.
"""


def binding_of(session: StatementSession, body: tree.Expression, *, variables: tuple[str, ...] = ()) -> QueryBinding:
    """Return the arguments for binding a body in a session. Raises SqlppError for an invalid similarity threshold."""
    return QueryBinding(
        body=body,
        dataverse=session.dataverse,
        parameters=session.parameters,
        moment=session.moment,
        declared=session.declared,
        variables=variables,
        sql_compat=session.sql_compat,
        similarity=similarity_of(session.options),
        ordered_fields=has_ordered_fields(session.options),
    )


async def query_bind(
    session: StatementSession, body: tree.Expression, *, variables: tuple[str, ...] = ()
) -> ReadyQuery:
    """Bind a query, with access decided for all names and for the rows that it reads; a long query in a worker process.

    Raises SqlppError, PermissionDenied.
    """
    binding = binding_of(session, body, variables=variables)
    query = await _bind(session.ctx, binding, known=ResolvedNames(dict(BUILT_IN)))
    await rows_require(session.ctx, query)
    return query


async def statement_bind(session: StatementSession, parsed: ParsedStatement, *, body: tree.Expression) -> ReadyQuery:
    """Bind a statement's query, or return it from the cache if it depends only on its text.

    Raises SqlppError for an invalid query, PermissionDenied if the caller may not load an object or read its rows.
    """
    prepared_statements = PREPARED.of(session.ctx.services).queries
    key = PlanKey(parsed.text, parsed.statement.at, session.dataverse, session.sql_compat)
    rests_on_text = (
        not session.parameters and not session.declared and not session.options and len(parsed.text) <= TEXT_SHORT
    )
    query = prepared_statements.get(key) if rests_on_text else None
    session.uses_cached_plan = query is not None
    if query is not None:
        return query
    binding, resolved_names = binding_of(session, body), ResolvedNames(dict(BUILT_IN))
    query = await _bind(session.ctx, binding, known=resolved_names)
    await rows_require(session.ctx, query)
    # A call of a function, such as current_datetime, looks its name up, so its result is never cached.
    asked_nothing = len(resolved_names.facts) == len(BUILT_IN)
    if rests_on_text and asked_nothing and not isinstance(query.query.expression, EncodedPlan):
        query = query._replace(numbered=_numbered_here(query.query))
        prepared_statements.put(key, query)
    return query


async def _bind(ctx: Context, binding: QueryBinding, *, known: ResolvedNames) -> ReadyQuery:
    def run(known: ResolvedNames) -> BoundQuery:
        return binding.bind(known, nodes_max=NODES_SHORT)

    async def bind_in_process(known: ResolvedNames) -> BoundQuery:
        outcome, *entries = await process_do(ctx, BIND, packed_binding(binding, known))
        if outcome == b"wanted":
            known.unresolved.update(dict.fromkeys(decode_lookups(entries[0])))
        return bound_of(entries[0], entries[1], at=binding.body.at) if outcome == b"done" else NOTHING_BOUND

    query = await bind_with_names(ctx, run, elsewhere=bind_in_process, known=known)
    metadata = tuple([each for each in query.reads if each[0] == METADATA or each[0][0] == RESOURCES])
    ready_query = ReadyQuery(query, metadata)
    if metadata and ready_query.reads_data:
        raise compilation(
            "A query over data can't read the dataverse Metadata as well: send one query after the other",
            binding.body.at,
        )
    return ready_query


async def process_do(ctx: Context, name: str, *parts: bytes, too_large: str | None = None) -> list[bytes]:
    """Run an offloaded function for the caller. `too_large` is the advice in the error if it runs out of memory.

    Raises SqlppError for an error in the statement, ServiceUnavailable.
    """
    caller = await ctx.read(RequestScope(), lambda request_view: request_view.user)
    try:
        entries = await SQLPP_OFFLOADER.of(ctx.services).do(name, *parts, caller=caller)
    except BadRequest as error:  # the process ran out of memory
        raise compilation(too_large or error.message) from None
    if entries[0] == b"refused":
        raise refusal_of(entries[1])
    return entries


class QuerySource(NamedTuple):
    """The input of one scan of a query: its rows, or the objects from which its records are built."""

    key: str
    wanted: ScanRequirement
    rows: tuple[Value, ...] = ()
    request: MetadataRequest | None = None
    gathered: GatheredObjects | None = None

    @property
    def is_short(self) -> bool:
        """Whether there are few enough records to build them on the event loop."""
        few = self.gathered is None or self.gathered.few is not None
        return few and (self.gathered is None or self.gathered.text_length <= TEXT_SHORT)

    def records(self) -> tuple[Value, ...]:
        """Return the rows of a short source, built on the event loop."""
        if self.request is None or self.gathered is None:
            return self.rows
        few = self.gathered.few or ()
        dataverses = self.request.dataverses
        builds_in = dataverses is None or METADATA in dataverses
        return tuple(metadata_records(self.request.dataset, few, fields=self.wanted.fields, with_built_in=builds_in))


async def query_rows(
    ctx: Context, bound: ReadyQuery, *, warnings: list[SqlppError] | None = None, tagged: bool = False
) -> AsyncGenerator[bytes, None]:
    """Execute a query over constants and metadata. Yields one line of JSON per result, with type tags if `tagged`.

    Warnings are appended to the list. Raises SqlppError, PermissionDenied, ServiceUnavailable.
    """
    errors: list[SqlppError] = [] if warnings is None else warnings
    query, sources = bound.query, []
    async with AsyncExitStack() as stack:
        if bound.metadata:
            query, requirements = bound.numbered or await _number_scans(ctx, query)
            if any(each.dataverse == METADATA for each in requirements):
                # Collected objects stay in memory until the query has run, so the number of such queries is limited.
                await stack.enter_async_context(GATHERING_SLOTS.of(ctx.services))
            sources = await _sources(ctx, requirements)
        try:
            entries = _evaluate_small(query, sources, warnings=errors, tagged=tagged)
        except BudgetSpent:
            async for line in _rows_of_process(ctx, query, sources=sources, warnings=errors, tagged=tagged):
                yield line
        else:
            for line in entries:
                yield line


async def require_metadata(ctx: Context, bound: ReadyQuery) -> None:
    """Check that the catalog of a query over Metadata can be read and is in use, without reading its objects, for
    EXPLAIN.

    Raises NotFound, PermissionDenied.
    """
    if bound.metadata:
        await resources_read(ctx, [each for each in bound.metadata if each[0] != METADATA])


async def _number_scans(ctx: Context, query: BoundQuery) -> tuple[BoundQuery, tuple[ScanRequirement, ...]]:
    """Return a query with numbered scans, and the requirement of each scan.

    A worker process computes them for long plans or for conditions that must be evaluated. Raises SqlppError,
    ServiceUnavailable.
    """
    result = None if isinstance(query.expression, EncodedPlan) else _numbered_here(query)
    if result is not None:
        return result
    _, plan, data = await process_do(ctx, SCANS, wire.encode(query.expression))
    return query._replace(expression=EncodedPlan(query.expression.at, plan)), scans_of(data)


def _numbered_here(query: BoundQuery) -> tuple[BoundQuery, tuple[ScanRequirement, ...]] | None:
    """Number the scans on the event loop; None for a query with conditions that must be evaluated."""
    if runs_functions(query.expression):
        return None
    expression, requirements = prepare_scans(query.expression, carries=False)
    return query._replace(expression=expression), requirements


async def _sources(ctx: Context, requirements: Sequence[ScanRequirement]) -> list[QuerySource]:
    """Read the input of a query's scans; scans with the same requirement share it. Raises SqlppError,
    PermissionDenied.
    """
    requested = [(each.dataverse, each.name) for each in requirements if each.dataverse != METADATA]
    rows = iter(await resources_read(ctx, requested) if requested else ())
    requests = {
        number: MetadataRequest.of(each) for number, each in enumerate(requirements) if each.dataverse == METADATA
    }
    gathered = await metadata_gather(ctx, dict.fromkeys(requests.values()), few_max=ROWS_HERE)
    sources = []
    for number, each in enumerate(requirements):
        key, request = source_key(NUMBERED, str(number)), requests.get(number)
        if request is None:
            sources.append(QuerySource(key=key, wanted=each, rows=next(rows)))
        else:
            sources.append(QuerySource(key=key, wanted=each, request=request, gathered=gathered[request]))
    return sources


def _evaluate_small(
    query: BoundQuery, sources: Sequence[QuerySource], *, warnings: list[SqlppError], tagged: bool
) -> list[bytes]:
    """Evaluate a small query on the event loop. Raises BudgetSpent if the query is not small, SqlppError."""
    is_short = all(each.is_short for each in sources)
    if isinstance(query.expression, EncodedPlan) or not is_short:
        raise BudgetSpent
    if sum(len(each.rows) if each.gathered is None else each.gathered.count for each in sources) > ROWS_HERE:
        raise BudgetSpent
    rows = {each.key: each.records() for each in sources}
    budget = MeteredBudget(UNITS_HERE, slots=query.slots)
    entries = []
    for value in results(query, lambda dataverse, name: rows[source_key(dataverse, name)], budget=budget):
        budget.charge_json(value)
        entries.append(row_line(value, tagged=tagged))
    warnings += budget.warnings.values()
    return entries


async def _rows_of_process(
    ctx: Context, query: BoundQuery, *, sources: Sequence[QuerySource], warnings: list[SqlppError], tagged: bool
) -> AsyncGenerator[bytes, None]:
    """Yield the results of a query that a worker process evaluates; the process also builds the metadata records.

    Raises SqlppError, ServiceUnavailable, TooManyAttempts if the node has too many bytes of results for the caller.
    """
    data, parts = _pack_sources(sources)
    requests = [each.request for each in sources if each.request is not None]
    wide = min(requests, key=lambda each: each.dataverses is not None, default=None)
    hint = None if wide is None else f"This query needs more memory than a query may use. {narrowing_advice(wide)}"
    plan = wire.encode(query.expression)
    form = TAGGED if tagged else PLAIN
    slots = str(query.slots).encode()
    _, result, *entries = await process_do(ctx, EVALUATE, plan, slots, form, data, *parts, too_large=hint)
    warnings += warnings_of(result)
    caller = await ctx.read(RequestScope(), lambda request_view: request_view.user)
    entries.reverse()
    with OPEN_RESULTS.of(ctx.services).hold(caller, sum(map(len, entries))):
        while entries:
            for line in lines_of(entries.pop()):
                yield line


def _pack_sources(sources: Sequence[QuerySource]) -> tuple[bytes, list[bytes]]:
    """Encode the sources for a worker process: the instructions to build each one, and the objects in chunks."""
    parts: list[bytes] = []
    places: dict[MetadataRequest, tuple[int, ...]] = {}
    arguments: dict[str, SourceRows] = {}
    for each in sources:
        if each.request is None or each.gathered is None:
            rows = tuple(msgspec.Raw(msgspec.json.encode(to_tagged_json(row))) for row in each.rows)
            arguments[each.key] = SourceRows(rows)
            continue
        if each.request not in places:
            places[each.request] = tuple(range(len(parts), len(parts) + len(each.gathered.parts)))
            parts += each.gathered.parts
        arguments[each.key] = SourceRows((), each.request.dataset, places[each.request], each.wanted.fields)
    return msgspec.json.encode(arguments), parts
