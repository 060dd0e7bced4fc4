# SPDX-License-Identifier: Apache-2.0
"""`store_integrity` reports each planted inconsistency of a store."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.rig import Rig
from tests.faults.store_integrity import CHECKS, complaints
from tests.nodes.wire import (
    GRAVITINO,
    OWN,
    PREFIX,
    namespace_body,
    namespace_path,
    rights_body,
    rights_path,
    table_body,
)

A_TABLE = "(SELECT max(id) FROM node WHERE kind = 4 AND deleted = 0)"
A_NAMESPACE = "(SELECT min(id) FROM node WHERE kind = 3 AND deleted = 0)"
A_CATALOG = "(SELECT id FROM node WHERE kind = 2)"


def job(
    state: str = "'queued'", *, of: str = A_TABLE, holder: str = "''", started: str = "NULL", ended: str = "NULL"
) -> str:
    """Return a complete row of a job, with the table's owner and template."""
    return (
        f"INSERT INTO template_job VALUES ({of}, 1, {A_TABLE}, 'u', 'a', 1, {state}, {holder}, 0, 0, '{{}}', '', NULL,"
        f" NULL, '', '', 0, 0, 0, {started}, {ended})"
    )


WOUNDS = {
    "clock behind": ("clocks_are_dense", f"UPDATE clock SET revision = revision - 1 WHERE zone = {A_CATALOG}"),
    "clock ahead": ("clocks_are_dense", f"UPDATE clock SET revision = revision + 1 WHERE zone = {A_CATALOG}"),
    "gap in the feed": ("clocks_are_dense", f"DELETE FROM change WHERE zone = {A_CATALOG} AND revision = 2"),
    "half a revision": (
        "clocks_are_dense",
        (
            "DELETE FROM change WHERE ordinal = 0 AND (zone, revision) IN (SELECT zone, revision FROM change WHERE"
            " ordinal = 1)"
        ),
    ),
    "access ahead": ("clocks_are_dense", "UPDATE clock SET access_revision = revision + 1 WHERE zone = 0"),
    "changes without a clock": ("clocks_are_dense", f"DELETE FROM clock WHERE zone = {A_CATALOG}"),
    "catalog without a clock": ("zones_have_clocks", f"DELETE FROM clock WHERE zone = {A_CATALOG}"),
    "node of the future": ("zones_have_clocks", f"UPDATE node SET revision = 10000 WHERE id = {A_TABLE}"),
    "dead parent": ("tree_holds", f"UPDATE node SET deleted = id WHERE id = {A_NAMESPACE}"),
    "cycle": ("tree_holds", f"UPDATE node SET parent_id = id WHERE id = {A_NAMESPACE}"),
    "wrong zone": ("tree_holds", f"UPDATE node SET zone = 0 WHERE id = {A_TABLE}"),
    "same name twice": (
        "names_are_unique",
        "DROP INDEX node_name; UPDATE node SET name = 't' WHERE kind = 4",
    ),
    "id given twice": ("ids_are_unique", f"UPDATE token SET id = {A_TABLE} WHERE id = (SELECT min(id) FROM token)"),
    "id to come again": ("ids_are_unique", "UPDATE store SET next_id = next_id - 3"),
    "no owner": ("owners_are_there", f"DELETE FROM owner WHERE object_id = {A_TABLE}"),
    "owner of nothing": (
        "owners_are_there",
        "INSERT INTO owner (object_id, principal_id) SELECT 7, min(id) FROM principal",
    ),
    "unknown owner": ("owners_are_there", f"UPDATE owner SET principal_id = 7 WHERE object_id = {A_TABLE}"),
    "member of nothing": ("graph_holds", "UPDATE group_member SET group_id = 7"),
    "holder of nothing": ("graph_holds", "UPDATE role_member SET role_id = 7"),
    "rule of no role": ("graph_holds", "UPDATE access_grant SET role_id = 7"),
    "table without document": ("documents_are_there", f"DELETE FROM document WHERE node_id = {A_TABLE}"),
    "document without table": ("documents_are_there", f"UPDATE document SET node_id = 7 WHERE node_id = {A_TABLE}"),
    "no file": ("files_are_there", "UPDATE document SET metadata_location = metadata_location || '.gone'"),
    "another file": ("files_are_there", f"UPDATE document SET body = x'7b7d' WHERE node_id = {A_TABLE}"),
    "untold name": ("feed_tells_the_tree", f"UPDATE node SET name = 'other' WHERE id = {A_TABLE}"),
    "untold drop": ("feed_tells_the_tree", f"UPDATE node SET deleted = id WHERE id = {A_TABLE}"),
    "columns of no edge": ("lineage_holds", "DELETE FROM lineage_edge"),
    "edge from nowhere": ("lineage_holds", "DELETE FROM lineage_dataset"),
    "versions of no Lance table": (
        "lance_versions_hold",
        f"INSERT INTO lance_version SELECT {A_TABLE}, '', 1, 2, 's', 4, NULL, '{{}}', 0, 0",
    ),
    "an older version on its way": (
        "lance_versions_hold",
        (
            f"INSERT INTO lance_version SELECT {A_TABLE}, '', n, 2, 's', 4, NULL, '{{}}', 0, n - 1 FROM (SELECT 1 AS n"
            " UNION SELECT 2)"
        ),
    ),
    "version of no model": (
        "model_versions_hold",
        "INSERT INTO model_version VALUES (1, 0, NULL, '{}', '{}', 'a', 0, NULL, NULL)",
    ),
    "policy that is none": (
        "attachments_hold",
        f"INSERT INTO policy_object (object_id, policy_id) VALUES ({A_TABLE}, 1)",
    ),
    "tag that is none": ("attachments_hold", f"INSERT INTO tag_object VALUES ({A_TABLE}, 1)"),
    "tag on a column that is none": ("attachments_hold", f"INSERT INTO column_attachment VALUES ({A_TABLE}, 1, 1, 11)"),
    "value of a tag that is not there": ("attachments_hold", f"INSERT INTO tag_value VALUES ({A_TABLE}, 0, 1, 'v', 0)"),
    "statistic of a column of nothing": (
        "attachments_hold",
        (
            "INSERT INTO column_statistic (object_id, field_id, name, value, created_by, created_at) VALUES (1, 1, 'n',"
            " '1', 'a', 1)"
        ),
    ),
    "statistic of no table": (
        "attachments_hold",
        "INSERT INTO statistic VALUES (1, '', 'custom-n', '1', 'a', 0, NULL, NULL)",
    ),
    "staged for nothing": ("imports_hold", f"UPDATE node SET name_space = 'import' WHERE id = {A_TABLE}"),
    "import of nothing": (
        "imports_hold",
        "INSERT INTO metalake_import VALUES (1, 'm', 'json', 0, 'open', 2, '', 7, 0, '[]', 'a', 0, 0)",
    ),
    "alias to nowhere": ("model_versions_hold", "INSERT INTO model_alias VALUES (1, 'a', 0)"),
    "job in no state": ("jobs_are_whole", job("'resting'")),
    "job ended at no time": ("jobs_are_whole", job("'failed'")),
    "job that nobody took": ("jobs_are_whole", job("'started'", started="1")),
    "job of nobody": ("jobs_are_whole", job(of="7")),
    "job without its template": ("jobs_are_whole", f"{job()}; UPDATE node SET deleted = id WHERE id = {A_TABLE}"),
    "pipeline of nothing": ("runs_are_whole", "DELETE FROM pipeline_version"),
    "run in no state": ("runs_are_whole", "UPDATE pipeline_run SET state = 'resting'"),
    "published at no time": ("runs_are_whole", "UPDATE pipeline_run SET state = 'published'"),
    "run of nobody": ("runs_are_whole", "DELETE FROM owner WHERE object_id IN (SELECT id FROM pipeline_run)"),
    "steps of no run": ("runs_are_whole", "DELETE FROM pipeline_run"),
    "purge of the living": (
        "tasks_are_readable",
        (
            "INSERT INTO task (id, kind, payload, created_at, due_at, attempts, leased_until) SELECT node_id,"
            " 'purge-table', metadata_location, 0, 0, 0, 0 FROM document"
        ),
    ),
}
"""The check that must report the inconsistency, and the statements that cause it, by name."""
RUN = {
    "id": "0f7a4a52-5f0b-4c4e-9f3a-2f8f5d2b8d10",
    "holder": "here:1",
    "lease_s": 30,
    "parameters": {},
    "options": {},
    "steps": [{"name": "a.b.t", "reads": [], "output": "main.a.b.t"}],
}
EVENT = {
    "eventType": "COMPLETE",
    "eventTime": "2026-01-31T00:00:00Z",
    "run": {"runId": "r"},
    "job": {"namespace": "n", "name": "j"},
    "inputs": [{"namespace": "kafka://k", "name": "x"}, {"namespace": "limnos://lake", "name": "main.a.b.u"}],
    "outputs": [
        {
            "namespace": "limnos://lake",
            "name": "main.a.b.t",
            "facets": {
                "columnLineage": {
                    "fields": {
                        "id": {"inputFields": [{"namespace": "limnos://lake", "name": "main.a.b.u", "field": "id"}]}
                    }
                }
            },
        }
    ],
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Create a consistent store with objects of every kind."""
    with Rig(tmp_path_factory.mktemp("sound"), None) as rig:
        admin = rig.admin
        admin.do("POST", f"{PREFIX}/namespaces", namespace_body("a", "b"))
        for name in ("t", "u"):
            admin.do("POST", f"{namespace_path('a', 'b')}/tables", table_body(name))
        for kind, name in (("users", "ana"), ("groups", "crew")):
            admin.do("POST", f"{GRAVITINO}/{kind}", {"name": name})
        admin.do("POST", f"{GRAVITINO}/roles", {"name": "reader", "properties": {}, "securableObjects": []})
        admin.do("PUT", rights_path("reader", "catalog", "main", "grant"), rights_body("use_catalog"))
        admin.do("PUT", f"{GRAVITINO}/permissions/users/ana/grant", {"roleNames": ["reader"]})
        admin.do("POST", f"{OWN}/metalakes/lake/groups/crew/members", {"users": ["ana"]})
        admin.do("POST", f"{OWN}/metalakes/lake/lineage", EVENT)
        admin.do("PUT", f"{OWN}/metalakes/lake/pipelines/nyc", {"declaration": {"pipeline": "nyc"}})
        admin.do("POST", f"{OWN}/metalakes/lake/pipelines/nyc/runs", RUN)
        admin.do("PUT", f"{OWN}/metalakes/lake/runs/{RUN['id']}/steps/a.b.t", {"attempt": 1, "state": "running"})
        rig.node.stop()
        yield Path(rig.database)


def test_consistent_store_has_no_violations(sound: Path) -> None:
    """A store that was only used has no violations."""
    assert complaints(str(sound)) == []


@pytest.mark.parametrize("wound", WOUNDS)
def test_planted_inconsistency_is_reported(sound: Path, tmp_path: Path, wound: str) -> None:
    """The check for a planted inconsistency reports it."""
    check, statement = WOUNDS[wound]
    copy = tmp_path / "limnos.db"
    shutil.copyfile(sound, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(statement)

    messages = complaints(str(copy))

    assert any(text.startswith(f"{check}: ") for text in messages), messages


def test_every_check_has_planted_inconsistency() -> None:
    """Every check has a planted inconsistency."""
    assert {check for check, _ in WOUNDS.values()} == {check.__name__ for check in CHECKS}


def test_consistent_job_is_not_reported(sound: Path, tmp_path: Path) -> None:
    """The row from which the inconsistent jobs are made is consistent, so each is reported for its own defect."""
    copy = tmp_path / "limnos.db"
    shutil.copyfile(sound, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(job())

    assert [text for text in complaints(str(copy)) if text.startswith("jobs_are_whole")] == []
