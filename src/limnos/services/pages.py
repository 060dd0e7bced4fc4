"""Pages of what a caller sees of a listing: from the view's sorted columns, or from the store when the list is too long.

May import the rooms below. A page goes on after a name, so it stays right while names come and go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from limnos.access.filters import EVERYTHING, ListFilter, list_filter
from limnos.model.entities import Listing
from limnos.view.cold import Cold
from limnos.view.facts import page_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.access.actions import Action
    from limnos.model.decisions import Chain
    from limnos.model.kinds import Kind
    from limnos.services.scene import Scene

READ_MAX = 50_000
"""Names that one statement reads of a list that is too long to be held."""


class Asked(NamedTuple):
    """The page that is asked for: names after one, at most so many; None means all."""

    after: str = ""
    size: int | None = None


class Page(NamedTuple):
    """Names as JSON strings, in order; `last` is the name to go on after, None when nothing follows."""

    names: Sequence[bytes]
    last: str | None

    def texts(self) -> list[str]:
        """Return the names as text."""
        return msgspec.json.decode(b"[" + b",".join(self.names) + b"]", type=list[str])


EVERY = Asked()


def page_of(scene: Scene, action: Action, kind: Kind, chain: Chain, asked: Asked) -> Page:
    """Return a page of what the caller sees of a parent's children; `chain` begins with the parent."""
    found = scene.listing(chain[0].id, kind)
    if not found.whole:
        return _page_from_store(scene, kind, chain, _filter(scene, action, chain), asked)
    return _cut(found, _visible(scene, action, chain, found), asked)


def _filter(scene: Scene, action: Action, chain: Chain) -> ListFilter:
    if not scene.rules.access_enabled:
        return EVERYTHING
    return list_filter(scene.subject, action, chain, scene.owner_of)


def _visible(scene: Scene, action: Action, chain: Chain, found: Listing) -> list[int] | None:
    """Return the positions that the caller sees, None for all; remembered until the listing or access moves."""
    memo = scene.memo
    key = ("visible", scene.user, action, chain[0].id)
    known = cast("tuple[Listing, list[int] | None] | None", memo.get(key))
    if known is not None and known[0] is found:
        return known[1]
    shown = _filter(scene, action, chain)
    positions = None if shown.everything else shown.positions(found.ids, found.owners)
    memo[key] = (found, positions)
    return positions


def _cut(found: Listing, positions: list[int] | None, asked: Asked) -> Page:
    begin = bisect_right(found.names, asked.after) if asked.after else 0
    if positions is None:
        end = len(found.names) if asked.size is None else begin + asked.size
        return Page(found.encoded[begin:end], found.names[end - 1] if end < len(found.names) else None)
    first = bisect_left(positions, begin)
    last = len(positions) if asked.size is None else first + asked.size
    names = [found.encoded[position] for position in positions[first:last]]
    return Page(names, found.names[positions[last - 1]] if last < len(positions) else None)


def _page_from_store(scene: Scene, kind: Kind, chain: Chain, shown: ListFilter, asked: Asked) -> Page:
    """Read on until the page is full: what the caller may not see takes no place in it."""
    names: list[bytes] = []
    read_to, shown_to, wanted = asked.after, asked.after, asked.size
    limit = READ_MAX if wanted is None or not shown.everything else min(READ_MAX, wanted + 1)
    while True:
        part = _part(scene, kind, chain[0].id, read_to, limit)
        for position in shown.positions(part.ids, part.owners):
            if len(names) == wanted:
                return Page(names, shown_to)
            names.append(part.encoded[position])
            shown_to = part.names[position]
        if len(part.names) < limit:
            return Page(names, None)
        read_to = part.names[-1]


def _part(scene: Scene, kind: Kind, parent_id: int, after: str, limit: int) -> Listing:
    key = page_key(parent_id, scene.space(kind), kind, after, limit)
    part = scene.view.zones[scene.zone].pages.get(key)
    if part is None:
        raise Cold({key: scene.zone})
    return cast("Listing", part)
