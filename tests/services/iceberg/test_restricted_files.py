# SPDX-License-Identifier: Apache-2.0
"""Deletion of restricted files that no scan plan needs, in every catalog; other files are not touched."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import cast

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.iceberg import restricted_files
from limnos.services.iceberg.restricted_files import PERIOD_MS, restricted_prune
from limnos.services.request.catalog_storage import RESTRICTED_READS_DIRECTORY
from limnos.services.request.task_context import TaskContext
from limnos.store.objects.restricted_reads import ENDED_AT_ONCE
from limnos.store.tx import Tx

BINDING = "0123456789abcdef0123456789abcdef"
OURS = f"t7-{BINDING}/0123456789abcdef"
OTHER = f"t7-{BINDING}/fedcba9876543210"
EARLIER = "t8-0123456789ab-0123456789abcdef"


class Rows:
    """A fake of the rows that name directories of restricted files: current ones and newly ended ones."""

    def __init__(self, known: set[str]) -> None:
        self.known_rows = known
        self.homes: list[str] = []
        self.full_parts = 0

    def end(self, home: str) -> list[str]:
        """Delete ended rows: several full batches, then an empty one."""
        self.homes.append(home)
        return [OURS] * ENDED_AT_ONCE if len(self.homes) <= self.full_parts else []

    def read_known(self) -> set[str]:
        """Return the directories that scan plans need."""
        return self.known_rows


class Tasks:
    """A fake task context with catalogs at given locations and given rows."""

    def __init__(self, homes: list[str], *, known: set[str]) -> None:
        self.homes = [(home, {}) for home in homes]
        self.restricted_reads = Rows(known)

    async def submit(self, mutation: object) -> object:
        """Run the task's mutation."""
        call = cast("restricted_files.partial[object]", mutation)
        return self.homes if call.func is restricted_files._warehouses else call(cast("Tx", self))

    async def run_in_thread(self, call: object) -> object:
        """Run the task's call in this thread."""
        return cast("restricted_files.partial[object]", call)(lambda _: None)


def make(root: Path, *names: str) -> list[Path]:
    """Write a file into each directory below the reserved location."""
    files = [root / RESTRICTED_READS_DIRECTORY / name / "f.parquet" for name in names]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
    return files


def prune(tasks: Tasks, *, now_ms: int = 11 * PERIOD_MS + 5) -> int:
    """Run the task."""
    return asyncio.run(restricted_prune(cast("TaskContext", tasks), now_ms=now_ms))


def test_directories_without_a_plan_are_deleted(tmp_path: Path) -> None:
    """Directories without a row, and those of earlier releases, are deleted; directories with other names are not
    touched.
    """
    files = make(tmp_path, OURS, OTHER, EARLIER, "8", "9", "10", "11", "notes", "t9", f"t7-{BINDING}/notes")
    beside = tmp_path / "table" / "data.parquet"
    beside.parent.mkdir()
    beside.write_bytes(b"x")
    home = f"file://{tmp_path}"

    deleted_count = prune(Tasks([home], known={f"{home}/{RESTRICTED_READS_DIRECTORY}/{OTHER}"}))

    assert deleted_count == 4
    assert [file.exists() for file in files] == [False, True, False, False, False, True, True, True, True, True]
    assert beside.exists()
    assert prune(Tasks([home], known={f"{home}/{RESTRICTED_READS_DIRECTORY}/{OTHER}"})) == 0


def test_unreachable_warehouse_does_not_block_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable warehouse is skipped in this round, and the task continues with the following ones."""
    away, reachable = tmp_path / "away", tmp_path / "there"
    files = [*make(away, OURS), *make(reachable, OURS)]
    store_for = restricted_files.store_for

    def refuse(location: str, properties: dict[str, str]) -> object:
        if location.endswith("/away"):
            raise ServiceUnavailable("it does not answer")
        return store_for(location, properties)

    monkeypatch.setattr(restricted_files, "store_for", refuse)

    assert prune(Tasks([f"file://{away}", f"file://{reachable}"], known=set())) == 1
    assert [file.exists() for file in files] == [True, False]


def test_directory_created_during_the_task_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is created while the task runs is not deleted, because the task reads the rows after it has
    listed the directories.
    """
    home, tasks = f"file://{tmp_path}", Tasks([], known=set())
    tasks.homes = [(home, {})]
    created_files: list[Path] = []
    known = tasks.restricted_reads.read_known

    def read() -> set[str]:
        known_directories = set(known())
        created_files.extend(make(tmp_path, OURS))  # created after the listing; its row was read
        return known_directories

    monkeypatch.setattr(tasks.restricted_reads, "read_known", read)

    assert prune(tasks) == 0
    assert created_files[0].exists()
    shutil.rmtree(tmp_path / RESTRICTED_READS_DIRECTORY)


def test_rows_of_ended_plans_are_deleted_in_batches(tmp_path: Path) -> None:
    """Rows are deleted in batches of limited size until a batch is not full."""
    home = f"file://{tmp_path}"
    make(tmp_path, OURS)
    tasks = Tasks([home], known=set())
    tasks.restricted_reads.full_parts = 2

    assert prune(tasks) == 1
    assert tasks.restricted_reads.homes == [home] * 3
