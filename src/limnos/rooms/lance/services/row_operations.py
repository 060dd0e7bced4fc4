# SPDX-License-Identifier: Apache-2.0
"""Row operations: count, query and write the rows of Lance tables.

The store decides first; then worker processes do the work (`services.workers`). Reading rows needs TABLE_READ,
describing a table only TABLE_LOAD; both are decided again after the files were read. Changing rows needs TABLE_COMMIT,
which is decided twice: before the body is read, and again when all of it has arrived. A change that depends on the
stored rows needs TABLE_READ as well (0155).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, TypeVar, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local, leads_within
from limnos.model.errors import BadRequest, CommitConflict, NotFound, OutsideRoots
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.lance.services.catalog_directories import table_read_confirmed
from limnos.rooms.lance.services.table_data import has_table_data
from limnos.rooms.lance.services.table_description import VERSION_END, VersionReference, state_of
from limnos.rooms.lance.services.worker_callbacks import VersionCallbacks, newest_versions_of
from limnos.rooms.lance.services.workers import WORKERS, WorkerTask, answer_question, storage_options_of, worker_task_of
from limnos.rooms.lance.sources.questions import (
    AddColumns,
    AlterColumns,
    CreateIndex,
    Delete,
    Explain,
    LanceQuestion,
    LanceWriteResult,
    Merge,
    Query,
    Update,
)
from limnos.services.lance.tables import LanceTable, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

T = TypeVar("T")
_NEWEST: Final = VersionReference()
READING_CHANGES: Final = (AddColumns, CreateIndex, Delete, Merge, Update)
"""The changes whose counts, errors or new values always depend on the stored rows."""
NO_DATA_MESSAGE: Final = "The table was declared and has no data yet: insert some first"


def no_data(table: LanceTable) -> NotFound:
    """Return the error for a table without data.

    Raises OutsideRoots for a location that is not allowed: the server does not look there, so the data may be there.
    """
    table.place.check(table.location)
    return NotFound(NO_DATA_MESSAGE, kind="table")


async def rows_read_confirmed(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    at: VersionReference,
    work: Callable[[LanceTable, VersionReference], Awaitable[T]],
    action: Action = Action.TABLE_READ,
) -> T:
    """Read a table with data, for a caller who may do the action before and after that. `work` gets the table and the
    resolved version, and may run several times.

    Raises NotFound, also for a table without data, InvalidTable, and PermissionDenied.
    """

    async def read(table: LanceTable) -> T:
        check_version(at)
        state = await state_of(ctx, table, at=at)
        if state is None:
            raise no_data(table)
        return await work(table, state)

    return await table_read_confirmed(ctx, scope, levels=levels, work=read, action=action)


def table_to_change(
    request_view: RequestView,
    levels: Levels,
    *,
    action: Action = Action.TABLE_COMMIT,
    question: LanceQuestion | None = None,
) -> LanceTable:
    """Return a table whose files the server changes itself, for a caller who may do the action, and who may read rows
    if the change depends on them.

    Raises NotFound, PermissionDenied.
    """
    table = lance_load(request_view, levels, action=action)
    return lance_load(request_view, levels, action=Action.TABLE_READ) if is_reading(question) else table


def is_reading(question: LanceQuestion | None) -> bool:
    """Return whether the result of a change depends on the stored rows: also that of a cast, whose error names a value,
    and of a column that is made required.
    """
    if isinstance(question, AlterColumns):
        return any(each.data_type is not None or each.nullable is False for each in question.alterations)
    return isinstance(question, READING_CHANGES)


def bind_question(table: LanceTable, question: LanceQuestion, *, at: VersionReference = _NEWEST) -> LanceQuestion:
    """Add the table's location, storage options and version to a worker request.

    Raises OutsideRoots, BadRequest or StorageMisconfigured if the settings do not allow the table's location or
    storage.
    """
    place = table.place
    place.check(table.location)
    if not is_local(table.location):
        place.allowed.check_use(place.catalog.properties)
    elif not leads_within(table.location, place.roots, allowed=place.allowed):
        raise OutsideRoots(
            f"A link leads from {table.location} out of the catalog's roots: reads and writes there are refused"
        )
    return msgspec.structs.replace(
        question,
        location=table.location,
        options=storage_options_of(place.catalog.properties),
        version=at.version,
        tag=at.tag,
        branch=at.branch,
    )


def final_check_of(
    ctx: Context, scope: RequestScope, *, table: LanceTable, decide: Callable[[RequestView], LanceTable]
) -> Callable[[], Awaitable[None]]:
    """Return the check that a worker task runs just before a change.

    It raises if the caller may no longer change the table, and CommitConflict if another table has replaced it.
    """

    async def require_same_table() -> None:
        now = await ctx.read(scope, decide)
        if (now.node.id, now.location) != (table.node.id, table.location):
            raise CommitConflict(
                "The table was replaced by another one concurrently, and nothing was changed: read the table again"
            )

    return require_same_table


async def ask_files(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    at: VersionReference,
    question: LanceQuestion,
    shape: type[T],
    action: Action,
) -> T:
    """Read information from a table's files.

    Args:
        ctx: The request.
        scope: The catalog.
        levels: The levels of the table's name.
        at: The state of the table.
        question: The request to a worker; its location is set here.
        shape: The type of the result.
        action: TABLE_READ for requests that read rows, else TABLE_LOAD.

    Raises:
        NotFound: The table, version, tag, branch, column, index or transaction is missing, or the table has no data.
        BadRequest: The request is invalid.
        OutsideRoots: The table's location is not allowed.
        PermissionDenied: The caller may not do the action.
    """

    async def read(table: LanceTable, state: VersionReference) -> T:
        return await answer_question(ctx, worker_task_of(ctx, bind_question(table, question, at=state)), shape=shape)

    return await rows_read_confirmed(ctx, scope, levels=levels, at=at, work=read, action=action)


async def change_files(
    ctx: Context, scope: RequestScope, *, levels: Levels, at: VersionReference, question: LanceQuestion, shape: type[T]
) -> T:
    """Change a table's files. Raises as `ask_files`, and AlreadyExists (index), SchemaMismatch, CommitConflict."""

    def decide(request_view: RequestView) -> LanceTable:
        return table_to_change(request_view, levels, question=question)

    table = await ctx.read(scope, decide)
    check_version(at)
    if not await has_table_data(ctx, table):
        raise no_data(table)
    worker_task = await _change(
        ctx, scope, table=table, levels=levels, question=bind_question(table, question, at=at), decide=decide
    )
    result = await answer_question(ctx, worker_task, shape=shape)
    _audit_change(ctx, scope, table=table, levels=levels, task=worker_task, result=result)
    return result


