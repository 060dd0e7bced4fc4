# SPDX-License-Identifier: Apache-2.0
"""Removal of orphan files: which files are deleted after how many days, which are kept, and in whose name."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.files import place_key
from limnos.rooms.maintenance.services.orphans.rounds import OrphanRound
from limnos.services.iceberg import orphan_fence
from limnos.services.iceberg.orphan_fence import ORPHAN_FENCE, FencedTables
from limnos.store.sql import Sql
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.iceberg_manifests import data_file, entry, manifest_list
from tests.rooms.lance.http.wire import make_space
from tests.rooms.lance.http.wire import table as lance_table
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    MAINTENANCE,
    HistoryTable,
    add_policy,
    explained,
    findings,
)
from tests.rooms.maintenance.services.live_files import files_of_table, lost_files
from tests.rooms.maintenance.services.orphans.histories import (
    NOW_MS,
    POLICY,
    clock_of,
    no_wait,
    planted,
    run_days,
    run_round,
    turn_on,
    write_orphan,
)
from tests.rooms.maintenance.services.test_operations import work
from tests.rooms.pipelines.http.test_runs import finish, started
from tests.rooms.sqlpp.http.wire import rows


@pytest.fixture
def table(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> HistoryTable:
    """A table with three snapshots on a node that removes orphan files of all tables."""
    no_wait(monkeypatch)
    history_table = HistoryTable(lake)
    history_table.append(3)
    turn_on(lake)
    return history_table


def lost(table: HistoryTable) -> list[str]:
    """Return the table's needed files that are missing."""
    return lost_files(files_of_table(str(table.node.get(wire.table_path("a", "t"))["metadata-location"])))


def test_orphan_file_is_deleted_after_three_days(table: HistoryTable) -> None:
    """An orphan file is deleted at the first check after three days, and no other file is."""
    clock, path = clock_of(table.node), write_orphan(table)
    assert run_days(table.node, clock, 3) == 0
    assert path.exists()
    assert run_round(table.node).files == 1
    assert not path.exists()
    assert lost(table) == []


def explained_orphans(table: HistoryTable, *, user: str = "admin") -> dict[str, Any]:
    """Return the explanation of the table's orphan files."""
    return explained(table.node, user=user)["orphans"]  # type: ignore[no-any-return]


def test_commit_that_adds_a_removed_file_is_refused(table: HistoryTable) -> None:
    """A commit that adds a file which the removal has deleted is refused. After the file is written again, the commit
    succeeds.
    """
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table, "data/slow.parquet")
    assert run_days(node, clock, 4) == 1
    forget_fence(node)
    assert commit_file(table, "data/slow.parquet", size=6).status == 409
    assert lost(table) == []
    path.write_bytes(b"orphan")
    assert commit_file(table, "data/slow.parquet", size=6).status == 200
    assert lost(table) == []


def commit_file(table: HistoryTable, name: str, *, size: int) -> DriverAnswer:
    """Commit a file that a writer wrote earlier, by its name below the table's location or by its location."""
    answer = table.node.post(*committing(table, name, size=size))
    table.snapshots += answer.status == 200
    return answer


def committing(table: HistoryTable, name: str, *, size: int) -> tuple[str, dict[str, object]]:
    """Return the target and body of the request of `commit_file`, and write its manifests."""
    number = table.snapshots + 1
    location = name if name.startswith("file:") else f"{table.location}/{name}"
    added = entry(data_file(location, file_size_in_bytes=size))
    place = table.write(
        f"late{number}.avro", manifest_list([*table.manifests, table.manifest(f"lm{number}.avro", [added])])
    )
    snapshot_update = wire.snapshot(number, manifest_list=place, parent=table.snapshots)
    snapshot_update["snapshot"] = {**snapshot_update["snapshot"], "sequence-number": number}  # type: ignore[dict-item]
    return wire.table_path("a", table.name), {"requirements": [], "updates": [snapshot_update, wire.point(number)]}


def forget_fence(node: DriverNode) -> None:
    """Clear the node's cache of tables with files that are being deleted."""
    ORPHAN_FENCE.of(node.built.services).fenced = FencedTables()


