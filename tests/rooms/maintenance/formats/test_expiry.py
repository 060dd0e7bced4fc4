# SPDX-License-Identifier: Apache-2.0
"""Expiry planning: every rule counts, and a snapshot is kept as long as the longest rule says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limnos.rooms.maintenance.formats.expiry import ExpiryGuards, ExpiryPlan, ExpiryRules, expiry_updates, plan_expiry
from limnos.rooms.maintenance.formats.table_metadata import metadata_of
from tests.rooms.maintenance.formats.tables import DAY_MS, NOW_MS, body, chain, snapshot, table

pytestmark = pytest.mark.slow

NONE = ExpiryGuards()
TODAY = ExpiryRules(older_than_ms=0, recent_ms=0)
"""Rules by which every snapshot expires that no other rule keeps."""


def plan(
    document: dict[str, Any], rules: ExpiryRules = TODAY, guards: ExpiryGuards = NONE, *, now_ms: int = NOW_MS
) -> ExpiryPlan:
    """Plan the expiry of a document."""
    return plan_expiry(metadata_of(body(document)), rules, guards=guards, now_ms=now_ms)


def list_expired_numbers(
    document: dict[str, Any], rules: ExpiryRules = TODAY, guards: ExpiryGuards = NONE
) -> list[int]:
    """Return the numbers of the snapshots that the plan removes."""
    return [each // 100 for each in plan(document, rules, guards).removed]


def test_default_retention_is_five_days_and_head() -> None:
    """Without rules, snapshots of the last five days and the head are kept."""
    assert list_expired_numbers(table(chain(10, first_age_days=9.5)), ExpiryRules(recent_ms=0)) == [1, 2, 3, 4, 5]
    assert list_expired_numbers(table(chain(10, first_age_days=90)), ExpiryRules(recent_ms=0)) == list(range(1, 10))


def test_the_longest_rule_wins() -> None:
    """A policy, the table's properties and a branch can each keep more snapshots than the others, and never fewer."""
    ten = chain(10, first_age_days=9.5)
    assert list_expired_numbers(table(ten), ExpiryRules(older_than_ms=8 * DAY_MS, recent_ms=0)) == [1, 2]
    assert list_expired_numbers(table(ten), ExpiryRules(0, retain_last=4, recent_ms=0)) == [1, 2, 3, 4, 5, 6]
    by_table = {"history.expire.max-snapshot-age-ms": str(9 * DAY_MS)}
    assert list_expired_numbers(table(ten, properties=by_table)) == [1]
    least = {"history.expire.min-snapshots-to-keep": "8"}
    assert list_expired_numbers(table(ten, properties=least)) == [1, 2]
    main = {"main": {"snapshot-id": 1000, "type": "branch", "min-snapshots-to-keep": 9}}
    assert list_expired_numbers(table(ten, refs=main)) == [1]
    aged = {"main": {"snapshot-id": 1000, "type": "branch", "max-snapshot-age-ms": 8 * DAY_MS}}
    assert list_expired_numbers(table(ten, refs=aged)) == [1, 2]


def test_retention_reason_names_age_and_source() -> None:
    """The reason for keeping a snapshot has the longest age and the rule, property or branch that states it."""
    by_table = {"history.expire.max-snapshot-age-ms": str(9 * DAY_MS)}
    aged = {"main": {"snapshot-id": 200, "type": "branch", "max-snapshot-age-ms": 10 * DAY_MS}}
    cases = [
        ({}, ExpiryRules(), "5 d (Iceberg's default)"),
        ({}, ExpiryRules(older_than_ms=8 * DAY_MS), "8 d (of its policy)"),
        ({"properties": by_table}, ExpiryRules(older_than_ms=8 * DAY_MS), "9 d (table property history"),
        ({"refs": aged}, ExpiryRules(older_than_ms=8 * DAY_MS), "10 d (max-snapshot-age-ms of the branch)"),
    ]
    for changes, rules, text in cases:
        retained = plan(table(chain(2, first_age_days=1.5), **changes), rules._replace(recent_ms=0)).retained
        assert text in retained[100], retained


