# SPDX-License-Identifier: Apache-2.0
"""Retried commits: detects that a client retries a commit whose response was lost.

Must not know files or stores. Snapshot ids are random, so an equal snapshot with the same id comes from the same
commit. If the server refused the retry, the client would delete files that the table needs, or append the same rows
again.
"""

from __future__ import annotations

from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.formats.iceberg import updates as iceberg_updates
from limnos.formats.iceberg.client_times import AHEAD_MS
from limnos.formats.iceberg.draft import HERE
from limnos.formats.iceberg.json_types import Json, integer_at
from limnos.formats.iceberg.metadata import references, rows
from limnos.formats.iceberg.update_snapshots import stored_snapshot
from limnos.model.errors import BadRequest, CommitConflict

_ADD, _SET = "add-snapshot", "set-snapshot-ref"


def build(
    base: Json,
    requirements: list[object],
    updates: list[object],
    *,
    now_ms: int,
    previous_location: str | None,
    ahead_ms: int = AHEAD_MS,
) -> Json:
    """Check the requirements of a commit, apply its updates, and return the new metadata.

    Returns `base` itself if nothing changes or if the commit was applied already.

    Raises as `requirements.check` and `updates.apply` do.
    """
    try:
        iceberg_requirements.check(base, requirements)
        return iceberg_updates.apply(
            base, updates, now_ms=now_ms, previous_location=previous_location, ahead_ms=ahead_ms
        )
    except (BadRequest, CommitConflict):
        if is_applied(base, requirements, updates):
            return base
        raise


def check_unless_applied(base: Json, requirements: list[object], updates: list[object]) -> None:
    """Check the requirements of a commit, unless the commit was already applied.

    Raises as `requirements.check` does.
    """
    try:
        iceberg_requirements.check(base, requirements)
    except CommitConflict:
        if not is_applied(base, requirements, updates):
            raise


def is_applied(base: Json, requirements: list[object], updates: list[object]) -> bool:
    """Return whether a refused commit was already applied: it adds snapshots, and all of its effects exist.

    True only if its updates do nothing but add snapshots and set references, each snapshot exists with equal content,
    each reference points to its snapshot or to a descendant, and all requirements are met except those about
    references.
    """
    snapshots_by_id = {one.get("snapshot-id"): one for one in rows(base, "snapshots")}
    added_ids: set[object] = set()
    version = integer_at(base, "format-version", where=HERE)
    for update in updates:
        if not isinstance(update, dict):
            return False
        if update.get("action") == _ADD:
            sent_snapshot = update.get("snapshot")
            number = sent_snapshot.get("snapshot-id") if isinstance(sent_snapshot, dict) else None
            if not isinstance(sent_snapshot, dict) or not isinstance(number, int):
                return False
            if snapshots_by_id.get(number) != stored_snapshot(sent_snapshot, version):
                return False
            added_ids.add(number)
        elif update.get("action") != _SET or not _is_at_snapshot(base, snapshots_by_id, update):
            return False
    return bool(added_ids) and _are_requirements_met(
        base, [each for each in requirements if not _is_of_reference(each)]
    )


def _is_at_snapshot(base: Json, known: dict[object, Json], update: Json) -> bool:
    """Return whether the reference of an update points to the update's snapshot or to a descendant of it."""
    ref = references(base).get(str(update.get("ref-name")))
    target = update.get("snapshot-id")
    if not isinstance(ref, dict) or ref.get("type", "branch") != update.get("type"):
        return False
    at, steps = ref.get("snapshot-id"), len(known)
    while at != target and at in known and steps:
        at, steps = known[at].get("parent-snapshot-id"), steps - 1
    return at == target and at in known


def _is_of_reference(requirement: object) -> bool:
    return isinstance(requirement, dict) and requirement.get("type") == "assert-ref-snapshot-id"


def _are_requirements_met(base: Json, requirements: list[object]) -> bool:
    try:
        iceberg_requirements.check(base, requirements)
    except (BadRequest, CommitConflict):
        return False
    return True
