# SPDX-License-Identifier: Apache-2.0
"""Renaming namespaces whose names contain the separator: the plan of the changes and its progress.

Must not know rights: no decision depends on these rows, and they are not cached. A planned change is a row with the
namespace's id, so it applies even if the namespace was renamed. The renames themselves are ordinary moves.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from limnos.model.kinds import Kind
from limnos.names.parts import Levels
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.transaction import Writes

PLANNED, RENAMED, NESTED, LEFT = 0, 1, 2, 3
"""The steps of a change: planned; renamed; moved to its path; skipped, because another request moved or dropped the
namespace.
"""

_LIVES = f"n.kind = {int(Kind.NAMESPACE)} AND n.deleted = 0"
_HOLDS = f"{_LIVES} AND strpos(n.name, :separator) > 0"


def _over_namespaces(text: str) -> Sql:
    """Build a statement over namespaces. SQLite would otherwise choose among the indexes of zones by chance."""
    indexed = text.replace("FROM node n", "FROM node n INDEXED BY node_namespace").replace("strpos", "instr")
    return Sql(text, on_sqlite=indexed)


CONFLICTS = _over_namespaces(
    f"SELECT n.id, n.parent_id, n.name FROM node n WHERE n.zone = :zone AND n.id > :after AND {_HOLDS}"
    " ORDER BY n.id LIMIT :limit"
)
COUNT = _over_namespaces(f"SELECT count(*) FROM node n WHERE n.zone = :zone AND {_HOLDS}")
ANYWHERE = _over_namespaces(
    f"SELECT n.zone, count(*), min(n.name) FROM node n WHERE {_HOLDS} GROUP BY n.zone ORDER BY n.zone"
)
NESTED_ONE = _over_namespaces(
    f"SELECT p.name, n.name FROM node n CROSS JOIN node p WHERE n.zone = :zone AND {_LIVES} AND p.id = n.parent_id"
    f" AND p.kind = {int(Kind.NAMESPACE)} LIMIT 1"
)
_MIGRATION = "state, separator, replacement, nests, goes_on, planned_to, planned_by, planned_at"
READ = Sql(f"SELECT {_MIGRATION} FROM name_migration WHERE catalog_id = :catalog")
COUNTS = Sql("SELECT step, count(*) FROM name_change WHERE catalog_id = :catalog GROUP BY step")
CHANGES = Sql(
    "SELECT node_id, parent_id, old_name, new_name, path, into_id, step FROM name_change"
    " WHERE catalog_id = :catalog AND node_id > :after ORDER BY node_id LIMIT :limit"
)
AT_STEP = Sql(
    "SELECT node_id, parent_id, old_name, new_name, path, into_id, step FROM name_change"
    " WHERE catalog_id = :catalog AND step = :step ORDER BY node_id LIMIT :limit"
)
WITH_PATH = Sql(
    "SELECT node_id, parent_id, old_name, new_name, path, into_id, step FROM name_change"
    " WHERE catalog_id = :catalog AND step = :step AND path IS NOT NULL ORDER BY node_id LIMIT :limit"
)
IS_TAKEN = Sql(
    "SELECT 1 FROM node WHERE parent_id = :parent AND name_space = :space AND name = :name AND deleted = 0 UNION ALL"
    " SELECT 1 FROM name_change WHERE catalog_id = :catalog AND parent_id = :parent AND new_name = :name AND node_id"
    " <> :id"
)
BEGIN = Sql(
    f"INSERT INTO name_migration (catalog_id, {_MIGRATION})"
    " VALUES (:catalog, 'planning', :separator, :replacement, :nests, :goes_on, 0, :actor, :now)"
)
STATE = Sql(
    "UPDATE name_migration SET state = :state, goes_on = :goes_on, planned_to = :planned_to WHERE catalog_id = :catalog"
)
ADD = Sql(
    "INSERT INTO name_change (catalog_id, node_id, parent_id, old_name, new_name, path, step) VALUES (:catalog, :id,"
    " :parent, :old, :new, :path, 0) ON CONFLICT (catalog_id, node_id) DO UPDATE SET parent_id = excluded.parent_id,"
    " old_name = excluded.old_name, new_name = excluded.new_name, path = excluded.path, step = 0"
)
STEP = Sql(
    "UPDATE name_change SET step = :step, new_name = :new, into_id = :into WHERE catalog_id = :catalog AND node_id"
    " = :id"
)
END = Sql("DELETE FROM name_migration WHERE catalog_id = :catalog")
END_CHANGES = Sql("DELETE FROM name_change WHERE catalog_id = :catalog")
_NO_CATALOG = "WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {}.catalog_id AND n.deleted = 0)"
SWEEPS = tuple(Sql(f"DELETE FROM {table} {_NO_CATALOG.format(table)}") for table in ("name_change", "name_migration"))
SEPARATOR = Sql("SELECT separator FROM store WHERE one = 1")
CHECKED_FOR = Sql("UPDATE store SET separator = :separator WHERE one = 1")


class NameConflict(NamedTuple):
    """A namespace whose name contains the separator, and its parent."""

    node_id: int
    parent_id: int
    name: str


class NameMigration(NamedTuple):
    """The migration of a catalog to nested namespaces, which renames namespaces whose names contain the separator.

    If `goes_on`, changes are executed as soon as they are planned. `planned_to` is the last namespace id that was
    planned.
    """

    state: str
    separator: str
    replacement: str
    nests: bool
    goes_on: bool
    planned_to: int
    planned_by: str
    planned_at: int


class NameChangeRow(NamedTuple):
    """The planned change of one namespace: a rename under its parent, and then, if `path` is set, a move to that path.

    `into_id` is the namespace that it was moved into; None until then.
    """

    node_id: int
    parent_id: int
    old_name: str
    new_name: str
    path: Levels | None
    into_id: int | None
    step: int


def name_change_of(row: Row) -> NameChangeRow:
    """Build a name change from a row of this table, with its path decoded from JSON."""
    path = None if row[4] is None else tuple(json.loads(row[4]))
    return NameChangeRow(
        node_id=row[0], parent_id=row[1], old_name=row[2], new_name=row[3], path=path, into_id=row[5], step=row[6]
    )


def conflicts_read(catalog_id: int, separator: str, *, limit: int) -> Load[tuple[int, list[NameConflict]]]:
    """Count the namespaces of a catalog whose names contain the separator, and read up to `limit` of them."""
    ((count,),) = yield COUNT, {"zone": catalog_id, "separator": separator}
    rows = yield CONFLICTS, {"zone": catalog_id, "separator": separator, "after": 0, "limit": limit}
    return count, [NameConflict(*row) for row in rows]


def migration_read(catalog_id: int) -> Load[tuple[NameMigration, dict[int, int]] | None]:
    """Read a catalog's migration with the count of changes at each step; None if there is no migration."""
    rows = yield READ, {"catalog": catalog_id}
    if not rows:
        return None
    counts = yield COUNTS, {"catalog": catalog_id}
    return _migration(rows[0]), dict(counts)


