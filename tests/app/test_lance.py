"""The processes that read Lance tables: started when asked, ended when they take too much, told apart from the server's own failures."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import lance
import msgspec
import pyarrow as pa
import pytest

from limnos.app.lance import lance_processes
from limnos.app.lance_processes import LanceProcesses
from limnos.config.settings import Lance
from limnos.model.errors import NotFound, TooLarge
from limnos.services.lance_work import Errand, options_of
from limnos.sources.lance.questions import Describe, Described

T = TypeVar("T")


@pytest.fixture
def location(tmp_path: Path) -> str:
    """A table of two columns."""
    place = f"file://{tmp_path}/t"
    lance.write_dataset(pa.table({"id": [1], "name": ["a"]}), place)
    return place


def run(story: Callable[[LanceProcesses], Awaitable[T]], **settings: int) -> T:
    """Run a story with processes, and leave none."""

    async def whole() -> T:
        processes = lance_processes(Lance(**settings))
        try:
            return await story(processes)
        finally:
            processes.close()

    return asyncio.run(whole())


async def described(processes: LanceProcesses, location: str, version: int | None = None) -> Described | None:
    """Have a table described."""
    told = await processes.ask(Errand(Describe(location, {}, version), caller="ana"))
    return msgspec.json.decode(told, type=Described | None)


def test_a_process_describes_a_table(location: str) -> None:
    """Version, columns and counts come from a process; where nothing was written there is no answer."""

    async def story(processes: LanceProcesses) -> tuple[object, object]:
        return await described(processes, location), await described(processes, f"{location}x")

    found, nothing = run(story)

    assert (found.version, found.stats["num_fragments"], nothing) == (1, 1, None)  # type: ignore[attr-defined]


def test_what_is_missing_keeps_its_kind(location: str) -> None:
    """A version that is not there is told as that, across the process's border."""
    with pytest.raises(NotFound) as caught:
        run(lambda processes: described(processes, location, 9))

    assert (caught.value.kind, caught.value.message) == ("version", "9")


def test_a_process_that_grows_too_large_is_ended(location: str) -> None:
    """One that has more memory than it may is ended, and whoever asked hears it; nobody waits for it."""
    with pytest.raises(TooLarge, match="more memory"):
        run(lambda processes: described(processes, location), worker_bytes_max=1)


def test_a_dead_process_is_replaced(location: str) -> None:
    """A process that died while it was idle is replaced without a word."""

    async def story(processes: LanceProcesses) -> int:
        await described(processes, location)
        (pid,) = processes.pids()
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        found = await described(processes, location)
        return 0 if found is None else found.version

    assert run(story) == 1


def test_options_for_an_object_store() -> None:
    """A catalog's properties are told to Lance under its own names."""
    told = options_of(
        {
            "s3.endpoint": "http://minio:9000",
            "s3.access-key-id": "k",
            "warehouse": "s3://b",
            "s3.path-style-access": "true",
        }
    )

    assert told == {"aws_endpoint": "http://minio:9000", "aws_access_key_id": "k", "allow_http": "true"}
