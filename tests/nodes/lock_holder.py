# SPDX-License-Identifier: Apache-2.0
"""A node process that takes a lock, reports it, and writes under it on request: `lock_holder.py DATABASE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from limnos.model.errors import LockLost
from limnos.model.permits import upkeep_permit
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.rooms.sqlpp.services.locks.statement_locks import StatementLocks
from limnos.store.backends.postgres import PostgresStore
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.tx import Tx
from limnos.view.freshness_gate import InlineFreshnessGate, SharedFreshnessGate
from limnos.view.view import StoreView

LEASE_MS = 1_500
WISH = LockRequest(
    LockKey(7, LockKind.DATASET, DataverseName.create(("sales", "east")), "orders"), LockMode.EXCLUSIVE_MODIFY
)


def open_locks(database: str) -> StatementLocks:
    """Open the statement locks of a node on a database, given by its address or path."""
    view = StoreView(bytes_max=1 << 20)
    if "://" in database:
        store = PostgresStore(database)
        return StatementLocks(SharedFreshnessGate(view, store, cold_reads_max=4), store, lease_ms=LEASE_MS)
    file = SqliteStore(Path(database))
    return StatementLocks(InlineFreshnessGate(view, file), file, lease_ms=LEASE_MS)


async def write(locks: StatementLocks, token: int) -> str:
    """Write a row under a lock. Returns the outcome."""

    def mutation(tx: Tx) -> None:
        tx.tasks.create("written", str(token))
        tx.locks.require(token, WISH)

    try:
        await locks.store.submit(upkeep_permit("tester"), mutation)
    except LockLost:
        return "lost"
    return "written"


async def _main(database: str) -> None:
    locks = open_locks(database)
    lock = await locks.acquire([WISH], 60)
    print(lock.token, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(await write(locks, lock.token), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
