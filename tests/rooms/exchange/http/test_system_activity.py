# SPDX-License-Identifier: Apache-2.0
"""The system tables `changes` and `audit`: their rows are those of the change feed and of the audit, over random lakes
and random rights.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from limnos.names import display
from limnos.rooms.exchange.services import audit_rows, change_rows
from limnos.rooms.exchange.services.held_snapshots import HeldSnapshot
from limnos.services.request.audit_lines import AuditLines
from limnos.store.activity import audit as statements
from tests.backends import Database
from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import SCHEMA, node_over
from tests.http.interference import interfere_before
from tests.rooms.exchange.http.test_system_tables import part_of, rows_of, scan
from tests.rooms.pipelines.http.test_runs import started

pytestmark = pytest.mark.slow

LAKE = f"{OWN}/metalakes/lake"
USERS = ("ana", "ben", "cid", "dee")
READERS = (*USERS, "admin")
CATALOGS = ("main", "side", "brief")
SPACES = ("a", "b", "c")
NAMES = ("t", "u", "v")
ROLES = ("r0", "r1", "r2", "r3")
PRIVILEGES = {
    "CATALOG": ("use_catalog", "use_schema", "create_schema", "select_table"),
    "SCHEMA": ("use_schema", "create_table", "select_table", "modify_table"),
    "TABLE": ("select_table", "modify_table"),
}
STEPS = 220
Row = dict[str, Any]
NONE: tuple[list[str], list[str]] = ([], [])


@pytest.fixture
def node(tmp_path: Path, database: Database) -> Iterator[DriverNode]:
    """A node over each store."""
    with node_over(tmp_path, database=None if database.kind == "sqlite" else database.address) as running:
        yield running


class RandomLake:
    """A lake that random users change at random: most steps are refused or fail, and have a record in the audit."""

    def __init__(self, node: DriverNode, *, seed: int) -> None:
        self.node, self.random = node, random.Random(seed)
        for name in CATALOGS[1:]:
            body = {"name": name, "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
            node.done("POST", f"{API}/lake/catalogs", body)
        for user in USERS:
            node.done("POST", f"{API}/lake/users", {"name": user})
        for number, role in enumerate(ROLES):
            node.done("POST", f"{API}/lake/roles", {"name": role, "properties": {}, "securableObjects": []})
            node.done("PUT", f"{API}/lake/permissions/users/{USERS[number]}/grant", {"roleNames": [role]})
        node.done("POST", f"{API}/lake/tags", {"name": "gold"})
        node.done("POST", f"{API}/lake/groups", {"name": "team"})

    def name(self, kind: str) -> str:
        """Return the full name of an object that may exist."""
        parts = (self.random.choice(CATALOGS[:2]), self.random.choice(SPACES), self.random.choice(NAMES))
        return ".".join(parts[: ("CATALOG", "SCHEMA", "TABLE").index(kind) + 1])

    def step(self) -> None:
        """Take a random step: about half of them as the owner of the metalake."""
        user = self.random.choice((*USERS, *["admin"] * 4))
        catalog, space, name = self.name("TABLE").split(".")
        root = f"/iceberg/v1/lake.{catalog}"
        kind = self.random.choice(tuple(PRIVILEGES))
        rule = {
            "name": self.random.choice(PRIVILEGES[kind]),
            "condition": self.random.choice(("allow", "allow", "deny")),
        }
        role, verb = self.random.choice(ROLES), self.random.choice(("grant", "grant", "revoke"))
        other = {"namespace": [self.random.choice(SPACES)], "name": self.random.choice(NAMES)}
        rename = {"source": {"namespace": [space], "name": name}, "destination": other}
        owner = {"name": self.random.choice(USERS), "type": "USER"}
        table = {"name": name, "schema": SCHEMA}
        steps = (
            *[partial(self.node.post, f"{root}/namespaces", {"namespace": [space]})] * 2,
            *[partial(self.node.post, f"{root}/namespaces/{space}/tables", table)] * 4,
            *[
                partial(
                    self.node.put,
                    f"{API}/lake/permissions/roles/{role}/{kind}/{self.name(kind)}/{verb}",
                    {"privileges": [rule]},
                )
            ]
            * 4,
            partial(self.node.post, f"{root}/tables/rename", rename),
            partial(self.node.delete, f"{root}/namespaces/{space}/tables/{name}"),
            partial(self.node.delete, f"{root}/namespaces/{space}"),
            partial(self.node.put, f"{API}/lake/owners/{kind}/{self.name(kind)}", owner),
            partial(self.node.post, f"{API}/lake/objects/{kind}/{self.name(kind)}/tags", {"tagsToAdd": ["gold"]}),
            self.restore,
        )
        self.random.choice(steps)(user=user)

    def restore(self, *, user: str) -> None:
        """Restore a dropped object, or restrict a table."""
        trash = f"{LAKE}/catalogs/{self.random.choice(CATALOGS[:2])}/trash"
        dropped = self.node.done("GET", trash)["trash"]
        if dropped:
            self.node.post(f"{trash}/{self.random.choice(dropped)['id']}/undrop", {}, user=user)
        url = f"{LAKE}/objects/TABLE/{self.name('TABLE')}/restrictions/few"
        self.node.put(url, {"filter": "id < 3", "to": {"users": ["ana"]}}, user=user)

    def build(self) -> None:
        """Take all steps, then drop a catalog with objects, disable one, start a run, and remove a user."""
        for _ in range(STEPS):
            self.step()
        for space in SPACES:
            self.node.post("/iceberg/v1/lake.brief/namespaces", {"namespace": [space]})
        self.node.done("DELETE", f"{API}/lake/catalogs/brief?force=true")
        started(self.node)
        if self.random.random() < 0.5:
            self.node.done("PATCH", f"{API}/lake/catalogs/side", {"inUse": False})
        if self.random.random() < 0.5:
            self.node.done("PUT", f"{API}/lake/owners/metalake/lake", {"name": "ben", "type": "USER"})


def fed(node: DriverNode, *, user: str) -> list[Row]:
    """Follow the change feed of the metalake from its oldest change. Returns rows of the system table."""
    changes: list[Row] = []
    after, more = "oldest", True
    while more:
        answer = node.done("GET", f"{LAKE}/changes?after={after}", user=user)
        changes, after, more = changes + answer["changes"], answer["next"], answer["more"]
    return [
        {
            "id": each["id"],
            "kind": each["kind"],
            **{
                column: display.render(tuple(each[name])) if name in each else None
                for column, name in (("path", "path"), ("old_path", "old"), ("new_path", "new"))
            },
            "occurred_at": datetime.fromisoformat(each["at"]),
            **{name: each[name] for name in ("operation", "actor", "request_id", "zone", "revision", "ordinal")},
        }
        for each in changes
    ]


def audited(node: DriverNode, *, user: str, query: str = "") -> list[Row]:
    """Read all records of the audit of the metalake. Returns rows of the system table, without the decisions."""
    lines: list[Row] = []
    after, more = 0, True
    while more:
        answer = node.done("GET", f"{LAKE}/audit?after={after}&limit=1000&{query}", user=user)
        lines, after, more = lines + answer["lines"], answer["next"], answer["more"]
    rows = []
    for each in lines:
        target = each["object"] or {"id": None, "kind": None, "path": None}
        row = {**each, **target, "record_id": each["id"], "user_name": each["user"]}
        row["occurred_at"] = datetime.fromisoformat(each["at"])
        rows.append({name: value for name, value in row.items() if name not in ("object", "rights", "user", "at")})
    return rows


def difference(rows: list[Row], expected: list[Row]) -> tuple[list[str], list[str]]:
    """Return the rows that are not expected, and those that are missing; a row that is there twice counts twice."""
    some, others = (Counter(str(sorted_row(row)) for row in each) for each in (rows, expected))
    return sorted((some - others).elements()), sorted((others - some).elements())


def sorted_row(row: Row) -> list[tuple[str, object]]:
    """Return a row's cells in the order of names, without the decisions of an audit record."""
    cells = {**row, "occurred_at": row["occurred_at"].timestamp()}
    return sorted((name, value) for name, value in cells.items() if name != "rights")


