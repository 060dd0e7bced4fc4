# SPDX-License-Identifier: Apache-2.0
"""Commits to a table: the answer to each failure, lost races, commits without changes, gzip, and deletion of old
metadata files.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.model.errors import ServiceUnavailable, StateUnknown
from limnos.services.iceberg import commits
from limnos.services.iceberg.commits import LOST_RACES
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg.wire import (
    MISSING_LIST,
    ROOT,
    SCHEMA,
    at_once,
    commit,
    error_of,
    files_of,
    foreign_paths_accepted,
    local,
    make_table,
    metadata_of,
    nothing_done,
    placed,
    point,
    set_properties,
    snapshot,
    space_path,
    table_path,
)

UUID = "0b7a7a0e-6f0a-4d3b-9c76-2f4b8f9d3a11"
NEW_COLUMN = {"id": 3, "name": "c", "required": False, "type": "int"}
NEW_SCHEMA = {**SCHEMA, "fields": [*SCHEMA["fields"], NEW_COLUMN]}


@pytest.mark.parametrize(
    "requirement, text",
    [
        ({"type": "assert-create"}, "table already exists"),
        ({"type": "assert-table-uuid", "uuid": UUID}, "UUID does not match: expected "),
        ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 200}, "branch main has changed: "),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
            "branch main was created concurrently",
        ),
        ({"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 200}, "tag v1 has changed: "),
        ({"type": "assert-ref-snapshot-id", "ref": "none", "snapshot-id": 100}, "branch or tag none is missing"),
        ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9}, "last assigned field id changed: "),
        ({"type": "assert-current-schema-id", "current-schema-id": 9}, "current schema changed: "),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 9},
            "last assigned partition id changed: ",
        ),
        ({"type": "assert-default-spec-id", "default-spec-id": 9}, "default partition spec changed: "),
        ({"type": "assert-default-sort-order-id", "default-sort-order-id": 9}, "default sort order changed: "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_failed_requirement_returns_409(node: DriverNode, requirement: dict[str, object], text: str) -> None:
    """A failing requirement is 409 with the message that clients and the compatibility kit expect, and nothing is
    changed.
    """
    make_table(node, "a", "t")
    commit(node, "a", "t", updates=[snapshot(1), point(1), point(1, "v1", "tag")])

    with nothing_done(node):
        answer = commit(node, "a", "t", updates=[set_properties(k="v")], requirements=[requirement])

    status, kind, message = error_of(answer)
    assert (status, kind) == (409, "CommitFailedException")
    assert message.startswith(f"Requirement failed: {text}")


def test_commit_with_met_requirements_succeeds(lake: DriverNode) -> None:
    """A commit whose requirements hold succeeds. UUIDs are compared case-insensitively."""
    table = make_table(lake, "a", "t")
    requirements = [
        {"type": "assert-table-uuid", "uuid": str(table["metadata"]["table-uuid"]).upper()},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ]

    answer = commit(lake, "a", "t", updates=[snapshot(1), point(1)], requirements=requirements)

    assert answer.status == 200
    assert metadata_of(lake, "a", "t") == answer["metadata"]
    assert answer["metadata"]["metadata-log"][0]["metadata-file"] == table["metadata-location"]


@pytest.mark.parametrize(
    "updates, status, kind, text",
    [
        ([{"action": "frobnicate"}], 400, "IllegalArgumentException", "Unknown update action 'frobnicate'"),
        ([{}], 400, "IllegalArgumentException", "action"),
        (["set-properties"], 400, "IllegalArgumentException", "updates"),
        ([{"action": "set-properties"}], 400, "IllegalArgumentException", "updates"),
        ([{"action": "set-properties", "updates": {"k": 1}}], 400, "IllegalArgumentException", "k"),
        ([{"action": "assign-uuid", "uuid": UUID}], 400, "IllegalArgumentException", "Cannot reassign uuid"),
        ([{"action": "assign-uuid", "uuid": "x"}], 400, "IllegalArgumentException", "is not a UUID"),
        ([{"action": "upgrade-format-version", "format-version": 1}], 400, "IllegalArgumentException", "downgrade"),
        ([{"action": "upgrade-format-version", "format-version": 9}], 400, "IllegalArgumentException", "v9"),
        ([{"action": "set-current-schema", "schema-id": 7}], 400, "IllegalArgumentException", "7"),
        ([{"action": "set-current-schema", "schema-id": -1}], 400, "IllegalArgumentException", "schema"),
        ([{"action": "set-default-spec", "spec-id": 7}], 400, "IllegalArgumentException", "7"),
        ([{"action": "set-default-sort-order", "sort-order-id": 7}], 400, "IllegalArgumentException", "7"),
        ([{"action": "remove-schemas", "schema-ids": [0]}], 400, "IllegalArgumentException", "schema"),
        ([{"action": "remove-partition-specs", "spec-ids": [0]}], 400, "IllegalArgumentException", "spec"),
        ([point(7)], 400, "IllegalArgumentException", "700"),
        ([point(1, "main", "tag")], 400, "IllegalArgumentException", "main"),
        ([snapshot(1, manifest_list=f"{MISSING_LIST}.2")], 400, "IllegalArgumentException", "100"),
        ([snapshot(1, parent=1) | {"snapshot": {"snapshot-id": 5}}], 400, "IllegalArgumentException", ""),
        (
            [{"action": "add-schema", "schema": {**SCHEMA, "fields": [{**NEW_COLUMN, "type": "timestamp_ns"}]}}],
            400,
            "IllegalArgumentException",
            "timestamp_ns",
        ),
        (
            [{"action": "add-snapshot", "snapshot": {**snapshot(2, parent=1)["snapshot"], "sequence-number": 1}}],
            409,
            "CommitFailedException",
            "sequence number",
        ),
    ],
    ids=lambda value: str(value)[:48],
)
def test_invalid_update_returns_400_and_outdated_snapshot_409(
    node: DriverNode, updates: list[object], status: int, kind: str, text: str
) -> None:
    """An invalid update is refused with 400 and its name. A snapshot with an outdated sequence number is refused with
    409, so that the client rebuilds it.
    """
    make_table(node, "a", "t")
    commit(node, "a", "t", updates=[snapshot(1), point(1)])

    with nothing_done(node):
        answer = commit(node, "a", "t", updates=updates)

    assert error_of(answer)[:2] == (status, kind)
    assert text in error_of(answer)[2]


def test_updates_are_all_or_nothing(node: DriverNode) -> None:
    """If the last of several updates is refused, none of them is applied."""
    make_table(node, "a", "t")

    with nothing_done(node):
        answer = commit(node, "a", "t", updates=[set_properties(k="v"), snapshot(1), point(1), {"action": "unknown"}])

    assert answer.status == 400


def test_commit_without_effect_writes_nothing(node: DriverNode) -> None:
    """A commit without effect returns the unchanged table and writes neither rows nor files."""
    table = make_table(node, "a", "t")

    with nothing_done(node):
        answers = [
            commit(node, "a", "t", updates=updates)
            for updates in ([], [{"action": "remove-properties", "removals": ["x"]}])
        ]

    assert {answer["metadata-location"] for answer in answers} == {table["metadata-location"]}


def test_commit_to_a_missing_table_returns_404(node: DriverNode) -> None:
    """A commit to a missing table is 404; to finish a staged create in a missing namespace is 404 for the namespace."""
    answers = [
        commit(node, "gone", "t", updates=[set_properties(k="v")]),
        commit(node, "gone", "t", updates=[], requirements=[{"type": "assert-create"}]),
    ]

    assert [error_of(answer)[:2] for answer in answers] == [
        (404, "NoSuchTableException"),
        (404, "NoSuchNamespaceException"),
    ]


def test_unknown_metadata_fields_are_preserved(lake: DriverNode) -> None:
    """Unknown fields of schemas and snapshots are kept in the metadata; unknown fields of the request are ignored."""
    make_table(lake, "a", "t", schema={**SCHEMA, "x-schema": {"deep": [1, None]}}, unknown=1)
    update = snapshot(1)
    update["snapshot"]["x-snapshot"] = 2**53  # type: ignore[index]

    commit(lake, "a", "t", updates=[{**update, "x-update": 1}, point(1)])
    metadata = metadata_of(lake, "a", "t")

    assert metadata["schemas"][0]["x-schema"] == {"deep": [1, None]}
    assert metadata["snapshots"][0]["x-snapshot"] == 2**53
    assert "unknown" not in metadata


def test_concurrent_commits_all_succeed(lake: DriverNode) -> None:
    """Concurrent commits to one table on a node wait in a queue. None is lost, applied twice, or built for a lost
    race.
    """
    make_table(lake, "a", "t")
    lost = LOST_RACES[()]
    names = [f"k{number}" for number in range(4)]

    answers = at_once(
        lake, *(("POST", table_path("a", "t"), {"updates": [set_properties(**{name: "v"})]}) for name in names)
    )

    metadata = metadata_of(lake, "a", "t")
    assert [answer.status for answer in answers] == [200] * 4
    assert set(names) <= set(metadata["properties"])
    assert len(metadata["metadata-log"]) == 4
    assert len(files_of(lake)) == 5
    assert LOST_RACES[()] == lost


def test_second_of_two_concurrent_schema_changes_returns_409(lake: DriverNode) -> None:
    """Of two commits that require the same schema one succeeds and the other is 409."""
    make_table(lake, "a", "t")
    body = {
        "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 0}],
        "updates": [{"action": "add-schema", "schema": NEW_SCHEMA}, {"action": "set-current-schema", "schema-id": -1}],
    }

    answers = at_once(lake, *[("POST", table_path("a", "t"), body)] * 2)

    assert sorted(answer.status for answer in answers) == [200, 409]
    loser = next(answer for answer in answers if answer.status == 409)
    assert error_of(loser)[2].startswith("Requirement failed: current schema changed: ")
    assert len(files_of(lake)) == 2


def test_second_of_two_concurrent_branch_appends_returns_409(lake: DriverNode) -> None:
    """Of appends to different branches with one sequence number one is 409, so that its client rebuilds it."""
    make_table(lake, "a", "t")
    commit(lake, "a", "t", updates=[snapshot(1), point(1)])
    (added,) = placed(lake, "a", "t", updates=[snapshot(2, parent=1)])
    bodies = [
        {
            "requirements": [{"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": None}],
            "updates": [
                added | {"snapshot": {**added["snapshot"], "snapshot-id": number}},
                {**point(2, ref), "snapshot-id": number},
            ],
        }
        for ref, number in (("x", 201), ("y", 202))
    ]

    answers = at_once(lake, *(("POST", table_path("a", "t"), body) for body in bodies))

    assert sorted(answer.status for answer in answers) == [200, 409]
    assert len(metadata_of(lake, "a", "t")["snapshots"]) == 2


def test_concurrent_creates_succeed_exactly_once(lake: DriverNode) -> None:
    """Of concurrent creates of one name exactly one succeeds; the others are 409 and leave no file."""
    make_table(lake, "a", "other")
    body = {"name": "t", "schema": SCHEMA}

    answers = at_once(lake, *[("POST", f"{table_path('a', 't').rpartition('/')[0]}", body)] * 4)

    successes = [answer for answer in answers if answer.status == 200]
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert lake.get(table_path("a", "t")).json() == successes[0].json()
    assert len(files_of(lake)) == 2


def test_commit_concurrent_with_rename_succeeds_or_returns_404(lake: DriverNode) -> None:
    """A commit concurrent with a rename either comes first or gets 404. The table has one name and is complete."""
    make_table(lake, "a", "t")
    body = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}

    committed, renamed = at_once(
        lake,
        ("POST", table_path("a", "t"), {"updates": [set_properties(k="v")]}),
        ("POST", f"{ROOT}/tables/rename", body),
    )

    properties = metadata_of(lake, "a", "u")["properties"]
    assert renamed.status == 204
    assert (committed.status, properties.get("k")) in ((200, "v"), (404, None))
    assert lake.get(table_path("a", "t")).status == 404
    assert len(files_of(lake)) == (2 if committed.status == 200 else 1)


def test_commit_that_loses_races_until_its_deadline_returns_409(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that still loses races at its deadline is refused with 409, which means that it was not committed, and
    leaves no file.
    """
    make_table(node, "a", "t")
    monkeypatch.setattr(commits, "document_swap", _raise(commits.LostRace()))
    monkeypatch.setattr(commits, "PATIENCE_S", -1.0)
    lost = LOST_RACES[()]

    with nothing_done(node):
        answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert error_of(answer)[:2] == (409, "CommitFailedException")
    assert LOST_RACES[()] == lost + 1


