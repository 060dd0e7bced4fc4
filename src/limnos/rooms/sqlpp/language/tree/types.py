# SPDX-License-Identifier: Apache-2.0
"""Types in declarations: names, arrays, multisets and records.

Must not know the built-in names.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.tree.base import DottedName, SyntaxNode, TypeExpression


class NamedType(TypeExpression, frozen=True):
    """A reference to a built-in or user type by name."""

    name: DottedName


class ArrayType(TypeExpression, frozen=True):
    """An array type: `[T]`."""

    item: TypeExpression


class BagType(TypeExpression, frozen=True):
    """A multiset type: `{{T}}`."""

    item: TypeExpression


class FieldType(SyntaxNode, frozen=True):
    """A declared field; an optional one may be NULL or MISSING."""

    name: str
    type: TypeExpression
    optional: bool


class RecordType(TypeExpression, frozen=True):
    """A record type: `{ name: T, … }`; an open one allows further fields."""

    open: bool
    fields: tuple[FieldType, ...]
