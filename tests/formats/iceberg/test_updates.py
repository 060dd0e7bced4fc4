# SPDX-License-Identifier: Apache-2.0
"""Whole commits: their changes, their refusals, and the fields that they do not change."""

from __future__ import annotations

import copy

import pytest

from limnos.formats.iceberg import updates
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.model.errors import BadRequest, CommitConflict
from tests.formats.iceberg.samples import (
    FILE,
    LOCATION,
    NOW,
    OTHER_UUID,
    T0,
    UUID,
    add,
    appended,
    commit,
    creation,
    field,
    ids,
    order,
    partition,
    ref,
    rows,
    schema,
    sort,
    spec,
    table,
)

NOTHING: list[tuple[str, Json]] = [
    ("same uuid", {"action": "assign-uuid", "uuid": UUID.upper()}),
    ("same version", {"action": "upgrade-format-version", "format-version": 2}),
    ("same location", {"action": "set-location", "location": f"{LOCATION}/"}),
    ("known schema", {"action": "add-schema", "schema": schema(**{"schema-id": 9})}),
    ("current schema", {"action": "set-current-schema", "schema-id": 0}),
    ("unknown schemas", {"action": "remove-schemas", "schema-ids": [7]}),
    ("known spec", {"action": "add-spec", "spec": spec()}),
    ("default spec", {"action": "set-default-spec", "spec-id": 0}),
    ("unknown specs", {"action": "remove-partition-specs", "spec-ids": [7]}),
    ("known order", {"action": "add-sort-order", "sort-order": order()}),
    ("default order", {"action": "set-default-sort-order", "sort-order-id": 0}),
    ("unknown snapshots", {"action": "remove-snapshots", "snapshot-ids": [7]}),
    ("same ref", ref(2)),
    ("missing ref", {"action": "remove-snapshot-ref", "ref-name": "nope"}),
    ("same property", {"action": "set-properties", "updates": {"write.parquet.compression-codec": "zstd"}}),
    ("no properties", {"action": "set-properties", "updates": {}}),
    ("reserved properties", {"action": "set-properties", "updates": {"uuid": "x", "current-schema": "{}"}}),
    ("same version as property", {"action": "set-properties", "updates": {"format-version": "2"}}),
    ("missing property", {"action": "remove-properties", "removals": ["nope"]}),
    ("missing statistics", {"action": "remove-statistics", "snapshot-id": 100}),
    ("missing partition statistics", {"action": "remove-partition-statistics", "snapshot-id": 100}),
    ("missing key", {"action": "remove-encryption-key", "key-id": "nope"}),
]


@pytest.mark.parametrize("update", [update for _, update in NOTHING], ids=[name for name, _ in NOTHING])
def test_update_without_effect_returns_the_base(update: Json) -> None:
    """A commit that changes nothing returns the identical base, so that nothing is written."""
    base = appended(2)

    assert commit(base, update) is base


def test_updates_that_cancel_out_return_the_base() -> None:
    """Setting and removing a property in one request is no change; nor is an empty list of updates."""
    base = appended(2)
    set_property: Json = {"action": "set-properties", "updates": {"a": "b"}}
    back: Json = {"action": "remove-properties", "removals": ["a"]}

    assert commit(base, set_property, back) is base
    assert commit(base) is base


def test_change_stamps_time_and_logs_the_previous_file() -> None:
    """A change sets last-updated-ms, and adds the previous file with the previous time to the metadata log."""
    base = table()

    new = commit(base, {"action": "set-properties", "updates": {"a": "b"}})

    assert new["last-updated-ms"] == NOW
    assert new["metadata-log"] == [{"timestamp-ms": T0, "metadata-file": FILE}]
    assert base["metadata-log"] == []


