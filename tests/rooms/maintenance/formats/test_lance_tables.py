# SPDX-License-Identifier: Apache-2.0
"""Findings for Lance tables, and the versions that may be removed."""

from __future__ import annotations

import msgspec
import pytest

from limnos.formats.lance_table_state import LanceIndexState, LanceTableState, LanceVersionState
from limnos.rooms.maintenance.formats.assessment import AssessmentRules
from limnos.rooms.maintenance.formats.lance_tables import (
    DAY_MS,
    assess_lance_table,
    explain_lance_table,
    plan_clean_up,
)

NOW_MS = 1_000 * DAY_MS
EMPTY = LanceTableState(
    rows=1_000,
    deleted_rows=0,
    fragments=1,
    mergeable=0,
    merged=0,
    mergeable_bytes=0,
    total_bytes=10_000,
    versions=(),
    tags={},
    branch_points={},
    indexes=(),
)


def versions(*days: float) -> tuple[LanceVersionState, ...]:
    """Return versions from 1 on, with these ages in days."""
    return tuple([LanceVersionState(number + 1, NOW_MS - int(day * DAY_MS)) for number, day in enumerate(days)])


def list_findings(state: LanceTableState, rules: AssessmentRules | None = None) -> dict[str, str]:
    """Return the kinds of the findings, with their reasons."""
    return {each.kind: each.reason for each in assess_lance_table(state, rules or AssessmentRules(), now_ms=NOW_MS)}


def changed(**fields: object) -> LanceTableState:
    """Return a healthy table with some figures changed."""
    return msgspec.structs.replace(EMPTY, **fields)


@pytest.mark.parametrize("mergeable, is_due", [(5, False), (6, True), (1_000, True)])
def test_many_fragments_make_compaction_due(mergeable: int, is_due: bool) -> None:
    """A compaction is due if it would remove five fragments."""
    state = changed(fragments=1_000, mergeable=mergeable, merged=1, mergeable_bytes=1024 * mergeable)

    expected = {"compact": f"{mergeable} of 1000 fragments can be merged into 1: 1.0 KiB on average"}
    assert list_findings(state) == (expected if is_due else {})


def test_deleted_rows_make_compaction_due() -> None:
    """A tenth of deleted rows makes a compaction due, if the compaction would remove any of them."""
    state = changed(rows=900, deleted_rows=100, mergeable=1, merged=1)

    assert "100 deleted rows stand beside 900 others" in list_findings(state)["compact"]
    assert list_findings(msgspec.structs.replace(state, deleted_rows=99)) == {}
    assert list_findings(msgspec.structs.replace(state, mergeable=0)) == {}


@pytest.mark.parametrize(
    "rows, missing, segments, is_due",
    [
        (1_000, 255, 1, False),
        (1_000, 256, 1, True),
        (100_000, 4_999, 1, False),
        (100_000, 5_000, 1, True),
        (10_000_000, 99_999, 1, False),
        (10_000_000, 100_000, 1, True),
        (1_000, 0, 10, False),
        (1_000, 0, 11, True),
    ],
)
def test_stale_index_is_due(rows: int, missing: int, segments: int, is_due: bool) -> None:
    """An index is stale if it lacks a twentieth of the rows (at least 256 rows of small tables, at most 100,000 of
    large ones), or if it has many segments.
    """
    state = changed(rows=rows, indexes=(LanceIndexState("v", missing, segments), LanceIndexState("w", 0, 1)))

    assert ("indexes" in list_findings(state)) is is_due


def test_old_versions_make_expiry_due() -> None:
    """An expiry is due with more than ten versions of which at least one may be removed. By default these are versions
    older than two weeks.
    """
    rules = AssessmentRules(older_than_ms=3 * DAY_MS)
    many = changed(versions=versions(*range(13, 1, -1)))

    assert list_findings(many) == {}
    assert list_findings(many, rules) == {"expire": "10 of 12 versions are past their age"}
    assert list_findings(changed(versions=versions(*range(11, 1, -1))), rules) == {}
    assert list_findings(changed(versions=versions(*range(20, 8, -1)))) == {
        "expire": "6 of 12 versions are past their age"
    }


def test_needed_versions_are_retained() -> None:
    """Kept are the newest version, tags, branch points, pins, the newest ones of the policy, young versions, and those
    of readers.
    """
    state = changed(versions=versions(30, 29, 28, 27, 26, 25, 4, 3, 0.5), tags={"a": 2}, branch_points={"dev": 3})
    rules = AssessmentRules(older_than_ms=5 * DAY_MS, retain_last=2)

    plan = plan_clean_up(state, rules, pinned={4: "a run needs it", 99: "is gone"}, now_ms=NOW_MS)

    assert plan.removed == (1, 5, 6)
    assert plan.retained == {
        2: "tag a names it",
        3: "branch dev begins with it",
        4: "a run needs it",
        7: "is younger than 5 d, the age at which versions expire (of its policy)",
        8: "is one of the newest 2 versions",
        9: "is the newest version",
    }


def test_recently_replaced_version_is_retained() -> None:
    """A version that was replaced today is kept, however old it is, because readers may have begun with it."""
    state = changed(versions=versions(30, 29, 0.9))
    rules = AssessmentRules(older_than_ms=0)

    plan = plan_clean_up(state, rules, pinned={}, now_ms=NOW_MS)

    assert (plan.removed, plan.retained[2]) == ((1,), "was current within the last day: readers may still use it")
    assert plan_clean_up(changed(), rules, pinned={}, now_ms=NOW_MS).removed == ()


def test_explanation_lists_versions_with_reasons() -> None:
    """The explanation lists the newest versions first, each with the reason why it is kept."""
    state = changed(versions=versions(30, 20, 0.1), fragments=7)
    explanation = explain_lance_table(state, plan_clean_up(state, AssessmentRules(), pinned={}, now_ms=NOW_MS))

    assert (explanation.snapshots, explanation.removable, explanation.data_files, explanation.total_bytes) == (
        3,
        1,
        7,
        10_000,
    )
    assert [(each.snapshot_id, each.kept_because is None) for each in explanation.retentions] == [
        (3, False),
        (2, False),
        (1, True),
    ]


@pytest.mark.parametrize(
    "trained, missing, rows, expected",
    [
        (1_000, 0, 1_999, None),
        (1_000, 0, 2_000, "trained with 1000 of 2000 rows: it is trained again"),
        (1_000, 1_000, 2_000, "it is trained again"),
        (1_500, 500, 2_000, "misses 500 of 2000 rows"),
        (0, 0, 9_000, None),
    ],
)
def test_outgrown_vector_index_is_retrained(trained: int, missing: int, rows: int, expected: str | None) -> None:
    """A vector index is retrained when the table has twice the rows of the index's largest segment. A scalar index
    never is.
    """
    state = LanceTableState(
        rows=rows,
        deleted_rows=0,
        fragments=1,
        mergeable=0,
        merged=0,
        mergeable_bytes=0,
        total_bytes=0,
        versions=(),
        tags={},
        branch_points={},
        indexes=(LanceIndexState("by_vector", missing, 2, trained),),
    )
    reasons = [each.reason for each in assess_lance_table(state, AssessmentRules(), now_ms=0) if each.kind == "indexes"]

    assert (len(reasons), expected or "") == (int(expected is not None), expected or "")
    assert expected is None or expected in reasons[0]
