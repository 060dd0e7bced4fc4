# SPDX-License-Identifier: Apache-2.0
"""Holders of leases: their names, and the end of the leases of holders whose process has ended.

Must not know how a process ends. Without this, a lease of a killed node ends after its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.model.entities import RUNNING
from limnos.model.jobs import HELD
from limnos.store.sql import Load, Sql
from limnos.store.transaction import StoreTransaction


class LeaseColumn(NamedTuple):
    """The column of a table that ends a lease when it is 0. `where` selects rows whose lease counts."""

    table: str
    column: str
    where: str = "1 = 1"

    @property
    def is_held(self) -> str:
        """The condition in SQL for rows with a lease, which may have expired."""
        return f"{self.column} > 0 AND {self.where}"


LEASES: Final = (
    LeaseColumn("task", "leased_until", "holder IS NOT NULL"),
    LeaseColumn("webhook", "leased_until"),
    LeaseColumn("search_lease", "leased_until"),
    LeaseColumn("sqlpp_lock_node", "leased_until"),
    LeaseColumn("sqlpp_request", "alive_until", f"state = '{RUNNING}'"),
    LeaseColumn("template_job", "beat_at", f"state IN ({', '.join(repr(each) for each in HELD)})"),
)
HOLDERS = Sql(" UNION ".join(f"SELECT holder FROM {each.table} WHERE {each.is_held}" for each in LEASES))
ENDS: Final = tuple(
    Sql(f"UPDATE {each.table} SET {each.column} = 0 WHERE holder = :holder AND {each.is_held}") for each in LEASES
)


def holders_read() -> Load[list[str]]:
    """Read the names of all holders of leases."""
    return [row[0] for row in (yield HOLDERS, {})]


def leases_end(tx: StoreTransaction, holders: Sequence[str]) -> int:
    """End the leases of some holders. Returns the number of leases."""
    return sum(tx.count(each, {"holder": holder}) for holder in holders for each in ENDS)
