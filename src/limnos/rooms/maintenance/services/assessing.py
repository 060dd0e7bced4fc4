# SPDX-License-Identifier: Apache-2.0
"""Assessment task: maintains findings for every Iceberg table, from the changes since its position in the change feed.

Must not know any wire format. Nothing is written for a commit: a round reads the changed tables from the feed, assesses
their metadata in a worker process, and stores the differences. It assesses all tables, in slices, once a day, after a
change of policies, after a restore of the store, and if the feed has a gap.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.model.records import NODE_RECORDS, TableRecord
from limnos.names import InvalidName, display
from limnos.names.engine import parse_spark
from limnos.rooms.maintenance.formats.assessment import (
    COMPACT,
    MANIFESTS,
    Assessment,
    AssessmentFinding,
    AssessmentRules,
    ManifestRow,
)
from limnos.rooms.maintenance.formats.offloaded import AssessmentTerms, ManifestTerms
from limnos.rooms.maintenance.services.policies import EffectivePolicy, PolicyIndex, assessment_rules, policies_load
from limnos.rooms.maintenance.services.table_storage import maintained_files
from limnos.services.request.node_services import NodeServices
from limnos.services.request.offloaded_work import InlineOffloader
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import (
    AT_ONCE,
    CatalogClock,
    CheckpointRow,
    FindingRow,
    TableBody,
    TableHead,
    ancestors_read,
    changed_read,
    checkpoints_by,
    clocks_read,
    finding_counts_read,
    findings_of,
    table_bodies_read,
    tables_of,
    tables_page,
)
from limnos.store.ancestry import Ancestry
from limnos.store.objects.documents import document_read
from limnos.store.sql import Load
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge

log = get_logger("limnos.maintenance")
ASSESS_TABLES: Final = "assess-tables"
ASSESS_EVERY_S: Final = 300.0
WHOLE_EVERY_MS: Final = 86_400_000
TABLES_PER_ROUND: Final = 50_000
"""The number of tables after which a round ends, at the end of a batch; the next round continues."""
MANIFEST_TABLES_PER_ROUND: Final = 200
"""The maximum number of tables whose manifests one round reads."""
PAUSE_FACTOR: Final = 5
"""An assessment of all tables pauses after each batch for this many times the batch's duration.

A batch holds the event loop for a millisecond several times. Spread out, these delay fewer than one request in a
hundred.
"""
MANIFESTS_MAX: Final = 100
MANIFEST_BYTES_MAX: Final = 32 << 20
_BODY_BYTES: Final = 1 << 20
_INLINE_BYTES: Final = 32 << 10
"""The maximum total size of documents, in bytes, that is assessed on the event loop, in about a millisecond."""
_REVISIONS: Final = 2_000
_OPERATIONS_LOST_MS: Final = 6 * 3_600_000
_OPERATIONS_KEEP_MS: Final = 90 * 86_400_000
_PERMIT: Final = upkeep_permit("limnos")
ASSESSED = Counter("limnos_maintenance_assessed_total", "Assessments of tables, by outcome.", ("outcome",))
FINDINGS = Gauge("limnos_maintenance_findings", "Findings of table maintenance in the store, by kind.", ("kind",))


class AssessmentPosition(msgspec.Struct, kw_only=True):
    """The progress of the assessment: the assessed revision of each catalog, and the position in an assessment of all
    tables.
    """

    epoch: int = 0
    positions: dict[int, int] = {}
    after: int | None = 0
    """The id of the last table that was assessed; None if all tables have been."""
    whole_at_ms: int = 0
    policies: int = -1
    """The sum of the revisions of all metalakes, to which policies and attachments belong; -1 without policies."""
    ended_at_ms: int = 0
    """The end of the last round, in milliseconds since 1970; 0 before the first one."""


async def assess_run(work: TaskContext, payload: AssessmentPosition) -> tuple[AssessmentPosition, str]:
    """Assess tables that changed, or all tables. Returns the next position, and a summary."""
    services = work.services
    if services is None or not services.defaults.maintenance.assess:
        return payload, "off (setting maintenance.assess)"
    round_ = AssessmentRound(services, tables_max=TABLES_PER_ROUND)
    outcome = await work.await_with_lease(round_.run(payload))
    await work.submit(lambda tx: tx.maintenance.tidy(lost_ms=_OPERATIONS_LOST_MS, keep_ms=_OPERATIONS_KEEP_MS))
    counts = await services.gate.look_up(finding_counts_read)
    FINDINGS.clear()
    FINDINGS.update({(kind,): number for kind, number in counts.items()})
    outcome = msgspec.structs.replace(outcome, ended_at_ms=services.store.time.now_ms())
    return outcome, f"assessed {round_.tables} tables, read manifests of {round_.manifest_tables}"


class CurrentState(NamedTuple):
    """The current revisions of all metalakes and catalogs, and the attached policies."""

    clocks: Sequence[CatalogClock]
    policies: PolicyIndex

    @property
    def epoch(self) -> int:
        """The store's epoch; -1 in a store without metalakes."""
        return max([each.epoch for each in self.clocks], default=-1)


