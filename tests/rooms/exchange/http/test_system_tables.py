# SPDX-License-Identifier: Apache-2.0
"""System tables over the admin API: rows and filters, one revision for all parts, and the rows that a caller may
see.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from limnos.formats.system_tables import SYSTEM_TABLES
from limnos.model.permits import upkeep_permit
from limnos.rooms.exchange.services import access_rows, held_snapshots, part_reads, table_rows
from limnos.rooms.exchange.services.held_snapshots import HeldSnapshot
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.backends import Database
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import make_space, make_table, make_view, node_over
from tests.http.interference import interfere_before
from tests.rooms.pipelines.http.test_lineage import dataset, event, link, store_events
from tests.rooms.pipelines.http.test_runs import started

pytestmark = pytest.mark.slow

TABLES = f"{OWN}/metalakes/lake/system-tables"


@pytest.fixture
def node(tmp_path: Path, database: Database) -> Iterator[DriverNode]:
    """A node over each store."""
    with node_over(tmp_path, database=None if database.kind == "sqlite" else database.address) as running:
        yield running


def rows_of(
    node: DriverNode, table: str, *, user: str = "admin", where: object = None, **query: str
) -> list[dict[str, object]]:
    """Return rows of a system table, by default all."""
    if where is not None:
        query["where"] = json.dumps(where)
    text = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    answer = node.get(f"{TABLES}/{table}/rows?{text}", user=user)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    return pa.ipc.open_stream(answer.body).read_all().to_pylist()


def scan(node: DriverNode, table: str, *, parts: int = 3, user: str = "admin") -> tuple[str, list[str]]:
    """Begin a read in parts. Returns the revision and the parts."""
    answer = node.done("GET", f"{TABLES}/{table}?parts={parts}", user=user)
    return answer["revision"], answer["parts"]


def part_of(
    node: DriverNode, table: str, revision: str, part: str, *, user: str = "admin"
) -> tuple[int, list[dict[str, object]] | str]:
    """Read a part. Returns the status, and the rows or the code of the error."""
    answer = node.get(f"{TABLES}/{table}/rows?revision={revision}&part={part}", user=user)
    if answer.status != 200:
        return answer.status, answer.json()["error"]["code"]
    return 200, pa.ipc.open_stream(answer.body).read_all().to_pylist()


def make_lake(node: DriverNode) -> None:
    """Create namespaces, tables, a view, a tag on a table, a policy, a group, and a reader of one namespace."""
    for space in ("a", "b"):
        make_space(node, space)
    make_space(node, "a", "inner")
    for path in (("a", "t"), ("a", "inner", "u"), ("b", "veiled")):
        make_table(node, *path)
    make_view(node, "a", "v")
    node.done("POST", f"{API}/lake/tags", {"name": "pii", "comment": "personal", "properties": {}})
    node.done("POST", f"{API}/lake/tags", {"name": "covert", "comment": None, "properties": {}})
    for full_name in ("main.a.t", "main.b.veiled"):
        node.done("POST", f"{API}/lake/objects/table/{full_name}/tags", {"tagsToAdd": ["pii", "covert"]})
    node.done("POST", f"{API}/lake/groups", {"name": "team"})
    grant(node, "reader", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "reader", "USE_SCHEMA SELECT_TABLE SELECT_VIEW", kind="SCHEMA", on="main.a")


def test_tables_are_listed_with_their_columns(node: DriverNode) -> None:
    """The list has each table with the names and types of its columns."""
    tables = node.done("GET", TABLES)["tables"]

    assert [each["name"] for each in tables] == list(SYSTEM_TABLES)
    assert tables[0]["columns"][0] == {"name": "id", "type": "int"}


def test_nodes_have_every_object_of_the_export(node: DriverNode) -> None:
    """The owner of the metalake reads each node that an export has, with its names and times."""
    make_lake(node)
    records = [json.loads(line) for line in node.get(f"{OWN}/metalakes/lake/export?format=json").body.splitlines()]
    kinds = ("metalake", "catalog", "namespace", "table", "entity")
    nodes = [record[kind] for record in records for kind in kinds if kind in record]
    exported = {int(each["id"]): each for each in nodes}
    rows = rows_of(node, "nodes")

    assert {row["id"]: row["name"] for row in rows} == {node_id: each["name"] for node_id, each in exported.items()}
    for row in rows:
        each = exported[row["id"]]
        assert row["kind"] == each.get("kind", row["kind"])
        assert row["created_at"].isoformat() == each["audit_info"]["create_time"].replace("Z", "000+00:00")
        assert row["parent_id"] == (int(each["parent_id"]) if "parent_id" in each else row["parent_id"])
        assert row["comment"] == each.get("comment", row["comment"])
    by_path = {(row["kind"], row["path"]): row for row in rows}
    assert ("table", "main.a.inner.u") in by_path
    assert by_path["catalog", "main"]["catalog"] == "main"
    assert by_path["tag", "pii"]["comment"] == "personal"
    assert by_path["table", "main.a.t"]["created_by"] == "admin"


def test_each_table_has_its_rows(node: DriverNode) -> None:
    """The other tables have documents, columns, attachments, owners, principals, memberships, grants and access."""
    make_lake(node)

    tables = {row["path"]: row for row in rows_of(node, "tables")}
    assert set(tables) == {"main.a.t", "main.a.inner.u", "main.b.veiled", "main.a.v"}
    assert tables["main.a.t"]["metadata_location"]
    assert ("main.a.t", "id", "long") in {
        (row["path"], row["column_name"], row["type"]) for row in rows_of(node, "columns")
    }
    assert {(row["path"], row["tag"]) for row in rows_of(node, "tags")} == {
        (path, tag) for path in ("main.a.t", "main.b.veiled") for tag in ("pii", "covert")
    }
    assert ("main.a.t", "admin", "user") in {
        (row["path"], row["owner"], row["owner_kind"]) for row in rows_of(node, "owners")
    }
    assert {("user", "reader"), ("group", "team")} < {(row["kind"], row["name"]) for row in rows_of(node, "principals")}
    assert "reader" in {row["name"] for row in rows_of(node, "memberships")}
    assert ("main.a", "SELECT_TABLE", True) in {
        (row["path"], row["privilege"], row["allowed"]) for row in rows_of(node, "grants")
    }
    access = {(row["user_name"], row["path"]): row["levels"] for row in rows_of(node, "effective_access")}
    assert access["reader", "main.a.t"] == ["read"]
    assert ("reader", "main.b.veiled") not in access
    assert access["admin", "main.b.veiled"] == ["read", "write", "drop", "grant"]


def test_columns_are_pruned_and_conditions_apply(node: DriverNode) -> None:
    """Only requested columns are sent; conditions select rows by kind, path and id."""
    make_lake(node)
    rows = rows_of(node, "nodes", columns="path,kind", where=[["kind", "=", "table"], ["path", ">=", "main.a.t"]])

    assert rows == [{"path": "main.a.t", "kind": "table"}, {"path": "main.b.veiled", "kind": "table"}]
    (one,) = rows_of(node, "nodes", where=[["path", "=", "main.a.t"]])
    assert rows_of(node, "nodes", columns="path", where=[["id", "=", one["id"]]]) == [{"path": "main.a.t"}]
    assert rows_of(node, "nodes", where=[["id", "<", one["id"]], ["id", ">=", one["id"]]]) == []
    assert rows_of(node, "nodes", where=[["kind", "=", "table"], ["kind", "=", "view"]]) == []
    access = rows_of(
        node, "effective_access", columns="user_name", where=[["user_name", "=", "reader"], ["kind", "=", "table"]]
    )
    assert access == [{"user_name": "reader"}] * 2


def test_parts_have_every_row_once(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of each table together have the rows of the whole table, each once, however small the pages are."""
    make_lake(node)
    whole = {table: rows_of(node, table) for table in SYSTEM_TABLES}
    monkeypatch.setattr(part_reads, "ROWS_AT_ONCE", 2)
    for table, expected in whole.items():
        revision, parts = scan(node, table)
        part_rows: list[object] = []
        for part in parts:
            status, rows = part_of(node, table, revision, part)
            assert status == 200
            part_rows += rows
        assert sorted(map(repr, part_rows)) == sorted(map(repr, expected)), table


