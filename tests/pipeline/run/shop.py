# SPDX-License-Identifier: Apache-2.0
"""A pipeline with all write modes, run over two days of files, and its expected rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from limnos.client import Client

PIPELINE = """
pipeline: SPACE
catalog: main
parameters: {least: double}
sources:
  orders: {files: orders.csv, schema: "id INT, customer STRING, amount DOUBLE, gone BOOLEAN", options: {header: true}}
  customers: {files: customers.csv, schema: "name STRING, city STRING, since TIMESTAMP", options: {header: true}}
steps:
  SPACE.orders:
    sql: SELECT * FROM orders
    write: {mode: merge, keys: id, delete_when: gone}
    expect: [{row: amount > 0, action: quarantine}]
  SPACE.customers:
    load: customers
    write: {mode: history, keys: name, as_of: since}
  SPACE.log:
    sql: SELECT id, amount FROM orders
    write: append
    expect: [{row: id < 100, action: drop}]
  SPACE.cities:
    sql: |
      SELECT city, count(*) AS n, sum(amount) AS amount FROM SPACE.orders JOIN SPACE.customers ON customer = name
      WHERE is_current AND amount >= :least GROUP BY city
    expect: [{unique: city}, {not_null: city}]
  SPACE.largest:
    python: shop:largest
    inputs: {cities: SPACE.cities}
"""
FUNCTIONS = """
from pyspark.sql import functions as f


@f.udf("string")
def spelled(city):
    return city.upper()


def largest(cities, least):
    return cities.where(cities.amount > least).select(spelled("city").alias("city"), "amount")
"""
ORDERS = (
    "1,ann,10,false\n2,bob,20,false\n3,cem,-1,false\n4,bob,40,false\n100,ann,1,false\n",
    "1,ann,10,true\n2,bob,25,false\n5,cem,50,false\n6,ann,0,false\n",
)
CUSTOMERS = (
    "ann,Bern,2026-01-01\nbob,Bern,2026-01-01\ncem,Genf,2026-01-01\n",
    "bob,Chur,2026-01-02\n",
)
QUERIES = {
    "orders": "SELECT id, customer, amount FROM @.orders ORDER BY id",
    "quarantine": "SELECT id, amount FROM @.orders__quarantine ORDER BY id",
    "customers": "SELECT name, city, is_current, valid_to IS NULL FROM @.customers ORDER BY name, valid_from",
    "log": "SELECT id FROM @.log ORDER BY id",
    "cities": "SELECT city, n, amount FROM @.cities ORDER BY city",
    "largest": "SELECT city, amount FROM @.largest ORDER BY city",
}
ROWS: dict[str, list[tuple[object, ...]]] = {
    "orders": [(2, "bob", 25.0), (4, "bob", 40.0), (5, "cem", 50.0), (100, "ann", 1.0)],
    "quarantine": [(3, -1.0), (6, 0.0)],
    "customers": [
        ("ann", "Bern", True, True),
        ("bob", "Bern", False, False),
        ("bob", "Chur", True, True),
        ("cem", "Genf", True, True),
    ],
    "log": [(1,), (1,), (2,), (2,), (3,), (4,), (5,), (6,)],
    "cities": [("Chur", 2, 65.0), ("Genf", 1, 50.0)],
    "largest": [("CHUR", 65.0), ("GENF", 50.0)],
}
"""The tables' rows after both days."""


@dataclass(frozen=True)
class Shop:
    """The pipeline's file, in its own namespace."""

    file: Path

    @property
    def space(self) -> str:
        """The namespace, which is the pipeline's name."""
        return self.file.stem

    def deliver(self, day: int) -> None:
        """Replace the files by those of a day, 0 or 1."""
        beside = self.file.parent
        (beside / "orders.csv").write_text("id,customer,amount,gone\n" + ORDERS[day])
        (beside / "customers.csv").write_text("name,city,since\n" + CUSTOMERS[day])

    def rows(self, spark: SparkSession) -> dict[str, list[tuple[object, ...]]]:
        """Return the published rows."""
        frames = {name: spark.sql(text.replace("@", f"main.{self.space}")) for name, text in QUERIES.items()}
        return {name: [tuple(row) for row in frame.collect()] for name, frame in frames.items()}


def opened(client: Client, directory: Path, *, space: str) -> Shop:
    """Set up the pipeline in `directory`, and its namespace on the server."""
    client.namespaces.create(f"main.{space}")
    file = directory / f"{space}.yaml"
    file.write_text(PIPELINE.replace("SPACE", space))
    (directory / "shop.py").write_text(FUNCTIONS)
    return Shop(file)
