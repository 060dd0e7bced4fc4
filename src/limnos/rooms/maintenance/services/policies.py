# SPDX-License-Identifier: Apache-2.0
"""Maintenance policies: the policy of each type that applies to a table, and the resulting thresholds.

Must not know any wire format. Of a table and its ancestors, the nearest object that has a policy of a type decides: the
table, its namespaces from the inside out, then the catalog. Of two policies of one type on the same object the one
whose name sorts first applies. A disabled policy turns the type off there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from limnos.formats.gravitino.policies import (
    COMPACTION,
    MAINTENANCE_TYPES,
    ORPHAN_FILE_REMOVAL,
    ROW_RETENTION,
    SNAPSHOT_EXPIRATION,
    TABLE_MAINTENANCE,
    CompactionContent,
    RowRetentionContent,
    SnapshotExpirationContent,
    TableMaintenanceContent,
    content_of,
)
from limnos.model.entities import Node
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.records import PolicyRecord
from limnos.rooms.maintenance.formats.assessment import COMPACT, DELETES, EXPIRE, MANIFESTS, AssessmentRules
from limnos.rooms.maintenance.formats.lance_tables import INDEXES
from limnos.rooms.maintenance.formats.row_retention import RETENTION, RetentionRule
from limnos.store.activity.maintenance import PolicyAttachment, attached_policies_read, policy_objects_read
from limnos.store.objects.node_reads import live_nodes_read
from limnos.store.sql import Load

DAY_MS = 86_400_000


class EffectivePolicy(NamedTuple):
    """The policy of one type that applies to a table, and where it is attached."""

    id: int
    name: str
    policy_type: str
    is_enabled: bool
    content: str
    object_id: int
    """The object to which it is attached."""
    others: tuple[str, ...] = ()
    """Names of policies of the same type on the same object, which do not apply."""
    distance: int = 0
    """The number of levels between the table and the policy's object: 0 for the table itself."""
    writer_id: int = 0
    """The user who wrote its content or enabled it; 0 if unknown."""
    attached_by: int = 0
    """The user who attached it; 0 if unknown."""

    @property
    def terms(self) -> PolicyTerms:
        """The policy in the state in which an operation is planned by it."""
        digest = hashlib.sha256(f"{self.is_enabled} {self.content}".encode()).hexdigest()
        return PolicyTerms(self.id, self.writer_id, self.attached_by, digest)


class PolicyTerms(msgspec.Struct, frozen=True):
    """The policy of an operation as it was planned: the policy, its author, who attached it, and the SHA-256 of its
    content and state.
    """

    policy_id: int
    writer_id: int
    attached_by: int
    digest: str

    def has_authors_of(self, policy: EffectivePolicy | None) -> bool:
        """Return whether the policy that applies now is the planned one, by the same author and attached by the same
        user.
        """
        if policy is None:
            return False
        return (policy.id, policy.writer_id, policy.attached_by) == (self.policy_id, self.writer_id, self.attached_by)


def require_terms(planned: PolicyTerms | None, policy: EffectivePolicy | None) -> None:
    """Check that the policy that applies now is the one for which an operation was planned or requested, unchanged.

    Raises PermissionDenied otherwise: an operation acts for users who knew the planned one.
    """
    if planned != (None if policy is None else policy.terms):
        raise PermissionDenied("The policy of this operation has changed since it was planned or requested")


class PolicyIndex:
    """All attached maintenance policies of the store, by object."""

    def __init__(self, policies: Iterable[Node], attachments: Iterable[PolicyAttachment]) -> None:
        policies_by_id = {each.id: each for each in policies}
        self._by_object: dict[int, list[tuple[Node, int]]] = {}
        for policy_id, object_id, attached_by in attachments:
            if policy_id in policies_by_id:
                self._by_object.setdefault(object_id, []).append((policies_by_id[policy_id], attached_by))

    def __bool__(self) -> bool:
        return bool(self._by_object)

    @property
    def digest(self) -> str:
        """A digest of what is attached where, which changes with each policy that may apply to a table; empty without
        policies.
        """
        rows = sorted(
            (object_id, node.id, _record(node).enabled, _record(node).content)
            for object_id, attached in self._by_object.items()
            for node, _ in attached
        )
        return hashlib.sha256(str(rows).encode()).hexdigest() if rows else ""

    def effective(self, chain: Sequence[int]) -> Mapping[str, EffectivePolicy]:
        """Return the policy of each type that applies to the first object of `chain`: the ids of a table and its
        ancestors, the nearest first.
        """
        policies: dict[str, EffectivePolicy] = {}
        for distance, object_id in enumerate(chain):
            here: dict[str, list[tuple[Node, int]]] = {}
            for node, attached_by in self._by_object.get(object_id, ()):
                here.setdefault(_record(node).policy_type, []).append((node, attached_by))
            for policy_type, attached in here.items():
                (first, attached_by), *others = sorted(attached, key=lambda each: each[0].name)
                record = _record(first)
                policy = EffectivePolicy(
                    id=first.id,
                    name=first.name,
                    policy_type=policy_type,
                    is_enabled=record.enabled,
                    content=record.content,
                    object_id=object_id,
                    others=tuple([each.name for each, _ in others]),
                    distance=distance,
                    writer_id=record.writer_id,
                    attached_by=attached_by,
                )
                policies.setdefault(policy_type, policy)
        return policies


