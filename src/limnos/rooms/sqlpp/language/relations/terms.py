# SPDX-License-Identifier: Apache-2.0
"""Terms over typed columns: expressions that a columnar engine computes for each row.

Must not know SQL++'s plans or an engine's own language. A call is one of a fixed list of operations, with the same
semantics in every engine. A term is NULL if its value is unknown; the shapes record whether that means MISSING.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from limnos.rooms.sqlpp.language.values.model import ScalarName, Value


class ColumnTerm(Struct, frozen=True):
    """A reference to a column of a relation by its id, which is unique within a statement."""

    id: int


class LiteralTerm(Struct, frozen=True):
    """A constant of a type; a value of None is NULL of that type."""

    value: Value
    type: ScalarName


class CallTerm(Struct, frozen=True):
    """A call of an operation. `word` is an additional argument of some operations: the type of a cast, the name of a
    field.
    """

    name: str
    arguments: tuple[Term, ...]
    word: str = ""


class LambdaTerm(Struct, frozen=True):
    """A lambda: a condition on each item of an array. In its body the item is the column `item`."""

    item: int
    body: Term


Term: TypeAlias = "ColumnTerm | LiteralTerm | CallTerm | LambdaTerm"
TruthTerm: TypeAlias = "Term | bool"
"""A condition that is never NULL: a term, or a constant."""

TRUE = LiteralTerm(value=True, type="boolean")
FALSE = LiteralTerm(value=False, type="boolean")


def call(name: str, *arguments: Term, word: str = "") -> CallTerm:
    """Build the term of an operation with these arguments."""
    return CallTerm(name, arguments, word)


def term_of(flag: TruthTerm) -> Term:
    """Convert a flag to a term; a Python bool becomes a literal."""
    if isinstance(flag, bool):
        return TRUE if flag else FALSE
    return flag


def all_of(*flags: TruthTerm) -> TruthTerm:
    """Return the conjunction (AND) of flags."""
    left = tuple(dict.fromkeys(flag for flag in flags if not isinstance(flag, bool)))
    if any(flag is False for flag in flags):
        return False
    return True if not left else left[0] if len(left) == 1 else CallTerm("and", left)


def any_of(*flags: TruthTerm) -> TruthTerm:
    """Return the disjunction (OR) of flags."""
    left = tuple(dict.fromkeys(flag for flag in flags if not isinstance(flag, bool)))
    if any(flag is True for flag in flags):
        return True
    return False if not left else left[0] if len(left) == 1 else CallTerm("or", left)


def not_of(flag: TruthTerm) -> TruthTerm:
    """Return the negation (NOT) of a flag."""
    if isinstance(flag, bool):
        return not flag
    return flag.arguments[0] if isinstance(flag, CallTerm) and flag.name == "not" else call("not", flag)


def columns_in(*terms: Term) -> frozenset[int]:
    """Return the ids of the columns that terms refer to, except the items of lambdas."""
    results: set[int] = set()
    own_columns: set[int] = set()
    for term in _walk(terms):
        if isinstance(term, ColumnTerm):
            results.add(term.id)
        elif isinstance(term, LambdaTerm):
            own_columns.add(term.item)
    return frozenset(results - own_columns)


def _walk(terms: Iterable[Term]) -> Iterator[Term]:
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        yield term
        if isinstance(term, CallTerm):
            waiting.extend(term.arguments)
        elif isinstance(term, LambdaTerm):
            waiting.append(term.body)