def test_unknown_fields_survive() -> None:
    """Unknown fields are kept at every place, also next to changed ones."""
    base = appended(1)
    base = {**base, "x-top": {"deep": [1]}, "refs": {"main": {"snapshot-id": 100, "type": "branch", "x-ref": 1}}}
    base["snapshots"] = [{**rows(base, "snapshots")[0], "x-snap": True}]
    base["schemas"] = [{**rows(base, "schemas")[0], "x-schema": "s"}]
    base["snapshot-log"] = [{**rows(base, "snapshot-log")[0], "x-log": 1}]

    new = commit(
        base,
        add(2, parent=1, **{"x-new": 5}),
        ref(2, **{"min-snapshots-to-keep": 3}),
        {"action": "add-schema", "schema": schema(field(1, "id", **{"x-field": [2]}))},
        {"action": "set-properties", "updates": {"a": "b"}},
    )

    assert new["x-top"] == {"deep": [1]}
    assert new["refs"] == {
        "main": {"snapshot-id": 200, "type": "branch", "x-ref": 1, "min-snapshots-to-keep": 3},
    }
    assert [row.get("x-snap") or row.get("x-new") for row in rows(new, "snapshots")] == [True, 5]
    assert rows(new, "schemas")[0]["x-schema"] == "s"
    assert rows(new, "schemas")[1]["fields"] == [field(1, "id", **{"x-field": [2]})]
    assert rows(new, "snapshot-log")[0]["x-log"] == 1


def test_base_and_updates_are_not_changed() -> None:
    """A commit with every kind of update modifies neither the base nor the request."""
    base = appended(3)
    changes: list[object] = [
        {"action": "add-schema", "schema": schema(field(1, "id"), field(4, "more"))},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec(partition(1, "bucketed", "bucket[4]"))},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order(sort(4))},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        add(4, parent=3),
        ref(4),
        {"action": "remove-snapshots", "snapshot-ids": [100]},
        {"action": "set-properties", "updates": {"a": "b"}},
    ]
    before = copy.deepcopy((base, changes))

    new = updates.apply(base, changes, now_ms=NOW, previous_location=FILE)

    assert (base, changes) == before
    assert new != base


@pytest.mark.parametrize("version", [1, 2, 3])
def test_staged_create_is_committed_without_base(version: int) -> None:
    """A commit without a base creates the whole table from its updates."""
    first = add(1, version=version)

    new = commit(None, *creation(version), first, ref(1), previous=None)

    check_registrable(new)
    assert new["format-version"] == version
    assert (new["table-uuid"], new["location"], new["properties"]) == (UUID, LOCATION, {"owner": "ann"})
    assert ids(new, "schemas", "schema-id") == [0]
    assert (new["last-column-id"], new["last-partition-id"]) == (3, 1000)
    assert (new["default-spec-id"], new["default-sort-order-id"], new["current-snapshot-id"]) == (0, 1, 100)
    assert new["last-updated-ms"] == NOW
    assert new["metadata-log"] == []
    assert ("schema" in new, "partition-spec" in new) == (version == 1, version == 1)
    assert new.get("next-row-id") == (10 if version == 3 else None)
    assert new.get("last-sequence-number") == (1 if version > 1 else None)


@pytest.mark.parametrize(
    "left_out", ["assign-uuid", "add-schema", "add-spec", "add-sort-order", "set-location"], ids=lambda text: text
)
def test_create_that_lacks_a_part_is_refused(left_out: str) -> None:
    """A commit that creates a table and lacks a part is refused, and the message names the missing update."""
    left_out_actions = {
        left_out,
        left_out.replace("add", "set-default"),
        "set-current-schema" if left_out == "add-schema" else "",
    }
    if left_out == "add-schema":
        left_out_actions |= {"add-spec", "set-default-spec", "add-sort-order", "set-default-sort-order"}
    remaining_updates = [update for update in creation() if update["action"] not in left_out_actions]

    with pytest.raises(BadRequest) as caught:
        commit(None, *remaining_updates, previous=None)

    assert "not complete" in caught.value.message
    assert left_out in caught.value.message


def test_create_starts_in_version_2() -> None:
    """A commit that creates a table without a format version creates a version 2 table."""
    changes = [update for update in creation() if update["action"] != "upgrade-format-version"]

    new = commit(None, *changes, previous=None)

    assert new["format-version"] == 2


