# SPDX-License-Identifier: Apache-2.0
"""The list of checks for every engine. Each check is independent, and another client verifies its effect.

Job: the checks, their order, and their criteria. Changes of an existing table are made to one that the witness
(PyIceberg) created, and the witness reads the result. May import the driver's words and this package's views. It must
not know any engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.engines.checks import Lake
from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from conformance.engines.host import words
from conformance.engines.remote import CallRefused, Remote
from conformance.engines.rows import PLAIN, Row, same
from conformance.engines.views import make_view

ROWS: list[Row] = [[1, "Oslo"], [2, "Rome"]]
DEEP = ["a", "b", "c", "d"]
ODD = {"dot": "a.b", "space": "a b", "Unicode": "日本-ü", "slash": "a/b", "quote": "a'b\"c`d"}
OK, CLIENT, FAILED = "ok", "client", "FAILED"
DENIED = ("MODIFY_TABLE", "access denied", "access_denied", "accessdenied")
"""Messages of a store that refuses to write a file with read-only credentials."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check: `ok`, `client` (the engine's own limit, shown by its message) or `FAILED`."""

    engine: str
    check: str
    result: str
    told: str = ""


class Story:
    """One engine's run through the list, in its own namespace."""

    def __init__(self, engine: str, remote: Remote, *, witness: Witness, lake: Lake, warehouse: str) -> None:
        self.engine, self.remote, self.witness, self.lake, self.warehouse = engine, remote, witness, lake, warehouse
        self.home = [f"of_{engine}"]
        self.outcomes: list[Outcome] = []

    # Checks.

    def check(self, name: str, ask: Callable[[], object], kind: str = "") -> bool:
        """Run a check, which returns its problem, if any. A limit may be declared for a group of checks."""
        try:
            problem = ask()
        except Exception as error:
            problem = str(error) if isinstance(error, CallRefused) else words(error)
        limit = self.remote.limits.get(name, self.remote.limits.get(kind))
        if limit is None:
            result = FAILED if problem else OK
        elif problem and limit in str(problem):
            result = CLIENT
        else:
            result, problem = FAILED, f"its limit is told by {limit!r}; here: {problem or 'done'}"
        self.outcomes.append(Outcome(self.engine, name, result, " ".join(str(problem or "").split())[:700]))
        print(f"{result:6} {self.engine}: {name}", file=sys.stderr, flush=True)
        return result == OK

    def refused(self, name: str, verb: str, *arguments: object, by: Sequence[str]) -> None:
        """Run an action that must be refused, with one of these words in the reason."""

        def ask() -> object:
            try:
                answer = self.remote.ask(verb, *arguments)
            except CallRefused as error:
                return "" if any(each.lower() in str(error).lower() for each in by) else error
            return f"not refused: {answer}"

        self.check(name, ask)

    def made(self, name: str, rows: Sequence[Row] = ROWS) -> tuple[list[str], str]:
        """Create a table in this engine's namespace by the witness."""
        self.witness.create(self.home, name)
        if rows:
            self.witness.append(self.home, name, rows)
        return self.home, name

    def seen(self, levels: Sequence[str], name: str, expected: Sequence[Row] = ROWS) -> str:
        """Return the problem with a plain table's rows, as the witness reads them."""
        rows = self.witness.read(levels, name, ["id", "city"])
        return "" if same(rows, expected, PLAIN) else f"the witness reads {rows}"

    def read(self, levels: Sequence[str], name: str, expected: Sequence[Row] = ROWS) -> str:
        """Return the problem with a plain table's rows, as the engine reads them."""
        rows = self.remote.ask("read", levels, name, ["id", "city"])
        return "" if same(rows, expected, PLAIN) else f"it reads {rows}"

    # The list of checks.

    def tell(self) -> list[Outcome]:
        """Run the whole list."""
        self.witness.namespace(self.home)
        self.remote.ask("be", "admin")
        self._names()
        self._tables()
        self._columns()
        self._rows()
        self._views()
        self._callers()
        return self.outcomes

    def tell_remote(self) -> list[Outcome]:
        """Run the checks on files, in an object store."""
        self.witness.namespace(self.home)
        self.remote.ask("be", "admin")
        self._tables()
        self._rows()
        self._callers()
        return self.outcomes

    def _names(self) -> None:
        def deep() -> str:
            levels = [self.home[0]]
            for level in DEEP[1:]:
                levels = [*levels, level]
                self.remote.ask("namespace", levels)
            return self._whole(levels, "t")

        self.check("namespace four deep", deep)
        for what, name in ODD.items():
            self.check(f"names: {what}", lambda name=name: self._odd(name))  # type: ignore[misc]
        self.check("names: metadata table", lambda: self._whole(self.home, "files"))

    def _odd(self, name: str) -> str:
        levels = [f"{name} {self.engine}" if " " in name else f"{name}-{self.engine}"]
        self.remote.ask("namespace", levels)
        return self._whole(levels, name)

    def _whole(self, levels: list[str], name: str) -> str:
        self.remote.ask("create", levels, name)
        self.remote.ask("append", levels, name, ROWS)
        return self.read(levels, name) or self.seen(levels, name)

    def _tables(self) -> None:
        home = self.home

        def create() -> str:
            self.remote.ask("create", home, "mine")
            return "" if self.witness.names(home, "mine") == ["id", "city"] else "other columns"

        def append() -> str:
            self.remote.ask("append", *self.made("appended"), [[3, "Bern"]])
            return self.seen(home, "appended", [*ROWS, [3, "Bern"]])

        def rename() -> str:
            self.remote.ask("rename", *self.made("former"), "later")
            return self.seen(home, "later") or ("the old name stays" if self.witness.exists(home, "former") else "")

        def drop() -> str:
            self.remote.ask("drop", *self.made("dropped"))
            return "it is there still" if self.witness.exists(home, "dropped") else ""

        def travel() -> str:
            table = self.made("travelled")
            self.witness.append(*table, [[3, "Bern"]])
            rows = self.remote.ask("read_at", *table, self.witness.snapshots(*table)[0])
            return "" if same(rows, ROWS, PLAIN) else f"it reads {rows}"

        self.check("create", create)
        self.check("append", append)
        self.check("read back", lambda: self.read(*self.made("read")))
        self.check("rename table", rename)
        self.check("time travel", travel)
        self.check("drop", drop)

    def _columns(self) -> None:
        expected_columns = {"add": ["id", "city", "size"], "rename": ["id", "town"], "drop": ["id"]}
        for what, names in expected_columns.items():

            def evolve(what: str = what, names: list[str] = names) -> str:
                table = self.made(f"evolved_{what}")
                self.remote.ask(f"{what}_column", *table)
                if self.witness.names(*table) != names:
                    return f"the columns are {self.witness.names(*table)}"
                cells = [[1, "Oslo", None], [2, "Rome", None]]
                rows = self.remote.ask("read", *table, names)
                short = [row[: len(names)] for row in cells]
                return "" if same(rows, short, dict.fromkeys(names, "text")) else f"it reads {rows}"

            self.check(f"{what} column", evolve)

    def _rows(self) -> None:
        def done(verb: str, *more: object, left: list[Row]) -> str:
            table = self.made(f"{verb}d")
            self.remote.ask(verb, *table, *more)
            return self.seen(*table, left) or self.read(*table, left)

        self.check("update", lambda: done("update", left=[[1, "Bern"], [2, "Rome"]]))
        self.check("delete", lambda: done("delete", 1, left=[[2, "Rome"]]))
        self.check("merge", lambda: done("merge", left=[[1, "Oslo"], [2, "Bern"], [9, "Lima"]]))

    def _views(self) -> None:
        home, table = self.made("viewed")
        dialect = self.remote.dialect or "spark"

        def make() -> str:
            self.remote.ask("make_view", home, "seen", table)
            return "" if self.witness.view_exists(home, "seen") else "there is no view"

        def another() -> str:
            text = (
                f"SELECT {table}.id FROM {self.remote.ask('told_name', home, table) if self.remote.dialect else table}"
            )
            make_view(self.lake, home[0], "others", dialect=dialect, text=text, kind="long", catalog=self.warehouse)
            return self._viewed("others")

        if self.check("make a view", make):
            self.check("read its view", lambda: self._viewed("seen"))
        self.check("read another's view", another)

    def _viewed(self, name: str) -> str:
        rows = self.remote.ask("read", self.home, name, ["id"])
        return "" if same(rows, [[1], [2]], {"id": "long"}) else f"it reads {rows}"

    def _callers(self) -> None:
        shared, closed = ["open"], ["closed"]
        self.check("a reader reads", lambda: self._as_reader(shared))
        self.refused(
            "a reader may not write",
            "append",
            shared,
            "t",
            [[3, "x"]],
            by=DENIED if self.remote.is_remote else DENIED[:1],
        )
        self.refused("what is closed to a reader", "read", closed, "t", ["id", "city"], by=["USE_SCHEMA"])

        def program() -> str:
            self.remote.ask("be", "program")
            return self.read(shared, "t")

        self.check("a service account's secret", program)

        def wrong() -> object:
            try:
                self.remote.ask("be", "wrong")
                rows = self.remote.ask("read", shared, "t", ["id", "city"])
            except CallRefused as error:
                return "" if "token" in str(error).lower() else error
            return f"not refused: {rows}"

        self.check("a wrong credential", wrong)

    def _as_reader(self, levels: list[str]) -> str:
        self.remote.ask("be", "reader")
        return self.read(levels, "t")
