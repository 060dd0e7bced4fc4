# SPDX-License-Identifier: Apache-2.0
"""Guards of an expiry: the snapshots of a table that runs, scan plans and incremental readers need.

Must not know any wire format. One pure function (`formats.maintenance.expiry`) decides; this module reads its input and
calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from limnos.model.entities import MetadataDocument
from limnos.rooms.maintenance.formats.expiry import ExpiryGuards
from limnos.rooms.maintenance.formats.explanation import ExplanationTerms
from limnos.rooms.maintenance.services.assessing import source_key
from limnos.rooms.maintenance.services.policies import EffectivePolicy, assessment_rules
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX, InlineOffloader
from limnos.store.activity.maintenance import CheckpointRow, checkpoints_of
from limnos.store.objects.snapshot_pins import PinHolder, holders_read
from limnos.store.sql import Load

READER_KEEP_MS: Final = 7 * 86_400_000
"""The retention time of the last snapshot that an incremental reader reported as read, in
milliseconds.
"""


async def expiry_guards(
    services: NodeServices, *, node_id: int, metalake_id: int, path: Sequence[str], now_ms: int
) -> ExpiryGuards:
    """Read the guards of a table's snapshots: the runs, plans and readers that need them.

    Args:
        services: The node's services.
        node_id: The table.
        metalake_id: Its metalake.
        path: Its path below the metalake, the catalog first.
        now_ms: The store's time.
    """
    source = source_key(metalake_id, path)

    def load() -> Load[tuple[list[PinHolder], list[CheckpointRow]]]:
        holders = yield from holders_read(node_id, now_ms=now_ms)
        return holders, (yield from checkpoints_of(source, since_ms=now_ms - READER_KEEP_MS))

    holders, readers = await services.gate.look_up(load)
    pinned = _pinned_by(holders)
    checkpoints = {each.snapshot_id: f"incremental reader {each.reader_id} read it last" for each in readers}
    return ExpiryGuards(pinned, checkpoints)


async def pinned_snapshots(services: NodeServices, node_id: int, *, now_ms: int) -> dict[int, str]:
    """Return the snapshots of a table that runs and scan plans need, each with the reason."""
    return _pinned_by(await services.gate.look_up(lambda: holders_read(node_id, now_ms=now_ms)))


def _pinned_by(holders: Sequence[PinHolder]) -> dict[int, str]:
    pinned: dict[int, str] = {}
    for holder in holders:
        for snapshot_id in holder.snapshots:
            pinned.setdefault(snapshot_id, _pin_text(holder))
    return pinned


async def snapshots_judge(
    ctx: Context,
    work: str,
    *,
    document: MetadataDocument,
    metalake_id: int,
    path: Sequence[str],
    policies: Mapping[str, EffectivePolicy],
) -> bytes:
    """Evaluate a table's snapshots against its guards and policies; for a large document, in a worker process.

    Args:
        ctx: The request.
        work: The work to do on the document: `maintenance-explain` or `maintenance-expiry`.
        document: The table's metadata.
        metalake_id: Its metalake.
        path: Its path below the metalake, the catalog first.
        policies: The policies that apply to the table.

    Returns:
        The result of that work, as JSON.
    """
    services = ctx.services
    now_ms = services.store.time.now_ms()
    guards = await expiry_guards(services, node_id=document.node_id, metalake_id=metalake_id, path=path, now_ms=now_ms)
    terms = ExplanationTerms(
        now_ms=now_ms,
        rules=assessment_rules(policies),
        pinned=dict(guards.pinned),
        checkpoints=dict(guards.checkpoints),
        recent_ms=services.defaults.scan_keep_ms,
    )
    offloader = InlineOffloader() if len(document.body) <= REQUEST_BYTES_MAX else services.offloader
    (text,) = await offloader.do(work, msgspec.json.encode(terms), document.body)
    return text


def _pin_text(holder: PinHolder) -> str:
    if holder.run is not None:
        return f"pipeline run {holder.run} ({holder.state}) needs it"
    until = datetime.fromtimestamp(holder.expires_at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"a planned scan reads it until {until}"
