# SPDX-License-Identifier: Apache-2.0
"""Writers that record their requests and answers, so that each answer can be compared with the store."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.faults.mutations import properties_of
from tests.faults.rig import Rig
from tests.nodes.wire import (
    PREFIX,
    ConnectionLost,
    Wire,
    namespace_body,
    namespace_path,
    properties_body,
    table_body,
    table_path,
)

WRITERS = 3
PAUSE_S = 0.02
"""Seconds between an answer without success and the next request."""
CERTAIN, UNKNOWN = 503, 500


class WriteAttempt(NamedTuple):
    """A writer's request with a unique name, and its answer; no status if the answer was lost."""

    kind: str
    home: str
    name: str
    status: int | None
    message: str = ""

    def is_true(self, *, exists: bool) -> bool:
        """Return whether the answer is consistent with the store."""
        if self.status is None:
            return True
        if self.status == UNKNOWN:
            return self.message.startswith("The store did not confirm")
        return self.status in (200, CERTAIN) and exists == (self.status == 200)


class Traffic:
    """A few writers on one node, each in its own namespace."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.told: list[list[WriteAttempt]] = [[] for _ in range(WRITERS)]
        self._stop = threading.Event()
        self._homes = [rig.tag() for _ in range(WRITERS)]
        for home in self._homes:
            rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(home))
            rig.admin.do("POST", f"{namespace_path(home)}/tables", table_body("busy"))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write until the body ends, or until the node no longer answers."""
        threads = [threading.Thread(target=self._write, args=each) for each in zip(self._homes, self.told, strict=True)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _write(self, home: str, attempts: list[WriteAttempt]) -> None:
        """Create namespaces and tables and commit to one table, each with a new name."""
        wire = Wire(self.rig.node.uri, user="admin")
        for number in itertools.count():
            name = f"x{number}"
            for kind, path, body in (
                ("namespace", f"{PREFIX}/namespaces", namespace_body(home, name)),
                ("table", f"{namespace_path(home)}/tables", table_body(name)),
                ("commit", table_path(home, "busy"), properties_body(**{name: home})),
            ):
                try:
                    answer = wire.ask("POST", path, body)
                except ConnectionLost:
                    attempts.append(WriteAttempt(kind=kind, home=home, name=name, status=None))
                    return
                attempts.append(
                    WriteAttempt(kind=kind, home=home, name=name, status=answer.status, message=answer.message)
                )
                if answer.status != 200:
                    time.sleep(PAUSE_S)
                if self._stop.is_set():
                    wire.close()
                    return

    def answers(self) -> list[WriteAttempt]:
        """Return all answers that the writers got."""
        return [one for attempts in self.told for one in attempts]

    def untrue(self) -> list[str]:
        """Compare every answer with the present state of the store. Returns those that were wrong."""
        properties = {home: properties_of(self.rig, home, "busy") for home in self._homes}
        existence_checks: dict[str, Callable[[WriteAttempt], bool]] = {
            "commit": lambda one: one.name in properties[one.home],
            "namespace": lambda one: self._has(namespace_path(one.home, one.name)),
            "table": lambda one: self._has(table_path(one.home, one.name)),
        }
        outcomes = ((one, existence_checks[one.kind](one)) for one in self.answers())
        return [f"{one}, there: {is_there}" for one, is_there in outcomes if not one.is_true(exists=is_there)]

    def _has(self, path: str) -> bool:
        status = self.rig.admin.ask("HEAD", path).status
        assert status in (204, 404), f"HEAD {path} was answered {status}"
        return status == 204
