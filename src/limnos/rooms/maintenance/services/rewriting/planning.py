# SPDX-License-Identifier: Apache-2.0
"""Planning of rewrites: turns findings into operations that wait for an executor, if a policy or a setting enables it.

Must not know any wire format. An operation that a policy requests needs the rights of the policy's author and of who
attached it; one that a setting requests those of the table's owner. The server checks them here, when an executor
leases the operation, and at its commits. A failed operation is retried with exponential backoff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from limnos.formats.gravitino.policies import (
    COMPACTION,
    REWRITE_OPTIONS,
    ROW_RETENTION,
    TABLE_MAINTENANCE,
    CompactionContent,
    RowRetentionContent,
    TableMaintenanceContent,
    content_of,
    unknown_options,
)
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, RunConflict
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.quiet_hours import QuietHours, parse_quiet_hours
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.assessment import COMPACT, DELETES, MANIFESTS, TARGET_BYTES_DEFAULT, target_of
from limnos.rooms.maintenance.formats.row_retention import RETENTION
from limnos.rooms.maintenance.formats.table_metadata import metadata_of
from limnos.rooms.maintenance.services.acting import REWRITE_ACTIONS, ResponsibleUser, responsible_user
from limnos.rooms.maintenance.services.assessing import AssessmentRound, effective_policies
from limnos.rooms.maintenance.services.operations import request_of
from limnos.rooms.maintenance.services.policies import (
    POLICY_TYPES,
    EffectivePolicy,
    PolicyIndex,
    deciding_policy,
    kind_setting,
    policies_load,
)
from limnos.rooms.maintenance.services.rewriting.kinds import RewriteOptions
from limnos.rooms.maintenance.services.rewriting.scheduling import OPERATION_BYTES, REQUESTED_PRIORITY, ScheduleLimits
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.services.request.context import Context
from limnos.services.request.defaults import MaintenanceDefaults
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import FindingRow, findings_of_kind
from limnos.store.activity.rewrites import EndedOperation, ended_operations, open_rewrites, open_rewrites_counts
from limnos.store.ancestry import Ancestry
from limnos.store.objects.owners import owner_read
from limnos.store.tx import Tx

PLANNED_KINDS: Final = (RETENTION, COMPACT, DELETES, MANIFESTS)
"""The kinds that policies request, in the order in which they are planned."""
OPEN_MAX: Final = 5_000
"""The maximum number of waiting operations on the tables of one owner; further findings wait for the next rounds."""
ROUND_MAX: Final = 5_000
"""The number of operations after which a round ends; the next round continues after the last table."""
INTERVAL_MS: Final = 3_600_000
"""The minimum time between two operations of a kind on one table, in milliseconds."""
RETENTION_INTERVAL_MS: Final = 86_400_000
"""The minimum time between two deletions of old rows of one table, in milliseconds."""
PAUSE_MS: Final = 300_000
PAUSE_MS_MAX: Final = 86_400_000
"""The pause after the first failure, and the maximum pause, in milliseconds."""
IDLE: Final = "nothing to rewrite: the table has no delete files"
_PAGE: Final = 64


async def plan_run(
    work: TaskContext, services: NodeServices, *, after: Mapping[str, int]
) -> tuple[dict[str, int], int]:
    """Plan operations from findings, for each kind starting after the table id in `after`.

    Returns by kind the table id after which the next round begins, and the count of new waiting operations.
    """
    policies = await services.gate.look_up(policies_load)
    if not policies and not services.defaults.maintenance.rewrite:
        return {}, 0
    round_ = RewritePlanning(work, services, policies=policies)
    reached = {}
    for kind in PLANNED_KINDS:
        reached[kind] = await work.await_with_lease(round_.plan(kind, after=after.get(kind, 0)))
    return reached, round_.planned


class RewritePlanning:
    """One round of planning rewrites, with the count of operations planned in it."""

    def __init__(self, work: TaskContext, services: NodeServices, *, policies: PolicyIndex) -> None:
        self.work = work
        self.services = services
        self.planned = 0
        self._policies = policies
        self._chains = AssessmentRound(services, tables_max=0)

    async def plan(self, kind: str, *, after: int) -> int:
        """Plan operations for the findings of a kind, starting after the table id `after`. Returns the id after which
        the next run continues; 0 after the last table.
        """
        look_up = self.services.gate.look_up
        counts = await look_up(open_rewrites_counts)
        while self.planned < ROUND_MAX:
            rows = await look_up(lambda after=after: findings_of_kind(kind, after=after, limit=_PAGE))  # type: ignore[misc]
            if not rows:
                return 0
            ids = [row.node_id for row in rows]
            waiting = await look_up(lambda ids=ids: open_rewrites(ids))  # type: ignore[misc]
            ended_rows = await look_up(lambda ids=ids: ended_operations(ids))  # type: ignore[misc]
            now_ms = self.services.store.time.now_ms()
            for row in rows:
                after = row.node_id
                if (row.node_id, kind) not in waiting and rests_until(ended_rows, row.node_id, kind=kind) <= now_ms:
                    owner_id = await look_up(lambda row=row: owner_read(row.node_id)) or 0  # type: ignore[misc]
                    if counts.get(owner_id, 0) < OPEN_MAX:
                        counts[owner_id] = counts.get(owner_id, 0) + int(await self._plan_one(row))
        return after

    async def _plan_one(self, row: FindingRow) -> bool:
        """Plan an operation if a policy or a setting enables it. Returns whether it is planned."""
        chain = await self._chains.chain_of(row.node_id)
        effective = self._policies.effective(chain)
        policy = find_requesting_policy(effective, row.kind)
        is_asked = policy is not None or is_set(self.services.defaults.maintenance, row.kind)
        if not is_asked or (policy is None and is_off(effective, row.kind)):
            return False
        user = await responsible_user(self.services, row.node_id, policy=policy, actions=REWRITE_ACTIONS)
        options = msgspec.structs.replace(
            stored_options(row, policy), policy=user.terms, second_user_id=user.second_user_id
        )
        metalake_id = metalake_of(self._chains.ancestors, row.node_id)
        if metalake_id is None:
            return False
        await self.work.submit(lambda tx: self._begin(tx, row=row, user=user, stored=options, metalake_id=metalake_id))
        self.planned += 1
        return True

    def _begin(
        self, tx: Tx, *, row: FindingRow, user: ResponsibleUser, stored: RewriteOptions, metalake_id: int
    ) -> None:
        if row.kind in tx.rewrites.open_of(row.node_id):
            return
        operation = tx.maintenance.begin(
            catalog_id=row.catalog_id,
            node_id=row.node_id,
            kind=row.kind,
            user=user.user,
            policy=user.policy,
            state="waiting",
            bytes_=rewritten_bytes(row),
        )
        if user.refusal is not None:
            tx.maintenance.end(operation, state="failed", result=user.refusal)
            return
        options = msgspec.json.encode(stored).decode()
        tx.rewrites.add(operation, metalake_id=metalake_id, priority=priority_of(row), options=options)


def policy_refusals(policies: Mapping[str, EffectivePolicy]) -> tuple[str, ...]:
    """Return the reason why rewrites for a table's compaction policy fail: options that Iceberg lacks. Empty if it has
    none.
    """
    policy = policies.get(COMPACTION)
    if policy is None or policy not in (
        find_requesting_policy(policies, COMPACT),
        find_requesting_policy(policies, DELETES),
    ):
        return ()
    unknown = _unknown_options(policy)
    if not unknown:
        return ()
    names = ", ".join(unknown)
    return (f"no file is rewritten for its policy of type {COMPACTION}: Iceberg has no option {names}",)


def _unknown_options(policy: EffectivePolicy | None) -> Sequence[str]:
    """Return the options of a compaction policy that Iceberg's action lacks."""
    if policy is None or policy.policy_type != COMPACTION:
        return ()
    return unknown_options(content_of(policy.content, CompactionContent).rewrite_options or {})


