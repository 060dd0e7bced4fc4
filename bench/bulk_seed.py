# SPDX-License-Identifier: Apache-2.0
"""Fills a store with millions of tables by statements that the database runs by itself, while no server runs.

May import `seed`. Each row is a copy of the row of a table that the server created, with its own id, name, uuid,
location and digest, as `seed` writes them. The secondary indexes of the four tables are dropped before the first row
and created from the same definitions after the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.seed import Forest, SqliteFiller
from limnos.model.entities import MetadataDocument
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.store.objects.documents import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.seed import Filler

EACH: Final = 1_000
"""Tables of a namespace."""
AREA: Final = 100
"""Namespaces of an area."""
ROWS_AT_ONCE: Final = 1_000_000
_FILLED: Final = ("node", "owner", "document", "place")
SUBJECTS: Final = 50
CROWD, BULK = "crowd", "bulk"
"""The large namespace, and the one above all others."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The expressions in which the two databases differ. `i` is the number of a row."""

    is_sqlite: bool

    def series(self, first: int, beyond: int) -> str:
        """Return a table `n` with the numbers from `first` up to `beyond`."""
        if self.is_sqlite:
            steps = f"SELECT {first} AS i UNION ALL SELECT i + 1 FROM steps WHERE i + 1 < {beyond}"
            return f"(WITH RECURSIVE steps(i) AS ({steps}) SELECT i FROM steps) AS n"
        return f"generate_series({first}::bigint, {beyond - 1}::bigint) AS n(i)"

    def digits(self, expression: str, width: int) -> str:
        """Return a number as decimal text."""
        if self.is_sqlite:
            return f"printf('%0{width}d', {expression})"
        return f"lpad(({expression})::text, {width}, '0')"

    def hexadecimal(self, expression: str, width: int) -> str:
        """Return a number as hexadecimal text."""
        if self.is_sqlite:
            return f"printf('%0{width}x', {expression})"
        return f"lpad(to_hex({expression}), {width}, '0')"

    def text_of(self, expression: str) -> str:
        """Return bytes as text."""
        return f"CAST({expression} AS TEXT)" if self.is_sqlite else f"convert_from({expression}, 'UTF8')"

    def bytes_of(self, expression: str) -> str:
        """Return text as bytes."""
        return f"CAST({expression} AS BLOB)" if self.is_sqlite else f"convert_to({expression}, 'UTF8')"


def index_statements(filler: Filler, *, is_sqlite: bool) -> list[tuple[str, str]]:
    """Return names and definitions of the indexes that no constraint made."""
    tables = ", ".join(f"'{each}'" for each in _FILLED)
    if is_sqlite:
        query = (
            f"SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ({tables})"
        )
    else:
        query = (
            f"SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() AND tablename IN ({tables})"
            " AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conname = indexname)"
        )
    return [(str(name), str(text)) for name, text in filler.rows(query)]


