# SPDX-License-Identifier: Apache-2.0
"""Managed versions of Lance tables, whose history is in the store: a row for each, by table, branch and number.

Must not know files. Inserting the row is the commit. It happens before the version's manifest has its final name, and
the row has the name under which the writer staged it. A row is `settled` once its manifest was found under its final
name, which is checked at the next version; then all earlier rows are settled, too. So only the newest versions can be
unfinished.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.model.lance import LanceVersion
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

_COLUMNS = "branch, version, scheme, staged, size, e_tag, metadata, created_at, settled"
_OF = f"SELECT {_COLUMNS} FROM lance_version WHERE node_id = :id AND branch = :branch"
UPWARDS = Sql(f"{_OF} AND version > :after ORDER BY version LIMIT :limit")
DOWNWARDS = Sql(f"{_OF} AND version < :after ORDER BY version DESC LIMIT :limit")
ONE = Sql(f"{_OF} AND version = :version")
TOP = Sql(f"{_OF} ORDER BY version DESC LIMIT 1")
_AFTER_SETTLED = (
    "version > COALESCE((SELECT s.version FROM lance_version s WHERE s.node_id = :id AND s.branch = :branch AND"
    " s.settled = :yes ORDER BY s.version DESC LIMIT 1), -1)"
)
"""The condition that a version is after the newest settled one, which is searched from the newest downwards: the cost
does not grow with the history.
"""
UNSETTLED = Sql(f"{_OF} AND settled <> :yes AND {_AFTER_SETTLED} ORDER BY version")
STAGED = Sql("SELECT staged FROM lance_version WHERE node_id = :id AND settled <> :yes AND staged <> ''")
BRANCHES = Sql("SELECT DISTINCT branch FROM lance_version WHERE node_id = :id ORDER BY branch")
INSERT = Sql(
    f"INSERT INTO lance_version (node_id, {_COLUMNS}) VALUES (:id, :branch, :version, :scheme, :staged, :size, :e_tag,"
    " :metadata, :created_at, :settled) ON CONFLICT DO NOTHING"
)
SETTLE = Sql(
    "UPDATE lance_version SET settled = :yes WHERE node_id = :id AND branch = :branch AND version <= :version AND"
    f" settled <> :yes AND {_AFTER_SETTLED}"
)
DELETE = Sql(
    "DELETE FROM lance_version WHERE node_id = :id AND branch = :branch AND version >= :start AND version < :end"
)
DELETE_BRANCH = Sql("DELETE FROM lance_version WHERE node_id = :id AND branch = :branch")
DELETE_ALL = Sql("DELETE FROM lance_version WHERE node_id = :id")
SWEEP = Sql(
    "DELETE FROM lance_version WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = lance_version.node_id AND n.deleted"
    f" = 0) AND NOT {KEPT.format('lance_version.node_id')}"
)
END = 1 << 62
"""A number above every version."""


def version_of(row: Row) -> LanceVersion:
    """Build a Lance version from a row whose columns are `_COLUMNS`."""
    return LanceVersion(
        branch=row[0],
        version=row[1],
        scheme=row[2],
        staged=row[3],
        size=row[4],
        e_tag=row[5],
        metadata=row[6],
        created_at=row[7],
        settled=bool(row[8]),
    )


def lance_versions_read(
    node_id: int, branch: str, *, after: int | None, descending: bool, limit: int
) -> Load[list[LanceVersion]]:
    """Read versions of a branch in order, beginning after the version `after`."""
    start = after if after is not None else END if descending else -1
    params: dict[str, Value] = {"id": node_id, "branch": branch, "after": start, "limit": limit}
    rows = yield (DOWNWARDS if descending else UPWARDS), params
    return [version_of(row) for row in rows]


def lance_version_read(node_id: int, branch: str, *, version: int) -> Load[LanceVersion | None]:
    """Read a version of a branch by its number; None if it does not exist."""
    rows = yield ONE, {"id": node_id, "branch": branch, "version": version}
    return version_of(rows[0]) if rows else None


def lance_top_read(node_id: int, branch: str) -> Load[LanceVersion | None]:
    """Read the newest version of a branch, or None."""
    rows = yield TOP, {"id": node_id, "branch": branch}
    return version_of(rows[0]) if rows else None


def lance_unsettled_read(node_id: int, branch: str) -> Load[list[LanceVersion]]:
    """Read the versions of a branch whose manifests may not have their final names yet."""
    rows = yield UNSETTLED, {"id": node_id, "branch": branch, "yes": True}
    return [version_of(row) for row in rows]


def lance_branches_read(node_id: int) -> Load[list[str]]:
    """Read the names of the branches with versions; "" is the main branch."""
    rows = yield BRANCHES, {"id": node_id}
    return [row[0] for row in rows]


class LanceVersionWrites(Writes):
    """Reads and writes of managed versions inside a transaction. None of them adds a change row: the mutation writes
    the change row of the table.
    """

    def top(self, node_id: int, branch: str) -> LanceVersion | None:
        """Read the newest version of a branch inside the transaction, or None."""
        return self._one(self.tx.rows(TOP, {"id": node_id, "branch": branch}))

    def find(self, node_id: int, branch: str, *, version: int) -> LanceVersion | None:
        """Read one version of a branch inside the transaction; None if it does not exist."""
        return self._one(self.tx.rows(ONE, {"id": node_id, "branch": branch, "version": version}))

    def _one(self, rows: list[Row]) -> LanceVersion | None:
        return version_of(rows[0]) if rows else None

    def read_staged_names(self, node_id: int) -> list[str]:
        """Read the staged names of all versions, of any branch, whose manifests may not have their final names yet."""
        return [row[0] for row in self.tx.rows(STAGED, {"id": node_id, "yes": True})]

    def create(self, node_id: int, version: LanceVersion) -> bool:
        """Insert a version. Returns False if the branch already has a version with this number."""
        return self.tx.count(INSERT, self._params(node_id, version)) > 0

    def create_all(self, node_id: int, versions: Sequence[LanceVersion]) -> None:
        """Insert the initial versions of a table."""
        if versions:
            self.tx.session.many(INSERT, [self._params(node_id, each) for each in versions])

    def settle(self, node_id: int, branch: str, *, version: int) -> None:
        """Record that the manifests up to a version have their final names."""
        self.tx.count(SETTLE, {"id": node_id, "branch": branch, "version": version, "yes": True})

    def delete(self, node_id: int, branch: str, *, start: int, end: int) -> int:
        """Delete the versions from `start` (inclusive) to `end` (exclusive). Returns the number of deleted versions."""
        return self.tx.count(DELETE, {"id": node_id, "branch": branch, "start": start, "end": end})

    def delete_branch(self, node_id: int, branch: str) -> int:
        """Delete all versions of a branch. Returns the number of deleted versions."""
        return self.tx.count(DELETE_BRANCH, {"id": node_id, "branch": branch})

    def delete_all(self, node_id: int) -> None:
        """Delete the rows of all versions of a table, but none of its files."""
        self.tx.count(DELETE_ALL, {"id": node_id})

    @staticmethod
    def _params(node_id: int, version: LanceVersion) -> dict[str, Value]:
        return {
            "id": node_id,
            "branch": version.branch,
            "version": version.version,
            "scheme": version.scheme,
            "staged": version.staged,
            "size": version.size,
            "e_tag": version.e_tag,
            "metadata": version.metadata,
            "created_at": version.created_at,
            "settled": version.settled,
        }
