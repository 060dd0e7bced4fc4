# SPDX-License-Identifier: Apache-2.0
"""TPC-H's tables as datasets of SQL++, with closed types and keys.

Job: generate, declare, fill. May import pyarrow, PySpark and start `tpchgen-cli`; Spark appends the generated rows,
with decimals as doubles.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "region": ("r_regionkey: bigint, r_name: string, r_comment: string", ("r_regionkey",)),
    "nation": ("n_nationkey: bigint, n_name: string, n_regionkey: bigint, n_comment: string", ("n_nationkey",)),
    "supplier": (
        (
            "s_suppkey: bigint, s_name: string, s_address: string, s_nationkey: bigint, s_phone: string, s_acctbal:"
            " double, s_comment: string"
        ),
        ("s_suppkey",),
    ),
    "part": (
        (
            "p_partkey: bigint, p_name: string, p_mfgr: string, p_brand: string, p_type: string, p_size: bigint,"
            " p_container: string, p_retailprice: double, p_comment: string"
        ),
        ("p_partkey",),
    ),
    "partsupp": (
        "ps_partkey: bigint, ps_suppkey: bigint, ps_availqty: bigint, ps_supplycost: double, ps_comment: string",
        ("ps_partkey", "ps_suppkey"),
    ),
    "customer": (
        (
            "c_custkey: bigint, c_name: string, c_address: string, c_nationkey: bigint, c_phone: string, c_acctbal:"
            " double, c_mktsegment: string, c_comment: string"
        ),
        ("c_custkey",),
    ),
    "orders": (
        (
            "o_orderkey: bigint, o_custkey: bigint, o_orderstatus: string, o_totalprice: double, o_orderdate: date,"
            " o_orderpriority: string, o_clerk: string, o_shippriority: bigint, o_comment: string"
        ),
        ("o_orderkey",),
    ),
    "lineitem": (
        (
            "l_orderkey: bigint, l_partkey: bigint, l_suppkey: bigint, l_linenumber: bigint, l_quantity: double,"
            " l_extendedprice: double, l_discount: double, l_tax: double, l_returnflag: string, l_linestatus: string,"
            " l_shipdate: date, l_commitdate: date, l_receiptdate: date, l_shipinstruct: string, l_shipmode: string,"
            " l_comment: string"
        ),
        ("l_orderkey", "l_linenumber"),
    ),
}
_SPARK = {"bigint": "BIGINT", "double": "DOUBLE", "string": "STRING", "date": "DATE"}


def generated(directory: Path, *, scale: float) -> Path:
    """Return Parquet files of all tables; existing ones are kept."""
    output_folder = directory / f"scale-{scale:g}"
    if not (output_folder / "lineitem.parquet").exists():
        command = [
            str(Path(sys.executable).parent / "tpchgen-cli"),
            "parquet",
            "-s",
            f"{scale:g}",
            "--output-dir",
            str(output_folder),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return output_folder


def filled(asking: EngineDataverse, spark: SparkSession, *, files: Path) -> None:
    """Create the datasets and append the files' rows."""
    for name, (fields, keys) in TYPES.items():
        asking.make(name, f"closed {{ {fields} }}", *keys)
        named = [field.strip().partition(": ") for field in fields.split(",")]
        columns = ", ".join(f"CAST({column} AS {_SPARK[type_]}) AS {column}" for column, _, type_ in named)
        quoted = ".".join(f"`{part}`" for part in asking.refs[name].path)
        spark.read.parquet(str(files / f"{name}.parquet")).selectExpr(*columns.split(", ")).writeTo(quoted).append()
