# SPDX-License-Identifier: Apache-2.0
"""Indexed words: reads candidates for a query's words from the full-text index, and from the changes that are not
indexed yet.

The index lacks the latest changes. A search reads these from the change feed, up to a limit, and examines their objects
itself, so that it finds everything that was committed before the search.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from limnos.model.kinds import CONTAINERS, Kind
from limnos.rooms.search.services.words import CONTAINER_MARK, is_met
from limnos.store.activity.search_index import IndexedText, changed_read, progress_read, texts_read, words_read
from limnos.store.objects.name_search import (
    NarrowScope,
    SearchCandidate,
    candidates_read,
    containers_below_read,
    narrow_read,
)
from limnos.store.sql import Load

TAIL_MAX: Final = 2_000
"""The maximum number of unindexed changes that a search reads."""
SPLIT_WORDS_MAX: Final = 4
"""The maximum number of words of a query for which matches in names of ancestors are tried."""
ABOVE_MAX: Final = 200
"""The maximum number of containers with a word in their names; a word with more of them does not select the objects
below.
"""
BELOW_MAX: Final = 5_000
"""The maximum number of containers below these."""
_CONTAINERS: Final = frozenset(map(int, CONTAINERS))


class WordQuery(NamedTuple):
    """A lookup of words in the index: in names only or in all fields, restricted to some zones and kinds of objects."""

    words: tuple[str, ...]
    names_only: bool
    zones: Sequence[int]
    kinds: Sequence[int]


class PendingChanges(NamedTuple):
    """Changes that are not indexed yet: the ids of the changed objects, those that exist as candidates (`tail`), and
    the count of changes that were not read either.
    """

    changed: frozenset[int]
    tail: list[SearchCandidate]
    unread_changes: int


def pending_read(zones: Collection[int], *, within: Collection[int] | None) -> Load[PendingChanges]:
    """Read the changes of some zones that are not indexed yet, at most `TAIL_MAX`.

    With `within`, only objects with these ids become candidates.
    """
    changed_ids: set[int] = set()
    unread_changes, room = 0, TAIL_MAX
    for progress in (yield from progress_read(zones)):
        if progress.is_lost or progress.scan_after is not None or progress.revision is None:
            unread_changes += progress.behind
            continue
        until = min(progress.newest, progress.revision + room)
        if until > progress.revision:
            changed_ids.update((yield from changed_read(progress.zone, since=progress.revision, until=until)))
        room -= until - progress.revision
        unread_changes += progress.newest - until
    searched = changed_ids if within is None else changed_ids.intersection(within)
    tail = (yield from candidates_read(searched)) if searched else []
    return PendingChanges(frozenset(changed_ids), tail, unread_changes)


class IndexedCandidates(NamedTuple):
    """Candidates of a query for words. `is_bounded`: the index has more matches than were read."""

    candidates: list[SearchCandidate]
    is_bounded: bool


class AboveScope(NamedTuple):
    """The objects whose ancestors' names contain a word, described by whole catalogs (`zones`) and single containers
    (`parents`).
    """

    zones: frozenset[int]
    parents: frozenset[int]

    def has(self, candidate: SearchCandidate) -> bool:
        """Return whether a candidate is in one of the containers."""
        return candidate.parent in self.parents or candidate.zone in self.zones


def indexed_read(query: WordQuery, *, limit: int, pending: Collection[SearchCandidate]) -> Load[IndexedCandidates]:
    """Read objects that match all words of the query.

    A word may also match an ancestor's name, if another word matches the object. `pending` are candidates that changed
    after the index was updated. At most `limit` matches are read.
    """
    own_hits = yield from _read(query, query.words, limit=limit)
    candidates, left = {each.id: each for each in own_hits}, limit - len(own_hits)
    if not 1 < len(query.words) <= SPLIT_WORDS_MAX:
        return IndexedCandidates(list(candidates.values()), left <= 0)
    above: dict[str, AboveScope | None] = {}
    for word in query.words:
        scope = yield from _above_read(query, word, pending=pending)
        if scope is None or scope.zones or scope.parents:
            above[word] = scope
    for count in range(1, len(query.words)):
        for met_above in combinations(above, count):
            rest = tuple(word for word in query.words if word not in met_above)
            if rest and left > 0:
                scopes = [scope for word in met_above if (scope := above[word]) is not None]
                matches = yield from _in_scopes_read(query, rest, scopes=scopes, limit=left)
                left -= len(matches)
                candidates |= {each.id: each for each in matches if all(scope.has(each) for scope in scopes)}
    return IndexedCandidates(list(candidates.values()), left <= 0)


def _above_read(query: WordQuery, word: str, *, pending: Collection[SearchCandidate]) -> Load[AboveScope | None]:
    """Read the containers of objects whose ancestors' names contain a word.

    Returns None if there are too many containers to list.
    """
    containers = query._replace(names_only=True, kinds=sorted(_CONTAINERS))
    containers_named = yield from _read(containers, (f"{CONTAINER_MARK}{word}",), limit=ABOVE_MAX + 1)
    changed_containers = [each for each in pending if each.kind in _CONTAINERS]
    if len(containers_named) + len(changed_containers) > ABOVE_MAX:
        return None
    catalogs = frozenset(each.id for each in (*containers_named, *changed_containers) if each.kind == Kind.CATALOG)
    roots = {each.id for each in (*containers_named, *changed_containers)} - catalogs
    below = (yield from containers_below_read(roots, limit=BELOW_MAX + 1)) if roots else frozenset()
    return None if len(below) > BELOW_MAX else AboveScope(catalogs, below)


def _in_scopes_read(
    query: WordQuery, words: Sequence[str], *, scopes: Sequence[AboveScope], limit: int
) -> Load[list[SearchCandidate]]:
    """Read up to `limit` objects that match words: from the index, or from the smallest scope if the index has more
    matches.
    """
    matches = yield from _read(query, words, limit=limit)
    small = [scope for scope in scopes if not scope.zones]
    if len(matches) < limit or not small:
        return matches
    scope = min(small, key=lambda each: len(each.parents))
    inside = yield from narrow_read(NarrowScope(scope.parents), limit=limit)
    if len(inside) >= limit:
        return matches
    texts = yield from texts_read([each.id for each in inside])
    rest = query._replace(words=tuple(words))
    return [each for each in inside if each.id in texts and is_matched(texts[each.id], rest)]


def whole_text(text: IndexedText) -> str:
    """Return all words of an object as one string, separated by spaces."""
    return f"{text.name} {text.columns} {text.comment}"


def is_matched(text: IndexedText, query: WordQuery) -> bool:
    """Return whether the words of an object match all words of a query."""
    searched = text.name if query.names_only else whole_text(text)
    return all(is_met(word, searched) for word in query.words)


def _read(query: WordQuery, words: Sequence[str], *, limit: int) -> Load[list[SearchCandidate]]:
    return words_read(words, names_only=query.names_only, zones=query.zones, kinds=query.kinds, limit=limit)
