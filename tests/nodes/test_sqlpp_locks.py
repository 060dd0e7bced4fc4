# SPDX-License-Identifier: Apache-2.0
"""A process that holds a statement lock is killed, or suspended and resumed: the next process gets the lock, and only
that one writes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.backends import Database, StoreLab
from tests.nodes import lock_holder
from tests.nodes.lock_holder import WISH, open_locks, write

ROOT = Path(__file__).parents[2]
LONG_S = 60.0


@contextmanager
def other_node(database: Database) -> Iterator[subprocess.Popen[str]]:
    """Start a node in its own process."""
    command = [sys.executable, "-m", lock_holder.__name__, database.address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def told_to_write(process: subprocess.Popen[str]) -> str:
    """Return the report of the process after it was asked to write under its lock."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return read_line(process)


async def _take(address: str) -> tuple[int, str]:
    """Wait for the lock, write under it, and release it."""
    locks = open_locks(address)
    try:
        async with locks.hold([WISH], LONG_S) as lock:
            return lock.token, await write(locks, lock.token)
    finally:
        await locks.close()
        await locks.store.close()


def test_lock_of_killed_node_is_free_after_its_lease(lab: StoreLab) -> None:
    """When the lease of a killed node expires, its lock is free, the waiting process writes, and no row of the killed
    node remains.
    """
    with other_node(lab.database) as process:
        token = int(read_line(process))
        process.kill()

        then, outcome = asyncio.run(_take(lab.database.address))

    assert then > token
    assert outcome == "written"
    assert lab.database.sql("SELECT payload FROM task") == [(str(then),)]
    assert lab.database.sql("SELECT count(*) FROM sqlpp_lock") == [(0,)]


def test_node_suspended_past_its_lease_writes_nothing(lab: StoreLab) -> None:
    """A process writes while it has the lock. If it is suspended past its lease and resumed, it writes nothing, and
    only the row of the other process exists.
    """
    with other_node(lab.database) as process:
        token = int(read_line(process))
        before = told_to_write(process)
        os.kill(process.pid, signal.SIGSTOP)
        then, outcome = asyncio.run(_take(lab.database.address))
        os.kill(process.pid, signal.SIGCONT)
        after = told_to_write(process)

    assert (before, outcome, after) == ("written", "written", "lost")
    assert [row[0] for row in lab.database.sql("SELECT payload FROM task ORDER BY id")] == [str(token), str(then)]