def _audit_change(
    ctx: Context, scope: RequestScope, *, table: LanceTable, levels: Levels, task: WorkerTask, result: object
) -> None:
    """Write the audit record of a change whose version only the files have. That of a managed version is written with
    it, in the store's transaction; work without a request of its own has the record of its operation.
    """
    if ctx.audited_request is None or ctx.audited_request.has_changed:
        return
    counts = [
        f"{number} rows {word}"
        for word in ("inserted", "updated", "deleted")
        if (number := getattr(result, word, 0)) and isinstance(number, int)
    ]
    version = getattr(result, "version", None)
    ctx.audit_rows(
        table.node.id,
        (scope.catalog or "", *levels),
        kind=Kind.TABLE.word,
        action=Action.TABLE_COMMIT,
        user=task.caller,
        detail=", ".join([*counts, *([] if version is None else [f"version {version}"])]),
    )


async def _change(
    ctx: Context,
    scope: RequestScope,
    *,
    table: LanceTable,
    levels: Levels,
    question: LanceQuestion,
    decide: Callable[[RequestView], LanceTable],
) -> WorkerTask:
    """Return the worker task of a change. For a managed table it contains the newest versions, and the callbacks that
    commit the change.
    """
    versions = await newest_versions_of(ctx, table, branch=question.branch, version=question.version)
    calls = None if versions is None else VersionCallbacks(ctx, scope, levels=levels)
    look = final_check_of(ctx, scope, table=table, decide=decide)
    return worker_task_of(ctx, msgspec.structs.replace(question, kept=versions), settled=look, calls=calls)


