# SPDX-License-Identifier: Apache-2.0
"""Index rules: the valid combinations of an index's keys and options.

Must not know datasets: rules about the type of a dataset's objects are checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.stored import BUILT_IN

INCOMPATIBLE_INDEX = 1155
UNENFORCED_INDEX, ENFORCED_INDEX, REPEATED_FIELD, UNKNOWN_PARAMETER = 1042, 1043, 1052, 1092
FORMATTED = ("date", "time", "datetime")


def check_index(statement: tree.CreateIndex) -> None:
    """Check a combination of keys and options. Raises SqlppError for one that AsterixDB refuses."""
    if any(
        field.type is None
        for field in statement.fields
        if isinstance(field, tree.IndexField) and statement.cast is not None
    ):
        raise compilation("CAST modifier is used without specifying the type of the indexed field", statement.at)
    arrays = [field for field in statement.fields if isinstance(field, tree.UnnestField)]
    paths = [field.path for field in statement.fields if isinstance(field, tree.IndexField)]
    repeated = next((path for at, path in enumerate(paths) if path in paths[:at]), None)
    if repeated is not None:
        text = f"Cannot create index with the same field '[{', '.join(repeated)}]' specified more than once."
        raise SqlppError(REPEATED_FIELD, text, statement.at)
    if statement.cast is not None and (arrays or statement.kind != "btree"):
        raise compilation("CAST modifier is only allowed for B-Tree indexes", statement.at)
    if arrays:
        _check_arrays(statement, arrays)
    if statement.cast is not None and statement.enforced:
        raise compilation("CAST modifier cannot be specified together with ENFORCED", statement.at)
    typed_flags = [field.type is not None for field in statement.fields if isinstance(field, tree.IndexField)]
    typed_flags += [field.type is not None for array in arrays for field in array.fields]
    if any(typed_flags) and not statement.enforced and statement.kind != "btree":
        word = statement.kind.upper()
        raise SqlppError(UNENFORCED_INDEX, f"Cannot create non-enforced typed index of this kind: {word}", statement.at)
    for field in statement.fields:
        if statement.enforced and isinstance(field, tree.IndexField) and field.type is not None and not field.optional:
            text = f"Cannot create enforced index on '[{', '.join(field.path)}]' field with non-optional type"
            raise SqlppError(ENFORCED_INDEX, text, statement.at)
    if arrays and any(typed_flags) and not all(typed_flags):
        raise compilation("Typed keys cannot be combined with untyped keys in the index definition.", statement.at)
    for option in statement.cast or ():
        if option.name not in FORMATTED:
            raise SqlppError(UNKNOWN_PARAMETER, f"Parameter {option.name} cannot be set", option.at)


def _check_arrays(statement: tree.CreateIndex, arrays: list[tree.UnnestField]) -> None:
    if statement.enforced or statement.kind != "btree":
        raise SqlppError(INCOMPATIBLE_INDEX, "Incompatible index type ARRAY", statement.at)
    if len(arrays) > 1:
        raise compilation(
            "Cannot create composite index with multiple array fields using different arrays", statement.at
        )
    if statement.unknown != "exclude":
        raise compilation("Array indexes must specify EXCLUDE UNKNOWN KEY", statement.at)


def check_enforced(others: Iterable[tree.CreateIndex], statement: tree.CreateIndex) -> None:
    """Check that no other enforced index declares other types for the same fields. Raises SqlppError."""
    fields = _typed_fields(statement)
    for other in others:
        typed_fields = _typed_fields(other)
        if (
            other.enforced
            and typed_fields
            and [path for path, _ in typed_fields] == [path for path, _ in fields]
            and typed_fields != fields
        ):
            paths, types = (",".join(words) for words in zip(*typed_fields, strict=True))
            text = (
                f"Cannot create index {statement.name} , enforced index {other.name} on field(s) '{paths}' is already"
                " defined"
            )
            raise compilation(f"{text} with type(s) '{types}'", statement.at)


def _typed_fields(statement: tree.CreateIndex) -> list[tuple[str, str]]:
    """Return the paths and the declared types of an index's fields; empty unless the index declares a type for each
    field.
    """
    fields = [field for field in statement.fields if isinstance(field, tree.IndexField)]
    types = [field.type for field in fields if isinstance(field.type, tree.NamedType)]
    if len(types) < len(statement.fields):
        return []
    names = [BUILT_IN.get(type_.name.last.lower(), type_.name.last) for type_ in types]
    return list(zip([".".join(field.path) for field in fields], names, strict=True))
