"""A Lance table made with its rows: they are written first, and the table is in the tree only when all of them are there.

May import the rooms below. Whoever makes a table needs the right to make one in its namespace; to write over one that is there takes the right to drop it as
well, as nothing of it is left in its latest version; to fill one that was only declared takes the right to change it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import AlreadyExists, LimnosError, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.model.records import TableRecord
from limnos.services.catalog.tables import name_taken_error
from limnos.services.lance.purges import LancePurge
from limnos.services.lance.row_operations import bind_question, table_to_change, write_body
from limnos.services.lance.tables import (
    LANCE_PURGE,
    LanceTable,
    LanceTableDraft,
    has_data,
    has_table_data,
    lance_draft_of,
    lance_draft_replacing,
    lance_find,
    lance_load,
    lance_purge_of,
    lance_table_make,
    versions_of,
)
from limnos.services.lance.workers import WORKERS, worker_task_of
from limnos.services.request.table_formats import LANCE
from limnos.services.storage.purges import PurgePayload
from limnos.services.vending.credentials import new_table_credentials
from limnos.sources.lance.questions import LanceWriteResult, Write
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from limnos.model.entities import Node
    from limnos.model.lance import LanceVersion
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.lance.tables import LanceCreate
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestScope, RequestView
    from limnos.store.tx import Tx

log = get_logger("limnos.lance")
CREATE, EXIST_OK, OVERWRITE = "create", "existok", "overwrite"
MODES = (CREATE, EXIST_OK, OVERWRITE)
_NEEDED = {CREATE: Action.TABLE_COMMIT, EXIST_OK: Action.TABLE_LOAD, OVERWRITE: Action.TABLE_DROP}
"""What a caller must be allowed to do to a table that has the name already."""


class TableCreateRequest(NamedTuple):
    """A table to be made: its name, where it is to lie if that is said, its properties, and what to do with one that is there."""

    levels: Levels
    mode: str
    location: str | None
    properties: Mapping[str, str]
    delegates: bool = False
    """The client wants credentials for the table's files."""


class CreatedTable(NamedTuple):
    """A table, and what was written into it; None when it was there and was left alone."""

    table: LanceTable
    written: LanceWriteResult | None


class LanceAlter(msgspec.Struct, frozen=True):
    """Give a table another record."""

    table: Node
    record: TableRecord


async def table_create(
    ctx: Context, scope: RequestScope, *, wanted: TableCreateRequest, body: AsyncGenerator[bytes, None]
) -> CreatedTable:
    """Make a table of the rows in a body; nothing of it is there before all of them are.

    Raises NotFound (namespace), AlreadyExists, OutsideRoots, PermissionDenied, and what writing rows does.
    """
    draft, held = await ctx.read(scope, lambda request_view: _decide_create(request_view, wanted))
    if held is None:
        return await _create_new(ctx, scope, wanted=wanted, draft=draft, body=body)
    if wanted.mode == EXIST_OK:
        await body.aclose()
        return CreatedTable(held, None)
    if wanted.mode == CREATE and await has_table_data(ctx, held):
        raise name_taken_error(wanted.levels, wanted=Kind.TABLE, holder=Kind.TABLE.word)
    return await _overwrite_rows(ctx, scope, wanted=wanted, held=held, body=body)


def _decide_create(request_view: RequestView, wanted: TableCreateRequest) -> tuple[LanceTableDraft, LanceTable | None]:
    """Decide on making a table, and on what the mode does to one that has the name."""
    draft, _ = lance_draft_replacing(request_view, wanted.levels, action=Action.TABLE_CREATE)
    holder, _ = request_view.find(wanted.levels, Kind.TABLE)
    if holder is None:
        return draft, None
    taken = name_taken_error(wanted.levels, wanted=Kind.TABLE, holder=holder.kind.word)
    if holder.kind is not Kind.TABLE:
        raise taken
    find = lance_load if wanted.mode == EXIST_OK else table_to_change
    try:
        return draft, find(request_view, wanted.levels, action=_NEEDED[wanted.mode])
    except PermissionDenied:
        if wanted.mode != CREATE:
            raise
        raise taken from None  # who may make tables may know that a name is taken


