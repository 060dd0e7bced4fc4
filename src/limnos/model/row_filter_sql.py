# SPDX-License-Identifier: Apache-2.0
"""Row filters as SQL text: what a user types, from the tree of conditions that the server stores.

Must not know restrictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_COMPARISONS: Final = {"eq": "=", "not-eq": "<>", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}
_TESTS: Final = {"is-null": "is null", "not-null": "is not null", "is-nan": "is nan", "not-nan": "is not nan"}


def sql_of(condition: object) -> str:
    """Return a row filter as SQL. A condition of a newer server that has no SQL here is shown by its name."""
    if not isinstance(condition, dict):
        return str(condition).lower()
    word = str(condition.get("type"))
    if word in {"and", "or"}:
        return f" {word} ".join(_operand(condition.get(side), word) for side in ("left", "right"))
    if word == "not":
        return f"not {_operand(condition.get('child'), word)}"
    if word in _COMPARISONS:
        return f"{_term(condition.get('left'))} {_COMPARISONS[word]} {_literal(condition.get('right'))}"
    if word in _TESTS:
        return f"{_term(condition.get('child'))} {_TESTS[word]}"
    if word in {"in", "not-in"}:
        values = condition.get("values")
        value_list = ", ".join(_literal(each) for each in (values if isinstance(values, list) else ()))
        return f"{_term(condition.get('child'))} {word.replace('-', ' ')} ({value_list})"
    if word in {"starts-with", "not-starts-with"}:
        text = _literal(condition.get("right")).removesuffix("'")
        return f"{_term(condition.get('left'))} {'not ' if word.startswith('not') else ''}like {text}%'"
    return word


def _operand(condition: object, word: str) -> str:
    """Return a part of a condition, in parentheses where SQL would read it otherwise."""
    text = sql_of(condition)
    inner = condition.get("type") if isinstance(condition, dict) else None
    return f"({text})" if inner in {"and", "or"} and inner != word else text


def _term(term: object) -> str:
    if not isinstance(term, dict):
        return str(term)
    if "name" in term:
        return ".".join(_name(part) for part in str(term["name"]).split("."))
    return f"{term.get('transform', term.get('type'))}({_term(_inner(term))})"


def _inner(term: Mapping[str, object]) -> object:
    return term.get("term", term.get("child", ""))


def _name(part: str) -> str:
    return part if part.isidentifier() else '"' + part.replace('"', '""') + '"'


def _literal(value: object) -> str:
    inner = value.get("value") if isinstance(value, dict) else value
    if isinstance(inner, str):
        return "'" + inner.replace("'", "''") + "'"
    return str(inner).lower() if isinstance(inner, bool) else str(inner)
