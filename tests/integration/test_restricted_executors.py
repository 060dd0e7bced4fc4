# SPDX-License-Identifier: Apache-2.0
"""Files of restricted readers that executors of maintenance write: of a process on this machine, which starts no Spark,
and of one that is killed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ServiceUnavailableError

from limnos.app.node_builder import DATABASE_FILE
from limnos.client import Client
from tests.formats.restricting.model import Row, rows_made
from tests.integration.live import LiveServer, serving
from tests.integration.maintenance_executors import wait_for, working
from tests.integration.test_restricted_scans import SCHEMA, Shop

pytestmark = [pytest.mark.room("maintenance"), pytest.mark.integration]
FILES = 12
ROWS = 20


class ExecutedShop(Shop):
    """A table of several files, whose masked rows bob reads from files that executors write."""

    def __init__(self, server: LiveServer) -> None:
        super().__init__(server)
        self.server = server
        for number in range(2, FILES):
            rows = rows_made(self.dice, number * 60, ROWS)
            self.table.append(pa.Table.from_pylist(rows, schema=SCHEMA.as_arrow()))
            self.rows += rows
        self.restrict(None, {"card": "replace-with-null"})

    def expected(self) -> list[Row]:
        """Return the rows that bob sees, in the order of their ids."""
        return sorted([{**row, "card": None} for row in self.rows], key=lambda row: row["id"])

    def await_rows(self) -> list[Row]:
        """Return the rows that bob reads, in the order of their ids, as soon as all files are written."""
        return wait_for(self._rows_if_ready)  # type: ignore[no-any-return]

    def _rows_if_ready(self) -> list[Row]:
        with suppress(ServiceUnavailableError):
            return sorted(self.seen(), key=lambda row: row["id"])
        return []

    def server_rewrites(self) -> int:
        """Return the number of spans that processes of the server have written."""
        with urlopen(f"{self.server.uri}/metrics") as answer:
            text = answer.read().decode()
        counts = re.findall(r'^limnos_chores_total\{kind="restrict-file",outcome="done"} ([\d.]+)$', text, re.MULTILINE)
        return sum(int(float(each)) for each in counts)

    def close(self) -> None:
        """Close the clients."""
        for each in (self.http, self.owner, self.bob):
            each.close()

    def await_executor(self) -> None:
        """Wait until an executor has asked for operations."""
        with Client(self.server.uri, token=self.server.token) as admin:
            wait_for(lambda: admin.maintenance.status("main").executor_active)

    def operations(self) -> list[tuple[str, str]]:
        """Return kind and state of the operations."""
        with Client(self.server.uri, token=self.server.token) as admin:
            return [(each.kind, each.state) for each in admin.maintenance.status("main").operations]

    def files(self) -> list[Path]:
        """Return the files that were written for restricted readers."""
        return sorted(self.server.data.rglob("restricted-reads/**/*.parquet"))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ExecutedShop]:
    """The table, on a server that lets executors write more than two spans."""
    settings = {"LIMNOS__ACCESS__ENABLED": "true", "LIMNOS__PLANNING__EXECUTOR_SPANS": "2"}
    with serving(tmp_path / "data", env=settings) as server:
        shop = ExecutedShop(server)
        yield shop
        shop.close()


def test_masked_reader_gets_the_files_of_an_executor(shop: ExecutedShop) -> None:
    """PyIceberg shows a restricted user what a model expects, from files that an executor wrote; the server wrote
    none. The operation's own directory has them.
    """
    with working(shop.server, "--master", "local[2]", idle=60) as executor:
        shop.await_executor()
        rows = shop.await_rows()
        wait_for(lambda: ("restricted-files", "done") in shop.operations())
        executor.process.terminate()

    assert rows == shop.expected()
    assert shop.server_rewrites() == 0
    assert len(shop.files()) == FILES
    assert {re.sub(r"\d", "", each.parent.name) for each in shop.files()} == {"x"}


def test_killed_executor_is_replaced(shop: ExecutedShop) -> None:
    """If an executor is killed while it writes, another one writes the rest after the lease has expired. The server
    writes nothing, and the rows are those that the model expects.
    """
    with working(shop.server, "--master", "local[1]", idle=60) as first:
        shop.await_executor()
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(shop.await_rows)
            wait_for(shop.files, every_s=0.01)
            first.kill()
            _check_half(shop)
            with closing(sqlite3.connect(shop.server.data / DATABASE_FILE)) as store, store:  # simulates a minute
                assert store.execute("UPDATE maintenance_lease SET expires_at = 1").rowcount == 1
            with working(shop.server, "--master", "local[2]", idle=60) as second:
                rows = waiting.result()
                second.process.terminate()

    assert rows == shop.expected()
    assert shop.server_rewrites() == 0


def _check_half(shop: ExecutedShop) -> None:
    """Check that a part of the files is written, and the operation not done."""
    assert 0 < len(shop.files()) < FILES
    assert [state for _, state in shop.operations()] == ["running"]
