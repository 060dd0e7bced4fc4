# SPDX-License-Identifier: Apache-2.0
"""chDB: ClickHouse in process, with a database for each caller."""

from __future__ import annotations

import importlib.metadata
import json
import os

from chdb.session import Session

from conformance.engines.driver import ABSENT, ANOTHER, RESTRICTED, Absent, Levels, Place, SqlDriver
from conformance.engines.page import block
from conformance.engines.rows import FIRST, PLAIN, TYPED, Row, difference
from limnos.model.restrictions import CLOSED_TO

_EMPTY = difference([[*FIRST[2][:6], [], None]], [FIRST[2]], TYPED)
"""ClickHouse has no NULL lists: it reads and writes empty ones. Everything else must be right."""
_SETTINGS = (
    "allow_database_iceberg=1, allow_insert_into_iceberg=1, output_format_json_quote_decimals=1, "
    "output_format_json_quote_64bit_integers=0, session_timezone='UTC'"
)


class Engine(SqlDriver):
    """chDB."""

    title = f"chDB {importlib.metadata.version('chdb')} (ClickHouse {importlib.metadata.version('chdb-core')})"
    section = "chDB"
    mark = "`"
    limits = {  # noqa: RUF012
        "a service account's secret": "no way for it to sign in by a credential",
        **dict.fromkeys(
            ("namespace four deep", *(f"names: {what}" for what in ("dot", "space", "Unicode", "slash", "quote"))),
            ABSENT,
        ),
        "rename table": "renameTable() is not supported",
        "drop": "Without a catalog's prefix",
        "merge": "Syntax error",
        "make a view": "there is no view",  # it reports nothing, and creates none in the catalog
        "read another's view": "Unknown table expression identifier",
        "types: write": f"the witness reads {_EMPTY}",
        "types: delete": f"the witness reads {_EMPTY}",
        ANOTHER: f"it reads {_EMPTY}",
        RESTRICTED: CLOSED_TO,
    }
    types = {  # noqa: RUF012
        "long": "Nullable(Int64)",
        "string": "Nullable(String)",
        "decimal": "Nullable(Decimal(12, 2))",
        "date": "Nullable(Date32)",
        "timestamp": "Nullable(DateTime64(6))",
        "timestamptz": "Nullable(DateTime64(6, 'UTC'))",
        "list": "Array(Nullable(String))",
        "struct": "Tuple(x Nullable(Int64), label Nullable(String))",
    }

    def start(self, place: Place) -> None:
        super().start(place)
        os.chdir(place.work.parent)  # the warehouse must be below the working directory
        self.session = Session()
        self.session.query(f"SET {_SETTINGS}")
        self._known: set[str] = set()

    def be(self, caller: str) -> None:
        place = self.place
        self.catalog = f"lake_{caller}"
        if caller not in self._known:
            statement = block(self.section, uri=place.uri, token=place.tokens[caller], catalog=place.warehouse)
            if place.is_remote:
                statement = statement.replace("vended_credentials=0", "vended_credentials=1")
            self.session.query(statement.replace("DATABASE lake ", f"DATABASE {self.catalog} "))
            self._known.add(caller)

    def ask(self, text: str) -> list[Row]:
        output = str(self.session.query(text, "JSONCompact"))
        return json.loads(output)["data"] if output.strip() else []  # type: ignore[no-any-return]

    def namespace(self, levels: Levels) -> None:
        raise Absent(ABSENT)

    def table(self, levels: Levels, name: str) -> str:
        return f"{self.catalog}.{self.quoted('.'.join((*levels, name)))}"

    def _create(self, levels: Levels, name: str, columns: dict[str, str], more: str = "") -> None:
        """Create a table with an explicit location below the warehouse."""
        folder = self.place.work.parent.joinpath("data", "warehouse", self.place.warehouse, *levels, name)
        self.ask(
            f"CREATE TABLE {self.table(levels, name)} ({self.columns(columns)}) ENGINE = IcebergLocal('{folder}'){more}"
        )

    def create(self, levels: Levels, name: str) -> None:
        self._create(levels, name, PLAIN)

    def create_typed(self, levels: Levels, name: str) -> None:
        self._create(levels, name, TYPED, " PARTITION BY toRelativeDayNum(at)")

    def literal(self, value: object, kind: str) -> str:
        if value is None and kind in ("list", "struct"):
            return "[]" if kind == "list" else self.struct_of("NULL", "NULL")
        return super().literal(value, kind)

    def moment(self, text: str, kind: str) -> str:
        return f"CAST('{text}' AS {self.types[kind]})"

    def list_of(self, items: list[str]) -> str:
        return f"CAST([{', '.join(items)}] AS {self.types['list']})"

    def struct_of(self, x: str, label: str) -> str:
        return f"CAST(({x}, {label}) AS {self.types['struct']})"

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return self.ask(f"SELECT id, city FROM {self.table(levels, name)} SETTINGS iceberg_snapshot_id = {snapshot}")

    def add_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} ADD COLUMN size Nullable(Int32)")

    def rename(self, levels: Levels, name: str, new: str) -> None:
        self.ask(f"RENAME TABLE {self.table(levels, name)} TO {self.table(levels, new)}")

    def update(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} UPDATE city = 'Bern' WHERE id = 1")
