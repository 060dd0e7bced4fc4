# SPDX-License-Identifier: Apache-2.0
"""Listings of dataverses: cursors over their objects, and the entries that one slice of a metadata query reads.

Must not know how entries are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.model.kinds import Kind
from limnos.names.path import Levels

PARENTS_AT_ONCE: Final = 20
"""The maximum number of dataverses that are looked up, and of listings that are read, in one slice."""
LISTINGS_FIRST: Final = 12
"""The number of listings that a query reads first: those of small dataverses are read with more at once."""


class NamespaceListing(NamedTuple):
    """A cursor over the objects of a kind in a namespace (None: the catalog), with the name after which it
    continues.
    """

    namespace_id: int | None
    kind: Kind
    after: str = ""


class ListingEntry(NamedTuple):
    """A visible object in a listing: the path of its namespace, and the ids of both."""

    path: Levels
    namespace_id: int | None
    id: int
    is_name: bool = False
    """Whether the caller sees only its name, because of objects below it."""


class ListingSlice(NamedTuple):
    """Some entries of listings, cursors for the remaining ones, the listings, the revisions of the view, and the number
    of listings that were read.
    """

    entries: list[ListingEntry]
    waiting: list[NamespaceListing]
    listings: Sequence[NamespaceListing]
    revisions: tuple[tuple[int, int], ...]
    read: int

    @property
    def next_count(self) -> int:
        """The number of listings to read next: twice as many if all were used, else as many as filled this slice."""
        used = len(self.listings) - len(self.waiting)
        return max(1, used) if used < self.read else min(PARENTS_AT_ONCE, 2 * self.read)