def test_first_schema_and_spec_are_current_by_default() -> None:
    """The first schema and spec of a new table are current without an explicit update, because their id is 0."""
    left_out_actions = {"set-current-schema", "set-default-spec"}

    new = commit(None, *[update for update in creation() if update["action"] not in left_out_actions], previous=None)

    assert (new["current-schema-id"], new["default-spec-id"]) == (0, 0)


def test_create_without_its_default_order_is_refused() -> None:
    """A commit that creates a table whose default order is not added is refused."""
    changes = [update for update in creation() if update["action"] != "set-default-sort-order"]

    with pytest.raises(BadRequest) as caught:
        commit(None, *changes, previous=None)

    assert "'default-sort-order-id' is 0" in caught.value.message


MALFORMED: list[tuple[object, str]] = [
    ("x", "'updates', element 0 must be an object, not a string"),
    (None, "element 0 must be an object, not null"),
    ({}, "'action' is required"),
    ({"action": 5}, "'action' must be a string"),
    ({"action": ["add-schema"]}, "'action' must be a string"),
    ({"action": "make-coffee"}, "Unknown update action 'make-coffee' for a table; known are assign-uuid"),
    ({"action": "add-view-version"}, "Unknown update action 'add-view-version'"),
    ({"action": "enable-row-lineage"}, "Unknown update action 'enable-row-lineage'"),
]


@pytest.mark.parametrize("update,text", MALFORMED, ids=lambda value: str(value)[:40])
def test_malformed_update_is_refused(update: object, text: str) -> None:
    """An unknown or malformed update is refused, and earlier updates have no effect."""
    base = table()

    with pytest.raises(BadRequest) as caught:
        updates.apply(base, [update], now_ms=NOW, previous_location=FILE)

    assert text in caught.value.message


@pytest.mark.parametrize("action", updates.ACTIONS)
@pytest.mark.parametrize("value", [None, 5, "x", [], {}, True, 1.5, [None], [{}], {"a": None}])
def test_wrong_types_are_never_a_server_error(action: str, value: object) -> None:
    """For any values in an update's fields, the result is a table, a conflict, or BadRequest with a message."""
    names: tuple[str, ...] = (
        "uuid",
        "format-version",
        "location",
        "schema",
        "schema-id",
        "schema-ids",
        "spec",
        "spec-id",
        "spec-ids",
    )
    names += ("sort-order", "sort-order-id", "snapshot", "snapshot-ids", "ref-name", "type", "snapshot-id", "updates")
    names += ("removals", "statistics", "partition-statistics", "encryption-key", "key-id", "min-snapshots-to-keep")
    base = appended(1, 3)

    try:
        outcome: object = commit(base, {"action": action, **dict.fromkeys(names, value)})
    except (BadRequest, CommitConflict) as error:
        outcome = error.message

    assert outcome


@pytest.mark.parametrize("length,versions_max", [(None, 100), ("2", 2), ("1", 1), ("0", 1)])
def test_metadata_log_is_capped(length: str | None, versions_max: int) -> None:
    """The metadata log keeps as many of the newest files as its property says, and the removed files are returned."""
    old = [{"timestamp-ms": T0, "metadata-file": f"f{number}"} for number in range(100)]
    base: Json = {**table(), "metadata-log": old}
    properties = {"a": "b"} if length is None else {"write.metadata.previous-versions-max": length}

    new = commit(base, {"action": "set-properties", "updates": properties})

    assert ids(new, "metadata-log", "metadata-file") == [*[f"f{n}" for n in range(101 - versions_max, 100)], FILE]
    assert updates.removed_metadata_files(base, new) == [f"f{n}" for n in range(101 - versions_max)]


def test_new_table_returns_no_removed_files() -> None:
    """A new table, and one with a short log, return no removed files."""
    base = table()

    assert updates.removed_metadata_files(None, base) == []
    assert updates.removed_metadata_files(base, commit(base, {"action": "set-location", "location": "s3://b"})) == []


