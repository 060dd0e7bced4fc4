# SPDX-License-Identifier: Apache-2.0
"""Delays of operations because of quiet hours and budgets, by the current settings and policies.

Must not know leases of executors. A delayed operation stores when it is due, and the reason. Settings change with a
restart of the server, and policies at any time. So the server computes the delays again once a minute, and an operation
that has none any more is due at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.services.assessing import AssessmentRound
from limnos.rooms.maintenance.services.policies import EffectivePolicy, policies_load
from limnos.rooms.maintenance.services.rewriting.kinds import RewriteOptions
from limnos.rooms.maintenance.services.rewriting.planning import find_requesting_policy, is_off, is_set, limits_of
from limnos.rooms.maintenance.services.rewriting.scheduling import (
    REQUESTED_PRIORITY,
    OperationPause,
    ScheduleLimits,
    is_schedule_reason,
    pause_of,
)
from limnos.rooms.maintenance.services.table_leases import CANCELLED, operation_close
from limnos.services.request.node_services import NodeServices
from limnos.store.activity.rewrites import (
    RecentUse,
    WaitingRewrite,
    delayed_rewrites,
    recent_use_read,
)
from limnos.store.tx import Tx

REFRESH_EVERY_S: Final = 60.0
_PERMIT: Final = upkeep_permit("limnos")


def schedule_limits(
    services: NodeServices, policies: Mapping[str, EffectivePolicy], *, row: WaitingRewrite
) -> ScheduleLimits | None:
    """Return the hours and budgets that apply to an operation that no user requested, from the current settings and
    effective policies. None if the policy or the setting no longer requires the operation, or the policy has another
    author or was attached by another user since.
    """
    settings = services.defaults.maintenance
    policy = find_requesting_policy(policies, row.kind)
    if policy is None and (not is_set(settings, row.kind) or is_off(policies, row.kind)):
        return None
    if (None if policy is None else policy.name) != row.policy:
        return None
    policy_name = msgspec.json.decode(row.options, type=RewriteOptions).policy
    if policy is not None and (policy_name is None or not policy_name.has_authors_of(policy)):
        return None
    return limits_of(settings, policy, metalake_id=row.metalake_id)


def withdrawal_text(row: WaitingRewrite) -> str:
    """Return the result of an operation that its policy or the setting no longer requires."""
    what = "setting maintenance.rewrite_files" if row.policy is None else f"policy {row.policy}"
    return f"The {what} no longer requires this"


async def pauses_refresh(services: NodeServices) -> int:
    """Compute the delays of operations again that wait for quiet hours or budgets. Returns the count of changed
    operations.

    An operation that its policy or the setting no longer requires is cancelled.
    """
    look_up = services.gate.look_up
    now_ms = services.store.time.now_ms()
    delayed = await look_up(lambda: delayed_rewrites(now_ms, below=REQUESTED_PRIORITY))
    delayed = [each for each in delayed if is_schedule_reason(each.reason)]
    if not delayed:
        return 0
    policies = await look_up(policies_load)
    used = await look_up(lambda: recent_use_read(now_ms))
    round_ = AssessmentRound(services, tables_max=0)
    await round_.read_ancestors([each.row.node_id for each in delayed])
    count = 0
    for each in delayed:
        limits = schedule_limits(services, policies.effective(round_.chain(each.row.node_id)), row=each.row)
        pause = None if limits is None else _pause(limits, used, row=each.row, now_ms=now_ms)
        if limits is None or pause is None or pause.reason != each.reason:
            change = partial(_change, row=each.row, pause=pause, is_withdrawn=limits is None)
            await services.store.submit(_PERMIT, change)
            count += 1
    return count


def _pause(
    limits: ScheduleLimits, used: Sequence[RecentUse], *, row: WaitingRewrite, now_ms: int
) -> OperationPause | None:
    """Return the delay of an operation that is not leased: its own bytes are not among the `used` ones yet."""
    own_use = RecentUse(
        owner_id=row.owner_id, policy=row.policy, bytes=row.bytes or 0, operations=1, metalake_id=row.metalake_id
    )
    return pause_of(limits, [*used, own_use], bytes_=row.bytes or 0, now_ms=now_ms)


def _change(tx: Tx, *, row: WaitingRewrite, pause: OperationPause | None, is_withdrawn: bool) -> None:
    if is_withdrawn:
        if tx.rewrites.is_waiting(row.operation_id, below=REQUESTED_PRIORITY):
            operation_close(tx, row.operation_id, outcome=CANCELLED, text=withdrawal_text(row))
        return
    delay_ms, reason = (0, None) if pause is None else pause
    tx.rewrites.reschedule(row.operation_id, delay_ms=delay_ms, reason=reason, below=REQUESTED_PRIORITY)
