# SPDX-License-Identifier: Apache-2.0
"""SQL++ statements over HTTP, executed by the engine that the server starts; other engines read the results."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import BadRequestError
from pyiceberg.types import StringType

from limnos.client import Client
from tests.integration.duckdb_client import attached
from tests.integration.live import LiveServer, serving
from tests.integration.test_gravitino_client import interpreter as gravitino

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

SLIDES = (
    "create dataverse sales.east;",
    "create type sales.east.orderType as { oid: bigint };",
    "create dataset sales.east.orders(sales.east.orderType) primary key oid;",
    "create dataverse sales.west;",
    "create type sales.west.orderType as { oid: bigint };",
    "create dataset sales.west.orders(sales.west.orderType) primary key oid;",
    "use sales.east; insert into orders ({'oid' : 100, 'what': 'tea' });",
    "use sales.west; insert into orders ([{'oid' : 100, 'what': 'ink' }, {'oid': 101}]);",
    "use sales.east; select value o from orders as o",
    "/* Backquote identifiers */ use `sales`.`east`; select value o from orders as o",
    "/* Fully qualified dataset name in FROM clause */ select value o from sales.east.orders as o",
    "/* Join */ select * from sales.east.orders as e, sales.west.orders as w where e.oid = w.oid",
)
"""Statements on dataverses of several parts, in this order; objects have fields besides their key, and joined datasets
are created.
"""
TEA, INK = {"oid": 100, "what": "tea"}, {"oid": 100, "what": "ink"}
MADE = """
use sales.east;
create type Item as { sku: string, n: integer };
create type Sale as { id: bigint, customer: string?, items: [Item]?, at_: datetime? };
create dataset Orders(Sale) primary key id;
create synonym O for Orders;
insert into Orders ([
  {"id": 1, "customer": "Ann", "items": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}], "note": "first"},
  {"id": 2, "customer": null, "at_": datetime("2020-01-02T03:04:05")},
  {"id": 3, "customer": "Bob", "items": [{"sku": "a", "n": 5, "gift": true}]}
]);
"""


GRAVITINO = """
import json, sys
from gravitino import GravitinoClient, NameIdentifier
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.namespace import Namespace
tables = GravitinoClient(sys.argv[1], "lake", auth_data_provider=BasicAuthProvider("admin", "x")).load_catalog("main").as_table_catalog()
names = [each.name() for each in tables.list_tables(Namespace.of("sales:west"))]
columns = [each.name() for each in tables.load_table(NameIdentifier.of("sales:west", names[0])).columns()]
print(json.dumps([names, columns]))
"""
SPARK = """
import json, sys
from limnos.spark import session
spark = session(sys.argv[1], token=sys.argv[2], master="local[1]")
print(json.dumps([[str(each) for each in row] for row in spark.sql("select oid, _open from main.sales.west.orders order by oid").collect()]))
spark.stop()
"""


def run_script(python: Path, script: str, server: LiveServer) -> object:
    """Return the last line that another engine's or client's program prints, parsed as JSON."""
    done = subprocess.run(
        [python, "-c", script, server.uri, server.token], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that may read files of a directory, with a dataverse, its types and a dataset."""
    base = tmp_path_factory.mktemp("service")
    (base / "files").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIMNOS__SQLPP__FILE_ROOTS", str(base / "files"))
        with serving(base / "data") as running:
            for statement in (*SLIDES[:8], MADE):
                status, answer = ask(running, statement)
                assert (status, answer.get("errors")) == (200, None), answer
            yield running