def checked_read() -> Load[str | None]:
    """Read the separator and policy for which the stored names were last checked; None before the first check."""
    ((result,),) = yield SEPARATOR, {}
    return None if result is None else str(result)


def changes_read(catalog_id: int, *, after: int, limit: int) -> Load[list[NameChangeRow]]:
    """Read a page of a catalog's changes, in the order of the namespaces' ids."""
    rows = yield CHANGES, {"catalog": catalog_id, "after": after, "limit": limit}
    return [name_change_of(row) for row in rows]


def _migration(row: Row) -> NameMigration:
    return NameMigration(
        state=row[0],
        separator=row[1],
        replacement=row[2],
        nests=bool(row[3]),
        goes_on=bool(row[4]),
        planned_to=row[5],
        planned_by=row[6],
        planned_at=row[7],
    )


class NestingWrites(Writes):
    """Reads and writes name migrations inside a transaction."""

    def conflicts(self, catalog_id: int, separator: str, *, after: int, limit: int) -> list[NameConflict]:
        """Read namespaces of a catalog whose names contain a separator, in the order of their ids."""
        entries: Params = {"zone": catalog_id, "separator": separator, "after": after, "limit": limit}
        return [NameConflict(*row) for row in self.tx.rows(CONFLICTS, entries)]

    def conflicts_anywhere(self, separator: str) -> list[tuple[int, int, str]]:
        """Count each catalog's namespaces whose names contain a separator. Returns (catalog id, count, an example)."""
        return [(row[0], row[1], row[2]) for row in self.tx.rows(ANYWHERE, {"separator": separator})]

    def nested_one(self, catalog_id: int) -> tuple[str, str] | None:
        """Return the names of one parent and its child namespace, if the catalog has nested namespaces; else None."""
        rows = self.tx.rows(NESTED_ONE, {"zone": catalog_id})
        return (rows[0][0], rows[0][1]) if rows else None

    def is_taken(self, catalog_id: int, node_id: int, *, parent_id: int, space: str, name: str) -> bool:
        """Return whether another namespace has this name under this parent, or is planned to get it."""
        entries: Params = {"catalog": catalog_id, "id": node_id, "parent": parent_id, "space": space, "name": name}
        return bool(self.tx.rows(IS_TAKEN, entries))

    def read(self, catalog_id: int) -> NameMigration | None:
        """Read a catalog's migration, or None."""
        rows = self.tx.rows(READ, {"catalog": catalog_id})
        return _migration(rows[0]) if rows else None

    def counts(self, catalog_id: int) -> dict[int, int]:
        """Count a catalog's changes by step."""
        return {row[0]: row[1] for row in self.tx.rows(COUNTS, {"catalog": catalog_id})}

    def begin(self, catalog_id: int, *, separator: str, replacement: str, nests: bool) -> None:
        """Insert a new migration in the state `planning`. Deletes the previous migration of the catalog."""
        self.end(catalog_id)
        self.tx.count(
            BEGIN,
            {
                "catalog": catalog_id,
                "separator": separator,
                "replacement": replacement,
                "nests": nests,
                "goes_on": False,
                "actor": self.tx.actor,
                "now": self.tx.now_ms,
            },
        )

    def enter(self, catalog_id: int, state: str, *, goes_on: bool = False, planned_to: int = 0) -> None:
        """Set the state of a catalog's name migration, such as `planning`. `goes_on`: changes are executed once
        planned; `planned_to` is the last namespace id that was planned. Omitted arguments are reset.
        """
        self.tx.count(STATE, {"catalog": catalog_id, "state": state, "goes_on": goes_on, "planned_to": planned_to})

    def add(self, catalog_id: int, conflict: NameConflict, *, new_name: str, path: Levels | None) -> None:
        """Add one planned name change to a migration."""
        self.tx.count(
            ADD,
            {
                "catalog": catalog_id,
                "id": conflict.node_id,
                "parent": conflict.parent_id,
                "old": conflict.name,
                "new": new_name,
                "path": None if path is None else json.dumps(path),
            },
        )

    def changes(self, catalog_id: int, *, step: int, limit: int, with_path: bool = False) -> list[NameChangeRow]:
        """Read up to `limit` changes whose current step is `step`; with `with_path` only those that end with a move to
        a path.
        """
        statement = WITH_PATH if with_path else AT_STEP
        return [
            name_change_of(row)
            for row in self.tx.rows(statement, {"catalog": catalog_id, "step": step, "limit": limit})
        ]

    def put(self, catalog_id: int, change: NameChangeRow) -> None:
        """Store the step that a change has reached, and its values."""
        self.tx.count(
            STEP,
            {
                "catalog": catalog_id,
                "id": change.node_id,
                "step": change.step,
                "new": change.new_name,
                "into": change.into_id,
            },
        )

    def end(self, catalog_id: int) -> None:
        """Delete the migration and its changes."""
        self.tx.count(END_CHANGES, {"catalog": catalog_id})
        self.tx.count(END, {"catalog": catalog_id})

    def read_checked(self) -> str | None:
        """Return the separator and policy for which the stored names were last checked, as `checked_read`."""
        ((result,),) = self.tx.rows(SEPARATOR, {})
        return None if result is None else str(result)

    def free_of(self, separator: str) -> None:
        """Record the separator and policy for which the stored names were checked."""
        self.tx.count(CHECKED_FOR, {"separator": separator})
