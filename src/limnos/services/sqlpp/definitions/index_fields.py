"""Fields of an index beside the type of its dataset: whether they exist, and whether arrays are arrays.

May import `sqlpp` and `names`. Must not know statements beyond the fields of an index.
"""

from __future__ import annotations

from limnos.names.path import Levels
from limnos.sqlpp import SqlppError, tree
from limnos.sqlpp.errors import compilation

NO_SUCH_FIELD, NO_ARRAY = 1014, 37


def check_fields(type_: tree.RecordType, statement: tree.CreateIndex) -> None:
    """Check the fields of an index. Raises SqlppError."""
    for field in statement.fields:
        if isinstance(field, tree.IndexField):
            _field(type_, field.path[:1], at=field)
        else:
            _check_array(type_, field)


def _check_array(type_: tree.RecordType, field: tree.UnnestField) -> None:
    within: tree.TypeExpression | None = type_
    typed = all(each.type is not None for each in field.fields)
    for path in field.arrays:
        declared_type = _field(within, path, at=field) if isinstance(within, tree.RecordType) else None
        if declared_type is None and not typed:
            raise compilation(f"cannot find type of elements of field '{'.'.join(path)}'", field.at)
        if declared_type is not None and not isinstance(declared_type, (tree.ArrayType, tree.BagType)):
            text = f"Type mismatch: expected value of type array or multiset, but got the value of type {_word(declared_type)}"
            raise SqlppError(NO_ARRAY, text, field.at)
        within = None if declared_type is None else declared_type.item
    for each in field.fields:
        if not each.path or not isinstance(within, tree.RecordType):
            continue
        if _field(within, each.path, at=each) is None and each.type is None:
            raise compilation(f"cannot find type of field '{'.'.join(each.path)}'", each.at)


def _field(
    type_: tree.RecordType, path: Levels, *, at: tree.IndexField | tree.UnnestField
) -> tree.TypeExpression | None:
    """The declared type at a path; None for a field of an open type. Raises SqlppError for one of a closed type."""
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
