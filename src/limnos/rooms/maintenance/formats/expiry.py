# SPDX-License-Identifier: Apache-2.0
"""Expiry of snapshots: a pure function that selects the removable snapshots and references of a table, with all guards.

Must not know the store. Source: Iceberg specification, "Snapshot Retention Policy". If several rules apply to a
snapshot, the longest retention time counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from limnos.model.number_texts import age_text
from limnos.rooms.maintenance.formats.table_metadata import BRANCH, MAIN, SnapshotRef, TableMetadata

MAX_SNAPSHOT_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS: Final = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
GC_ENABLED: Final = "gc.enabled"
AGE_MS_DEFAULT: Final = 5 * 86_400_000
"""The maximum snapshot age by Iceberg's own default, in milliseconds: five days."""
CHECKPOINT_PREFIXES: Final = (
    "limnos.",
    "sqlpp.",
    "spark.sql.streaming.",
    "flink.",
    "kafka.connect.",
    "iceberg.catalog.",
)
"""Prefixes of summary keys for checkpoints: the position from which an incremental or streaming writer continues."""


class ExpiryRules(NamedTuple):
    """Retention rules: the age after which snapshots expire, and the count that is always retained.

    None: the table's properties or Iceberg's defaults.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    recent_ms: int = 3_600_000
    """The time in milliseconds for which a snapshot is retained after it was last current, since a reader may have
    begun with it.
    """
    checkpoint_ms: int = 30 * 86_400_000
    """The time in milliseconds for which a checkpoint of the table's own writers is retained."""


class ExpiryGuards(NamedTuple):
    """Snapshots that must not expire at any age, each with the reason to report."""

    pinned: Mapping[int, str] = {}
    """Snapshots that runs and scan plans need."""
    checkpoints: Mapping[int, str] = {}
    """The last snapshots that incremental readers of the table have read."""


class SnapshotAge(NamedTuple):
    """The age after which snapshots expire, in milliseconds, and a description of its source for users."""

    ms: int
    source: str

    def __str__(self) -> str:
        """Return the age with its source, as `7 d (of its policy)`."""
        return f"{age_text(self.ms)} ({self.source})"


class ExpiryPlan(NamedTuple):
    """The plan of an expiry: snapshots and references to remove, and for each retained snapshot the reason."""

    removed: tuple[int, ...]
    refs: tuple[str, ...]
    retained: Mapping[int, str]
    blocked: str | None = None
    """The reason why nothing may be removed at all; None if something may."""


def plan_expiry(metadata: TableMetadata, rules: ExpiryRules, *, guards: ExpiryGuards, now_ms: int) -> ExpiryPlan:
    """Decide which snapshots of a table may be removed.

    Args:
        metadata: The table's metadata on which the commit is built.
        rules: The rules of the policy or the setting.
        guards: The snapshots that runs, scan plans and incremental readers need.
        now_ms: The store's time.

    Returns:
        The plan, which removes only snapshots that no reference, guard or retention rule protects; none if the table
        property `gc.enabled` is false.
    """
    snapshots = metadata.snapshots or []
    if metadata.is_off(GC_ENABLED):
        return ExpiryPlan(
            (), (), {each.snapshot_id: "gc.enabled is false" for each in snapshots}, "gc.enabled is false"
        )
    reasons: dict[int, str] = {}
    expired_refs = _old_refs(metadata, guards=guards, now_ms=now_ms)
    for name, ref in metadata.references.items():
        if name not in expired_refs:
            _keep_ref(reasons, metadata, rules=rules, name=name, ref=ref, now_ms=now_ms)
    for snapshot_id, reason in (*guards.pinned.items(), *guards.checkpoints.items()):
        reasons.setdefault(snapshot_id, reason)
    for snapshot_id, reason in _recent(metadata, since_ms=now_ms - rules.recent_ms):
        reasons.setdefault(snapshot_id, reason)
    for snapshot_id in guards.checkpoints:
        for between_id in _path(metadata, snapshot_id):
            reasons.setdefault(
                between_id, f"is between snapshot {snapshot_id}, which an incremental reader has read, and main"
            )
    for snapshot_id, key in _own_checkpoints(metadata, since_ms=now_ms - rules.checkpoint_ms):
        reasons.setdefault(snapshot_id, f"has checkpoint {key} of a writer, or is between it and the head")
    age = _age_of(metadata, rules, ref=None)
    for each in snapshots:
        if each.timestamp_ms >= now_ms - age.ms:
            reasons.setdefault(each.snapshot_id, f"is younger than {age}, the age at which snapshots expire")
    removed_ids = tuple([each.snapshot_id for each in snapshots if each.snapshot_id not in reasons])
    snapshot_ids = {each.snapshot_id for each in snapshots}
    return ExpiryPlan(
        removed_ids, expired_refs, {key: reason for key, reason in reasons.items() if key in snapshot_ids}
    )


def expiry_updates(plan: ExpiryPlan) -> list[dict[str, object]]:
    """Return the updates of the commit that executes a plan."""
    refs: list[dict[str, object]] = [{"action": "remove-snapshot-ref", "ref-name": name} for name in plan.refs]
    ids = list(plan.removed)
    return [*refs, {"action": "remove-snapshots", "snapshot-ids": ids}] if ids else refs


