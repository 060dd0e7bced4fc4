# SPDX-License-Identifier: Apache-2.0
"""Reads of an SQLite file beside the event loop, for statements that take longer than a few milliseconds.

One connection in a thread of its own; reads wait for each other, so they use one core at most. The connection opens
with the first read. Each step of a statement needs Python's lock again, for which a busy event loop lets a thread wait
5 ms: so all rows come in one step, as a JSON text.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from limnos.model.errors import ServiceUnavailable
from limnos.store.backends.mutation_queue import BlockingThread
from limnos.store.backends.sqlite_errors import FAILURES, raise_read_error
from limnos.store.sql import Load, Params, Row, Sql, drive_load

T = TypeVar("T")
INTERRUPT_EVERY_S: Final = 0.05
_CLOSED: Final = "The server stops: try again"
_rows: Final = msgspec.json.Decoder(list[tuple[Any, ...]])


class SqliteAside:
    """A connection for long reads, used in a thread. The event loop is the only caller."""

    def __init__(self, path: Path, connect: Callable[[Path], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._thread: BlockingThread | None = None
        self._texts: dict[Sql, str] = {}
        self._is_closed = False

    async def read(self, load: Callable[[], Load[T]]) -> tuple[T, int]:
        """Read values in one snapshot, without columns of bytes. Returns them and the number of statements.

        Raises ServiceUnavailable once the store closes: its thread would never take the call.
        """
        if self._is_closed:
            raise ServiceUnavailable(_CLOSED)
        if self._thread is None:
            self._thread = BlockingThread("limnos-read")
        results: list[tuple[T, int]] = []
        await self._thread.run(lambda: results.append(self._read(load)))
        return results[0]

    def _read(self, load: Callable[[], Load[T]]) -> tuple[T, int]:
        count = 0

        def rows(statement: Sql, params: Params) -> list[Row]:
            nonlocal count
            count += 1
            if self._is_closed:
                raise ServiceUnavailable(_CLOSED)
            text = self._texts.get(statement)
            if text is None:
                text = self._texts[statement] = _read_in_one_row(connection, statement)
            return _rows.decode(connection.execute(text, statement.values(params)).fetchone()[0])

        try:
            if self._connection is None:
                self._connection = self._connect(self._path)
                self._connection.execute("PRAGMA query_only = ON")
            connection = self._connection
            connection.execute("BEGIN")
            try:
                return drive_load(load(), rows), count
            finally:
                with suppress(sqlite3.Error):  # after a failed read
                    connection.execute("ROLLBACK")
        except FAILURES as error:
            raise_read_error(error, self._path)

    async def close(self) -> None:
        """End the running read and those that wait, then close the connection."""
        self._is_closed = True
        if self._thread is None:
            return
        closing = asyncio.ensure_future(asyncio.to_thread(self._thread.close))
        while not closing.done():
            if self._connection is not None:
                self._connection.interrupt()  # ends a statement that runs, not one that is about to begin
            await asyncio.wait({closing}, timeout=INTERRUPT_EVERY_S)
        if self._connection is not None:
            self._connection.close()


def _read_in_one_row(connection: sqlite3.Connection, statement: Sql) -> str:
    """Return the text of a query that returns all rows of a statement as a JSON array of arrays, in their order."""
    nothing = connection.execute(f"SELECT * FROM ({statement.sqlite}) LIMIT 0", [None] * len(statement.order))
    names = [f"c{number}" for number in range(len(nothing.description))]
    columns = ", ".join(names)
    return f"WITH q({columns}) AS ({statement.sqlite}) SELECT json_group_array(json_array({columns})) FROM q"
