# SPDX-License-Identifier: Apache-2.0
"""Assessment of Lance tables: findings from the state of each table, which worker processes read.

Must not know any wire format. Changes that the server makes or commits are in the change feed, and their tables are
assessed in the next round. Clients also write files without the server, so once a day all tables are assessed, in
slices; also after a change of the policies, which set thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.formats.lance_tables import assess_lance_table
from limnos.rooms.maintenance.services.assessing import (
    ASSESSED,
    WHOLE_EVERY_MS,
    AssessmentRound,
    current_read,
    finding_rows,
)
from limnos.rooms.maintenance.services.lance.tables import stored_state
from limnos.rooms.maintenance.services.policies import assessment_rules, policies_load
from limnos.services.request.node_services import NodeServices
from limnos.services.request.table_formats import LANCE
from limnos.store.activity.maintenance import (
    AT_ONCE,
    CatalogClock,
    FindingRow,
    TableHead,
    changed_read,
    findings_of,
    tables_of,
    tables_page,
)
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
TABLES_PER_ROUND: Final = 200
"""The number of tables after which a round ends, at the end of a page; the next round continues."""
_REVISIONS: Final = 2_000
_PERMIT: Final = upkeep_permit("limnos")


class LancePosition(msgspec.Struct, kw_only=True):
    """The progress of the assessment: the revision of each catalog, and the position in a pass over all tables."""

    epoch: int = 0
    positions: dict[int, int] = {}
    after: int | None = 0
    """The id of the last table that was assessed; None if the pass has ended."""
    whole_at_ms: int = 0
    policies: str = ""
    """The digest of the policies by which the tables were assessed."""


class LanceAssessment:
    """Assesses the Lance tables that changed, or all of them, about `TABLES_PER_ROUND` tables per run."""

    def __init__(self, services: NodeServices) -> None:
        self.services = services
        self.tables = 0
        self._chains = AssessmentRound(services, tables_max=0)

    async def run(self, at: LancePosition) -> LancePosition:
        """Assess tables from a position on. Returns the next position."""
        current, now_ms = await self.services.gate.look_up(current_read), self.services.store.time.now_ms()
        clocks, policies = current.clocks, current.policies.digest
        catalogs = [each for each in clocks if each.kind is Kind.CATALOG]
        epoch = max([each.epoch for each in clocks], default=at.epoch)
        has_gap = any(at.positions.get(each.zone, 0) < each.pruned_to for each in catalogs)
        is_old = at.policies != policies or not 0 <= now_ms - at.whole_at_ms < WHOLE_EVERY_MS
        if at.epoch != epoch or (at.after is None and (has_gap or is_old)):
            positions = {each.zone: each.revision for each in catalogs}
            at = LancePosition(epoch=epoch, positions=positions, after=0, whole_at_ms=now_ms, policies=policies)
        if at.after is not None:
            return msgspec.structs.replace(at, after=await self._page(at.after))
        positions = {
            each.zone: await self._assess_changed(each, after=at.positions.get(each.zone, 0)) for each in catalogs
        }
        return msgspec.structs.replace(at, positions=positions)

    async def _page(self, after: int) -> int | None:
        while self.tables < TABLES_PER_ROUND:
            heads = await self.services.gate.look_up(
                lambda after=after: tables_page(after, limit=AT_ONCE, table_format=LANCE)  # type: ignore[misc]
            )
            if not heads:
                return None
            for head in heads:
                await self.assess(head)
                after = head.node_id
        return after

    async def _assess_changed(self, clock: CatalogClock, *, after: int) -> int:
        """Assess a catalog's tables that changed after a revision. Returns the last revision that was assessed."""
        look_up = self.services.gate.look_up
        while after < clock.revision and self.tables < TABLES_PER_ROUND:
            until = min(clock.revision, after + _REVISIONS)
            ids = await look_up(
                lambda after=after, until=until: changed_read(  # type: ignore[misc]
                    clock.zone, after=after, until=until, kind=Kind.TABLE
                )
            )
            for first in range(0, len(ids), AT_ONCE):
                part = ids[first : first + AT_ONCE]
                for head in await look_up(lambda part=part: tables_of(part, table_format=LANCE)):  # type: ignore[misc]
                    await self.assess(head)
            after = until
        return after

    async def assess_now(self, node_id: int) -> None:
        """Assess one table, after an operation on it."""
        for head in await self.services.gate.look_up(lambda: tables_of([node_id], table_format=LANCE)):
            await self.assess(head)

    async def assess(self, head: TableHead) -> None:
        """Assess a table, and store its findings if they differ from the stored ones.

        The stored findings stay if the table's state cannot be read.
        """
        self.tables += 1
        try:
            rows = await self.findings(head)
        except LimnosError as error:
            ASSESSED["unreadable",] += 1
            log.warning("a Lance table was not assessed", table=head.node_id, error=error.message)
            return
        ASSESSED["assessed",] += 1
        former_findings = await self.services.gate.look_up(lambda: findings_of([head.node_id]))
        if sorted(each[:6] for each in former_findings) != sorted(each[:6] for each in rows):
            await self.services.store.submit(_PERMIT, lambda tx: tx.maintenance.replace_findings([head.node_id], rows))

    async def findings(self, head: TableHead) -> Sequence[FindingRow]:
        """Return the findings of a table from its current state; none for a table without data."""
        state = await stored_state(self.services, head.node_id)
        if state is None:
            return ()
        policies = (await self.services.gate.look_up(policies_load)).effective(
            await self._chains.chain_of(head.node_id)
        )
        now_ms = self.services.store.time.now_ms()
        return finding_rows(head, assess_lance_table(state, assessment_rules(policies), now_ms=now_ms))
