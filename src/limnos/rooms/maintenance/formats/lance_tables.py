# SPDX-License-Identifier: Apache-2.0
"""Maintenance of Lance tables: findings from a table's state, and the versions that may be removed.

Pure. Must not know Lance's library: a worker process reads the state. Findings have the same kinds as
those of Iceberg tables, and one additional kind, `indexes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from limnos.formats.lance_table_state import LanceIndexState, LanceTableState
from limnos.model.number_texts import age_text
from limnos.rooms.maintenance.formats.assessment import (
    COMPACT,
    EXCESS_FILES_MIN,
    EXPIRE,
    AssessmentFinding,
    AssessmentRules,
    size_text,
)
from limnos.rooms.maintenance.formats.explanation import SHOWN_MAX, SnapshotRetention, TableExplanation

INDEXES: Final = "indexes"
DAY_MS: Final = 86_400_000
AGE_MS_DEFAULT: Final = 14 * DAY_MS
"""The maximum age of versions by default of Lance's library, in milliseconds: two weeks."""
READER_MS: Final = DAY_MS
"""The minimum retention time of a version after it was last current, in milliseconds: the server cannot know the
readers of Lance tables.
"""
DELETED_SHARE: Final = 10
"""A compaction is recommended once one row in `DELETED_SHARE` is deleted, which is Lance's own default."""
MISSING_SHARE: Final = 20
"""A refresh of an index is recommended once it lacks one row in `MISSING_SHARE`."""
MISSING_ROWS_MIN: Final = 256
MISSING_ROWS_MAX: Final = 100_000
"""An index that lacks this number of rows is refreshed, regardless of the size of the table."""
SEGMENTS_MAX: Final = 10


class CleanUpPlan(NamedTuple):
    """Versions that may be removed, and for each retained version the reason."""

    removed: tuple[int, ...]
    retained: Mapping[int, str]


def plan_clean_up(
    state: LanceTableState, rules: AssessmentRules, *, pinned: Mapping[int, str], now_ms: int
) -> CleanUpPlan:
    """Decide which versions of a table may be removed.

    Args:
        state: The state of the table.
        rules: The maximum age, and the minimum count of retained versions, by the effective policy.
        pinned: Versions that runs need, with the reason.
        now_ms: The store's time.
    """
    sorted_versions = sorted(state.versions, key=lambda each: each.version)
    age_ms = AGE_MS_DEFAULT if rules.older_than_ms is None else rules.older_than_ms
    source = "Lance's default" if rules.older_than_ms is None else "of its policy"
    least = max(1, rules.retain_last or 1)
    reasons: dict[int, str] = {}
    if sorted_versions:
        reasons[sorted_versions[-1].version] = "is the newest version"
    for name, version in state.tags.items():
        reasons.setdefault(version, f"tag {name} names it")
    for name, version in state.branch_points.items():
        reasons.setdefault(version, f"branch {name} begins with it")
    for version, reason in pinned.items():
        reasons.setdefault(version, reason)
    for each in sorted_versions[-least:]:
        reasons.setdefault(each.version, f"is one of the newest {least} versions")
    for each in sorted_versions:
        if each.at_ms >= now_ms - age_ms:
            reasons.setdefault(
                each.version, f"is younger than {age_text(age_ms)}, the age at which versions expire ({source})"
            )
    for each, after in pairwise(sorted_versions):
        if after.at_ms >= now_ms - READER_MS:
            reasons.setdefault(each.version, "was current within the last day: readers may still use it")
    removed_versions = tuple([each.version for each in sorted_versions if each.version not in reasons])
    version_numbers = {each.version for each in sorted_versions}
    return CleanUpPlan(removed_versions, {key: reason for key, reason in reasons.items() if key in version_numbers})


def assess_lance_table(state: LanceTableState, rules: AssessmentRules, *, now_ms: int) -> list[AssessmentFinding]:
    """Return the maintenance that a table needs."""
    return [*_compaction(state), *_indexes(state), *_expiry(state, rules, now_ms=now_ms)]


def _compaction(state: LanceTableState) -> Iterable[AssessmentFinding]:
    excess = state.mergeable - state.merged
    has_many_deleted = bool(state.mergeable) and state.deleted_rows * DELETED_SHARE >= state.rows + state.deleted_rows
    if excess < EXCESS_FILES_MIN and not has_many_deleted:
        return
    mean = size_text(state.mergeable_bytes // max(1, state.mergeable))
    reasons = [f"{state.mergeable} of {state.fragments} fragments can be merged into {state.merged}: {mean} on average"]
    if has_many_deleted:
        reasons.append(f"{state.deleted_rows} deleted rows stand beside {state.rows} others")
    figures = {
        "fragments": state.fragments,
        "small_files": state.mergeable,
        "small_bytes": state.mergeable_bytes,
        "deleted_rows": state.deleted_rows,
    }
    yield AssessmentFinding(COMPACT, max(1, excess), "; ".join(reasons), figures)


def _is_stale(index: LanceIndexState, rows: int) -> bool:
    least = min(MISSING_ROWS_MAX, max(MISSING_ROWS_MIN, -(-rows // MISSING_SHARE)))
    return index.missing_rows >= least or index.segments > SEGMENTS_MAX or index.is_outgrown(rows)


def _indexes(state: LanceTableState) -> Iterable[AssessmentFinding]:
    stale = [each for each in state.indexes if _is_stale(each, state.rows)]
    if not stale:
        return
    reason = "; ".join(_index_reason(each, rows=state.rows) for each in stale)
    missing = max(each.missing_rows for each in stale)
    score = max(1, 100 * missing // max(1, state.rows), max(each.segments for each in stale) - 1)
    figures = {"indexes": len(stale), "missing_rows": missing, "rows": state.rows}
    yield AssessmentFinding(INDEXES, score, reason[:1000], figures)


def _index_reason(index: LanceIndexState, *, rows: int) -> str:
    if index.is_outgrown(rows):
        return f"index {index.name} was trained with {index.trained_rows} of {rows} rows: it is trained again"
    if index.missing_rows:
        return f"index {index.name} misses {index.missing_rows} of {rows} rows, which each search reads one by one"
    return f"index {index.name} has {index.segments} segments, and each search reads them all"


def _expiry(state: LanceTableState, rules: AssessmentRules, *, now_ms: int) -> Iterable[AssessmentFinding]:
    count = len(state.versions)
    if count <= rules.snapshots_min:
        return
    removed_count = len(plan_clean_up(state, rules, pinned={}, now_ms=now_ms).removed)
    if removed_count:
        reason = f"{removed_count} of {count} versions are past their age"
        yield AssessmentFinding(EXPIRE, removed_count, reason, {"snapshots": count, "removable": removed_count})


def explain_lance_table(state: LanceTableState, plan: CleanUpPlan) -> TableExplanation:
    """Explain a table's maintenance state: its sizes and counts, and for each of the newest versions whether it may be
    removed.
    """
    newest = sorted(state.versions, key=lambda each: -each.version)[:SHOWN_MAX]
    retentions = tuple(
        [SnapshotRetention(each.version, each.at_ms, plan.retained.get(each.version)) for each in newest]
    )
    return TableExplanation(
        snapshots=len(state.versions),
        removable=len(plan.removed),
        refs_removable=(),
        retentions=retentions,
        writer="lance",
        data_files=state.fragments,
        delete_files=None,
        total_bytes=state.total_bytes,
        blocked=None,
    )
