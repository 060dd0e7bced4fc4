# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.duckdb.player FILE`: runs one test of DuckDB's suite and prints its outcome as JSON.

Job: commands in, an outcome out: passed, failed with the place, or skipped with the reason. The environment has the
settings. May import DuckDB and the suite's format. Must not know the server: the settings have the statements that
attach its catalog.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

import duckdb
from conformance.duckdb.suite import Command, differs, parse, same

ENVIRONMENT = "LIMNOS_DUCKDB_SUITE"
"""The variable with the settings as JSON: `attach` (SQL), `extensions` (files by name), `suite`, `work`."""
EMPTY = "(empty)"


class MissingPart(Exception):
    """The test needs what is missing here."""


class WrongResult(Exception):
    """A command has another result than expected."""


class _NextTurn(Exception):
    """A turn of a loop ends here."""


class Player:
    """A database with the catalog, its connections by name, and labelled results."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.variables = {"__TEST_DIR__": settings["work"], "__WORKING_DIRECTORY__": settings["suite"]}
        self.provided: dict[str, str] = {"CATALOG_TEST_CONFIG_SETUP": "limnos"}
        self.labelled: dict[str, Sequence[Sequence[str]]] = {}
        self.is_idle = False
        self.open()

    def open(self) -> None:
        """Open a new database and attach the catalog."""
        self.database = duckdb.connect(config={"allow_unsigned_extensions": "false"})
        self.connections = {"": self.database}
        self.database.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        for path in self.settings["extensions"].values():
            self.database.load_extension(path)
        self.database.execute(self.settings["attach"])

    def play(self, commands: Sequence[Command], names: Mapping[str, str]) -> None:
        """Run commands with the variables of the loops around them."""
        for command in commands:
            if self._is_chosen(command, names):
                self._play(command, names)

    def _is_chosen(self, command: Command, names: Mapping[str, str]) -> bool:
        if command.condition is None:
            return not self.is_idle or command.words[0] == "mode"
        kind, name, value = command.condition
        return (names.get(name) == value) is (kind == "onlyif")

    def _play(self, command: Command, names: Mapping[str, str]) -> None:
        match command.words:
            case ("require", name, *_):
                if name not in {*self.settings["extensions"], "core_functions", "icu", "json", "parquet"}:
                    raise MissingPart(f"it needs the extension {name}")
            case ("require-env", name, *value):
                if name not in self.provided or (value and value[0] != self.provided[name]):
                    raise MissingPart(f"it needs the variable {' '.join(command.words[1:])}")
            case ("test-env", name, value):
                self.variables[f"${{{name}}}"] = value
            case ("loop" | "foreach" | "concurrentloop" | "concurrentforeach", name, *values):
                self._loop(command, name, values, names)
            case ("mode", mode):
                self.is_idle = mode == "skip"
            case ("continue",):
                raise _NextTurn
            case ("reconnect" | "restart", *_):
                self.open()
            case ("statement" | "query", *_):
                self._ask(command, names)
            case ("set", "ignore_error_messages") | ("sleep", *_):
                pass
            case _:
                raise MissingPart(f"this runner has no {command.words[0]}")

    def _loop(self, command: Command, name: str, values: Sequence[str], names: Mapping[str, str]) -> None:
        turns = values if "foreach" in command.words[0] else [str(turn) for turn in range(*map(int, values))]
        if command.words[0].startswith("concurrent"):
            with ThreadPoolExecutor(len(turns)) as pool:
                list(pool.map(lambda turn: self._fork()._turn(command, {**names, name: turn}), turns))
        else:
            for turn in turns:
                self._turn(command, {**names, name: turn})

    def _fork(self) -> Player:
        """Return a player with a connection of its own, for a turn beside others."""
        fork = copy(self)
        fork.database = self.database.cursor()
        fork.connections = {"": fork.database}
        return fork

    def _turn(self, command: Command, names: Mapping[str, str]) -> None:
        with contextlib.suppress(_NextTurn):
            self.play(command.body, names)

    def _ask(self, command: Command, names: Mapping[str, str]) -> None:
        fill = lambda text: self._filled(text, names)  # noqa: E731 - short, and used often
        sql, expected = fill(command.sql), None if command.expected is None else [*map(fill, command.expected)]
        kind, requirement, *options = command.words
        named = [each for each in options if each not in {"nosort", "rowsort", "valuesort"}]
        is_query = kind == "query"
        name = named[0] if named and (not is_query or named[0].startswith("con")) else ""
        label = named[-1] if is_query and named and named[-1] != name else ""
        try:
            connection = self._connection(name)
            connection.execute(sql)
            rows = [] if not is_query else texts(connection, sql)
        except duckdb.Error as error:
            self._refused(command, full_message(error), expected)
            return
        if not is_query:
            if requirement == "error":
                raise WrongResult(f"line {command.line}: not refused: {sql[:300]}")
            return
        if "rowsort" in options:
            rows = sorted(rows)
        if "valuesort" in options:
            rows = [[value] for value in sorted(value for row in rows for value in row)]
        if label and not expected:
            expected = ["\t".join(row) for row in self.labelled.setdefault(label, rows)]
        self.labelled.setdefault(label, rows)
        if expected and expected[0].startswith("<FILE>:"):
            raise MissingPart("it needs a file of DuckDB's own repository")
        if problem := differs(rows, expected or ()):
            raise WrongResult(f"line {command.line}: {problem}: {sql[:300]}")

    def _connection(self, name: str) -> duckdb.DuckDBPyConnection:
        if name not in self.connections:
            self.connections[name] = self.database.cursor()
        return self.connections[name]

    def _refused(self, command: Command, message: str, expected: Sequence[str] | None) -> None:
        requirement = "\n".join(expected or ())
        is_known = same(message, requirement) if "REGEX>:" in requirement else requirement.strip() in message
        if command.words[1] not in {"error", "maybe"} or not is_known:
            raise WrongResult(f"line {command.line}: {message[:500]}: {command.sql[:300]}")

    def _filled(self, text: str, names: Mapping[str, str]) -> str:
        for name, value in self.variables.items():
            text = text.replace(name, value)
        for name, value in names.items():
            text = text.replace(f"${{{name}}}", value)
        return text


def full_message(error: duckdb.Error) -> str:
    """Return an error's message as DuckDB's own shell has it: with its type, which Python's may have as JSON only."""
    kind = re.search(r'"exception_type":"([^"]+)"', str(error))
    return f"{kind[1]} Error: {error}" if kind else str(error)


