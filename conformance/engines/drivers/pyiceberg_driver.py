# SPDX-License-Identifier: Apache-2.0
"""PyIceberg: the witness of the tests, by its own API."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue, EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from conformance.engines.driver import ABSENT, Driver, Levels
from conformance.engines.page import block
from conformance.engines.rows import PLAIN, TYPED, Row

TYPES: dict[str, IcebergType] = {
    "long": LongType(),
    "string": StringType(),
    "decimal": DecimalType(12, 2),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "list": ListType(element_id=20, element_type=StringType(), element_required=False),
    "struct": StructType(
        NestedField(21, "x", LongType(), required=False), NestedField(22, "label", StringType(), required=False)
    ),
}
_LABEL = pa.struct([("x", pa.int64()), ("label", pa.string())])
ARROW = {
    "long": pa.int64(),
    "string": pa.string(),
    "decimal": pa.decimal128(12, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "list": pa.list_(pa.string()),
    "struct": _LABEL,
}


def schema_of(columns: dict[str, str]) -> Schema:
    """Return columns as an Iceberg schema."""
    return Schema(
        *(NestedField(i, name, TYPES[kind], required=False) for i, (name, kind) in enumerate(columns.items(), 1))
    )


def arrow_of(rows: Sequence[Row], columns: dict[str, str]) -> pa.Table:
    """Convert rows to an Arrow table."""
    fields = pa.schema([(name, ARROW[kind]) for name, kind in columns.items()])
    return pa.Table.from_pylist(
        [{name: _value(cell, kind) for cell, (name, kind) in zip(row, columns.items(), strict=True)} for row in rows],
        fields,
    )


def rows_of(table: pa.Table) -> list[Row]:
    """Convert an Arrow table to rows."""
    return [list(row.values()) for row in table.to_pylist()]


def _value(cell: Any, kind: str) -> object:  # noqa: ANN401 - what JSON holds
    if cell is None:
        return None
    match kind:
        case "decimal":
            return Decimal(cell)
        case "date":
            return date.fromisoformat(cell)
        case "timestamp":
            return datetime.fromisoformat(cell)
        case "timestamptz":
            return datetime.fromisoformat(cell).astimezone(UTC)
        case "struct":
            return {"x": cell[0], "label": cell[1]}
        case _:
            return cell


class Engine(Driver):
    """PyIceberg."""

    title = f"PyIceberg {importlib.metadata.version('pyiceberg')}"
    section = "PyIceberg"
    limits = {  # noqa: RUF012
        "read its view": "Table does not exist",
        "read another's view": "Table does not exist",
        "update": ABSENT,
    }

    def be(self, caller: str) -> None:
        self.catalog = self.connected(caller)

    def connected(self, caller: str) -> Catalog:
        """Open the catalog with the settings of the page."""
        names: dict[str, Any] = {}
        place = self.place
        exec(block("PyIceberg", uri=place.uri, token=place.tokens[caller], catalog=place.warehouse), names)
        return names["catalog"]  # type: ignore[no-any-return]

    def table(self, levels: Levels, name: str) -> Table:
        """Load a table."""
        return self.catalog.load_table((*levels, name))

    def namespace(self, levels: Levels) -> None:
        self.catalog.create_namespace(tuple(levels))

    def create(self, levels: Levels, name: str) -> None:
        self.catalog.create_table((*levels, name), schema_of(PLAIN))

    def create_typed(self, levels: Levels, name: str) -> None:
        schema = schema_of(TYPED)
        at = schema.find_field("at").field_id
        spec = PartitionSpec(PartitionField(source_id=at, field_id=1000, transform=DayTransform(), name="at_day"))
        self.catalog.create_table((*levels, name), schema, partition_spec=spec)

    def append(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self.table(levels, name).append(arrow_of(rows, PLAIN))

    def append_typed(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self.table(levels, name).append(arrow_of(rows, TYPED))

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        return rows_of(self.table(levels, name).scan(selected_fields=tuple(columns)).to_arrow().select(list(columns)))

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return rows_of(self.table(levels, name).scan(snapshot_id=snapshot).to_arrow())

    def count(self, levels: Levels, name: str, city: str = "") -> int:
        row_filter = EqualTo("city", city) if city else AlwaysTrue()
        return self.table(levels, name).scan(row_filter=row_filter).count()

    def add_column(self, levels: Levels, name: str) -> None:
        with self.table(levels, name).update_schema() as update:
            update.add_column("size", IntegerType())

    def rename_column(self, levels: Levels, name: str) -> None:
        with self.table(levels, name).update_schema() as update:
            update.rename_column("city", "town")

    def drop_column(self, levels: Levels, name: str) -> None:
        with self.table(levels, name).update_schema() as update:
            update.delete_column("city")

    def rename(self, levels: Levels, name: str, new: str) -> None:
        self.catalog.rename_table((*levels, name), (*levels, new))

    def drop(self, levels: Levels, name: str) -> None:
        self.catalog.drop_table((*levels, name))

    def delete(self, levels: Levels, name: str, row: int) -> None:
        self.table(levels, name).delete(EqualTo("id", row))

    def merge(self, levels: Levels, name: str) -> None:
        self.table(levels, name).upsert(arrow_of([[2, "Bern"], [9, "Lima"]], PLAIN), join_cols=["id"])

    def make_view(self, levels: Levels, name: str, table: str) -> None:
        text = SQLViewRepresentation(type="sql", sql=f"SELECT id FROM {table}", dialect="spark")
        version = ViewVersion(
            version_id=1,
            schema_id=0,
            timestamp_ms=int(time.time() * 1000),
            summary={},
            representations=[text],
            default_namespace=list(levels),
        )
        self.catalog.create_view((*levels, name), schema_of({"id": "long"}), version)

    # Checks of the story by this driver, for tables of any engine.

    def snapshots(self, levels: Levels, name: str) -> list[int]:
        """The ids of a table's snapshots, oldest first."""
        return [each.snapshot_id for each in self.table(levels, name).metadata.snapshots]

    def names(self, levels: Levels, name: str) -> list[str]:
        """The names of a table's columns."""
        return self.table(levels, name).schema().column_names

    def exists(self, levels: Levels, name: str) -> bool:
        """Return whether a table exists."""
        return self.catalog.table_exists((*levels, name))

    def view_exists(self, levels: Levels, name: str) -> bool:
        """Return whether a view exists."""
        return self.catalog.view_exists((*levels, name))

    def is_partitioned_by_day(self, levels: Levels, name: str) -> bool:
        """Return whether a table is partitioned by the day of `at`, and by nothing else."""
        table = self.table(levels, name)
        return [
            (table.schema().find_column_name(each.source_id), str(each.transform)) for each in table.spec().fields
        ] == [("at", "day")]
