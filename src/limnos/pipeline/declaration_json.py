# SPDX-License-Identifier: Apache-2.0
"""JSON of a declaration, for the server's record of a pipeline and for digests of its steps.

Must not know runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING

from limnos.pipeline.declaration import Pipeline

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_UNTOLD = ("at", "callable", "model_callable", "tests", "production", "tables", "expand", "query_at")
"""Fields that affect neither a step's rows nor its table, or that have no JSON form."""


def encode_declaration(pipeline: Pipeline) -> dict[str, object]:
    """Encode a declaration without source positions and without fields that have their defaults."""
    return _fields(pipeline)


def plain(value: object) -> object:
    """Convert a declaration's value to JSON: without positions, functions and fields that have their defaults."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return value


def _fields(value: DataclassInstance) -> dict[str, object]:
    defaults = {field.name: field.default for field in fields(value) if field.name not in _UNTOLD}
    result = {name: getattr(value, name) for name in defaults}
    entries = {name: plain(each) for name, each in result.items() if each != defaults[name]}
    kind = _KINDS.get(type(value).__name__)
    entry = {name: each for name, each in entries.items() if each not in ([], {})}
    return entry if kind is None else {"kind": kind, **entry}


_KINDS = {
    "Files": "files",
    "TableSource": "table",
    "Jdbc": "jdbc",
    "Kafka": "kafka",
    "PythonSource": "python",
    "Stream": "stream",
    "SystemTableSource": "system",
    "StorageSource": "storage",
    "HarvestSource": "harvest",
    "RegistrationSource": "register",
    "Sql": "sql",
    "PythonStep": "python",
    "Load": "load",
}
"""The values of the field `kind`, which distinguishes the types that a field may have."""
