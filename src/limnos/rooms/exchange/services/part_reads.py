# SPDX-License-Identifier: Apache-2.0
"""Reads of one part of a system table from a snapshot, page by page in the order of a key.

Must not know rights, or what the rows are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from json import dumps
from typing import Final, NamedTuple

from limnos.formats.system_tables import RowRequest
from limnos.rooms.exchange.services.table_access import TableAccess
from limnos.store.sql import Row, Sql, Value

ROWS_AT_ONCE: Final = 1_000


class IdRange(NamedTuple):
    """A range of ids, both inclusive."""

    first: int
    last: int


class PartReads:
    """The reads of one request: the range of ids of its part, narrowed by its conditions, in pages."""

    def __init__(self, access: TableAccess, request: RowRequest, *, part: IdRange) -> None:
        self._held = access.snapshot
        self.range = IdRange(*request.id_range(*part))
        self._params: dict[str, Value] = {
            "metalake": access.snapshot.metalake_id,
            "after": self.range.first - 1,
            "last": self.range.last,
            "limit": ROWS_AT_ONCE,
            "zones": dumps(sorted(access.catalogs.zones)),
        }

    async def by_id(self, statement: Sql) -> AsyncGenerator[list[Row], None]:
        """Yield the pages of a statement with one row for each id, which is the first column."""
        after = self.range.first - 1
        while after < self.range.last:
            rows = await self._held.rows((statement, {**self._params, "after": after}))
            yield rows
            if len(rows) < ROWS_AT_ONCE:
                return
            after = rows[-1][0]

    async def by_key(self, statement: Sql, rest: Mapping[str, Value]) -> AsyncGenerator[list[Row], None]:
        """Yield the pages of a statement whose first columns are its key: an id of the range, the parameter `key`, and
        the parameters of `rest`, with values that are smaller than all others.
        """
        key: dict[str, Value] = {"key": self.range.first, **rest}
        while True:
            rows = await self._held.rows((statement, {**self._params, **key}))
            yield rows
            if len(rows) < ROWS_AT_ONCE:
                return
            key = dict(zip(key, rows[-1], strict=False))
