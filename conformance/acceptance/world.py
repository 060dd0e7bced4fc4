# SPDX-License-Identifier: Apache-2.0
"""One or two nodes over one store, in this process: changes are made at the first, requests go to the last.

In process, because each node's statements are counted there. May import the builders of nodes that the tests have.
Knows no protocol.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from limnos.model.errors import ServiceUnavailable
from tests.http.iceberg.wire import node_over

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.http.driver import DriverNode

DONE = (200, 201, 204)


class Request(NamedTuple):
    """A request of a user."""

    method: str
    path: str
    body: object = None


class World:
    """Nodes over one store. Each cell uses unique names."""

    def __init__(self, nodes: tuple[DriverNode, ...], database: str | None) -> None:
        self._nodes = nodes
        self._database = database
        self._serial = 0

    def serial(self) -> int:
        """Return a number for a cell."""
        self._serial += 1
        return self._serial

    def do(self, method: str, path: str, body: object = None) -> None:
        """Make a change as the admin, at the first node. Raises AssertionError."""
        answer = self._nodes[0].ask(method, path, body, content_type="application/json")
        assert answer.status in DONE, f"{method} {path}: {answer.status} {answer.body.decode()}"

    def tried(self, method: str, path: str, body: object = None) -> int:
        """Make a change that may be refused. Returns the status."""
        return self._nodes[0].ask(method, path, body, content_type="application/json").status

    def ask(self, user: str, request: Request) -> tuple[int, int]:
        """Request from the last node.

        Returns the status, and the number of statements that the node sent to its store.
        """
        store = self._nodes[-1].built.services.store
        before = store.statements
        answer = self._nodes[-1].ask(*request, user=user, content_type="application/json")
        return answer.status, store.statements - before

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let the last node's freshness queries fail for the body of a `with`. Its connections are new afterwards."""
        store = self._nodes[-1].built.services.store

        def unreachable(*_: object) -> None:
            raise ServiceUnavailable("The store does not answer: try again")

        async def unreachable_async(*_: object) -> None:
            unreachable()

        name, broken = ("gate", unreachable) if store.inline else ("gate_async", unreachable_async)
        setattr(store, name, broken)
        try:
            yield
        finally:
            delattr(store, name)
            self._cut()

    def _cut(self) -> None:
        """Close every connection of the nodes to the database."""
        if self._database is not None:
            with psycopg.connect(self._database, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid"
                    " <> pg_backend_pid()"
                )


@contextmanager
def world_of(folder: Path, *, nodes: int, database: str | None = None) -> Iterator[World]:
    """Run nodes over one store: the file in the folder, or a PostgreSQL database."""
    with ExitStack() as stack:
        running = [stack.enter_context(node_over(folder, database=database)) for _ in range(nodes)]
        yield World(tuple(running), database)
