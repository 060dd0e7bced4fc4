# SPDX-License-Identifier: Apache-2.0
"""Updates of snapshots, references and statistics, and the snapshot log."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg import updates
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest, CommitConflict
from tests.formats.iceberg.samples import (
    NOW,
    T0,
    add,
    appended,
    commit,
    creation,
    field,
    ids,
    logged,
    ref,
    rows,
    schema,
    snapshot,
    table,
)

OVERWRITE: Json = {"operation": "overwrite"}
DROP_MAIN: Json = {"action": "remove-snapshot-ref", "ref-name": "main"}


def remove(*numbers: int) -> Json:
    """Return a remove-snapshots update."""
    return {"action": "remove-snapshots", "snapshot-ids": [number * 100 for number in numbers]}


def test_append_moves_main() -> None:
    """An append adds the snapshot, moves main and the current snapshot, and is logged with the snapshot's time. The
    table's time is the server's.
    """
    base = appended(1)

    new = commit(base, add(2, parent=1), ref(2))

    assert ids(new, "snapshots", "snapshot-id") == [100, 200]
    assert (new["current-snapshot-id"], new["last-sequence-number"]) == (200, 2)
    assert new["refs"] == {"main": {"snapshot-id": 200, "type": "branch"}}
    assert rows(new, "snapshot-log")[-1] == {"timestamp-ms": T0 + 2000, "snapshot-id": 200}
    assert new["last-updated-ms"] == NOW


def test_snapshot_alone_is_not_current() -> None:
    """A snapshot without a reference changes only the table's time, neither the current snapshot nor the log."""
    new = commit(appended(1), add(2, parent=1))

    assert (new["current-snapshot-id"], logged(new), new["last-updated-ms"]) == (100, [100], NOW)


def test_first_snapshot_may_have_no_reference() -> None:
    """The first snapshot of a table may be added without a reference: then there is no current snapshot and no log
    entry.
    """
    new = commit(table(), add(1))

    assert (new["current-snapshot-id"], logged(new), new["refs"]) == (-1, [], {})


def test_next_row_id_grows_by_added_rows() -> None:
    """In version 3, next-row-id grows by the added rows of each snapshot, and over a gap before them."""
    base = appended(1, 3)

    new = commit(base, add(2, parent=1, version=3, **{"first-row-id": 10, "added-rows": 7}))
    after_gap = commit(base, add(2, parent=1, version=3, **{"first-row-id": 15, "added-rows": 7}))

    assert (new["next-row-id"], after_gap["next-row-id"]) == (17, 22)


@pytest.mark.parametrize("number", [1, 2])
def test_old_sequence_number_is_a_conflict(number: int) -> None:
    """A child snapshot whose sequence number is not newer than the table's is a conflict, because another commit was
    made.
    """
    stale = add(9, parent=1, **{"sequence-number": number})

    with pytest.raises(CommitConflict) as caught:
        commit(appended(2), stale, ref(9))

    expected = f"Cannot add snapshot with sequence number {number} older than last sequence number 2"
    assert caught.value.message.startswith(expected)


def test_first_snapshot_may_have_an_old_sequence_number() -> None:
    """A snapshot without a parent may have an old sequence number. last-sequence-number never decreases."""
    new = commit(appended(2), add(9, **{"sequence-number": 1}), ref(9, "other"))

    assert new["last-sequence-number"] == 2


def test_row_ids_behind_the_table_are_a_conflict() -> None:
    """A version 3 snapshot whose first row id is already assigned is a conflict."""
    with pytest.raises(CommitConflict) as caught:
        commit(appended(2, 3), add(3, parent=2, version=3, **{"first-row-id": 19}))

    assert "first-row-id is behind table next-row-id: 19 < 20" in caught.value.message


