# SPDX-License-Identifier: Apache-2.0
"""Fills a store with trees that would take hours to create through a server: rows are written in SQL while none runs.

May import the store's schema and the model's numbers. Each namespace and table is a copy of one that the server itself
just created, with its own id, name, uuid and location. So a seeded object equals a created one. Fixtures are the same
in every tree; the other objects determine its size.
"""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import google_crc32c

from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.model.records import RoleRecord, encode
from limnos.names.parts import fold
from limnos.store import schema

if TYPE_CHECKING:
    import psycopg

    from bench.stores import Place

Value = int | str | bytes | bool | None
Row = tuple[Value, ...]
TEMPLATE = "template"
"""The namespace of the objects that are copied. Its tables are named after the sizes of their metadata."""

HOT_NAMESPACES, HOT_TABLES = 20, 50
WIDE_TABLES = 50
COMMIT_TABLES = 1024
LISTS = (1_000, 10_000)
SIBLINGS = 5_000
CROWDS = (1_000, 100_000, 1_000_000)
"""Numbers of tables in the namespaces for paging. A tree has those for which it is large enough."""
SINGLE_GRANTS = 3_000
LEAF_TABLES = 8
_BRANCH_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a tree: `nodes` objects, in leaves five levels deep, each with eight tables and a sixth-level
    namespace.
    """

    nodes: int

    @property
    def leaves(self) -> int:
        """Number of leaf namespaces."""
        return max(1, self.nodes // (LEAF_TABLES + 2))

    @property
    def fan(self) -> int:
        """Number of children of a branch."""
        fan = 2
        while fan ** (_BRANCH_LEVELS + 1) < self.leaves:
            fan += 1
        return fan

    def leaf(self, number: int) -> tuple[str, ...]:
        """Return the five levels of a leaf."""
        return ("tree", *(f"n{number // self.fan**power}" for power in range(_BRANCH_LEVELS, -1, -1)))


def list_table(number: int) -> str:
    """Return the name of a table in the listed namespaces."""
    return f"table_{number:05}"


def is_picked(number: int) -> bool:
    """Return whether the user with single grants has one on this table: every third, up to the limit."""
    return number % 3 == 0


class Filler(ABC):
    """A database that is filled while no server runs."""

    @abstractmethod
    def rows(self, text: str) -> list[Row]:
        """Read."""

    @abstractmethod
    def run(self, text: str) -> None:
        """Write."""

    @abstractmethod
    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert many rows."""

    @abstractmethod
    def first_id(self) -> int:
        """Return an id that is larger than all given ones."""

    @abstractmethod
    def close(self, next_id: int) -> None:
        """Advance the server's id sequence, clean up, and disconnect."""


class SqliteFiller(Filler):
    """The embedded SQLite file. With `journals` false the file is useless if the process ends before `close`."""

    def __init__(self, path: Path, *, journals: bool = True) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        if (
            not journals
        ):  # in WAL mode, a transaction of gigabytes is written twice and read through the journal's index
            self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = OFF")
        self._journals = journals
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA cache_size = -262144")
        self._connection.create_function("crc32c", 1, google_crc32c.value, deterministic=True)  # PostgreSQL has it
        self._connection.execute("BEGIN")

    def rows(self, text: str) -> list[Row]:
        return self._connection.execute(text).fetchall()

    def run(self, text: str) -> None:
        self._connection.execute(text)

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def first_id(self) -> int:
        return int(str(self.rows("SELECT next_id FROM store")[0][0]))

    def close(self, next_id: int) -> None:
        self.run(f"UPDATE store SET next_id = {next_id}")
        self._connection.execute("COMMIT")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)" if self._journals else "PRAGMA journal_mode = WAL")
        self._connection.close()


