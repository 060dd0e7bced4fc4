# SPDX-License-Identifier: Apache-2.0
"""Reported lineage of the tables and columns of TPC-H and of the demo, compared with their queries."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from examples.demo.data import EXAMPLE
from limnos import pipeline
from limnos.client import Client, DeniedError, NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from limnos.client.values import LineageEdge, LineageGraph, LineageNode
    from tests.integration.live import LiveServer
    from tests.pipeline.conftest import TpchRuns

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.integration,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Edges = set[tuple[str, str]]

READ = {
    "customer_history": {"raw.customer"},
    "order_revenue": {"raw.lineitem"},
    "late_lines": {"raw.lineitem"},
    "revenue_by_month": {"raw.orders", "mart.order_revenue"},
    "nation_revenue": {"raw.customer", "raw.orders", "raw.lineitem", "raw.supplier", "raw.nation", "raw.region"},
}
"""The tables in each mart's query."""

UP = {
    ("customer_history", "c_acctbal"): {("raw.customer.c_acctbal", "mart.customer_history.c_acctbal")},
    ("order_revenue", "revenue"): {
        ("raw.lineitem.l_extendedprice", "mart.order_revenue.revenue"),
        ("raw.lineitem.l_discount", "mart.order_revenue.revenue"),
    },
    ("late_lines", "days_late"): {
        ("raw.lineitem.l_receiptdate", "mart.late_lines.days_late"),
        ("raw.lineitem.l_commitdate", "mart.late_lines.days_late"),
    },
    ("revenue_by_month", "o_month"): {("raw.orders.o_orderdate", "mart.revenue_by_month.o_month")},
    ("revenue_by_month", "revenue"): {
        ("mart.order_revenue.revenue", "mart.revenue_by_month.revenue"),
        ("raw.lineitem.l_extendedprice", "mart.order_revenue.revenue"),
        ("raw.lineitem.l_discount", "mart.order_revenue.revenue"),
    },
    ("nation_revenue", "n_name"): {("raw.nation.n_name", "mart.nation_revenue.n_name")},
    ("nation_revenue", "customers"): {("raw.customer.c_custkey", "mart.nation_revenue.customers")},
}
"""Direct inputs of columns of marts, down to tables."""

DEMO = {
    ("flight_date", "flights.year"),
    ("flight_date", "flights.month"),
    ("flight_date", "flights.day"),
    ("carrier", "flights.carrier"),
    ("airline", "airlines.name"),
    ("flight", "flights.flight"),
    ("tailnum", "flights.tailnum"),
    ("origin", "flights.origin"),
    ("origin_name", "airports.name"),
    ("dest", "flights.dest"),
    ("dest_name", "airports.name"),
    ("scheduled_hour", "flights.hour"),
    ("dep_delay", "flights.dep_delay"),
    ("arr_delay", "flights.arr_delay"),
    ("cancelled", "flights.dep_time"),
    ("air_time", "flights.air_time"),
    ("distance", "flights.distance"),
    ("plane_year", "planes.year"),
    ("manufacturer", "planes.manufacturer"),
    ("model", "planes.model"),
    ("seats", "planes.seats"),
    ("temp", "weather.temp"),
    ("wind_speed", "weather.wind_speed"),
    ("precip", "weather.precip"),
    ("visib", "weather.visib"),
}
"""Each column of the demo's curated table, with its raw input columns."""

DELIVERY = {
    "airlines": "carrier,name\nAA,Air\n",
    "airports": "faa,name,lat,lon,alt,tz,dst,tzone\nJFK,Here,1,1,1,-5,A,x\nBOS,There,1,1,1,-5,A,x\n",
    "planes": "tailnum,year,type,manufacturer,model,engines,seats,speed,engine\nN1,2000,a,b,c,2,100,NA,d\n",
    "weather": (
        "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour\n"
        "JFK,2013,1,1,5,39,26,59,270,10,NA,0,1012,10,2013-01-01 05:00:00\n"
    ),
    "flights": (
        "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
        "origin,dest,air_time,distance,hour,minute,time_hour\n"
        "2013,1,1,517,515,2,630,619,11,AA,1545,N1,JFK,BOS,45,187,5,15,2013-01-01 05:00:00\n"
    ),
}
"""One flight with its related rows."""


def _name(node: LineageNode) -> str:
    """Return a table's name without catalog and second level, a file's directory, and a column after a dot."""
    if node.path is not None:
        name = f"{node.path[1]}.{node.path[-1]}"
    elif node.name is not None:
        name = f"data/{node.name.rpartition('/data/')[2].partition('/')[0]}"
    else:
        name = node.kind
    return f"{name}.{node.column}" if node.column else name


def _edges(graph: LineageGraph, *, direct: bool | None = None) -> Edges:
    """Return the edges of a graph by names; `direct` omits the indirect ones."""
    names = {node.id: _name(node) for node in graph.nodes}
    edges: list[LineageEdge] = [each for each in graph.edges if direct is None or each.direct is direct]
    return {(names[edge.source], names[edge.target]) for edge in edges}


