# SPDX-License-Identifier: Apache-2.0
"""A second server as the source of a migration, with users, rights, tags and owners, and a third as the way out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from limnos.cli.migration.rest_catalog import RestCatalog
from limnos.client import Client
from tests.integration.live import LIMNOS
from tests.nodes.process import Process

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


class Servers(NamedTuple):
    """The source, the server that tables move to, and one that they move out to."""

    old: Process
    new: Process
    out: Process


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Three servers. The last two may have tables in the first one's warehouse."""
    old = Process(tmp_path / "old", log=tmp_path / "old.log")
    allowed = {"LIMNOS__STORAGE__ALLOWED_ROOTS": f"file://{tmp_path}/old/warehouse/main"}
    new = Process(tmp_path / "new", log=tmp_path / "new.log", env=allowed)
    out = Process(tmp_path / "out", log=tmp_path / "out.log", env=allowed)
    try:
        for each in (old, new, out):
            each.start()
        yield Servers(old, new, out)
    finally:
        for each in (old, new, out):
            each.stop()


def client_of(node: Process) -> Client:
    """Return a client of the server's admin."""
    return Client(node.uri, token=node.token)


def furnish(node: Process) -> None:
    """Create nested namespaces, tables, a view, users, a group, a role, tags and owners."""
    with client_of(node) as client:
        client.namespaces.create("main.sales", properties={"team": "x"})
        client.namespaces.create("main.sales.eu")
        paths = (["sales", "orders"], ["sales", "eu", "late"])
        client.transactions.run("main", [{"do": "create-table", "path": path, "schema": SCHEMA} for path in paths])
        client.users.add("ana")
        client.groups.create("crew")
        client.groups.add("crew", ["ana"])
        client.roles.create("hands")
        client.roles.allow("hands", ["use_schema", "select_table"], on="main.sales", kind="namespace")
        client.roles.allow("hands", ["modify_table"], on="main.sales.orders", kind="table")
        client.roles.grant_to_group("crew", ["hands"])
        client.tags.create("pii", comment="personal")
        client.tags.change("main.sales.eu.late", adds=["pii"], kind="table")
        client.owners.set("main.sales.orders", "ana", kind="table")
        client.owners.set("main.sales.eu", "crew", kind="namespace", group=True)
    catalog = catalog_of(node)
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": "select 1 as id"}],
    }
    body = {"name": "seen", "schema": SCHEMA, "view-version": version, "properties": {}}
    catalog._ask("POST", f"{catalog._root}/namespaces/sales/views", body=body)
    catalog.close()


def catalog_of(node: Process) -> RestCatalog:
    """Open the server's catalog by Iceberg REST."""
    return RestCatalog(f"{node.uri}/iceberg", token=node.token, warehouse="lake/main")


def migrate(node: Process, *words: str) -> tuple[int, dict[str, int], list[dict[str, Any]]]:
    """Run the command against a server. Returns its exit code, the counts and the other lines."""
    command = [*LIMNOS, "migrate", *words, "--uri", node.uri, "--token", node.token]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()] or [{}]
    assert "counts" in last, done.stderr
    return done.returncode, last["counts"], lines


def walk(node: Process) -> dict[str, object]:
    """Return what a walk over the server's catalog and its users finds."""
    with client_of(node) as client:
        paths = [("main.sales", "namespace"), ("main.sales.eu", "namespace")]
        paths += [("main.sales.orders", "table"), ("main.sales.eu.late", "table")]
        objects: dict[str, object] = {path: client.owners.get(path, kind=kind) for path, kind in paths}
        for path, kind in paths:
            objects[f"tags {path}"] = [each.name for each in client.tags.on(path, kind=kind)]
        role = client.roles.get("hands")
        objects["grants"] = sorted(
            (each.full_name, sorted(rule.name for rule in each.privileges)) for each in role.securable_objects
        )
        objects["crew"] = (client.groups.get("crew").roles, client.groups.members("crew"))
        objects["tables"] = [client.tables.load(path).metadata_location for path, kind in paths if kind == "table"]
    catalog = catalog_of(node)
    objects["view"] = catalog.view(("sales", "seen")).version["representations"]
    objects["properties"] = catalog.namespace_properties(("sales",))["team"]
    catalog.close()
    return objects


