# SPDX-License-Identifier: Apache-2.0
"""Bulk jobs: executes many independent items of one job, each decided, written and audited like its single request.

Must not know any wire format, or what an item does. An item is identified by its job and its
position. Its outcome is stored in the transaction of its change, as that of a request with an idempotency key, so an
item that is sent again is not executed again (decision record 0252). Refusals are not stored: such an item is decided
again.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, Protocol

from limnos.model.errors import BadRequest, KeyReused, LimnosError, ServiceUnavailable, StateUnknown
from limnos.names.path import Levels
from limnos.services.iceberg.registrations import TableRegistration, tables_register
from limnos.services.request import idempotency_replay
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.idempotency import IdempotentRequest, RepeatedRequest
from limnos.services.request.node_services import AuditedRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.operations import TransactionOperation
from limnos.services.transactions.transactions import member_check, transaction_execute
from limnos.store.idempotency import IdempotencyKey, RequestOutcome, fingerprints_query

ITEMS_MAX: Final = 1000
"""The maximum number of items in one request."""
GROUP_MAX: Final = 16
"""The maximum number of tables in one transaction, which runs on the event loop on SQLite: some two milliseconds."""
AT_ONCE: Final = 64
"""The number of items that run at once: their mutations commit together, and other requests run in between."""
LIFETIME_MS: Final = 7 * 86_400_000
"""The time for which a job can be continued after an item, in milliseconds."""
_JOB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STATUS: Final = 200
ItemState = Literal["made", "same", "refused", "failed"]
"""The outcome of an item: executed; nothing to do; refused for good; failed for now, so that it can be sent again."""


class BulkItem(Protocol):
    """The interface of an item."""

    @property
    def wave_key(self) -> str:
        """Items of one wave may run at the same time; the next wave waits for them."""

    @property
    def touches(self) -> tuple[str, ...]:
        """The objects that it changes: two items that change the same object run one after the other."""

    @property
    def registered_file(self) -> tuple[str, Levels, str] | None:
        """The catalog, the path and the metadata file of a table that the item only registers; None for others."""

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Execute the item as its single request does. Returns False if there was nothing to do.

        Raises the errors of the single request.
        """


class PlacedItem(NamedTuple):
    """An item of a job: its position, its text, and the item or an error."""

    position: int
    text: bytes
    item: BulkItem | LimnosError


class ItemOutcome(NamedTuple):
    """The outcome of an item. `is_repeated`: an earlier request of the job has executed it. `requester` records it for
    the audit, if it was executed by itself.
    """

    placed: PlacedItem
    state: ItemState
    error: LimnosError | None = None
    is_repeated: bool = False
    requester: AuditedRequest | None = None


class JobCaller(NamedTuple):
    """The caller of a job, and the metalake's zone: they and the job's name identify the job."""

    zone: int
    caller: str

    def key(self, job: str, *, position: int) -> IdempotencyKey:
        """Return the key of an item. Keys of a job sort by position."""
        return IdempotencyKey(self.zone, self.caller, f"{_prefix(job)}{position:012d}")


def _prefix(job: str) -> str:
    return f"bulk/{job}/"


def check_job(job: str | None) -> str:
    """Return the name of a job. Raises BadRequest for a missing or malformed one."""
    if job is None or not _JOB.fullmatch(job):
        raise BadRequest(
            "Name the job, as ?job=move-1: up to 64 letters, digits, dots, dashes and underscores. Send the same name "
            "to continue it"
        )
    return job


async def job_caller(ctx: Context, metalake: str) -> JobCaller:
    """Return who sends a job. Raises NotFound, NotInUse, AuthenticationFailed, PermissionDenied."""

    def read(request_view: RequestView) -> JobCaller:
        member_check(request_view)
        user_id = request_view.subject.user_id
        return JobCaller(request_view.metalake.id, f"name {request_view.user}" if user_id is None else f"id {user_id}")

    return await ctx.read(RequestScope(metalake), read)


async def bulk_run(
    ctx: Context,
    metalake: str,
    *,
    job: str,
    items: Sequence[PlacedItem],
    new_requester: Callable[[], AuditedRequest],
) -> AsyncGenerator[list[ItemOutcome], None]:
    """Execute items, and yield their outcomes in order, a few at a time.

    `new_requester` makes the request that records one item for the audit. An error of one item is its outcome and does
    not end the others. Raises as `job_caller`.
    """
    caller = await job_caller(ctx, metalake)
    fingerprints = await _known_fingerprints(ctx, caller, job=job, items=items)
    run = _PartRun(ctx, metalake, job=job, caller=caller, known=fingerprints, new_requester=new_requester)
    for wave in _group_in_waves(items):
        yield await run.run_wave(wave)


async def _known_fingerprints(
    ctx: Context, caller: JobCaller, *, job: str, items: Sequence[PlacedItem]
) -> dict[str, bytes]:
    """Return the fingerprints of the items that earlier requests of the job executed, by key."""
    if not items:
        return {}
    first, last = caller.key(job, position=items[0].position), caller.key(job, position=items[-1].position)
    rows = await ctx.find(fingerprints_query(first, last=last.text, now_ms=ctx.services.store.time.now_ms()))
    return {str(key): bytes(fingerprint) for key, fingerprint in rows}


