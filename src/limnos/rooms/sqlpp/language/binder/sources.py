# SPDX-License-Identifier: Apache-2.0
"""Type checks of sources of rows at binding time.

Must not know scopes.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.values.model import is_unknown, type_name

NO_COLLECTION = 1091


def require_collection(value: plan.Expression, object_slots: AbstractSet[int]) -> None:
    """Check that a source of rows can be a collection.

    Raises SqlppError (ASX1091) for a constant that is not a collection, and for an object of a dataset. The types of
    other values are known only at execution.

    Args:
        value: The source.
        object_slots: The slots of the variables that are objects of datasets.
    """
    if isinstance(value, plan.ObjectOf) or (isinstance(value, plan.Local) and value.slot in object_slots):
        name = "object"
    elif isinstance(value, plan.Constant) and not is_unknown(value.value) and items(value.value) is None:
        name = type_name(value.value)
    else:
        return
    words = f"Type mismatch: expected value of type multiset or array, but got the value of type {name}"
    raise SqlppError(NO_COLLECTION, words, value.at)
