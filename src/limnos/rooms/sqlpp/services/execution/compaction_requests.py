# SPDX-License-Identifier: Apache-2.0
"""Compaction requests: if a dataset has many small files after a statement, they create a task that compacts it.

Must not know engines or wire formats. A second, later task deletes the orphan files of killed statements. A task runs
on behalf of the last writer, with the rights of that writer and the trust of its credential. If compaction fails, it is
tried again only when the dataset has twice as many files.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec

from limnos.model.errors import LimnosError
from limnos.model.permits import upkeep_permit
from limnos.model.principals import TokenTrust
from limnos.names.path import Levels
from limnos.services.identity.tokens import origin_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.store.objects.documents import document_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.compaction")
COMPACT: Final = "compact-dataset"
CLEAN_UP: Final = "tend-dataset"
CLEANUP_DELAY_MS: Final = 2 * 86_400_000
"""The delay of the cleanup task after the files are old enough, in milliseconds: files are deleted once a day, and
statements take time.
"""
CLEANUP_PLANNED_MAX: Final = 100_000
"""The maximum number of datasets for which a node caches that a cleanup task exists."""
TARGET_BYTES: Final = 64 << 20
"""The target size of files, in bytes; files near that size are not rewritten."""
DECODED_INLINE_BYTES: Final = 64 << 10


class CompactPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of a compaction task: the dataset, its path, its count of excess files, and the user with the trust
    and the token family of the user's credential.

    `covers_ms`: a delayed task runs late enough to delete orphan files that statements wrote up to this time.
    """

    table_id: int
    path: tuple[str, ...]
    files: int
    user: str
    trust: TokenTrust
    root_id: int | None
    covers_ms: int = 0


class _FileCounts(msgspec.Struct):
    files: str = msgspec.field(name="total-data-files", default="0")
    deletes: str = msgspec.field(name="total-delete-files", default="0")
    size: str = msgspec.field(name="total-files-size", default="0")


class _CountedSnapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    summary: _FileCounts = msgspec.field(default_factory=_FileCounts)


class _CountedMetadata(msgspec.Struct, rename="kebab"):
    current_snapshot_id: int | None = None
    snapshots: list[_CountedSnapshot] = []


def files_of(body: bytes) -> int:
    """Return the count of excess files in a table's current snapshot, beyond those that its size needs; 0 if it is
    unknown.
    """
    metadata = msgspec.json.decode(body, type=_CountedMetadata)
    current = metadata.current_snapshot_id
    summary = next((one.summary for one in metadata.snapshots if one.snapshot_id == current), _FileCounts())
    counts = (summary.files, summary.deletes, summary.size)
    if not all(text.isascii() and text.isdigit() for text in counts):
        return 0
    files, deletes, size = map(int, counts)
    return max(0, files + deletes - -(-size // TARGET_BYTES))


async def compaction_ask(ctx: Context, *, table_id: int, path: Levels) -> None:
    """Create a compaction task if a dataset has many small files.

    Errors are only logged, because the statement has already been executed.
    """
    try:
        await _request_compaction(ctx, table_id, path=path)
    except LimnosError as error:
        log.warning("compaction could not be requested", table=table_id, error=error.message)


async def _request_compaction(ctx: Context, table_id: int, *, path: Levels) -> None:
    least = ctx.services.defaults.sqlpp_compact_files
    document = await ctx.look_up(lambda: document_read(table_id)) if least else None
    if document is None:
        return
    large = len(document.body) > DECODED_INLINE_BYTES
    files = await asyncio.to_thread(files_of, document.body) if large else files_of(document.body)
    if files < least:
        return
    payload = await _payload(ctx, table_id, path=path, files=files)
    if await ctx.services.store.submit(upkeep_permit("limnos"), partial(_create_task, payload)):
        ctx.services.wake_worker()


async def _payload(ctx: Context, table_id: int, *, path: Levels, files: int = 0, covers_ms: int = 0) -> CompactPayload:
    user, origin = await ctx.read(
        RequestScope(),
        lambda request_view: (request_view.user, origin_of(ctx, request_view, user=request_view.user)),
    )
    return CompactPayload(
        table_id=table_id,
        path=path,
        files=files,
        user=user,
        trust=origin.trust,
        root_id=origin.root_id,
        covers_ms=covers_ms,
    )


async def cleanup_plan(ctx: Context, *, table_id: int, path: Levels) -> None:
    """Before a write, ensure that there is a delayed task that deletes the orphan files of killed statements.

    Errors are only logged.
    """
    services, age_ms = ctx.services, ctx.services.defaults.sqlpp_debris_ms
    now_ms = services.store.time.now_ms()
    if not (services.defaults.sqlpp_compact_files and age_ms) or CLEANUP_PLANNED.of(services).get(table_id, 0) > now_ms:
        return
    try:
        payload = await _payload(ctx, table_id, path=path, covers_ms=now_ms + age_ms)
        covers_ms = await services.store.submit(
            upkeep_permit("limnos"), partial(_create_cleanup_task, payload, delay_ms=2 * age_ms + CLEANUP_DELAY_MS)
        )
    except LimnosError as error:
        log.warning("the cleanup task of a dataset could not be created", table=table_id, error=error.message)
        return
    if len(CLEANUP_PLANNED.of(services)) >= CLEANUP_PLANNED_MAX:
        CLEANUP_PLANNED.of(services).clear()
    CLEANUP_PLANNED.of(services)[table_id] = covers_ms


def _create_cleanup_task(payload: CompactPayload, tx: Tx, *, delay_ms: int) -> int:
    """Create the delayed cleanup task, unless an existing task covers the files that are written now.

    Returns the time up to which the task covers files, in milliseconds since 1970.
    """
    for _, text, has_ended in tx.tasks.of_kind(CLEAN_UP):
        former_payload = msgspec.json.decode(text, type=CompactPayload)
        if former_payload.table_id == payload.table_id and not has_ended and former_payload.covers_ms > tx.now_ms:
            return former_payload.covers_ms
    tx.tasks.create(CLEAN_UP, msgspec.json.encode(payload).decode(), delay_ms=delay_ms)
    return payload.covers_ms


def _create_task(payload: CompactPayload, tx: Tx) -> bool:
    """Create the compaction task, unless the dataset has one, or the last one failed and the files have not doubled
    since.

    Returns whether the task was created.
    """
    for task_id, text, has_ended in tx.tasks.of_kind(COMPACT):
        former_payload = msgspec.json.decode(text, type=CompactPayload)
        if former_payload.table_id != payload.table_id:
            continue
        if not has_ended or payload.files < 2 * former_payload.files:
            return False
        tx.tasks.delete_finished(task_id)
    tx.tasks.create(COMPACT, msgspec.json.encode(payload).decode())
    return True


CLEANUP_PLANNED: ComponentKey[dict[int, int]] = ComponentKey("tended", lambda _: {})
