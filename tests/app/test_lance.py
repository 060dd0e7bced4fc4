"""The processes that read Lance tables: started when asked, ended when they take too much, told apart from the server's own failures."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import lance
import pyarrow as pa
import pytest

from limnos.app.lance import lance_reader
from limnos.config.settings import Lance
from limnos.model.errors import NotFound, TooLarge
from limnos.services.lance_reading import ProcessReader, options_of
from limnos.sources.lance.questions import Describe

T = TypeVar("T")


@pytest.fixture
def location(tmp_path: Path) -> str:
    """A table of two columns."""
    place = f"file://{tmp_path}/t"
    lance.write_dataset(pa.table({"id": [1], "name": ["a"]}), place)
    return place


def run(story: Callable[[ProcessReader], Awaitable[T]], **settings: int) -> T:
    """Run a story with a reader, and leave no process."""

    async def whole() -> T:
        reader = lance_reader(Lance(**settings))
        try:
            return await story(reader)
        finally:
            reader.close()

    return asyncio.run(whole())


def test_a_process_describes_a_table(location: str) -> None:
    """Version, columns and counts come from a process; where nothing was written there is no answer."""

    async def story(reader: ProcessReader) -> tuple[object, object]:
        return await reader.describe(Describe(location, {})), await reader.describe(Describe(f"{location}x", {}))

    found, nothing = run(story)

    assert (found.version, found.stats["num_fragments"], nothing) == (1, 1, None)  # type: ignore[attr-defined]


def test_what_is_missing_keeps_its_kind(location: str) -> None:
    """A version that is not there is told as that, across the process's border."""
    with pytest.raises(NotFound) as caught:
        run(lambda reader: reader.describe(Describe(location, {}, version=9)))

    assert (caught.value.kind, caught.value.message) == ("version", "9")


def test_a_process_that_grows_too_large_is_ended(location: str) -> None:
    """One that has more memory than it may is ended, and whoever asked hears it; nobody waits for it."""
    with pytest.raises(TooLarge, match="more memory"):
        run(lambda reader: reader.describe(Describe(location, {})), worker_bytes_max=1)


def test_a_dead_process_is_replaced(location: str) -> None:
    """A process that died while it was idle is replaced without a word."""

    async def story(reader: ProcessReader) -> int:
        await reader.describe(Describe(location, {}))
        (pid,) = reader._processes.pids()  # type: ignore[attr-defined]
        os.kill(pid, signal.SIGKILL)
        found = await reader.describe(Describe(location, {}))
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
