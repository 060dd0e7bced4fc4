# SPDX-License-Identifier: Apache-2.0
"""Hits: results of a search with their tiers (classes of match quality), matched fields and sort order.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.model.kinds import Kind, KindGroup, ZoneKind
from limnos.rooms.search.services.facets import SearchFacet
from limnos.rooms.search.services.object_words import object_words
from limnos.rooms.search.services.spelling import Suggestion, has_word
from limnos.rooms.search.services.visible_nodes import VisibleNode

_DATA: Final = frozenset({Kind.TABLE, Kind.VIEW})
TIER_PATH, TIER_NAME, TIER_START, TIER_WORDS, TIER_COLUMNS, TIER_COMMENT = range(6)


class SearchMatch(NamedTuple):
    """The field of an object that matched the search, with its text.

    The field is `id`, `path`, `name`, `above` (an ancestor's name), `column`, `comment` or `filter`.
    """

    where: str
    text: str


class SearchHit(NamedTuple):
    """An object that a search found, with its tier and the matched fields."""

    node_id: int
    kind: Kind
    path: tuple[str, ...]
    table_format: str
    tier: int
    matched: tuple[SearchMatch, ...]
    changed_at: int


class SearchAnswer(NamedTuple):
    """The result of a search: the hits in order, and whether they are complete.

    `more`: further hits exist. `is_bounded`: only the first `LOOKED_MAX` candidates were examined. `unindexed_changes`:
    the count of recent changes whose words were not searched. `suggestions`: corrections of words, each of which finds
    a visible object. `facets`: counts of the first `FACETS_OF` hits, if requested.
    """

    hits: list[SearchHit]
    more: bool
    is_bounded: bool
    unindexed_changes: int
    suggestions: tuple[Suggestion, ...] = ()
    facets: tuple[SearchFacet, ...] = ()


def hit_of(visible: VisibleNode, tier: int, *, matched: SearchMatch | Sequence[SearchMatch]) -> SearchHit:
    """Build a hit.

    For word matches (`TIER_WORDS`) the tier is lowered to that of the worst matched field: column or comment.
    """
    node, matches = visible.node, (matched,) if isinstance(matched, SearchMatch) else tuple(matched)
    if tier == TIER_WORDS:
        match_fields = {each.where for each in matches}
        tier = TIER_COMMENT if "comment" in match_fields else TIER_COLUMNS if "column" in match_fields else TIER_WORDS
    return SearchHit(
        node_id=node.id,
        kind=node.kind,
        path=visible.path,
        table_format=node.format,
        tier=tier,
        matched=matches,
        changed_at=_changed_at(visible),
    )


def kind_rank(kind: Kind) -> int:
    """Return the rank of a kind in the sort order: 0 for tables and views, then containers, then other objects of
    catalogs, then all others.
    """
    if kind in _DATA:
        return 0
    return 1 if kind.form is KindGroup.CONTAINER else 2 if kind.home is ZoneKind.CATALOG else 3


def order_of(hit: SearchHit) -> tuple[int, int, int, int, int, tuple[str, ...]]:
    """Return the sort key of a hit: tier, length of the name (for prefix matches), kind, number of levels, time of the
    last change (newest first), path.
    """
    length = len(hit.path[-1]) if hit.tier == TIER_START else 0
    return hit.tier, length, kind_rank(hit.kind), len(hit.path), -hit.changed_at, hit.path


def place_of(visible: VisibleNode) -> tuple[int, int, int, tuple[str, ...]]:
    """Return the sort key of a visible object among those of its tier, like `order_of` but without tier and length."""
    return kind_rank(visible.node.kind), len(visible.path), -_changed_at(visible), visible.path


def _changed_at(visible: VisibleNode) -> int:
    return visible.node.modified_at or visible.node.created_at


def has_whole_word(visible: VisibleNode, word: str) -> bool:
    """Return whether an object's words or its ancestors' names contain a word as a whole, not only as a prefix."""
    return has_word(word, texts=object_words(visible.node, visible.body).texts, names=visible.path)