def _raise(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_unexpected_commit_error_returns_500(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error in a commit is 500 with the error type that prevents clients from deleting files. Its message
    is only in the log.
    """
    make_table(node, "a", "t")
    monkeypatch.setattr(commits, "change_apply", _raise(ZeroDivisionError("secret")))

    answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    status, kind, message = error_of(answer)
    assert (status, kind) == (500, "CommitStateUnknownException")
    assert answer.headers["x-request-id"] in message
    assert "secret" not in message


def test_unknown_commit_outcome_retains_metadata_file(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the outcome of the store's commit is unknown, the answer is 500 `CommitStateUnknownException`, and the
    metadata file is kept.
    """
    make_table(node, "a", "t")
    monkeypatch.setattr(commits, "document_swap", _raise(StateUnknown("The connection was lost during COMMIT")))

    answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")
    assert len(files_of(node)) == 2


def test_unavailable_store_returns_503_and_deletes_metadata_file(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store certainly committed nothing, the answer is 503 with `Retry-After`, and the metadata file is
    deleted.
    """
    make_table(node, "a", "t")
    monkeypatch.setattr(
        commits, "document_swap", _raise(ServiceUnavailable("The store is busy: try again", retry_after_s=3))
    )

    with nothing_done(node):
        answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert error_of(answer)[:2] == (503, "ServiceUnavailableException")
    assert answer.headers["retry-after"] == "3"


def test_metadata_files_are_gzip_compressed_on_request(lake: DriverNode) -> None:
    """With the table property, metadata files are compressed, have the usual suffix, and are returned uncompressed."""
    created = make_table(lake, "a", "t", properties={"write.metadata.compression-codec": "gzip"})
    committed = commit(lake, "a", "t", updates=[set_properties(k="v")])
    back = commit(
        lake, "a", "t", updates=[{"action": "set-properties", "updates": {"write.metadata.compression-codec": "none"}}]
    )

    files = [local(answer["metadata-location"]) for answer in (created, committed, back)]
    assert [file.name.endswith(".gz.metadata.json") for file in files] == [True, True, False]
    assert [json.loads(gzip.decompress(file.read_bytes())) for file in files[:2]] == [
        created["metadata"],
        committed["metadata"],
    ]
    assert json.loads(files[2].read_bytes()) == metadata_of(lake, "a", "t")


def test_metadata_file_names_have_increasing_versions(node: DriverNode) -> None:
    """The version number in metadata file names increases, and each name has a new UUID."""
    created = make_table(node, "a", "t")
    answers = [commit(node, "a", "t", updates=[set_properties(k=str(number))]) for number in range(3)]

    names = [local(answer["metadata-location"]).name for answer in (created, *answers)]
    assert [name.partition("-")[0] for name in names] == ["00000", "00001", "00002", "00003"]
    assert len({name.partition("-")[2] for name in names}) == 4


@pytest.mark.parametrize("below", ["/m", "/metadata/deep", "/.other"])
def test_metadata_path_sets_directory_of_metadata_files(node: DriverNode, below: str) -> None:
    """`write.metadata.path` sets the directory of later metadata files, below the table's location."""
    place = f"{make_table(node, 'a', 't')['metadata']['location']}{below}"

    answer = commit(node, "a", "t", updates=[set_path(place)])

    assert str(answer["metadata-location"]).startswith(f"{place}/00001-")
    assert local(answer["metadata-location"]).exists()


def set_path(place: str) -> dict[str, object]:
    """Return the update that sets the directory of metadata files."""
    return {"action": "set-properties", "updates": {"write.metadata.path": place}}


@pytest.mark.parametrize(
    "place", ["{root}/elsewhere", "{victim}/metadata", "{victim}", "{own}x", "{root}", "{own}", "{own}/data"]
)
def test_metadata_path_outside_the_location_is_refused(node: DriverNode, place: str) -> None:
    """A metadata path outside of the table's location is refused, whether or not another table uses it; so is one that
    contains the data files, or lies among them.
    """
    victim, own = (make_table(node, "a", name)["metadata"]["location"] for name in ("victim", "t"))
    chosen = place.format(root=f"file://{node.data}/warehouse/main", victim=victim, own=own)

    with nothing_done(node):
        committed = commit(node, "a", "t", updates=[set_path(chosen)])
        body = {"name": "u", "schema": SCHEMA, "properties": {"write.metadata.path": chosen}}
        created = node.post(f"{space_path('a')}/tables", body)

    for answer in (committed, created):
        assert error_of(answer)[:2] == (400, "IllegalArgumentException")
        assert "write.metadata.path" in error_of(answer)[2]


@pytest.mark.parametrize("key", ["write.data.path", "write.object-storage.path", "write.folder-storage.path"])
@pytest.mark.parametrize("below", ["/metadata", "/metadata/x", "", "//metadata", "/x/../metadata", "/%6detadata"])
def test_data_path_among_metadata_files_is_refused(node: DriverNode, key: str, below: str) -> None:
    """No commit or create sends data files into the directory of metadata files, or into one that contains it."""
    own = make_table(node, "a", "t")["metadata"]["location"]
    new = f"{own}2"
    creation = {"name": "u", "schema": SCHEMA, "location": new, "properties": {key: f"{new}{below}"}}

    with nothing_done(node):
        committed = commit(node, "a", "t", updates=[set_properties(**{key: f"{own}{below}"})])
        created = [
            node.post(f"{space_path('a')}/tables", {**creation, "stage-create": stage}) for stage in (False, True)
        ]

    for answer in (committed, *created):
        assert error_of(answer)[:2] == (400, "IllegalArgumentException")


def test_move_away_from_the_metadata_path_is_refused(node: DriverNode) -> None:
    """A commit that moves the table away from its metadata path is refused unless it sets another one."""
    own = make_table(node, "a", "t")["metadata"]["location"]
    assert commit(node, "a", "t", updates=[set_path(f"{own}/m")]).status == 200
    move = {"action": "set-location", "location": f"{own}x"}

    refused = commit(node, "a", "t", updates=[move])
    moved = commit(node, "a", "t", updates=[move, set_path(f"{own}x/m")])

    assert error_of(refused)[0] == 400
    assert str(moved["metadata-location"]).startswith(f"{own}x/m/")


def test_stored_metadata_path_outside_the_location_is_ignored(node: DriverNode) -> None:
    """A stored metadata path outside of the table's location, as an older release allowed it, is ignored: files are
    written below the location.
    """
    table = make_table(node, "a", "t")
    own, other = table["metadata"]["location"], f"file://{node.data}/warehouse/main/elsewhere"
    old = {**table["metadata"], "properties": {"write.metadata.path": other}}
    change_body(node, old)

    first, second = (commit(node, "a", "t", updates=[set_properties(k=str(i))]) for i in range(2))

    for answer in (first, second):
        assert str(answer["metadata-location"]).startswith(f"{own}/metadata/")
    assert second["metadata"]["properties"]["write.metadata.path"] == other


def change_body(node: DriverNode, metadata: object) -> None:
    """Replace the only document, as an older release might have left it."""
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
        connection.execute("UPDATE document SET body = ?, version = version + 1", (json.dumps(metadata).encode(),))
        connection.execute("UPDATE store SET epoch = epoch + 1")  # makes all views start empty


def test_move_to_location_of_another_table_returns_400(lake: DriverNode) -> None:
    """A move to another table's location, in every spelling, is refused with 400 and this reason, and writes
    nothing.
    """
    victim = make_table(lake, "a", "victim")["metadata"]["location"]
    before = make_table(lake, "a", "t")
    files = files_of(lake)

    places = [victim, f"{victim}/", f"{victim}/data", str(victim).rpartition("/")[0]]
    answers = [commit(lake, "a", "t", updates=[{"action": "set-location", "location": place}]) for place in places]

    assert [error_of(answer)[:2] for answer in answers] == [(400, "IllegalArgumentException")] * 4
    assert lake.get(table_path("a", "t")).json() == before
    assert files_of(lake) == files


def test_foreign_files_that_leave_the_log_are_retained(node: DriverNode) -> None:
    """When entries leave the log of a registered table, their files in other tables' locations and outside of all roots
    are kept.
    """
    victim = make_table(node, "a", "victim")
    precious = node.data / "precious.txt"
    precious.write_text("x")
    table = make_table(node, "a", "t")
    node.delete(table_path("a", "t"))
    own = local(table["metadata"]["location"]) / "old.metadata.json"
    own.write_text("x")
    log = [f"file://{precious}", victim["metadata-location"], f"file://{own}"]
    settings = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    file = local(table["metadata-location"])
    changed = table["metadata"] | {
        "metadata-log": [{"timestamp-ms": 1, "metadata-file": each} for each in log],
        "properties": settings,
    }
    file.write_text(json.dumps(changed))
    body = {"name": "t", "metadata-location": table["metadata-location"]}
    with foreign_paths_accepted():
        assert node.post(f"{space_path('a')}/register", body).status == 200

    assert commit(node, "a", "t", updates=[set_properties(k="v")]).status == 200

    assert precious.exists()
    assert local(victim["metadata-location"]).exists()
    assert not own.exists()


def _check_files_exist(node: DriverNode, answers: list[DriverAnswer]) -> list[bool]:
    return [local(answer["metadata-location"]).exists() for answer in answers]


@pytest.mark.parametrize("deletes", ["true", "false"])
def test_files_that_leave_the_log_are_deleted_only_on_request(lake: DriverNode, deletes: str) -> None:
    """Metadata files that leave the log are deleted after the commit only if the table property requests that."""
    properties = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": deletes}
    make_table(lake, "a", "t", properties=properties)

    answers = [commit(lake, "a", "t", updates=[set_properties(k=str(number))]) for number in range(5)]

    log = [entry["metadata-file"] for entry in metadata_of(lake, "a", "t")["metadata-log"]]
    assert log == [answer["metadata-location"] for answer in answers[2:4]]
    assert _check_files_exist(lake, answers) == [deletes == "false"] * 2 + [True] * 3


def test_metadata_log_times_never_decrease(node: DriverNode) -> None:
    """Times in the metadata log never decrease, even if commits follow each other quickly."""
    make_table(node, "a", "t")
    for number in range(5):
        commit(node, "a", "t", updates=[set_properties(k=str(number))])

    metadata = metadata_of(node, "a", "t")
    times = [entry["timestamp-ms"] for entry in metadata["metadata-log"]] + [metadata["last-updated-ms"]]
    assert all(earlier <= later for earlier, later in pairwise(times))


def test_large_metadata_is_committed_without_blocking_requests(lake: DriverNode) -> None:
    """A document of half a megabyte is committed and returned like a small one. Other requests are answered
    meanwhile.
    """
    make_table(lake, "a", "t")
    make_table(lake, "a", "small")
    big = {f"p{number}": "x" * 500 for number in range(1000)}
    commit(lake, "a", "t", updates=[set_properties(**big)])

    answers = at_once(
        lake,
        ("POST", table_path("a", "t"), {"updates": [set_properties(k="v")]}),
        ("POST", table_path("a", "small"), {"updates": [set_properties(k="v")]}),
        ("GET", table_path("a", "t"), None),
    )

    assert [answer.status for answer in answers] == [200] * 3
    assert metadata_of(lake, "a", "t")["properties"].items() >= {**big, "k": "v"}.items()


def test_deadline_before_the_store_returns_503(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the deadline passes before the change reaches the store, the answer is 503 with `Retry-After`, and nothing is
    changed.
    """
    make_table(node, "a", "t")
    node.built.application.deadlines.seconds = 0.05

    async def slow(*_: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(commits, "change_apply", slow)

    with nothing_done(node):
        answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert error_of(answer)[:2] == (503, "ServiceUnavailableException")
    assert int(answer.headers["retry-after"]) > 0
    assert "nothing was changed" in error_of(answer)[2]


def test_deadline_in_the_store_returns_unknown_state(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the deadline passes while the store executes the change, the answer is 500 of unknown state, and the metadata
    file is kept.
    """
    make_table(node, "a", "t")
    node.built.application.deadlines.seconds = 0.05
    submit = node.built.services.store.submit

    async def slow(*arguments: object, **more: object) -> object:
        done = await submit(*arguments, **more)
        await asyncio.sleep(30)
        return done

    monkeypatch.setattr(node.built.services.store, "submit", slow)

    answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")
    assert "check before you repeat" in error_of(answer)[2]
    assert len(files_of(node)) == 2
    assert metadata_of(node, "a", "t")["properties"]["k"] == "v"


def test_deadline_after_the_store_returns_unknown_state(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the deadline passes after the commit, the answer is 500 of unknown state and does not say that nothing was
    changed.
    """
    make_table(node, "a", "t")
    node.built.application.deadlines.seconds = 0.05

    async def slow(*_: object, **__: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(commits, "delete_old_metadata_files", slow)

    answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")
    assert metadata_of(node, "a", "t")["properties"]["k"] == "v"