def _age_of(metadata: TableMetadata, rules: ExpiryRules, *, ref: SnapshotRef | None) -> SnapshotAge:
    """Return the maximum snapshot age: the longest of rule, table property and reference, else Iceberg's default."""
    candidates = (
        ("of its policy", rules.older_than_ms),
        (f"table property {MAX_SNAPSHOT_AGE}", metadata.number(MAX_SNAPSHOT_AGE)),
        ("max-snapshot-age-ms of the branch", None if ref is None else ref.max_snapshot_age_ms),
    )
    ages = [SnapshotAge(age_ms, source) for source, age_ms in candidates if age_ms is not None and age_ms >= 0]
    return max(ages, key=lambda age: age.ms, default=SnapshotAge(AGE_MS_DEFAULT, "Iceberg's default"))


def _least(metadata: TableMetadata, rules: ExpiryRules, *, ref: SnapshotRef) -> int:
    """Return the count of snapshots of a branch that are retained regardless of their age, at least 1 (the head)."""
    candidates = (rules.retain_last, metadata.number(MIN_SNAPSHOTS), ref.min_snapshots_to_keep)
    return max([1, *[each for each in candidates if each is not None]])


def _old_refs(metadata: TableMetadata, *, guards: ExpiryGuards, now_ms: int) -> tuple[str, ...]:
    """Return the branches and tags that have exceeded their maximum age, except `main`.

    A reference to a snapshot that the guards protect is retained.
    """
    times = {each.snapshot_id: each.timestamp_ms for each in metadata.snapshots or ()}
    general, old_refs = metadata.number(MAX_REF_AGE), []
    for name, ref in metadata.references.items():
        ages_ms = [each for each in (ref.max_ref_age_ms, general) if each is not None]
        is_needed = ref.snapshot_id in guards.pinned or ref.snapshot_id in guards.checkpoints
        if name == MAIN or not ages_ms or is_needed or ref.snapshot_id not in times:
            continue
        if now_ms - times[ref.snapshot_id] > max(ages_ms):
            old_refs.append(name)
    return tuple(old_refs)


def _keep_ref(
    reasons: dict[int, str], metadata: TableMetadata, *, rules: ExpiryRules, name: str, ref: SnapshotRef, now_ms: int
) -> None:
    """Add the snapshots that a reference retains to `reasons`.

    A reference of an unknown type retains all ancestors of its snapshot.
    """
    if ref.type == "tag":
        reasons.setdefault(ref.snapshot_id, f"tag {name} refers to it")
        return
    least, age = _least(metadata, rules, ref=ref), _age_of(metadata, rules, ref=ref)
    for number, each in enumerate(metadata.ancestors(ref.snapshot_id)):
        if number == 0:
            reasons.setdefault(each.snapshot_id, f"is the head of branch {name}")
        elif number < least:
            reasons.setdefault(each.snapshot_id, f"is one of the newest {least} of branch {name}")
        elif each.timestamp_ms >= now_ms - age.ms or ref.type != BRANCH:
            reasons.setdefault(
                each.snapshot_id, f"is younger than {age}, the age at which branch {name} expires its snapshots"
            )


def _recent(metadata: TableMetadata, *, since_ms: int) -> Iterable[tuple[int, str]]:
    """Yield snapshots that were created, or ceased to be current, at or after `since_ms`, each with the reason to
    retain it.

    A snapshot is current until the next entry of the log.
    """
    log = metadata.snapshot_log or []
    for entry, after in pairwise(log):
        if after.timestamp_ms >= since_ms:
            yield entry.snapshot_id, "was current recently: readers may still use it"
    for each in metadata.snapshots or ():
        if each.timestamp_ms >= since_ms:
            yield each.snapshot_id, "was written recently: its writer or a reader may still use it"


def _path(metadata: TableMetadata, snapshot_id: int) -> list[int]:
    """Return the ids of the snapshots from the head of `main` back to the given snapshot; empty if one of them no
    longer exists.

    An incremental reader follows this path, and reads the whole table if a snapshot is missing.
    """
    main = metadata.references.get(MAIN)
    walked: list[int] = []
    for each in () if main is None else metadata.ancestors(main.snapshot_id):
        walked.append(each.snapshot_id)
        if each.snapshot_id == snapshot_id:
            return walked
    return []


def _own_checkpoints(metadata: TableMetadata, *, since_ms: int) -> Iterable[tuple[int, str]]:
    """Yield pairs of a snapshot id and the checkpoint key for which that snapshot must be retained.

    For each reference and key, these are the newest snapshot with the key in its summary, and the snapshots from it to
    the head. Writers find their checkpoint by walking back from the head, so no snapshot in between may be missing.
    """
    for ref in metadata.references.values():
        seen_keys: set[str] = set()
        walked: list[int] = []
        for each in metadata.ancestors(ref.snapshot_id):
            if each.timestamp_ms < since_ms:
                break
            walked.append(each.snapshot_id)
            for key in _checkpoint_keys(each.summary or {}, seen_keys):
                seen_keys.add(key)
                yield from [(snapshot_id, key) for snapshot_id in walked]
                walked = []


def _checkpoint_keys(summary: Mapping[str, str], seen: set[str]) -> Sequence[str]:
    return [key for key in summary if key.startswith(CHECKPOINT_PREFIXES) and key not in seen]