class BulkForest(Forest):
    """A forest that also copies a template into a range of ids, by one statement for each table of the store."""

    def __init__(self, filler: Filler) -> None:
        super().__init__(filler)
        self.dialect = Dialect(isinstance(filler, SqliteFiller))
        self._indexes = index_statements(filler, is_sqlite=self.dialect.is_sqlite)
        if not self.dialect.is_sqlite:
            filler.run("SET LOCAL maintenance_work_mem = '1GB'")

    def drop_indexes(self) -> None:
        """Read the template while it has an index, and drop the indexes, until `create_indexes`."""
        self._tables.setdefault("small", self._table_template("small"))
        for name, _ in self._indexes:
            self.filler.run(f'DROP INDEX "{name}"')

    def create_indexes(self) -> None:
        """Create the dropped indexes."""
        for _, text in self._indexes:
            self.filler.run(text)

    def bulk_tables(self, parents: Sequence[int], each: int, *, name: str) -> int:
        """Create `each` tables in each of the parents, whose ids follow one another. Returns the first table's id.

        `name` is an expression over `n.i`, the number of a table from 0. The tables have documents, and no files.
        """
        assert list(parents) == list(range(parents[0], parents[0] + len(parents)))
        count, first = each * len(parents), self._next_id
        self._next_id += count
        self.flush()
        for begin in range(0, count, ROWS_AT_ONCE):
            series = self.dialect.series(begin, min(count, begin + ROWS_AT_ONCE))
            self._insert_all(series, first=first, parent=f"{parents[0]} + n.i / {each}", name=name)
        return first

    def _insert_all(self, series: str, *, first: int, parent: str, name: str) -> None:
        node, document = self._tables["small"]
        node_id = f"({first} + n.i)"
        node_changes = {
            "id": node_id,
            "parent_id": parent,
            "name": name,
            "folded": name,
            "revision": str(self._revision),
        }
        self._insert("node", self._node_columns, f"id = {self._int(node, 'id')}", series, node_changes)
        old = dict(zip(self._document_columns, document.row, strict=True))
        old_location = str(old["location"])
        last = old_location.rstrip("/").rpartition("/")[2]
        new_last, uuid = self.dialect.hexadecimal(node_id, 32), self._uuid(node_id)
        moved = {column: f"replace(t.{column}, '{last}', {new_last})" for column in ("location", "metadata_location")}
        text = f"replace(replace({self.dialect.text_of('t.body')}, '{old['uuid']}', {uuid}), '{last}', {new_last})"
        body = self.dialect.bytes_of(text)
        newline = "char(10)" if self.dialect.is_sqlite else "chr(10)"
        head = [uuid, newline, moved["location"], newline, moved["metadata_location"], text]
        digest = f"{_digest_base(int(str(old['version'])))} + crc32c({self.dialect.bytes_of(' || '.join(head))})"
        document_id = int(str(old["node_id"]))
        changes = {"node_id": node_id, "uuid": uuid, **moved, "body": body, "digest": digest}
        self._insert("document", self._document_columns, f"node_id = {document_id}", series, changes)
        place_changes = {"location": f"replace(t.location, '{last}', {new_last})", "owner_id": node_id}
        self._insert("place", self._place_columns, f"owner_id = {document_id}", series, place_changes)
        self.filler.run(f"INSERT INTO owner (object_id, principal_id) SELECT {node_id}, {self.owner_id} FROM {series}")

    def _insert(self, table: str, columns: Sequence[str], where: str, series: str, changes: Mapping[str, str]) -> None:
        chosen = ", ".join(changes.get(column, f"t.{column}") for column in columns)
        self.filler.run(f"CREATE TEMPORARY TABLE template AS SELECT * FROM {table} WHERE {where}")
        self.filler.run(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM template AS t CROSS JOIN {series}"
        )
        self.filler.run("DROP TABLE template")

    def _uuid(self, number: str) -> str:
        """Return the expression of a UUID of version 4."""
        return f"'00000000-0000-4000-8000-' || {self.dialect.hexadecimal(number, 12)}"


def _digest_base(version: int) -> int:
    """Return the digest of a version without the bits of its CRC-32C."""
    document = MetadataDocument(node_id=0, version=version, uuid="", location="", metadata_location="", body=b"")
    return digest_of(document, version=version) >> 32 << 32


def write_files(filler: Filler, ids: Sequence[int]) -> None:
    """Write the metadata files of tables, so that they can be loaded."""
    for begin in range(0, len(ids), 500):
        among = ", ".join(map(str, ids[begin : begin + 500]))
        for location, body in filler.rows(f"SELECT metadata_location, body FROM document WHERE node_id IN ({among})"):
            assert isinstance(body, bytes | memoryview)
            path = Path(str(location).removeprefix("file://").removeprefix("file:"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)


def crowd_size(tables: int) -> int:
    """Return the number of tables of the one large namespace: a million, or half of the tables."""
    return min(1_000_000, tables // 2)


def plant_bulk(forest: BulkForest, tables: int, *, loaded: Sequence[int]) -> None:
    """Create the tables: a part of them in one namespace, the others in namespaces of a thousand, which are in areas
    of a hundred. The role of the reader gets both. The `loaded` tables of small namespaces get files.
    """
    spaces = max(1, (tables - crowd_size(tables)) // EACH)
    crowd = forest.namespace(forest.catalog_id, CROWD)
    bulk = forest.namespace(forest.catalog_id, BULK)
    areas = [forest.namespace(bulk, f"area_{number:03}") for number in range(-(-spaces // AREA))]
    parents = [forest.namespace(areas[number // AREA], f"space_{number:05}") for number in range(spaces)]
    forest.flush()
    forest.drop_indexes()
    digits = forest.dialect.digits
    forest.bulk_tables([crowd], crowd_size(tables), name=f"'table_' || {digits('n.i', 7)}")
    subject = digits(f"n.i / {EACH} % {SUBJECTS}", 2)
    name = f"'subject' || {subject} || '_' || {digits(f'n.i % {EACH}', 3)}"
    first = forest.bulk_tables(parents, EACH, name=name)
    forest.create_indexes()
    write_files(forest.filler, [first + number for number in loaded])
    role = int(str(forest.filler.rows("SELECT id FROM role WHERE name = 'reading'")[0][0]))
    grants = [
        (role, each, int(right), int(Kind.NAMESPACE), True)
        for each in (crowd, bulk)
        for right in (Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    ]
    forest.filler.copy("access_grant", ("role_id", "object_id", "privilege", "object_kind", "allowed"), grants)
    forest.close()
