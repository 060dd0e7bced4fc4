# SPDX-License-Identifier: Apache-2.0
"""Two nodes on one store, callers on each, and clients that write continuously."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.nodes.process import Process
from tests.nodes.wire import (
    GRAVITINO,
    PREFIX,
    Wire,
    namespace_body,
    namespace_path,
    rights_body,
    rights_path,
    table_body,
)

ROOT = Path(__file__).parents[2]
BUSY_WITHIN_S = 300


class NodesWorld:
    """Two nodes that serve one store from one data directory."""

    def __init__(self, directory: Path, database: str | None) -> None:
        data = directory / "data"
        self.database = database or str(data / "limnos.db")
        self.nodes = [Process(data, log=directory / f"node{i}.log", database=database) for i in (0, 1)]
        self._counts = [directory / f"writer{i}.count" for i in (0, 1)]
        self._wires: dict[tuple[int, str], Wire] = {}
        self._writers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        for node in self.nodes:
            node.spawn()  # on an empty store, concurrently: one migrates it, the other finds it migrated
        for node in self.nodes:
            node.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_writing()
        for wire in self._wires.values():
            wire.close()
        for node in self.nodes:
            node.stop()

    # -- callers -------------------------------------------------------------------------------------------------

    def wire(self, node: int, who: str) -> Wire:
        """Return a caller of one node, by name or by token, with its own connection."""
        user_wire = self._wires.get((node, who))
        if user_wire is None:
            uri = self.nodes[node].uri
            user_wire = Wire(uri, token=who) if who.startswith("lim_") else Wire(uri, user=who)
            self._wires[node, who] = user_wire
        return user_wire

    def admin(self, node: int = 0) -> Wire:
        """Return the admin at one node."""
        return self.wire(node, self.nodes[0].token)

    # -- writers -------------------------------------------------------------------------------------------------

    def write_all_the_while(self) -> None:
        """Start a writing client on each node, and wait until both write."""
        for node, count in zip(self.nodes, self._counts, strict=True):
            words = [sys.executable, "-m", "tests.nodes.writers", node.uri, node.token, count.stem, str(count)]
            self._writers.append(subprocess.Popen(words, cwd=ROOT))
        until = time.monotonic() + BUSY_WITHIN_S
        while min(self.written()) < 2:
            assert time.monotonic() < until, "the writing clients did not start"
            time.sleep(0.02)

    def wait_for_progress(self, before: list[int]) -> None:
        """Wait until a writing client has written since a count. Raises AssertionError when a limit has passed."""
        until = time.monotonic() + BUSY_WITHIN_S
        while sum(self.written()) <= sum(before):
            assert time.monotonic() < until, "the writers made no progress"
            time.sleep(0.02)

    def stop_writing(self) -> None:
        """Stop the writing clients."""
        for writer in self._writers:
            writer.terminate()
            writer.wait(10)
        self._writers.clear()

    def written(self) -> list[int]:
        """Return the progress of each writing client. Raises AssertionError if one has ended."""
        for writer in self._writers:
            assert writer.poll() is None, f"a writing client ended with {writer.poll()}: see its output above"
        return [int(count.read_text() or 0) if count.exists() else 0 for count in self._counts]

    # -- objects -------------------------------------------------------------------------------------------------

    def user(self, name: str) -> str:
        """Add a user to the metalake."""
        self.admin().do("POST", f"{GRAVITINO}/users", {"name": name})
        return name

    def role(self, name: str, *, to: str | None = None) -> str:
        """Create a role, and grant it to a user."""
        self.admin().do("POST", f"{GRAVITINO}/roles", {"name": name, "properties": {}, "securableObjects": []})
        if to is not None:
            self.admin().do("PUT", f"{GRAVITINO}/permissions/users/{to}/grant", {"roleNames": [name]})
        return name

    def grant(self, role: str, kind: str, full_name: str, *privileges: str) -> None:
        """Grant a role privileges on an object."""
        self.admin().do("PUT", rights_path(role, kind, full_name, "grant"), rights_body(*privileges))

    def reader(self, name: str, *, schema: str | None = None, selects: bool = True) -> str:
        """Create a user with a role that may use the catalog and a schema, and optionally select all its tables."""
        self.role(f"{name}_role", to=self.user(name))
        self.grant(f"{name}_role", "catalog", "main", "use_catalog")
        if schema is not None:
            more = ("select_table",) if selects else ()
            self.grant(f"{name}_role", "schema", f"main.{schema}", "use_schema", *more)
        return name

    def namespace(self, *levels: str) -> None:
        """Create a namespace."""
        self.admin().do("POST", f"{PREFIX}/namespaces", namespace_body(*levels))

    def table(self, *parts: str) -> None:
        """Create a table."""
        self.admin().do("POST", f"{namespace_path(*parts[:-1])}/tables", table_body(parts[-1]))
