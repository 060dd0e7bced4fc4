# SPDX-License-Identifier: Apache-2.0
"""Polars: reads and writes by Polars, over PyIceberg's catalog."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

import polars as pl

from conformance.engines.driver import ABSENT, Absent, Levels
from conformance.engines.drivers.pyiceberg_driver import Engine as PyIceberg
from conformance.engines.drivers.pyiceberg_driver import arrow_of, rows_of
from conformance.engines.rows import PLAIN, TYPED, Row


class Engine(PyIceberg):
    """Polars."""

    title = f"Polars {importlib.metadata.version('polars')}"
    section = "Polars"
    limits = {  # noqa: RUF012
        **PyIceberg.limits,
        "delete": ABSENT,
        "merge": ABSENT,
        "types: delete": ABSENT,
    }

    def append(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self._write(levels, name, rows, columns=PLAIN)

    def append_typed(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self._write(levels, name, rows, columns=TYPED)

    def _write(self, levels: Levels, name: str, rows: Sequence[Row], *, columns: dict[str, str]) -> None:
        frame = pl.from_arrow(arrow_of(rows, columns))
        frame.write_iceberg(self.table(levels, name), mode="append")

    def _scan(self, levels: Levels, name: str, *, snapshot_id: int | None = None) -> pl.LazyFrame:
        """Scan with Polars' own reader and the catalog's vended credentials."""
        table = self.table(levels, name)
        options = {**table.io.properties, "aws_allow_http": "true"} if self.place.is_remote else None
        return pl.scan_iceberg(table, snapshot_id=snapshot_id, storage_options=options)

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        return rows_of(self._scan(levels, name).select(*columns).collect().to_arrow())

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return rows_of(self._scan(levels, name, snapshot_id=snapshot).collect().to_arrow())

    def count(self, levels: Levels, name: str, city: str = "") -> int:
        rows = self._scan(levels, name)
        rows = rows.filter(pl.col("city") == city) if city else rows
        return int(rows.select(pl.len()).collect().item())

    def delete(self, levels: Levels, name: str, row: int) -> None:
        raise Absent(ABSENT)

    def merge(self, levels: Levels, name: str) -> None:
        raise Absent(ABSENT)
