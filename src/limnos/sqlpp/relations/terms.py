"""Terms over typed columns: what an engine of columns works out for each row.

May import `values.model`. Must not know SQL++'s plans, nor an engine's own words: a call names one of a fixed list of operations, each of which means the same in
every engine that has it. A term is NULL where its value is unknown; whether that is MISSING, the shapes above know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from limnos.sqlpp.values.model import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from limnos.sqlpp.stored.types import ScalarName


class Column(Struct, frozen=True):
    """A column of a relation, by its number: no two of one statement have the same."""

    id: int


class Literal(Struct, frozen=True):
    """A value of a type; None is NULL of that type."""

    value: Value
    type: ScalarName


class Call(Struct, frozen=True):
    """An operation. `word` says more where the operation needs it: the type of a cast, the name of a field."""

    name: str
    arguments: tuple[Term, ...]
    word: str = ""


class Lambda(Struct, frozen=True):
    """A condition on each item of an array, which is the column `item` in it."""

    item: int
    body: Term


Term: TypeAlias = "Column | Literal | Call | Lambda"
Flag: TypeAlias = "Term | bool"
"""A condition that is never NULL, or known already."""

TRUE = Literal(value=True, type="boolean")
FALSE = Literal(value=False, type="boolean")


def call(name: str, *arguments: Term, word: str = "") -> Call:
    """An operation on terms."""
    return Call(name, arguments, word)


def term_of(flag: Flag) -> Term:
    """A flag as a term."""
    if isinstance(flag, bool):
        return TRUE if flag else FALSE
    return flag


def all_of(*flags: Flag) -> Flag:
    """Whether all hold."""
    left = tuple(dict.fromkeys(flag for flag in flags if not isinstance(flag, bool)))
    if any(flag is False for flag in flags):
        return False
    return True if not left else left[0] if len(left) == 1 else Call("and", left)


def any_of(*flags: Flag) -> Flag:
    """Whether one holds."""
    left = tuple(dict.fromkeys(flag for flag in flags if not isinstance(flag, bool)))
    if any(flag is True for flag in flags):
        return True
    return False if not left else left[0] if len(left) == 1 else Call("or", left)


def not_of(flag: Flag) -> Flag:
    """Whether it does not hold."""
    if isinstance(flag, bool):
        return not flag
    return flag.arguments[0] if isinstance(flag, Call) and flag.name == "not" else call("not", flag)


def columns_in(*terms: Term) -> frozenset[int]:
    """The columns that terms read, those that a lambda brings with it left out."""
    found: set[int] = set()
    own: set[int] = set()
    for term in _walk(terms):
        if isinstance(term, Column):
            found.add(term.id)
        elif isinstance(term, Lambda):
            own.add(term.item)
    return frozenset(found - own)


def _walk(terms: Iterable[Term]) -> Iterator[Term]:
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        yield term
        if isinstance(term, Call):
            waiting.extend(term.arguments)
        elif isinstance(term, Lambda):
            waiting.append(term.body)