def current_read() -> Load[CurrentState]:
    """Read the current revisions and the attached policies."""
    clocks = yield from clocks_read()
    return CurrentState(clocks, (yield from policies_load()))


class AssessmentRound:
    """One round of the assessment task: assesses tables in batches, and counts them."""

    def __init__(self, services: NodeServices, *, tables_max: int) -> None:
        self.services = services
        self.tables_max = tables_max
        self.tables = 0
        self.manifest_tables = 0
        self._policies = PolicyIndex((), ())
        self._ancestors: Ancestry = {}

    async def run(
        self, at: AssessmentPosition, *, current: CurrentState | None = None, only_changes: bool = False
    ) -> AssessmentPosition:
        """Assess tables from a position on. Returns the next position.

        With `only_changes` all tables are assessed only if the feed has a gap, not because of the time or a change of
        policies. `current` is the store's state if the caller has just read it.
        """
        if current is None:
            current = await self.services.gate.look_up(current_read)
        clocks, now_ms = current.clocks, self.services.store.time.now_ms()
        self._policies = current.policies
        epoch = current.epoch if clocks else at.epoch
        policies = sum(each.revision for each in clocks if each.kind is Kind.METALAKE) if self._policies else -1
        catalogs = [each for each in clocks if each.kind is Kind.CATALOG]
        is_old = at.policies != policies or not 0 <= now_ms - at.whole_at_ms < WHOLE_EVERY_MS
        is_due = at.epoch != epoch or (is_old and not only_changes)
        has_gap = any(at.positions.get(each.zone, 0) < each.pruned_to for each in catalogs)
        if at.after is None and (is_due or has_gap):
            at = AssessmentPosition(after=0)
        if at.after is not None:
            return await self._assess_all(at, catalogs, epoch=epoch, policies=policies, now_ms=now_ms)
        positions = dict(at.positions)
        for each in catalogs:
            positions[each.zone] = await self._assess_changed(each, after=positions.get(each.zone, 0))
        return msgspec.structs.replace(at, positions=positions)

    async def _assess_all(
        self, at: AssessmentPosition, catalogs: Sequence[CatalogClock], *, epoch: int, policies: int, now_ms: int
    ) -> AssessmentPosition:
        """Assess all tables, starting at a position. The first slice records the feed positions from which later rounds
        read changes.
        """
        after = at.after or 0
        if not after or at.epoch != epoch:
            after = 0
            positions = {each.zone: each.revision for each in catalogs}
            at = AssessmentPosition(epoch=epoch, positions=positions, after=0, whole_at_ms=now_ms, policies=policies)
        while self.tables < self.tables_max:
            page = await self.services.gate.look_up(
                lambda after=after: tables_page(after, limit=AT_ONCE, with_trash=True)  # type: ignore[misc]
            )
            if not page:
                return msgspec.structs.replace(at, after=None)
            began = asyncio.get_running_loop().time()
            await self._assess(page)
            await asyncio.sleep(PAUSE_FACTOR * (asyncio.get_running_loop().time() - began))
            after = page[-1].node_id
        return msgspec.structs.replace(at, after=after)

    async def _assess_changed(self, clock: CatalogClock, *, after: int) -> int:
        """Assess a catalog's tables that changed after a revision. Returns the last revision that was assessed."""
        look_up = self.services.gate.look_up
        while after < clock.revision and self.tables < self.tables_max:
            until = min(clock.revision, after + _REVISIONS)
            ids = await look_up(
                lambda after=after, until=until: changed_read(  # type: ignore[misc]
                    clock.zone, after=after, until=until, kind=Kind.TABLE
                )
            )
            for first in range(0, len(ids), AT_ONCE):
                part = ids[first : first + AT_ONCE]
                await self._assess(await look_up(lambda part=part: tables_of(part, with_trash=True)))  # type: ignore[misc]
            after = until
        return after

    async def findings_now(
        self, document: MetadataDocument, *, policies: Mapping[str, EffectivePolicy]
    ) -> tuple[FindingRow, ...]:
        """Return a table's findings from its current metadata and, if that indicates a need, from its manifests.

        The manifests are not read if the stored findings are about this metadata. Stores nothing.
        """
        heads = await self.services.gate.look_up(lambda: tables_of([document.node_id]))
        if not heads or is_dataset(heads[0]):
            return ()
        body = TableBody(document.node_id, document.version, document.metadata_location, document.body)
        (finding,) = await self._offload([body], [self._rules(policies)])
        stored_findings = await self.services.gate.look_up(lambda: findings_of([document.node_id]))
        former_findings = [row for row in stored_findings if row.kind in (COMPACT, MANIFESTS)]
        rows = await self._manifests(heads[0], body, assessment=finding, before=former_findings)
        now_ms = self.services.store.time.now_ms()
        findings = [*finding_rows(heads[0], finding.findings), *rows]
        return tuple([row._replace(found_at=row.found_at or now_ms) for row in findings])

    def _rules(self, policies: Mapping[str, EffectivePolicy]) -> AssessmentRules:
        """Return a table's thresholds. A snapshot stays as long as an expiry keeps it for readers."""
        rules = assessment_rules(policies)
        return msgspec.structs.replace(rules, recent_ms=self.services.defaults.scan_keep_ms)

    # ------------------------------------------------------------------------------------------- a batch

    async def _assess(self, heads: Sequence[TableHead]) -> None:
        """Assess a batch of tables, in parts with a bounded total size of documents."""
        part: list[TableHead] = []
        size = 0
        for head in heads:
            if part and size + head.size > _BODY_BYTES:
                await self._assess_part(part)
                part, size = [], 0
            part.append(head)
            size += head.size
        if part:
            await self._assess_part(part)

    async def _assess_part(self, heads: Sequence[TableHead]) -> None:
        """Assess tables, and store the findings and checkpoints that differ from the stored ones.

        A table in the trash has no findings. Its checkpoints count, because it may be restored.
        """
        look_up = self.services.gate.look_up
        ids = [head.node_id for head in heads]
        by_id = {head.node_id: head for head in heads}
        bodies = [body for body in await look_up(lambda: table_bodies_read(ids)) if not is_dataset(by_id[body.node_id])]
        if self._policies:
            await self.read_ancestors(ids)
        rules = [self._rules(self._policies.effective(self.chain(body.node_id))) for body in bodies]
        assessments = await self._offload(bodies, rules)
        former_findings = await look_up(lambda: findings_of(ids))
        readers = await look_up(lambda: checkpoints_by(ids))
        from_manifests: defaultdict[int, list[FindingRow]] = defaultdict(list)
        for row in former_findings:
            if row.kind in (COMPACT, MANIFESTS):
                from_manifests[row.node_id].append(row)
        rows: list[FindingRow] = []
        checkpoints: list[CheckpointRow] = []
        for body, each in zip(bodies, assessments, strict=True):
            ASSESSED["unreadable" if each.unreadable else "assessed",] += 1
            head = by_id[body.node_id]
            checkpoints += await self._checkpoints(head, each, stored=readers)
            if head.is_dropped:
                continue
            rows += finding_rows(head, each.findings) + await self._manifests(
                head, body, assessment=each, before=from_manifests[body.node_id]
            )
        await self._store(ids, rows, before=former_findings)
        if sorted(checkpoints) != sorted(readers):
            versions = {body.node_id: body.version for body in bodies}
            await self._submit(lambda tx: tx.maintenance.replace_checkpoints(ids, checkpoints, versions=versions))
        self.tables += len(heads)

    async def _offload(self, bodies: Sequence[TableBody], rules: Sequence[AssessmentRules]) -> list[Assessment]:
        if not bodies:
            return []
        tables = [(body.metadata_location, each) for body, each in zip(bodies, rules, strict=True)]
        terms = msgspec.json.encode(AssessmentTerms(self.services.store.time.now_ms(), tables))
        is_small = sum(len(body.body) for body in bodies) <= _INLINE_BYTES
        offloader = InlineOffloader() if is_small else self.services.offloader
        (text,) = await offloader.do("maintenance-assess", terms, *[body.body for body in bodies])
        return msgspec.json.decode(text, type=list[Assessment])

    async def read_ancestors(self, ids: Sequence[int]) -> None:
        """Read the ancestors of some tables into this round's cache for `chain`."""
        missing = [each for each in ids if each not in self._ancestors]
        if missing:
            self._ancestors |= await self.services.gate.look_up(lambda: ancestors_read(missing))

    async def chain_of(self, node_id: int) -> list[int]:
        """Return the ids of a table and its ancestors up to the catalog."""
        await self.read_ancestors([node_id])
        return self.chain(node_id)

    @property
    def ancestors(self) -> Ancestry:
        """The nodes read in this round, with their parents."""
        return self._ancestors

    async def is_dataset(self, node_id: int) -> bool:
        """Return whether a table is a SQL++ dataset."""
        return any(is_dataset(head) for head in await self.services.gate.look_up(lambda: tables_of([node_id])))

    def chain(self, node_id: int) -> list[int]:
        """Return the ids of a table and the ancestors that this round has read, up to the catalog."""
        links = []
        while node_id in self._ancestors and self._ancestors[node_id][1] is not Kind.METALAKE:
            links.append(node_id)
            node_id = self._ancestors[node_id][0]
        return links

    async def _store(self, ids: Sequence[int], rows: Sequence[FindingRow], *, before: Sequence[FindingRow]) -> None:
        """Store the findings of the tables whose findings differ from the stored ones."""
        old = {(row.node_id, row.kind): row for row in before}
        new = {(row.node_id, row.kind): row for row in rows}
        differs = {
            key[0]
            for key in old.keys() | new.keys()
            if key not in old or key not in new or old[key][3:6] != new[key][3:6]
        }
        changed_ids = [each for each in ids if each in differs]
        if changed_ids:
            new_rows = [row for row in rows if row.node_id in differs]
            await self._submit(lambda tx: tx.maintenance.replace_findings(changed_ids, new_rows))

    async def _submit(self, mutation: Callable[[Tx], None]) -> None:
        await self.services.store.submit(_PERMIT, mutation)

    # ------------------------------------------------------------------------------------------- manifests

    async def _manifests(
        self, head: TableHead, body: TableBody, *, assessment: Assessment, before: Sequence[FindingRow]
    ) -> list[FindingRow]:
        """Return the findings from a table's manifests, if its metadata indicates that reading them is useful.

        The stored findings are returned unchanged if the metadata has not changed, if the round has read the manifests
        of `MANIFEST_TABLES_PER_ROUND` tables, or if the manifests cannot be read.
        """
        if assessment.manifest_list is None:
            return []
        if before and all(row.version == head.version for row in before):
            return list(before)
        if self.manifest_tables >= MANIFEST_TABLES_PER_ROUND:
            return list(before)
        self.manifest_tables += 1
        try:
            findings = await self._read_manifests(body, assessment)
        except LimnosError as error:
            ASSESSED["manifests not read",] += 1
            log.warning("manifests of a table were not read", table=head.node_id, error=error.message)
            return list(before)
        return finding_rows(head, findings)

    async def _read_manifests(self, body: TableBody, assessment: Assessment) -> Sequence[AssessmentFinding]:
        document = await self.services.gate.look_up(lambda: document_read(body.node_id))
        if document is None or document.version != body.version or assessment.manifest_list is None:
            return ()
        files = await maintained_files(self.services, document)
        if files is None:
            return ()
        reader = files.reader(bytes_max=MANIFEST_BYTES_MAX)
        (text,) = await self.services.offloader.do(
            "maintenance-manifest-rows", await reader.read(assessment.manifest_list)
        )
        rows = msgspec.json.decode(text, type=list[ManifestRow])
        data, left = [], MANIFEST_BYTES_MAX
        for row in sorted(rows, key=lambda row: -row.entries)[:MANIFESTS_MAX]:
            if row.size > left:
                break
            data.append(await reader.read(row.path, bytes_max=left))
            left -= len(data[-1])
        terms = msgspec.json.encode(ManifestTerms(rows, assessment.target_bytes))
        (text,) = await self.services.offloader.do("maintenance-manifest-findings", terms, *data)
        return msgspec.json.decode(text, type=list[AssessmentFinding])

    async def _checkpoints(
        self, head: TableHead, assessment: Assessment, *, stored: Sequence[CheckpointRow]
    ) -> list[CheckpointRow]:
        """Return the checkpoints that a table's incremental writer has recorded in its metadata: for each source
        (`source_key`), the snapshot up to which it was read.

        Returns the stored checkpoints if the catalog's ancestors are not found, as for a catalog in the trash.
        """
        if not assessment.checkpoints:
            return []
        await self.read_ancestors([head.catalog_id])
        if head.catalog_id not in self._ancestors:
            return [row for row in stored if row.reader_id == head.node_id]
        metalake, _, _ = self._ancestors[head.catalog_id]
        checkpoints = {}
        for each in assessment.checkpoints:
            try:
                source = source_key(metalake, parse_spark(each.source))
            except InvalidName:
                continue
            checkpoints[source] = CheckpointRow(head.node_id, source, each.snapshot_id, each.at_ms)
        return list(checkpoints.values())


def source_key(metalake_id: int, path: Sequence[str]) -> str:
    """Return the key of a source of an incremental reader: the metalake, and the path with the catalog first."""
    return f"{metalake_id}:{display.render(path)}"


def is_dataset(head: TableHead) -> bool:
    """Return whether a table is a SQL++ dataset: datasets have their own compaction task."""
    record = NODE_RECORDS[Kind.TABLE].read(head.record)
    return isinstance(record, TableRecord) and bool(record.statements)


def finding_rows(head: TableHead, findings: Sequence[AssessmentFinding]) -> list[FindingRow]:
    """Return findings of a table as rows of the store."""
    return [
        FindingRow(
            node_id=head.node_id,
            kind=each.kind,
            catalog_id=head.catalog_id,
            score=each.score,
            reason=each.reason,
            figures=msgspec.json.encode(each.figures).decode(),
            version=head.version,
            found_at=0,
        )
        for each in findings
    ]


async def effective_policies(services: NodeServices, node_id: int) -> Mapping[str, EffectivePolicy]:
    """Return the maintenance policy of each type that currently applies to a table."""
    chain = await AssessmentRound(services, tables_max=0).chain_of(node_id)
    return (await services.gate.look_up(policies_load)).effective(chain)
