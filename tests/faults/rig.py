# SPDX-License-Identifier: Apache-2.0
"""A node that can be killed or stopped at a boundary of a mutation, and started again on the same store."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psycopg

from limnos.services.upkeep.nodes import BEAT_S
from limnos.store.backends.migrate import migrate
from tests.nodes.process import Process
from tests.nodes.wire import ConnectionLost, Wire, WireAnswer
from tests.scripted_server import ScriptedServer

Case = TypeVar("Case")
FULL = os.environ.get("LIMNOS_TEST_FAULTS", "") == "all"
"""Whether the tests run the complete matrices, not samples of them."""
BACKENDS = ("sqlite", "postgresql")
SETTLED_WITHIN_S = 300
QUIET_S = 8
"""The least time in seconds between the arming of a fault and the node's next heartbeat."""
_MARK = "INSERT INTO access_grant (role_id, object_id, privilege, object_kind, allowed) VALUES (0, -1, 1, 4, TRUE)"
_MARKED = "SELECT 1 FROM access_grant WHERE object_id = -1"
FOREIGN_HOLDER = "of another machine"
"""The holder of a lease that no node of this machine may end."""
_DUE = (
    f"SELECT 1 FROM task WHERE ended_at IS NULL AND coalesce(holder, '') <> '{FOREIGN_HOLDER}'"
    " AND (due_at <= {now} OR leased_until > {now})"
)


def on_backends(cases: Sequence[tuple[Case, str]]) -> list[tuple[str, Case, str]]:
    """Combine each case with both databases or, in a sample, with one of them alternately. The first element is the
    parameter of `rig`.
    """
    return [
        (backend, *case)
        for turn, backend in enumerate(BACKENDS)
        for number, case in enumerate(cases)
        if FULL or number % len(BACKENDS) == turn
    ]


class Rig:
    """A store, its node, and the admin's connection."""

    def __init__(
        self, directory: Path, database: str | None, *, env: dict[str, str] | None = None, name: str = "node"
    ) -> None:
        data = directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.is_sqlite = database is None
        self.database = database or str(data / "limnos.db")
        self._armed = directory / f"{name}.fault"
        self.source = ScriptedServer()
        """An external source for connector catalogs. It keeps running when the node is killed."""
        allowed = f"127.0.0.1:{self.source.port}"
        self._env = env or {}
        env = {"LIMNOS_FAULT_FILE": str(self._armed), "LIMNOS__SOURCES__ALLOWED_ADDRESSES": allowed} | self._env
        self.node = Process(data, log=directory / f"{name}.log", database=database, env=env)
        self._wires: dict[str, Wire] = {}
        self._count = 0
        migrate(self.database)

    def beside(self) -> Rig:
        """Return another node on the same store, not yet started."""
        return Rig(self.directory, None if self.is_sqlite else self.database, env=self._env, name="other")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reconnect()
        self.node.stop()
        self.source.close()

    def start(self) -> None:
        """Start the node and wait until its own startup work is done, because faults count only callers' mutations.

        The last part of the sweep removes rules on dropped objects. Such a rule is inserted to detect it. Beside the
        sweep, the node does its due tasks.
        """
        self.reconnect()
        self.sql(_MARK)
        self.node.start()
        until = time.monotonic() + SETTLED_WITHIN_S
        while self.rows(_MARKED) or self.rows(_DUE.format(now=int(time.time() * 1000))):
            assert time.monotonic() < until, "the node's startup work did not end"
            time.sleep(0.01)
        for _ in range(2):
            assert self.admin.ask("GET", "/api/limnos/v1/whoami").status == 200

    def tag(self) -> str:
        """Return an unused name."""
        self._count += 1
        return f"n{self._count}"

    # -- faults ----------------------------------------------------------------------------------------------------

    def arm(self, point: str, *, count: int = 1, stop: bool = False, after_audit: bool = True) -> None:
        """Let the node kill itself, or stop, when it reaches a point for the count-th time from now on.

        Pending audit records are written first, because the node's own work must not be the first to reach the point.
        """
        if self.node.is_ready:
            self._wait_heartbeat()
            if after_audit:
                assert self.admin.ask("GET", "/api/limnos/v1/audit?limit=1").status == 200
        draft = self._armed.with_suffix(".draft")
        draft.write_text(f"{point}:{count}{':stop' if stop else ''}")
        draft.rename(self._armed)

    def _wait_heartbeat(self) -> None:
        """Wait until the node's next heartbeat, which is a transaction, too, is some seconds away."""
        query = f"SELECT seen_at FROM node_seen WHERE name LIKE '%process {self.node.running.pid}'"
        until = time.monotonic() + SETTLED_WITHIN_S
        while max((int(str(seen_at)) for (seen_at,) in self.rows(query)), default=0) < self._quiet_since_ms():
            assert time.monotonic() < until, "the node writes no heartbeats"
            time.sleep(0.05)

    @staticmethod
    def _quiet_since_ms() -> int:
        return int((time.time() - BEAT_S + QUIET_S) * 1000)

    # -- callers ---------------------------------------------------------------------------------------------------

    @property
    def admin(self) -> Wire:
        """Return the admin's connection to the running node."""
        return self.wire("admin")

    def wire(self, user: str) -> Wire:
        """Return a user's connection to the running node."""
        wire = self._wires.get(user)
        if wire is None:
            wire = self._wires[user] = Wire(self.node.uri, user=user)
        return wire

    def try_to(self, method: str, path: str, body: object | None) -> WireAnswer | None:
        """Send a mutation once. Returns None if the connection broke."""
        try:
            return self.admin.ask(method, path, body)
        except ConnectionLost:
            return None

    def reconnect(self) -> None:
        """Let every caller's next request open a new connection, because the node closes idle ones."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    # -- the store, without the node -----------------------------------------------------------------------------------

    def sql(self, statement: str) -> None:
        """Execute a statement of the test."""
        if self.is_sqlite:
            with closing(sqlite3.connect(self.database, timeout=30)) as connection, connection:
                connection.execute(statement)
        else:
            with psycopg.connect(self.database) as other:
                other.execute(statement.encode())

    def wait_done(self, task_kind: str) -> None:
        """Wait until no task of a kind is left: a node is ready before it has done its due tasks."""
        until = time.monotonic() + SETTLED_WITHIN_S
        while self.rows(f"SELECT 1 FROM task WHERE kind = '{task_kind}'"):
            assert time.monotonic() < until, f"a task is left: {task_kind}"
            time.sleep(0.1)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Query rows."""
        if self.is_sqlite:
            with closing(sqlite3.connect(self.database, timeout=30)) as connection:
                return connection.execute(statement).fetchall()
        with psycopg.connect(self.database) as other:
            return other.execute(statement.encode()).fetchall()
