# SPDX-License-Identifier: Apache-2.0
"""`ask` and the client's system tables, with a real server: results, pushed columns and conditions, refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from limnos.cli.main import main
from limnos.client import AsyncClient, Client, ClientError
from limnos.client.activity import system_tables
from tests.http.sockets import ServedNode

pytestmark = pytest.mark.slow

Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A server with some objects, and a user without rights."""
    node = ServedNode(tmp_path_factory.mktemp("served"), lane=True)
    with client_of(node) as client:
        for name in ("sales", "it's"):
            client.namespaces.create(f"main.`{name}`")
        client.tags.create("pii", comment="personal")
        client.users.add("ana")
    yield node
    node.stop()


def client_of(node: ServedNode, user: str = "admin") -> Client:
    """Return a client of the server."""
    return Client(f"http://127.0.0.1:{node.port}", user=user)


@pytest.fixture
def ask(served: ServedNode, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run `limnos ask` and return its rows."""

    def call(query: str, *, user: str = "admin", code: int = 0) -> list[dict[str, Any]]:
        uri = f"http://127.0.0.1:{served.port}"
        result = main(("ask", query, "--uri", uri, "--user", user, "--output", "json"))
        captured = capsys.readouterr()
        assert result == code, captured.err
        document: list[dict[str, Any]] = json.loads(captured.out if code == 0 else f"[{captured.err}]")
        return document

    return call


@pytest.mark.parametrize("query", ["describe tables", "DESC tables;", "show columns from tables"])
def test_description_of_a_table_lists_its_columns(ask: Ask, query: str) -> None:
    """`describe tables` describes the table of this name, where DuckDB lists tables."""
    assert {"path", "restricted"} <= {row["column_name"] for row in ask(query)}


@pytest.mark.parametrize(
    "query,message,hint",
    [
        ("select nam from nodes", 'no column "nam"', "did you mean name? nodes has id, kind, path,"),
        ("select nodes.foo from nodes", 'no column "foo"', "nodes has id, kind, path,"),
        ("select m.role from grants g, memberships m", 'no column "role"', "memberships has no role: memberships has "),
        ("select * from snapshots", "there is no table snapshots", "the tables are audit, changes, "),
        (
            "select path from effective_access where user = 'ana'",
            '"user" is no column',
            "user_name, of audit and effective_access",
        ),
        (
            "select user, count(*) from audit group by user",
            '"user" is no column',
            "user_name, of audit and effective_access",
        ),
        ("select * from node", "there is no table node", "did you mean nodes? the tables are "),
        ('select path from nodes where kind = "table"', '"table" is a column', "in single quotes: 'table'"),
        ("who owns main.raw.t?", "not a question in words", "'limnos show owner main.raw.t'; "),
        ("what can ana read", "not a question in words", "'limnos access reach --for ana'; "),
        ("which tables have no owner?", "not a question in words", "'limnos ask \"select path from nodes limit 10\"'"),
        ("select * from users", "Table with name users", "'limnos list users' lists them"),
        ("select kind from nodes group by kind order by count", '"count" not found', "order by n"),
        ("q.sql", "'q.sql' is the name of a file", 'limnos ask "$(cat q.sql)"'),
        ("copy nodes to 'x.csv'", "writes no files", "limnos ask 'from nodes' --output csv > x.csv"),
        (
            "copy (select name from nodes) to 'x y.csv'",
            "writes no files",
            "limnos ask 'select name from nodes' --output csv > 'x y.csv'",
        ),
        ("tables", "a table stands after FROM", "limnos ask 'from tables'"),
        ("selct path from nodes", "syntax error", "limnos ask 'select path from nodes'"),
    ],
)
def test_refused_query_is_answered_by_what_is_near(ask: Ask, query: str, message: str, hint: str) -> None:
    """A wrong name is answered with DuckDB's proposals, a text in double quotes and a question with what to type."""
    (error,) = [each["error"] for each in ask(query, code=2)]

    assert message in error["message"]
    assert hint in error["hint"]


@pytest.mark.parametrize("query", ["explain select name from nodes", "EXPLAIN ANALYZE select name from nodes"])
def test_plan_of_a_query_is_explained(ask: Ask, query: str) -> None:
    """`explain` and a query return DuckDB's plan of it, which reads the table."""
    assert "nodes" in str(ask(query))


def test_query_joins_and_counts(ask: Ask) -> None:
    """A query over several tables has the rows that all of their rows give."""
    rows = ask("select n.path, owner from nodes n join owners o using (id) where n.kind = 'namespace' order by 1")

    assert rows == [
        {"path": "main.`it's`", "owner": "admin"},
        {"path": "main.sales", "owner": "admin"},
    ]
    assert ask("select count(*) as n from nodes where kind = 'tag'") == [{"n": 1}]
    assert ask("select user_name, levels from effective_access where path = 'pii'") == [
        {"user_name": "admin", "levels": ["read", "write", "drop", "grant"]}
    ]
    assert ask("select path from nodes where path = 'main.`it''s`'") == [{"path": "main.`it's`"}]
    assert ask("select 1 as a, 2 as a") == [{"a": 1, "a_2": 2}]


@pytest.mark.parametrize(
    "condition",
    [
        "kind = 'namespace'",
        "kind <> 'namespace'",
        "kind in ('tag', 'catalog')",
        "path like 'main%'",
        "path >= 'main' and path < 'main.t'",
        "id > 1003 and id <= 1006",
        "name = 'it''s' or comment is not null",
        "not (kind = 'tag')",
        "name < 'zz AND id=5 AND z'",
        "(kind = 'tag' or id = 5) and name > 'a'",
        "created_at < now() and kind > 'catalog'",
        "created_at > now() - interval '1 day'",
        "created_at <= timestamptz '2026-01-01 00:00:00.1234567+00'",
        "created_at between '1900-01-01' and '9999-12-31' and kind = 'tag'",
        "parent_id is null",
        "catalog = 'main' and format is null",
        "properties['warehouse'] is not null",
        "1 = 0",
    ],
)
def test_pushed_conditions_do_not_change_the_result(ask: Ask, condition: str) -> None:
    """Whatever is evaluated by the server, the rows are those of the query over the whole table."""
    whole = {row["id"]: row for row in ask("select * from nodes")}
    chosen = ask(f"select id, name from nodes where {condition} order by id")

    assert len(whole) == 6
    for row in chosen:
        assert row == {key: whole[row["id"]][key] for key in ("id", "name")}
    counted = ask(f"select count(*) filter (where {condition}) as n from nodes")  # a scan of the whole table
    assert counted == [{"n": len(chosen)}]


def test_only_used_columns_and_rows_are_fetched(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is queries for the columns that the query uses, and for the rows of its simple conditions."""
    queries: list[dict[str, str | None]] = []
    real = system_tables.request

    def spy(method: str, path: str, *, query: dict[str, str | None]) -> object:
        queries.append(query)
        return real(method, path, query=query)

    monkeypatch.setattr(system_tables, "request", spy)
    ask("select name from nodes where kind = 'tag' and id > 5")

    assert [each["columns"] for each in queries] == ["id,kind,name"]
    assert json.loads(queries[0]["where"] or "") == [["kind", "=", "tag"], ["id", ">", 5]]


@pytest.mark.parametrize("sign,number", [(">=", 1), ("<", 1), (">", 0), ("<=", 0), ("=", None)])
def test_times_are_compared_in_milliseconds(sign: str, number: int | None) -> None:
    """A comparison with a part of a millisecond selects the times in milliseconds that it selects itself."""
    moment = datetime(1970, 1, 1, 0, 0, 0, 400, tzinfo=UTC)
    whole = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)

    assert system_tables.time_condition("t", sign, moment=moment) == (None if number is None else ("t", sign, number))
    assert system_tables.time_condition("t", sign, moment=whole) == ("t", sign, 1000)


def test_activity_is_queried_by_time_and_user(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audit records and changes are rows; conditions on times and users are sent to the server."""
    queries: list[dict[str, str | None]] = []
    real = system_tables.request

    def spy(method: str, path: str, *, query: dict[str, str | None]) -> object:
        queries.append(query)
        return real(method, path, query=query)

    monkeypatch.setattr(system_tables, "request", spy)
    day = "occurred_at >= now() - interval '1 day'"
    audited = ask(f"select path from audit where {day} and user_name = 'admin' and change = 'create' and kind = 'tag'")
    changed = ask(f"select path from changes where {day} and actor = 'admin' and kind = 'tag'")

    assert audited == changed == [{"path": "pii"}]
    for each, user in zip(queries, ("user_name", "actor"), strict=True):
        where = json.loads(each["where"] or "")
        assert [user, "=", "admin"] in where
        assert [name for name, sign, _ in where if sign == ">="] == ["occurred_at"]
    assert ask("select path from audit", user="ana") == []


def test_tables_and_columns_are_described(ask: Ask) -> None:
    """`show tables` and `describe` name the tables and their columns; nothing is read for them."""
    assert {"name": "effective_access"} in ask("show tables")
    assert ask("describe nodes")[0]["column_name"] == "id"


@pytest.mark.parametrize(
    "query",
    ["select nothing from nodes", "selec 1", "select 1; select 2", "", "select * from '/etc/passwd'", "install httpfs"],
)
def test_bad_query_is_refused(ask: Ask, query: str) -> None:
    """A wrong query, several queries, and one that reads files or the network end with the code of a usage error."""
    (error,) = ask(query, code=2)

    assert error["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "statement",
    [
        "delete from nodes",
        "update nodes set name = 'x'",
        "drop table nodes",
        "create table x (a int)",
        "set threads = 1",
    ],
)
def test_statement_that_is_no_read_is_refused(ask: Ask, statement: str) -> None:
    """A statement that would change the copies of the tables is refused, since it would change no object."""
    error = ask(statement, code=2)[0]["error"]

    assert "changes nothing" in error["message"]


def test_query_of_a_table_of_the_lake_names_the_command_for_rows(ask: Ask) -> None:
    """A query of a table by its path is answered by the command that shows rows."""
    error = ask("select * from main.raw.t where a = 1", code=2)[0]["error"]

    assert "not the rows of main.raw.t" in error["message"]
    assert error["hint"].startswith("'limnos head main.raw.t' shows rows of it")
    assert "limnos sql" in error["hint"]


def test_query_of_a_lance_table_does_not_lead_to_sqlpp(ask: Ask) -> None:
    """SQL++ reads no Lance tables, so it is not proposed for one."""
    error = ask("select * from lance.raw.t", code=2)[0]["error"]

    assert error["hint"].startswith("'limnos head lance.raw.t' shows rows of it")
    assert "limnos sql" not in error["hint"]


def test_user_without_rights_sees_own_rows_only(ask: Ask) -> None:
    """A user without rights finds the metalake and the own user."""
    assert ask("select path from nodes", user="ana") == [{"path": "lake"}]
    assert ask("select name from principals", user="ana") == [{"name": "ana"}]


def test_client_reads_tables_whole_and_in_parts(served: ServedNode) -> None:
    """Both clients read a table in one stream, and in parts at one revision."""
    with client_of(served) as client:
        tables = [each.name for each in client.system_tables.list()]
        (whole,) = client.system_tables.read("nodes", columns=["id"])
        parts = client.system_tables.read("nodes", columns=["id"], parts=3)
        scan = client.system_tables.scan("nodes", parts=2)
        one = client.system_tables.read_part("nodes", revision=scan.revision, part=scan.parts[1])

    async def read() -> tuple[bytes, ...]:
        async with AsyncClient(f"http://127.0.0.1:{served.port}", user="admin") as client:
            return await client.system_tables.read("nodes", where=[("kind", "=", "tag")], parts=2)

    assert "nodes" in tables
    assert [each.name for each in scan.table.columns][:3] == ["id", "kind", "path"]
    assert rows_of(parts) == rows_of([whole])
    assert rows_of([one])
    assert len(rows_of(asyncio.run(read()))) == 1


def rows_of(streams: tuple[bytes, ...] | list[bytes]) -> list[dict[str, object]]:
    """Return the rows of Arrow streams."""
    return [row for each in streams for row in pa.ipc.open_stream(each).read_all().to_pylist()]


def test_ended_revision_is_read_again(served: ServedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A revision that ends between two parts is read again from the start; after some attempts the error is raised."""
    real = system_tables.SystemTables._rows
    failures = 0

    def fail(self: object, table: str, **named: Any) -> Any:  # noqa: ANN401 - a flow
        nonlocal failures
        if failures > 0 and named["part"] is not None:
            failures -= 1
            named["revision"] = "0" * 32
        return real(self, table, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(system_tables.SystemTables, "_rows", fail)
    with client_of(served) as client:
        failures = 2
        assert rows_of(client.system_tables.read("nodes", parts=2))
        failures = 99
        with pytest.raises(ClientError, match="read the table again") as raised:
            client.system_tables.read("nodes", parts=2)
    assert raised.value.code == "revision-ended"
