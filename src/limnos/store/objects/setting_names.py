# SPDX-License-Identifier: Apache-2.0
"""Names of metalakes in settings: the name under which lists of metalakes in settings know each metalake.

Must not know settings. A metalake gets the name that it is created with, and keeps it when it is renamed. A name has
one metalake at a time: a metalake that is created under the name of another one gets none.
"""

from __future__ import annotations

from limnos.model.kinds import ROOT_ID, Kind
from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import Writes

_LIVE = "EXISTS (SELECT 1 FROM node n WHERE n.id = s.metalake_id AND n.deleted = 0)"
NAMES = Sql(
    "SELECT s.name, n.id, n.name FROM setting_name s JOIN node n ON n.id = s.metalake_id AND n.deleted = 0"
    " WHERE s.name <> '' ORDER BY s.name"
)
OF_METALAKE = Sql("SELECT name FROM setting_name WHERE metalake_id = :id")
HOLDER = Sql(f"SELECT s.metalake_id FROM setting_name s WHERE s.name = :name AND {_LIVE}")
INSERT = Sql("INSERT INTO setting_name (metalake_id, name) VALUES (:id, :name) ON CONFLICT DO NOTHING")
UNNAMED = Sql(
    "SELECT n.id, n.name FROM node n WHERE n.parent_id = :root AND n.kind = :kind AND n.name_space = 'metalake'"
    " AND n.deleted = 0 AND NOT EXISTS (SELECT 1 FROM setting_name s WHERE s.metalake_id = n.id) ORDER BY n.id"
)


def setting_names_read() -> Load[dict[str, tuple[int, str]]]:
    """Read the names in settings, each with the metalake's id and its current name."""
    return {row[0]: (row[1], row[2]) for row in (yield NAMES, {})}


def setting_name_read(metalake_id: int) -> Load[str]:
    """Read the name under which settings know a metalake; "" if it has none."""
    rows = yield OF_METALAKE, {"id": metalake_id}
    return str(rows[0][0]) if rows else ""


class SettingNameWrites(Writes):
    """Gives names to metalakes inside a transaction."""

    def assign(self, metalake_id: int, name: str) -> None:
        """Give a new metalake its name in settings; none if another live metalake has the name."""
        params: Params = {"id": metalake_id, "name": "" if self.tx.rows(HOLDER, {"name": name}) else name}
        self.tx.count(INSERT, params)

    def may_take(self, metalake_id: int, name: str, *, default: str) -> bool:
        """Return whether a metalake may be renamed to a name: it is not the name in settings of another live metalake,
        and not `default`, the metalake for requests without one, unless that is its own name in settings.
        """
        rows = self.tx.rows(HOLDER, {"name": name})
        return rows[0][0] == metalake_id if rows else name != default

    def assign_missing(self) -> None:
        """Give the metalakes of earlier releases, which have no name in settings, their current one."""
        for metalake_id, name in self.tx.rows(UNNAMED, {"root": ROOT_ID, "kind": int(Kind.METALAKE)}):
            self.assign(metalake_id, name)
