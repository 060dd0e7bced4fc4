# SPDX-License-Identifier: Apache-2.0
"""Snapshot pins: the snapshots that runs and scan plans need, and the refusal of commits that would remove them.

Must not know any wire format. Pins refer to table ids, so they survive renames. Only a commit that removes snapshots
reads them, in its own transaction. Decision record 0123.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from secrets import token_hex
from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.formats.scans.request import ScanScope
from limnos.model import errors
from limnos.model.permits import upkeep_permit
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.scans import ScanTarget
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of
from limnos.store.objects.snapshot_pins import PinHolder
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.snapshot_pins")
PINS_MAX: Final = 1_000
"""The maximum number of tables that one run pins, and of plans that one pin of this node counts."""
_KNOWN_MAX: Final = 10_000
_REMOVES: Final = "remove-snapshots"
_PERMIT: Final = upkeep_permit("limnos")


class PinnedSnapshots(msgspec.Struct, frozen=True):
    """The snapshots that a run pins, by table id, and the time for which it pins them in milliseconds."""

    by_table: dict[int, list[int]]
    keep_ms: int


class _SnapshotId(msgspec.Struct, rename="kebab"):
    snapshot_id: int = -1


class _SnapshotIds(msgspec.Struct):
    snapshots: list[_SnapshotId] | None = None


def snapshot_ids(body: bytes) -> frozenset[int]:
    """Return the ids of the snapshots in a table's metadata."""
    results = msgspec.json.decode(body, type=_SnapshotIds, strict=False).snapshots or ()
    return frozenset([each.snapshot_id for each in results])


def removes_snapshots(updates: Sequence[object], raw: bytes | None) -> bool:
    """Return whether a commit may remove snapshots. May be a false positive for `raw`, the body of a large request."""
    if raw is not None:
        return _REMOVES.encode() in raw or b"\\u" in raw
    return _REMOVES in [each.get("action") for each in updates if isinstance(each, dict)]


def removed_snapshots(before: bytes, after: bytes) -> frozenset[int]:
    """Return the ids of the snapshots that the metadata `before` has and `after` lacks."""
    return snapshot_ids(before) - snapshot_ids(after)


def pins_check(tx: Tx, table_id: int, *, removed: frozenset[int]) -> None:
    """Refuse to remove snapshots that a run or a plan needs. Raises CommitConflict.

    Call it after the document was replaced, so that no new pin can be added in between.
    """
    if not removed:
        return
    for holder in tx.snapshot_pins.holders(table_id):
        pinned_snapshots = holder.snapshots & removed
        if pinned_snapshots:
            raise errors.CommitConflict(f"Cannot remove snapshot {min(pinned_snapshots)}: {_pin_reason(holder)}")