class PostgresFiller(Filler):
    """A PostgreSQL database."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection: psycopg.Connection[Row] = psycopg.connect(url)

    def rows(self, text: str) -> list[Row]:
        return self._connection.execute(text.encode()).fetchall()

    def run(self, text: str) -> None:
        self._connection.execute(text.encode())

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        text = f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(text) as copy:
            for row in rows:
                copy.write_row(row)

    def first_id(self) -> int:
        return int(str(self.rows("SELECT nextval('limnos_id')")[0][0]))

    def close(self, next_id: int) -> None:
        self.run(f"SELECT setval('limnos_id', {next_id})")
        self._connection.commit()
        self._connection.autocommit = True
        self.run("VACUUM (ANALYZE)")  # autovacuum would run during a measurement
        self.run("CHECKPOINT")
        self._connection.close()


def open_filler(place: Place, *, journals: bool = True) -> Filler:
    """Connect to the store of a stopped server. `journals` is that of `SqliteFiller`."""
    if place.database is None:
        return SqliteFiller(place.sqlite_file, journals=journals)
    return PostgresFiller(place.database)


def _columns(name: str) -> tuple[str, ...]:
    return tuple(schema.metadata.tables[name].columns.keys())


@dataclass(frozen=True, slots=True)
class _Document:
    """A template's document, its metadata file, the row of its storage location, and its other files by their paths
    below the location: manifests, not compressed, and data files.
    """

    row: Row
    file: bytes
    place: Row
    others: tuple[tuple[str, bytes], ...]


class Forest:
    """Copies templates: rows are gathered and written table by table."""

    def __init__(self, filler: Filler) -> None:
        self.filler = filler
        self._next_id = filler.first_id()
        self._now_ms = time.time_ns() // 1_000_000
        self._nodes: list[Row] = []
        self._documents: list[Row] = []
        self._owners: list[Row] = []
        self._places: list[Row] = []
        self._node_columns, self._document_columns = _columns("node"), _columns("document")
        self._place_columns = _columns("place")
        where = f"name = '{TEMPLATE}' AND kind = {int(Kind.NAMESPACE)} AND deleted = 0"
        self._namespace = self._read("node", self._node_columns, where)
        self.catalog_id = self._int(self._namespace, "parent_id")
        self.metalake_id = int(str(filler.rows(f"SELECT parent_id FROM node WHERE id = {self.catalog_id}")[0][0]))
        self.owner_id = filler.rows(
            f"SELECT principal_id FROM owner WHERE object_id = {self._int(self._namespace, 'id')}"
        )[0][0]
        self._tables: dict[str, tuple[Row, _Document]] = {}
        self._template_id = self._int(self._namespace, "id")
        self._revision = 1 + int(str(filler.rows(f"SELECT revision FROM clock WHERE zone = {self.catalog_id}")[0][0]))

    def _read(self, table: str, columns: Sequence[str], where: str) -> Row:
        return self.filler.rows(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}")[0]

    def _int(self, row: Row, column: str) -> int:
        return int(str(row[self._node_columns.index(column)]))

    def draw_id(self) -> int:
        """Return the next id."""
        self._next_id += 1
        return self._next_id - 1

    def namespace(self, parent_id: int, name: str) -> int:
        """Create a namespace. Returns its id."""
        return self._node(self._namespace, parent_id, name)

    def _node(self, template: Row, parent_id: int, name: str) -> int:
        node_id = self.draw_id()
        changed: dict[str, Value] = {
            "id": node_id,
            "parent_id": parent_id,
            "name": name,
            "folded": fold(name),
            "revision": self._revision,
        }
        self._nodes.append(
            tuple(changed.get(column, old) for column, old in zip(self._node_columns, template, strict=True))
        )
        self._owners.append((node_id, self.owner_id))
        if len(self._nodes) >= 50_000:
            self.flush()
        return node_id

    def bare_table(self, parent_id: int, name: str) -> None:
        """Create a table that is listed but never loaded: without document and file."""
        if "small" not in self._tables:
            self._tables["small"] = self._table_template("small")
        self._node(self._tables["small"][0], parent_id, name)

    def table(
        self, parent_id: int, name: str, *, like: str, with_file: bool = False, renamed: Iterable[tuple[str, str]] = ()
    ) -> int:
        """Create a copy of a template table, with its files if it will be loaded. Returns its id.

        `renamed` are texts of the template's document, and those that replace them.
        """
        if like not in self._tables:
            self._tables[like] = self._table_template(like)
        node, document = self._tables[like]
        node_id = self._node(node, parent_id, name)
        old = dict(zip(self._document_columns, document.row, strict=True))
        uuid, location = str(UUID(int=(node_id << 64) | 0x4000_8000_0000_0000_0000, version=4)), str(old["location"])
        base = location.rstrip("/").rpartition("/")[0]
        new_location = f"{base}/{UUID(int=node_id).hex}"
        if document.others:  # Avro has the lengths of texts, so they stay the same
            new_location = f"{base}/{str(node_id).rjust(len(_last_part(location)), 'c')}"
        marks = ((str(old["uuid"]), uuid), (location, new_location), *renamed)
        body = old["body"]
        assert isinstance(body, bytes | memoryview)
        changed: dict[str, Value] = {
            "node_id": node_id,
            "uuid": uuid,
            "location": new_location,
            "metadata_location": str(old["metadata_location"]).replace(location, new_location),
            "body": _replaced(bytes(body), marks),
        }
        changed["digest"] = None  # the template's would not fit; unknown ones are not compared
        self._documents.append(tuple(changed.get(column, value) for column, value in old.items()))
        place = dict(zip(self._place_columns, document.place, strict=True))
        place |= {"location": str(place["location"]).replace(_last_part(location), _last_part(new_location))}
        self._places.append(tuple((place | {"owner_id": node_id}).values()))
        if with_file:
            path = _path_of(str(changed["metadata_location"]))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_replaced(document.file, marks))
            for below, data in document.others:
                other = _path_of(new_location) / below
                other.parent.mkdir(exist_ok=True)
                other.write_bytes(_replaced(data, marks))
        return node_id

    def _table_template(self, name: str) -> tuple[Row, _Document]:
        where = f"parent_id = {self._template_id} AND name = '{name}' AND deleted = 0"
        node = self._read("node", self._node_columns, where)
        row = self._read("document", self._document_columns, f"node_id = {self._int(node, 'id')}")
        at = str(row[self._document_columns.index("metadata_location")])
        place = self._read("place", self._place_columns, f"owner_id = {self._int(node, 'id')}")
        folder = _path_of(str(row[self._document_columns.index("location")]))
        others = (each for each in folder.rglob("*") if each.is_file() and not each.name.endswith(".metadata.json"))
        files = tuple((str(each.relative_to(folder)), each.read_bytes()) for each in others)
        return node, _Document(row, _path_of(at).read_bytes(), place, files)

    def principal(self, name: str) -> int:
        """Create a user."""
        principal_id = self.draw_id()
        row: dict[str, Value] = {
            "id": principal_id,
            "metalake_id": self.metalake_id,
            "kind": int(Kind.USER),
            "name": name,
            "enabled": True,
            "deleted": 0,
            "created_by": "bench",
            "created_at": self._now_ms,
        }
        self.filler.copy("principal", tuple(row), [tuple(row.values())])
        return principal_id

    def role(self, name: str, grants: Iterable[tuple[int, Kind, Privilege, bool]], *, held_by: int) -> None:
        """Create a role with its rules, held by one user."""
        role_id = self.draw_id()
        record = encode(RoleRecord(properties={}))
        role = (role_id, self.metalake_id, name, "bench", self._now_ms, None, None, 0, record)
        self.filler.copy("role", _columns("role"), [role])
        self.filler.copy("owner", _columns("owner"), [(role_id, self.owner_id)])
        self.filler.copy("role_member", _columns("role_member"), [(held_by, role_id)])
        rows = ((role_id, object_id, int(privilege), int(kind), yes) for object_id, kind, privilege, yes in grants)
        self.filler.copy("access_grant", _columns("access_grant"), rows)

    def flush(self) -> None:
        """Write the gathered rows."""
        self.filler.copy("node", self._node_columns, self._nodes)
        self.filler.copy("owner", _columns("owner"), self._owners)
        self.filler.copy("document", self._document_columns, self._documents)
        self.filler.copy("place", self._place_columns, self._places)
        self._nodes, self._owners, self._documents, self._places = [], [], [], []

    def close(self) -> None:
        """Write the remaining rows and advance the clocks, so that views of the store start empty."""
        self.flush()
        for zone in (self.catalog_id, self.metalake_id):
            self.filler.run(
                "UPDATE clock SET revision = revision + 1, access_revision = revision + 1, pruned_to = revision + 1"
                f" WHERE zone = {zone}"
            )
            self.filler.run(f"DELETE FROM change WHERE zone = {zone}")
        self.filler.close(self._next_id)


def _replaced(body: bytes, marks: Iterable[tuple[str, str]]) -> bytes:
    for old, new in marks:
        body = body.replace(old.encode(), new.encode())
    return body


def _last_part(location: str) -> str:
    return location.rstrip("/").rpartition("/")[2]


def _path_of(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


def plant(place: Place, shape: Shape) -> None:
    """Fill a store that has the templates: fixtures, other objects, users and their roles."""
    forest = Forest(open_filler(place))
    parents = {
        name: forest.namespace(forest.catalog_id, name) for name in ("wide", "commits", "made", "siblings", "tree")
    }
    hot = [forest.namespace(forest.catalog_id, f"hot{number}") for number in range(HOT_NAMESPACES)]
    for parent in hot:
        for number in range(HOT_TABLES):
            forest.table(parent, f"t{number}", like="medium", with_file=True)
    for number in range(WIDE_TABLES):
        forest.table(parents["wide"], f"t{number}", like="large", with_file=True)
    for number in range(COMMIT_TABLES):
        forest.table(parents["commits"], f"t{number}", like="medium", with_file=True)
    for number in range(SIBLINGS):
        forest.namespace(parents["siblings"], f"s{number:05}")
    lists = [forest.namespace(forest.catalog_id, f"list{size}") for size in LISTS]
    listed = [
        [forest.table(parent, list_table(number), like="small") for number in range(size)]
        for parent, size in zip(lists, LISTS, strict=True)
    ]
    crowds = _plant_crowds(forest, shape)
    _plant_bulk(forest, parents["tree"], shape)
    _plant_users(forest, [*hot, *lists, *crowds, parents["wide"], parents["tree"]], lists, listed)
    forest.close()


def _plant_crowds(forest: Forest, shape: Shape) -> list[int]:
    namespace_ids = []
    for size in CROWDS:
        if size <= shape.nodes:
            namespace_ids.append(forest.namespace(forest.catalog_id, f"crowd{size}"))
            for number in range(size):
                forest.bare_table(namespace_ids[-1], crowd_table(number))
    return namespace_ids


def crowd_table(number: int) -> str:
    """Return the name of a table for paging."""
    return f"table_{number:07}"


def _plant_bulk(forest: Forest, root_id: int, shape: Shape) -> None:
    known: dict[tuple[str, ...], int] = {("tree",): root_id}
    loaded = frozenset(deep_leaves(shape))

    def parent_of(levels: tuple[str, ...]) -> int:
        namespace_id = known.get(levels)
        if namespace_id is None:
            namespace_id = known[levels] = forest.namespace(parent_of(levels[:-1]), levels[-1])
        return namespace_id

    for number in range(shape.leaves):
        levels = shape.leaf(number)
        leaf = forest.namespace(parent_of(levels[:-1]), levels[-1])
        forest.namespace(leaf, "deep")
        for table in range(LEAF_TABLES):
            forest.table(leaf, f"t{table}", like="small", with_file=number in loaded)


def deep_leaves(shape: Shape) -> list[int]:
    """Return the leaves of the warm operations: a hundred, spread over the tree."""
    return list(range(0, shape.leaves, max(1, shape.leaves // 100)))[:100]


def _plant_users(
    forest: Forest, readable: Sequence[int], lists: Sequence[int], listed: Sequence[Sequence[int]]
) -> None:
    p = Privilege
    catalog = (forest.catalog_id, Kind.CATALOG)
    schemas = [(each, Kind.NAMESPACE, right, True) for each in readable for right in (p.USE_SCHEMA, p.SELECT_TABLE)]
    reader = [(*catalog, p.USE_CATALOG, True), *schemas]
    forest.role("reading", reader, held_by=forest.principal("reader"))
    denials = [(tables[len(tables) // 2], Kind.TABLE, p.SELECT_TABLE, False) for tables in listed]
    forest.role("reading_but", [*reader, *denials], held_by=forest.principal("denied"))
    forest.role("picking", _picked(catalog, lists, listed), held_by=forest.principal("picker"))
    rights = (
        p.USE_CATALOG,
        p.USE_SCHEMA,
        p.CREATE_SCHEMA,
        p.CREATE_TABLE,
        p.MODIFY_TABLE,
        p.SELECT_TABLE,
        p.CREATE_VIEW,
        p.SELECT_VIEW,
    )
    forest.role("writing", [(*catalog, right, True) for right in rights], held_by=forest.principal("writer"))


def _picked(
    catalog: tuple[int, Kind], lists: Sequence[int], listed: Sequence[Sequence[int]]
) -> Iterator[tuple[int, Kind, Privilege, bool]]:
    """Create single grants on tables, `SINGLE_GRANTS` in all, and the grants that make their namespaces visible."""
    yield (*catalog, Privilege.USE_CATALOG, True)
    yield from ((each, Kind.NAMESPACE, Privilege.USE_SCHEMA, True) for each in lists)
    picked = [table for tables in listed for number, table in enumerate(tables) if is_picked(number)]
    yield from ((table, Kind.TABLE, Privilege.SELECT_TABLE, True) for table in picked[:SINGLE_GRANTS])
