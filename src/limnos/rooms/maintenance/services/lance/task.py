# SPDX-License-Identifier: Apache-2.0
"""Maintenance task of Lance tables: assesses them, and executes their policies with the rights of their authors.

Must not know any wire format. Lance tables without a policy are maintained on request alone: the settings that maintain
tables without a policy are about Iceberg tables.
"""

from __future__ import annotations

from typing import Final

from limnos.formats.gravitino.policies import SNAPSHOT_EXPIRATION
from limnos.model.errors import LimnosError
from limnos.rooms.maintenance.formats.assessment import EXPIRE
from limnos.rooms.maintenance.services.acting import responsible_user
from limnos.rooms.maintenance.services.assessing import AssessmentRound
from limnos.rooms.maintenance.services.lance.assessing import LanceAssessment, LancePosition
from limnos.rooms.maintenance.services.lance.operations import LANCE_KINDS, lance_operation_run
from limnos.rooms.maintenance.services.operations import OperationPayload
from limnos.rooms.maintenance.services.policies import EffectivePolicy, PolicyIndex, policies_load
from limnos.rooms.maintenance.services.rewriting.planning import (
    find_requesting_policy,
    limits_of,
    metalake_of,
    rests_until,
    rewritten_bytes,
)
from limnos.rooms.maintenance.services.rewriting.scheduling import pause_of
from limnos.rooms.maintenance.services.task import INTERVAL_MS
from limnos.services.request.node_services import NodeServices
from limnos.services.request.table_formats import LANCE
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import FindingRow, findings_of_kind, last_operations
from limnos.store.activity.rewrites import RecentUse, ended_operations, lease_of_table, recent_use_read
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
MAINTAIN_LANCE_TABLES: Final = "maintain-lance-tables"
MAINTAIN_LANCE_EVERY_S: Final = 300.0
OPERATIONS_PER_ROUND: Final = 50
_PAGE: Final = 64


async def lance_run(work: TaskContext, payload: LancePosition) -> tuple[LancePosition, str]:
    """Assess tables, and execute policies. Returns the next position, and a summary."""
    services = work.services
    if services is None or not services.defaults.maintenance.assess:
        return payload, "off (setting maintenance.assess)"
    assessment = LanceAssessment(services)
    position = await work.await_with_lease(assessment.run(payload))
    round_ = LanceRound(work, services)
    await round_.run()
    return position, f"assessed {assessment.tables} tables; {round_.done} operations, {round_.failed} failed"


class LanceRound:
    """One round of the operations that policies request."""

    def __init__(self, work: TaskContext, services: NodeServices) -> None:
        self.work = work
        self.services = services
        self.done = self.failed = 0
        self._chains = AssessmentRound(services, tables_max=0)

    async def run(self) -> None:
        """Execute due operations, until `OPERATIONS_PER_ROUND` is reached at the end of a page of findings."""
        policies = await self.services.gate.look_up(policies_load)
        for kind in LANCE_KINDS if policies else ():
            after = 0
            while self.done + self.failed < OPERATIONS_PER_ROUND:
                rows = await self.services.gate.look_up(
                    lambda kind=kind, after=after: findings_of_kind(kind, after=after, limit=_PAGE, table_format=LANCE)  # type: ignore[misc]
                )
                if not rows:
                    break
                for row in rows:
                    after = row.node_id
                    await self._maintain(row, policies)

    async def _maintain(self, row: FindingRow, policies: PolicyIndex) -> None:
        effective = policies.effective(await self._chains.chain_of(row.node_id))
        policy = (
            effective.get(SNAPSHOT_EXPIRATION) if row.kind == EXPIRE else find_requesting_policy(effective, row.kind)
        )
        if policy is None or not policy.is_enabled or not await self._is_due(row, policy):
            return
        user = await responsible_user(self.services, row.node_id, policy=policy)
        operation = await self.work.submit(
            lambda tx: tx.maintenance.begin(
                catalog_id=row.catalog_id,
                node_id=row.node_id,
                kind=row.kind,
                user=user.user,
                policy=user.policy,
                bytes_=rewritten_bytes(row),
            )
        )
        reason = user.refusal
        if reason is None:
            try:
                await lance_operation_run(
                    self.work,
                    OperationPayload(
                        operation=operation,
                        table_id=row.node_id,
                        user=user.user,
                        policy=user.terms,
                        second_user_id=user.second_user_id,
                    ),
                )
            except LimnosError as error:
                reason = error.message
        if reason is None:
            self.done += 1
            return
        self.failed += 1
        await self.work.submit(lambda tx: tx.maintenance.end(operation, state="failed", result=reason[:2000]))

    async def _is_due(self, row: FindingRow, policy: EffectivePolicy) -> bool:
        """Return whether an operation may begin: no other operation leases the table, the minimum interval since the
        last one has passed, and quiet hours and budgets allow it.
        """
        look_up, now_ms = self.services.gate.look_up, self.services.store.time.now_ms()
        lease = await look_up(lambda: lease_of_table(row.node_id))
        if lease is not None and not lease.is_over(now_ms):
            return False
        if row.kind == EXPIRE:
            last = await look_up(lambda: last_operations([row.node_id], kind=EXPIRE))
            return not 0 <= now_ms - last.get(row.node_id, 0) < INTERVAL_MS
        ended_rows = await look_up(lambda: ended_operations([row.node_id]))
        if rests_until(ended_rows, row.node_id, kind=row.kind) > now_ms:
            return False
        metalake_id = metalake_of(self._chains.ancestors, row.node_id) or 0
        limits = limits_of(self.services.defaults.maintenance, policy, metalake_id=metalake_id)
        own_use = RecentUse(
            owner_id=0, policy=policy.name, bytes=rewritten_bytes(row), operations=1, metalake_id=metalake_id
        )
        used = [*await look_up(lambda: recent_use_read(now_ms)), own_use]
        return pause_of(limits, used, bytes_=own_use.bytes, now_ms=now_ms) is None