def _between_tables(edges: Edges) -> Edges:
    return {edge for edge in edges if not edge[0].startswith("data/")}


def _everything_above(mart: str) -> Edges:
    """Return the expected upstream edges: the tables in the mart's query, their inputs, and the files of raw tables."""
    edges, todo = set(), [f"mart.{mart}"]
    while todo:
        table = todo.pop()
        room, _, name = table.partition(".")
        sources = READ[name] if room == "mart" else {f"data/{name}"}
        edges |= {(source, table) for source in sources}
        todo += [source for source in sources if not source.startswith("data/")]
    return edges


@contextmanager
def _renamed(admin: Client, source: str, target: str) -> Iterator[None]:
    """Rename a namespace for the body of a `with`."""
    admin.namespaces.move(source, target)
    try:
        yield
    finally:
        admin.namespaces.move(target, source)


@pytest.mark.parametrize("mart", READ)
@pytest.mark.usefixtures("tpch")
def test_upstream_graph_of_mart_is_complete(admin: Client, mart: str) -> None:
    """The complete upstream graph of a mart has exactly the tables in the queries, down to the files."""
    graph = admin.lineage.up(f"main.mart.tpch.{mart}", depth=10)

    assert _edges(graph) == _everything_above(mart)
    assert graph.complete


@pytest.mark.usefixtures("tpch")
def test_downstream_graph_of_raw_table_is_complete(admin: Client) -> None:
    """The complete downstream graph of the line items has the marts that read them, including marts over other
    marts.
    """
    graph = admin.lineage.down("main.raw.tpch.lineitem", depth=10)

    assert _edges(graph) == {
        ("raw.lineitem", "mart.order_revenue"),
        ("raw.lineitem", "mart.late_lines"),
        ("raw.lineitem", "mart.nation_revenue"),
        ("mart.order_revenue", "mart.revenue_by_month"),
    }


@pytest.mark.parametrize("mart, column", UP)
@pytest.mark.usefixtures("tpch")
def test_mart_column_has_direct_upstream_columns(admin: Client, mart: str, column: str) -> None:
    """A mart's column has direct edges from the columns in its expression, through merges, histories and other
    marts.
    """
    graph = admin.lineage.up(f"main.mart.tpch.{mart}", column=column, depth=10)

    assert _between_tables(_edges(graph, direct=True)) == UP[mart, column]


@pytest.mark.usefixtures("tpch")
def test_discount_is_input_of_three_revenue_columns_only(admin: Client) -> None:
    """The discount is an input of the revenue of three marts, and of no other column."""
    graph = admin.lineage.down("main.raw.tpch.lineitem", column="l_discount", depth=10)

    assert _edges(graph, direct=True) == {
        ("raw.lineitem.l_discount", "mart.order_revenue.revenue"),
        ("raw.lineitem.l_discount", "mart.nation_revenue.revenue"),
        ("mart.order_revenue.revenue", "mart.revenue_by_month.revenue"),
    }


@pytest.mark.usefixtures("tpch")
def test_join_and_group_columns_are_indirect_inputs(admin: Client) -> None:
    """A count has no direct input; the columns of its joins and groups are indirect inputs."""
    graph = admin.lineage.up("main.mart.tpch.revenue_by_month", column="orders", depth=1)

    assert _edges(graph, direct=True) == set()
    assert {source for source, _ in _edges(graph, direct=False)} == {
        "raw.orders.o_orderkey",
        "mart.order_revenue.l_orderkey",
        "raw.orders.o_orderdate",
        "raw.orders.o_orderstatus",
    }


@pytest.mark.usefixtures("tpch")
def test_lineage_follows_a_renamed_namespace(admin: Client) -> None:
    """After a rename of a namespace the lineage is the same under the new name; the old name does not occur."""
    before = admin.lineage.up("main.mart.tpch.revenue_by_month", column="revenue", depth=10)
    with _renamed(admin, "main.raw.tpch", "main.raw.tpch_old"):
        tables = admin.lineage.up("main.mart.tpch.revenue_by_month", depth=10)
        columns = admin.lineage.up("main.mart.tpch.revenue_by_month", column="revenue", depth=10)
        below = admin.lineage.down("main.raw.tpch_old.lineitem", depth=10)
        with pytest.raises(NotFoundError):
            admin.lineage.down("main.raw.tpch.lineitem")

    assert _edges(tables) == _everything_above("revenue_by_month")
    assert _edges(columns) == _edges(before)
    assert len(below.edges) == 4
    raw = {node.path[2] for node in (*tables.nodes, *columns.nodes) if node.path is not None and node.path[1] == "raw"}
    assert raw == {"tpch_old"}


