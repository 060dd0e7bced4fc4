# SPDX-License-Identifier: Apache-2.0
"""The verbs of an engine's driver, and how a driver declares the limits of its engine.

Job: the verbs, and their usual SQL for engines with SQL. May import the rows. It must not know the checks: `story.py`
calls the verbs, and a driver implements them. A new engine is one file in `drivers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.engines.rows import PLAIN, TYPED, Row

Levels = Sequence[str]
ABSENT = "the client has no call for it"
ANOTHER = "reads another's"
"""Name in `limits` for all checks that read another engine's table."""
RESTRICTED = "a restricted reader reads"
"""Name in `limits` for all reads of a restricted reader."""


class Absent(Exception):
    """The engine has no operation for a verb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The catalog for an engine: address, name, a token for each caller, and a folder for its own files."""

    uri: str
    warehouse: str
    tokens: dict[str, str]
    work: Path
    is_remote: bool = False
    """The warehouse is in an object store, and the engine gets credentials from the server only."""
    store: str = ""
    """Address of that store, for engines that do not get it from the server."""


class Driver:
    """One engine. Each verb does one thing or raises the engine's error. Rows are lists of JSON values."""

    title = ""
    section = ""
    """Heading of its settings in docs/guides/engines.md."""
    dialect = ""
    """Dialect of its views; empty if it has none."""
    limits: dict[str, str] = {}  # noqa: RUF012 - stated by the class
    """Known limits of the engine: a check of `story.py` or `cross.py`, and words of the engine's error."""

    def start(self, place: Place) -> None:
        """Start the engine for all callers. Called once."""
        self.place = place

    def stop(self) -> None:
        """Stop what was started."""

    def be(self, caller: str) -> None:
        """Use the token of another caller from now on."""
        raise Absent(ABSENT)

    def namespace(self, levels: Levels) -> None:
        """Create a namespace whose parent exists."""
        raise Absent(ABSENT)

    def create(self, levels: Levels, name: str) -> None:
        """Create a table of the plain columns."""
        raise Absent(ABSENT)

    def create_typed(self, levels: Levels, name: str) -> None:
        """Create a table of all types, partitioned by the day of `at`, format version 2."""
        raise Absent(ABSENT)

    def append(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        """Append rows to a plain table."""
        raise Absent(ABSENT)

    def append_typed(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        """Append rows to a table of all types."""
        raise Absent(ABSENT)

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        """Read columns of a table, in any order of rows."""
        raise Absent(ABSENT)

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        """Read the plain columns as of a snapshot."""
        raise Absent(ABSENT)

    def count(self, levels: Levels, name: str, city: str = "") -> int:
        """Count the rows of a plain table, or only those of a city."""
        return sum(city in ("", row[1]) for row in self.read(levels, name, list(PLAIN)))

    def add_column(self, levels: Levels, name: str) -> None:
        """Add `size`, an integer, to a plain table."""
        raise Absent(ABSENT)

    def rename_column(self, levels: Levels, name: str) -> None:
        """Rename `city` to `town`."""
        raise Absent(ABSENT)

    def drop_column(self, levels: Levels, name: str) -> None:
        """Drop `city`."""
        raise Absent(ABSENT)

    def rename(self, levels: Levels, name: str, new: str) -> None:
        """Rename a table within its namespace."""
        raise Absent(ABSENT)

    def drop(self, levels: Levels, name: str) -> None:
        """Drop a table."""
        raise Absent(ABSENT)

    def make_view(self, levels: Levels, name: str, table: str) -> None:
        """Create a view of the column `id` of a table in the same namespace."""
        raise Absent(ABSENT)

    def told_name(self, levels: Levels, name: str) -> str:
        """Return a table's name in the engine's own SQL."""
        raise Absent(ABSENT)

    def update(self, levels: Levels, name: str) -> None:
        """Set the city of the row 1 to `Bern`."""
        raise Absent(ABSENT)

    def delete(self, levels: Levels, name: str, row: int) -> None:
        """Delete a row by its id."""
        raise Absent(ABSENT)

    def merge(self, levels: Levels, name: str) -> None:
        """Set the city of row 2 to `Bern`, and add row 9, `Lima`, in one statement."""
        raise Absent(ABSENT)


class SqlDriver(Driver):
    """An engine with SQL, in the most common dialect."""

    mark = '"'
    types: dict[str, str] = {}  # noqa: RUF012 - stated by the class
    catalog = "lake"

    def ask(self, text: str) -> list[Row]:
        """Run a statement to its end."""
        raise Absent(ABSENT)

    def quoted(self, part: str) -> str:
        """One part of a name."""
        return f"{self.mark}{part.replace(self.mark, self.mark * 2)}{self.mark}"

    def space(self, levels: Levels) -> str:
        """A namespace's name: one level, joined by dots."""
        return f"{self.catalog}.{self.quoted('.'.join(levels))}"

    def table(self, levels: Levels, name: str) -> str:
        """A table's name."""
        return f"{self.space(levels)}.{self.quoted(name)}"

    def namespace(self, levels: Levels) -> None:
        self.ask(f"CREATE SCHEMA {self.space(levels)}")

    def create(self, levels: Levels, name: str) -> None:
        self.ask(f"CREATE TABLE {self.table(levels, name)} ({self.columns(PLAIN)}){self.layout(typed=False)}")

    def create_typed(self, levels: Levels, name: str) -> None:
        self.ask(f"CREATE TABLE {self.table(levels, name)} ({self.columns(TYPED)}){self.layout(typed=True)}")

    def columns(self, columns: dict[str, str]) -> str:
        """Return columns for CREATE TABLE."""
        return ", ".join(f"{self.quoted(name)} {self.types[kind]}" for name, kind in columns.items())

    def layout(self, *, typed: bool) -> str:
        """Return the clauses after the columns: partitions, and others that a table needs."""
        return f" PARTITIONED BY (days({self.quoted('at')}))" if typed else ""

    def append(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self._insert(levels, name, rows, kinds=list(PLAIN.values()))

    def append_typed(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self._insert(levels, name, rows, kinds=list(TYPED.values()))

    def _insert(self, levels: Levels, name: str, rows: Sequence[Row], *, kinds: list[str]) -> None:
        values = ("(" + ", ".join(map(self.literal, row, kinds)) + ")" for row in rows)
        self.ask(f"INSERT INTO {self.table(levels, name)} {self.values(list(values))}")

    def values(self, rows: list[str]) -> str:
        """Return rows for INSERT, each in parentheses."""
        return f"VALUES {', '.join(rows)}"

    def literal(self, value: object, kind: str) -> str:
        """Return a literal of a type."""
        if value is None:
            return f"CAST(NULL AS {self.types[kind]})"
        match kind:
            case "long":
                return str(value)
            case "list":
                return self.list_of([self.literal(each, "string") for each in value])  # type: ignore[attr-defined]
            case "struct":
                return self.struct_of(*map(self.literal, value, ("long", "string")))  # type: ignore[call-overload]
            case "timestamp" | "timestamptz":
                return self.moment(str(value).replace("T", " ").removesuffix("Z"), kind)
            case "string":
                return "'" + str(value).replace("'", "''") + "'"
            case _:
                return f"CAST('{value}' AS {self.types[kind]})"

    def moment(self, text: str, kind: str) -> str:
        """Return a timestamp literal; one with a zone is in UTC."""
        return f"CAST('{text}{'+00:00' if kind == 'timestamptz' else ''}' AS {self.types[kind]})"

    def list_of(self, items: list[str]) -> str:
        """A list of strings."""
        return f"CAST(ARRAY[{', '.join(items)}] AS {self.types['list']})"

    def struct_of(self, x: str, label: str) -> str:
        """A structure."""
        return f"CAST(ROW({x}, {label}) AS {self.types['struct']})"

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        return self.ask(f"SELECT {', '.join(map(self.quoted, columns))} FROM {self.table(levels, name)}")

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return self.ask(f"SELECT id, city FROM {self.table(levels, name)} FOR VERSION AS OF {snapshot}")

    def count(self, levels: Levels, name: str, city: str = "") -> int:
        where = f" WHERE city = {self.literal(city, 'string')}" if city else ""
        return int(str(self.ask(f"SELECT count(*) FROM {self.table(levels, name)}{where}")[0][0]))

    def add_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} ADD COLUMN size INTEGER")

    def rename_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} RENAME COLUMN city TO town")

    def drop_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} DROP COLUMN city")

    def rename(self, levels: Levels, name: str, new: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} RENAME TO {self.table(levels, new)}")

    def drop(self, levels: Levels, name: str) -> None:
        self.ask(f"DROP TABLE {self.table(levels, name)}")

    def make_view(self, levels: Levels, name: str, table: str) -> None:
        self.ask(f"CREATE VIEW {self.table(levels, name)} AS SELECT id FROM {self.table(levels, table)}")

    def told_name(self, levels: Levels, name: str) -> str:
        return self.table(levels, name)

    def update(self, levels: Levels, name: str) -> None:
        self.ask(f"UPDATE {self.table(levels, name)} SET city = 'Bern' WHERE id = 1")

    def delete(self, levels: Levels, name: str, row: int) -> None:
        self.ask(f"DELETE FROM {self.table(levels, name)} WHERE id = {row}")

    def merge(self, levels: Levels, name: str) -> None:
        source = "(SELECT CAST(2 AS BIGINT) AS id, 'Bern' AS city UNION ALL SELECT CAST(9 AS BIGINT), 'Lima')"
        self.ask(
            f"MERGE INTO {self.table(levels, name)} AS t USING {source} AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET city = s.city WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, s.city)"
        )
