# SPDX-License-Identifier: Apache-2.0
"""Maintenance task: maintains tables as policies and settings require, on behalf of the responsible user.

Must not know any wire format. An operation that a policy requires needs the rights that the policy's author and the
user who attached it have at that time; one that a setting requires those of the table's owner. So a policy whose author
lost the right has no effect, and the operation's row states the reason. The task may be killed at any point: each
operation is one commit, or deletes files that no metadata names.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.formats.gravitino.policies import SNAPSHOT_EXPIRATION
from limnos.model.errors import LimnosError
from limnos.rooms.maintenance.services.acting import ResponsibleUser, responsible_user
from limnos.rooms.maintenance.services.assessing import AssessmentRound
from limnos.rooms.maintenance.services.metadata_files import AgeWindow, metadata_files_delete
from limnos.rooms.maintenance.services.operations import EXPIRE, OperationPayload, operation_end, operation_run
from limnos.rooms.maintenance.services.policies import EffectivePolicy, PolicyIndex, policies_load
from limnos.rooms.maintenance.services.rewriting.planning import plan_run
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import FindingRow, findings_of_kind, last_operations, tables_page
from limnos.store.activity.rewrites import lease_of_table
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
MAINTAIN_TABLES: Final = "maintain-tables"
MAINTAIN_EVERY_S: Final = 600.0
LEASE_MS: Final = 60_000
TABLES_PER_ROUND: Final = 200
"""The number of expiries, including failed ones, after which a round ends, at the end of a page of findings."""
LISTED_PER_ROUND: Final = 2_000
"""The number of tables with listed metadata files after which a round ends, at the end of a page of tables."""
INTERVAL_MS: Final = 86_400_000
"""The minimum time between two expiries of a table's snapshots, regardless of their result, and between two passes over
metadata files, in milliseconds.
"""
_PAGE: Final = 64


class MaintenancePosition(msgspec.Struct, kw_only=True):
    """The progress of the rounds: the last table of each kind of work, and the time when the store's current epoch was
    first recorded.
    """

    epoch: int = 0
    since_ms: int = 0
    expired_after: int = 0
    listed_after: int = 0
    listed_at_ms: int = 0
    """The start of the current pass over metadata files, in milliseconds since 1970."""
    planned_after: dict[str, int] = {}
    """The last table whose rewrite was planned, by kind."""


async def maintain_run(work: TaskContext, payload: MaintenancePosition) -> tuple[MaintenancePosition, str]:
    """Maintain tables by their policies and the settings. Returns the next position, and a summary."""
    services = work.services
    if services is None:
        return payload, "this node has no services"
    epoch, now_ms = await work.submit(lambda tx: (tx.epoch(), tx.now_ms))
    if payload.epoch != epoch or payload.since_ms > now_ms:
        payload = MaintenancePosition(epoch=epoch, since_ms=now_ms)
    round_ = MaintenanceRound(work, services, now_ms=now_ms)
    after = await work.await_with_lease(round_.expire(payload.expired_after))
    listed_count, at_ms = await work.await_with_lease(round_.delete_metadata_files(payload))
    planned_after, planned = await plan_run(work, services, after=payload.planned_after)
    summary = (
        f"expired snapshots of {round_.expired} tables, {round_.failed} failed; deleted {round_.files} metadata files;"
        f" planned {planned} rewrites"
    )
    return MaintenancePosition(
        epoch=epoch,
        since_ms=payload.since_ms,
        expired_after=after,
        listed_after=listed_count,
        listed_at_ms=at_ms,
        planned_after=planned_after,
    ), summary


class MaintenanceRound:
    """One round of the maintenance task: it expires snapshots and deletes old metadata files, of a limited number of
    tables.
    """

    def __init__(self, work: TaskContext, services: NodeServices, *, now_ms: int) -> None:
        self.work = work
        self.services = services
        self.now_ms = now_ms
        self.expired = self.failed = self.files = 0

    async def expire(self, after: int) -> int:
        """Expire the snapshots of tables with the finding "snapshots to expire", in the order of table ids, starting
        after the id `after`.

        Returns the id after which the next run continues; 0 after the last table.
        """
        look_up = self.services.gate.look_up
        policies = await look_up(policies_load)
        if not policies and not self.services.defaults.maintenance.expire:
            return 0
        round_ = AssessmentRound(self.services, tables_max=0)
        while self.expired + self.failed < TABLES_PER_ROUND:
            rows = await look_up(lambda after=after: findings_of_kind(EXPIRE, after=after, limit=_PAGE))  # type: ignore[misc]
            if not rows:
                return 0
            ids = [row.node_id for row in rows]
            last = await look_up(lambda ids=ids: last_operations(ids, kind=EXPIRE))  # type: ignore[misc]
            for row in rows:
                after = row.node_id
                lease = await look_up(lambda node_id=after: lease_of_table(node_id))  # type: ignore[misc]
                is_leased = lease is not None and not lease.is_over(self.now_ms)
                if not is_leased and not 0 <= self.now_ms - last.get(row.node_id, 0) < INTERVAL_MS:
                    await self._expire_one(row, policies, round_=round_)
        return after

    async def _expire_one(self, row: FindingRow, policies: PolicyIndex, *, round_: AssessmentRound) -> None:
        chain = await round_.chain_of(row.node_id)
        user = await self._responsible(row, policies.effective(chain).get(SNAPSHOT_EXPIRATION))
        if user is None:
            return
        operation = await self.work.submit(
            lambda tx: tx.maintenance.begin(
                catalog_id=row.catalog_id, node_id=row.node_id, kind=EXPIRE, user=user.user, policy=user.policy
            )
        )
        if user.refusal is not None:
            self.failed += 1
            await operation_end(self.work, operation, state="failed", text=user.refusal)
            return
        payload = OperationPayload(
            operation=operation,
            table_id=row.node_id,
            user=user.user,
            policy=user.terms,
            second_user_id=user.second_user_id,
        )
        try:
            await operation_run(self.work, payload)
            self.expired += 1
        except LimnosError as error:
            self.failed += 1
            await operation_end(self.work, operation, state="failed", text=error.message)

    async def _responsible(self, row: FindingRow, policy: EffectivePolicy | None) -> ResponsibleUser | None:
        """Return the user on whose behalf a table's snapshots expire; None if neither a policy nor the setting enables
        it.
        """
        if policy is None and not self.services.defaults.maintenance.expire:
            return None
        if policy is not None and not policy.is_enabled:
            return None
        return await responsible_user(self.services, row.node_id, policy=policy)

    # ------------------------------------------------------------------------------------------- metadata files

    async def delete_metadata_files(self, at: MaintenancePosition) -> tuple[int, int]:
        """Delete old metadata files, of all tables once a day. Returns the table id after which the next run continues,
        and the start time of the pass in milliseconds since 1970.
        """
        keep_ms = self.services.defaults.maintenance.metadata_keep_ms
        after, began_ms = at.listed_after, at.listed_at_ms
        if not keep_ms or (not after and 0 <= self.now_ms - began_ms < INTERVAL_MS):
            return after, began_ms
        began_ms = began_ms if after else self.now_ms
        window = AgeWindow(at.since_ms, self.now_ms - keep_ms)
        examined_count = 0
        while examined_count < LISTED_PER_ROUND:
            page = await self.services.gate.look_up(lambda after=after: tables_page(after, limit=_PAGE))  # type: ignore[misc]
            if not page:
                return 0, began_ms
            for head in page:
                examined_count += 1
                after = head.node_id
                try:
                    self.files += await metadata_files_delete(self.services, head.node_id, window=window)
                except LimnosError as error:
                    log.warning("old metadata files are kept", table=head.node_id, error=error.message)
        return after, began_ms