@contextmanager
def _reader(server: LiveServer, admin: Client, *, place: str, whole: str, table: str) -> Iterator[Client]:
    """A user who may read all of one namespace, and one table of another."""
    admin.users.add("reader")
    admin.roles.create("readers")
    admin.roles.grant_to_user("reader", ["readers"])
    admin.roles.allow("readers", ["use_catalog"], on="main", kind="catalog")
    for room in (whole, "raw"):
        admin.roles.allow("readers", ["use_schema"], on=f"main.{room}.{place}", kind="namespace")
    admin.roles.allow("readers", ["select_table"], on=f"main.{whole}.{place}", kind="namespace")
    admin.roles.allow("readers", ["select_table"], on=f"main.raw.{place}.{table}", kind="table")
    with Client(server.uri, token=admin.tokens.create(user="reader").token) as client:
        yield client
    admin.roles.delete("readers")
    admin.users.remove("reader")


@pytest.fixture
def analyst(server: LiveServer, admin: Client, tpch: TpchRuns) -> Iterator[Client]:
    """A user who may read the marts, and of the raw tables only the orders."""
    del tpch  # created before privileges are granted on it
    with _reader(server, admin, place="tpch", whole="mart", table="orders") as client:
        yield client


def test_invisible_objects_are_hidden_nodes(analyst: Client) -> None:
    """An object that the caller may not see is a hidden node, and nothing beyond it is returned; visible tables and
    columns are.
    """
    tables = analyst.lineage.up("main.mart.tpch.revenue_by_month", depth=10)
    columns = analyst.lineage.up("main.mart.tpch.order_revenue", column="revenue", depth=10)

    assert _edges(tables) == {
        ("data/orders", "raw.orders"),
        ("raw.orders", "mart.revenue_by_month"),
        ("mart.order_revenue", "mart.revenue_by_month"),
        ("hidden", "mart.order_revenue"),
    }
    assert {source for source, _ in _edges(columns)} == {"hidden"}
    assert "lineitem" not in repr((tables, columns))


@pytest.fixture(scope="module")
def demo(served_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's pipeline, run on one flight."""
    place = tmp_path_factory.mktemp("demo")
    for name, text in DELIVERY.items():
        (place / "data" / name).mkdir(parents=True)
        (place / "data" / name / "1.csv").write_text(text)
    pipeline.load(shutil.copy(EXAMPLE, place)).run(served_spark).require()
    return place


@pytest.mark.usefixtures("demo")
def test_demo_table_lineage_is_complete(admin: Client) -> None:
    """The curated table has five raw tables as inputs, each with its files; it is the only table downstream of each."""
    names = tuple(DELIVERY)
    up = admin.lineage.up("main.curated.nyc.delays", depth=10)
    down = {name: _edges(admin.lineage.down(f"main.raw.nyc.{name}", depth=10)) for name in names}

    assert _edges(up) == {(f"raw.{name}", "curated.delays") for name in names} | {
        (f"data/{name}", f"raw.{name}") for name in names
    }
    assert down == {name: {(f"raw.{name}", "curated.delays")} for name in names}


@pytest.mark.usefixtures("demo")
def test_demo_column_lineage_is_complete(admin: Client) -> None:
    """Every column of the curated table is linked to the raw columns in its query, in both directions, also after a
    rename.
    """
    expected = {(f"raw.{source}", f"curated.delays.{column}") for column, source in DEMO}
    with _renamed(admin, "main.raw.nyc", "main.raw.nyc_old"):
        up = [admin.lineage.up("main.curated.nyc.delays", column=column) for column in {each for each, _ in DEMO}]
        down = admin.lineage.down("main.raw.nyc_old.airports", column="name")

    assert set().union(*(_edges(each, direct=True) for each in up)) == expected
    assert _edges(down, direct=True) == {edge for edge in expected if edge[0] == "raw.airports.name"}


@pytest.mark.usefixtures("demo")
def test_invisible_inputs_of_the_demo_are_hidden(server: LiveServer, admin: Client) -> None:
    """A reader of the curated table and the flights sees that it has more inputs, but not which."""
    with _reader(server, admin, place="nyc", whole="curated", table="flights") as reader:
        tables = reader.lineage.up("main.curated.nyc.delays", depth=10)
        airline = reader.lineage.up("main.curated.nyc.delays", column="airline")
        carrier = reader.lineage.up("main.curated.nyc.delays", column="carrier")
        with pytest.raises(DeniedError):
            reader.lineage.down("main.raw.nyc.airlines")

    assert _edges(tables) == {
        ("data/flights", "raw.flights"),
        ("raw.flights", "curated.delays"),
        ("hidden", "curated.delays"),
    }
    assert {source for source, _ in _edges(airline, direct=True)} == {"hidden"}
    assert _edges(carrier, direct=True) == {  # an edge from a hidden node has no details, not even its kind
        ("raw.flights.carrier", "curated.delays.carrier"),
        ("hidden", "curated.delays.carrier"),
    }
    assert "airlines" not in repr((tables, airline))
