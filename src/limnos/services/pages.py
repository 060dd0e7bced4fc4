"""Pages of what a caller sees of a listing, from the view's blocks; what is missing of them is read as the page gets there.

May import the rooms below. A page goes on after a name, so it stays right while names come and go.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.filters import EVERYTHING, ListFilter, list_filter
from limnos.view import listings
from limnos.view.cold import Cold
from limnos.view.keys import ABSENT, span_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.access.actions import Action
    from limnos.model.decisions import Chain
    from limnos.model.entities import Listing
    from limnos.model.kinds import Kind
    from limnos.services.scene import Scene
    from limnos.view.keys import Key, Space

READ_MAX = 10_000
"""Names that one statement reads: some milliseconds."""


class Asked(NamedTuple):
    """The page that is asked for: names after one, at most so many; None means all."""

    after: str = ""
    size: int | None = None


class Page(NamedTuple):
    """Names as JSON strings, in order and in parts; `last` is the name to go on after, None when nothing follows."""

    parts: Sequence[Sequence[bytes]]
    last: str | None

    @property
    def names(self) -> list[bytes]:
        """All parts as one."""
        return list(itertools.chain.from_iterable(self.parts))

    def texts(self) -> list[str]:
        """Return the names as text."""
        return msgspec.json.decode(b"[" + b",".join(self.names) + b"]", type=list[str])


EVERY = Asked()


def page_of(scene: Scene, action: Action, *, kind: Kind, chain: Chain, asked: Asked) -> Page:
    """Return a page of what the caller sees of a parent's children; `chain` begins with the parent."""
    listing = _Listing(scene, action, chain, space=(chain[0].id, scene.space(kind), kind))
    if asked.size is None:
        listing.need_all(asked.after)
    return listing.page(asked)


class _Listing:
    """A listing as one caller sees it, block by block."""

    def __init__(self, scene: Scene, action: Action, chain: Chain, *, space: Space) -> None:
        self.scene = scene
        self.space = space
        self.zone = scene.zone_of(space[2])
        self.about = (action, scene.user)
        self.shown = self._filter(chain) if scene.rules.access_enabled else EVERYTHING

    def _filter(self, chain: Chain) -> ListFilter:
        """Return what the caller sees of the listing, remembered until access moves."""
        memo, key = self.scene.memo, (*self.about, self.space)
        found: ListFilter | None = memo.get(key)
        if found is None:
            found = memo[key] = list_filter(self.scene.subject, self.about[0], chain, self.scene.owner_of)
        return found

    def need_all(self, after: str) -> None:
        """Raise Cold for the next part when some of the rest is missing, without a look at what is there."""
        gap = self.scene.view.shelves.gap(self.space, after)
        if gap is not None:
            self._want(gap, READ_MAX if gap[0] != after else listings.BLOCK)

    def page(self, asked: Asked) -> Page:
        """Go from block to block until the page is full; what the caller may not see takes no place in it."""
        parts: list[Sequence[bytes]] = []
        last, at, wanted = asked.after, asked.after, asked.size
        while True:
            key, block = self._block(at, began_at=asked.after, wanted=wanted)
            seen = self._seen(key, block)
            begin = bisect_right(block.names, at) if at == asked.after and at else 0
            first = begin if seen is None else bisect_left(seen, begin)
            count = len(block.names if seen is None else seen)
            end = count if wanted is None else min(count, first + wanted)
            if end > first:
                parts.append(block.encoded[first:end] if seen is None else [block.encoded[i] for i in seen[first:end]])
                last = block.names[end - 1 if seen is None else seen[end - 1]]
            if end < count:
                return Page(parts, last)
            if wanted is not None:
                wanted -= end - first
            at = key[5]
            if at == "":
                return Page(parts, None)

    def _block(self, after: str, *, began_at: str, wanted: int | None) -> tuple[Key[Listing], Listing]:
        view = self.scene.view
        key = view.shelves.following(self.space, after)
        found = ABSENT if key is None else view.get(key)
        if key is not None and found is not ABSENT:
            return key, found
        gap = view.shelves.gap(self.space, after) or (after, "")
        limit = listings.BLOCK if after == began_at else READ_MAX
        if wanted is not None and self.shown.everything:
            limit = min(READ_MAX, max(listings.BLOCK, wanted + 1))
        self._want(gap, limit)
        raise AssertionError("a gap is always wanted")

    def _want(self, gap: tuple[str, str], limit: int) -> None:
        raise Cold({span_key(self.space, gap, limit): self.zone}, goes_on=limit > listings.BLOCK)

    def _seen(self, key: Key[Listing], block: Listing) -> list[int] | None:
        """Return the positions that the caller sees, None for all; remembered until the block or access moves."""
        if self.shown.everything:
            return None
        memo = self.scene.memo
        known: tuple[Listing, list[int]] | None = memo.get((key, self.about))
        if known is not None and known[0] is block:
            return known[1]
        positions = self.shown.positions(block.ids, block.owners)
        memo[key, self.about] = (block, positions)
        return positions
