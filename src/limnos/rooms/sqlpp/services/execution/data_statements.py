# SPDX-License-Identifier: Apache-2.0
"""Data statements: decides on a statement over data, then runs it in an engine.

Must not know any wire format. Access to every dataset of a statement is decided before its job (`row_access`,
`write_targets`). The engine uses a token of the caller that is issued for the statement, so it has no further rights.
Writers of a dataset wait for its lock.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Final, NamedTuple, cast
from uuid import uuid4

import msgspec

from limnos.model.errors import LimnosError
from limnos.model.principals import TokenPurpose
from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import BoundQuery, ParsedStatement, SqlppError, parse_body, tree
from limnos.rooms.sqlpp.language.errors import (
    DuplicateKey,
    EngineFailed,
    EngineUnavailable,
    OutcomeUnknown,
    SnapshotMoved,
    TextPosition,
    compilation,
)
from limnos.rooms.sqlpp.language.explain import explain_plan
from limnos.rooms.sqlpp.language.exports import ExportFormat
from limnos.rooms.sqlpp.language.jobs import EngineJob, ExternalSource, JobKind, form_of, text_of
from limnos.rooms.sqlpp.language.plan import EncodedPlan, Expression, wire
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.language.values.tagged import from_tagged_json
from limnos.rooms.sqlpp.services.definitions.files import check_file_source
from limnos.rooms.sqlpp.services.definitions.types import inlined_record
from limnos.rooms.sqlpp.services.execution.compaction_requests import cleanup_plan, compaction_ask
from limnos.rooms.sqlpp.services.execution.dataset_files import TRIES, pin_job
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.execution.prepared import ReadyQuery
from limnos.rooms.sqlpp.services.execution.queries import query_bind, query_rows
from limnos.rooms.sqlpp.services.execution.row_access import dataset_refs
from limnos.rooms.sqlpp.services.execution.statement_outcomes import is_carried_out
from limnos.rooms.sqlpp.services.execution.update_queries import update_query
from limnos.rooms.sqlpp.services.execution.write_targets import WriteTarget, hold_dataset_lock, target_find
from limnos.rooms.sqlpp.services.locks.statement_locks import HeldLocks
from limnos.rooms.sqlpp.services.requests.options import has_ordered_fields
from limnos.rooms.sqlpp.services.requests.running_requests import StatementEnded
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.identity.tokens import STATEMENT_PREFIX, token_create, token_revoke
from limnos.services.request.context import Context

DataStatement = tree.Insert | tree.Delete | tree.Update | tree.Load | tree.CopyFrom

CHANGES: Final = (tree.Insert, tree.Delete, tree.Update, tree.Load, tree.CopyFrom)
"""The statements that change the objects of a dataset."""
TOKEN_GRACE_S: Final = 60
METADATA_ROWS_MAX: Final = 10_000
"""The maximum number of objects of the metadata that one statement writes."""
ROWS_AT_ONCE: Final = 200
"""The number of rows that are decoded before other requests have a turn."""
_LEFT: Final = {
    True: "the statement was executed before that",
    False: "nothing was changed",
    None: "the statement was executed completely or not at all, check before you send it again",
}


class DataChange(NamedTuple):
    """A data-modifying statement: its target, its locks, and the statement id that its snapshot records."""

    target: WriteTarget
    held: HeldLocks
    statement: str


class BoundStatement(NamedTuple):
    """A statement whose names are bound: the kind of its job, its source, its RETURNING, and the files that it reads or
    exports.
    """

    kind: JobKind
    source: BoundQuery | None
    returning: BoundQuery | None = None
    files: ExternalSource | None = None
    export: ExportFormat | None = None


async def data_rows(session: StatementSession, bound: ReadyQuery) -> AsyncGenerator[bytes, None]:
    """Yield the results of a query from the engine, as JSON lines. Raises SqlppError if the query fails."""
    async with aclosing(job_rows(session, BoundStatement(kind="query", source=bound.query))) as rows:
        async for row in rows:
            yield row


async def data_explain(session: StatementSession, bound: ReadyQuery) -> bytes:
    """Return the execution plan of a query over data, for EXPLAIN.

    The server computes it without the engine, so the columns of tables that SQL++ did not create are unknown.
    """
    reads = await dataset_refs(session, bound.query.reads)
    forms = {(ref.dataverse, ref.name): form_of(ref) for ref in reads if ref.type and ref.files is None}
    indexes = {(ref.dataverse, ref.name): ref.indexes for ref in reads}
    plan = bound.query.expression
    if isinstance(plan, EncodedPlan):
        plan = cast("Expression", await asyncio.to_thread(wire.decode, plan.data))
    return explain_plan(plan, lambda *dataset: forms.get(dataset), indexes=lambda *dataset: indexes.get(dataset, ()))


async def change_rows(session: StatementSession, parsed: ParsedStatement) -> AsyncGenerator[bytes, None]:
    """Execute INSERT, UPSERT, DELETE, UPDATE, LOAD or COPY in the engine. Yields the results of RETURNING.

    May also create tasks that compact the dataset. Raises SqlppError (OutcomeUnknown if the outcome of the commit is
    unknown), PermissionDenied, LockTimeout, ServiceUnavailable, and StatementEnded if the statement is cancelled.
    """
    statement = parsed.statement
    if not isinstance(statement, CHANGES):
        raise TypeError(f"{type(statement).__name__} changes no data")
    target = await target_find(session, statement.target, word=_word(statement))
    work = await _work(session, statement, target=target)
    if session.compiles_only:
        return
    async with AsyncExitStack() as stack:
        locks = await _hold_lock(session, target, stack=stack)
        change = DataChange(target, locks, f"{session.ctx.request_id}-{uuid4().hex}")
        try:
            async with aclosing(job_rows(session, work, change=change)) as rows:
                async for row in rows:
                    if work.returning is not None:
                        yield row
        except SqlppError as error:
            failure = error
            if isinstance(error, DuplicateKey) and isinstance(statement, tree.Load):
                failure = DuplicateKey(error.key, is_load=True)
            await _raise_outcome(session.ctx, change, error=failure, returns=work.returning is not None)
        except asyncio.CancelledError:
            raise StatementEnded(_LEFT[await _outcome(session.ctx, change)]) from None
    if target.ref.key:
        await compaction_ask(session.ctx, table_id=target.table_id, path=target.path)


async def _hold_lock(session: StatementSession, target: WriteTarget, *, stack: AsyncExitStack) -> HeldLocks:
    """Acquire the dataset's lock for the statement; `stack` releases it.

    Raises StatementEnded if the statement is cancelled before that, and LockTimeout, ServiceUnavailable.
    """
    try:
        if target.ref.key:
            await cleanup_plan(session.ctx, table_id=target.table_id, path=target.path)
        return await stack.enter_async_context(hold_dataset_lock(session.ctx, target, seconds=session.seconds_left))
    except asyncio.CancelledError:
        raise StatementEnded(_LEFT[False]) from None


async def _outcome(ctx: Context, change: DataChange) -> bool | None:
    return await is_carried_out(ctx, change.held, table_id=change.target.table_id, statement=change.statement)


async def _raise_outcome(ctx: Context, change: DataChange, *, error: SqlppError, returns: bool) -> None:
    """Determine whether a failed statement was committed, and raise the error that states the outcome.

    Returns without an error if the statement was committed, only its response was lost, and it `returns` nothing.
    Raises OutcomeUnknown if the outcome cannot be determined, else SqlppError.
    """
    done = await _outcome(ctx, change)
    if done is None:
        raise OutcomeUnknown from error
    if done and returns:
        message = f"The statement was executed, but its result is incomplete: {error.message}"
        if isinstance(error, (EngineUnavailable, EngineFailed, OutcomeUnknown)):
            raise EngineFailed(message) from error
        raise SqlppError(error.number, message)
    if not done and isinstance(error, OutcomeUnknown):
        raise EngineUnavailable(
            "The engine ended in the middle of the statement; nothing was changed: try again", number=error.number
        )
    if not done:
        raise error


def _word(statement: DataStatement) -> str:
    if isinstance(statement, tree.CopyFrom):
        return "Copy"
    if isinstance(statement, tree.Insert):
        return "Upsert" if statement.upsert else "Insert"
    return type(statement).__name__


async def _work(session: StatementSession, statement: DataStatement, *, target: WriteTarget) -> BoundStatement:
    """Bind the source, the RETURNING and the files of a data-modifying statement. Raises SqlppError,
    PermissionDenied.
    """
    if isinstance(statement, (tree.Load, tree.CopyFrom)):
        files = check_file_source(session.ctx, statement.adapter, options=statement.options, at=statement.at)
        if isinstance(statement, tree.Load):
            return BoundStatement(kind="load", source=None, files=files)
        if statement.type is not None:
            type_ = text_of(await inlined_record(session, statement.type))
            files = msgspec.structs.replace(files, type=type_)
        return BoundStatement(kind="copy", source=None, files=files)
    if isinstance(statement, tree.Delete):
        bound_query = await query_bind(session, _deletion_query(statement, target))
        return BoundStatement(kind="delete", source=require_data(bound_query, statement.at))
    source = (
        statement.source
        if isinstance(statement, tree.Insert)
        else await asyncio.to_thread(
            update_query,
            statement,
            target.path,
            keys=target.ref.key,
            moves=not has_ordered_fields(session.options),
        )
    )
    bound_query = await _settled_source(session, await query_bind(session, source))
    returning = None
    if statement.returning is not None:
        variable = statement.variable or target.path[-1]
        returning = await _returning(session, statement.returning, variable=variable)
    kind: JobKind = "update"
    if isinstance(statement, tree.Insert):
        kind = "upsert" if statement.upsert else "insert"
    return BoundStatement(kind=kind, source=require_data(bound_query, statement.at), returning=returning)


async def _settled_source(session: StatementSession, bound: ReadyQuery) -> ReadyQuery:
    """Replace a source that reads only metadata by a query over its rows; return any other source unchanged.

    Raises SqlppError for more than `METADATA_ROWS_MAX` rows: they are part of the plan, which is encoded at once;
    PermissionDenied.
    """
    if not bound.metadata or bound.reads_data:
        return bound
    async with aclosing(query_rows(session.ctx, bound, warnings=session.warnings, tagged=True)) as rows:
        values: list[Value] = []
        async for row in rows:
            if len(values) == METADATA_ROWS_MAX:
                text = f"A statement writes at most {METADATA_ROWS_MAX:,} objects of the metadata: add a condition"
                raise compilation(text, bound.query.expression.at)
            values.append(from_tagged_json(msgspec.json.decode(row)))
            if len(values) % ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
    body = parse_body("select value r from $metadata_rows as r")
    parameters = {**session.parameters, "metadata_rows": tuple(values)}
    return await query_bind(dataclasses.replace(session, parameters=parameters), body)


def require_data(bound: ReadyQuery, at: TextPosition) -> BoundQuery:
    """Return the query of a data-modifying statement. Raises SqlppError if the query reads metadata."""
    if bound.metadata:
        raise compilation("A statement that writes can't read the dataverse Metadata", at)
    return bound.query


def _deletion_query(statement: tree.Delete, target: WriteTarget) -> tree.QueryExpression:
    """Return the query that selects the objects that a DELETE deletes."""
    variable = identifier(statement.variable or statement.target.last)
    query = parse_body(f"from {'.'.join(map(identifier, target.path))} as {variable} select value {variable}")
    if not isinstance(query, tree.QueryExpression):
        raise TypeError("a query is a query")
    return msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, where=statement.where))


async def _returning(session: StatementSession, body: tree.Expression, *, variable: str) -> BoundQuery:
    query = (await query_bind(session, body, variables=(variable,))).query
    if query.reads:
        raise compilation(
            "A returning expression cannot contain dataset access: it only reads the written objects", body.at
        )
    return query


async def job_rows(
    session: StatementSession, work: BoundStatement, *, change: DataChange | None = None
) -> AsyncGenerator[bytes, None]:
    """Run a job in the engine, with a token of the caller that is issued for it. Yields its results as JSON lines.

    Raises SqlppError if the job fails, PermissionDenied.
    """
    ctx = session.ctx
    reads = () if work.source is None else await dataset_refs(session, work.source.reads)
    token, text = await token_create(
        ctx,
        user=None,
        name=f"{STATEMENT_PREFIX}{ctx.request_id}",
        expires_in_s=int(session.seconds_left) + TOKEN_GRACE_S,
        purpose=TokenPurpose.WORK,
    )
    job = EngineJob(
        id=f"{ctx.request_id}-{token.id}" if change is None else change.statement,
        kind=work.kind,
        plan=b"" if work.source is None else wire.encode(work.source.expression),
        slots=0 if work.source is None else work.source.slots,
        reads=reads,
        target=None if change is None else change.target.ref,
        returning=None if work.returning is None else wire.encode(work.returning.expression),
        returning_slots=0 if work.returning is None else work.returning.slots,
        credential=text,
        deadline_ms=1,
        user=token.user,
        source=work.files,
        lock="" if change is None else change.held.token_text,
        tagged=session.results_tagged,
        export=work.export,
        ordered_fields=has_ordered_fields(session.options),
    )
    try:
        for attempt in range(TRIES):
            pinned, snapshots = await pin_job(ctx, job)
            attempted = msgspec.structs.replace(pinned, deadline_ms=max(1, int(session.seconds_left * 1000)))
            rows, has_rows = ENGINE.of(ctx.services).run(attempted, warnings=session.warnings), False
            try:
                with snapshots.reading(ctx, lock=None if change is None else change.held.token):
                    async for row in rows:
                        if not has_rows and not await snapshots.are_unchanged(ctx):
                            raise SnapshotMoved
                        has_rows = True
                        yield row
            except SnapshotMoved:
                if has_rows or attempt == TRIES - 1:
                    raise
            else:
                return
            finally:
                close = getattr(rows, "aclose", None)
                if close is not None:
                    await close()
    finally:
        await _revoke_token(ctx, token.id)


async def _revoke_token(ctx: Context, token_id: int) -> None:
    """Revoke a statement's token; if that fails, the token expires later."""
    try:
        await token_revoke(ctx, token_id=token_id)
    except LimnosError:
        return
