# SPDX-License-Identifier: Apache-2.0
"""Lance tables on a server without the room: they keep their names, and their files are left to nodes with the room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.services.lance.purge_tasks import LANCE_PURGE
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.sql import Sql
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.rooms.lance.http.wire import declare, fill, make_space, stage, table

pytestmark = pytest.mark.slow

LAKE = f"{OWN}/metalakes/lake"
TABLES = f"{API}/lake/catalogs/lance/schemas/s/tables"
EXPIRE = Sql("UPDATE trash SET expires_at = 0")
REASON = "does not serve Lance REST"


@pytest.fixture
def data(fresh: Callable[[str], Path]) -> Path:
    """The data of a server on which the room wrote a table of three rows, which bob may read, and a managed one."""
    directory = fresh("data")
    with node_at(directory) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "t")
        declare(node, "lance", "s", "kept", properties={"managed_versioning": "true"})
        grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
        grant(node, "ann", "use_catalog use_schema create_table", kind="CATALOG", on="lance")
        node.done("POST", f"{API}/lake/users", {"name": "eve"})
    return directory


def names_of(node: DriverNode) -> set[str]:
    """Return the names of the tables of the schema."""
    return {each["name"] for each in node.done("GET", TABLES)["identifiers"]}


def pending(node: DriverNode) -> int:
    """Return the number of tasks that delete files of tables."""
    services = node.built.services
    permit = node.built.upkeep._permit
    return len(node.runner.run(services.store.submit(permit, lambda tx: tx.tasks.payloads(LANCE_PURGE))))


def run_all(node: DriverNode) -> None:
    """Run all due tasks."""
    while node.runner.run(node.built.upkeep.run_one()):
        pass


def expire(node: DriverNode) -> None:
    """Let everything in the trash expire."""
    services, permit = node.built.services, node.built.upkeep._permit
    node.runner.run(services.store.submit(permit, lambda tx: tx.count(EXPIRE, {})))
    node.runner.run(services.store.submit(permit, trash_sweep))


def files(data: Path) -> list[Path]:
    """Return the files with rows below the warehouse."""
    return [*(data / "warehouse").rglob("*.lance")]


def test_tables_are_listed_and_their_content_is_refused_with_the_reason(data: Path) -> None:
    """Lists have the tables. Loads and previews are refused to those who may do them, and are as with the room for
    others.
    """
    preview = f"{LAKE}/catalogs/lance/tables/preview?table=s.%s"
    paths = (f"{TABLES}/t", preview % "t")
    with node_at(data) as node:
        with_room = [node.get(path, user=user).status for user in ("ann", "eve") for path in paths]
        missing = [node.get(path).status for path in (f"{TABLES}/none", preview % "none")]
        assert [node.get(path, user="bob").status for path in paths] == [200, 200]
    with node_at(data, off=("lance",)) as node:
        assert names_of(node) == {"t", "kept"}
        for path in paths:
            answer = node.get(path, user="bob")
            assert answer.status not in (200, 403, 404, 500), answer.body
            assert REASON in answer.body.decode()
        assert [node.get(path, user=user).status for user in ("ann", "eve") for path in paths] == with_room
        assert [node.get(path).status for path in (f"{TABLES}/none", preview % "none")] == missing


def test_changes_that_need_the_files_are_refused(data: Path) -> None:
    """A version in a transaction is refused and changes nothing; a table from existing files is not registered."""
    with node_at(data) as node:
        location = node.done("POST", f"{table('lance', 's', 'kept')}/describe", {})["location"]
        staged = stage(location, 1)
    version = {"do": "commit-lance-version", "catalog": "lance", "path": ["s", "kept"], "version": 1}
    with node_at(data, off=("lance",)) as node:
        refused = node.post(f"{LAKE}/transactions", {"operations": [{**version, "manifest_path": staged}]})
        registered = node.ask(
            "POST",
            f"{LAKE}/bulk?job=j&after=0",
            b'{"do": "register-lance-table", "path": ["lance", "s", "new"], "location": "/nowhere"}\n',
        )

        assert refused.status not in (200, 403, 404, 500)
        assert REASON in refused.body.decode()
        assert REASON in registered.body.decode()
        assert names_of(node) == {"t", "kept"}
    with node_at(data) as node:
        assert node.done("POST", f"{table('lance', 's', 'kept')}/version/list", {})["versions"] == []


def test_a_dropped_table_leaves_its_files_to_a_node_with_the_room(data: Path) -> None:
    """A bulk job drops a table by its name. The task that deletes its files waits for a node that has the room."""
    drop = b'{"do": "drop", "kind": "lance-table", "path": ["lance", "s", "t"]}\n'
    with node_at(data, off=("lance",)) as node:
        node.ask("POST", f"{LAKE}/bulk?job=j&after=0", drop)
        assert names_of(node) == {"kept"}
        expire(node)
        run_all(node)
        assert (pending(node), bool(files(data))) == (1, True)
    with node_at(data) as node:
        run_all(node)

        assert (pending(node), files(data)) == (0, [])


def test_a_schema_is_dropped_with_its_tables(data: Path) -> None:
    """A cascade drops Lance tables, whose files are deleted by a node with the room."""
    with node_at(data, off=("lance",)) as node:
        assert node.ask("DELETE", f"{API}/lake/catalogs/lance/schemas/s?cascade=true").status == 200
        assert node.get(TABLES).status == 404
        expire(node)
    with node_at(data) as node:
        run_all(node)

        assert files(data) == []


@pytest.mark.room("maintenance")
def test_maintenance_is_refused_with_the_reason(data: Path) -> None:
    """The server refuses maintenance with the reason to those who may maintain the table."""
    explain = f"{LAKE}/catalogs/lance/maintenance/table?table=s.t"
    with node_at(data) as node:
        assert node.get(explain).status == 200
    with node_at(data, off=("lance",)) as node:
        answer = node.get(explain)

        assert answer.status not in (200, 403, 404, 500), answer.body
        assert REASON in answer.body.decode()
