# SPDX-License-Identifier: Apache-2.0
"""Helpers of the Iceberg REST tests: nodes over either backend, short requests, and reads of the store and the
files.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import DATABASE_FILE, build
from limnos.config.access import AccessSection
from limnos.config.audit import AuditSection
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, EventsSection, IcebergSection, Settings
from limnos.http.throttle import CredentialThrottle
from limnos.services.iceberg import added_files
from tests.http.driver import DriverAnswer, DriverNode
from tests.installed import expect_no_other_node

PREFIX = "lake.main"
ROOT = f"/iceberg/v1/{PREFIX}"
SPACES = f"{ROOT}/namespaces"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "city", "required": False, "type": "string"},
    ],
}
Document = dict[str, object]


@contextmanager
def node_over(
    data: Path,
    *,
    database: str | None = None,
    verify: str = "local",
    timeout_s: float = 30.0,
    body_bytes_max: int = 1 << 20,
    audit: AuditSection | None = None,
) -> Iterator[DriverNode]:
    """Serve in process, over a new database or the file in `data`."""
    settings = Settings(
        server=ServerSection(data=str(data), request_timeout_s=timeout_s, body_bytes_max=body_bytes_max),
        access=AccessSection(authentication="simple"),
        database=DatabaseSection.model_validate({"url": database}),
        iceberg=IcebergSection(verify_metadata_file=verify),  # type: ignore[arg-type]
        events=EventsSection(allowed_urls=("https://hooks.example.com",)),
        audit=audit or AuditSection(),
    )
    with asyncio.Runner() as runner:
        built = build(settings)
        expect_no_other_node(built.services)
        built.application.outcomes.throttle = CredentialThrottle(burst=1_000_000)  # its own tests have another
        node = DriverNode(built=built, data=data, runner=runner, database=database)
        try:
            runner.run(bootstrap(built.services, settings))
            yield node
        finally:
            runner.run(node.built.close())


def space_path(*levels: str, root: str = ROOT) -> str:
    """Return the URL of a namespace."""
    return f"{root}/namespaces/{'%1F'.join(quote(level, safe='') for level in levels)}"


def table_path(*levels: str, root: str = ROOT) -> str:
    """Return the URL of a table: its namespace's levels, then its name."""
    return f"{space_path(*levels[:-1], root=root)}/tables/{quote(levels[-1], safe='')}"


def make_space(node: DriverNode, *levels: str, user: str = "admin", **properties: str) -> Document:
    """Create a namespace."""
    return node.done("POST", SPACES, {"namespace": levels, "properties": properties}, user=user)


def make_table(node: DriverNode, *levels: str, user: str = "admin", **more: object) -> Document:
    """Create a table of two columns, and its namespace if it is missing."""
    if node.ask("HEAD", space_path(*levels[:-1])).status == 404:
        make_space(node, *levels[:-1])
    body = {"name": levels[-1], "schema": SCHEMA, **{key.replace("_", "-"): value for key, value in more.items()}}
    return node.done("POST", f"{space_path(*levels[:-1])}/tables", body, user=user)


def view_path(*levels: str, root: str = ROOT) -> str:
    """Return the URL of a view: its namespace's levels, then its name."""
    return f"{space_path(*levels[:-1], root=root)}/views/{quote(levels[-1], safe='')}"


def view_version(sql: str = "select 1 as id", *, dialect: str = "spark", **more: object) -> Document:
    """Return a view version as clients send it; underscores become dashes."""
    text = {"type": "sql", "dialect": dialect, "sql": sql}
    fields: Document = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [],
        "representations": [text],
    }
    return fields | {key.replace("_", "-"): value for key, value in more.items()}


def view_body(name: str, version: Document | None = None, **more: object) -> Document:
    """Return the request body that creates a view of two columns."""
    return {"name": name, "schema": SCHEMA, "view-version": version or view_version(), "properties": {}, **more}


def make_view(
    node: DriverNode, *levels: str, user: str = "admin", version: Document | None = None, **more: object
) -> Document:
    """Create a view, and its namespace if it is missing."""
    if node.ask("HEAD", space_path(*levels[:-1])).status == 404:
        make_space(node, *levels[:-1])
    body = view_body(levels[-1], version, **more)
    return node.done("POST", f"{space_path(*levels[:-1])}/views", body, user=user)


def replaced_by(version: Document) -> Document:
    """Return the request body that replaces a view's text."""
    added = {"action": "add-view-version", "view-version": version}
    return {"updates": [added, {"action": "set-current-view-version", "view-version-id": -1}]}


def properties_of(answer: DriverAnswer) -> dict[str, object]:
    """Return a namespace's properties without the location, which every answer has."""
    return {key: value for key, value in answer.json()["properties"].items() if key != "location"}


