# SPDX-License-Identifier: Apache-2.0
"""Statements that an engine cannot end: other users' statements in the same engine get their results."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from msgspec import structs

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.jobs import EngineJob
from tests.rooms.sqlpp.engine.conftest import Do
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

TYPE = "closed { id: bigint, v: bigint }"
LOOKUP = "select value t from {} as t where t.id = 1"
SCAN = "select value count(*) from {} as t where t.v > 0"
LONG = "select value count(*) from {0} as a, {0} as b, {0} as c, {0} as d where a.v + b.v + c.v + d.v < 0"


def made(asking: EngineDataverse, do: Do, name: str, *, count: int = 1) -> Path:
    """Make a dataset of some objects. Returns its data file."""
    asking.make(name, TYPE, "id")
    do(asking.insert(name, f"(select value {{'id': i, 'v': i}} from range(1, {count}) as i)"))
    (task,) = asking.table(name).scan().plan_files()
    return Path(urlsplit(task.file.file_path).path)


def silent(file: Path) -> None:
    """Replace a file by a pipe without a writer, which no reader opens until there is one."""
    file.unlink()
    os.mkfifo(file)


async def run(asking: EngineDataverse, job: EngineJob, *, user: str) -> list[object] | SqlppError:
    """Return the results of a user's job, or its error."""
    try:
        return await asking.run(structs.replace(job, user=user))
    except SqlppError as error:
        return error


def test_stuck_statement_ends_no_other_statement(asking: EngineDataverse, do: Do) -> None:
    """Two statements over a file that does not answer end at their deadlines. A statement of another user in the same
    engine runs on, the next one gets another engine, and the first engine ends after its last statement.
    """
    file = made(asking, do, "silent")
    made(asking, do, "other", count=2_000)
    process = asking.engine._process
    assert process is not None

    async def story() -> None:
        stuck = asking.job(LOOKUP.format("silent"), deadline_s=4)
        again = asking.job(LOOKUP.format("silent"), deadline_s=4)
        long = asking.job(LONG.format("other"), deadline_s=600)
        silent(file)
        running = asyncio.create_task(run(asking, long, user="ben"))
        errors = await asyncio.gather(run(asking, stuck, user="ann"), run(asking, again, user="ann"))
        async with asyncio.timeout(60):
            while asking.engine._process is process:  # noqa: ASYNC110 - the engine has no event for it
                await asyncio.sleep(0.2)
        small = await run(asking, asking.job("select value o.v from other as o where o.id = 7"), user="ben")

        assert ["ASX0030" in str(error) for error in errors] == [True, True]
        assert small == [7]
        assert not running.done()
        await asking.engine.cancel(long.id)
        assert "ASX0041" in str(await running)

    do(story())

    until = time.monotonic() + 30
    while psutil.pid_exists(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not psutil.pid_exists(process.pid)
    with suppress(FileNotFoundError):
        file.unlink()


async def unanswered_reader(file: Path) -> int:
    """Replace a file by a pipe, and wait until somebody reads it. Returns the pipe's other end, which sends nothing."""
    silent(file)
    async with asyncio.timeout(120):
        while True:
            with suppress(OSError):  # nobody has opened it
                return os.open(file, os.O_WRONLY | os.O_NONBLOCK)
            await asyncio.sleep(0.1)


def test_task_that_ignores_its_interrupt_keeps_its_slot(asking: EngineDataverse, do: Do) -> None:
    """A Spark task that reads a file which does not answer runs on after its statement was cancelled. The statement
    counts for its user, and the engine is replaced behind another user's statement.
    """
    file = made(asking, do, "mute", count=10)
    made(asking, do, "beside", count=2_000)

    async def story() -> None:
        assert await run(asking, asking.job(SCAN.format("beside")), user="ben") == [2_000]
        process, long = asking.engine._process, asking.job(LONG.format("beside"), deadline_s=600)
        assert process is not None
        running = asyncio.create_task(run(asking, long, user="ben"))
        stuck = asking.job(SCAN.format("mute"))
        scan = asyncio.create_task(run(asking, stuck, user="ann"))
        pipe = await unanswered_reader(file)
        await asking.engine.cancel(stuck.id)
        assert "ASX0041" in str(await scan)

        assert asking.engine._process is None
        assert asking.engine._turns._held["user", "ann"] == 1
        assert await run(asking, asking.job(SCAN.format("beside")), user="ben") == [2_000]
        assert not running.done()
        await asking.engine.cancel(long.id)
        assert "ASX0041" in str(await running)
        async with asyncio.timeout(30):
            while psutil.pid_exists(process.pid):  # noqa: ASYNC110 - the engine has no event for it
                await asyncio.sleep(0.1)
        assert asking.engine._turns._held["user", "ann"] == 0
        os.close(pipe)

    do(story())
    with suppress(FileNotFoundError):
        file.unlink()
