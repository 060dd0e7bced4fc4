# SPDX-License-Identifier: Apache-2.0
"""Hand-written statements that replace `examples/tpch/pipeline.yaml`: one for each table and day.

Imports the standard library only. Modes, Iceberg tables and conditions are those of the pipeline's steps, and
incremental tables read only the day's rows. Nothing is checked, and readers can see a table before the others are done.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

WHOLE = ("region", "nation", "supplier", "part", "partsupp")
RAW, MART = "main.raw.tpch", "main.mart.tpch"
TRACKED = ("c_nationkey", "c_acctbal", "c_mktsegment")
_HISTORY = ("c_custkey", "c_nationkey", "c_acctbal", "c_mktsegment", "changed_at")
QUERIES = {
    "order_revenue": (
        f"""
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS lines FROM {RAW}.lineitem GROUP BY l_orderkey
    """
    ),
    "late_lines": (
        """
        SELECT l_orderkey, l_linenumber, l_commitdate, l_receiptdate, datediff(l_receiptdate, l_commitdate) AS days_late
        FROM {lines} WHERE l_receiptdate > l_commitdate
    """
    ),
    "revenue_by_month": (
        f"""
        SELECT CAST(trunc(o.o_orderdate, 'MM') AS DATE) AS o_month, o.o_orderstatus, count(*) AS orders, sum(r.revenue) AS revenue
        FROM {RAW}.orders o JOIN {MART}.order_revenue r ON r.l_orderkey = o.o_orderkey GROUP BY 1, 2
    """
    ),
    "nation_revenue": (
        f"""
        SELECT n.n_name, count(DISTINCT c.c_custkey) AS customers, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue
        FROM {RAW}.customer c JOIN {RAW}.orders o ON o.o_custkey = c.c_custkey JOIN {RAW}.lineitem l ON l.l_orderkey = o.o_orderkey
        JOIN {RAW}.supplier s ON s.s_suppkey = l.l_suppkey AND s.s_nationkey = c.c_nationkey
        JOIN {RAW}.nation n ON n.n_nationkey = s.s_nationkey JOIN {RAW}.region g ON g.r_regionkey = n.n_regionkey
        WHERE g.r_name = 'ASIA' GROUP BY n.n_name
    """
    ),
}
KEYS = {"customer": "c_custkey", "orders": "o_orderkey"}
TABLES = tuple(f"{RAW}.{name}" for name in (*WHOLE, *KEYS, "lineitem")) + tuple(
    f"{MART}.{name}" for name in ("customer_history", *QUERIES)
)


def making(data: Path) -> Iterator[str]:
    """Return the statements that create the empty tables."""
    for space in ("main.raw", RAW, "main.mart", MART):
        yield f"CREATE NAMESPACE IF NOT EXISTS {space}"
    for name in (*WHOLE, *KEYS, "lineitem"):
        yield _create_table(f"{RAW}.{name}", f"SELECT * FROM {_file(data, name, day=0)}")
    yield _create_table(f"{MART}.customer_history", _states())
    for name, query in QUERIES.items():
        by = "PARTITIONED BY (o_month)" if name == "revenue_by_month" else ""
        yield _create_table(f"{MART}.{name}", query.format(lines=f"{RAW}.lineitem"), by=by)


def filling(data: Path, *, day: int, columns: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Return the statements that bring the tables from one day to the next; `columns` are those of merged tables."""
    for name in WHOLE if day == 0 else ():  # they come once
        yield f"INSERT OVERWRITE {RAW}.{name} SELECT * FROM {_file(data, name, day=0)}"
    for name, key in KEYS.items():
        source, table = f"(SELECT * FROM {_file(data, name, day=day)})", f"{RAW}.{name}"
        yield _merged(table, source, key=key, columns=columns[table], delete_condition="s.op = 'D'")
    yield f"INSERT INTO {RAW}.lineitem SELECT * FROM {_file(data, 'lineitem', day=day)}"
    yield f"INSERT INTO {MART}.customer_history {_states()}" if day == 0 else _history()
    revenue = f"{MART}.order_revenue"
    yield _merged(revenue, f"({QUERIES['order_revenue']})", key="l_orderkey", columns=columns[revenue])
    yield f"INSERT INTO {MART}.late_lines {QUERIES['late_lines'].format(lines=_file(data, 'lineitem', day=day))}"
    yield f"INSERT OVERWRITE {MART}.revenue_by_month {QUERIES['revenue_by_month']}"
    yield f"INSERT OVERWRITE {MART}.nation_revenue {QUERIES['nation_revenue']}"


def _file(data: Path, name: str, *, day: int) -> str:
    return f"parquet.`{data}/{name}/{day}.parquet`"


def _create_table(table: str, query: str, *, by: str = "") -> str:
    return f"CREATE TABLE {table} USING iceberg {by} AS SELECT * FROM ({query}) WHERE false"


def _merged(table: str, source: str, *, key: str, columns: tuple[str, ...], delete_condition: str = "false") -> str:
    others = [each for each in columns if each != key]
    same = " AND ".join(f"t.{each} <=> s.{each}" for each in others)
    delete = "" if delete_condition == "false" else f"WHEN MATCHED AND {delete_condition} THEN DELETE "
    return (
        f"MERGE INTO {table} AS t USING {source} AS s ON t.{key} = s.{key} {delete}"
        f"WHEN MATCHED AND NOT ({same}) THEN UPDATE SET * WHEN NOT MATCHED AND NOT ({delete_condition}) THEN INSERT *"
    )


def _states() -> str:
    return (
        f"SELECT {', '.join(_HISTORY)}, changed_at AS valid_from, CAST(NULL AS TIMESTAMP) AS valid_to, true AS"
        f" is_current FROM {RAW}.customer"
    )


def _history() -> str:
    same = " AND ".join(f"t.{each} <=> s.{each}" for each in TRACKED)
    new = f"SELECT s.*, CAST(NULL AS BIGINT) AS known FROM {RAW}.customer s JOIN {MART}.customer_history t"
    values = ", ".join(f"s.{each}" for each in _HISTORY)
    return (
        f"MERGE INTO {MART}.customer_history AS t USING (SELECT s.*, s.c_custkey AS known FROM {RAW}.customer s UNION"
        f" ALL {new} ON t.c_custkey = s.c_custkey AND t.is_current WHERE NOT ({same})) AS s ON t.c_custkey = s.known"
        f" AND t.is_current WHEN MATCHED AND NOT ({same}) THEN UPDATE SET valid_to = s.changed_at, is_current = false"
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(_HISTORY)}, valid_from, valid_to, is_current) VALUES ({values},"
        " s.changed_at, NULL, true)"
    )
