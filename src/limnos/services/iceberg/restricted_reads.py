# SPDX-License-Identifier: Apache-2.0
"""Restricted reads: the shared directories of rewritten files, their quotas, and their deletion when no plan needs
them.

Must not know any wire format or file formats. Users with the same restrictions share a directory of a table. With the
mask `sha-256-query-local` each plan has its own directory, since its salt is unique to the plan. Decision record 0122.
"""

from __future__ import annotations

import hashlib
from secrets import token_hex
from typing import Final, NamedTuple

import msgspec

from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.model.errors import LimnosError, ServiceUnavailable
from limnos.model.permits import upkeep_permit
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.iceberg.scans import ScanTarget
from limnos.services.request.catalog_storage import RESTRICTED_READS_DIRECTORY
from limnos.services.request.context import Context
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.restricted_reads")
IDLE_MS: Final = 600_000
"""The retention time of a shared directory after the cancellation of its last plan, in milliseconds.

Iceberg's Java library cancels each plan when it has read it, and often plans again soon.
"""
FLUSHES: Final = 16
"""A plan checks its quotas each time it has written this fraction (one sixteenth) of the smaller byte quota."""
_PERMIT: Final = upkeep_permit("limnos")


class RestrictedDirectory(NamedTuple):
    """The directory of a scan plan's rewritten files. `plan` is empty if plans may share it."""

    location: str
    plan: str


def binding_of(home: str | None, bound: BoundRestrictions) -> str:
    """Return the digest under which plans share a directory: of the restrictions and the catalog's warehouse."""
    return hashlib.sha256(f"{bound.digest}/{home}".encode()).hexdigest()[:32]


def binding_location(home: str, bound: BoundRestrictions, *, table_id: int) -> str:
    """Return the location above all directories of rewritten files for a table and the restrictions of one caller."""
    return f"{home}/{RESTRICTED_READS_DIRECTORY}/t{table_id}-{binding_of(home, bound)}"


async def directory_hold(
    ctx: Context, scanned: ScanTarget, *, bound: BoundRestrictions, plan: str
) -> RestrictedDirectory:
    """Register a plan's use of the shared directory for its restrictions, or of a new directory, and return it.

    Raises ServiceUnavailable if a quota is exhausted.
    """
    home, table_id, requester = scanned.place.home, scanned.document.node_id, scanned.requester
    binding, own = binding_of(home, bound), plan if bound.is_local else ""
    fresh = f"{binding_location(home or '', bound, table_id=table_id)}/{token_hex(8)}"
    defaults = ctx.services.defaults

    def mutation(tx: Tx) -> tuple[str, list[str], LimnosError | None]:
        ended = tx.restricted_reads.end(home or "")
        shared = None if own else tx.restricted_reads.shared(table_id, binding)
        quota_error = _quota_refusal(ctx, scanned, tx=tx, is_salted=bool(own)) if shared is None else None
        if quota_error is None:
            tx.restricted_reads.hold(
                shared or fresh, requester, table_id=table_id, binding=binding, plan=own, keep_ms=defaults.scan_keep_ms
            )
        return shared or fresh, ended, quota_error

    location, ended, refused = await ctx.services.store.submit(_PERMIT, mutation)
    await _delete(ctx, scanned, directories=ended)
    if refused is not None:
        raise refused
    return RestrictedDirectory(location, own)


def _quota_refusal(ctx: Context, scanned: ScanTarget, *, tx: Tx, is_salted: bool) -> LimnosError | None:
    """Return the error for an exhausted quota of the reader or the table; None within all quotas. With `is_salted` the
    plan needs a directory of its own, whose number is limited.
    """
    defaults = ctx.services.defaults
    usage = tx.restricted_reads.usage(scanned.document.node_id, scanned.requester)
    wait_s = max(1, min(defaults.scan_keep_ms, usage.first_end_ms - tx.now_ms) // 1000) if usage.first_end_ms else 60
    if is_salted and usage.reader_directories >= defaults.scan_plans_max:
        return _quota_error(
            f"your {usage.reader_directories} restricted plans", setting="planning.plans_max", wait_s=wait_s
        )
    if usage.reader_bytes >= defaults.restricted_reader_bytes:
        return _quota_error(
            "the rewritten files for you", setting="planning.restricted_bytes_per_reader", wait_s=wait_s
        )
    if usage.table_bytes >= defaults.restricted_table_bytes:
        return _quota_error(
            "the rewritten files of this table", setting="planning.restricted_bytes_per_table", wait_s=wait_s
        )
    return None


def _quota_error(what: str, *, setting: str, wait_s: int) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"This scan was not planned: {what} reach the limit of {setting}. They are deleted when their plans end: cancel"
        " plans that you have read, or try again later",
        retry_after_s=wait_s,
    )


class QuotaMeter:
    """Counts the bytes that one plan writes, and stops the plan when a quota is exhausted."""

    def __init__(self, ctx: Context, scanned: ScanTarget, *, location: str) -> None:
        defaults = ctx.services.defaults
        self._ctx, self._scanned, self._location = ctx, scanned, location
        self._step = max(1, min(defaults.restricted_reader_bytes, defaults.restricted_table_bytes) // FLUSHES)
        self._pending = 0

    async def add(self, size: int) -> None:
        """Count written bytes. Raises ServiceUnavailable if a quota is exhausted."""
        self.count(size)
        if self._pending >= self._step:
            quota_error = await self.settle()
            if quota_error is not None:
                raise quota_error

    def count(self, size: int) -> None:
        """Count written bytes, without a check of the quotas."""
        self._pending += size

    async def settle(self) -> LimnosError | None:
        """Add the bytes counted so far to the usage in the store. Returns an error if a quota is exhausted, else
        None.
        """
        size, self._pending = self._pending, 0
        if not size:
            return None

        def mutation(tx: Tx) -> LimnosError | None:
            tx.restricted_reads.add(self._location, self._scanned.requester, size=size)
            return _quota_refusal(self._ctx, self._scanned, tx=tx, is_salted=False)

        return await self._ctx.services.store.submit(_PERMIT, mutation)


async def directory_leave(ctx: Context, scanned: ScanTarget, *, bound: BoundRestrictions, plan: str) -> None:
    """End a restricted user's plan.

    The plan's own directory is deleted immediately, a shared one when no plan has used it for some time.
    """
    home, table_id = scanned.place.home, scanned.document.node_id
    if home is None:
        return
    binding, idle_ms = binding_of(home, bound), 0 if bound.is_local else IDLE_MS

    def mutation(tx: Tx) -> list[str]:
        tx.restricted_reads.end_plan(scanned.requester, table_id=table_id, binding=binding, plan=plan, idle_ms=idle_ms)
        return tx.restricted_reads.end(home)

    await _delete(ctx, scanned, directories=await ctx.services.store.submit(_PERMIT, mutation))


async def _delete(ctx: Context, scanned: ScanTarget, *, directories: list[str]) -> None:
    """Delete the files of ended directories; after a failure the periodic task finds them."""
    properties = dict(scanned.place.catalog.properties)
    for location in directories:
        question = msgspec.json.encode({"location": location, "properties": properties})
        try:
            await SCAN_OFFLOADER.of(ctx.services).do("restrict-delete", question, caller=scanned.requester.name)
        except LimnosError as error:
            log.warning("files of ended restricted plans stay for now", location=location, error=error.message)