def test_branch_heads_and_tags_are_retained() -> None:
    """The heads of branches and the snapshots of tags are kept. A branch keeps its ancestors by its own rules."""
    refs = {
        "b": {"snapshot-id": 500, "type": "branch", "min-snapshots-to-keep": 2},
        "t": {"snapshot-id": 200, "type": "tag"},
    }
    assert list_expired_numbers(table(chain(10), refs=refs)) == [1, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("refs", [{}, {"t": {"snapshot-id": 200, "type": "tag"}}, None])
def test_main_is_retained_without_its_reference(refs: dict[str, Any] | None) -> None:
    """In metadata whose references leave out `main`, the current snapshot and its retention count as those of
    `main`.
    """
    document = table(chain(10, first_age_days=9.5), properties={"history.expire.min-snapshots-to-keep": "4"})
    document["refs"] = refs

    assert list_expired_numbers(document) == [each for each in range(1, 7) if not refs or each != 2]


def test_expired_references_are_removed() -> None:
    """A reference past its maximal age is removed with its snapshots, except `main` and references to pinned
    snapshots.
    """
    refs = {
        "old": {"snapshot-id": 100, "type": "tag", "max-ref-age-ms": DAY_MS},
        "pinned": {"snapshot-id": 200, "type": "branch", "max-ref-age-ms": DAY_MS},
        "young": {"snapshot-id": 300, "type": "branch", "max-ref-age-ms": 90 * DAY_MS},
        "main": {"snapshot-id": 400, "type": "branch", "max-ref-age-ms": 1},
    }
    expiry_plan = plan(table(chain(4), refs=refs), guards=ExpiryGuards({200: "pinned"}))

    assert (expiry_plan.refs, expiry_plan.removed) == (("old",), (100,))
    assert expiry_updates(expiry_plan) == [
        {"action": "remove-snapshot-ref", "ref-name": "old"},
        {"action": "remove-snapshots", "snapshot-ids": [100]},
    ]


def test_pins_and_reader_checkpoints_are_retained() -> None:
    """Pinned snapshots, and those that incremental readers have read last, are kept, and the plan has the reason."""
    expiry_plan = plan(table(chain(5)), guards=ExpiryGuards({100: "run r"}, {300: "reader 7"}))

    assert expiry_plan.removed == (200,)
    assert (expiry_plan.retained[100], expiry_plan.retained[300]) == ("run r", "reader 7")
    assert "300" in expiry_plan.retained[400]


def test_recently_replaced_snapshot_is_retained() -> None:
    """A snapshot that was replaced within the last hour is kept, because a scan plan without parts leaves no pin."""
    document = table(chain(3, first_age_days=30))
    document["snapshot-log"] = [
        {"snapshot-id": 100, "timestamp-ms": NOW_MS - 20 * DAY_MS},
        {"snapshot-id": 200, "timestamp-ms": NOW_MS - 10 * DAY_MS},
        {"snapshot-id": 300, "timestamp-ms": NOW_MS - 1_000},
    ]
    assert list_expired_numbers(document, ExpiryRules(older_than_ms=0, recent_ms=3_600_000)) == [1]
    assert list_expired_numbers(document, ExpiryRules(older_than_ms=0, recent_ms=500)) == [1, 2]


def test_snapshot_that_was_never_current_is_not_called_current() -> None:
    """A recent snapshot that no entry of the log names, such as a failed run's, is retained because it was written
    recently.
    """
    document = table(chain(1, first_age_days=30))
    failed = {**document["snapshots"][0], "snapshot-id": 777, "timestamp-ms": NOW_MS - 1_000}
    document["snapshots"].append(failed)
    document["snapshot-log"] = [{"snapshot-id": 100, "timestamp-ms": NOW_MS - 20 * DAY_MS}]

    retained = plan(document, ExpiryRules(older_than_ms=0, recent_ms=3_600_000)).retained

    assert retained[777] == "was written recently: its writer or a reader may still use it"


@pytest.mark.parametrize("key", ["limnos.inputs", "sqlpp.debris", "spark.sql.streaming.epochId", "flink.job-id"])
def test_newest_writer_checkpoint_is_retained(key: str) -> None:
    """The newest snapshot with a checkpoint is kept, with all between it and the head, which writers search for it.
    Older ones with the same key are removed, and so are all once the checkpoint is old.
    """
    document = table(chain(6, first_age_days=20))
    for number in (1, 3):
        document["snapshots"][number - 1]["summary"][key] = "x"
    assert list_expired_numbers(document) == [1, 2]
    assert list_expired_numbers(document, TODAY._replace(checkpoint_ms=15 * DAY_MS)) == [1, 2, 3, 4, 5]


def test_gc_disabled_table_loses_no_snapshot() -> None:
    """If gc.enabled is false, no snapshot is removed."""
    expiry_plan = plan(table(chain(6), properties={"gc.enabled": "False"}))
    assert (expiry_plan.removed, expiry_plan.blocked) == ((), "gc.enabled is false")


def test_ancestors_of_unknown_reference_kind_are_retained() -> None:
    """All ancestors of a reference of unknown kind are kept."""
    assert list_expired_numbers(table(chain(6), refs={"odd": {"snapshot-id": 400, "type": "label"}})) == [5]


def test_unreferenced_snapshot_expires_only_when_old() -> None:
    """A snapshot that no reference reaches is removed only when it is old enough, because it may be a staged commit."""
    staged = [snapshot(8, age_days=9), snapshot(9, age_days=0.5)]
    assert list_expired_numbers(table([*staged, *chain(1)]), ExpiryRules(DAY_MS, recent_ms=0)) == [8]


def test_clock_before_all_snapshots_removes_none() -> None:
    """If the clock is before the times of all snapshots, none is removed."""
    assert plan(table(chain(6)), now_ms=NOW_MS - 365 * DAY_MS).removed == ()


NUMBERS = st.integers(1, 12)
RETENTION = st.fixed_dictionaries(
    {},
    optional={
        "min-snapshots-to-keep": st.integers(1, 6),
        "max-snapshot-age-ms": st.integers(0, 20 * DAY_MS),
        "max-ref-age-ms": st.integers(0, 20 * DAY_MS),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Return a table whose snapshots form a tree, with branches and tags of any retention."""
    count = draw(NUMBERS)
    rows = []
    for number in range(1, count + 1):
        parent = draw(st.one_of(st.none(), st.integers(1, number - 1))) if number > 1 else None
        rows.append(snapshot(number, parent=parent, age_days=draw(st.floats(-1, 20))))
        if draw(st.booleans()):
            rows[-1]["summary"]["limnos.inputs"] = "{}"
    refs = draw(
        st.dictionaries(
            st.sampled_from("abc"),
            st.tuples(st.integers(1, count), st.sampled_from(["branch", "tag"]), RETENTION).map(
                lambda row: {"snapshot-id": row[0] * 100, "type": row[1], **row[2]}
            ),
        )
    )
    properties = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "history.expire.max-snapshot-age-ms": st.integers(0, 20 * DAY_MS).map(str),
                "history.expire.min-snapshots-to-keep": st.integers(0, 6).map(str),
                "history.expire.max-ref-age-ms": st.integers(0, 20 * DAY_MS).map(str),
                "gc.enabled": st.sampled_from(["true", "false"]),
            },
        )
    )
    return table(rows, refs=refs, properties=properties)


@settings(deadline=None, max_examples=300)
@given(
    documents(),
    st.one_of(st.none(), st.integers(0, 20 * DAY_MS)),
    st.one_of(st.none(), st.integers(1, 6)),
    st.sets(NUMBERS),
    st.sets(NUMBERS),
)
def test_needed_snapshots_never_expire(
    document: dict[str, Any], older: int | None, last: int | None, pinned: set[int], read: set[int]
) -> None:
    """Whatever the rules are, heads of references, pins, checkpoints, young snapshots and those within the retention
    are kept.
    """
    guards = ExpiryGuards(dict.fromkeys([each * 100 for each in pinned], "p"), {each * 100: "r" for each in read})
    rules = ExpiryRules(older, last, 0)
    expiry_plan = plan(document, rules, guards)
    removed = set(expiry_plan.removed)
    rows = {row["snapshot-id"]: row for row in document["snapshots"]}
    properties = document["properties"]

    assert removed <= set(rows)
    assert removed.isdisjoint(guards.pinned)
    assert removed.isdisjoint(guards.checkpoints)
    assert "main" not in expiry_plan.refs
    assert removed == set() or properties.get("gc.enabled") != "false"
    ages = [older, *(int(properties[key]) for key in ["history.expire.max-snapshot-age-ms"] if key in properties)]
    stated = [each for each in ages if each is not None]
    least_age = max(stated) if stated else 5 * DAY_MS
    for each in removed:
        assert NOW_MS - rows[each]["timestamp-ms"] > least_age
    for name, ref in document["refs"].items():
        if name in expiry_plan.refs:
            assert NOW_MS - rows[ref["snapshot-id"]]["timestamp-ms"] > ref.get("max-ref-age-ms", -1)
            assert ref["snapshot-id"] not in guards.pinned
            continue
        assert ref["snapshot-id"] not in removed
        if ref["type"] == "branch":
            count = max(last or 1, ref.get("min-snapshots-to-keep", 1))
            walked, at = [], ref["snapshot-id"]
            while at is not None and len(walked) < count:
                walked.append(at)
                at = rows[at].get("parent-snapshot-id")
            assert removed.isdisjoint(walked)