async def rows_query(
    ctx: Context, scope: RequestScope, *, levels: Levels, at: VersionReference, question: LanceQuestion
) -> AsyncGenerator[bytes, None]:
    """Query rows: yields an Arrow file in chunks, of which the first exists when this returns.

    The access is decided again after the first chunk. All later chunks belong to the version that was opened for it.
    Raises as `ask_files`.
    """
    streams: list[AsyncGenerator[bytes, None]] = []

    async def begin(table: LanceTable, state: VersionReference) -> bytes:
        if streams:  # of an earlier attempt, which was for another table
            await streams.pop().aclose()
        streams.append(WORKERS.of(ctx.services).stream(worker_task_of(ctx, bind_question(table, question, at=state))))
        return await anext(streams[-1])

    try:
        first = await rows_read_confirmed(ctx, scope, levels=levels, at=at, work=begin)
    except BaseException:
        for pieces in streams:
            await pieces.aclose()
        raise
    return _stream_pieces(first, streams[-1])


async def _stream_pieces(first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()


async def query_explain(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    at: VersionReference,
    query: Query,
    verbose: bool = False,
    runs: bool = False,
) -> str:
    """Return the plan of a query; with `runs` execute it and return the measured plan. Raises as `ask_files`."""

    async def read(table: LanceTable, state: VersionReference) -> str:
        request = cast("Query", bind_question(table, query, at=state))
        question = Explain(
            location=request.location, options=request.options, query=request, verbose=verbose, runs=runs
        )
        return await answer_question(ctx, worker_task_of(ctx, question), shape=str)

    return await rows_read_confirmed(ctx, scope, levels=levels, at=at, work=read)


async def rows_write(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    branch: str | None,
    question: LanceQuestion,
    body: AsyncGenerator[bytes, None],
) -> LanceWriteResult:
    """Change a table by the rows in a body; a `Write` may create the first version.

    Args:
        ctx: The request.
        scope: The catalog.
        levels: The levels of the table's name.
        branch: The branch; None for the main one.
        question: A `Write`, a `Merge` or an `AddFields`.
        body: An Arrow stream, in chunks.

    Raises:
        NotFound: The table or branch is missing.
        SchemaMismatch: The rows do not fit the table.
        BadRequest: The body is incomplete or not an Arrow stream.
        OutsideRoots: The table's location is not allowed.
        CommitConflict: Another commit conflicts, or another table has replaced it.
        PermissionDenied: The caller may not change the table.
    """

    def decide(request_view: RequestView) -> LanceTable:
        return table_to_change(request_view, levels, question=question)

    table = await ctx.read(scope, decide)
    check_keys(question)  # after the decision: a caller without the right learns only that
    question = bind_question(table, question, at=VersionReference(branch=branch))
    return await write_body(ctx, scope, table=table, levels=levels, question=question, decide=decide, body=body)


def check_keys(question: LanceQuestion) -> None:
    """Raise BadRequest for a merge without key columns."""
    if isinstance(question, Merge) and not question.on:
        raise BadRequest("A merge needs key columns: name them as on=COLUMN, once for each")


def check_version(at: VersionReference) -> None:
    """Raise NotFound for a version number outside of the valid range."""
    if at.version is not None and not 0 < at.version < VERSION_END:
        raise NotFound(str(at.version), kind="version")


async def write_body(
    ctx: Context,
    scope: RequestScope,
    *,
    table: LanceTable,
    levels: Levels,
    question: LanceQuestion,
    decide: Callable[[RequestView], LanceTable],
    body: AsyncGenerator[bytes, None],
) -> LanceWriteResult:
    """Change a table by the rows in a body, in a worker process. Raises as `rows_write`."""
    worker_task = await _change(ctx, scope, table=table, levels=levels, question=question, decide=decide)
    result = msgspec.json.decode(await WORKERS.of(ctx.services).feed(worker_task, body), type=LanceWriteResult)
    _audit_change(ctx, scope, table=table, levels=levels, task=worker_task, result=result)
    return result
