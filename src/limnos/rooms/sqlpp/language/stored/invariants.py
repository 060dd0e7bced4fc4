# SPDX-License-Identifier: Apache-2.0
"""Checks that the table of a dataset remains a valid dataset after changes by other clients.

Must not know requests or tables. The functions take schemas and properties as Iceberg's JSON and return a description
of the first violation. Columns that SQL++ does not use may be added freely.
"""

from __future__ import annotations

from collections.abc import Mapping

from limnos.model.dataset_properties import ALLOWED, OUTSIDE_WRITERS, REFUSED
from limnos.rooms.sqlpp.language.stored.schema import OPEN, WRITES, columns, has_open
from limnos.rooms.sqlpp.language.stored.types import StorageForm

_OWN = "sqlpp."
_ISOLATION = ".isolation-level"
_WORDS = frozenset({"doc", "initial-default", "write-default"})
"""Attributes of a field whose change does not change the meaning of its values."""


def broken_schema(form: StorageForm, *, before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
    """Return the first part of a dataset's table that a schema change would break for SQL++, such as `its column a`;
    None if there is none.
    """
    old, new = _fields(before), _fields(after)
    names = [field.name for field in columns(form.type)] + [OPEN] * has_open(form.type)
    for name in names:
        if name in old and (name not in new or _meaning(old[name]) != _meaning(new[name])):
            return f"its column {name}" if name in new else f"its column {name}, which would be dropped"
    for name in new:
        if name not in old and name in names:
            return f"its column {name}"
    for name, field in new.items():
        if name not in names and field.get("required") is True and _meaning(old.get(name, {})) != _meaning(field):
            return f"the column {name}, which would be required, and SQL++ statements do not write it"
    if _identifiers(before) != _identifiers(after):
        return "its identifier fields, which are its key"
    return None


def broken_property(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """Return the first protected property that would change: an isolation level, or a property with the prefix
    `sqlpp.`.

    `sqlpp.outside-writers` is not protected.
    """
    guarded = {name for name in WRITES if name.endswith(_ISOLATION)}
    guarded |= {name for name in {*before, *after} if name.startswith(_OWN) and name != OUTSIDE_WRITERS}
    return next((name for name in sorted(guarded) if before.get(name) != after.get(name)), None)


def takes_outside_writers(properties: Mapping[str, str]) -> bool:
    """Return whether clients other than SQL++ may write rows."""
    return properties.get(OUTSIDE_WRITERS, REFUSED) == ALLOWED


def _fields(schema: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    result = schema.get("fields")
    rows = result if isinstance(result, (list, tuple)) else ()
    return {str(row["name"]): row for row in rows if isinstance(row, Mapping)}


def _meaning(value: object) -> object:
    """Return a schema field, or a part of it, without attributes that only describe it, such as its documentation."""
    if isinstance(value, Mapping):
        return {name: _meaning(part) for name, part in value.items() if name not in _WORDS}
    return [_meaning(part) for part in value] if isinstance(value, (list, tuple)) else value


def _identifiers(schema: Mapping[str, object]) -> list[str]:
    result = schema.get("identifier-field-ids")
    return sorted(map(str, result)) if isinstance(result, (list, tuple)) else []
