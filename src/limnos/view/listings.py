# SPDX-License-Identifier: Apache-2.0
"""Listings in blocks: a block caches all names of one kind under one parent within a range, and is updated from change
rows.

Adding or removing a name costs a copy of one block, regardless of the number of siblings; a change elsewhere costs
nothing. A change row without the needed details invalidates the block, which is then read again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import itemgetter
from typing import Final, TypeVar

import msgspec

from limnos.model.entities import ChangeRow, Listing
from limnos.view.keys import Key, Space, block_key

T = TypeVar("T")
BLOCK: Final = 512
"""Names per block when it is read. A block that has grown to twice as many is read again as two."""
_BEGIN: Final = itemgetter(0)


class BlockIndex:
    """The index of cached blocks: for each listing its blocks, in order of their ranges.

    A block's key ends with its range: `after`, `until` ("" means no end).
    """

    def __init__(self) -> None:
        self._blocks: dict[Space, list[tuple[str, str]]] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, key: Key[Listing]) -> list[Key[Listing]]:
        """Register a block. Returns the keys of overlapping blocks, which the caller must remove from the cache."""
        space, after, until = key[1:4], key[4], key[5]
        blocks = self._blocks.setdefault(space, [])
        at = bisect_left(blocks, (after, until))
        if at < len(blocks) and blocks[at] == (after, until):
            return []
        first = at
        while first > 0 and (blocks[first - 1][1] == "" or blocks[first - 1][1] > after):
            first -= 1
        last = at
        while last < len(blocks) and (until == "" or blocks[last][0] < until):
            last += 1
        over = [block_key(space, *blocks[index]) for index in range(first, last)]
        insort(blocks, (after, until))
        return over

    def remove(self, key: Key[Listing]) -> None:
        """Remove a block from the index. No-op if it is not in the index."""
        blocks = self._blocks.get(key[1:4], [])
        at = bisect_left(blocks, (key[4], key[5]))
        if at < len(blocks) and blocks[at] == (key[4], key[5]):
            del blocks[at]
            if not blocks:
                del self._blocks[key[1:4]]

    def __contains__(self, space: Space) -> bool:
        """Return whether any block of a listing is cached."""
        return space in self._blocks

    def find_block(self, space: Space, name: str) -> Key[Listing] | None:
        """Return the key of the cached block whose range includes a name, or None."""
        return self._nearest(space, bisect_left(self._blocks.get(space, ()), (name,)), name, ends_there=True)

    def following(self, space: Space, after: str) -> Key[Listing] | None:
        """Return the key of the cached block whose range starts at `after` or includes the names right after it; None
        if none does.
        """
        at = bisect_right(self._blocks.get(space, ()), after, key=_BEGIN)
        return self._nearest(space, at, after, ends_there=False)

    def _nearest(self, space: Space, at: int, name: str, *, ends_there: bool) -> Key[Listing] | None:
        if at == 0:
            return None
        after, until = self._blocks[space][at - 1]
        if until and (until < name or (until == name and not ends_there)):
            return None
        return block_key(space, after, until)

    def gap(self, space: Space, after: str) -> tuple[str, str] | None:
        """Return the first uncached range after a name; None if all later names of the listing are cached.

        The end of the range is "" if no cached block follows.
        """
        blocks = self._blocks.get(space, ())
        at = bisect_right(blocks, after, key=_BEGIN)
        if at and (blocks[at - 1][1] == "" or blocks[at - 1][1] > after):
            after = blocks[at - 1][1]
            if after == "":
                return None
        while at < len(blocks) and blocks[at][0] == after:
            after = blocks[at][1]
            if after == "":
                return None
            at += 1
        return after, blocks[at][0] if at < len(blocks) else ""

    def keys(self, space: Space) -> list[Key[Listing]]:
        """Return the keys of all cached blocks of a listing."""
        return [block_key(space, *ends) for ends in self._blocks.get(space, ())]


def names_touched(change: ChangeRow, space: Space) -> list[str] | None:
    """Return the names of a listing that a change affects, or None if the change row does not contain them."""
    parent_id, name_space, kind = space
    if change.kind is not kind or change.name_space != name_space:
        return []
    if change.operation == "own":
        if change.old_parent != parent_id:
            return []
        return None if change.new_name is None else [change.new_name]
    pairs = ((change.old_parent, change.old_name), (change.new_parent, change.new_name))
    return [name for parent, name in pairs if parent == parent_id and name is not None]


def touches_block(change: ChangeRow, key: Key[Listing]) -> bool:
    """Return whether a change affects a name in the range of a cached block of a listing."""
    names = names_touched(change, key[1:4])
    if names is None:
        return True
    after, until = key[4], key[5]
    return any(after < name and (until == "" or name <= until) for name in names)


def patch_block(without: Listing, change: ChangeRow, parent_id: int) -> Listing | None:
    """Return a block updated by a change to one child of `parent_id`, or None if the block must be read again."""
    if change.operation == "own":
        return _with_owner(without, change)
    if change.old_parent == parent_id and change.old_name is not None:
        without = _without(without, change.old_name)
    if change.new_parent != parent_id or change.new_name is None:
        return without
    return _with(without, change) if change.operation == "create" else None


def _without(result: Listing, name: str) -> Listing:
    at = bisect_left(result.names, name)
    if at == len(result.names) or result.names[at] != name:
        return result
    return Listing(
        result.names[:at] + result.names[at + 1 :],
        result.ids[:at] + result.ids[at + 1 :],
        result.owners[:at] + result.owners[at + 1 :],
        result.encoded[:at] + result.encoded[at + 1 :],
    )


def _with(result: Listing, change: ChangeRow) -> Listing | None:
    if len(result.names) >= 2 * BLOCK:
        return None
    name = change.new_name or ""
    at = bisect_left(result.names, name)
    return Listing(
        _put(result.names, at, name),
        _put(result.ids, at, change.node_id),
        _put(result.owners, at, change.owner_id),
        _put(result.encoded, at, msgspec.json.encode(name)),
    )


def _put(column: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*column[:at], value, *column[at:])


def _with_owner(result: Listing, change: ChangeRow) -> Listing | None:
    if change.node_id not in result.ids:
        return None
    at = result.ids.index(change.node_id)
    return msgspec.structs.replace(result, owners=(*result.owners[:at], change.owner_id, *result.owners[at + 1 :]))
