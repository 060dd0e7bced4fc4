# SPDX-License-Identifier: Apache-2.0
"""Tasks over the admin API: a purge that fails is retried, fails for good, is listed, and is retried on request."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from pathlib import Path

import fastavro
import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.app.upkeep import WAITING
from limnos.formats.avro import BLOCK_BYTES_MAX
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import commit, foreign_paths_accepted, local, make_table, point, snapshot, table_path

TRIES = 5


def poisoned(node: DriverNode) -> Path:
    """Drop a table with purge whose manifest list is invalid. Returns the list's path."""
    home = local(make_table(node, "a", "t")["metadata"]["location"])
    listed = home / "metadata" / "snap-1.avro"
    listed.write_bytes(b"no Avro")
    assert commit(node, "a", "t", updates=[snapshot(1, manifest_list=f"file://{listed}"), point(1)]).status == 200
    assert node.delete(f"{table_path('a', 't')}?purgeRequested=true").status == 204
    return listed


def work(node: DriverNode) -> int:
    """Run the due tasks without waiting between attempts. Returns the number of attempts."""
    tries = 0
    while node.runner.run(node.built.upkeep.run_one()):
        tries += 1
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
            connection.execute("UPDATE task SET due_at = 0 WHERE ended_at IS NULL")
    node.runner.run(node.built.upkeep.count())
    return tries


def test_task_fails_for_good_after_limited_attempts(node: DriverNode) -> None:
    """After a limited number of attempts a task fails for good. It stays in the list and in the metric."""
    poisoned(node)

    tries = work(node)

    (dead,) = node.get(f"{OWN}/tasks").json()["tasks"]
    assert tries == TRIES
    assert (dead["kind"], dead["state"], dead["attempts"], dead["due_at"]) == ("purge-table", "dead", TRIES, None)
    assert "not a readable Avro file" in dead["error"]
    assert WAITING == {("purge-table", "dead"): 1}
    assert 'limnos_tasks_open{kind="purge-table",state="dead"} 1' in node.get("/metrics").body.decode()
    task_details = node.get(f"{OWN}/tasks/{dead['id']}").json()
    assert task_details["payload"]["metadata-location"].endswith(".metadata.json")
    assert node.get(f"{OWN}/tasks?state=waiting").json() == {"tasks": []}
    assert node.get(f"{OWN}/tasks?after={dead['id']}").json() == {"tasks": []}


def test_manifest_list_decompression_bomb_fails_its_task(node: DriverNode) -> None:
    """If a manifest list decompresses beyond the limit, its task fails with this reason."""
    schema = {"type": "record", "name": "manifest_file", "fields": [{"name": "manifest_path", "type": "string"}]}
    data = io.BytesIO()
    fastavro.writer(data, schema, [{"manifest_path": "x" * (BLOCK_BYTES_MAX + 1)}], codec="deflate")
    listed = poisoned(node)
    listed.write_bytes(data.getvalue())

    work(node)

    (dead,) = node.get(f"{OWN}/tasks").json()["tasks"]
    assert (dead["state"], dead["attempts"]) == ("dead", TRIES)
    assert "unpacks to more than" in dead["error"]
    assert listed.exists()


def test_retry_after_repair_completes_a_failed_task(node: DriverNode) -> None:
    """A retry after the repair completes the task."""
    listed = poisoned(node)
    work(node)
    (dead,) = node.get(f"{OWN}/tasks").json()["tasks"]
    listed.unlink()

    answer = node.post(f"{OWN}/tasks/{dead['id']}/retry")
    work(node)

    assert answer.json() == {"retried": dead["id"]}
    assert not listed.parents[1].exists()
    assert [node.get(f"{OWN}/tasks?state={state}").json() for state in ("dead", "waiting", "done")] == [
        {"tasks": []}
    ] * 3
    assert node.post(f"{OWN}/tasks/{dead['id']}/retry").status == 404


def test_purge_result_lists_files_not_deleted(node: DriverNode) -> None:
    """The result of a purge lists the files that the purge did not delete."""
    home = make_table(node, "a", "t")["metadata"]["location"]
    statistics = {
        "snapshot-id": 1,
        "statistics-path": f"file://{node.data}/admin.token",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    updates = [
        snapshot(1, manifest_list=f"{home}/none.avro"),
        point(1),
        {"action": "set-statistics", "snapshot-id": 1, "statistics": statistics},
    ]
    with foreign_paths_accepted():
        assert commit(node, "a", "t", updates=updates).status == 200
    node.delete(f"{table_path('a', 't')}?purgeRequested=true")

    work(node)

    (done,) = node.get(f"{OWN}/tasks?state=done").json()["tasks"]
    assert f"kept 1, as they are not below the table's own locations: file://{node.data}/admin.token" in done["result"]
    assert (node.data / "admin.token").exists()


def test_task_of_an_unknown_kind_waits_for_a_newer_node(node: DriverNode) -> None:
    """A task whose kind is unknown to this release stays in the queue."""
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
        connection.execute(
            "INSERT INTO task (id, kind, payload, created_at, due_at, attempts, leased_until)"
            " VALUES (7, 'new', '{}', 0, 0, 500, 0)"
        )

    assert node.runner.run(node.built.upkeep.run_one()) is True
    assert node.runner.run(node.built.upkeep.run_one()) is False

    assert [row["state"] for row in node.get(f"{OWN}/tasks?state=waiting").json()["tasks"]] == ["waiting"]


@pytest.mark.parametrize("target", ["tasks?state=lost", "tasks?after=x", "tasks?after=-1"])
def test_unknown_state_or_malformed_page_is_400(node: DriverNode, target: str) -> None:
    """An unknown state or a malformed page is 400."""
    assert node.get(f"{OWN}/{target}").status == 400


@pytest.mark.parametrize("task_id", ["0", "x", "1e3", "9" * 30, "%F0%9F%90%9F"])
def test_malformed_task_id_is_404(node: DriverNode, task_id: str) -> None:
    """A malformed task id is 404, like an unknown one."""
    assert node.get(f"{OWN}/tasks/{task_id}").status == node.post(f"{OWN}/tasks/{task_id}/retry").status == 404


def test_tasks_are_for_service_admins(node: DriverNode) -> None:
    """Only service admins see and retry tasks, not owners of the metalake."""
    poisoned(node)
    work(node)
    (dead,) = node.get(f"{OWN}/tasks").json()["tasks"]
    grant(node, "ana", "use_catalog manage_users", kind="metalake", on="lake")
    node.done("PUT", f"{API}/lake/owners/metalake/lake", {"name": "ana", "type": "USER"})

    answers = [
        node.ask(method, f"{OWN}/{target}", user=user)
        for user in ("ana", "zoe", None)
        for method, target in (("GET", "tasks"), ("GET", f"tasks/{dead['id']}"), ("POST", f"tasks/{dead['id']}/retry"))
    ]

    assert {answer.status for answer in answers} <= {401, 403}
    assert work(node) == 0