def ask(server: LiveServer, statement: str, token: str | None = None, **parameters: str) -> tuple[int, dict[str, Any]]:
    """Send statements; returns the status and the body."""
    request = urllib.request.Request(
        f"{server.uri}/query/service",
        data=json.dumps({"statement": statement, **parameters}).encode(),
        headers={"Authorization": f"Bearer {token or server.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def rows(server: LiveServer, statement: str, **parameters: str) -> list[Any]:
    """Return the results of a statement, which must succeed."""
    status, answer = ask(server, statement, **parameters)
    assert status == 200, answer
    assert "errors" not in answer, answer
    results: list[Any] = answer.get("results", [])
    return results


def test_first_statements_are_readable_by_other_clients(server: LiveServer) -> None:
    """Each query returns its rows; PyIceberg, DuckDB and Spark SQL then read the same tables, and Gravitino's client
    lists them.
    """
    catalog = load_catalog("lake", uri=f"{server.uri}/iceberg", token=server.token, warehouse="lake/main")
    fetched = [rows(server, statement) for statement in SLIDES[8:]]
    read = {
        space: sorted(catalog.load_table(("sales", space, "orders")).scan().to_arrow().column("oid").to_pylist())
        for space in ("east", "west")
    }
    listed = run_script(gravitino(), GRAVITINO, server)
    sql = run_script(Path(sys.executable), SPARK, server)

    assert fetched == [[TEA], [TEA], [TEA], [{"e": TEA, "w": INK}]]
    assert read == {"east": [100], "west": [100, 101]}
    assert listed == [["orders"], ["oid", "_open"]]
    assert sql == [["100", '{"what":"ink"}'], ["101", "None"]]
    with attached(server) as duck:
        table_rows = duck.sql('SELECT oid, _open FROM lake."sales.west".orders ORDER BY oid').fetchall()
    assert table_rows == [(100, '{"what":"ink"}'), (101, None)]


def test_deferred_result_of_engine_is_stored(server: LiveServer) -> None:
    """A deferred result of the engine is stored like other results."""
    request = urllib.request.Request(
        f"{server.uri}/query/service",
        data=json.dumps({"statement": SLIDES[8], "mode": "deferred"}).encode(),
        headers={"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        handle = json.loads(answer.read())["handle"]
    fetch = urllib.request.Request(handle, headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(fetch) as answer:
        assert json.loads(answer.read())["results"] == [TEA]


def test_query_joins_and_groups_inserted_data(server: LiveServer) -> None:
    """Joins, unnesting, groups, a synonym, a name of several parts, and a view over a function work over inserted
    data.
    """
    ask(server, "create function sales.east.big(x) { x > 1 }")
    ask(
        server,
        "create view sales.east.big_items as select o.id, i.sku from sales.east.Orders o unnest o.items i where"
        " sales.east.big(i.n)",
    )

    assert rows(
        server,
        "use sales.east; select i.sku, sum(i.n) as total from O o unnest o.items i group by i.sku order by i.sku",
    ) == [
        {"sku": "a", "total": 7},
        {"sku": "b", "total": 1},
    ]
    assert rows(server, "select value b from sales.east.big_items b order by b.id") == [
        {"id": 1, "sku": "a"},
        {"id": 3, "sku": "a"},
    ]
    assert rows(server, "select o.id, o.customer, o.note from sales.east.Orders o order by o.id") == [
        {"id": 1, "customer": "Ann", "note": "first"},
        {"id": 2, "customer": None},
        {"id": 3, "customer": "Bob"},
    ]


def test_insert_upsert_delete_and_returning_work(server: LiveServer) -> None:
    """INSERT of a query, UPSERT, DELETE and RETURNING work; an existing key is refused with AsterixDB's message, and
    nothing is written.
    """
    ask(server, "use sales.east; create dataset Copies(Sale) primary key id")

    returned_ids = rows(
        server, "use sales.east; insert into Copies as c (select value o from Orders o where o.id < 3) returning c.id"
    )
    status, refused = ask(server, "insert into sales.east.Copies ([{'id': 9}, {'id': 2}])")
    rows(server, "upsert into sales.east.Copies ([{'id': 2, 'customer': 'Eve'}, {'id': 4}])")
    rows(server, "delete from sales.east.Copies c where c.id = 1")

    assert sorted(returned_ids) == [1, 2]
    assert status == 400
    assert "HYR0033: Inserting duplicate keys into the primary storage" in refused["errors"][0]["msg"]
    assert rows(server, "select value c from sales.east.Copies c order by c.id") == [
        {"id": 2, "customer": "Eve"},
        {"id": 4},
    ]


def test_aggregates_over_foreign_tables_equal_their_engines(server: LiveServer) -> None:
    """Totals and means over narrow columns of a table that another engine wrote equal those of that engine."""
    catalog = load_catalog("lake", uri=f"{server.uri}/iceberg", token=server.token, warehouse="lake/main")
    narrow_table = pa.table(
        {
            "n": pa.array([2_000_000_000, 2_000_000_000, None], pa.int32()),
            "f": pa.array([16_777_216.0, 1.0, 0.25], pa.float32()),
        }
    )
    catalog.create_table(("sales", "east", "narrow"), schema=narrow_table.schema).append(narrow_table)

    (aggregates,) = rows(
        server, "select sum(t.n) as n, sum(t.f) as f, avg(t.n) as a, avg(t.f) as g from sales.east.narrow t"
    )
    windows = rows(server, "select value sum(t.n) over () from sales.east.narrow t")
    with attached(server) as duck:
        totals = duck.sql('SELECT sum(n), sum(f), avg(n), avg(f) FROM lake."sales.east".narrow').fetchone()

    assert tuple(aggregates.values()) == totals == (4_000_000_000, 16_777_217.25, 2e9, 16_777_217.25 / 3)
    assert windows == [4_000_000_000] * 3


def test_load_reads_only_below_configured_directory(server: LiveServer) -> None:
    """LOAD reads files below the configured directory only."""
    files = server.data.parent / "files"
    (files / "orders.json").write_text('{"id": 1, "customer": "X", "at_": "2020-01-01T00:00:00"}\n{"id": 2}\n')
    ask(server, "use sales.east; create dataset Loaded(Sale) primary key id")

    def load(path: Path) -> tuple[int, dict[str, Any]]:
        return ask(
            server,
            f'use sales.east; load dataset Loaded using localfs (("path"="127.0.0.1://{path}"), ("format"="json"))',
        )

    status, answer = load(files / "orders.json")
    assert status == 200, answer
    assert load(server.data / "admin.token")[0] == 400
    assert rows(server, "select value l from sales.east.Loaded l order by l.id") == [
        {"id": 1, "customer": "X", "at_": "2020-01-01T00:00:00.000"},
        {"id": 2},
    ]
    (files / "more.csv").write_text("id|customer\n2|Ann|\n3||\n")
    rows(
        server,
        f"copy sales.east.Loaded from localfs path ('{files}/more.csv') with {{'format': 'csv', 'delimiter': '|',"
        " 'header': true}",
    )
    formatted = rows(server, "select value l from sales.east.Loaded l order by l.id", format="adm")
    assert formatted[:2] == [
        '{ "id": 1, "customer": "X", "at_": datetime("2020-01-01T00:00:00.000") }',
        '{ "id": 2, "customer": "Ann" }',
    ]
    assert rows(server, "select value l.customer from sales.east.Loaded l where l.id = 3") == [""]


def test_update_sets_fields_and_returns_objects(server: LiveServer) -> None:
    """UPDATE sets fields of matching objects, including open fields; RETURNING returns the new objects."""
    rows(
        server,
        "use sales.east; create dataset Updated(Sale) primary key id; insert into Updated (select value o from"
        " Orders o)",
    )

    returned = rows(
        server,
        "use sales.east; update Updated as u set u.customer = 'Eve' set u.more = {} set u.more.n = u.id where u.id >= 2"
        " returning u.more.n",
    )
    left = rows(server, "use sales.east; select u.id, u.customer, u.more from Updated u order by u.id")

    assert sorted(returned) == [2, 3]
    assert left == [
        {"id": 1, "customer": "Ann"},
        {"id": 2, "customer": "Eve", "more": {"n": 2}},
        {"id": 3, "customer": "Eve", "more": {"n": 3}},
    ]


def test_pyiceberg_reads_dataset_and_client_lists_it(server: LiveServer) -> None:
    """PyIceberg reads the rows, and the client lists the table."""
    catalog = load_catalog("lake", uri=f"{server.uri}/iceberg", token=server.token, warehouse="lake/main")

    objects = catalog.load_table(("sales", "east", "Orders")).scan().to_arrow().to_pylist()

    assert sorted(row["id"] for row in objects) == [1, 2, 3]
    (first,) = (row for row in objects if row["id"] == 1)
    assert first["items"] == [{"sku": "a", "n": 2, "_open": None}, {"sku": "b", "n": 1, "_open": None}]
    assert first["_open"] == '{"note":"first"}'
    with Client(server.uri, token=server.token) as client:
        assert ("main", "sales", "east", "Orders") in client.tables.list(("main", "sales", "east"))


def test_pyiceberg_cannot_append_to_dataset_unless_allowed(server: LiveServer) -> None:
    """PyIceberg cannot append to a dataset, because it would not check keys, unless the dataset allows other writers;
    nor can it rename a column.
    """
    catalog = load_catalog("lake", uri=f"{server.uri}/iceberg", token=server.token, warehouse="lake/main")
    ask(server, "use sales.east; create dataset Shared(Sale) primary key id with {'outside-writers': 'allowed'}")
    ask(server, "use sales.east; insert into Shared ({'id': 1})")
    closed, shared = (catalog.load_table(("sales", "east", name)) for name in ("Orders", "Shared"))
    more = pa.table({"id": [7]}, schema=shared.schema().select("id").as_arrow())

    with pytest.raises(BadRequestError, match="accepts rows only from SQL"):
        closed.append(more)
    with pytest.raises(BadRequestError, match="its column customer"), closed.update_schema() as change:
        change.rename_column("customer", "who")
    with shared.update_schema() as change:
        change.add_column("extra", StringType())
    shared.append(more)
    rows(server, "upsert into sales.east.Shared ([{'id': 7, 'customer': 'Eve'}, {'id': 8}])")

    assert ask(server, "insert into sales.east.Shared ({'id': 7})")[0] == 400
    assert rows(server, "select value s from sales.east.Shared s order by s.id") == [
        {"id": 1},
        {"id": 7, "customer": "Eve"},
        {"id": 8},
    ]


def test_caller_without_privilege_is_refused_before_engine_job(server: LiveServer) -> None:
    """A caller without a privilege on a dataset is refused before the engine receives a job."""
    with Client(server.uri, token=server.token) as client:
        client.users.add("ben")
        text = client.tokens.create(user="ben", name="t", expires_in_s=3600).token

    assert ask(server, "select value o.id from sales.east.Orders o", text)[0] == 403
    assert ask(server, "insert into sales.east.Orders ({'id': 77})", text)[0] == 403


def test_writer_without_the_right_to_read_adds_objects_and_reads_none(server: LiveServer) -> None:
    """With MODIFY_TABLE alone, a caller inserts and gets the inserted objects back, but no statement reads a row. The
    error for a duplicate names the key that the caller gave, and nothing else.
    """
    with Client(server.uri, token=server.token) as client:
        client.users.add("mod")
        client.roles.create("mods")
        client.roles.grant_to_user("mod", ["mods"])
        for privilege, on, kind in (("use_catalog", "main", "catalog"), ("use_schema", "main.sales.east", "namespace")):
            client.roles.allow("mods", [privilege], on=on, kind=kind)
        client.roles.allow("mods", ["modify_table"], on="main.sales.east.Orders", kind="table")
        text = client.tokens.create(user="mod", name="t", expires_in_s=3600).token

    status, answer = ask(server, "insert into sales.east.Orders as o ({'id': 90}) returning o", text)
    assert (status, answer.get("results")) == (200, [{"id": 90}]), answer
    status, answer = ask(server, "insert into sales.east.Orders ({'id': 1})", text)
    assert answer["errors"][0]["msg"] == 'HYR0033: Inserting duplicate keys into the primary storage: {"id": 1}', answer
    for statement in (
        "select value o from sales.east.Orders o",
        "select value count(*) from sales.east.O o",
        "explain select value o from sales.east.Orders o",
        "insert into sales.east.Orders (select o.id + 100 as id, o.note from sales.east.Orders o)",
        "delete from sales.east.Orders o where o.customer = 'Ann'",
        "update sales.east.Orders as o set o.note = o.customer where o.id = 90 returning o",
    ):
        status, answer = ask(server, statement, text)

        assert (status, "SELECT_TABLE" in answer["errors"][0]["msg"]) == (403, True), (statement, answer)
    assert rows(server, "select value o.note from sales.east.Orders o where o.id = 1") == ["first"]
    rows(server, "delete from sales.east.Orders o where o.id = 90")
