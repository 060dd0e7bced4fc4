# SPDX-License-Identifier: Apache-2.0
"""Rounds of orphan removal: checks tables for orphan files if a policy or setting enables it, and removes old ones.

Must not know any wire format. A file is removed if it was an orphan at checks on different days for the stated age, by
the store's clock. The time between two checks counts at most `STEP_MAX_MS`, so that a jump of the clock does not make
files old enough. The task may be killed at any point: a check stores its findings in one transaction, and a removal
resumes (`services.maintenance.orphans.removal`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.formats.gravitino.policies import ORPHAN_FILE_REMOVAL, OrphanFileRemovalContent, content_of
from limnos.model.errors import LimnosError
from limnos.rooms.maintenance.services.acting import ActingRequest, ActingTokens, acting_as, responsible_user
from limnos.rooms.maintenance.services.assessing import AssessmentRound
from limnos.rooms.maintenance.services.orphans.removal import (
    NO_METADATA,
    OrphanRemoval,
    RemovalAccount,
    RemovalResult,
    orphans_mark,
)
from limnos.rooms.maintenance.services.orphans.search import TableSearch, orphans_search
from limnos.rooms.maintenance.services.policies import EffectivePolicy, policies_load
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import TableHead, tables_page
from limnos.store.activity.orphan_files import (
    CANDIDATE,
    NewOrphan,
    OrphanCheckRow,
    OrphanFileRow,
    marked_tables_read,
    orphan_checks_read,
    orphan_files_read,
)
from limnos.store.faults import fault_point
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.maintenance")
ORPHANS: Final = "orphans"
"""The kind of the operation."""
OFF: Final = "off"
EVERYWHERE: Final = "all"
DAY_MS: Final = 86_400_000
STEP_MAX_MS: Final = 2 * DAY_MS
"""The maximum time between two checks that counts towards a file's age, in milliseconds."""
RECHECK_MS: Final = DAY_MS - 3_600_000
"""The time between two checks of a table with candidates, in milliseconds: rounds are not punctual."""
INTERVAL_DAYS: Final = 7
TABLES_PER_ROUND: Final = 500
FILES_PER_ROUND: Final = 10_000
CANDIDATES_MAX: Final = 20_000
"""The maximum number of orphans that are stored for one table; further ones follow when these are deleted."""
FENCE_WAIT_S: Final = 100.0
"""The maximum time that nodes need to learn that files are marked, in seconds: longer than
`orphan_fence.LIST_AGE_MAX_S`.
"""
_PAGE: Final = 64
CHECKS = Counter(
    "limnos_maintenance_orphan_checks_total", "Checks of tables for orphan files, by outcome.", ("outcome",)
)


class OrphanTerms(NamedTuple):
    """The settings of orphan removal for a table: the policy, the minimum age of files, the interval between checks,
    and whether files are deleted or only reported.
    """

    policy: EffectivePolicy | None
    age_ms: int
    interval_ms: int
    removes: bool


class MarkedTable(NamedTuple):
    """A table with marked files, the user on whose behalf they are deleted, and the policy that requires it."""

    node_id: int
    catalog_id: int
    user: str
    policy: str | None
    second_user_id: int = 0
    """The user who attached the policy, whose rights the deletion needs, too."""


def orphan_terms(services: NodeServices, policy: EffectivePolicy | None) -> OrphanTerms | None:
    """Return the settings of orphan removal for a table; None if orphan removal is off for it."""
    settings = services.defaults.maintenance
    if settings.orphans == OFF or (policy is None and settings.orphans != EVERYWHERE):
        return None
    if policy is None:
        return OrphanTerms(None, settings.orphan_age_ms, INTERVAL_DAYS * DAY_MS, removes=True)
    if not policy.is_enabled:
        return None
    content = content_of(policy.content, OrphanFileRemovalContent)
    age_ms = settings.orphan_age_ms if content.older_than_days is None else content.older_than_days * DAY_MS
    days = INTERVAL_DAYS if content.cleanup_interval_days is None else content.cleanup_interval_days
    return OrphanTerms(policy, age_ms, days * DAY_MS, removes=not content.dry_run)


