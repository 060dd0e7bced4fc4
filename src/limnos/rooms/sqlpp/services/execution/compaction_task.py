# SPDX-License-Identifier: Apache-2.0
"""Compaction task: an engine rewrites a dataset's many files into few, while no statement writes to the dataset.

Must know neither wire formats nor the rewriting of files. The task holds the dataset's lock, and each commit presents
it. The rows do not change. An interrupted task keeps its commits, and its next attempt continues from there.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final
from uuid import uuid4

from limnos.access.authentication import Credential, hash_secret, new_secret, token_text
from limnos.model.errors import AuthenticationFailed, LimnosError, NotFound, PermissionDenied, ServiceUnavailable
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.errors import NO_ENGINE, EngineUnavailable, TextPosition
from limnos.rooms.sqlpp.language.jobs import CompactionOptions, DatasetRef, EngineJob
from limnos.rooms.sqlpp.services.execution.compaction_requests import TARGET_BYTES, CompactPayload, files_of
from limnos.rooms.sqlpp.services.execution.dataset_files import pin_for_compaction
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.execution.write_targets import hold_dataset_lock, target_of
from limnos.rooms.sqlpp.services.locks.statement_locks import HeldLocks
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.services.request.context import Context
from limnos.services.request.task_context import TaskContext
from limnos.store.objects.documents import document_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.compaction")
WAITS_S: Final = 600.0
"""The maximum time that the task waits for writers, in seconds; giving up would lose its place in the queue."""
LASTS_S: Final = 300.0
"""The maximum time that writers wait for the task, in seconds."""
LEASE_MS: Final = 60_000
"""The lease of the task, in milliseconds: without renewal another node may take the task."""
STATES_MAX: Final = 200
"""The maximum number of former snapshots of a dataset that are retained, since each commit writes all of them."""
KEPT_MS_LEAST: Final = 600_000
"""The time in milliseconds for which a replaced snapshot is always retained: readers may still use it."""
_START: Final = TextPosition(1, 1)


async def compact_run(work: TaskContext, payload: CompactPayload) -> str | None:
    """Compact a dataset. Returns the reason for a refusal or the count of remaining excess files; None if it was
    compacted, or was dropped or moved before.

    Raises ServiceUnavailable, LockTimeout and SqlppError, after which the task is retried.
    """
    services = work.services
    if services is None:
        raise ServiceUnavailable("This node runs no services: another node runs the task")
    secret = new_secret()
    token = await work.create_token(
        user=payload.user,
        name=f"compaction {work.task_id}",
        secret_hash=hash_secret(secret),
        trust=payload.trust,
        root_id=payload.root_id,
    )
    ctx = Context(
        services, Credential(user=None, token_id=token.id, secret_hash=hash_secret(secret)), f"compact-{work.task_id}"
    )
    operation: int | None = None
    state, result = "failed", "interrupted: it is tried again"
    try:
        operation = await work.submit(lambda tx: _begin(tx, payload))
        text = await work.await_with_lease(_compact(ctx, payload, credential=token_text(token.id, secret)))
        state, result = "done", text or "files of the dataset were merged"
    except (PermissionDenied, NotFound, AuthenticationFailed) as error:
        text = result = f"not compacted: {error.message}"
    except (LimnosError, SqlppError) as error:
        result = f"{error}: it is tried again"
        raise
    finally:
        await work.end_token(token)
        await work.submit(lambda tx: _end(tx, operation, state=state, result=result))
    return text


def _begin(tx: Tx, payload: CompactPayload) -> int | None:
    """Record the compaction among the operations on tables. Returns its id; None if the dataset no longer exists."""
    node = tx.nodes.live(payload.table_id)
    if node is None:
        return None
    return tx.maintenance.begin(catalog_id=node.zone, node_id=node.id, kind="compact", user=payload.user, policy=None)


def _end(tx: Tx, operation: int | None, *, state: str, result: str) -> None:
    if operation is not None:
        tx.maintenance.end(operation, state=state, result=result[:2000])


async def _compact(ctx: Context, payload: CompactPayload, *, credential: str) -> str | None:
    try:
        target = await ctx.read(scope_of(ctx), lambda request_view: target_of(request_view, payload.path, at=_START))
    except SqlppError:
        return None  # the dataset was dropped or moved; its next writer requests a compaction again
    if target.table_id != payload.table_id or not target.ref.key:
        return None
    async with hold_dataset_lock(ctx, target, seconds=WAITS_S) as locks:
        ref, lists, snapshots = await pin_for_compaction(ctx, target.ref)
        job = _job(ctx, ref, locks=locks, credential=credential, expirable=lists)
        try:
            with snapshots.reading(ctx, lock=locks.token):
                async with aclosing(ENGINE.of(ctx.services).run(job)) as rows:  # type: ignore[type-var]
                    async for row in rows:
                        log.info("compacted", table=payload.table_id, told=row.decode())
        except SqlppError as error:
            if isinstance(error, EngineUnavailable) or error.number == NO_ENGINE:
                raise ServiceUnavailable(error.message) from error
            raise
    document = await ctx.look_up(lambda: document_read(payload.table_id))
    left = 0 if document is None else files_of(document.body)
    return None if not payload.files or left < payload.files else f"{left} files remain"


def _job(ctx: Context, ref: DatasetRef, *, locks: HeldLocks, credential: str, expirable: tuple[str, ...]) -> EngineJob:
    defaults = ctx.services.defaults
    now_ms = ctx.services.store.time.now_ms()
    return EngineJob(
        id=f"{ctx.request_id}-{uuid4().hex}",
        kind="compact",
        plan=b"",
        slots=0,
        reads=(),
        target=ref,
        returning=None,
        returning_slots=0,
        credential=credential,
        deadline_ms=round(LASTS_S * 1000),
        lock=locks.token_text,
        compaction=CompactionOptions(
            target_bytes=TARGET_BYTES,
            expires_before_ms=now_ms - defaults.sqlpp_snapshots_keep_ms,
            retained_after_ms=now_ms - max(KEPT_MS_LEAST, round(2000 * defaults.sqlpp_timeout_s)),
            states_max=STATES_MAX,
            debris_before_ms=now_ms - defaults.sqlpp_debris_ms if defaults.sqlpp_debris_ms else None,
            expirable=expirable,
        ),
    )
