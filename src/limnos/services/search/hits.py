"""Hits: results of a search with their tiers, the reasons why they match, and their order.

May import the layers below. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.model.kinds import Kind, KindGroup, ZoneKind
from limnos.services.search.facets import SearchFacet
from limnos.services.search.object_words import object_words
from limnos.services.search.spelling import Suggestion, has_word
from limnos.services.search.visible_nodes import VisibleNode

_DATA: Final = frozenset({Kind.TABLE, Kind.VIEW})
TIER_PATH, TIER_NAME, TIER_START, TIER_WORDS, TIER_COLUMNS, TIER_COMMENT = range(6)


class SearchMatch(NamedTuple):
    """The part of an object that matched the search, with its text.

    The part is `id`, `path`, `name`, `above`, `column`, `comment` or `filter`.
    """

    where: str
    text: str


class SearchHit(NamedTuple):
    """An object that was found, its tier, and the reason."""

    node_id: int
    kind: Kind
    path: tuple[str, ...]
    table_format: str
    tier: int
    matched: tuple[SearchMatch, ...]
    changed_at: int


class SearchAnswer(NamedTuple):
    """The hits in order.

    `more`: further hits exist. `bounded`: only the first `LOOKED_MAX` candidates were examined. `behind`: the number of
    changes whose words were not searched. `meant`: corrections of words, each of which finds a visible object.
    `facets`: counts of the first `FACETS_OF` hits, if requested.
    """

    hits: list[SearchHit]
    more: bool
    bounded: bool
    behind: int
    meant: tuple[Suggestion, ...] = ()
    facets: tuple[SearchFacet, ...] = ()


def hit_of(visible: VisibleNode, tier: int, *, matched: SearchMatch | Sequence[SearchMatch]) -> SearchHit:
    """Return a hit. Of the tiers of words, `tier` is the best; the matches determine the actual one."""
    node, matches = visible.node, (matched,) if isinstance(matched, SearchMatch) else tuple(matched)
    if tier == TIER_WORDS:
        places = {each.where for each in matches}
        tier = TIER_COMMENT if "comment" in places else TIER_COLUMNS if "column" in places else TIER_WORDS
    return SearchHit(node.id, node.kind, visible.path, node.format, tier, matches, _changed_at(visible))


def kind_rank(kind: Kind) -> int:
    """Return the rank of a kind: tables and views first, then containers, then all others."""
    if kind in _DATA:
        return 0
    return 1 if kind.form is KindGroup.CONTAINER else 2 if kind.home is ZoneKind.CATALOG else 3


def order_of(hit: SearchHit) -> tuple[int, int, int, int, int, tuple[str, ...]]:
    """Return the sort key of a hit: tier, length of the name, kind, number of levels, then the latest change first."""
    length = len(hit.path[-1]) if hit.tier == TIER_START else 0
    return hit.tier, length, kind_rank(hit.kind), len(hit.path), -hit.changed_at, hit.path


def place_of(visible: VisibleNode) -> tuple[int, int, int, tuple[str, ...]]:
    """Return the sort key of a visible object among those of its tier, as in `order_of`, without the length."""
    return kind_rank(visible.node.kind), len(visible.path), -_changed_at(visible), visible.path


def _changed_at(visible: VisibleNode) -> int:
    return visible.node.modified_at or visible.node.created_at


def has_whole_word(visible: VisibleNode, word: str) -> bool:
    """Return whether an object's words or its ancestors' names contain a word as a whole, not only as a prefix."""
    return has_word(word, texts=object_words(visible.node, visible.body), names=visible.path)
