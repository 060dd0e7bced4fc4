# SPDX-License-Identifier: Apache-2.0
"""Lance table creation: creates a table with its rows, which are written first, so that the tree never shows an
incomplete table.

To create a table, the caller needs the right to create tables in its namespace. To overwrite a table, the caller also
needs the right to drop it, because the new version replaces all rows. To fill a declared table, the caller needs the
right to change it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, LimnosError, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.object_errors import name_taken_error
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.lance.services.purges import LancePurge
from limnos.rooms.lance.services.row_operations import bind_question, table_to_change, write_body
from limnos.rooms.lance.services.table_data import has_data, has_table_data
from limnos.rooms.lance.services.table_drafts import (
    LanceTableDraft,
    lance_draft_of,
    lance_draft_replacing,
    lance_table_make,
    versions_of,
)
from limnos.rooms.lance.services.workers import WORKERS, worker_task_of
from limnos.rooms.lance.sources.questions import LanceWriteResult, Write
from limnos.services.lance.purge_tasks import LANCE_PURGE, lance_purge_of
from limnos.services.lance.table_commands import LanceCreate
from limnos.services.lance.tables import LanceTable, lance_find, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.purges import PurgePayload
from limnos.services.vending.credentials import new_table_credentials
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.lance")
CREATE, EXIST_OK, OVERWRITE = "create", "existok", "overwrite"
MODES = (CREATE, EXIST_OK, OVERWRITE)
_NEEDED = {CREATE: Action.TABLE_COMMIT, EXIST_OK: Action.TABLE_LOAD, OVERWRITE: Action.TABLE_DROP}
"""The action that each mode requires on an existing table of the same name."""


class TableCreateRequest(NamedTuple):
    """A table to create: its name, its location if given, its properties, and the mode, which determines what happens
    to an existing table.
    """

    levels: Levels
    mode: str
    location: str | None
    properties: Mapping[str, str]
    delegates: bool = False
    """Whether the client requests credentials for the table's files."""


class CreatedTable(NamedTuple):
    """A table, and the result of writing into it; None if an existing table was left unchanged."""

    table: LanceTable
    written: LanceWriteResult | None


class LanceAlter(msgspec.Struct, frozen=True):
    """The command to replace a Lance table's record, after its rows were overwritten."""

    table: Node
    record: TableRecord


async def table_create(
    ctx: Context, scope: RequestScope, *, request: TableCreateRequest, body: AsyncGenerator[bytes, None]
) -> CreatedTable:
    """Create a table from the rows in a body; it becomes visible only when all of them are written.

    Raises NotFound (the namespace), AlreadyExists, OutsideRoots, PermissionDenied, and the errors of writing rows.
    """
    draft, table = await ctx.read(scope, lambda request_view: _decide_create(request_view, request))
    if table is None:
        return await _create_new(ctx, scope, request=request, draft=draft, body=body)
    if request.mode == EXIST_OK:
        await body.aclose()
        return CreatedTable(table, None)
    if request.mode == CREATE and await has_table_data(ctx, table):
        raise name_taken_error(request.levels, kind=Kind.TABLE, holder=Kind.TABLE.word)
    return await _overwrite_rows(ctx, scope, request=request, lance_table=table, body=body)


def _decide_create(request_view: RequestView, request: TableCreateRequest) -> tuple[LanceTableDraft, LanceTable | None]:
    """Decide on creating a table, and return the draft and the existing table of that name; None if the name is
    free.
    """
    draft, _ = lance_draft_replacing(request_view, request.levels, action=Action.TABLE_CREATE)
    holder, _ = request_view.find(request.levels, Kind.TABLE)
    if holder is None:
        return draft, None
    exists = name_taken_error(request.levels, kind=Kind.TABLE, holder=holder.kind.word)
    if holder.kind is not Kind.TABLE:
        raise exists
    find = lance_load if request.mode == EXIST_OK else table_to_change
    try:
        return draft, find(request_view, request.levels, action=_NEEDED[request.mode])
    except PermissionDenied:
        if request.mode != CREATE:
            raise
        raise exists from None  # a caller who may create tables here may learn that the name is taken