class OrphanRound:
    """One round of orphan removal: it checks tables in the order of their ids, and deletes the marked files that are
    due.
    """

    def __init__(self, work: TaskContext, services: NodeServices, *, operation: int | None = None) -> None:
        self.work = work
        self.services = services
        self.operation = operation
        """The operation of a request; if None, each removal is a separate operation."""
        self.checked = self.files = 0
        self.marked: list[MarkedTable] = []
        self._marked_files = 0

    async def run(self, after: int) -> int:
        """Check due tables with ids above `after`, and remove old orphans. Returns the id after which the next run
        continues; 0 after the last table.
        """
        look_up = self.services.gate.look_up
        policies = await look_up(policies_load)
        resumed = await look_up(marked_tables_read)
        lookup = AssessmentRound(self.services, tables_max=0)
        async with ActingTokens(self.work, self.services, name="maintenance orphans") as tokens:
            while self.checked < TABLES_PER_ROUND and self._marked_files < FILES_PER_ROUND:
                page = await look_up(lambda after=after: tables_page(after, limit=_PAGE))  # type: ignore[misc]
                if not page:
                    after = 0
                    break
                ids = [head.node_id for head in page]
                await lookup.read_ancestors(ids)
                checks = await look_up(lambda ids=ids: orphan_checks_read(ids))  # type: ignore[misc]
                for head in page:
                    after = head.node_id
                    terms = orphan_terms(
                        self.services, policies.effective(lookup.chain(after)).get(ORPHAN_FILE_REMOVAL)
                    )
                    if terms is not None and (after in resumed or self._is_due(checks.get(after), terms)):
                        await self._one(head, terms, tokens=tokens)
        await self.remove()
        return after

    def _is_due(self, last: OrphanCheckRow | None, terms: OrphanTerms) -> bool:
        """Return whether a table was never checked, the interval since its last check has passed, or the clock was set
        back.
        """
        if last is None:
            return True
        rest_ms = min(RECHECK_MS, terms.interval_ms) if last.candidates else terms.interval_ms
        return not 0 <= self.services.store.time.now_ms() - last.checked_at < rest_ms

    async def _one(self, head: TableHead, terms: OrphanTerms, *, tokens: ActingTokens) -> None:
        self.checked += 1
        user = await responsible_user(self.services, head.node_id, policy=terms.policy)
        if user.refusal is not None:
            await self._store_blocked(head.node_id, head.catalog_id, reason=user.refusal, policy=user.policy)
            return
        try:
            request = await tokens.request(
                user=user.user,
                table_id=head.node_id,
                name=f"maintenance-orphans-{head.node_id}",
                second_user_id=user.second_user_id,
            )
            if request is not None:
                await self.check(
                    request,
                    node_id=head.node_id,
                    catalog_id=head.catalog_id,
                    terms=terms,
                    user=user.user,
                    second_user_id=user.second_user_id,
                )
        except LimnosError as error:
            await tokens.end(user.user, second_user_id=user.second_user_id)
            log.warning("a table was not checked for orphan files", table=head.node_id, error=error.message)
            await self._store_blocked(head.node_id, head.catalog_id, reason=error.message, policy=user.policy)

    # ------------------------------------------------------------------------------------------- a check

    async def check(
        self,
        request: ActingRequest,
        *,
        node_id: int,
        catalog_id: int,
        terms: OrphanTerms,
        user: str,
        second_user_id: int = 0,
    ) -> OrphanCheckRow:
        """Check one table on behalf of a user, store the findings, and mark the files that may be removed.

        Raises as `maintained_table`, and StorageFailed, ServiceUnavailable.
        """
        await request.ctx.read(request.scope, lambda view: maintained_table(view, request.path))
        search = await orphans_search(self.work, self.services, node_id=node_id)
        policy = None if terms.policy is None else terms.policy.name
        row = OrphanCheckRow(
            node_id=node_id,
            catalog_id=catalog_id,
            epoch=0,
            checked_at=0,
            listed=len(search.names),
            referenced=search.referenced,
            candidates=len(search.candidates),
            candidate_bytes=sum(each.size for each in search.candidates),
            blocked=search.blocked,
            policy=policy,
        )
        is_known = await self.work.submit(lambda tx: check_store(tx, row, search=search))
        fault_point("orphans-checked")
        CHECKS["blocked" if search.blocked else "checked",] += 1
        if search.blocked is None and is_known and terms.removes:
            table = MarkedTable(
                node_id=node_id, catalog_id=catalog_id, user=user, policy=policy, second_user_id=second_user_id
            )
            await self._mark(request, table, age_ms=terms.age_ms)
        return row

    async def _mark(self, request: ActingRequest, table: MarkedTable, *, age_ms: int) -> None:
        """Mark the files of a table that have been orphans for at least `age_ms`."""
        now_ms = self.services.store.time.now_ms()
        rows = await self.services.gate.look_up(lambda: orphan_files_read(table.node_id))
        names = [
            row.name
            for row in rows
            if row.state != CANDIDATE or (row.waited_ms >= age_ms and row.modified_ms <= now_ms - age_ms)
        ][: max(0, FILES_PER_ROUND - self._marked_files)]
        if names:
            by = "setting maintenance.orphan_files" if table.policy is None else f"policy {table.policy}"
            reason = f"{NO_METADATA} for {age_ms / DAY_MS:g} days ({by})"
            await orphans_mark(request, names, reason=reason)
            fault_point("orphans-marked")
            self._marked_files += len(names)
            self.marked.append(table)

    async def _store_blocked(self, node_id: int, catalog_id: int, *, reason: str, policy: str | None) -> None:
        CHECKS["failed",] += 1
        row = OrphanCheckRow(
            node_id=node_id,
            catalog_id=catalog_id,
            epoch=0,
            checked_at=0,
            listed=0,
            referenced=0,
            candidates=0,
            candidate_bytes=0,
            blocked=reason[:2000],
            policy=policy,
        )
        await self.work.submit(lambda tx: check_put(tx, row))

    # ------------------------------------------------------------------------------------------- removal

    async def remove(self) -> dict[int, RemovalResult]:
        """Delete the files that this round has marked, after `FENCE_WAIT_S` seconds, in which all nodes read the marks.

        Returns the results by table id. A table whose removal fails is only logged.
        """
        results: dict[int, RemovalResult] = {}
        if self.marked:
            await asyncio.sleep(FENCE_WAIT_S)
        for table in self.marked:
            try:
                results[table.node_id] = await self._remove_one(table)
            except LimnosError as error:
                log.warning("orphan files were not deleted", table=table.node_id, error=error.message)
        self.marked = []
        return results

    async def _remove_one(self, table: MarkedTable) -> RemovalResult:
        """Delete the marked files of a table, if the responsible user still has the right to maintain the table."""
        operation = self.operation
        if operation is None:
            operation = await self.work.submit(
                lambda tx: tx.maintenance.begin(
                    catalog_id=table.catalog_id,
                    node_id=table.node_id,
                    kind=ORPHANS,
                    user=table.user,
                    policy=table.policy,
                )
            )
        state, result = "failed", RemovalResult(refusal="the table was dropped")
        try:
            async with acting_as(
                self.work,
                self.services,
                user=table.user,
                table_id=table.node_id,
                name=f"maintenance-{operation}",
                second_user_id=table.second_user_id,
            ) as request:
                if request is not None:
                    result = await self._delete(table, await orphans_mark(request, (), reason=""))
                    state = "done" if result.refusal is None else "failed"
        except LimnosError as error:
            result = RemovalResult(refusal=error.message)
            raise
        finally:
            if self.operation is None:
                await self._end(operation, state=state, text=result.text)
        return result

    async def _end(self, operation: int, *, state: str, text: str) -> None:
        await self.work.submit(lambda tx: tx.maintenance.end(operation, state=state, result=text[:2000]))

    async def _delete(self, table: MarkedTable, account: RemovalAccount) -> RemovalResult:
        removal = OrphanRemoval(self.work, self.services, node_id=table.node_id, account=account)
        result = await removal.run()
        self.files += result.files
        return result