async def _create_new(
    ctx: Context,
    scope: RequestScope,
    *,
    wanted: TableCreateRequest,
    draft: LanceTableDraft,
    body: AsyncGenerator[bytes, None],
) -> CreatedTable:
    """Write the rows to a place that nobody knows of, then put the table into the tree."""
    record = TableRecord(None, dict(wanted.properties), managed=draft.is_managed(wanted.properties))
    versions: tuple[LanceVersion, ...] = ()
    document = draft.document(wanted.location, now_ms=ctx.services.store.time.now_ms())
    if await has_data(ctx, document.location, place=draft.place):
        raise AlreadyExists(f"At {document.location} lies a table already: register it", kind="table")
    if wanted.delegates:  # before anything is made
        await new_table_credentials(ctx, document.location, place=draft.place, table_format=LANCE)

    def decide(request_view: RequestView) -> Permit[LanceCreate]:
        again = lance_draft_of(request_view, wanted.levels, action=Action.TABLE_CREATE)
        return again.command(wanted.levels[-1], document, record=record, versions=versions, mark=mark)

    async def settled() -> None:
        await ctx.read(scope, decide)

    table = LanceTable(draft.parent, record, document.location, draft.place)
    mark = (
        await _leave_cleanup_task(ctx, document.location, catalog_id=draft.permit.zone)
        if wanted.location is None
        else None
    )
    question = Write("", {}, mode=CREATE, batch_bytes_max=ctx.services.defaults.lance_batch_bytes_max)
    worker_task = worker_task_of(ctx, bind_question(table, question), settled=settled)
    try:
        told = await WORKERS.of(ctx.services).feed(worker_task, body)
        ctx.submitted = False  # what was written shows nowhere yet
        versions = await versions_of(ctx, document, place=draft.place, record=record)
        node = await lance_table_make(ctx, scope, decide=decide, levels=wanted.levels)
    except BaseException:
        if wanted.location is None and not ctx.submitted:
            ctx.services.files.beside(_delete_leftovers(ctx, table, mark=mark))
        raise
    return CreatedTable(table._replace(node=node), msgspec.json.decode(told, type=LanceWriteResult))


async def _leave_cleanup_task(ctx: Context, location: str, *, catalog_id: int) -> int | None:
    """Leave a mark before anything is written: whoever is killed before the table is in the tree leaves files that nobody knows of.

    It is a task that deletes them, due when no create can still be on its way; the table's own transaction removes it.
    """
    delay_ms = ctx.services.defaults.lance_debris_ms
    if not delay_ms:
        return None
    payload = lance_purge_of(catalog_id, location)
    permit = upkeep_permit("limnos")
    return await ctx.services.store.submit(permit, lambda tx: tx.tasks.create(LANCE_PURGE, payload, delay_ms=delay_ms))


async def _delete_leftovers(ctx: Context, table: LanceTable, *, mark: int | None) -> None:
    """Delete what was written to the place of a table that did not come to be, and the mark for that."""
    at, place = table.location, table.place
    payload = PurgePayload(metadata_location=at, roots=place.roots, catalog=table.node.zone, location=at)
    purge = LancePurge(payload, place.catalog.properties, rivals=[], allowed=place.allowed)
    try:
        await ctx.services.files.apart(at, properties=place.catalog.properties, call=lambda: purge.run(lambda _: None))
    except LimnosError as error:
        log.warning("files of a table that was not made are left", location=at, error=error.message)
        return
    if mark is not None:
        await ctx.services.store.submit(upkeep_permit("limnos"), lambda tx: tx.tasks.done(mark))


async def _overwrite_rows(
    ctx: Context,
    scope: RequestScope,
    *,
    wanted: TableCreateRequest,
    held: LanceTable,
    body: AsyncGenerator[bytes, None],
) -> CreatedTable:
    """Write the rows as the next version of a table that is there, or as its first; then it gets its properties."""

    def decide(request_view: RequestView) -> LanceTable:
        _, table = _decide_create(request_view, wanted)
        return held._replace(location="") if table is None else table  # it is not there any more

    question = Write("", {}, mode=wanted.mode, batch_bytes_max=ctx.services.defaults.lance_batch_bytes_max)
    told = await write_body(
        ctx, scope, table=held, levels=wanted.levels, question=bind_question(held, question), decide=decide, body=body
    )
    kept = {} if wanted.mode == OVERWRITE else held.record.properties
    record = replace(held.record, properties={**kept, **wanted.properties})
    if record == held.record:
        return CreatedTable(held, told)

    def altering(request_view: RequestView) -> Permit[LanceAlter]:
        found = lance_find(request_view, wanted.levels, action=Action.TABLE_COMMIT)
        return request_view.permit(LanceAlter(found.entity, record), found.decision)

    await ctx.write(scope, altering, lance_alter)
    return CreatedTable(held._replace(record=record), told)


def lance_alter(tx: Tx, permit: Permit[LanceAlter]) -> None:
    """Give a table another record."""
    command = permit.command
    tx.nodes.write_record(tx.nodes.confirm(command.table), command.record)