COMPACT_TYPES: Final = (COMPACTION, TABLE_MAINTENANCE)
POLICY_TYPES: Final = {
    COMPACT: COMPACT_TYPES,
    DELETES: COMPACT_TYPES,
    MANIFESTS: (TABLE_MAINTENANCE,),
    INDEXES: (TABLE_MAINTENANCE,),
    RETENTION: (ROW_RETENTION,),
    EXPIRE: (SNAPSHOT_EXPIRATION,),
    "orphans": (ORPHAN_FILE_REMOVAL,),
}
"""The types of policies that request a kind of operation, the specific ones first. No policy requests statistics."""


def deciding_policy(policies: Mapping[str, EffectivePolicy], kind: str) -> EffectivePolicy | None:
    """Return the policy that decides about a kind of operation: the nearest one, and on the same object the one of the
    specific type.
    """
    candidates = [policies[policy_type] for policy_type in POLICY_TYPES[kind] if policy_type in policies]
    return min(
        [each for each in candidates if _is_decided(each, kind)], key=lambda policy: policy.distance, default=None
    )


def _is_decided(policy: EffectivePolicy, kind: str) -> bool:
    """Return whether a policy enables or disables a kind of operation."""
    return policy.policy_type != TABLE_MAINTENANCE or kind_setting(policy, kind) is not None


def kind_setting(policy: EffectivePolicy, kind: str) -> bool | None:
    """Return whether a policy of type `TABLE_MAINTENANCE` enables a kind of operation; None if unspecified."""
    content = content_of(policy.content, TableMaintenanceContent)
    return {MANIFESTS: content.manifests, INDEXES: content.indexes}.get(kind, content.compact)


def _record(node: Node) -> PolicyRecord:
    return cast("PolicyRecord", node.record)


def policies_load() -> Load[PolicyIndex]:
    """Read the maintenance policies that are attached to any object, with their attachments."""
    ids = yield from attached_policies_read()
    if not ids:
        return PolicyIndex((), ())
    nodes = yield from live_nodes_read(ids)
    policy_nodes = [
        node for node in nodes if node.kind is Kind.POLICY and _record(node).policy_type in MAINTENANCE_TYPES
    ]
    if not policy_nodes:
        return PolicyIndex((), ())
    attachments = yield from policy_objects_read([node.id for node in policy_nodes])
    return PolicyIndex(policy_nodes, attachments)


def assessment_rules(policies: Mapping[str, EffectivePolicy]) -> AssessmentRules:
    """Return the thresholds of a table's effective policies; the defaults if none is enabled."""
    rules = AssessmentRules()
    compaction, expiration = policies.get(COMPACTION), policies.get(SNAPSHOT_EXPIRATION)
    maintenance_policy = policies.get(TABLE_MAINTENANCE)
    if maintenance_policy is not None and maintenance_policy.is_enabled:
        rules = AssessmentRules(
            delete_files_min=content_of(maintenance_policy.content, TableMaintenanceContent).min_delete_file_number
        )
    if compaction is not None and compaction.is_enabled:
        content = content_of(compaction.content, CompactionContent)
        rules = AssessmentRules(
            data_file_mse_min=content.min_data_file_mse, delete_files_min=content.min_delete_file_number
        )
    if expiration is not None and expiration.is_enabled:
        expires = content_of(expiration.content, SnapshotExpirationContent)
        days = expires.older_than_days
        rules = AssessmentRules(
            older_than_ms=None if days is None else days * DAY_MS,
            retain_last=expires.retain_last,
            snapshots_min=AssessmentRules().snapshots_min
            if expires.min_snapshot_count is None
            else expires.min_snapshot_count,
            delete_files_min=rules.delete_files_min,
            data_file_mse_min=rules.data_file_mse_min,
        )
    return msgspec.structs.replace(rules, retention=retention_rule(policies))


def retention_rule(policies: Mapping[str, EffectivePolicy]) -> RetentionRule | None:
    """Return the rule of the effective row retention policy; None unless one is enabled."""
    policy = policies.get(ROW_RETENTION)
    if policy is None or not policy.is_enabled:
        return None
    content = content_of(policy.content, RowRetentionContent)
    return RetentionRule(content.column, content.older_than_days)
