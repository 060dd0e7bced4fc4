# SPDX-License-Identifier: Apache-2.0
"""A server-managed Lance table on two nodes: many writers, a node that is killed and restarted, and a writer that
bypasses the nodes.

A manifest here is a list of rows as text: the rows of the version that its writer read, and one row of its own. So each
version shows whether its history is linear, and the last one shows which commits are in it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.nodes.wire import ConnectionLost, Wire
from tests.nodes.world import NodesWorld
from tests.rooms.lance.http.wire import manifest

WRITERS = 16
COMMITS = max(2, int(os.environ.get("LIMNOS_TEST_ROUNDS", "0")) // 5)
KILLS, KILL_EVERY_S = (1, 0.3) if COMMITS < 10 else (10_000, 3.0)
"""In a short run one node is killed, in a long run a node every few seconds until the end."""
ROGUE = "rogue"
TABLE = "/lance/v1/table"
END = b"LANC"


class Writer:
    """A writer at one node, which may be killed at any moment."""

    def __init__(self, world: NodesWorld, number: int) -> None:
        self.world = world
        self.number = number
        self.wire: Wire | None = None

    def ask(self, path: str, body: object) -> tuple[int, dict[str, object]]:
        """Repeat a request until a node is able to answer it. Returns status 0 if the outcome is unknown."""
        while True:
            try:
                if self.wire is None:
                    self.wire = Wire(self.world.nodes[self.number % 2].uri, user="admin")
                answer = self.wire.ask("POST", path, body)
            except (ConnectionLost, OSError):
                self.close()
                if "create" in path:
                    return 0, {}
                time.sleep(0.05)
                continue
            if answer.status == 503:
                time.sleep(0.05)
                continue
            if answer.status == 500 and "check before you repeat it" in str(answer.body):
                return 0, {}
            return answer.status, answer.body

    def close(self) -> None:
        """Close the connection."""
        if self.wire is not None:
            self.wire.close()
        self.wire = None

    def rows(self, name: str) -> tuple[int, list[str]]:
        """Read the newest version of a table as clients do: the list of versions, then the manifest."""
        while True:
            _, body = self.ask(f"{TABLE}/lance%24{name}/version/list?limit=1&descending=true", {})
            versions = body["versions"]
            if not versions:
                return 0, []
            newest = versions[0]  # type: ignore[index]
            with suppress(FileNotFoundError):  # moved aside by mistake; the node restores it at the next read
                text = Path(f"/{newest['manifest_path']}").read_bytes()
                return newest["version"], text.removesuffix(END).decode().split()

    def staged(self, directory: Path, version: int, *, rows: list[str]) -> str:
        """Stage a version. Returns its location as clients spell it."""
        name = f"{manifest(version)}-{self.number}.{time.monotonic_ns()}"
        (directory / name).write_bytes(" ".join(rows).encode() + END)
        return f"{str(directory).lstrip('/')}/{name}"

    def commit(self, tables: dict[str, Path], row: str) -> None:
        """Add a row to each table in one request. After an unknown outcome, check the tables before a retry."""
        while True:
            seen = {name: self.rows(name) for name in tables}
            row_presence = [row in rows for _, rows in seen.values()]
            if all(row_presence):
                return
            assert not any(row_presence) or not self._is_half(tables, row), f"a part of a batch: {seen}"
            entries = [
                {
                    "id": ["lance", name],
                    "version": version + 1,
                    "manifest_path": self.staged(tables[name], version + 1, rows=[*rows, row]),
                }
                for name, (version, rows) in seen.items()
            ]
            if len(entries) == 1:
                (name,) = tables
                status, body = self.ask(f"{TABLE}/lance%24{name}/version/create", entries[0])
            else:
                status, body = self.ask(f"{TABLE}/version/batch-create", {"entries": entries})
            if status == 200:
                return
            assert status in (0, 409), body

    def _is_half(self, tables: dict[str, Path], row: str) -> bool:
        """Check again whether a row is in some tables only, because the first check may have been made during the
        commit.
        """
        again = [row in self.rows(name)[1] for name in tables]
        return any(again) and not all(again)


def declared(world: NodesWorld, *names: str) -> dict[str, Path]:
    """Create tables with managed versions. Returns the directories of their manifests."""
    directories = {}
    with closing(Writer(world, 0)) as maker:
        for name in names:
            _, declaration = maker.ask(
                f"{TABLE}/lance%24{name}/declare", {"properties": {"managed_versioning": "true"}}
            )
            directories[name] = Path(str(declaration["location"]).removeprefix("file://"), "_versions")
            directories[name].mkdir(parents=True)
    return directories


def disturbed(world: NodesWorld, directories: list[Path], done: threading.Event) -> int:
    """Write manifests that bypass the server, and kill and restart nodes, until the writers are done. Returns the
    number of these manifests.
    """
    laid, killed, started = 0, 0, time.monotonic()
    while not done.is_set():
        for directory in directories:
            newest = min((each.name for each in directory.glob("*.manifest")), default=manifest(0))
            version = 2**64 - 1 - int(newest.partition(".")[0])
            with suppress(FileExistsError), (directory / manifest(version + 1)).open("xb") as file:
                file.write(ROGUE.encode() + END)
                laid += 1
        if killed < KILLS and time.monotonic() - started > KILL_EVERY_S * (killed + 1):
            world.nodes[killed % 2].kill()
            world.nodes[killed % 2].start()
            killed += 1
        done.wait(0.02)
    sys.stdout.write(f"{WRITERS} writers x {COMMITS} commits: nodes killed {killed}, manifests laid past them {laid}\n")
    return laid


@pytest.mark.parametrize("names", [("one",), ("a", "b", "c")], ids=["one table", "three at once"])
def test_acknowledged_rows_exist_once_after_node_kill(world: NodesWorld, names: tuple[str, ...]) -> None:
    """With 16 writers on two nodes, one of which is killed, versions have no gap, each is based on the previous one,
    every acknowledged row exists once, and no bypassing row exists.
    """
    tables = declared(world, *names)
    done = threading.Event()

    def write(number: int) -> None:
        with closing(Writer(world, number)) as writer:
            for turn in range(COMMITS):
                writer.commit(tables, f"w{number}-{turn}")

    with ThreadPoolExecutor(WRITERS + 1) as threads:
        trouble = threads.submit(disturbed, world, list(tables.values()), done)
        work = [threads.submit(write, number) for number in range(WRITERS)]
        try:
            for each in work:
                each.result()
        finally:
            done.set()
        assert trouble.result() > 0

    with closing(Writer(world, 1)) as reader:
        for name in tables:
            history_is_linear(reader, name)


def history_is_linear(reader: Writer, name: str) -> None:
    """Check that each version is the previous one with one more row, without a gap, up to all rows."""
    expected = Counter(f"w{number}-{turn}" for number in range(WRITERS) for turn in range(COMMITS))
    version, rows = reader.rows(name)
    assert Counter(rows) == expected
    _, body = reader.ask(f"{TABLE}/lance%24{name}/version/list", {})
    versions: list[dict[str, Any]] = body["versions"]  # type: ignore[assignment]
    assert [each["version"] for each in versions] == list(range(1, version + 1))
    before: list[str] = []
    for each in versions:
        manifest_rows = Path(f"/{each['manifest_path']}").read_bytes().removesuffix(END).decode().split()
        assert manifest_rows[:-1] == before
        before = manifest_rows
    assert version == expected.total()
