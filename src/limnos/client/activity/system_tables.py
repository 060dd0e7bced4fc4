# SPDX-License-Identifier: Apache-2.0
"""System tables (own API): the tree of a metalake as Arrow streams, whole or in parts at one revision.

Must not know Arrow, because the client has no such library: rows are the bytes of Arrow IPC streams.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from limnos.client.errors import ClientError
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import SystemTableInfo, SystemTableScan

ENDED: Final = "revision-ended"
"""The code of the refusal of a revision that can no longer be read."""
READS_MAX: Final = 5
"""The maximum number of times that a table is read from the start."""
Condition = tuple[str, str, int | str | bool]
"""A column, one of `=`, `<`, `<=`, `>`, `>=`, and a value."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def time_condition(column: str, sign: str, *, moment: datetime) -> Condition | None:
    """Return the condition that compares a column of times, which are in milliseconds, with a time of more digits; None
    for a time that no row has.
    """
    number, rest = divmod(moment - _EPOCH, _MILLISECOND)
    if rest and sign == "=":
        return None
    return column, sign, number + 1 if rest and sign in ("<", ">=") else number


class SystemTables(Resource[S]):
    """Calls that read the tree of the client's metalake as tables."""

    @verb
    def list(self) -> Flow[tuple[SystemTableInfo, ...]]:
        """List the system tables with their columns."""
        return call("GET", self.own_url("system-tables"), answer=tuple[SystemTableInfo, ...], field="tables")

    @verb
    def scan(self, table: str, *, parts: int = 8) -> Flow[SystemTableScan]:
        """Hold the current revision for a read of a table, and return it with the parts of the table."""
        return call("GET", self.own_url("system-tables", table), answer=SystemTableScan, query={"parts": str(parts)})

    @verb
    def read_part(
        self,
        table: str,
        *,
        revision: str,
        part: str,
        columns: Iterable[str] | None = None,
        where: Iterable[Condition] = (),
    ) -> Flow[bytes]:
        """Return the rows of a part of a scan as an Arrow IPC stream.

        Raises ClientError with the code `revision-ended` if the revision can no longer be read: scan the table again,
        and use no part of the former revision.
        """
        return self._rows(table, revision=revision, part=part, columns=columns, where=where)

    @verb
    def read(
        self,
        table: str,
        *,
        columns: Iterable[str] | None = None,
        where: Iterable[Condition] = (),
        parts: int = 1,
    ) -> Flow[tuple[bytes, ...]]:
        """Return all rows of a table as Arrow IPC streams, one for each part, all at one revision.

        Starts again if the revision ends meanwhile, at most `READS_MAX` times.
        """
        columns, where = None if columns is None else tuple(columns), tuple(where)
        for attempt in range(1, READS_MAX + 1):
            try:
                if parts == 1:
                    return ((yield from self._rows(table, revision=None, part=None, columns=columns, where=where)),)
                url = self.own_url("system-tables", table)
                scan = yield from call("GET", url, answer=SystemTableScan, query={"parts": str(parts)})
                streams = []
                for part in scan.parts:
                    rows = self._rows(table, revision=scan.revision, part=part, columns=columns, where=where)
                    streams.append((yield from rows))
                return tuple(streams)
            except ClientError as error:
                if error.code != ENDED or attempt == READS_MAX:
                    raise
        raise AssertionError("unreachable")

    def _rows(
        self,
        table: str,
        *,
        revision: str | None,
        part: str | None,
        columns: Iterable[str] | None,
        where: Iterable[Condition],
    ) -> Flow[bytes]:
        conditions = list(where)
        query = {
            "revision": revision,
            "part": part,
            "columns": None if columns is None else ",".join(columns),
            "where": msgspec.json.encode(conditions).decode() if conditions else None,
        }
        reply = yield request("GET", self.own_url("system-tables", table, "rows"), query=query)
        return reply.body
