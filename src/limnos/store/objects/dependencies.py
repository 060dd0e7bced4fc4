# SPDX-License-Identifier: Apache-2.0
"""Dependencies of SQL++ objects on the objects that their definitions refer to, by the ids of dependent and used
object.

Must not know rights: no decision depends on a row. A row exists while the dependent object is live or in the trash. An
object may be dropped if no live object depends on it. Rows refer to ids, so renames and moves of objects change no row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from limnos.model.kinds import KINDS, Kind
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Row, Sql
from limnos.store.transaction import Writes

INSERT = Sql("INSERT INTO dependency (user_id, used_id) VALUES (:user, :used) ON CONFLICT DO NOTHING")
DELETE = Sql("DELETE FROM dependency WHERE user_id = :user")
_USES = (
    "SELECT u.kind, u.name, n.id, n.kind, n.name, n.parent_id FROM dependency d JOIN node u ON u.id = d.used_id AND"
    " u.deleted = 0 JOIN node n ON n.id = d.user_id AND n.deleted = 0 WHERE "
)
OF_ONE = Sql(f"{_USES} d.used_id = :used AND d.user_id <> :used ORDER BY n.id LIMIT 1")
FROM_OUTSIDE = Sql(f"{_USES} u.parent_id = :parent AND n.parent_id <> :parent ORDER BY n.id LIMIT 1")
UP = Sql("SELECT parent_id, kind, name FROM node WHERE id = :id")
SWEEP = Sql(
    "DELETE FROM dependency WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = dependency.user_id AND n.deleted = 0)"
    f" AND NOT {KEPT.format('dependency.user_id')}"
)


class ObjectDependency(NamedTuple):
    """A dependency of a live object: the kind and name of the used object, and the kind and path (below the catalog) of
    the dependent object.
    """

    used: tuple[Kind, str]
    user: tuple[Kind, tuple[str, ...]]


class DependencyWrites(Writes):
    """Reads and writes dependencies inside a transaction."""

    def replace(self, user_id: int, used: Iterable[int]) -> None:
        """Replace the objects that an object depends on."""
        self.tx.count(DELETE, {"user": user_id})
        self.add(user_id, used)

    def add(self, user_id: int, used: Iterable[int]) -> None:
        """Add objects that an object depends on."""
        for used_id in sorted(set(used) - {user_id}):
            self.tx.count(INSERT, {"user": user_id, "used": used_id})

    def user_of(self, used_id: int) -> ObjectDependency | None:
        """Return a live object that depends on an object, or None."""
        return self._use(self.tx.rows(OF_ONE, {"used": used_id}))

    def user_outside(self, parent_id: int) -> ObjectDependency | None:
        """Return a live object outside a namespace that depends on an object directly in it, or None."""
        return self._use(self.tx.rows(FROM_OUTSIDE, {"parent": parent_id}))

    def _use(self, rows: list[Row]) -> ObjectDependency | None:
        if not rows:
            return None
        kind, name, _, user_kind, user_name, parent_id = rows[0]
        path = [user_name]
        while parent_id:
            ((above, above_kind, above_name),) = self.tx.rows(UP, {"id": parent_id})
            if KINDS[above_kind] is not Kind.NAMESPACE:
                break
            path.append(above_name)
            parent_id = above
        return ObjectDependency((KINDS[kind], name), (KINDS[user_kind], tuple(reversed(path))))
