# SPDX-License-Identifier: Apache-2.0
"""Access to parts of values: fields, items, slices.

Must not know paths of the syntax tree. A part of MISSING is MISSING and of NULL is NULL. An absent field and an item
beyond the end are MISSING. Other values have no fields (MISSING) and no items (NULL).
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Value, is_unknown


def field(value: Value, name: str) -> Value:
    """Return `value.name`: MISSING for an absent field, NULL for NULL."""
    if value is None:
        return None
    return value.get(name, MISSING) if isinstance(value, dict) else MISSING


def element(value: Value, index: Value) -> Value:
    """Return `value[index]`, 0-based, or from the end if negative. A double must be integral.

    For a multiset the result is any of its items.
    """
    if is_unknown(value) or is_unknown(index):
        return MISSING if value is MISSING or index is MISSING else None
    items, position = _items(value), _position(index)
    if items is None or position is None:
        return None
    position += len(items) if position < 0 else 0
    return items[position] if 0 <= position < len(items) else MISSING


def part(value: Value, start: Value, end: Value) -> Value:
    """Return `value[start:end]` (`end` exclusive); NULL if the bounds are out of range or select no item."""
    bounds = (value, start, end)
    if any(is_unknown(bound) for bound in bounds):
        return MISSING if any(bound is MISSING for bound in bounds) else None
    items, first, last = _items(value), _position(start), _position(end)
    if items is None or first is None or last is None:
        return None
    first += len(items) if first < 0 else 0
    last += len(items) if last < 0 else 0
    if not 0 <= first < last <= len(items):
        return None
    return Bag(items[first:last]) if isinstance(value, Bag) else items[first:last]


def part_from(value: Value, start: Value) -> Value:
    """Return `value[start:]`, the items from `start` to the end."""
    items = _items(value)
    return part(value, start, MISSING if value is MISSING else None if items is None else len(items))


def _items(value: Value) -> tuple[Value, ...] | None:
    return tuple(value) if isinstance(value, Bag) or type(value) is tuple else None


def _position(index: Value) -> int | None:
    """Return an index as an int; None for a value that is not an integral number."""
    if isinstance(index, bool) or not isinstance(index, (int, float)):
        return None
    return int(index) if isinstance(index, int) or index.is_integer() else None