def test_a_lake_moves_in_and_out_with_its_rights(servers: Servers) -> None:
    """Tables, views, properties, users, rights, tags and owners are equal by a walk of both; a second run brings only
    what changed; after the cut-over the source takes no commits; and everything moves out again.
    """
    old, new, out = servers
    furnish(old)
    with client_of(new) as client:
        client.catalogs.alter("main", updates={"allowed-locations": f"file://{old.data}/warehouse/main"})
    source = ("from", "gravitino", old.uri, "--warehouse", "lake/main", "--to", "main", "--source-token", old.token)

    code, planned, lines = migrate(new, *source, "--plan")
    assert (code, planned["new"], planned["view"], planned["set-owner"]) == (0, 2, 1, 4)
    named = [line for line in lines if line["state"] == "create-principal"]
    assert len(named) == planned["create-principal"]
    assert all("unless there is one of this name here" in line["text"] for line in named)
    code, counts, lines = migrate(new, *source)
    assert code == 0, (counts, lines)
    assert (counts["new"], counts["new-namespace"], counts["new-view"]) == (2, 2, 1)
    assert walk(new) == walk(old)

    with client_of(old) as client:
        commit = {"do": "commit-table", "path": ["sales", "orders"], "updates": []}
        commit["updates"] = [{"action": "set-properties", "updates": {"a": "b"}}]
        client.transactions.run("main", [commit])
    code, counts, _ = migrate(new, *source)
    assert (code, counts["changed"], counts["same"], counts.get("new", 0)) == (0, 1, 2, 0), counts
    assert counts["same-access"] >= planned["create-principal"]  # those are not counted as made
    assert {"create-principal", "create-tag", "tag"} & counts.keys() == set()
    assert migrate(new, *source, "--check")[:2] == (0, {"same": 2})

    code, counts, lines = migrate(new, *source, "--cut-over", "rename")
    assert (code, counts) == (0, {"cut-over": 2}), lines
    catalog = catalog_of(old)
    assert sorted(catalog.tables(("sales",))) == ["orders__moved"]
    assert catalog.find_table(("sales", "orders")) is None
    catalog.close()
    with client_of(new) as client:
        updates = [{"action": "set-properties", "updates": {"c": "d"}}]
        client.transactions.run("main", [{**commit, "updates": updates}])
    code, counts, _ = migrate(new, *source, "--check")
    assert (code, counts) == (0, {"ahead": 1, "same": 1})

    with client_of(out) as client:
        client.catalogs.alter("main", updates={"allowed-locations": f"file://{old.data}/warehouse/main"})
    target = ("to", "iceberg-rest", f"{out.uri}/iceberg", "--from", "main", "--warehouse", "lake/main")
    code, counts, lines = migrate(new, *target, "--target-token", out.token)
    assert (code, counts["new"], counts["new-view"]) == (0, 2, 1), lines
    assert migrate(new, *target, "--target-token", out.token, "--check")[:2] == (0, {"same": 2})


def test_a_directory_of_tables_moves_in(servers: Servers) -> None:
    """A directory whose tables no catalog has is registered by the newest metadata file of each."""
    old, new, _ = servers
    furnish(old)
    root = old.data / "warehouse" / "main"
    with client_of(new) as client:
        client.catalogs.alter("main", updates={"allowed-locations": f"file://{root}"})

    code, counts, lines = migrate(new, "from", "directory", str(root), "--to", "main")

    assert (code, counts.get("new")) == (1, 2), (counts, lines)
    assert [line["state"] for line in lines] == ["unreadable"], lines  # the view's directory
    again = migrate(new, "from", "directory", str(root), "--to", "main")[1]
    assert (again["same"], again.get("new", 0)) == (2, 0), again