def _group_in_waves(items: Sequence[PlacedItem]) -> list[list[PlacedItem]]:
    """Group consecutive items that may run at the same time."""
    waves: list[list[PlacedItem]] = []
    wave_key, touched = "", set[str]()
    for placed_item in items:
        item = placed_item.item
        now = wave_key if isinstance(item, Exception) else item.wave_key
        names = () if isinstance(item, Exception) else item.touches
        if not waves or len(waves[-1]) >= AT_ONCE or now != wave_key or not touched.isdisjoint(names):
            waves.append([])
            touched = set()
        wave_key = now
        touched.update(names)
        waves[-1].append(placed_item)
    return waves


class _PartRun:
    """The execution of one part of a job."""

    def __init__(
        self,
        ctx: Context,
        metalake: str,
        *,
        job: str,
        caller: JobCaller,
        known: dict[str, bytes],
        new_requester: Callable[[], AuditedRequest],
    ) -> None:
        self.ctx = ctx
        self.new_requester = new_requester
        self.metalake = metalake
        self.job = job
        self.caller = caller
        self.known = known
        """The fingerprints of items that earlier requests executed, by key."""

    async def run_wave(self, wave: Sequence[PlacedItem]) -> list[ItemOutcome]:
        """Execute items that may run at the same time: tables to register in groups, the others one by one."""
        registered = await self._register_tables(wave)
        if not registered:
            return await map_concurrently(wave, self._run_item, at_once=AT_ONCE)
        rest = [each for each in wave if each.position not in registered]
        outcomes = iter(await map_concurrently(rest, self._run_item, at_once=AT_ONCE))
        return [
            ItemOutcome(placed=each, state="made") if each.position in registered else next(outcomes) for each in wave
        ]

    async def _register_tables(self, wave: Sequence[PlacedItem]) -> set[int]:
        """Register the tables of a wave in groups, as far as nothing is refused. Returns the positions of the items."""
        positions: dict[IdempotencyKey, int] = {}
        registered: set[int] = set()
        by_catalog: dict[str, list[TableRegistration]] = {}
        for placed_item in wave:
            file = None if isinstance(placed_item.item, Exception) else placed_item.item.registered_file
            key = self.caller.key(self.job, position=placed_item.position)
            if file is not None and key.text not in self.known:
                catalog, path, location = file
                outcome = RequestOutcome(
                    fingerprint=_fingerprint(placed_item.text),
                    operation="bulk",
                    status=_STATUS,
                    object_id=None,
                    body=None,
                )
                by_catalog.setdefault(catalog, []).append(TableRegistration(path, location, key, outcome))
                positions[key] = placed_item.position
        for catalog, some in by_catalog.items():
            for group in [some[at : at + GROUP_MAX] for at in range(0, len(some), GROUP_MAX)]:
                scope = RequestScope(self.metalake, catalog)
                keys = await tables_register(self.ctx, scope, registrations=group, lifetime_ms=LIFETIME_MS)
                registered.update([positions[key] for key in keys])
        return registered

    async def _run_item(self, placed: PlacedItem) -> ItemOutcome:
        """Execute an item once."""
        if isinstance(placed.item, Exception):
            return ItemOutcome(placed=placed, state="refused", error=placed.item)
        key, fingerprint = self.caller.key(self.job, position=placed.position), _fingerprint(placed.text)
        if key.text in self.known:
            return _repeated_outcome(placed, self.known[key.text], fingerprint=fingerprint)
        requester = self.new_requester()
        item_context = Context(self.ctx.services, self.ctx.credential, self.ctx.request_id, audited_request=requester)
        item_context.active = self.ctx.active
        item_context.once = IdempotentRequest(
            key, fingerprint, operation="bulk", status=_STATUS, lifetime_ms=LIFETIME_MS
        )
        try:
            is_made = await placed.item.run(item_context, self.metalake)
        except RepeatedRequest as repeated:
            return _repeated_outcome(placed, repeated.outcome.fingerprint, fingerprint=fingerprint)
        except (ServiceUnavailable, StateUnknown) as error:
            return ItemOutcome(placed=placed, state="failed", error=error, requester=requester)
        except LimnosError as error:
            return ItemOutcome(placed=placed, state="refused", error=error, requester=requester)
        return ItemOutcome(placed=placed, state="made" if is_made else "same", requester=requester)


def _fingerprint(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).digest()


async def bulk_run_atomic(
    ctx: Context, metalake: str, *, job: str, text: bytes, catalog: str, operations: Sequence[TransactionOperation]
) -> bool:
    """Execute items as one transaction. Returns False if an earlier request of the job has executed them.

    `text` is the text of all items. Raises as `transaction_execute` and `job_caller`, and KeyReused if the job had
    other items.
    """
    caller = await job_caller(ctx, metalake)
    key, fingerprint = caller.key(job, position=0), _fingerprint(text)
    ctx.once = IdempotentRequest(key, fingerprint, operation="bulk", status=_STATUS, lifetime_ms=LIFETIME_MS)
    outcome = await idempotency_replay.outcome_find(ctx, ctx.once)
    try:
        if outcome is None:
            await transaction_execute(ctx, RequestScope(metalake, catalog), operations)
            return True
    except RepeatedRequest as repeated:
        outcome = repeated.outcome
    if outcome.fingerprint != fingerprint:
        raise _other_items()
    return False


def _other_items() -> KeyReused:
    return KeyReused("The job had other items at this position: use a new job for another file")


def _repeated_outcome(placed: PlacedItem, known: bytes, *, fingerprint: bytes) -> ItemOutcome:
    if known != fingerprint:
        return ItemOutcome(placed=placed, state="refused", error=_other_items())
    return ItemOutcome(placed=placed, state="made", is_repeated=True)
