# SPDX-License-Identifier: Apache-2.0
"""Functions on dataverse names: conversion between the canonical form and the parts.

Must not know plans. A name of one part is a string; a name of several parts is an array.
"""

from __future__ import annotations

from limnos.names.dataverse import DataverseName
from limnos.names.errors import InvalidName
from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import character_cost
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Value


@scalar("decode_dataverse_name", least=1, cost=character_cost)
def decode(value: Value) -> Value:
    """Split a name in canonical form into its parts, always an array; NULL if it is malformed."""
    if not isinstance(value, str):
        return None
    try:
        return tuple(DataverseName.from_canonical_form(value).parts)
    except InvalidName:
        return None


@scalar("encode_dataverse_name", least=1, cost=character_cost)
def encode(value: Value) -> Value:
    """Return the canonical form of a name; NULL if it is malformed."""
    parts = (value,) if isinstance(value, str) else items(value)
    if parts is None or not parts or not all(isinstance(part, str) for part in parts):
        return None
    try:
        return DataverseName.create(str(part) for part in parts).canonical_form
    except InvalidName:
        return None
