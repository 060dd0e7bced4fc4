# SPDX-License-Identifier: Apache-2.0
"""Commits to several Lance tables in one batch: all or none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.model.permits import upkeep_permit
from limnos.store.sql import Sql
from tests.http.driver import DriverNode
from tests.rooms.lance.http.wire import ROOT, Json, commit, declare, failure_of, manifest, names, space, stage, table

ROWS = pa.table({"id": [1, 2]})
KEPT = {"managed_versioning": "true"}
CREATE, COMMIT = f"{ROOT}/table/version/batch-create", f"{ROOT}/table/batch-commit"


def declare_managed(node: DriverNode, *tables: str) -> dict[str, str]:
    """Create tables with managed versions. Returns their locations."""
    return {name: str(declare(node, "lance", name, properties=KEPT)["location"]) for name in tables}


def entry(name: str, location: str, version: int, **more: str) -> Json:
    """Stage a version. Returns its entry for a batch."""
    return {"id": ["lance", name], "version": version, "manifest_path": stage(location, version, **more)}  # type: ignore[arg-type]


def listed(node: DriverNode, name: str) -> list[int]:
    """Return the versions of a table."""
    return [each["version"] for each in node.done("POST", f"{table('lance', name)}/version/list", {})["versions"]]


def test_batch_commits_several_tables_in_one_revision(lake: DriverNode) -> None:
    """Each table of a batch gets its versions in one revision. Repeating the batch succeeds."""
    at = declare_managed(lake, "a", "b")
    entries = [entry("a", at["a"], 1), entry("b", at["b"], 1), entry("a", at["a"], 2)]

    versions = lake.done("POST", CREATE, {"entries": entries})["versions"]

    assert [each["version"] for each in versions] == [1, 1, 2]
    assert [listed(lake, name) for name in ("a", "b")] == [[1, 2], [1]]
    assert Path(f"/{versions[2]['manifest_path']}").read_bytes() == b"not readLANC"
    assert lake.done("POST", CREATE, {"entries": entries})["versions"] == versions
    changes = lake.get("/api/limnos/v1/metalakes/lake/changes?catalog=lance&since=0").json()["changes"]
    assert len({each["revision"] for each in changes if each["operation"] == "commit"}) == 1


def test_version_conflict_refuses_the_whole_batch(lake: DriverNode) -> None:
    """If one version is not the next one of its table, no table gets a version, and the refusal names the table."""
    at = declare_managed(lake, "a", "b")
    commit(lake, "lance", "b", location=at["b"], version=1)

    answer = lake.post(CREATE, {"entries": [entry("a", at["a"], 1), entry("b", at["b"], 3)]})

    assert failure_of(answer) == (409, 14)
    assert "lance.b" in answer.json()["detail"] or "b" in answer.json()["detail"].split()
    assert [listed(lake, name) for name in ("a", "b")] == [[], [1]]
    assert not (Path(at["a"].removeprefix("file://")) / "_versions" / manifest(1)).exists()


def test_batch_may_mix_operations_of_every_kind(lake: DriverNode, tmp_path: Path) -> None:
    """One batch can declare a table with its first version, commit to another, delete versions of a third, and
    deregister a fourth.
    """
    at = declare_managed(lake, "b", "d")
    home = tmp_path / "warehouse" / "lance"
    new = f"file://{home}/new"
    for mode in ("create", "append"):
        lance.write_dataset(ROWS, str(home / "old"), mode=mode)
    lake.done("POST", f"{table('lance', 'c')}/register", {"location": str(home / "old"), "properties": KEPT})
    operations = [
        {"declare_table": {"id": ["lance", "a"], "location": new, "properties": KEPT}},
        {"create_table_version": entry("a", new, 1)},
        {"create_table_version": entry("b", at["b"], 1)},
        {"delete_table_versions": {"id": ["lance", "c"], "ranges": [{"start_version": 1, "end_version": 2}]}},
        {"deregister_table": {"id": ["lance", "d"]}},
    ]

    results = lake.done("POST", COMMIT, {"operations": operations})["results"]

    assert [list(each) for each in results] == [list(each) for each in operations]
    assert results[0]["declare_table"]["location"] == new
    assert results[1]["create_table_version"]["version"]["version"] == 1
    assert results[3]["delete_table_versions"] == {"deleted_count": 1}
    assert results[4]["deregister_table"]["id"] == ["lance", "d"]
    assert names(lake.get(f"{space('lance')}/table/list")) == ["a", "b", "c"]
    assert [listed(lake, name) for name in ("a", "b", "c")] == [[1], [1], [2]]


def test_refused_last_operation_undoes_the_batch(lake: DriverNode) -> None:
    """If the last operation of a batch is refused, the batch creates, commits and deletes nothing."""
    at = declare_managed(lake, "b", "d")
    commit(lake, "lance", "b", location=at["b"], version=1)
    operations = [
        {"declare_table": {"id": ["lance", "a"]}},
        {"create_table_version": entry("b", at["b"], 2)},
        {"deregister_table": {"id": ["lance", "d"]}},
        {"deregister_table": {"id": ["lance", "none"]}},
    ]

    assert failure_of(lake.post(COMMIT, {"operations": operations})) == (404, 4)
    assert names(lake.get(f"{space('lance')}/table/list")) == ["b", "d"]
    assert listed(lake, "b") == [1]


def test_invalid_batches_are_refused_with_the_reason(node: DriverNode) -> None:
    """Batches without tables, over several catalogs, with ambiguous operations, or with tables without managed versions
    are refused with the reason.
    """
    at = declare_managed(node, "b")
    plain = declare(node, "lance", "plain")
    node.done("POST", "/lance/v1/namespace/side/create", {})
    version = {"version": 1, "manifest_path": "x"}

    assert node.done("POST", COMMIT, {"operations": []}) == {"results": []}
    assert node.done("POST", CREATE, {"entries": []}) == {"versions": []}
    for body in (
        {"operations": [{}]},
        {"operations": [{"declare_table": {}}]},
        {"operations": [{"declare_table": {"id": ["lance", "x"]}, "deregister_table": {"id": ["lance", "b"]}}]},
        {"operations": [{"declare_table": {"id": ["lance", "x"]}}, {"declare_table": {"id": ["side", "x"]}}]},
        {"operations": [{"declare_table": {"id": ["lance", "x"]}}, {"deregister_table": {"id": ["lance", "x"]}}]},
        {"operations": [{"create_table_version": {**version, "id": ["lance", "b"]}}]},
        {"operations": [{"create_table_version": entry("plain", str(plain["location"]), 1)}]},
        {"operations": [{"declare_table": {"id": ["lance"]}}]},
    ):
        assert failure_of(node.post(COMMIT, body)) == (400, 13), body
    assert failure_of(node.post(COMMIT, {"operations": [{"declare_table": {"id": ["lance", "b"]}}]})) == (409, 5)
    assert names(node.get(f"{space('lance')}/table/list")) == ["b", "plain"]
    assert at


@pytest.mark.parametrize("first", ["create_table_version", "delete_table_versions"])
def test_batch_that_changes_and_drops_one_table_is_refused(lake: DriverNode, first: str) -> None:
    """A batch that changes a table and deregisters it is refused, and the table keeps its state."""
    at = declare_managed(lake, "b")
    commit(lake, "lance", "b", location=at["b"], version=1)
    changes = {
        "create_table_version": entry("b", at["b"], 2),
        "delete_table_versions": {"id": ["lance", "b"], "ranges": [{"start_version": 1, "end_version": 2}]},
    }
    operations = [{first: changes[first]}, {"deregister_table": {"id": ["lance", "b"]}}]

    answer = lake.post(COMMIT, {"operations": operations})

    assert failure_of(answer) == (400, 13)
    assert "earlier operation" in answer.json()["detail"]
    assert names(lake.get(f"{space('lance')}/table/list")) == ["b"]
    assert listed(lake, "b") == [1]


def test_batch_that_declares_a_used_name_is_refused(lake: DriverNode) -> None:
    """A batch that declares a table with a name in use is refused like a single request, and nothing is changed."""
    declare_managed(lake, "a")

    answer = lake.post(
        COMMIT, {"operations": [{"declare_table": {"id": ["lance", name], "properties": KEPT}} for name in ("b", "a")]}
    )

    assert failure_of(answer) == (409, 5)
    assert "Table a: Table already exists" in answer.json()["detail"]
    assert names(lake.get(f"{ROOT}/namespace/lance/table/list")) == ["a"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_batch_waits_in_the_queue_of_each_table(lake: DriverNode, name: str) -> None:
    """A batch waits in the queue of each of its tables before it reads versions."""
    at = declare_managed(lake, "a", "b")
    entries = [entry(each, at[each], 1) for each in ("a", "b")]
    of_table = "SELECT id FROM node WHERE name = :name AND kind = 4 AND deleted = 0"
    ids: list[int] = []
    submit, permit = lake.built.services.store.submit, upkeep_permit("limnos")

    async def story() -> tuple[bool, int]:
        rows = await submit(permit, lambda tx: tx.rows(Sql(of_table), {"name": name}))
        ids.extend(row[0] for row in rows)
        async with lake.built.services.lines.turn(ids[0]):
            batch = asyncio.create_task(lake.answer("POST", CREATE, {"entries": entries}))
            for _ in range(50):
                await asyncio.sleep(0.001)
            waits = not batch.done()
        return waits, (await batch).status

    assert lake.runner.run(story()) == (True, 200)
