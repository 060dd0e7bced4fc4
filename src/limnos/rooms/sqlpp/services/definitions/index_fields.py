# SPDX-License-Identifier: Apache-2.0
"""Checks the fields of an index against the type of its dataset: existence, types and arrays.

Must not know statements beyond the fields of an index.
"""

from __future__ import annotations

from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.stored import BUILT_IN

NO_SUCH_FIELD, WRONG_TYPE = 1014, 37


def check_fields(type_: tree.RecordType, statement: tree.CreateIndex) -> None:
    """Check the fields of an index. Raises SqlppError for a field that a closed type lacks, a type other than the
    declared one, an array of unknown type, and typed fields beside untyped ones.
    """
    typed_flags = set()
    for field in statement.fields:
        if isinstance(field, tree.UnnestField):
            _check_array(type_, field)
            continue
        declared_type = _field(type_, field.path[:1], at=field) if len(field.path) == 1 else _nested_type(type_, field)
        typed_flags.add(field.type is not None or declared_type is not None)
        scalar_types = [_scalar(each) for each in (declared_type, field.type)]
        if statement.cast is None and None not in scalar_types and scalar_types[0] != scalar_types[1]:
            text = (
                f"Type mismatch: expected value of type {scalar_types[0]}, but got the value of type {scalar_types[1]}"
            )
            raise SqlppError(WRONG_TYPE, text, field.at)
    if len(typed_flags) > 1:
        raise compilation("Typed keys cannot be combined with untyped keys in the index definition.", statement.at)


def _nested_type(type_: tree.RecordType, field: tree.IndexField) -> tree.TypeExpression | None:
    """Return the declared type of a nested field; None if it is not declared. Raises SqlppError if a closed type lacks
    its first name.
    """
    _field(type_, field.path[:1], at=field)
    within: tree.TypeExpression | None = type_
    for name in field.path:
        fields = within.fields if isinstance(within, tree.RecordType) else ()
        within = next((each.type for each in fields if each.name == name), None)
    return within


def _scalar(type_: tree.TypeExpression | None) -> str | None:
    """Return the canonical name of a built-in type, with aliases resolved; None for another type."""
    return BUILT_IN.get(type_.name.last.lower()) if isinstance(type_, tree.NamedType) else None


def _check_array(type_: tree.RecordType, field: tree.UnnestField) -> None:
    within: tree.TypeExpression | None = type_
    all_typed = all(each.type is not None for each in field.fields)
    for path in field.arrays:
        declared_type = _field(within, path, at=field) if isinstance(within, tree.RecordType) else None
        if declared_type is None and not all_typed:
            raise compilation(f"cannot find type of elements of field '{'.'.join(path)}'", field.at)
        if declared_type is not None and not isinstance(declared_type, (tree.ArrayType, tree.BagType)):
            text = (
                "Type mismatch: expected value of type array or multiset, but got the value of type"
                f" {_word(declared_type)}"
            )
            raise SqlppError(WRONG_TYPE, text, field.at)
        within = None if declared_type is None else declared_type.item
    for each in field.fields:
        if not each.path or not isinstance(within, tree.RecordType):
            continue
        if _field(within, each.path, at=each) is None and each.type is None:
            raise compilation(f"cannot find type of field '{'.'.join(each.path)}'", each.at)


def _field(
    type_: tree.RecordType, path: Levels, *, at: tree.IndexField | tree.UnnestField
) -> tree.TypeExpression | None:
    """Return the declared type at a path; None if it is not declared. Raises SqlppError for a field that a closed type
    lacks.
    """
    within: tree.TypeExpression = type_
    for name in path:
        if not isinstance(within, tree.RecordType):
            return None
        declared_type = next((each for each in within.fields if each.name == name), None)
        if declared_type is None:
            if not within.open:
                raise SqlppError(NO_SUCH_FIELD, f"Field '{'.'.join(path)}' is not found", at.at)
            return None
        within = declared_type.type
    return within


def _word(type_: tree.TypeExpression) -> str:
    return type_.name.last if isinstance(type_, tree.NamedType) else "object"