def texts(connection: duckdb.DuckDBPyConnection, sql: str) -> list[list[str]]:
    """Return the rows of the last statement, as DuckDB casts their values to text in the connection's time zone.

    Arrow and Python have no form of some values, such as those of the type VARIANT: DuckDB runs the query again then,
    with the casts in it.
    """
    if connection.description is None:
        return []
    try:
        table = connection.to_arrow_table()
    except duckdb.NotImplementedException:  # Arrow has no such type
        query = sql.strip().removesuffix(";")
        return [
            _texts(row) for row in connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})").fetchall()
        ]
    if not table.num_columns:
        return []
    zones = {str(field.type.tz) for field in table.schema if getattr(field.type, "tz", None)}
    table = table.rename_columns([f"c{index}" for index in range(table.num_columns)])
    with duckdb.connect(config={"threads": "1"}) as other:
        other.execute(f"SET TimeZone = '{next(iter(zones), 'UTC')}'")
        other.register("told", table)
        rows = other.execute("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM told").fetchall()
    return [_texts(row) for row in rows]


def _texts(row: Iterable[str | None]) -> list[str]:
    return ["NULL" if value is None else value or EMPTY for value in row]


def outcome_of(path: Path, settings: Mapping[str, Any]) -> tuple[str, str]:
    """Run a test. Returns its outcome, and the reason."""
    try:
        Player(settings).play(parse(path.read_text(encoding="utf-8")), {})
    except MissingPart as reason:
        return "skipped", str(reason)
    except WrongResult as reason:
        return "failed", str(reason)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


if __name__ == "__main__":
    print(json.dumps(outcome_of(Path(sys.argv[1]), json.loads(os.environ[ENVIRONMENT]))))
