"""Listings that follow changes without being read again: one name in, one name out, in sorted columns.

May import `model`. A change that does not say enough makes the listing unusable, and it is read again.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeVar

import msgspec

from limnos.model.entities import Listing

if TYPE_CHECKING:
    from limnos.model.entities import Change

T = TypeVar("T")


def patched(found: Listing, change: Change, parent_id: int) -> Listing | None:
    """Return the listing of a parent's children after a change to one of them; None when it must be read again."""
    if not found.whole:
        return None
    if change.operation == "own":
        return _owned(found, change)
    if change.old_parent == parent_id and change.old_name is not None:
        found = _without(found, change.old_name)
    if change.new_parent != parent_id or change.new_name is None:
        return found
    return _with(found, change) if change.operation == "create" else None


def _without(found: Listing, name: str) -> Listing:
    at = bisect_left(found.names, name)
    if at == len(found.names) or found.names[at] != name:
        return found
    return Listing(
        found.names[:at] + found.names[at + 1 :], found.ids[:at] + found.ids[at + 1 :],
        found.owners[:at] + found.owners[at + 1 :], found.encoded[:at] + found.encoded[at + 1 :],
    )  # fmt: skip


def _with(found: Listing, change: Change) -> Listing:
    name = change.new_name or ""
    at = bisect_left(found.names, name)
    return Listing(
        _put(found.names, at, name), _put(found.ids, at, change.node_id), _put(found.owners, at, change.owner_id),
        _put(found.encoded, at, msgspec.json.encode(name)),
    )  # fmt: skip


def _put(column: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*column[:at], value, *column[at:])


def _owned(found: Listing, change: Change) -> Listing | None:
    if change.node_id not in found.ids:
        return None
    at = found.ids.index(change.node_id)
    return msgspec.structs.replace(found, owners=(*found.owners[:at], change.owner_id, *found.owners[at + 1 :]))