def test_slow_server_clock_does_not_move_time_back() -> None:
    """If this node's clock is some seconds behind the last change, the commit succeeds with the time of the last
    change.
    """
    base = table()

    new = commit(base, {"action": "set-properties", "updates": {"a": "b"}}, now_ms=T0 - 30_000)

    assert new["last-updated-ms"] == T0


def test_appends_succeed_after_change_by_fast_server_clock() -> None:
    """After a change by a node whose clock was an hour ahead, snapshots can be appended and rolled back, and later
    times are correct.
    """
    ahead = commit(appended(2), {"action": "set-properties", "updates": {"a": "b"}}, now_ms=T0 + 3_600_000)

    rolled = commit(ahead, ref(1), now_ms=T0 + 4000)
    new = commit(rolled, add(3, parent=1, at=T0 + 5000), ref(3), now_ms=T0 + 5000)

    assert new["last-updated-ms"] == T0 + 5000
    assert [entry["timestamp-ms"] - T0 for entry in new["metadata-log"]][-2:] == [4000, 4000]
    assert [entry["timestamp-ms"] - T0 for entry in new["snapshot-log"]] == [1000, 2000, 4000, 5000]


@pytest.mark.parametrize("lag,accepted", [(0, True), (60_000, True), (60_001, False)])
def test_slow_client_clock_is_tolerated_for_a_minute(lag: int, accepted: bool) -> None:
    """A snapshot dated up to a minute before the last change is accepted, an older one refused."""
    base = appended(1)

    try:
        new: Json | None = commit(base, add(2, parent=1, at=T0 + 1000 - lag), ref(2))
    except BadRequest as error:
        new = None
        refusal = error.message
    else:
        refusal = ""

    assert (new is not None) == accepted
    assert refusal.startswith("Invalid snapshot timestamp") != accepted
    assert new is None or new["last-updated-ms"] == NOW


def snapshot_times(metadata: Json) -> list[int]:
    """Return the times of the snapshot log, relative to the table's first time."""
    return [entry["timestamp-ms"] - T0 for entry in metadata["snapshot-log"]]  # type: ignore[attr-defined, index]


@pytest.mark.parametrize("ahead_ms", [0, 30_000])
def test_fast_client_clock_is_tolerated_up_to_limit(ahead_ms: int) -> None:
    """A snapshot may be dated up to the configured time in the future. The table's own time is the server's."""

    def appends(at: int) -> Json:
        changes = [add(2, parent=1, at=at), ref(2)]
        return updates.apply(appended(1), changes, now_ms=NOW, previous_location=FILE, ahead_ms=ahead_ms)  # type: ignore[arg-type]

    new = appends(NOW + ahead_ms)
    with pytest.raises(BadRequest) as caught:
        appends(NOW + ahead_ms + 1)

    assert (new["last-updated-ms"], snapshot_times(new)[-1]) == (NOW, NOW + ahead_ms - T0)
    assert caught.value.message.startswith(
        f"Invalid snapshot timestamp {NOW + ahead_ms + 1}: 1 s later than the server's clock"
    )
    assert "set the client's clock right" in caught.value.message


def test_staged_create_with_future_snapshots_is_refused() -> None:
    """A commit that creates a table is refused if its snapshots are dated in the future."""
    with pytest.raises(BadRequest, match="later than the server's clock"):
        commit(None, *creation(), add(1, at=NOW + 30_001), ref(1))


