"""The tables of refusals of the protocols, each over a store that is made once and put back before it is asked again.

May import `tests` and `limnos`, behind the hook of `sites`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from conformance.lesser.sites import Planter
from tests.http import cells
from tests.http.admin import refusals as admin
from tests.http.asterix import refusals as asterix
from tests.http.cells import Request
from tests.http.driver import Answer, Node, let_jobs
from tests.http.gravitino import leaf_refusals
from tests.http.gravitino import refusals as gravitino
from tests.http.iceberg import refusals as iceberg
from tests.http.iceberg import wire
from tests.http.lance import refusals as lance


class Asking(NamedTuple):
    """A cell of a table: its row, its caller, the request, and which uses of actions the request came by."""

    row: str
    who: str
    request: Request
    reached: frozenset[int] = frozenset()
    cell: str = ""


Rows = Callable[[Node], list[Asking]]


def _of(make: Callable[[Node], object], cases: cells.Cases, callers: object) -> Rows:
    def rows(node: Node) -> list[Asking]:
        make(node)
        found = [
            Asking(f"{each.route} {each.thing}", who, each.request)
            for who in callers
            for each in cases(node, who)  # type: ignore[attr-defined]
        ]
        return sorted(found, key=lambda each: each.request.method != "GET")

    return rows


def _iceberg(node: Node) -> list[Asking]:
    files = iceberg.prepare(node)
    return [
        Asking(" ".join(row), who, Request(*request))
        for who in iceberg.CALLERS
        for row, request in iceberg.requests(who, files).items()
    ]


TABLES: dict[str, tuple[Rows, Callable[[str, Answer], str]]] = {
    "gravitino": (_of(cells.prepare, gravitino.cases, cells.CALLERS), cells.cell),
    "leaves": (_of(leaf_refusals.prepare, leaf_refusals.cases, leaf_refusals.CALLERS), cells.cell),
    "iceberg": (_iceberg, lambda _, answer: str(answer.status)),
    "admin": (_of(cells.prepare, admin.cases, cells.CALLERS), cells.cell),
    "lance": (_of(lance.prepare, lance.cases, cells.CALLERS), lambda _, answer: lance.cell(answer)),
    "asterix": (_of(asterix.prepare, asterix.cases, asterix.CALLERS), lambda _, answer: asterix.cell(answer)),
}
OF_PROTOCOL = {"gravitino": ("gravitino", "leaves")}


class Table:
    """A table over its store below `folder`."""

    def __init__(self, name: str, folder: Path, planter: Planter) -> None:
        self.name, self.planter = name, planter
        self.data, self._seed = folder / name, folder / f"{name}.seed"
        rows, self._cell = TABLES[name]
        with wire.node_over(self.data) as node:
            let_jobs(node)
            made = rows(node)
        shutil.copytree(self.data, self._seed, symlinks=True)
        with self.opened() as node:
            self.askings = [self.asked(node, each) for each in made]

    @contextmanager
    def opened(self) -> Iterator[Node]:
        """Serve the store as it was made."""
        shutil.rmtree(self.data)
        shutil.copytree(self._seed, self.data, symlinks=True)
        with wire.node_over(self.data) as node:
            let_jobs(node)
            yield node

    def asked(self, node: Node, asking: Asking) -> Asking:
        """Ask for a cell; returns it with its answer and the uses that it came by."""
        self.planter.reached.clear()
        route, user = asking.row, None if asking.who == "nobody" else asking.who
        cell = self._cell(route, node.ask(*asking.request, user=user))
        return asking._replace(reached=frozenset(self.planter.reached), cell=cell)

    def differs(self, number: int, *, whole: bool = False) -> Asking | None:
        """Lower a use, ask the cells that come by it, and return the first that is answered in another way."""
        some = [each for each in self.askings if whole or number in each.reached]
        if not some:
            return None
        self.planter.planted = number
        try:
            with self.opened() as node:
                found = next((each for each in some if self.asked(node, each).cell != each.cell), None)
        finally:
            self.planter.planted = None
        if found is None or found.request.method == "GET":
            return found
        with self.opened() as node:  # what it is answered behind these cells alone, with nothing lowered
            for each in some[: some.index(found) + 1]:
                before = self.asked(node, each).cell
        self.planter.planted = number
        try:
            with self.opened() as node:
                for each in some[: some.index(found) + 1]:
                    after = self.asked(node, each).cell
        finally:
            self.planter.planted = None
        return found if before != after else None
