# SPDX-License-Identifier: Apache-2.0
"""Answers to flags that a command does not have: the nearest ones by spelling or meaning, the argument whose name the
flag has, and for filters of lists the statement that filters.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.cli.foreign_flags import LIST_FILTERS
from limnos.cli.output import flag_values
from limnos.cli.sentences import quote_command
from limnos.cli.signatures import COMMON, signature_of
from limnos.cli.token_words import take_words, without_flag

_NEAR_MAX: Final = 2
_CUTOFF: Final = 0.6
_SHORT: Final = len("--for")
"""A flag of this length is near only to one with the same first letter: three letters are like those of many words."""
_LIMITS: Final = frozenset({"--limit", "--max-items", "--page-size", "--last", "-n"})
_ORDERS: Final = frozenset({"--sort", "--sort-by", "--order", "--order-by"})
_CONDITIONS: Final = frozenset({"--where", "--filter", "--query", "--selector"})
_COLUMNS: Final = {
    column: typed.split()
    for column, typed in {
        "name": "name",
        "created_at": "created created_at created-at age date time creationtimestamp",
        "modified_at": "modified modified_at modified-at updated changed last-modified",
        "created_by": "created_by created-by creator",
    }.items()
}
"""Columns that each of the tables of lists has, and words for them."""
_EQUATION: Final = re.compile(r"(?P<column>[\w.-]+) *=+ *['\"]?(?P<value>[^'\"]*)['\"]?")
_LIMIT: Final = 10
_LISTS: Final = {
    "user list": ("principals", "kind = 'user'"),
    "group list": ("principals", "kind = 'group'"),
    "role list": ("principals", "kind = 'role'"),
    "tag list": ("nodes", "kind = 'tag'"),
    "policy list": ("nodes", "kind = 'policy'"),
    "pipeline runs": ("runs", ""),
}
"""The system table that has what a command lists, and the condition on its rows."""


class ListAnswer(NamedTuple):
    """Why a list takes no filter, and the next step."""

    reason: str
    hint: str


def filtered_list(typed: str, words: Sequence[str], *, rest: Sequence[str]) -> ListAnswer | None:
    """Return the answer to a flag that filters, sorts or cuts a list; None for other commands and flags.

    Args:
        typed: The flag.
        words: The words of the command.
        rest: Its arguments and flags.
    """
    if typed not in LIST_FILTERS or not ("list" in words or " ".join(words) in _LISTS):
        return None
    paths, _ = take_words(without_flag(rest, typed))
    path = paths[0] if paths else ""
    kind = next((each for flag in ("--only", "--kind") for each in flag_values(rest, flag)), "")
    command = " ".join(words)
    if command == "list" and kind != "metalake":
        table, condition = "nodes", f"kind = '{kind or ('' if path else 'catalog')}'"
        conditions = [condition] if kind or not path else []
    elif command in _LISTS and not path:
        table, condition = _LISTS[command]
        conditions = [condition] if condition else []
    else:
        plain = [*without_flag(rest, typed)]
        return ListAnswer("a list is whole", f"{quote_command([*_typed_words(words), *plain])} lists all")
    if path:
        conditions.append(f"path like '{path.replace(chr(39), '')}.%'")
    value = next(iter(flag_values(rest, typed)), "")
    reason = f"lists are whole, and SQL filters them; 'limnos ask \"describe {table}\"' lists the columns"
    return ListAnswer(reason, _statement(table, conditions, typed=typed, value=value))


def _statement(table: str, conditions: list[str], *, typed: str, value: str) -> str:
    """Return the command with the statement for a filter."""
    order = "started_at desc" if table == "runs" else "name" if table == "principals" else "path"
    limit = _LIMIT
    if typed in _LIMITS and value.isdigit():
        limit = max(1, int(value))
    elif typed in _ORDERS and (column := _column(value)) and table != "runs":
        order = column
    elif typed in _CONDITIONS and (match := _EQUATION.fullmatch(value)) is not None and table != "runs":
        column = _column(match["column"])
        conditions = [*conditions, f"{column} = '{match['value']}'"] if column else conditions
    where = f" where {' and '.join(conditions)}" if conditions else ""
    columns = "*" if table == "runs" else "name, created_at" if table == "principals" else "path, kind"
    text = f"select {columns} from {table}{where} order by {order} limit {limit}"  # noqa: S608 - proposed, not run
    return quote_command(["ask", text])


def _column(typed: str) -> str:
    """Return the column that a word means; empty without one."""
    word = typed.lower().rpartition(".")[2].split(" ")[0].lstrip("-+")
    return next((column for column, words in _COLUMNS.items() if word in words), "")


def _typed_words(words: Sequence[str]) -> list[str]:
    from limnos.cli.grammar.spelling import typed_as

    return typed_as(" ".join(words)).split()


def with_named_argument(typed: str, words: Sequence[str], *, rest: Sequence[str]) -> list[str] | None:
    """Return the command line with the value of a flag as the argument that has its name, as `--pipeline nyc` for
    PIPELINE; None if the command has no such argument left.
    """
    signature = signature_of(words)
    value = next(iter(flag_values(rest, typed)), "")
    if signature is None or not value or value.startswith("-"):
        return None
    name = typed.lstrip("-").upper().replace("-", "_")
    plain = without_flag(rest, typed)
    arguments, flags = take_words(plain)
    names = [each.removesuffix("...") for each in signature.arguments]
    if names[len(arguments) : len(arguments) + 1] != [name]:
        return None
    return [*_typed_words(words), *arguments, value, *flags]


def near_flags(typed: str, own: Sequence[str]) -> list[str]:
    """Return at most two of a command's flags to which an unknown one is near: those that have one of its words, then
    those of a near spelling.
    """
    name = typed.lstrip("-").replace("_", "-")
    parts = {part for part in name.split("-") if len(part) > 2}
    candidates = [flag for flag in own if flag.startswith("--") and flag not in COMMON]
    same = [flag for flag in candidates if parts & {*flag.lstrip("-").split("-")}]
    close = difflib.get_close_matches(f"--{name}", candidates, n=_NEAR_MAX, cutoff=_CUTOFF) if len(name) > 1 else []
    close = [each for each in close if len(each) > _SHORT or each[2] == name[0]]
    return list(dict.fromkeys([*same, *close]))[:_NEAR_MAX]


def proposed_flags(flags: Sequence[str], *, name: str) -> str:
    """Return the hint that names near flags; `name` is the command as it is typed."""
    return f"did you mean {' or '.join(flags)}? '{shlex.join(name.split())} --help' explains them"