def find_requesting_policy(policies: Mapping[str, EffectivePolicy], kind: str) -> EffectivePolicy | None:
    """Return the enabled policy that requests a kind of operation on a table; None if there is none.

    If policies of two types concern the kind, the nearer one decides, and on the same object the one of the specific
    type.
    """
    policy = deciding_policy(policies, kind)
    if policy is None or not policy.is_enabled:
        return None
    return None if policy.policy_type == TABLE_MAINTENANCE and not kind_setting(policy, kind) else policy


def is_set(settings: MaintenanceDefaults, kind: str) -> bool:
    """Return whether the settings enable a kind of operation on tables without a policy; row retention needs one."""
    return settings.rewrite and kind != RETENTION


def is_off(policies: Mapping[str, EffectivePolicy], kind: str) -> bool:
    """Return whether a policy disables a kind of operation, so that the settings do not apply.

    Call it only if no policy enables the kind: then any policy that concerns the kind disables it.
    """
    return deciding_policy(policies, kind) is not None


def limits_of(settings: MaintenanceDefaults, policy: EffectivePolicy | None, *, metalake_id: int) -> ScheduleLimits:
    """Return the limits of an operation: the quiet hours and budgets of the settings, and those of its policy."""
    name = None if policy is None else policy.name
    limits = ScheduleLimits(
        hours=settings.quiet_hours, bytes_per_day=settings.bytes_per_day, policy=name, metalake_id=metalake_id
    )
    if policy is not None and policy.policy_type == ROW_RETENTION:
        return limits._replace(policy_hours=_hours(content_of(policy.content, RowRetentionContent).quiet_hours))
    if policy is None or policy.policy_type != TABLE_MAINTENANCE:
        return limits
    content = content_of(policy.content, TableMaintenanceContent)
    return limits._replace(
        policy_hours=_hours(content.quiet_hours), policy_bytes_per_day=content.max_bytes_per_day or 0
    )


