# SPDX-License-Identifier: Apache-2.0
"""The format of DuckDB's tests (sqllogictest): a file's text in, its commands out.

May import the standard library only. Must not know DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LOOPS = ("loop", "foreach", "concurrentloop", "concurrentforeach")
STATEMENTS = ("statement", "query")
_CONDITION = re.compile(r"(onlyif|skipif)\s+(\w+)=(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: its words, its SQL and the lines after `----`, or, for a loop, the commands in it."""

    line: int
    words: tuple[str, ...]
    sql: str = ""
    expected: tuple[str, ...] | None = None
    body: tuple[Command, ...] = ()
    condition: tuple[str, str, str] | None = None
    """A condition of a loop's variable: `onlyif` or `skipif`, the name, the value."""


def parse(text: str) -> tuple[Command, ...]:
    """Return the commands of a file."""
    return tuple(_commands(enumerate(text.splitlines(), 1)))


def _commands(lines: Iterator[tuple[int, str]]) -> Iterator[Command]:
    """Yield the commands up to `endloop`, or to the end."""
    condition = None
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if match := _CONDITION.match(line):
            condition = (match[1], match[2], match[3])
            continue
        words = tuple(line.split())
        if words[0] == "endloop":
            return
        if words[0] in LOOPS:
            yield Command(line=number, words=words, body=tuple(_commands(lines)), condition=condition)
        elif words[0] in STATEMENTS:
            sql, expected = _statement(lines)
            yield Command(line=number, words=words, sql=sql, expected=expected, condition=condition)
        else:
            yield Command(line=number, words=words, condition=condition)
        condition = None


def _statement(lines: Iterator[tuple[int, str]]) -> tuple[str, tuple[str, ...] | None]:
    """Return the SQL, and the lines after `----`, up to an empty line."""
    sql: list[str] = []
    expected: list[str] | None = None
    for _, line in lines:
        if not line.strip():
            break
        if line.strip() == "----" and expected is None:
            expected = []
        elif expected is None:
            sql.append(line)
        else:
            expected.append(line)
    return "\n".join(sql), None if expected is None else tuple(expected)


def differs(rows: Sequence[Sequence[str]], expected: Sequence[str]) -> str:
    """Return the difference between the rows of a query and the expected lines; empty if there is none.

    A line is a row with tabs between its values, or a value.
    """
    values = [value for row in rows for value in row]
    width = len(rows[0]) if rows else 0
    requirement = (
        [value for line in expected for value in line.split("\t")] if len(expected) == len(rows) else [*expected]
    )
    if len(requirement) != len(values):
        return f"{len(rows)} rows of {width}: {[*rows][:5]}; expected: {[*expected][:5]}"
    for value, want in zip(values, requirement, strict=True):
        if not same(value, want):
            return f"{value!r} is not {want!r}"
    return ""


def same(value: str, want: str) -> bool:
    """Return whether a value is the expected one: the same text, a pattern's, or the same number.

    A number with a fraction may differ by a millionth; DuckDB's own runner allows more.
    """
    for mark, is_wanted in (("<REGEX>:", True), ("<!REGEX>:", False)):
        if want.startswith(mark):
            pattern = re.compile(want.removeprefix(mark), re.DOTALL)
            return any(pattern.fullmatch(text) for text in (value, f"{value}\n")) is is_wanted
    if value == want or (value in {"true", "false"} and want in {("0", "1")[value == "true"], value}):
        return True
    try:
        number, target = float(value), float(want)
        return number == target or ("." in value and abs(number - target) <= abs(target) / 1e6)
    except ValueError:
        return False