async def _create_new(
    ctx: Context,
    scope: RequestScope,
    *,
    request: TableCreateRequest,
    draft: LanceTableDraft,
    body: AsyncGenerator[bytes, None],
) -> CreatedTable:
    """Write the rows to an unused location, then add the table to the tree. Raises AlreadyExists."""
    record = TableRecord(
        comment=None, properties=dict(request.properties), managed=draft.is_managed(request.properties)
    )
    versions: tuple[LanceVersion, ...] = ()
    document = draft.document(request.location, now_ms=ctx.services.store.time.now_ms())
    if await has_data(ctx, document.location, place=draft.place):
        raise AlreadyExists(f"A table already exists at {document.location}: register it", kind="table")
    is_chosen = request.location is not None
    had_files = is_chosen and await draft.place.has_unclaimed_files(ctx.services.files, document.location)
    if request.delegates:  # fails before anything is written if no credentials can be issued
        await new_table_credentials(ctx, document.location, place=draft.place)

    def decide(request_view: RequestView) -> Permit[LanceCreate]:
        again = lance_draft_of(request_view, request.levels, action=Action.TABLE_CREATE)
        return again.command(
            request.levels[-1], document, record=record, versions=versions, mark=mark, had_files=had_files
        )

    async def decide_again() -> None:
        await ctx.read(scope, decide)

    table = LanceTable(draft.parent, record, document.location, draft.place)
    mark = (
        await _leave_cleanup_task(ctx, document.location, catalog_id=draft.permit.zone)
        if request.location is None
        else None
    )
    question = Write(location="", options={}, mode=CREATE, batch_bytes_max=ctx.services.defaults.lance_batch_bytes_max)
    worker_task = worker_task_of(ctx, bind_question(table, question), settled=decide_again)
    try:
        data = await WORKERS.of(ctx.services).feed(worker_task, body)
        ctx.submitted = False  # nothing references the new files yet, so after an error they can be deleted
        versions = await versions_of(ctx, document, place=draft.place, record=record)
        node = await lance_table_make(ctx, scope, decide=decide, levels=request.levels)
    except BaseException:
        if request.location is None and not ctx.submitted:
            ctx.services.files.run_in_background(_delete_leftovers(ctx, table, mark=mark))
        raise
    return CreatedTable(table._replace(node=node), msgspec.json.decode(data, type=LanceWriteResult))


async def _leave_cleanup_task(ctx: Context, location: str, *, catalog_id: int) -> int | None:
    """Create the cleanup task of a new table, before anything is written: a killed node would leave unreferenced files.

    The task deletes the files after the time of the setting `lance.debris_age_s`. The transaction that creates the
    table removes the task. Returns the task's id; None if the settings keep such files.
    """
    delay_ms = ctx.services.defaults.lance_debris_ms
    if not delay_ms:
        return None
    payload = lance_purge_of(catalog_id, location)
    permit = upkeep_permit("limnos")
    return await ctx.services.store.submit(permit, lambda tx: tx.tasks.create(LANCE_PURGE, payload, delay_ms=delay_ms))


async def _delete_leftovers(ctx: Context, table: LanceTable, *, mark: int | None) -> None:
    """Delete the files of a table whose creation failed, and its cleanup task."""
    at, place = table.location, table.place
    payload = PurgePayload(metadata_location=at, roots=place.roots, catalog=table.node.zone, location=at)
    purge = LancePurge(payload, place.catalog.properties, rivals=[], allowed=place.allowed)
    try:
        await ctx.services.files.run_in_thread(
            at, properties=place.catalog.properties, call=lambda: purge.run(lambda _: None)
        )
    except LimnosError as error:
        log.warning("files of a table that was not created remain", location=at, error=error.message)
        return
    if mark is not None:
        await ctx.services.store.submit(upkeep_permit("limnos"), lambda tx: tx.tasks.delete_finished(mark))


async def _overwrite_rows(
    ctx: Context,
    scope: RequestScope,
    *,
    request: TableCreateRequest,
    lance_table: LanceTable,
    body: AsyncGenerator[bytes, None],
) -> CreatedTable:
    """Write the rows as an existing table's next or first version, then update its properties."""

    def decide(request_view: RequestView) -> LanceTable:
        _, table = _decide_create(request_view, request)
        return lance_table._replace(location="") if table is None else table  # the table was dropped: create it

    question = Write(
        location="", options={}, mode=request.mode, batch_bytes_max=ctx.services.defaults.lance_batch_bytes_max
    )
    result = await write_body(
        ctx,
        scope,
        table=lance_table,
        levels=request.levels,
        question=bind_question(lance_table, question),
        decide=decide,
        body=body,
    )
    entries = {} if request.mode == OVERWRITE else lance_table.record.properties
    record = replace(lance_table.record, properties={**entries, **request.properties})
    if record == lance_table.record:
        return CreatedTable(lance_table, result)

    def altering(request_view: RequestView) -> Permit[LanceAlter]:
        lance = lance_find(request_view, request.levels, action=Action.TABLE_COMMIT)
        return request_view.permit(LanceAlter(lance.entity, record), lance.decision)

    await ctx.write(scope, altering, lance_alter)
    return CreatedTable(lance_table._replace(record=record), result)


def lance_alter(tx: Tx, permit: Permit[LanceAlter]) -> None:
    """Write the table's new record."""
    command = permit.command
    tx.nodes.write_record(tx.nodes.confirm(command.table), command.record)
