# SPDX-License-Identifier: Apache-2.0
"""Name pages: keyset pagination over the names in a listing that are visible to the caller, from the view's blocks of
names.

A block that is not cached is read when a page reaches it. A page begins after a name, so it is correct even if names
are added or removed between two pages.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple
from weakref import ref

import msgspec

from limnos.access.actions import Action
from limnos.access.browsing import NO_PATHS, BrowsePaths
from limnos.access.filters import EVERYTHING, ListFilter, list_filter, widen_filter
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Listing
from limnos.model.kinds import Kind
from limnos.services.request.browsing import paths_of
from limnos.services.request.request_view import RequestView
from limnos.view import listings
from limnos.view.cache_miss import CacheMiss
from limnos.view.keys import ABSENT, Key, Space, span_key

READ_MAX = 10_000
"""The number of names that one statement reads: some milliseconds."""
VISIBLE_NAMES_MAX = 500_000
"""The maximum number of visible names cached per zone: ten bytes each, or about seventy if their block is no longer
cached.
"""
VISIBLE_NAMES_OVERHEAD = 10
"""The overhead of one cached block, counted in names."""


class PageRequest(NamedTuple):
    """A request for a page: at most `size` names (None: all) that sort after `after`."""

    after: str = ""
    size: int | None = None


class NamePage(NamedTuple):
    """A page of names as JSON strings, in order and in parts.

    `last` is the name after which the next page begins; None on the last page.
    """

    parts: Sequence[tuple[bytes, ...]]
    last: str | None
    whole: bool = False
    """Whether each part has all names of its block that the caller sees.

    If so, the identical tuples are returned while nothing changes.
    """

    @property
    def names(self) -> list[bytes]:
        """Return the names of all parts as one list of JSON strings."""
        return list(itertools.chain.from_iterable(self.parts))

    def texts(self) -> list[str]:
        """Return the names decoded from JSON."""
        return msgspec.json.decode(b"[" + b",".join(self.names) + b"]", type=list[str])


class IdsPage(NamedTuple):
    """A page of names with ids, in order; `last` is the name after which the next page begins; None on the last
    page.
    """

    names: list[tuple[str, int]]
    last: str | None


class VisibleNames(NamedTuple):
    """The names of a block that are visible to one caller: their ascending positions in the block, and the names as
    JSON strings.
    """

    block: ref[Listing]
    positions: Sequence[int]
    encoded: tuple[bytes, ...]


class VisibleNamesCache:
    """Recently used visible names, by block and caller. When the cache is full, its older half is evicted."""

    def __init__(self) -> None:
        self._recent_names: dict[object, VisibleNames] = {}
        self._older_names: dict[object, VisibleNames] = {}
        self._recent_count = 0

    def get(self, key: object) -> VisibleNames | None:
        """Return the cached visible names; the caller checks that they belong to the current block."""
        names = self._recent_names.get(key)
        if names is None and (names := self._older_names.get(key)) is not None:
            self.put(key, names)
        return names

    def put(self, key: object, seen: VisibleNames) -> None:
        """Cache names under a key.

        When new entries exceed half of VISIBLE_NAMES_MAX names, the older half of the cache is evicted.
        """
        self._recent_names[key] = seen
        self._recent_count += VISIBLE_NAMES_OVERHEAD + len(seen.encoded)
        if self._recent_count > VISIBLE_NAMES_MAX // 2:
            self._older_names, self._recent_names, self._recent_count = self._recent_names, {}, 0


def visible_names_all(block: Listing) -> VisibleNames:
    """Return the visible names of a block in which nothing is hidden."""
    return VisibleNames(ref(block), range(len(block.names)), block.encoded)


def _visible_names_of(block: Listing, output: ListFilter) -> VisibleNames:
    positions = array("H", output.positions(block.ids, block.owners))
    if len(positions) == len(block.names):
        return visible_names_all(block)
    return VisibleNames(ref(block), positions, tuple([block.encoded[position] for position in positions]))


ALL_NAMES = PageRequest()
EMPTY_PAGE = NamePage((), None)
"""The page of a listing that is always empty."""


def page_of(
    request_view: RequestView, action: Action, *, kind: Kind, chain: SecurableChain, page_request: PageRequest
) -> NamePage:
    """Return one page of the children visible to the caller. Raises CacheMiss if a block is not cached.

    Args:
        request_view: The request view.
        action: The list action that is decided on each child.
        kind: The kind of the children.
        chain: The parent with its ancestors up to the metalake.
        page_request: The requested page.
    """
    listing = _VisibleListing(request_view, action, chain, space=(chain[0].id, request_view.space(kind), kind))
    if page_request.size is None:
        listing.need_all(page_request.after)
    return listing.page(page_request)


def ids_of(
    request_view: RequestView, action: Action, *, kind: Kind, chain: SecurableChain, page_request: PageRequest
) -> IdsPage:
    """Return a page of the children visible to the caller, with their ids. `page_request` must have a size."""
    return _VisibleListing(request_view, action, chain, space=(chain[0].id, request_view.space(kind), kind)).ids(
        page_request
    )


def is_listed(request_view: RequestView, action: Action, *, chain: SecurableChain) -> bool:
    """Return whether the first object of `chain` is visible to the caller in the listing of its parent."""
    link, *above = chain
    output = _VisibleListing(
        request_view, action, tuple(above), space=(above[0].id, request_view.space(link.kind), link.kind)
    ).filter
    if output.everything or output.nothing:
        return output.everything
    return bool(output.positions([link.id], [request_view.owner_of(link)]))


def list_all_names(request_view: RequestView, *, kind: Kind, chain: SecurableChain) -> list[str]:
    """Return the names of all children, including those hidden from the caller, so that the server can distinguish
    existing from missing objects.
    """
    space: Space = (chain[0].id, request_view.space(kind), kind)
    listing = _VisibleListing(request_view, None, chain, space=space)
    listing.need_all("")
    return listing.page(ALL_NAMES).texts()


class _VisibleListing:
    """The part of a listing that is visible to one caller, computed block by block."""

    def __init__(
        self, request_view: RequestView, action: Action | None, chain: SecurableChain, *, space: Space
    ) -> None:
        self.request_view = request_view
        self.space = space
        self.zone = request_view.zone_of(space[2])
        self.filter, paths = EVERYTHING, NO_PATHS
        if action is not None and request_view.rules.access_enabled:
            self.filter = self._filter(action, chain)
            if action is Action.NAMESPACE_LIST and not self.filter.everything:
                paths = paths_of(request_view)
                self.filter = self._with_names(paths)
        self.about = (action, request_view.user, paths.stamp)

    def _filter(self, action: Action, chain: SecurableChain) -> ListFilter:
        """Return the filter for the listing by the caller's rights. Cached until the access revision changes."""
        if self.request_view.active is not None:
            return list_filter(self.request_view.subject, action, chain, self.request_view.owner_of)
        memo, key = self.request_view.memo, (action, self.request_view.user, self.space)
        result: ListFilter | None = memo.get(key)
        if result is None:
            result = memo[key] = list_filter(self.request_view.subject, action, chain, self.request_view.owner_of)
        return result

    def _with_names(self, paths: BrowsePaths) -> ListFilter:
        """Return the filter, extended by the containers that are visible because of objects below them.

        Cached while filter and `paths` are unchanged.
        """
        if not paths.ids:
            return self.filter
        if self.request_view.active is not None:
            return widen_filter(self.filter, paths.ids)
        memo, key = self.request_view.memo, ("names", self.request_view.user, self.space)
        result: tuple[ListFilter, BrowsePaths, ListFilter] | None = memo.get(key)
        if result is None or result[0] is not self.filter or result[1] is not paths:
            result = memo[key] = (self.filter, paths, widen_filter(self.filter, paths.ids))
        return result[2]

    def need_all(self, after: str) -> None:
        """Raise CacheMiss for the next missing block of the listing, without processing the cached blocks first."""
        gap = self.request_view.view.block_index.gap(self.space, after)
        if gap is not None:
            self._raise_miss(gap, READ_MAX if gap[0] != after else listings.BLOCK)

    def page(self, request: PageRequest) -> NamePage:
        """Return a page, block by block until it is full.

        Hidden names do not count. Raises CacheMiss for a missing block.
        """
        parts: list[tuple[bytes, ...]] = []
        last, at, size, is_complete = request.after, request.after, request.size, True
        while True:
            key, block = self._block(at, began_at=request.after, page_size=size)
            visible_names = self._visible_names(key, block)
            first = (
                bisect_left(visible_names.positions, bisect_right(block.names, at)) if at == request.after and at else 0
            )
            count = len(visible_names.encoded)
            end = count if size is None else min(count, first + size)
            if end > first:
                parts.append(visible_names.encoded[first:end])
                is_complete = is_complete and end - first == count
                last = block.names[visible_names.positions[end - 1]]
            if end < count:
                return NamePage(parts, last, is_complete)
            if size is not None:
                size -= end - first
            at = key[5]
            if at == "":
                return NamePage(parts, None, is_complete)

    def ids(self, request: PageRequest) -> IdsPage:
        """Return a page of names and ids, block by block like `page`."""
        results: list[tuple[str, int]] = []
        at, requested = request.after, request.size or 0
        while True:
            key, block = self._block(at, began_at=request.after, page_size=requested - len(results))
            visible_names = self._visible_names(key, block)
            first = (
                bisect_left(visible_names.positions, bisect_right(block.names, at)) if at == request.after and at else 0
            )
            end = min(len(visible_names.positions), first + requested - len(results))
            results.extend(
                (block.names[position], block.ids[position]) for position in visible_names.positions[first:end]
            )
            if end < len(visible_names.positions):
                return IdsPage(results, results[-1][0])
            at = key[5]
            if at == "":
                return IdsPage(results, None)

    def _block(self, after: str, *, began_at: str, page_size: int | None) -> tuple[Key[Listing], Listing]:
        view = self.request_view.view
        key = view.block_index.following(self.space, after)
        result = ABSENT if key is None else view.get(key)
        if key is not None and result is not ABSENT:
            return key, result
        gap = view.block_index.gap(self.space, after) or (after, "")
        limit = listings.BLOCK if after == began_at else READ_MAX
        if page_size is not None and self.filter.everything:
            limit = min(READ_MAX, max(listings.BLOCK, page_size + 1))
        self._raise_miss(gap, limit)
        raise AssertionError("a gap always needs a block")

    def _raise_miss(self, gap: tuple[str, str], limit: int) -> None:
        raise CacheMiss({span_key(self.space, gap, limit): self.zone}, goes_on=limit > listings.BLOCK)

    def _visible_names(self, key: Key[Listing], block: Listing) -> VisibleNames:
        """Return the names of a block that are visible to the caller.

        Cached until the block or the access revision changes.
        """
        if self.filter.everything:
            return visible_names_all(block)
        if self.request_view.active is not None:
            return _visible_names_of(block, self.filter)
        memo = self.request_view.memo
        visible_objects: VisibleNamesCache | None = memo.get(VisibleNamesCache)
        if visible_objects is None:
            visible_objects = memo[VisibleNamesCache] = VisibleNamesCache()
        cached_names = visible_objects.get((key, self.about))
        if cached_names is not None and cached_names.block() is block:
            return cached_names
        visible_names = _visible_names_of(block, self.filter)
        visible_objects.put((key, self.about), visible_names)
        return visible_names