def _pin_reason(holder: PinHolder) -> str:
    if holder.run is None:
        until = datetime.fromtimestamp(holder.expires_at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return (
            f"a planned scan reads it until {until}. Remove it then, or expire only older snapshots (setting"
            " iceberg.keep_pinned)"
        )
    if holder.state == "held":
        return (
            f"pipeline run {holder.run}, which is held, needs it. Publish or discard the run first; the table's owner"
            " may discard it, too (settings iceberg.keep_pinned, keep_pinned_s)"
        )
    return (
        f"pipeline run {holder.run} needs it. Wait until it has ended, or stop it with 'limnos pipeline cancel"
        f" {holder.run}'; the table's owner may stop it, too (settings iceberg.keep_pinned, keep_pinned_s)"
    )


# ------------------------------------------------------------------------------------------------ runs


class _PinOption(msgspec.Struct):
    table: list[str]
    snapshot: int | None = None
    base: int | None = None
    head: int | None = None


class _RunOptions(msgspec.Struct):
    pins: list[_PinOption] = []


async def pins_of_options(ctx: Context, metalake: str, *, options: str) -> PinnedSnapshots:
    """Return the existing snapshots that a run's options name as its input, of tables that the caller may read."""
    with suppress(msgspec.ValidationError, msgspec.DecodeError):
        pins = msgspec.json.decode(options, type=_RunOptions).pins
        return await _resolve_pins(ctx, metalake, options=pins, action=Action.TABLE_READ)
    return PinnedSnapshots({}, 0)


async def pins_of_outputs(ctx: Context, metalake: str, *, outputs: str) -> PinnedSnapshots:
    """Return the existing snapshots that a step started from and wrote, of tables that the caller may commit to."""
    with suppress(msgspec.ValidationError, msgspec.DecodeError):
        pins = msgspec.json.decode(outputs, type=list[_PinOption])
        return await _resolve_pins(ctx, metalake, options=pins, action=Action.TABLE_COMMIT)
    return PinnedSnapshots({}, 0)


async def _resolve_pins(
    ctx: Context, metalake: str, *, options: Sequence[_PinOption], action: Action
) -> PinnedSnapshots:
    """Find the tables by their present names, in any format; for a Lance table, the snapshot ids are its versions.

    Missing tables, those on which the caller may not perform the action, and snapshots that an Iceberg table does not
    have are not pinned. The versions of Lance tables are in files, so they are not compared.
    """
    by_table: dict[int, list[int]] = {}
    if not ctx.services.defaults.keep_pinned:
        return PinnedSnapshots(by_table, 0)
    for each in options[:PINS_MAX]:
        pinned_ids = [one for one in (each.snapshot, each.base, each.head) if one is not None]
        if len(each.table) < 2 or not pinned_ids:
            continue
        levels = tuple(each.table[1:])

        def find(
            request_view: RequestView, *, levels: tuple[str, ...] = levels, named: Sequence[int] = pinned_ids
        ) -> tuple[int, list[int]]:
            node = table_find(request_view, levels[:-1], levels[-1], action, required_format=None).entity
            if format_of(request_view) == LANCE:
                return node.id, list(named)
            existing_ids = snapshot_ids(request_view.document(node.id).body)
            return node.id, [one for one in named if one in existing_ids]

        with suppress(errors.NotFound, errors.PermissionDenied, errors.BadRequest, errors.UnsupportedOperation):
            table_id, snapshots = await ctx.read(RequestScope(metalake, each.table[0]), find)
            if snapshots:
                by_table.setdefault(table_id, []).extend(snapshots)
    return PinnedSnapshots(by_table, ctx.services.defaults.keep_pinned_ms)


# ------------------------------------------------------------------------------------------------ plans


class _NodePin:
    """A pin of this node in the store, and the plans that need it."""

    def __init__(self, name: str, expires_ms: int) -> None:
        self.name = name
        self.expires_ms = expires_ms
        self.plans: set[str] = set()


class PlanPins:
    """The pins of plans that were complete in their first response.

    There is one row for each table and snapshots, regardless of the number of plans. It is renewed after half of its
    lifetime.
    """

    def __init__(self) -> None:
        self._node = token_hex(8)
        self._held: dict[tuple[int, tuple[int, ...]], _NodePin] = {}
        self._by_plan: dict[str, tuple[int, tuple[int, ...]]] = {}

    async def hold(self, ctx: Context, scanned: ScanTarget, *, aim: ScanScope, plan_id: str) -> None:
        """Pin the snapshots that a scan reads, unless `iceberg.keep_pinned` is off. Raises ServiceUnavailable if one
        has been removed.
        """
        snapshots, keep_ms = snapshots_of_scan(aim), ctx.services.defaults.scan_keep_ms
        if not snapshots or not ctx.services.defaults.keep_pinned:
            return
        now_ms, key = ctx.services.store.time.now_ms(), (scanned.document.node_id, snapshots)
        pin = self._held.get(key)
        if pin is None or pin.expires_ms - now_ms < keep_ms // 2:
            self._forget(now_ms)
            name = pin.name if pin is not None else f"{self._node}-{token_hex(8)}"
            await _pin(ctx, scanned, name=name, snapshots=snapshots)
            pin = self._held.setdefault(key, pin or _NodePin(name, 0))
            pin.expires_ms = now_ms + keep_ms
        if len(pin.plans) < PINS_MAX:
            pin.plans.add(plan_id)
            self._by_plan[plan_id] = key

    async def release(self, ctx: Context, *, table_id: int, plan_id: str) -> None:
        """End a plan. Its pin is deleted if no other plan of this node needs it."""
        key = self._by_plan.get(plan_id)
        pin = None if key is None else self._held.get(key)
        if key is None or pin is None or key[0] != table_id:
            return
        del self._by_plan[plan_id]
        counted_all = len(pin.plans) < PINS_MAX
        pin.plans.discard(plan_id)
        if not pin.plans and counted_all:
            del self._held[key]
            await ctx.services.store.submit(_PERMIT, lambda tx: tx.snapshot_pins.plan_drop(pin.name))

    def _forget(self, now_ms: int) -> None:
        """Remove expired pins, and all pins if there are too many."""
        for key in [key for key, pin in self._held.items() if pin.expires_ms <= now_ms or len(self._held) > _KNOWN_MAX]:
            for plan_id in self._held.pop(key).plans:
                self._by_plan.pop(plan_id, None)


def snapshots_of_scan(aim: ScanScope) -> tuple[int, ...]:
    """Return the snapshots whose files a scan reads."""
    if aim.appended is not None:
        return tuple(sorted(aim.appended))
    return () if aim.snapshot_id is None else (aim.snapshot_id,)


async def _pin(ctx: Context, scanned: ScanTarget, *, name: str, snapshots: tuple[int, ...]) -> None:
    """Write a pin; if the store fails, the scan continues without one. Raises ServiceUnavailable if a snapshot has been
    removed.
    """
    keep_ms = ctx.services.defaults.scan_keep_ms

    def mutation(tx: Tx) -> bool:
        exists = has_snapshots(tx, scanned, snapshots=snapshots)
        if exists:
            tx.snapshot_pins.plan_set(name, table_id=scanned.document.node_id, snapshots=snapshots, keep_ms=keep_ms)
        return exists

    try:
        exists = await ctx.services.store.submit(_PERMIT, mutation)
    except errors.LimnosError as error:
        log.warning("a plan's snapshot is not pinned", node_id=scanned.document.node_id, error=error.message)
        return
    if not exists:
        raise errors.ServiceUnavailable("A snapshot that the scan reads has been removed concurrently: plan it again")


def has_snapshots(tx: Tx, scanned: ScanTarget, *, snapshots: Sequence[int]) -> bool:
    """Return whether a table still has the given snapshots. Blocks commits to it until the transaction ends."""
    document = scanned.document
    if tx.snapshot_pins.version(document.node_id) == document.version:
        return True
    now = tx.documents.read(document.node_id)
    return now is not None and snapshot_ids(now.body).issuperset(snapshots)


PLAN_PINS: ComponentKey[PlanPins] = ComponentKey("plan_pins", lambda _: PlanPins())