def drop_for_good(node: DriverNode, path: str, *, user: str = "admin") -> None:
    """Drop an object and delete it from the trash; its files stay, and its location is free."""
    assert node.delete(path, user=user).status == 204
    trash = "/api/limnos/v1/metalakes/lake/catalogs/main/trash"
    node.done("DELETE", f"{trash}/{node.done('GET', trash)['trash'][0]['id']}", user=user)  # type: ignore[index]


def metadata_of(node: DriverNode, *levels: str) -> Document:
    """Return a table's metadata as its administrator loads it."""
    metadata: Document = node.done("GET", table_path(*levels))["metadata"]
    return metadata


def commit(
    node: DriverNode, *levels: str, updates: Sequence[object], requirements: Sequence[object] = (), user: str = "admin"
) -> DriverAnswer:
    """Commit updates to a table. Snapshots without a manifest list of their own get one below the table's location."""
    body = {"requirements": list(requirements), "updates": placed(node, *levels, updates=updates)}
    return node.ask("POST", table_path(*levels), body, user=user)


def placed(node: DriverNode, *levels: str, updates: Sequence[object]) -> list[Any]:
    """Return updates in which each `MISSING_LIST` is below the location that they set, else below the table's."""
    if MISSING_LIST not in json.dumps(updates):
        return list(updates)
    chosen = [each["location"] for each in updates if isinstance(each, dict) and each.get("action") == "set-location"]
    location = chosen[-1] if chosen else metadata_of(node, *levels)["location"]
    placed_updates: list[Any] = json.loads(
        json.dumps(updates).replace(MISSING_LIST, f"{location}/metadata/missing.avro")
    )
    return placed_updates


@contextmanager
def foreign_paths_accepted() -> Iterator[None]:
    """Accept paths elsewhere in documents in the body of the `with`, as earlier releases did."""

    async def accept(*_: object, **__: object) -> None:
        """Accept every path."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(added_files, "refuse_foreign_paths", accept)
        yield


def set_properties(**updates: str) -> Document:
    """Return the update that sets properties; underscores become dots."""
    return {"action": "set-properties", "updates": {key.replace("_", "."): value for key, value in updates.items()}}


def creation(location: str, *, version: int = 2) -> list[Document]:
    """Return the updates with which clients commit a staged create."""
    return [
        {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"action": "upgrade-format-version", "format-version": version},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
    ]


MISSING_LIST = "file:///missing.avro"
"""The manifest list that `commit` places below the table's location, where it does not exist."""


def snapshot(number: int, *, manifest_list: str = MISSING_LIST, parent: int | None = None) -> Document:
    """Return the update that adds a snapshot to a v2 table; its id is 100 times its sequence number."""
    body: Document = {
        "snapshot-id": number * 100,
        "sequence-number": number,
        "timestamp-ms": 1_700_000_000_000 + number,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if parent is not None:
        body["parent-snapshot-id"] = parent * 100
    return {"action": "add-snapshot", "snapshot": body}


def point(number: int, ref: str = "main", kind: str = "branch") -> Document:
    """Return the update that points a branch or tag at a snapshot."""
    return {"action": "set-snapshot-ref", "ref-name": ref, "type": kind, "snapshot-id": number * 100}


def local(location: object) -> Path:
    """Return the path of a `file:` location."""
    return Path(str(location).removeprefix("file://"))


def files_of(node: DriverNode) -> list[str]:
    """Return every file below the node's warehouse."""
    return sorted(str(path) for path in (node.data / "warehouse").rglob("*") if path.is_file())


def rows_of(node: DriverNode) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of a node's SQLite store, read on a separate connection, except the audit, which records
    refusals.
    """
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: _rows_of(connection, table) for table in tables if not table.startswith("audit")}


def _rows_of(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    """Return a table's rows, without the counter of ids."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "next_id"]
    return sorted(connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall(), key=repr)


@contextmanager
def nothing_done(node: DriverNode) -> Iterator[None]:
    """Check that the body of the `with` leaves no new or changed row and no new file."""
    rows, files = rows_of(node), files_of(node)
    yield
    for table, before in rows_of(node).items():
        assert before == rows[table], f"rows of {table} differ"
    assert files_of(node) == files


def error_of(answer: DriverAnswer) -> tuple[int, str, str]:
    """Return status, type and message of an Iceberg error. Its body must have no other fields."""
    body = json.loads(answer.body)
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "code"}
    assert body["error"]["code"] == answer.status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    return answer.status, body["error"]["type"], body["error"]["message"]


def at_once(node: DriverNode, *requests: tuple[str, str, object]) -> list[DriverAnswer]:
    """Send requests concurrently. Returns the answers in order."""

    async def ask_all() -> list[DriverAnswer]:
        return await asyncio.gather(*(node._ask(*request, "admin", {}) for request in requests))

    return node.runner.run(ask_all())


def basic(user: str) -> str:
    """Return the Authorization header that names a user."""
    return "Basic " + base64.b64encode(f"{user}:x".encode()).decode()