BAD: dict[str, tuple[int, Json, str]] = {
    "duplicate": (2, snapshot(1), "Snapshot already exists for id: 100"),
    "no id": (2, {**snapshot(2), "snapshot-id": None}, "'snapshot-id' is required"),
    "negative id": (2, {**snapshot(2), "snapshot-id": -1}, "must be between 0"),
    "huge id": (2, {**snapshot(2), "snapshot-id": 2**63}, "must be between 0"),
    "id is text": (2, {**snapshot(2), "snapshot-id": "200"}, "must be an integer"),
    "no time": (2, {**snapshot(2), "timestamp-ms": None}, "'timestamp-ms' is required"),
    "no sequence number": (2, {**snapshot(2), "sequence-number": None}, "'sequence-number' is required"),
    "no manifest list": (2, {**snapshot(2), "manifest-list": None}, "'manifest-list' is required"),
    "inline manifests": (2, {**snapshot(2), "manifest-list": None, "manifests": []}, "'manifest-list' is required"),
    "manifests no list": (1, {**snapshot(2, version=1), "manifests": 5}, "'manifests' must be an array"),
    "odd parent": (2, {**snapshot(2), "parent-snapshot-id": "1"}, "'parent-snapshot-id' must be an integer"),
    "odd schema": (2, {**snapshot(2), "schema-id": "1"}, "'schema-id' must be an integer"),
    "summary of numbers": (2, {**snapshot(2), "summary": {"operation": "append", "n": 1}}, "key 'n' must be a string"),
    "sequence number in v1": (1, {**snapshot(2, version=1), "sequence-number": 5}, "no sequence numbers"),
    "no first row id": (3, {**snapshot(2, version=3), "first-row-id": None}, "first-row-id is null"),
    "no added rows": (3, {**snapshot(2, version=3), "added-rows": None}, "'added-rows' is required"),
    "negative rows": (3, {**snapshot(2, version=3), "added-rows": -1}, "must be between 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_snapshot_is_refused(name: str) -> None:
    """A snapshot that breaks a rule which no retry can satisfy is BadRequest."""
    version, body, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        commit(appended(1, version), {"action": "add-snapshot", "snapshot": body})

    assert text in caught.value.message


@pytest.mark.parametrize(
    "version,sent,stored",
    [
        (1, None, None),
        (1, {}, {"operation": "overwrite"}),
        (2, None, {"operation": "overwrite"}),
        (3, {"a": "b"}, {"a": "b", "operation": "overwrite"}),
        (3, {"operation": "append"}, {"operation": "append"}),
    ],
)
def test_snapshot_without_an_operation_is_an_overwrite(version: int, sent: object, stored: object) -> None:
    """Versions 2 and 3 require a summary, and each summary an operation: the one that Iceberg's Java library reads."""
    body = {**snapshot(2, version=version), "summary": sent}

    new = commit(appended(1, version), {"action": "add-snapshot", "snapshot": body})

    assert rows(new, "snapshots")[-1].get("summary") == stored


def test_upgrade_completes_the_snapshots_of_version_1() -> None:
    """Version 2 requires a sequence number and a summary of each snapshot, which version 1 does not have."""
    old = {"snapshots": [{key: value for key, value in snapshot(1, version=1).items() if key != "summary"}]}

    new = commit({**appended(1, 1), **old}, {"action": "upgrade-format-version", "format-version": 3})

    assert rows(new, "snapshots") == [snapshot(1, version=1, **{"sequence-number": 0, "summary": OVERWRITE})]


def test_upgrade_of_snapshots_with_inline_manifests_is_refused() -> None:
    """No reader of version 2 but Iceberg's Java library reads a snapshot without a manifest list."""
    body = {**snapshot(2, version=1), "manifest-list": None, "manifests": ["a.avro"]}
    base = commit(appended(1, 1), {"action": "add-snapshot", "snapshot": body})

    with pytest.raises(BadRequest) as caught:
        commit(base, {"action": "upgrade-format-version", "format-version": 2})

    assert "snapshot 200, which names its manifests itself" in caught.value.message


def test_version_1_accepts_inline_manifests() -> None:
    """A version 1 snapshot may list its manifests inline, and sequence number 0 counts as none."""
    body = {**snapshot(2, version=1), "manifest-list": None, "manifests": ["a.avro"], "sequence-number": 0}

    new = commit(appended(1, 1), {"action": "add-snapshot", "snapshot": body}, ref(2))

    assert new["current-snapshot-id"] == 200
    assert "last-sequence-number" not in new


@pytest.mark.parametrize(
    "missing,text", [("add-schema", "a schema"), ("add-spec", "a partition spec"), ("add-sort-order", "a sort order")]
)
def test_snapshot_before_layout_is_refused(missing: str, text: str) -> None:
    """In a commit that creates a table, the schema, spec and order must precede the first snapshot."""
    before = [update for update in creation() if str(update["action"]).startswith("add-")]
    layout_updates = [update for update in before if update["action"] != missing or missing == "add-schema"]
    layout_updates = [] if missing == "add-schema" else layout_updates

    with pytest.raises(BadRequest) as caught:
        updates.apply(None, [*layout_updates, add(1)], now_ms=NOW, previous_location=None)

    assert f"Attempting to add a snapshot before {text} is added" in caught.value.message


def test_references_hold_their_retention() -> None:
    """Branches and tags are stored with their retention, without null fields."""
    new = commit(
        appended(2),
        ref(1, "dev", **{"min-snapshots-to-keep": 2, "max-snapshot-age-ms": 5, "max-ref-age-ms": 7}),
        ref(1, "v1", "tag", **{"max-ref-age-ms": 9, "min-snapshots-to-keep": None}),
    )

    assert new["refs"] == {
        "main": {"snapshot-id": 200, "type": "branch"},
        "dev": {
            "snapshot-id": 100,
            "type": "branch",
            "min-snapshots-to-keep": 2,
            "max-snapshot-age-ms": 5,
            "max-ref-age-ms": 7,
        },
        "v1": {"snapshot-id": 100, "type": "tag", "max-ref-age-ms": 9},
    }
    assert (logged(new), new["last-updated-ms"]) == ([100, 200], NOW)


@pytest.mark.parametrize(
    "update,text",
    [
        (ref(9), "Cannot set main to unknown snapshot: 900"),
        (ref(1, "main", "tag"), "'main' must be a branch"),
        (ref(1, "b", "twig"), "type must be branch or tag, not 'twig'"),
        (ref(1, ""), "'ref-name' must not be empty"),
        (ref(1, "t", "tag", **{"min-snapshots-to-keep": 1}), "a tag has no snapshot retention"),
        (ref(1, "b", **{"min-snapshots-to-keep": 0}), "must be between 1"),
        (ref(1, "b", **{"max-ref-age-ms": "1"}), "must be an integer"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch"}, "'snapshot-id' is required"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "snapshot-id": 100}, "'type' is required"),
    ],
    ids=str,
)
def test_bad_reference_is_refused(update: Json, text: str) -> None:
    """A reference that breaks a rule is refused with its reason."""
    with pytest.raises(BadRequest) as caught:
        commit(appended(1), update)

    assert text in caught.value.message


def test_log_has_time_of_current_snapshot() -> None:
    """Of two snapshots in one request, the time of the one that becomes current is used for the log and the table."""
    new = commit(appended(1), add(2, parent=1), add(3, parent=1), ref(2), ref(3, "side"), ref(2))
    other = commit(appended(1), add(2, parent=1), add(3, parent=1), ref(2))

    assert rows(new, "snapshot-log")[-1] == {"timestamp-ms": T0 + 2000, "snapshot-id": 200}
    assert rows(other, "snapshot-log")[-1] == {"timestamp-ms": T0 + 2000, "snapshot-id": 200}
    assert other["last-updated-ms"] == NOW


def test_rollback_is_logged_with_commit_time() -> None:
    """A rollback of main to an older snapshot is logged with the time of the commit."""
    new = commit(appended(3), ref(1))

    assert rows(new, "snapshot-log")[-1] == {"timestamp-ms": NOW, "snapshot-id": 100}
    assert (new["current-snapshot-id"], new["last-updated-ms"]) == (100, NOW)


def test_retention_of_main_is_not_logged() -> None:
    """A change of main's retention alone changes the table, but adds no log entry."""
    base = appended(2)

    new = commit(base, ref(2, **{"max-ref-age-ms": 5}))

    assert new["refs"] == {"main": {"snapshot-id": 200, "type": "branch", "max-ref-age-ms": 5}}
    assert new["snapshot-log"] == base["snapshot-log"]


@pytest.mark.parametrize("version,none", [(1, -1), (2, -1), (3, None)])
def test_removing_main_removes_current_snapshot(version: int, none: int | None) -> None:
    """After main is removed there is no current snapshot, in the form of the format version, and the log is kept."""
    new = commit(appended(2, version), DROP_MAIN)

    assert new["current-snapshot-id"] == none
    assert new["refs"] == {}
    assert logged(new) == [100, 200]


def test_replace_keeps_the_log() -> None:
    """A table that is replaced (main removed, new history) keeps its snapshots and its log."""
    new = commit(appended(2), DROP_MAIN, add(3), ref(3))

    assert logged(new) == [100, 200, 300]
    assert ids(new, "snapshots", "snapshot-id") == [100, 200, 300]


def test_intermediate_snapshots_are_not_logged() -> None:
    """Snapshots that are added and superseded within one request have no log entry but stay in the table."""
    new = commit(appended(1), add(2, parent=1), ref(2), add(3, parent=2), ref(3), add(4, parent=3), ref(4))

    assert logged(new) == [100, 400]
    assert ids(new, "snapshots", "snapshot-id") == [100, 200, 300, 400]


def test_snapshot_current_only_within_request_is_not_logged() -> None:
    """A snapshot that is current only within the request has no log entry, whether main then returns to its snapshot or
    is removed.
    """
    back = commit(appended(1), add(2, parent=1), ref(2), ref(1))
    metadata_without_main = commit(appended(1), add(2, parent=1), ref(2), DROP_MAIN)

    assert logged(back) == [100, 100]
    assert logged(metadata_without_main) == [100]


def test_removed_intermediate_snapshot_does_not_truncate_log() -> None:
    """A snapshot that is added, superseded and removed within one request does not truncate the log."""
    new = commit(appended(1), add(2, parent=1), ref(2), add(3, parent=1), ref(3), remove(2))

    assert logged(new) == [100, 300]


@pytest.mark.parametrize(
    "removed_numbers,left", [((1,), [200, 300, 400]), ((2,), [300, 400]), ((1, 3), [400]), ((9,), [100, 200, 300, 400])]
)
def test_removed_snapshot_truncates_log(removed_numbers: tuple[int, ...], left: list[int]) -> None:
    """Removing a snapshot removes its entry in the log and all entries before it."""
    new = commit(appended(4), remove(*removed_numbers))

    assert logged(new) == left


def test_removed_snapshot_loses_statistics_and_references() -> None:
    """Removing a snapshot removes its statistics and the references to it, including main."""
    stats = [{"snapshot-id": 100}, {"snapshot-id": 200}]
    base: Json = {**commit(appended(2), ref(1, "t", "tag")), "statistics": stats, "partition-statistics": stats}

    new = commit(base, remove(1))
    none = commit(base, remove(1, 2))

    assert (new["statistics"], new["partition-statistics"]) == ([{"snapshot-id": 200}], [{"snapshot-id": 200}])
    assert new["refs"] == {"main": {"snapshot-id": 200, "type": "branch"}}
    assert (none["refs"], none["current-snapshot-id"], logged(none)) == ({}, -1, [])


def statistics(number: int, path: str = "a.puffin") -> Json:
    """Return a set-statistics update."""
    body: Json = {"snapshot-id": number * 100, "statistics-path": path, "file-size-in-bytes": 9}
    body |= {"file-footer-size-in-bytes": 4, "blob-metadata": []}
    return {"action": "set-statistics", "snapshot-id": number * 100, "statistics": body}


def partition_statistics(number: int, path: str = "a.parquet") -> Json:
    """Return a set-partition-statistics update."""
    body = {"snapshot-id": number * 100, "statistics-path": path, "file-size-in-bytes": 9}
    return {"action": "set-partition-statistics", "partition-statistics": body}


@pytest.mark.parametrize(
    "make,key,drop",
    [
        (statistics, "statistics", "remove-statistics"),
        (partition_statistics, "partition-statistics", "remove-partition-statistics"),
    ],
)
def test_statistics_file_replaces_earlier_one_of_snapshot(make: object, key: str, drop: str) -> None:
    """A statistics file replaces the earlier one of its snapshot at the same position, and can be removed."""
    assert callable(make)
    base = commit(appended(2), make(1), make(2))

    new = commit(base, make(1, "b"))
    less = commit(new, {"action": drop, "snapshot-id": 100})

    assert commit(base, make(1)) is base
    assert ids(new, key, "statistics-path") == ["b", rows(base, key)[1]["statistics-path"]]
    assert ids(less, key, "snapshot-id") == [200]


@pytest.mark.parametrize("field", ["snapshot-id", "statistics-path", "file-size-in-bytes", "file-footer-size-in-bytes"])
def test_incomplete_statistics_are_refused(field: str) -> None:
    """A statistics file without a required field is refused with the field's name."""
    update = statistics(1)
    body = update["statistics"]
    assert isinstance(body, dict)

    with pytest.raises(BadRequest) as caught:
        commit(appended(1), {**update, "statistics": {**body, field: None}})

    assert f"'{field}' is required" in caught.value.message


KEY: Json = {"key-id": "k1", "encrypted-key-metadata": "aGk=", "encrypted-by-id": "root", "x": 1}


def test_encryption_keys_are_added_and_removed() -> None:
    """A key is added once under its id, with all of its fields, and is removed by its id."""
    base = commit(table(3), {"action": "add-encryption-key", "encryption-key": KEY})
    other: Json = {"action": "add-encryption-key", "encryption-key": {**KEY, "encrypted-key-metadata": "YnllIQ"}}

    less = commit(base, {"action": "remove-encryption-key", "key-id": "k1"})

    assert base["encryption-keys"] == [KEY]
    assert commit(base, other) is base
    assert less["encryption-keys"] == []


def test_metadata_of_a_key_is_stored_with_its_padding() -> None:
    """Clients leave out the padding of base64, as Iceberg's Java library allows. Other readers need it."""
    sent = {**KEY, "encrypted-key-metadata": "aGk"}

    new = commit(table(3), {"action": "add-encryption-key", "encryption-key": sent})

    assert new["encryption-keys"] == [KEY]


def test_encryption_keys_need_version_3() -> None:
    """A key in a table of an older version is refused with a message that says what to do."""
    with pytest.raises(BadRequest) as caught:
        commit(table(2), {"action": "add-encryption-key", "encryption-key": KEY})

    assert "upgrade its format-version to 3 first" in caught.value.message


def test_snapshot_is_not_among_its_own_ancestors() -> None:
    """Engines would follow the parents without an end. A parent that has expired may be named."""
    expired = add(3, parent=7)
    base = commit(appended(1), expired)

    for update in (add(2, parent=2), add(7, parent=3)):
        with pytest.raises(BadRequest, match="among its own ancestors"):
            commit(base, update)

    assert len(rows(commit(base, add(7, parent=1)), "snapshots")) == 3


def test_schema_of_a_snapshot_exists() -> None:
    """Engines read a table as of a snapshot with its schema: it must exist, and stays while the snapshot does."""
    change: list[Json] = [
        {"action": "add-schema", "schema": schema(field(1, "id"), field(2, "name", "string"), field(9, "more"))},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    base = commit(table(2), add(1, **{"schema-id": 0}), ref(1))
    removal: Json = {"action": "remove-schemas", "schema-ids": [0]}

    with pytest.raises(BadRequest, match="Snapshot 200 has schema 5, which the table does not have"):
        commit(base, add(2, parent=1, **{"schema-id": 5}))
    with pytest.raises(BadRequest, match="Cannot remove schema 0: snapshot 100 has it"):
        commit(base, *change, removal)

    new = commit(base, *change, removal, {"action": "remove-snapshots", "snapshot-ids": [100]})
    assert [row["schema-id"] for row in rows(new, "schemas")] == [1]


def test_unreadable_schema_of_a_snapshot_may_be_removed() -> None:
    """The snapshot is then read with the current schema."""
    change: list[Json] = [
        {"action": "add-schema", "schema": schema(field(1, "id"))},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "remove-schemas", "schema-ids": [0]},
    ]
    base = commit(table(3), add(1, version=3, **{"schema-id": 0}), ref(1))
    base["schemas"] = [schema(field(1, "id"), field(2, "a", "uuid", **{"write-default": "no"}), **{"schema-id": 0})]

    new = commit(base, *change)

    assert [row.get("schema-id") for row in rows(new, "snapshots")] == [None]


def test_row_ids_of_an_upgraded_table_are_not_used_again() -> None:
    """A snapshot of version 2 may have row ids; the upgraded table continues after them."""
    base = commit(appended(1), add(2, parent=1, **{"first-row-id": 5, "added-rows": 3}))

    assert commit(base, {"action": "upgrade-format-version", "format-version": 3})["next-row-id"] == 8
