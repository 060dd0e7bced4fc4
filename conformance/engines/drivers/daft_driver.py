# SPDX-License-Identifier: Apache-2.0
"""Daft: its own catalog and tables over PyIceberg's."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

import daft
from daft.catalog import Identifier
from daft.io.partitioning import PartitionField, PartitionTransform

from conformance.engines.driver import ABSENT, Driver, Levels
from conformance.engines.drivers.pyiceberg_driver import arrow_of, rows_of
from conformance.engines.page import block
from conformance.engines.rows import PLAIN, TYPED, Row


class Engine(Driver):
    """Daft."""

    title = f"Daft {importlib.metadata.version('daft')}"
    section = "Daft"
    limits = {  # noqa: RUF012
        **dict.fromkeys(("add column", "rename column", "drop column", "rename table"), ABSENT),
        **dict.fromkeys(("make a view", "update", "delete", "merge", "types: delete"), ABSENT),
        "read another's view": "Table does not exist",
        "reads duckdb": "list type must have a single child",  # of Parquet; all other engines read the file
    }

    def be(self, caller: str) -> None:
        names: dict[str, object] = {}
        place = self.place
        exec(block("Daft", uri=place.uri, token=place.tokens[caller], catalog=place.warehouse), names)
        self.catalog = names["lake"]

    def namespace(self, levels: Levels) -> None:
        self.catalog.create_namespace(Identifier(*levels))

    def create(self, levels: Levels, name: str) -> None:
        self._create(levels, name, PLAIN)

    def create_typed(self, levels: Levels, name: str) -> None:
        at = self._schema(TYPED)["at"]
        day = PartitionField.create(field=at, source_field=at, transform=PartitionTransform.day())
        self._create(levels, name, TYPED, day)

    def _create(self, levels: Levels, name: str, columns: dict[str, str], *partitions: object) -> None:
        self.catalog.create_table(Identifier(*levels, name), self._schema(columns), partition_fields=list(partitions))

    @staticmethod
    def _schema(columns: dict[str, str]) -> daft.Schema:
        return daft.Schema.from_pyarrow_schema(arrow_of([], columns).schema)

    def append(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self.catalog.get_table(Identifier(*levels, name)).append(daft.from_arrow(arrow_of(rows, PLAIN)))

    def append_typed(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self.catalog.get_table(Identifier(*levels, name)).append(daft.from_arrow(arrow_of(rows, TYPED)))

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        return rows_of(self.catalog.get_table(Identifier(*levels, name)).read().select(*columns).to_arrow())

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        table = self.catalog.get_table(Identifier(*levels, name))
        return rows_of(table.read(snapshot_id=snapshot).to_arrow())

    def count(self, levels: Levels, name: str, city: str = "") -> int:
        rows = self.catalog.get_table(Identifier(*levels, name)).read()
        return (rows.where(daft.col("city") == city) if city else rows).count_rows()

    def drop(self, levels: Levels, name: str) -> None:
        self.catalog.drop_table(Identifier(*levels, name))
