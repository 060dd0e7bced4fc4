# SPDX-License-Identifier: Apache-2.0
"""The same tables by plain Spark SQL over the deliveries' files: the expected results of the pipeline.

Job: for a number of days, a query for each table of `examples/tpch/pipeline.yaml`. May import nothing of the product,
because its results are compared with the product's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.tpch.data import CHANGING, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REGION = "ASIA"

_NEWEST = """
SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY changed_at DESC) AS newest FROM plain_{name}_all)
WHERE newest = 1 AND op <> 'D'
"""

MARTS = {
    # The next state ends a state; the state of a deleted customer is not ended.
    "mart.tpch.customer_history": (
        """
        SELECT c_custkey, c_nationkey, c_acctbal, c_mktsegment, changed_at, changed_at AS valid_from,
               lead(changed_at) OVER (PARTITION BY c_custkey ORDER BY changed_at) AS valid_to,
               lead(changed_at) OVER (PARTITION BY c_custkey ORDER BY changed_at) IS NULL AS is_current
        FROM plain_customer_all WHERE op = 'U'
    """
    ),
    "mart.tpch.order_revenue": (
        """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS lines
        FROM plain_lineitem GROUP BY l_orderkey
    """
    ),
    "mart.tpch.late_lines": (
        """
        SELECT l_orderkey, l_linenumber, l_commitdate, l_receiptdate, datediff(l_receiptdate, l_commitdate) AS days_late
        FROM plain_lineitem WHERE l_receiptdate > l_commitdate
    """
    ),
    "mart.tpch.revenue_by_month": (
        """
        SELECT CAST(trunc(o.o_orderdate, 'MM') AS DATE) AS o_month, o.o_orderstatus, count(*) AS orders, sum(r.revenue) AS revenue
        FROM plain_orders o
        JOIN (SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM plain_lineitem GROUP BY 1) r
          ON r.l_orderkey = o.o_orderkey
        GROUP BY 1, 2
    """
    ),
    "mart.tpch.nation_revenue": (
        f"""
        SELECT n.n_name, count(DISTINCT c.c_custkey) AS customers, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue
        FROM plain_customer c, plain_orders o, plain_lineitem l, plain_supplier s, plain_nation n, plain_region g
        WHERE o.o_custkey = c.c_custkey AND l.l_orderkey = o.o_orderkey AND s.s_suppkey = l.l_suppkey
          AND s.s_nationkey = c.c_nationkey AND n.n_nationkey = s.s_nationkey AND g.r_regionkey = n.n_regionkey
          AND g.r_name = '{REGION}'
        GROUP BY n.n_name
    """
    ),
}


def expected(spark: SparkSession, deliveries: Path, *, days: int) -> dict[str, DataFrame]:
    """Return each table's rows after a number of days of changes, by its name below the catalog."""
    for name in TABLES:
        last = days if name in CHANGING else 0
        files = [str(deliveries / str(day) / f"{name}.parquet") for day in range(last + 1)]
        spark.read.parquet(*files).createOrReplaceTempView(f"plain_{name}_all")
        spark.sql(f"SELECT * FROM plain_{name}_all").createOrReplaceTempView(f"plain_{name}")
    for name, key in (("customer", "c_custkey"), ("orders", "o_orderkey")):
        columns = ", ".join(spark.table(f"plain_{name}_all").columns)
        spark.sql(_NEWEST.format(columns=columns, key=key, name=name)).createOrReplaceTempView(f"plain_{name}")
    raw = {f"raw.tpch.{name}": spark.table(f"plain_{name}") for name in TABLES}
    return raw | {name: spark.sql(query) for name, query in MARTS.items()}


def checksum(frame: DataFrame) -> tuple[int, int]:
    """Return the number of rows and the sum of their hashes, which does not depend on the order of rows."""
    columns = ", ".join(f"CAST(`{name}` AS STRING)" for name in sorted(frame.columns))
    # A struct includes NULL in the hash; xxhash64 of several columns skips it.
    counted = frame.selectExpr(
        "count(*)", f"CAST(sum(CAST(xxhash64(to_json(struct({columns}))) AS DECIMAL(38, 0))) AS STRING)"
    )
    rows, total = counted.collect()[0]
    return int(rows), int(total or 0)