def test_commit_long_after_reading_the_fence_is_503(table: HistoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that ends long after its node read the fence is 503, and nothing is committed."""
    monkeypatch.setattr(orphan_fence, "LIST_AGE_MAX_S", -1.0)
    assert commit_file(table, "data/1.parquet", size=1_000).status == 503
    assert table.ids() == [1, 2, 3]


def test_rewritten_or_missing_file_restarts_its_waiting_time(table: HistoryTable) -> None:
    """The waiting time of a file starts again if the file is rewritten or is missing at one check."""
    node, clock = table.node, clock_of(table.node)
    path, other = write_orphan(table), write_orphan(table, "data/other.parquet")
    assert run_days(node, clock, 2) == 0
    path.write_bytes(b"longer than before")
    content = other.read_bytes()
    other.unlink()
    run_round(node)
    other.write_bytes(content)
    clock.at_ms += DAY_MS
    assert run_days(node, clock, 2) == 0
    assert run_days(node, clock, 3) == 2


def test_clock_jumps_count_little_towards_the_waiting_time(table: HistoryTable) -> None:
    """The waiting time counts a clock jump of a year as two days and a clock set back as zero. A modification time in
    the future delays the deletion.
    """
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    future = write_orphan(table, "data/future.parquet", at_ms=NOW_MS + 5_000 * DAY_MS)
    run_round(node)
    clock.at_ms += 365 * DAY_MS
    assert run_round(node).files == 0
    clock.at_ms -= 30 * DAY_MS
    assert run_round(node).files == 0
    clock.at_ms += 32 * DAY_MS
    assert run_round(node).files == 1
    assert (path.exists(), future.exists()) == (False, True)


@pytest.mark.parametrize(
    "blocked, reason",
    [
        ("gc", "gc.enabled is false"),
        ("missing", "are missing"),
        ("newer", "another catalog may write here"),
        ("elsewhere", "are outside of its locations"),
        ("unreadable", "segment"),
    ],
)
def test_blocked_table_loses_no_file_and_reason_is_explained(table: HistoryTable, blocked: str, reason: str) -> None:
    """No file of a table is deleted while its removal is blocked, and the explanation has the reason."""
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    if blocked == "gc":
        assert wire.commit(node, "a", "t", updates=[wire.set_properties(**{"gc.enabled": "false"})]).status == 200
    elif blocked == "missing":
        wire.local(f"{table.location}/data/2.parquet").unlink()
    elif blocked == "newer":
        wire.local(f"{table.location}/metadata/00099-x.metadata.json").write_text("{}")
    else:
        away = path.parents[2] / "away.parquet"
        away.write_bytes(b"123456")
        name = away.as_uri() if blocked == "elsewhere" else f"{table.location}/../away.parquet"
        assert commit_file(table, name, size=6).status == 200
    assert run_days(node, clock, 6) == 0
    assert path.exists()
    explanation = explained_orphans(table)["blocked"]
    assert reason in explanation
    assert blocked != "elsewhere" or "away.parquet" in explanation


def test_protected_tables_and_held_runs_block_the_deletion(table: HistoryTable) -> None:
    """No file of a protected table, and of a table that a held run uses, is deleted."""
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    protection = "/api/limnos/v1/metalakes/lake/objects/table/main.a.t/protection"
    assert node.put(protection, {}).status == 200
    assert run_days(node, clock, 6) == 0
    assert operations(node)[0]["result"] == "the table is protected"
    assert node.delete(protection).status == 200
    pin = {"table": ["main", "a", "t"], "snapshot": 300, "fingerprint": None}
    run = started(node, options={"pins": [pin]})
    assert finish(node, run, "held").status == 200
    assert run_days(node, clock, 6) == 0
    assert "held" in operations(node)[0]["result"]
    assert finish(node, run, "discarded").status == 200
    assert run_days(node, clock, 1) == 1
    assert not path.exists()


def operations(node: DriverNode) -> list[dict[str, Any]]:
    """Return the operations on tables, newest first."""
    return node.get(f"{MAINTENANCE}/operations").json()["operations"]  # type: ignore[no-any-return]


def test_foreign_files_links_and_metadata_are_not_deleted(table: HistoryTable) -> None:
    """Files with foreign names or in foreign directories, links, metadata files and checksums of existing files are not
    deleted.
    """
    node, clock = table.node, clock_of(table.node)
    names = ["data/notes.txt", "other/x.parquet", "x.parquet", "metadata/00000-x.metadata.json", "data/_SUCCESS"]
    stay = [write_orphan(table, name) for name in names]
    target = write_orphan(table, "other/y.parquet")
    link = wire.local(f"{table.location}/data/link.parquet")
    link.symlink_to(target)
    sidecars = [write_orphan(table, "data/.1.parquet.crc"), write_orphan(table, "data/.gone.parquet.crc")]
    assert run_days(node, clock, 5) == 1
    assert all(each.exists() for each in (*stay, target, link, sidecars[0]))
    assert not sidecars[1].exists()


def test_orphan_files_are_named_to_users_who_may_read_rows(table: HistoryTable) -> None:
    """Names of files may have values of partitions: a user with MODIFY_TABLE alone gets the counts of orphan files, and
    no name.
    """
    node, clock = table.node, clock_of(table.node)
    write_orphan(table)
    assert run_days(node, clock, 1) == 0
    for user, rights in (("mod", "modify_table"), ("both", "modify_table select_table")):
        grant(node, user, f"use_catalog use_schema {rights}", kind="CATALOG", on="main")

    explained_to = {user: explained_orphans(table, user=user) for user in ("mod", "both")}

    assert {user: len(each["files"]) for user, each in explained_to.items()} == {"mod": 0, "both": 1}
    assert {each["candidates"] for each in explained_to.values()} == {1}


def test_setting_and_nearest_policy_select_the_checked_tables(table: HistoryTable) -> None:
    """With the setting `off`, policies have no effect. With `policies`, only tables with a policy are checked,
    according to the nearest policy and in its owner's name.
    """
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    add_policy(node, "clean", POLICY, {"olderThanDays": 3}, on="main", kind="catalog")
    turn_on(node, "off")
    assert run_days(node, clock, 5) == 0
    assert explained_orphans(table)["removal"] == "off: setting maintenance.orphan_files"
    turn_on(node, "policies")
    add_policy(node, "dry", POLICY, {"olderThanDays": 3, "dryRun": True}, on="main.a", kind="schema")
    assert run_days(node, clock, 9) == 0
    assert explained_orphans(table)["candidates"] == 1
    assert node.patch("/api/metalakes/lake/policies/dry", {"enable": False}).status == 200
    assert run_days(node, clock, 9) == 0
    assert node.delete("/api/metalakes/lake/policies/dry").status == 200
    assert run_days(node, clock, 9) == 1
    assert not path.exists()
    (row,) = [each for each in operations(node) if each["kind"] == "orphans"]
    assert (row["state"], row["user"], row["policy"]) == ("done", "admin", "clean")


def test_round_creates_one_token_for_each_user(table: HistoryTable) -> None:
    """A round creates one token for each user whose tables it checks, and revokes it. A user's tokens of earlier rounds
    are deleted a day after their end.
    """
    node = table.node
    clock = clock_of(node)
    for name in ("u", "v"):
        HistoryTable(node, name).append(1)
    assert run_round(node).checked == 3
    first = tokens_of_rounds(node)
    clock.at_ms += 8 * DAY_MS
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    node.done("PUT", f"{API}/lake/owners/TABLE/main.a.u", {"name": "writer", "type": "USER"})
    assert run_round(node).checked == 3
    second = tokens_of_rounds(node)
    assert list(first.values()) == [("admin", True)]
    assert sorted(second.values()) == [("admin", True), ("writer", True)]
    assert not first.keys() & second.keys()


def tokens_of_rounds(node: DriverNode) -> dict[int, tuple[str, bool]]:
    """Return the tokens that rounds created, by id: their user, and whether they are revoked."""
    statement = Sql("SELECT id, user_name, revoked FROM token WHERE name = 'maintenance orphans'")
    permit = node.built.upkeep._permit
    table = node.runner.run(node.built.services.store.submit(permit, lambda tx: tx.rows(statement, {})))
    return {row[0]: (str(row[1]), bool(row[2])) for row in table}


def test_datasets_and_lance_tables_are_skipped(table: HistoryTable) -> None:
    """The task removes no files of SQL++ datasets and of Lance tables, which have their own removal. The explanation,
    the result of a requested operation, or its refusal says so.
    """
    node, clock = table.node, clock_of(table.node)
    rows(node, "create type Heap as { id: bigint }; create dataset heaps(Heap) primary key id")
    make_space(node, "lance", "s")
    places = [
        str(node.get(wire.table_path("Default", "heaps"))["metadata"]["location"]),  # type: ignore[index]
        str(node.done("POST", f"{lance_table('lance', 's', 't')}/declare", {})["location"]),
    ]
    files = [wire.local(f"{place}/data/orphan.parquet") for place in places]
    for each in files:
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(b"orphan")
    assert run_days(node, clock, 6) == 0
    assert all(each.exists() for each in files)

    explanation = explained(node, "Default.heaps")
    assert explanation["orphans"]["blocked"] == "SQL++ removes the files of its datasets by itself"
    assert "SQL++ compacts its datasets by itself, and expires their snapshots" in explanation["blocked"]
    for kind in ("orphans", "expire"):
        assert node.post(f"{MAINTENANCE}/operations", {"table": "Default.heaps", "operation": kind}).status == 200
    work(node)
    results = {each["kind"]: each["result"] for each in operations(node)}
    assert results["orphans"] == "nothing is removed: SQL++ removes the files of its datasets by itself"
    assert results["expire"] == "SQL++ expires the snapshots of its datasets by itself"
    body = {"table": "s.t", "operation": "orphans"}
    refused = node.post(f"{MAINTENANCE.replace('/main/', '/lance/')}/operations", body)
    assert (refused.status, "lance.debris_age_s" in str(refused.body)) == (405, True)


def test_policy_author_without_modify_privilege_removes_nothing(table: HistoryTable) -> None:
    """A policy whose author may not modify the table removes nothing, and the explanation says so."""
    node, clock = table.node, clock_of(table.node)
    write_orphan(table)
    turn_on(node, "policies")
    grant(node, "maker", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    add_policy(node, "clean", POLICY, {}, on="main", kind="catalog")
    node.done("PUT", f"{API}/lake/owners/POLICY/clean", {"name": "maker", "type": "USER"})
    update = {"@type": "updateContent", "policyType": POLICY, "newContent": {}}
    node.done("PUT", f"{API}/lake/policies/clean", {"updates": [update]}, user="maker")
    assert run_days(node, clock, 12) == 0
    assert "maker" in explained_orphans(table)["blocked"]


def test_each_deleted_file_is_audited(table: HistoryTable) -> None:
    """An audit record has the deleted file, its size, the reason and the user."""
    node, clock = table.node, clock_of(table.node)
    write_orphan(table)
    assert run_days(node, clock, 4) == 1
    lines = node.get("/api/limnos/v1/audit?metalake=lake&action=remove_orphan_file").json()["lines"]
    (line,) = [each for each in lines if each["action"] == "remove_orphan_file"]
    assert line["user"] == "admin"
    assert line["detail"].startswith(
        "data/orphan.parquet (6 bytes): no snapshot and no metadata of the table refers to it"
    )


def test_requested_check_does_not_shorten_the_waiting_time(table: HistoryTable) -> None:
    """A user who may modify the table may request a check, which does not shorten the waiting time. If the removal is
    off, the request is 405.
    """
    node = table.node
    clock_of(node)
    write_orphan(table)
    body = {"table": "a.t", "operation": "orphans"}
    assert node.post(f"{MAINTENANCE}/operations", body).status == 200
    work(node)
    (row,) = operations(node)
    assert (row["state"], row["kind"]) == ("done", "orphans")
    assert row["result"] == "deleted no files; 1 orphan file waits until it is 3 days old"
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert node.post(f"{MAINTENANCE}/operations", body, user="reader").status == 403
    turn_on(node, "off")
    assert node.post(f"{MAINTENANCE}/operations", body).status == 405


def test_requested_dry_run_returns_the_number_of_orphan_files(table: HistoryTable) -> None:
    """If the policy is a dry run, the result has the number of orphan files found and does not mention a waiting
    time.
    """
    node = table.node
    clock_of(node)
    write_orphan(table)
    add_policy(node, "look", POLICY, {"olderThanDays": 3, "dryRun": True}, on="main", kind="catalog")
    assert node.post(f"{MAINTENANCE}/operations", {"table": "a.t", "operation": "orphans"}).status == 200
    work(node)

    assert operations(node)[0]["result"] == "dry run: 1 orphan file was found"


def test_plan_lists_orphan_files_and_hides_the_policy_name(table: HistoryTable) -> None:
    """The plan lists tables with orphan files. A user who may not load the policy sees its content without its name."""
    node = table.node
    clock_of(node)
    write_orphan(table)
    add_policy(node, "secret-name", POLICY, {"olderThanDays": 3}, on="main", kind="catalog")
    run_round(node)
    assert findings(node)["a.t", "orphans"]["figures"] == {"files": 1, "bytes": 6}
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    (policy,) = explained(node, user="writer")["policies"]
    assert (policy["name"], policy["type"]) == (None, POLICY)
    assert "secret-name" not in str(explained(node, user="writer"))
    assert explained(node)["policies"][0]["name"] == "secret-name"


def restore_backup(node: DriverNode) -> None:
    """Give the store a new epoch, as a restore of a backup does."""
    change = Sql("UPDATE store SET epoch = epoch + 1")
    permit = node.built.upkeep._permit
    node.runner.run(node.built.services.store.submit(permit, lambda tx: tx.count(change, {})))


def test_store_epoch_change_restarts_the_waiting_time(table: HistoryTable) -> None:
    """After a change of the store's epoch, no file is deleted before its waiting time has passed again."""
    node, clock = table.node, clock_of(table.node)
    write_orphan(table)
    assert run_days(node, clock, 3) == 0
    restore_backup(node)
    assert run_days(node, clock, 3) == 0
    assert run_days(node, clock, 1) == 1


def test_store_epoch_change_restarts_the_wait_of_marked_files(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of the store's epoch, the waiting time starts again also for a file that is marked for
    deletion.
    """
    node, clock = table.node, clock_of(table.node)
    write_orphan(table)
    assert run_days(node, clock, 3) == 0
    with planted(monkeypatch, OrphanRound, "remove", nothing_removed):
        assert run_days(node, clock, 1) == 0
    restore_backup(node)
    assert run_days(node, clock, 3) == 0
    assert run_days(node, clock, 1) == 1


async def nothing_removed(round_: OrphanRound) -> dict[int, object]:
    """Skip the deletion of the marked files, as a crash would."""
    assert round_.marked
    return {}


@pytest.mark.parametrize("kind", ["fileset", "Lance table"])
def test_object_inside_a_tables_directory_blocks_the_deletion(table: HistoryTable, kind: str) -> None:
    """A request cannot put an object inside a table's directory. If the register has such an object, no file of the
    table is deleted until the object is moved.
    """
    node, clock = table.node, clock_of(table.node)
    inside = f"{table.location}/data/inside"
    if kind == "fileset":
        root = f"{API}/lake/catalogs"
        node.done("POST", root, {"name": "files", "type": "fileset"})
        node.done("POST", f"{root}/files/schemas", {"name": "raw"})
        path, body = f"{root}/files/schemas/raw/filesets", {"name": "f"}
        refused = node.post(path, {**body, "type": "EXTERNAL", "storageLocation": inside})
        object_location = str(node.done("POST", path, body)["fileset"]["storageLocation"])
    else:
        make_space(node, "lance", "s")
        path = f"{lance_table('lance', 's', 't')}/declare"
        refused = node.post(path, {"location": inside})
        object_location = str(node.done("POST", path, {})["location"])
    assert refused.status in (400, 409), refused.body
    assert place_of(node, object_location) == 1, "its location is registered"

    file = write_orphan(table, "data/inside/orphan.parquet")
    assert move_place(node, object_location, to=inside) == 1
    assert run_days(node, clock, 6) == 0
    assert file.exists()
    assert "below its location" in operations(node)[0]["result"]
    assert move_place(node, inside, to=object_location) == 1
    assert run_days(node, clock, 1) == 1, "no other reason keeps the file"


def place_of(node: DriverNode, location: str) -> int:
    """Return the number of register entries with a location."""
    count = Sql("SELECT 1 FROM place WHERE location = :location")
    permit = node.built.upkeep._permit
    return len(
        node.runner.run(
            node.built.services.store.submit(permit, lambda tx: tx.rows(count, {"location": place_key(location)}))
        )
    )


def move_place(node: DriverNode, location: str, *, to: str) -> int:
    """Change the location of a register entry without the usual checks. Returns the number of changed entries."""
    change = Sql("UPDATE place SET location = :to WHERE location = :location")
    params = {"location": place_key(location), "to": place_key(to)}
    permit = node.built.upkeep._permit
    return node.runner.run(node.built.services.store.submit(permit, lambda tx: tx.count(change, params)))
