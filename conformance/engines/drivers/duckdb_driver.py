# SPDX-License-Identifier: Apache-2.0
"""DuckDB with its Iceberg extension, by SQL."""

from __future__ import annotations

import duckdb

from conformance.engines.driver import RESTRICTED, Levels, Place, SqlDriver
from conformance.engines.duck import attached
from conformance.engines.rows import Row
from limnos.model.restrictions import CLOSED_TO


class Engine(SqlDriver):
    """DuckDB."""

    title = f"DuckDB {duckdb.__version__}"
    section = "DuckDB"
    dialect = "duckdb"
    limits = {  # noqa: RUF012
        "names: dot": "namespaces/a.b-duckdb/",  # created as two levels: the witness does not find it
        "make a view": "Not implemented Error: Create View",
        "read another's view": "does not exist",
        "a wrong credential": "Unauthorized_401",
        RESTRICTED: CLOSED_TO,
    }
    types = {  # noqa: RUF012
        "long": "BIGINT",
        "string": "VARCHAR",
        "decimal": "DECIMAL(12, 2)",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        "timestamptz": "TIMESTAMPTZ",
        "list": "VARCHAR[]",
        "struct": "STRUCT(x BIGINT, label VARCHAR)",
    }

    def start(self, place: Place) -> None:
        super().start(place)
        self._opened: list[object] = []

    def be(self, caller: str) -> None:
        place = self.place
        opened = attached(
            place.uri,
            place.tokens[caller],
            catalog=place.warehouse,
            section="DuckDB on S3" if place.is_remote else "DuckDB",
        )
        self._opened.append(opened)
        self.connection = opened.__enter__()
        self.connection.execute("SET TimeZone = 'UTC'")

    def ask(self, text: str) -> list[Row]:
        return [list(row.values()) for row in self.connection.execute(text).to_arrow_table().to_pylist()]

    def layout(self, *, typed: bool) -> str:
        return ' PARTITIONED BY (day("at"))' if typed else ""

    def list_of(self, items: list[str]) -> str:
        return f"CAST([{', '.join(items)}] AS VARCHAR[])"

    def struct_of(self, x: str, label: str) -> str:
        return f"{{'x': {x}, 'label': {label}}}"

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return self.ask(f"SELECT id, city FROM {self.table(levels, name)} AT (VERSION => {snapshot})")

    def rename(self, levels: Levels, name: str, new: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} RENAME TO {self.quoted(new)}")
