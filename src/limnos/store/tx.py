# SPDX-License-Identifier: Apache-2.0
"""`Tx`: the transaction that a mutation sees, with statements, the reads and writes of each resource, and the drafts of
its changes.

Has no business rules. The backend opens it, takes the locks, checks the permit, and closes it. A mutation is a plain
function over it that never awaits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from limnos.model.audit import add_detail
from limnos.model.errors import StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.store.activity.lineage import LineageWrites
from limnos.store.activity.maintenance import MaintenanceWrites
from limnos.store.activity.node_beats import NodeBeatWrites
from limnos.store.activity.orphan_files import OrphanFileWrites
from limnos.store.activity.rewrites import RewriteWrites
from limnos.store.activity.runs import RunWrites
from limnos.store.activity.scan_plans import ScanPlanWrites
from limnos.store.activity.schedules import ScheduleWrites
from limnos.store.activity.search_index import SearchIndexWrites
from limnos.store.activity.sqlpp_locks import SqlppLockWrites
from limnos.store.activity.sqlpp_requests import RequestWrites
from limnos.store.activity.tasks import TaskWrites
from limnos.store.activity.template_jobs import TemplateJobWrites
from limnos.store.activity.webhooks import WebhookWrites
from limnos.store.audit_notes import NOTE_NEW, note_params
from limnos.store.changes import CHANGE_NEW, CHANGES_NEW_POSTGRES, CLOCK_MOVE, CLOCKS_MAX, ChangeDraft
from limnos.store.exchange.imports import ImportWrites
from limnos.store.faults import fault_point
from limnos.store.idempotency import RequestOutcomeWrites
from limnos.store.identity.access_answers import AccessAnswerWrites
from limnos.store.identity.access_requests import AccessRequestWrites
from limnos.store.identity.passwords import PasswordWrites
from limnos.store.identity.principals import PrincipalWrites
from limnos.store.identity.restrictions import RestrictionWrites
from limnos.store.identity.roles import RoleWrites
from limnos.store.identity.tokens import TokenWrites
from limnos.store.objects.attachments import AttachmentWrites
from limnos.store.objects.dependencies import DependencyWrites
from limnos.store.objects.documents import DocumentWrites
from limnos.store.objects.fileset_locations import FilesetLocationWrites
from limnos.store.objects.lance_versions import LanceVersionWrites
from limnos.store.objects.location_reconciliation import ReconciliationWrites
from limnos.store.objects.models import ModelWrites
from limnos.store.objects.nesting import NestingWrites
from limnos.store.objects.nodes import NodeWrites
from limnos.store.objects.owners import OwnerWrites
from limnos.store.objects.protection import ProtectionWrites
from limnos.store.objects.restricted_reads import RestrictedReadWrites
from limnos.store.objects.setting_names import SettingNameWrites
from limnos.store.objects.snapshot_pins import SnapshotPinWrites
from limnos.store.objects.statistics import StatisticWrites
from limnos.store.objects.storage_locations import LocationWrites
from limnos.store.objects.trash import TrashWrites
from limnos.store.sql import Params
from limnos.store.transaction import StoreSession, StoreTransaction

T = TypeVar("T")
W = TypeVar("W")


class ResourceWrites(Generic[W]):
    """A descriptor that returns the reads and writes of a resource inside a transaction, such as `tx.nodes`."""

    def __init__(self, writes: Callable[[StoreTransaction], W]) -> None:
        self.writes = writes

    def __get__(self, tx: StoreTransaction, owner: type) -> W:
        return self.writes(tx)


class Tx(StoreTransaction):
    """The transaction as passed to one mutation, with the reads and writes of each resource as attributes."""

    def __init__(
        self, session: StoreSession, *, permit: Permit[object], revision: int, now_ms: int, more: Sequence[Tx] = ()
    ) -> None:
        super().__init__(session, permit=permit, revision=revision, now_ms=now_ms)
        self.more = more
        """The same transaction in the other zones of its permit."""

    def in_zone(self, zone: int) -> Tx:
        """Return the transaction as it writes to one zone of its permit: its change drafts belong to that zone."""
        return self if zone == self.zone else next(each for each in self.more if each.zone == zone)

    @property
    def next_revisions(self) -> dict[int, int]:
        """The revisions, after the transaction, of all catalogs that its permit writes to."""
        return {each.zone: each.next_revision for each in (self, *self.more)}

    nodes = ResourceWrites(NodeWrites)
    """Nodes of the tree."""
    imports = ResourceWrites(ImportWrites)
    """Running imports."""
    nesting = ResourceWrites(NestingWrites)
    """Renaming of namespaces whose names contain the separator."""
    owners = ResourceWrites(OwnerWrites)
    """Owners of objects."""
    principals = ResourceWrites(PrincipalWrites)
    """Users, groups and memberships."""
    roles = ResourceWrites(RoleWrites)
    """Roles, their grants, and the principals to whom they are granted."""

    def attachments(self, kind: Kind, *, column: str | None = None) -> AttachmentWrites:
        """Return the reads and writes of attachments of tags (`Kind.TAG`) or policies (`Kind.POLICY`). `column` is the
        name of the column of which attachments are changed.
        """
        return AttachmentWrites(self, kind, column=column)

    fileset_places = ResourceWrites(FilesetLocationWrites)
    """Locations of filesets."""
    places = ResourceWrites(LocationWrites)
    """The register of storage locations."""
    location_reconciliation = ResourceWrites(ReconciliationWrites)
    """The register of storage locations as a whole: missing and conflicting ones."""
    template_jobs = ResourceWrites(TemplateJobWrites)
    """Jobs that nodes run from job templates."""
    schedules = ResourceWrites(ScheduleWrites)
    """Schedules of pipelines."""
    statistics = ResourceWrites(StatisticWrites)
    """Statistics of tables."""
    maintenance = ResourceWrites(MaintenanceWrites)
    """Findings, checkpoints and operations of table maintenance."""
    orphan_files = ResourceWrites(OrphanFileWrites)
    """Orphan files of tables, and checks for them."""
    rewrites = ResourceWrites(RewriteWrites)
    """Maintenance operations that wait for an executor, and leases of tables."""
    dependencies = ResourceWrites(DependencyWrites)
    """Dependencies between SQL++ objects."""
    lineage = ResourceWrites(LineageWrites)
    """Lineage: edges between objects, and external datasets."""
    lance_versions = ResourceWrites(LanceVersionWrites)
    """Versions of Lance tables."""
    models = ResourceWrites(ModelWrites)
    """Versions of models."""
    passwords = ResourceWrites(PasswordWrites)
    """Passwords of local users."""
    access_requests = ResourceWrites(AccessRequestWrites)
    """Open requests of users for access to objects."""
    access_answers = ResourceWrites(AccessAnswerWrites)
    """Answers to requests for access."""
    tokens = ResourceWrites(TokenWrites)
    """API tokens, sessions, and secrets of service accounts."""
    documents = ResourceWrites(DocumentWrites)
    """Metadata documents of tables and views."""
    setting_names = ResourceWrites(SettingNameWrites)
    """Names of metalakes in settings."""
    protection = ResourceWrites(ProtectionWrites)
    """Protection from drops."""
    restrictions = ResourceWrites(RestrictionWrites)
    """Read restrictions."""
    trash = ResourceWrites(TrashWrites)
    """Dropped objects that can be restored."""
    tasks = ResourceWrites(TaskWrites)
    """Background tasks."""
    outcomes = ResourceWrites(RequestOutcomeWrites)
    """Outcomes of requests with an idempotency key."""
    runs = ResourceWrites(RunWrites)
    """Runs of pipelines."""
    locks = ResourceWrites(SqlppLockWrites)
    """Locks of SQL++ statements."""
    requests = ResourceWrites(RequestWrites)
    """Long-running SQL++ requests, and their results."""
    restricted_reads = ResourceWrites(RestrictedReadWrites)
    """Directories of files that were rewritten for restricted users."""
    snapshot_pins = ResourceWrites(SnapshotPinWrites)
    """Snapshots that runs and scan plans pin."""
    scan_plans = ResourceWrites(ScanPlanWrites)
    """Scan plans that clients have not fetched completely."""
    node_beats = ResourceWrites(NodeBeatWrites)
    """Heartbeats of server nodes."""
    search = ResourceWrites(SearchIndexWrites)
    """The full-text index."""
    webhooks = ResourceWrites(WebhookWrites)
    """Webhooks, and their positions in the change feed."""


Mutation = Callable[[Tx], T]


class MutationBatch:
    """Mutations that commit together, with the clocks read under the locks, and the change rows to write at the commit.

    A mutation that changes an access revision closes the batch (rule 9): later mutations are checked after its commit.
    """

    def __init__(self, session: StoreSession, now_ms: int) -> None:
        self.session = session
        self.now_ms = now_ms
        self.closed = False
        self._clocks: dict[int, tuple[int, int]] = {}
        self._passed: tuple[tuple[int, int], ...] = ()
        self._moved: set[int] = set()
        self._ran = False
        self._changes: list[Params] = []

    def clock(self, zone: int) -> tuple[int, int]:
        """Return the zone's revision and access revision, including the changes of this batch so far."""
        _clocks = self._clocks.get(zone)
        if _clocks is None:
            self._read((zone,))
            _clocks = self._clocks[zone]
        return _clocks

    def _read(self, zones: Sequence[int]) -> None:
        self._clocks.update(dict.fromkeys(zones, (0, 0)))
        for start in range(0, len(zones), CLOCKS_MAX):
            for zone, revision, access_revision in self.session.read_clocks(zones[start : start + CLOCKS_MAX]):
                self._clocks[zone] = (revision, access_revision)

    def check(self, permit: Permit[object]) -> None:
        """Raise StalePermit if access has changed since the permit's decision in any of its zones (rule 7)."""
        if permit.stamps == self._passed:
            return  # checked for the previous mutation, and no access revision has moved since
        clocks = self._clocks
        unread = [zone for zone, _ in permit.stamps if zone not in clocks]
        if unread:
            self._read(unread)
        for zone, access_revision in permit.stamps:
            if clocks[zone][1] != access_revision:
                raise StalePermit
        self._passed = permit.stamps

    def run(self, permit: Permit[object], mutation: Mutation[T]) -> T:
        """Check the permit and run the mutation. Raises StalePermit if the permit is stale.

        The mutation's changes are added to the batch only if it returns normally.
        """
        self.check(permit)
        fault_point("permitted")
        more = [self._part(msgspec.structs.replace(permit, zone=zone)) for zone in permit.more_zones]
        tx = self._part(permit, more)
        result = mutation(tx)
        fault_point("written")
        self._ran = True
        if tx.note_detail and tx.drafts:
            first = tx.drafts[0]
            text = tx.note_detail if first.detail is None else f"{first.detail}, {tx.note_detail}"
            tx.drafts[0] = msgspec.structs.replace(first, detail=text)
        parts = [each for each in (tx, *more) if each.drafts] if more else [tx] if tx.drafts else []
        for each in parts:
            self._keep(each.zone, each, drafts=each.drafts, account=permit.account)
        outer = [each.outer_drafts for each in parts if each.outer_drafts is not None]
        if outer:
            drafts = outer[0][1] if len(outer) == 1 else [draft for _, drafts in outer for draft in drafts]
            self._keep(outer[0][0], tx, drafts=drafts, account=permit.account)
        if not parts and permit.account is not None:
            account = permit.account
            if tx.note_detail:
                account = add_detail(account, tx.note_detail, outcome=tx.note_outcome)
            tx.count(NOTE_NEW, note_params(tx, permit.zone, account=account))
        return result

    def _part(self, permit: Permit[object], more: Sequence[Tx] = ()) -> Tx:
        """Return the transaction of a mutation in the zone of `permit`."""
        revision, _ = self.clock(permit.zone)
        return Tx(self.session, permit=permit, revision=revision + 1, now_ms=self.now_ms, more=more)

    def _keep(self, zone: int, tx: Tx, *, drafts: Sequence[ChangeDraft], account: str | None) -> None:
        """Take the next revision of a zone for a mutation's changes in it."""
        revision, access_revision = self.clock(zone)
        revision += 1
        for draft in drafts:
            if draft.moves_access:
                access_revision = revision
                self.closed = True
                self._passed = ()
                break
        self._clocks[zone] = (revision, access_revision)
        self._moved.add(zone)
        for ordinal, draft in enumerate(drafts):
            self._changes.append(
                {
                    "zone": zone,
                    "revision": revision,
                    "ordinal": ordinal,
                    "operation": draft.operation,
                    "kind": int(draft.kind),
                    "node_id": draft.node_id,
                    "name_space": draft.name_space,
                    "old_parent": draft.old_parent,
                    "old_name": draft.old_name,
                    "new_parent": draft.new_parent,
                    "new_name": draft.new_name,
                    "owner_id": draft.owner_id,
                    "actor": tx.actor,
                    "request_id": tx.request_id,
                    "at": self.now_ms,
                    "payload": account
                    if draft.detail is None
                    else add_detail(account, draft.detail, change=draft.audit_word),
                }
            )
            account = None  # stored once for all changes of the mutation

    def finish(self) -> bool:
        """Write clocks and change rows, immediately before the commit. Returns whether there is anything to commit."""
        if not self._moved:
            return self._ran
        clocks: list[Params] = []
        for zone in self._moved:
            revision, access_revision = self._clocks[zone]
            clocks.append({"zone": zone, "revision": revision, "access_revision": access_revision})
        if self.session.combines_writes:
            both = {
                "clocks": msgspec.json.encode(clocks).decode(),
                "changes": msgspec.json.encode(self._changes).decode(),
            }
            self.session.count(CHANGES_NEW_POSTGRES, both)
            fault_point("drafted")
            return True
        self.session.many(CHANGE_NEW, self._changes)
        fault_point("drafted")
        for each in clocks:
            self.session.count(CLOCK_MOVE, each)
        return True