@pytest.mark.parametrize("seed", range(3))
def test_random_lake_has_the_rows_of_the_feed_and_the_audit(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Each user of a random lake finds the changes that the feed shows, and the records that the audit shows, whole
    and in parts, however few rows are read at a time.
    """
    RandomLake(node, seed=seed).build()
    sizes = []
    for user in READERS:
        changes, records = fed(node, user=user), audited(node, user=user)
        assert difference(rows_of(node, "changes", user=user), changes) == NONE, user
        assert difference(rows_of(node, "audit", user=user), records) == NONE, user
        sizes.append((len(changes), len(records)))
    assert len(set(sizes)) > 2, "users see different rows"
    assert all(min(each) > 0 for each in sizes)
    for module in (audit_rows, change_rows):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(change_rows, "REVISIONS_AT_ONCE", 5)
    monkeypatch.setattr(statements, "SCANNED_AT_ONCE", 7)
    for user in ("ana", "admin"):
        for table, expected in (("changes", fed(node, user=user)), ("audit", audited(node, user=user))):
            revision, parts = scan(node, table, user=user, parts=5)
            is_auditor = {row["user_name"] for row in audited(node, user=user)} != {user}
            assert len(parts) == (5 if table == "changes" or is_auditor else 1)
            rows: list[Any] = []
            for part in parts:
                status, more = part_of(node, table, revision, part, user=user)
                assert status == 200
                rows += more
            assert difference(rows, expected) == NONE, (user, table)


def test_user_without_membership_is_refused(node: DriverNode) -> None:
    """A stranger reads neither table, as neither the feed nor the audit."""
    for table in ("changes", "audit"):
        assert node.get(f"{LAKE}/{table}", user="stranger").status == 403
        assert node.get(f"{LAKE}/system-tables/{table}/rows", user="stranger").status == 403


CONDITIONS = (
    "[['user_name', '=', 'ana']]",
    "[['user_name', '=', 'nobody']]",
    "[['path', '=', 'main.a.t'], ['outcome', '=', 'refused']]",
    "[['change', '=', 'grant']]",
    "[['change', '=', 'owner']]",
    "[['action', '=', 'table_create'], ['change', '=', 'create']]",
    "[['operation', '=', 'create-table']]",
    "[['operation', '=', 'access']]",
    "[['id', '=', ID]]",
    "[['id', '>', ID]]",
    "[['occurred_at', '>=', AT]]",
    "[['occurred_at', '<', AT], ['user_name', '=', 'admin']]",
    "[['occurred_at', '>', AT], ['occurred_at', '<=', AT]]",
    "[['occurred_at', '>', 9223372036854775807]]",
    "[['occurred_at', '<', -9223372036854775808]]",
    "[['user_name', '=', 'a\\u0000']]",
    "[['user_name', '=', '']]",
    "[['zone', '=', ZONE], ['revision', '>', 3], ['revision', '<=', 9]]",
    "[['status', '=', 403], ['kind', '=', 'table']]",
)


@pytest.mark.parametrize("table", ["changes", "audit"])
def test_conditions_select_rows_of_the_whole_table(node: DriverNode, table: str) -> None:
    """Conditions that the database evaluates by an index, or on the records that it reads, select the rows that a
    filter of the whole table selects.
    """
    lake = RandomLake(node, seed=7)
    for _ in range(80):
        lake.step()
    rows = rows_of(node, table)
    middle = sorted(rows, key=lambda row: (row["occurred_at"], str(row)))[len(rows) // 2]
    at = round(middle["occurred_at"].timestamp() * 1000)
    signs = {"=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    names = {"user_name": "actor", "change": "operation", "action": "operation", "outcome": "request_id"}
    values = {"ID": middle["id"] or 1, "AT": at, "ZONE": next(row["zone"] for row in rows if row["zone"])}
    counts = []
    for text in CONDITIONS:
        filled = text
        for name, value in values.items():
            filled = filled.replace(f", {name}]", f", {value}]")
        where = json.loads(filled.replace("'", '"'))
        if table == "changes":
            where = [[names.get(name, name), sign, value] for name, sign, value in where if name != "status"]
        expected = rows
        for name, sign, value in where:
            cells = {
                id(row): round(row[name].timestamp() * 1000) if name == "occurred_at" else row[name] for row in expected
            }
            expected = [
                row for row in expected if cells[id(row)] is not None and getattr(cells[id(row)], signs[sign])(value)
            ]
        result = rows_of(node, table, where=where)
        assert difference(result, expected) == NONE, where
        counts.append(len(result))
    assert 0 < min(count for count in counts if count) < len(rows)


def test_number_of_more_than_64_bits_is_400(node: DriverNode) -> None:
    """A number that no column can have is refused, and not sent to the database."""
    for table in ("changes", "audit", "nodes"):
        where = quote(json.dumps([["id", "=", 2**63]]))
        assert node.get(f"{LAKE}/system-tables/{table}/rows?where={where}").status == 400


def test_rights_column_has_the_decisions(node: DriverNode) -> None:
    """The column `rights` has the decisions as JSON, also beside other columns; without it they are not read."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    (row,) = rows_of(node, "audit", columns="rights,user_name", where=[["kind", "=", "user"], ["path", "=", "ana"]])

    assert json.loads(row["rights"])[0]["action"] == "user_manage"
    assert row["user_name"] == "admin"


def test_change_is_in_the_audit_table_at_once(node: DriverNode) -> None:
    """A change that was committed before the scan has its record, and one after it has none in the scan's parts."""
    node.done("POST", f"{API}/lake/users", {"name": "before"})
    revision, parts = scan(node, "audit")
    node.done("POST", f"{API}/lake/users", {"name": "later"})
    rows: list[Any] = []
    for part in parts:
        rows += part_of(node, "audit", revision, part)[1]

    assert "before" in {row["path"] for row in rows}
    assert "later" not in {row["path"] for row in rows}
    assert "later" in {row["path"] for row in rows_of(node, "audit")}


def test_owner_that_loses_the_metalake_gets_no_records_of_others(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metalake gets another owner after the snapshot was taken: none of the rows are sent."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PUT", f"{API}/lake/owners/metalake/lake", {"name": "ana", "type": "USER"})

    async def disown() -> None:
        body = {"name": "admin", "type": "USER"}
        assert (await node.answer("PUT", f"{API}/lake/owners/metalake/lake", body)).status == 200

    with interfere_before(monkeypatch, HeldSnapshot, method="rows", act=disown, call=4) as interference:
        answer = node.get(f"{LAKE}/system-tables/audit/rows", user="ana")

    assert interference.is_done
    assert answer.status == 409
    assert {row["user_name"] for row in rows_of(node, "audit", user="ana")} == {"ana"}


def test_audit_that_cannot_catch_up_is_refused(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more changes than one read converts to records, the scan is refused, as the audit is."""

    async def more(_audit_lines: AuditLines) -> bool:
        return True

    monkeypatch.setattr(AuditLines, "collect", more)

    assert node.get(f"{LAKE}/system-tables/audit").status == 503
    assert node.get(f"{LAKE}/system-tables/nodes").status == 200


def test_pruned_changes_are_left_out(node: DriverNode) -> None:
    """Changes that the feed has deleted are in no row."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    assert rows_of(node, "changes")
    node.built.upkeep.keep_ms = -1000
    node.runner.run(node.built.upkeep.sweep())

    assert rows_of(node, "changes") == fed(node, user="admin") == []
