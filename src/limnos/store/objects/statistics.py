# SPDX-License-Identifier: Apache-2.0
"""Custom statistics of tables, partitions and columns.

Must not know the meaning of statistics. Rows are keyed by the table's node, a partition's name ("" for the table) or a
column's field id, and the statistic's name. They are retained while their table is in the trash. No decision and no
cache depends on a statistic, so writes leave no change row.
"""

from __future__ import annotations

from collections.abc import Iterable

from limnos.model.statistics import PartitionRange, Statistic
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import Writes

_COLUMNS = "partition_name, name, value, created_by, created_at, modified_by, modified_at"
OWN = Sql(f"SELECT {_COLUMNS} FROM statistic WHERE object_id = :id AND partition_name = '' ORDER BY name")
WITHIN = Sql(
    f"SELECT {_COLUMNS} FROM statistic WHERE object_id = :id AND partition_name <> ''"
    " AND (partition_name > :above OR (partition_name = :above AND :above_too = 1))"
    " AND (:is_open = 1 OR partition_name < :below OR (partition_name = :below AND :below_too = 1))"
    " ORDER BY partition_name, name LIMIT :limit"
)
PUT = Sql(
    "INSERT INTO statistic (object_id, partition_name, name, value, created_by, created_at) VALUES"
    " (:id, :partition, :name, :value, :actor, :now) ON CONFLICT (object_id, partition_name, name) DO UPDATE SET"
    " value = :value, modified_by = :actor, modified_at = :now"
)
DELETE = Sql("DELETE FROM statistic WHERE object_id = :id AND partition_name = :partition AND name = :name")
OF_COLUMN = Sql(
    "SELECT '', name, value, created_by, created_at, modified_by, modified_at FROM column_statistic"
    " WHERE object_id = :id AND field_id = :field ORDER BY name"
)
PUT_OF_COLUMN = Sql(
    "INSERT INTO column_statistic (object_id, field_id, name, value, created_by, created_at) VALUES"
    " (:id, :field, :name, :value, :actor, :now) ON CONFLICT (object_id, field_id, name) DO UPDATE SET"
    " value = :value, modified_by = :actor, modified_at = :now"
)
DELETE_OF_COLUMN = Sql("DELETE FROM column_statistic WHERE object_id = :id AND field_id = :field AND name = :name")
SWEEPS = tuple(
    Sql(
        f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {table}.object_id AND n.deleted = 0)"
        f" AND NOT {KEPT.format(f'{table}.object_id')}"
    )
    for table in ("statistic", "column_statistic")
)


def statistics_read(table_id: int, *, field_id: int = 0) -> Load[list[Statistic]]:
    """Read a table's own statistics, or those of a column, by name."""
    rows = yield (OF_COLUMN, {"id": table_id, "field": field_id}) if field_id else (OWN, {"id": table_id})
    return [Statistic(*row) for row in rows]


def partition_statistics_read(table_id: int, within: PartitionRange, *, limit: int) -> Load[list[Statistic]]:
    """Read up to `limit` statistics of a range of partitions, by partition and name."""
    rows = yield (
        WITHIN,
        {
            "id": table_id,
            "above": within.above or "",
            "below": within.below or "",
            "is_open": int(within.below is None),
            "above_too": int(within.above_too),
            "below_too": int(within.below_too),
            "limit": limit,
        },
    )
    return [Statistic(*row) for row in rows]


class StatisticWrites(Writes):
    """Writes statistics inside a transaction."""

    def put(self, table_id: int, values: Iterable[tuple[str, str, str]], *, field_id: int = 0) -> None:
        """Write statistics: (partition, name, value as JSON). For a column the partition is ignored."""
        for partition, name, value in values:
            row: Params = {"id": table_id, "name": name, "value": value, "actor": self.tx.actor, "now": self.tx.now_ms}
            if field_id:
                self.tx.count(PUT_OF_COLUMN, {**row, "field": field_id})
            else:
                self.tx.count(PUT, {**row, "partition": partition})

    def delete(self, table_id: int, names: Iterable[tuple[str, str]], *, field_id: int = 0) -> int:
        """Delete statistics by (partition, name).

        For a column the partition is ignored. Returns the number of deleted statistics.
        """
        if field_id:
            key: Params = {"id": table_id, "field": field_id}
            return sum(self.tx.count(DELETE_OF_COLUMN, {**key, "name": name}) for _, name in names)
        return sum(
            self.tx.count(DELETE, {"id": table_id, "partition": partition, "name": name}) for partition, name in names
        )