def test_parts_are_of_one_revision(node: DriverNode) -> None:
    """A table that is created between two parts is in none of them; the next scan has another revision."""
    make_lake(node)
    before = [row["path"] for row in rows_of(node, "nodes")]
    revision, parts = scan(node, "nodes")
    rows = part_of(node, "nodes", revision, parts[0])[1]
    make_table(node, "a", "later")
    for part in parts[1:]:
        rows += part_of(node, "nodes", revision, part)[1]

    assert [row["path"] for row in rows] == before
    assert scan(node, "nodes")[0] != revision
    assert "main.a.later" in {row["path"] for row in rows_of(node, "nodes")}


def test_revision_that_is_not_held_is_refused(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A revision that is not held is read as long as nothing changed, and then refused: the reader reads again."""
    make_lake(node)
    revision, parts = scan(node, "nodes")
    snapshots = held_snapshots.HELD_SNAPSHOTS.of(node.built.services)
    node.runner.run(snapshots.close())

    assert part_of(node, "nodes", revision, parts[0])[0] == 200
    make_table(node, "a", "later")
    node.runner.run(snapshots.close())
    assert part_of(node, "nodes", revision, parts[1]) == (409, "revision-ended")
    fresh, parts = scan(node, "nodes")
    monkeypatch.setattr(held_snapshots, "AGE_MAX_S", 0.0)
    make_table(node, "a", "last")
    assert part_of(node, "nodes", fresh, parts[0]) == (409, "revision-ended")


@pytest.mark.parametrize(
    "change",
    [
        ("PUT", f"{API}/lake/permissions/users/reader/revoke", {"roleNames": ["ROLE"]}),
        ("PATCH", f"{OWN}/metalakes/lake/users/reader", {"enabled": False}),
        ("DELETE", f"{API}/lake/users/reader", None),
        ("PUT", f"{API}/lake/owners/table/main.a.t", {"name": "reader", "type": "USER"}),
    ],
)
def test_changed_rights_end_the_read_of_further_parts(
    node: DriverNode, change: tuple[str, str, dict[str, list[str]] | None]
) -> None:
    """After a change of the reader's rights no part of the revision is sent any more: never half of a table."""
    make_lake(node)
    role = next(row["role"] for row in rows_of(node, "grants") if row["privilege"] == "SELECT_TABLE")
    revision, parts = scan(node, "nodes", user="reader")
    assert part_of(node, "nodes", revision, parts[0], user="reader")[0] == 200
    method, path, body = change
    node.done(method, path, json.loads(json.dumps(body).replace("ROLE", role)))
    status, code = part_of(node, "nodes", revision, parts[1], user="reader")

    assert (status, code) in {(409, "revision-ended"), (403, "forbidden")}


def test_change_of_other_rights_does_not_end_a_scan(node: DriverNode) -> None:
    """A grant to another user, or another user's new table, leaves the revision readable for this reader."""
    make_lake(node)
    revision, parts = scan(node, "nodes", user="reader")
    grant(node, "other", "USE_CATALOG", kind="CATALOG", on="main")
    node.done("PUT", f"{API}/lake/owners/table/main.b.veiled", {"name": "other", "type": "USER"})

    assert {part_of(node, "nodes", revision, part, user="reader")[0] for part in parts} == {200}


def test_right_that_is_lost_while_a_page_is_built_breaks_the_read(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that is revoked after the snapshot was taken and before the rows are sent: none of them are sent."""
    make_lake(node)
    role = next(row["role"] for row in rows_of(node, "grants") if row["privilege"] == "SELECT_TABLE")
    path = f"{API}/lake/permissions/users/reader/revoke"

    async def revoke() -> None:
        assert (await node.answer("PUT", path, {"roleNames": [role]})).status == 200

    revision, parts = scan(node, "nodes", user="reader")
    with interfere_before(monkeypatch, HeldSnapshot, method="rows", act=revoke, call=2) as interference:
        answer = part_of(node, "nodes", revision, parts[0], user="reader")

    assert interference.is_done
    assert answer == (409, "revision-ended")


def test_owner_that_loses_an_object_while_a_page_is_built_gets_no_rows(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object that the reader owns gets another owner while the rows are built: none of them are sent."""
    make_lake(node)
    path = f"{API}/lake/owners/table/main.b.veiled"
    node.done("PUT", path, {"name": "reader", "type": "USER"})

    async def disown() -> None:
        assert (await node.answer("PUT", path, {"name": "admin", "type": "USER"})).status == 200

    with interfere_before(monkeypatch, HeldSnapshot, method="rows", act=disown, call=3) as interference:
        answer = node.get(f"{TABLES}/nodes/rows", user="reader")

    assert interference.is_done
    assert answer.status == 409


@pytest.mark.parametrize("at_once", [1, 3, access_rows.ROWS_AT_ONCE])
def test_access_to_tables_of_one_namespace_equals_explained_decisions(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Tables that share decisions have the levels of explained decisions, beside ones with an own grant, denial, owner
    or restriction; whatever the number of rows of a step, and of kept ones.
    """
    monkeypatch.setattr(access_rows, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(access_rows, "CELLS_AT_ONCE", at_once)
    monkeypatch.setattr(access_rows, "CELLS_KEPT", at_once)
    make_lake(node)
    names = ("first", "granted", "denied", "owned", "second", "bound", "third")
    for name in names:
        make_table(node, "a", name)
    grant(node, "reader", "MODIFY_TABLE", kind="TABLE", on="main.a.granted")
    grant(node, "reader", "SELECT_TABLE", kind="TABLE", on="main.a.denied", condition="deny")
    grant(node, "owner", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "owner", "USE_SCHEMA", kind="SCHEMA", on="main.a")
    node.done("PUT", f"{API}/lake/owners/table/main.a.owned", {"name": "owner", "type": "USER"})
    node.done(
        "PUT",
        f"{OWN}/metalakes/lake/objects/TABLE/main.a.bound/restrictions/few",
        {"masks": {"id": "replace-with-null"}, "to": {"users": ["reader"]}},
    )
    rows = rows_of(node, "effective_access", where=[["kind", "=", "table"]])
    levels = {(row["user_name"], row["path"]): row["levels"] for row in rows}
    actions = {"read": "table_scan", "write": "table_commit", "drop": "table_drop"}

    assert len(levels) == len(rows)
    for name in names:
        for user in ("admin", "reader", "owner"):
            for level, action in actions.items():
                body = {"action": action, "path": ["main", "a", name], "user": user}
                decision = node.done("POST", f"{OWN}/metalakes/lake/access/explain", body)["decision"]
                assert decision["allowed"] == (level in (levels.get((user, f"main.a.{name}")) or ())), (
                    name,
                    user,
                    level,
                )
    restricted = {(row["user_name"], row["path"]) for row in rows if row["restricted"]}
    assert restricted == {("reader", "main.a.bound")}


def test_pages_of_documents_have_all_tables(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are the same with one document a page; columns that need no document read none."""
    make_lake(node)
    whole = {name: rows_of(node, name) for name in ("tables", "columns")}
    few = ("id", "kind", "path", "format", "restricted")
    monkeypatch.setattr(table_rows, "DOCUMENTS_AT_ONCE", 1)
    monkeypatch.setattr(table_rows, "DOCUMENT_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(table_rows, "ROWS_AT_ONCE", 1)

    assert {name: rows_of(node, name) for name in whole} == whole
    placed = rows_of(node, "tables", columns="id,location")
    assert placed == [{name: row[name] for name in ("id", "location")} for row in whole["tables"]]
    monkeypatch.setattr(table_rows.statements, "PLACES", Sql("not a statement"))
    monkeypatch.setattr(table_rows.statements, "DOCUMENTS", Sql("not a statement"))
    rows = rows_of(node, "tables", columns=",".join(few))
    assert rows == [{name: row[name] for name in few} for row in whole["tables"]]


def test_reader_sees_no_hidden_name(node: DriverNode) -> None:
    """A reader with the least rights finds no name of a hidden object, tag, user, group or role in any table."""
    make_lake(node)
    node.done("POST", f"{API}/lake/users", {"name": "nobody-special"})
    for user in ("reader", "nobody-special"):
        for table in SYSTEM_TABLES:
            text = json.dumps(rows_of(node, table, user=user), default=str)
            for name in ("veiled", "covert", "pii", "team", "main.b", "other"):
                assert name not in text, (user, table, name)
    rows = {row["path"] for row in rows_of(node, "nodes", user="reader")}
    assert rows == {"lake", "main", "main.a", "main.a.t", "main.a.inner", "main.a.inner.u", "main.a.v"}
    assert {row["user_name"] for row in rows_of(node, "effective_access", user="reader")} == {"reader"}
    assert {row["name"] for row in rows_of(node, "principals", user="reader") if row["kind"] != "role"} == {"reader"}
    assert {row["path"] for row in rows_of(node, "nodes", user="nobody-special")} == {"lake"}


def test_objects_of_a_disabled_catalog_are_hidden(node: DriverNode) -> None:
    """A disabled catalog is shown without its objects; a disabled metalake is refused."""
    make_lake(node)
    node.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": False})
    paths = {row["path"] for row in rows_of(node, "nodes")}

    assert "main" in paths
    assert not {path for path in paths if path.startswith("main.")}


def test_restricted_reader_gets_no_location(node: DriverNode) -> None:
    """A reader to whom a restriction applies gets the table and its columns, but no location and no properties."""
    make_lake(node)
    node.done(
        "PUT",
        f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions/few",
        {"filter": "id < 3", "to": {"users": ["reader"]}},
    )
    tables = {row["path"]: row for row in rows_of(node, "tables", user="reader")}

    assert tables["main.a.t"]["restricted"]
    assert tables["main.a.t"]["location"] is tables["main.a.t"]["properties"] is None
    assert tables["main.a.inner.u"]["location"]
    assert {row["path"] for row in rows_of(node, "columns", user="reader")} >= {"main.a.t"}


def test_secrets_of_catalogs_are_left_out(node: DriverNode) -> None:
    """Properties of a catalog come without secrets."""
    properties = {"s3.secret-access-key": "very-secret", "note": "x"}
    body = {"name": "other", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "comment": None}
    node.done("POST", f"{API}/lake/catalogs", {**body, "properties": properties})
    answer = rows_of(node, "nodes", where=[["path", "=", "other"]])

    assert "very-secret" not in str(answer)
    assert ("note", "x") in answer[0]["properties"]


@pytest.mark.parametrize(
    "path,message",
    [
        ("nowhere", "no system table"),
        ("nowhere/rows", "no system table"),
        ("nodes?parts=0", "parts must"),
        ("nodes?parts=x", "parts must"),
        ("nodes?parts=65", "parts must"),
        ("nodes/rows?columns=nothing", "no column"),
        ("nodes/rows?columns=id,id", "twice"),
        ("nodes/rows?where=x", "where must"),
        ("nodes/rows?where=[[%22path%22,%22~%22,%22a%22]]", "operators"),
        ("nodes/rows?where=[[%22id%22,%22=%22,%22a%22]]", "compared"),
        ("nodes/rows?where=[[%22properties%22,%22=%22,%22a%22]]", "cannot be compared"),
        ("nodes/rows?part=1-x&revision=0123456789abcdef0123456789abcdef", "part must"),
        ("nodes/rows?part=0-7", "give revision"),
        ("nodes/rows?revision=1", "revision must"),
    ],
)
def test_bad_input_is_400_and_names_the_problem(node: DriverNode, path: str, message: str) -> None:
    """Bad input is 400, an unknown table 404, and the message names the problem."""
    answer = node.get(f"{TABLES}/{path}")

    assert answer.status == (404 if path.startswith("nowhere") else 400)
    assert message in answer.json()["error"]["message"]


def test_many_scans_share_one_snapshot_and_are_limited(node: DriverNode) -> None:
    """Scans of one revision share a snapshot. With too many revisions, a scan is refused; a user's own unused one
    gives way.
    """
    make_lake(node)
    snapshots = held_snapshots.HELD_SNAPSHOTS.of(node.built.services)
    for user in ("admin", "reader"):
        scan(node, "nodes", user=user)
    assert snapshots.count == 1
    for number in range(12):
        make_table(node, "a", f"n{number}")
        scan(node, "nodes")
    assert snapshots.count == held_snapshots.OF_USER_MAX


def test_whole_reads_of_activity_hold_no_snapshot(node: DriverNode) -> None:
    """A read of a table about activity in one request closes its snapshot: many readers do not use up the limit."""
    make_lake(node)
    snapshots = held_snapshots.HELD_SNAPSHOTS.of(node.built.services)
    for _ in range(2 * held_snapshots.HELD_MAX):
        rows_of(node, "lineage")
        rows_of(node, "changes", user="reader")
    assert snapshots.count == 0
    scan(node, "lineage")
    assert snapshots.count == 1


def report_lineage(node: DriverNode) -> None:
    """Report that `main.a.t` was derived from `main.a.inner.u`, from the hidden table, and from a file."""
    sources = (dataset("main.a.inner.u"), dataset("main.b.veiled"), dataset("x.csv", namespace="file"))
    columns = {"city": [link("main.a.inner.u", "city"), link("main.b.veiled", "id")]}
    store_events(node, event(dataset("main.a.t"), *sources, columns=columns))
    store_events(node, event(dataset("y.csv", namespace="file"), dataset("main.b.veiled"), job="export"))


def test_lineage_is_shown_between_visible_objects(node: DriverNode) -> None:
    """The owner reads all edges; a reader reads those whose ends are visible or outside of the metalake."""
    make_lake(node)
    report_lineage(node)
    seen = {
        user: {(row["source_path"], row["path"]) for row in rows_of(node, "lineage", user=user)}
        for user in ("admin", "reader")
    }
    pairs = {
        user: {
            (row["source_path"], row["source_column"], row["column_name"])
            for row in rows_of(node, "column_lineage", user=user)
        }
        for user in ("admin", "reader")
    }

    own = {("main.a.inner.u", "main.a.t"), ("x.csv", "main.a.t")}
    assert seen == {"admin": own | {("main.b.veiled", "main.a.t"), ("main.b.veiled", "y.csv")}, "reader": own}
    own_pairs = {("main.a.inner.u", "city", "city")}
    assert pairs == {"admin": own_pairs | {("main.b.veiled", "id", "city")}, "reader": own_pairs}
    (outside,) = rows_of(node, "lineage", where=[["source_kind", "=", "dataset"]])
    assert (outside["source_namespace"], outside["job"], outside["reported_by"]) == ("file", "job", "admin")
    (pair,) = rows_of(node, "column_lineage", user="reader")
    (city,) = rows_of(node, "columns", where=[["path", "=", "main.a.t"], ["column_name", "=", "city"]])
    assert (pair["field_id"], pair["direct"], pair["type"]) == (city["field_id"], True, "IDENTITY")


def test_lineage_has_no_column_names_for_a_restricted_reader(node: DriverNode) -> None:
    """A reported name may be that of a former column, which a restricted reader must not know: the id is shown."""
    make_lake(node)
    report_lineage(node)
    terms = {"masks": {"id": "replace-with-null"}, "to": {"users": ["reader"]}}
    node.done("PUT", f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions/few", terms)
    (pair,) = rows_of(node, "column_lineage", user="reader")

    assert (pair["source_column"], pair["column_name"]) == ("city", None)
    assert pair["field_id"]


def test_lineage_that_was_just_reported_is_read(node: DriverNode) -> None:
    """Reports of lineage leave the revision as it is: each read of lineage has a revision of its own."""
    make_lake(node)
    assert rows_of(node, "lineage") == []
    scan(node, "nodes")
    revision, parts = scan(node, "lineage")
    report_lineage(node)

    assert [part_of(node, "lineage", revision, part) for part in parts] == [(200, [])] * len(parts)
    assert len(rows_of(node, "lineage")) == 4
    node.runner.run(held_snapshots.HELD_SNAPSHOTS.of(node.built.services).close())
    assert part_of(node, "lineage", revision, parts[0]) == (409, "revision-ended")


def test_runs_are_shown_to_their_owners(node: DriverNode) -> None:
    """The owner of the metalake and the user of a run read it; another user does not."""
    make_lake(node)
    uuid = started(node)
    rows = rows_of(node, "runs")

    assert [(row["uuid"], row["pipeline"], row["state"], row["user_name"]) for row in rows] == [
        (uuid, "nyc", "running", "admin")
    ]
    assert rows_of(node, "runs", user="reader") == []


def test_run_without_heartbeats_is_shown_as_lost(node: DriverNode) -> None:
    """A live run whose lease has ended is lost, as in lists of runs."""
    make_lake(node)
    run = started(node)
    silence = Sql("UPDATE pipeline_run SET beat_at = 0 WHERE uuid = :uuid")
    services = node.built.services
    node.runner.run(services.store.submit(upkeep_permit("limnos"), lambda tx: tx.count(silence, {"uuid": run})))

    assert [(row["uuid"], row["state"]) for row in rows_of(node, "runs")] == [(run, "lost")]


def test_operations_are_shown_to_those_who_maintain(node: DriverNode) -> None:
    """Operations on a table are read by its owner, and not by a user who may only read the table."""
    make_lake(node)
    (table,) = rows_of(node, "nodes", where=[["path", "=", "main.a.t"]])
    (catalog,) = rows_of(node, "nodes", where=[["path", "=", "main"]])

    def begin(tx: Tx) -> None:
        tx.maintenance.begin(
            catalog_id=catalog["id"], node_id=table["id"], kind="expire", user="admin", policy=None, state="waiting"
        )

    node.runner.run(node.built.services.store.submit(upkeep_permit("limnos"), begin))

    (row,) = rows_of(node, "operations")
    assert (row["path"], row["operation"], row["user_name"]) == ("main.a.t", "expire", "admin")
    assert row["started_at"] is not None
    assert rows_of(node, "operations", user="reader") == []
    node.done("PUT", f"{API}/lake/owners/table/main.a.t", {"name": "reader", "type": "USER"})
    assert [row["path"] for row in rows_of(node, "operations", user="reader")] == ["main.a.t"]
