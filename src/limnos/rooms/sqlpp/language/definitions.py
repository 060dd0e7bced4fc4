# SPDX-License-Identifier: Apache-2.0
"""Parses stored CREATE statements.

Must not know the store. Each text is parsed once and cached: a stored text never changes. A stored statement contains
the names that objects had at its creation; the server's tree has their current names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.parser import parse
from limnos.rooms.sqlpp.language.tree import Statement

S = TypeVar("S", bound="Statement")
DIALECT: Final = "sqlpp"
"""The dialect of view representations that SQL++ reads."""


@lru_cache(4096)
def statement_of(text: str) -> Statement:
    """Parse one statement that the printer wrote. Raises SqlppError for a syntax error."""
    (parsed,) = parse(text)
    return parsed.statement


def statements_of(texts: Iterable[str], kind: type[S]) -> tuple[S, ...]:
    """Parse texts and return the statements of one type. A function has one statement for each arity."""
    return tuple(each for each in map(statement_of, texts) if isinstance(each, kind))


def arity_of(function: tree.CreateFunction) -> int:
    """Return the number of a function's parameters; VARIADIC for any number."""
    return tree.VARIADIC if function.parameters is None else len(function.parameters)


def signature(name: str, arity: int) -> str:
    """Return a function's signature for messages, such as `f(2)`."""
    return f"{name}({'...' if arity == tree.VARIADIC else arity})"


def index_name(statement: tree.CreateIndex | tree.CreatePrimaryIndex, dataset: str) -> str:
    """Return the name of an index; a primary index without a name gets AsterixDB's default name."""
    return statement.name or f"primary_idx_{dataset}"


class _ViewRepresentation(msgspec.Struct):
    sql: str = ""
    dialect: str = ""


class _ViewVersion(msgspec.Struct, rename="kebab"):
    version_id: int
    representations: list[_ViewRepresentation] = []


class _ViewDocument(msgspec.Struct, rename="kebab"):
    current_version_id: int
    versions: list[_ViewVersion]


def view_definition(document: bytes | msgspec.Raw) -> str | None:
    """Return the SQL++ text of a view's current version; None if it has none. `document` is the view's metadata
    JSON.
    """
    view_document = msgspec.json.decode(document, type=_ViewDocument)
    current = next(each for each in view_document.versions if each.version_id == view_document.current_version_id)
    return next((each.sql for each in current.representations if each.dialect.lower() == DIALECT), None)
