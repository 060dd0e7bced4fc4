# SPDX-License-Identifier: Apache-2.0
"""Scheduling of rewrites: fair shares of table owners, quiet hours, and budgets of bytes.

Pure. Must not know leases. Operations that a user requested have priority. Quiet hours and budgets do not delay them,
but their bytes count towards the budgets.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.model.quiet_hours import QuietHours, quiet_hours_wait_ms
from limnos.store.activity.rewrites import RecentUse, WaitingRewrite

OPERATION_BYTES: Final = 16 << 20
"""The fixed cost of an operation, in bytes: it is added to the bytes that the operation rewrites."""
BUDGET_PAUSE_MS: Final = 600_000
"""The delay before an operation whose budget is used up is considered again, in milliseconds."""
REQUESTED_PRIORITY: Final = 1 << 40
_FOR_HOURS: Final = "waits for the quiet hours "
_FOR_BUDGET: Final = "waits for the budget "


class OperationPause(NamedTuple):
    """The delay of an operation before it may be leased, in milliseconds, and the reason."""

    ms: int
    reason: str


class ScheduleLimits(NamedTuple):
    """The limits of an operation: the quiet hours and the budget of bytes per day, of the settings and of its
    policy.
    """

    hours: Sequence[QuietHours] = ()
    bytes_per_day: int = 0
    policy: str | None = None
    policy_hours: Sequence[QuietHours] = ()
    policy_bytes_per_day: int = 0
    metalake_id: int = 0

    @property
    def has_hours(self) -> bool:
        """Whether operations run only in quiet hours. In these hours they do not wait until the table has no
        writers.
        """
        return bool(self.hours or self.policy_hours)


def fair_order(rows: Sequence[WaitingRewrite], used: Sequence[RecentUse]) -> list[WaitingRewrite]:
    """Return operations in the order in which they are leased.

    Operations that users requested have priority. Each following operation is on a table of the owner for whom the
    fewest bytes were rewritten in the last 24 hours. Operations on tables of one owner keep their order in the queue
    (`place`).
    """
    requested = [row for row in rows if row.priority >= REQUESTED_PRIORITY]
    of_owner: dict[int, list[WaitingRewrite]] = defaultdict(list)
    for row in sorted(rows, key=lambda each: each.place):
        if row.priority < REQUESTED_PRIORITY:
            of_owner[row.owner_id].append(row)
    cost: dict[int, int] = defaultdict(int)
    for each in used:
        cost[each.owner_id] += each.bytes + each.operations * OPERATION_BYTES
    heap = [(cost[owner_id], owner_id, 0) for owner_id in of_owner]
    heapq.heapify(heap)
    ordered_operations = []
    while heap:
        spent, owner_id, number = heapq.heappop(heap)
        row = of_owner[owner_id][number]
        ordered_operations.append(row)
        if number + 1 < len(of_owner[owner_id]):
            heapq.heappush(heap, (spent + (row.bytes or 0) + OPERATION_BYTES, owner_id, number + 1))
    return [*requested, *ordered_operations]


def pause_of(limits: ScheduleLimits, used: Sequence[RecentUse], *, bytes_: int, now_ms: int) -> OperationPause | None:
    """Return the delay of an operation that no user requested, with the reason; None if it may begin.

    Args:
        limits: The hours and budgets that apply to it.
        used: The use by the operations of the last 24 hours, including this one.
        bytes_: The bytes that this operation rewrites.
        now_ms: The store's time in milliseconds since 1970.
    """
    for hours in (limits.hours, limits.policy_hours):
        wait_ms = quiet_hours_wait_ms(hours, now_ms)
        if wait_ms:
            return OperationPause(wait_ms, f"{_FOR_HOURS}{', '.join(map(str, hours))}")
    total = sum(each.bytes for each in used)
    if _is_over(total, budget=limits.bytes_per_day, own=bytes_):
        return OperationPause(
            BUDGET_PAUSE_MS, _reason("setting maintenance.bytes_per_day", budget=limits.bytes_per_day, used=total)
        )
    own_policy = (limits.metalake_id, limits.policy)
    of_policy = sum(each.bytes for each in used if (each.metalake_id, each.policy) == own_policy)
    if _is_over(of_policy, budget=limits.policy_bytes_per_day, own=bytes_):
        reason = _reason(f"policy {limits.policy}", budget=limits.policy_bytes_per_day, used=of_policy)
        return OperationPause(BUDGET_PAUSE_MS, reason)
    return None


def is_schedule_reason(reason: str | None) -> bool:
    """Return whether an operation waits for quiet hours or a budget, by its stored reason."""
    return reason is not None and reason.startswith((_FOR_HOURS, _FOR_BUDGET))


def _is_over(used: int, *, budget: int, own: int) -> bool:
    """Return whether a budget is exceeded. An operation that exceeds the budget on its own may begin if nothing else
    was rewritten.
    """
    return 0 < budget < used and used != own


def _reason(what: str, *, budget: int, used: int) -> str:
    return f"{_FOR_BUDGET}of {what}: {used} bytes in 24 hours with this operation, {budget} are allowed"