def check_put(tx: Tx, row: OrphanCheckRow) -> None:
    """Store the reason why a table was not checked.

    Its candidates stay, and the time since the previous check does not count towards their age.
    """
    last = tx.orphan_files.check(row.node_id)
    candidates = 0 if last is None else last.candidates
    epoch = tx.epoch() if last is None else last.epoch
    tx.orphan_files.put_check(row._replace(epoch=epoch, candidates=candidates))


def check_store(tx: Tx, row: OrphanCheckRow, *, search: TableSearch) -> bool:
    """Store the result of a check: the age of stored candidates increases, new candidates are added, others are
    deleted. A blocked search deletes all candidates that are not marked.

    Returns whether the table was checked before in this epoch of the store; False for a blocked search. After a restore
    of the store, the age of all candidates restarts at zero: the restored metadata may name them.
    """
    files, last = tx.orphan_files, tx.orphan_files.check(row.node_id)
    epoch = tx.epoch()
    is_known = last is not None and last.epoch == epoch
    if not is_known:
        files.clear(row.node_id, with_marks=True)
    if search.blocked is not None:
        files.clear(row.node_id)
        files.put_check(row._replace(epoch=epoch, candidates=0, candidate_bytes=0))
        return False
    former_files = {each.name: each for each in files.of(row.node_id)}
    if last is not None:
        files.add_waiting_time(row.node_id, step_ms=max(0, min(tx.now_ms - last.checked_at, STEP_MAX_MS)))
    candidates = {each.name: NewOrphan(*each) for each in search.candidates}
    files.drop(
        row.node_id,
        [
            name
            for name in former_files
            if name not in candidates and (former_files[name].state == CANDIDATE or name in search.names)
        ],
    )
    files.add(row.node_id, _new(candidates, former_files))
    files.put_check(row._replace(epoch=epoch))
    return is_known


def _new(candidates: dict[str, NewOrphan], before: dict[str, OrphanFileRow]) -> Sequence[NewOrphan]:
    """Return the candidates that were not stored before, or whose size or time has changed since; at most as many as
    `CANDIDATES_MAX` leaves beside the stored ones.
    """
    new = []
    for name, each in candidates.items():
        former_candidate = before.get(name)
        if former_candidate is None or (
            former_candidate.state == CANDIDATE
            and (former_candidate.size, former_candidate.modified_ms) != (each.size, each.modified_ms)
        ):
            new.append(each)
    return new[: max(0, CANDIDATES_MAX - len(before))]