def _hours(texts: Sequence[str] | None) -> tuple[QuietHours, ...]:
    return tuple([parse_quiet_hours(each) for each in texts or ()])


def stored_options(row: FindingRow, policy: EffectivePolicy | None) -> RewriteOptions:
    """Return the options to store with an operation: from the finding's figures and from the policy that enables it."""
    figures = msgspec.json.decode(row.figures, type=dict[str, int])
    return policy_options(policy, target_bytes=figures.get("target_bytes", TARGET_BYTES_DEFAULT))


def policy_options(policy: EffectivePolicy | None, *, target_bytes: int) -> RewriteOptions:
    """Return the options of a policy for Iceberg's action. `target_bytes` is the target size of files if the policy has
    none.
    """
    target, options = target_bytes, dict[str, str]()
    if policy is not None and policy.policy_type == COMPACTION:
        options = content_of(policy.content, CompactionContent).rewrite_options or {}
    if policy is not None and policy.policy_type == TABLE_MAINTENANCE:
        target = content_of(policy.content, TableMaintenanceContent).target_file_size_bytes or target
    return RewriteOptions(target_bytes=target, options=options)


def priority_of(row: FindingRow) -> int:
    """Return the priority of an operation, its benefit per cost: a multiple of the removed files per 16 MiB to
    rewrite.
    """
    cost = OPERATION_BYTES + rewritten_bytes(row)
    return max(1, min(REQUESTED_PRIORITY - 1, 1_000 * row.score * OPERATION_BYTES // cost))


def rewritten_bytes(row: FindingRow) -> int:
    """Return the total size in bytes of the small files that a finding's operation rewrites; 0 if it is unknown."""
    return msgspec.json.decode(row.figures, type=dict[str, int]).get("small_bytes", 0)


def rests_until(ended: Sequence[EndedOperation], node_id: int, *, kind: str) -> int:
    """Return the time from which an operation of a kind may be planned again for a table, in milliseconds since 1970.

    0 if none has ended yet. Consecutive failures double the pause (exponential backoff), up to PAUSE_MS_MAX.
    """
    own_operations = [each for each in ended if each.node_id == node_id and each.kind == kind]
    if not own_operations:
        return 0
    failures = next((number for number, each in enumerate(own_operations) if each.state == "done"), len(own_operations))
    if not failures:
        return own_operations[0].ended_at + (RETENTION_INTERVAL_MS if kind == RETENTION else INTERVAL_MS)
    return own_operations[0].ended_at + int(min(PAUSE_MS_MAX, PAUSE_MS << min(failures - 1, 20)))


def metalake_of(ancestors: Ancestry, node_id: int) -> int | None:
    """Return the id of the metalake of a node from its `ancestors`; None if one of them no longer exists."""
    at = node_id
    while at in ancestors:
        if ancestors[at][1] is Kind.METALAKE:
            return at
        at = ancestors[at][0]
    return None


# ------------------------------------------------------------------------------------------- requests


class RewriteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The command to queue an operation on a table, on behalf of a user with the trust of the user's credential."""

    table: Node
    kind: str
    user: str
    metalake_id: int
    options: RewriteOptions
    is_idle: bool
    """Whether the operation has nothing to do, as `is_idle` returns."""
    own: dict[str, str]
    """The options of Iceberg's action in the request itself; `options` also has those of the table's policy."""


async def rewrite_request(
    ctx: Context, scope: RequestScope, *, path: Levels, kind: str, options: Mapping[str, str] = MappingProxyType({})
) -> int:
    """Request a rewrite of a table, with `options` of Iceberg's Spark action.

    The policy that requests this kind for the table adds its options. If a policy has already queued an operation of
    this kind, it becomes the caller's and is due immediately.

    Returns the id of the operation, new or already queued; an operation that has nothing to do is done at once. Raises
    as `maintained_table`, RunConflict if the open operation of this kind has other options, and BadRequest if the
    table's policy has options that Iceberg lacks.
    """

    def look(request_view: RequestView) -> MetadataDocument:
        return request_view.document(maintained_table(request_view, path).entity.id)

    document = await ctx.read(scope, look)
    base = await _requested_options(ctx.services, document, kind=kind, own=options)

    def decide(request_view: RequestView) -> Permit[RewriteRequest]:
        node, decision, user, trust, root_id = request_of(ctx, request_view, path=path)
        stored = msgspec.structs.replace(base, trust=trust, root_id=root_id, is_requested=True)
        metalake_id, idle = request_view.metalake.id, is_idle(document, kind=kind)
        command = RewriteRequest(
            table=node, kind=kind, user=user, metalake_id=metalake_id, options=stored, is_idle=idle, own=dict(options)
        )
        return request_view.permit(command, decision)

    operation = await ctx.write(scope, decide, rewrite_add)
    ctx.services.wake_worker()
    return operation


def is_idle(document: MetadataDocument, *, kind: str) -> bool:
    """Return whether an operation has nothing to do: one of kind `DELETES` on a table without delete files, by the
    summary of its current snapshot.
    """
    if kind != DELETES:
        return False
    current = metadata_of(document.body).current
    return current is None or current.count("total-delete-files") == 0


async def _requested_options(
    services: NodeServices, document: MetadataDocument, *, kind: str, own: Mapping[str, str]
) -> RewriteOptions:
    """Return the options of a requested operation: those of the policy that requests its kind, then its `own` ones.

    Raises BadRequest if the policy has options that Iceberg lacks.
    """
    policies = await effective_policies(services, document.node_id)
    policy = find_requesting_policy(policies, kind) if kind in POLICY_TYPES else None
    unknown = _unknown_options(policy)
    if unknown:
        names = ", ".join(sorted(REWRITE_OPTIONS))
        raise BadRequest(
            f"The table's policy of type {COMPACTION} has the rewriteOptions {', '.join(unknown)}, which Iceberg does"
            f" not have: change the policy; the options are {names}"
        )
    is_sized = kind in (COMPACT, DELETES)
    target_bytes = target_of(metadata_of(document.body)) if is_sized else TARGET_BYTES_DEFAULT
    own_policy_options = policy_options(policy, target_bytes=target_bytes)
    terms = None if policy is None else policy.terms
    return msgspec.structs.replace(own_policy_options, options={**own_policy_options.options, **own}, policy=terms)


def rewrite_add(tx: Tx, permit: Permit[RewriteRequest]) -> int:
    """Queue an operation, unless the table has an open operation of that kind. Returns the operation's id.

    Raises RunConflict if the open operation has other options than those that the request itself names.
    """
    command = permit.command
    table = tx.nodes.confirm(command.table)
    open_operation = tx.rewrites.open_of(table.id).get(command.kind)
    options = msgspec.json.encode(command.options).decode()
    if open_operation is not None:
        if not tx.rewrites.prioritize(open_operation, user=command.user, priority=REQUESTED_PRIORITY, options=options):
            _require_same_options(tx, open_operation, own=command.own)
        return open_operation
    finding = tx.maintenance.finding(table.id, kind=command.kind)
    operation = tx.maintenance.begin(
        catalog_id=table.zone,
        node_id=table.id,
        kind=command.kind,
        user=command.user,
        policy=None,
        state="waiting",
        bytes_=0 if finding is None else rewritten_bytes(finding),
    )
    if command.is_idle:
        tx.maintenance.end(operation, state="done", result=IDLE)
    else:
        tx.rewrites.add(operation, metalake_id=command.metalake_id, priority=REQUESTED_PRIORITY, options=options)
    return operation


def _require_same_options(tx: Tx, operation: int, *, own: Mapping[str, str]) -> None:
    text = tx.rewrites.options_of(operation)
    options = {} if text is None else msgspec.json.decode(text, type=RewriteOptions).options
    if any(options.get(name) != value for name, value in own.items()):
        raise RunConflict(
            f"Operation {operation} of this kind on the table has not ended, and it has other options: wait until it"
            " has ended, or cancel it"
        )