def test_commit_resets_future_times_of_table() -> None:
    """The first commit of any kind sets future times to now, so that Iceberg's Java library can commit again."""
    hour = 3_600_000
    stuck: Json = commit(appended(1), add(2, parent=1, at=NOW + hour), ref(2), now_ms=NOW + hour)
    stuck = commit(stuck, {"action": "set-properties", "updates": {"a": "b"}}, now_ms=NOW + hour)
    assert snapshot_times(stuck)[-1] == NOW + hour - T0

    for changes in ([{"action": "set-properties", "updates": {"c": "d"}}], [add(3, parent=2, at=NOW - 1000), ref(3)]):
        new = commit(stuck, *changes)

        times = [entry["timestamp-ms"] for entry in new["metadata-log"]]  # type: ignore[attr-defined, index]
        assert new["last-updated-ms"] == NOW
        assert times == sorted(times)
        assert times[-1] == NOW
        assert snapshot_times(new)[1] == NOW - T0
        assert [row["timestamp-ms"] for row in new["snapshots"]][1] == NOW + hour  # type: ignore[attr-defined, index]


def test_snapshots_with_decreasing_times_are_refused() -> None:
    """Two snapshots of one request whose times decrease by more than a minute are refused."""
    base = appended(1)

    with pytest.raises(BadRequest) as caught:
        commit(base, add(2, parent=1, at=NOW), ref(2), add(3, parent=1, at=NOW - 60_001), ref(2, "b"), ref(3, "c"))

    assert "Invalid snapshot timestamp" in caught.value.message


def test_uuid_never_changes() -> None:
    """The uuid of a table cannot change. An invalid uuid is refused."""
    base = table()

    for uuid, text in ((OTHER_UUID, "Cannot reassign uuid"), ("nope", "is not a UUID")):
        with pytest.raises(BadRequest) as caught:
            commit(base, {"action": "assign-uuid", "uuid": uuid})

        assert text in caught.value.message


def test_location_is_set_without_slash() -> None:
    """A location is stored without its trailing slash; an empty one is refused."""
    new = commit(table(), {"action": "set-location", "location": "s3://b/c//"})

    with pytest.raises(BadRequest):
        commit(new, {"action": "set-location", "location": ""})

    assert new["location"] == "s3://b/c"


def test_upgrade_to_2_drops_the_legacy_fields() -> None:
    """An upgrade to version 2 adds sequence numbers and removes the legacy schema and spec."""
    new = commit(appended(1, 1), {"action": "upgrade-format-version", "format-version": 2})

    assert (new["format-version"], new["last-sequence-number"]) == (2, 0)
    assert "schema" not in new
    assert "partition-spec" not in new
    check_registrable(new)


@pytest.mark.parametrize("version", [1, 2])
def test_upgrade_to_3_sets_next_row_id(version: int) -> None:
    """An upgrade to version 3 counts rows from 0, adds sequence numbers, and uses null if there is no current
    snapshot.
    """
    new = commit(table(version), {"action": "upgrade-format-version", "format-version": 3})

    assert (new["next-row-id"], new["last-sequence-number"], new["current-snapshot-id"]) == (0, 0, None)
    check_registrable(new)


@pytest.mark.parametrize(
    "version,text", [(1, "Cannot downgrade v2 table to v1"), (4, "unsupported format version: v4")]
)
def test_impossible_versions_are_refused(version: int, text: str) -> None:
    """A lower format version and an unknown one are refused."""
    version_updates: list[Json] = [
        {"action": "upgrade-format-version", "format-version": version},
        {"action": "set-properties", "updates": {"format-version": str(version)}},
    ]

    for update in version_updates:
        with pytest.raises(BadRequest) as caught:
            commit(table(), update)

        assert text in caught.value.message


def test_upgrade_needs_a_uuid() -> None:
    """A version 1 table without a uuid must be given one before or with its upgrade."""
    base = {**table(1), "table-uuid": None}
    upgrade: Json = {"action": "upgrade-format-version", "format-version": 2}

    with pytest.raises(BadRequest) as caught:
        commit(base, upgrade)
    new = commit(base, upgrade, {"action": "assign-uuid", "uuid": UUID})

    assert "assign-uuid" in caught.value.message
    assert new["table-uuid"] == UUID


def test_version_1_keeps_working_without_uuid() -> None:
    """A version 1 table without a uuid accepts other commits."""
    new = commit({**table(1), "table-uuid": None}, {"action": "set-properties", "updates": {"a": "b"}})

    assert new["table-uuid"] is None
