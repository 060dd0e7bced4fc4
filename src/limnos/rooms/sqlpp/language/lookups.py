# SPDX-License-Identifier: Apache-2.0
"""Finds scans that can be executed as lookups by primary key or by an index.

Must not know an engine. If conditions fix a key, the engine needs to read only that object. The same holds if
conditions on an index's fields match few objects. The whole statement is then evaluated over the objects read.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.engine_semantics import WHOLE, column_type, is_exact, literal
from limnos.rooms.sqlpp.language.stored import StorageForm, at_path
from limnos.rooms.sqlpp.language.values.model import MISSING, Value

SCANS_MAX: Final = 4
"""The maximum number of datasets in a statement that is executed by lookups only."""
_NAMED = WHOLE | {"string", "date", "datetime"}
KeyConditions: TypeAlias = Sequence[Condition]
"""An equality condition for each of a dataset's key fields."""


class LookupIndex(Struct, frozen=True):
    """An index that lookups can use, with its fields in order."""

    name: str
    paths: tuple[tuple[str, ...], ...]


class Lookup(NamedTuple):
    """A lookup: conditions whose values have the columns' types, and the name of the index (None for the primary
    key).
    """

    conditions: KeyConditions
    by: str | None


def lookup_in(
    form: StorageForm, conditions: Sequence[Condition], *, indexes: Sequence[LookupIndex] = ()
) -> Lookup | None:
    """Return the lookup by which a scan with these conditions can be executed: by the primary key, or by an index.

    None if the conditions fix neither the key nor the first field of an index.
    """
    key = key_in(form, conditions)
    if key is not None:
        return Lookup(key, None)
    lookups = [Lookup(_index_conditions(form, index, among=conditions), index.name) for index in indexes]
    return (
        max(lookups, key=lambda one: len(one.conditions), default=None)
        if any(one.conditions for one in lookups)
        else None
    )


def _index_conditions(form: StorageForm, index: LookupIndex, *, among: Sequence[Condition]) -> KeyConditions:
    """Return the conditions on an index's fields; empty if the first field has no condition."""
    fit = [
        one for one in among if one.path in index.paths and is_exact(form.type, one) and _has_unique_spelling(form, one)
    ]
    return tuple(_cast_condition(form, one) for one in fit) if any(one.path == index.paths[0] for one in fit) else ()


def _has_unique_spelling(form: StorageForm, condition: Condition) -> bool:
    """Return whether equal values of the field's type have identical representations, unlike floating-point numbers."""
    type_ = column_type(form.type, condition.path)
    return type_ is not None and type_.name in _NAMED


def _cast_condition(form: StorageForm, condition: Condition) -> Condition:
    """Return a condition with values converted to the field's type. Raises TypeError if it has no column."""
    type_, value = column_type(form.type, condition.path), condition.value
    if type_ is None:
        raise TypeError(f"{condition.path} is not a column")
    if condition.operator == "in" and isinstance(value, tuple):
        return Condition(condition.path, "in", tuple(literal(type_, each) for each in value))
    return Condition(condition.path, condition.operator, literal(type_, value))


def key_in(form: StorageForm, conditions: Sequence[Condition]) -> KeyConditions | None:
    """Return the equality conditions on all key fields; None if the conditions do not fix the key."""
    results = [_equality_condition(form, path, among=conditions) for path in form.keys]
    key = tuple(one for one in results if one is not None)
    return key if key and len(key) == len(results) else None


def _equality_condition(form: StorageForm, path: tuple[str, ...], *, among: Sequence[Condition]) -> Condition | None:
    """Return the equality condition on a field, with the value converted to the field's type; None if there is none."""
    type_ = column_type(form.type, path)
    for one in among:
        if type_ is None or one.path != path or one.operator != "=":
            continue
        value = one.value if type_.name == "uuid" and isinstance(one.value, uuid.UUID) else literal(type_, one.value)
        if value is not MISSING:
            return Condition(path, "=", value)
    return None


def key_of(form: StorageForm, one: dict[str, Value]) -> KeyConditions:
    """Return the key of an object, as conditions."""
    return tuple(Condition(path, "=", at_path(one, path)) for path in form.keys)
