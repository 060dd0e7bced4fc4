# SPDX-License-Identifier: Apache-2.0
"""TPC-H's tables as deliveries: the base, and days of changes that depend only on it.

Job: write `DIR/<day>/<table>.parquet`. May import pyarrow and start `tpchgen-cli`; it must not know of pipelines.

A day changes 2 % of the customers and 1.5 % of the orders, deletes a tenth as many, adds twenty customers, and 1 % of
new orders with their lines. The rows are selected by arithmetic over the keys, so the same scale gives the same days
everywhere.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
CHANGING = ("customer", "orders", "lineitem")
BASE = dt.datetime(1998, 8, 2, tzinfo=dt.UTC)
NEW_CUSTOMERS = 20
_NEW_KEYS = 100_000_000_000
_ROWS_AT_ONCE = 500_000


def deliveries(directory: Path, *, scale: float, days: int) -> None:
    """Write the base as day 0, and the given number of days of changes; existing ones are kept."""
    base = directory / "generated"
    if not base.exists():
        command = [
            str(Path(sys.executable).parent / "tpchgen-cli"),
            "parquet",
            "-s",
            str(scale),
            "--output-dir",
            str(base),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in TABLES:
        _base(base / f"{name}.parquet", directory / "0" / f"{name}.parquet", marked=name in ("customer", "orders"))
    customers, orders = pq.read_table(base / "customer.parquet"), pq.read_table(base / "orders.parquet")
    for day in range(1, days + 1):
        _written(directory / str(day) / "customer.parquet", _marked(_plain(customers), day, _customers))
        _written(directory / str(day) / "orders.parquet", _marked(_plain(orders), day, _orders))
        _lines(base / "lineitem.parquet", directory / str(day) / "lineitem.parquet", day)


def _base(source: Path, target: Path, *, marked: bool) -> None:
    """Write a base table, in types that Spark reads; with `op` and `changed_at` if its rows change."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    writer: pq.ParquetWriter | None = None
    for batch in pq.ParquetFile(source).iter_batches(_ROWS_AT_ONCE):
        table = _plain(pa.Table.from_batches([batch]))
        table = _stamped(table, ["U"] * table.num_rows, 0) if marked else table
        writer = writer or pq.ParquetWriter(target, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _plain(table: pa.Table) -> pa.Table:
    """Convert columns of string views to strings."""
    fields = [
        pa.field(one.name, pa.string() if pa.types.is_string_view(one.type) else one.type) for one in table.schema
    ]
    return table.cast(pa.schema(fields))


def _stamped(table: pa.Table, operations: list[str], day: int) -> pa.Table:
    at = pa.array([BASE + dt.timedelta(days=day)] * table.num_rows, pa.timestamp("us", tz="UTC"))
    return table.append_column("op", pa.array(operations, pa.string())).append_column("changed_at", at)


def _marked(table: pa.Table, day: int, changes: object) -> pa.Table:
    parts = changes(table, day)  # type: ignore[operator]
    return pa.concat_tables([_stamped(part, [word] * part.num_rows, day) for word, part in parts])


def _customers(table: pa.Table, day: int) -> list[tuple[str, pa.Table]]:
    key = table["c_custkey"].to_numpy()
    changed = table.filter(pa.array(key % 50 == day))
    changed = _set(changed, "c_acctbal", pc.add(changed["c_acctbal"], pa.scalar(day, pa.decimal128(15, 2))))
    segments = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
    moved = [segments[(segments.index(one) + day) % 5] for one in changed["c_mktsegment"].to_pylist()]
    changed = _set(changed, "c_mktsegment", pa.array(moved, pa.string()))
    deleted = table.filter(pa.array(key % 500 == 125 + day))
    new = table.slice(0, NEW_CUSTOMERS)
    new = _set(new, "c_custkey", pc.add(new["c_custkey"], _NEW_KEYS * day))
    return [("U", changed), ("D", deleted), ("U", new)]


def _orders(table: pa.Table, day: int) -> list[tuple[str, pa.Table]]:
    key = table["o_orderkey"].to_numpy()
    changed = table.filter(pa.array(key % 64 == day))
    changed = _set(changed, "o_totalprice", pc.add(changed["o_totalprice"], pa.scalar(day, pa.decimal128(15, 2))))
    changed = _set(changed, "o_orderstatus", pa.array(["F"] * changed.num_rows, pa.string()))
    deleted = table.filter(pa.array(key % 640 == 100 + day))
    new = table.filter(pa.array(key % 100 == day))
    new = _set(new, "o_orderkey", pc.add(new["o_orderkey"], _NEW_KEYS * day))
    return [("U", changed), ("D", deleted), ("U", new)]


def _lines(source: Path, target: Path, day: int) -> None:
    """The lines of the day's new orders."""
    parts = []
    for batch in pq.ParquetFile(source).iter_batches(_ROWS_AT_ONCE):
        table = _plain(pa.Table.from_batches([batch]))
        table = table.filter(pa.array(table["l_orderkey"].to_numpy() % 100 == day))
        parts.append(_set(table, "l_orderkey", pc.add(table["l_orderkey"], _NEW_KEYS * day)))
    _written(target, pa.concat_tables(parts))


def _set(table: pa.Table, name: str, values: object) -> pa.Table:
    at = table.schema.get_field_index(name)
    field = table.schema.field(at)
    column = values.cast(field.type) if isinstance(values, (pa.Array, pa.ChunkedArray)) else values
    return table.set_column(at, field, column)


def _written(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
