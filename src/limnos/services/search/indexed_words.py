"""Indexed words: reads candidates for a query's words from the index, and the objects that changed after the index was
updated.

May import the rooms below. The index lacks the latest changes. A search reads these from the change feed, up to a
limit, and examines their objects itself, so that it finds everything that was committed before the search.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from limnos.model.kinds import CONTAINERS
from limnos.store.activity.search_index import changed_read, progress_read, words_read
from limnos.store.objects.name_search import SearchCandidate
from limnos.store.sql import Load

TAIL_MAX: Final = 2_000
"""The maximum number of unindexed changes that a search reads."""
SPLIT_WORDS_MAX: Final = 4
"""The maximum number of words of a query for which matches in names of ancestors are tried."""
_CONTAINERS: Final = frozenset(map(int, CONTAINERS))


class WordQuery(NamedTuple):
    """Words to look up: in names only or everywhere, in some zones, of some kinds."""

    words: tuple[str, ...]
    names_only: bool
    zones: Sequence[int]
    kinds: Sequence[int]


class PendingChanges(NamedTuple):
    """The objects that changed after the index was updated, and the number of changes that are neither indexed nor
    read.
    """

    changed: frozenset[int]
    behind: int

    def has_containers(self, candidates: Collection[SearchCandidate]) -> bool:
        """Return whether a container is among the changed objects, so that the index may lack names of ancestors."""
        return any(each.id in self.changed and each.kind in _CONTAINERS for each in candidates)


def pending_read(zones: Collection[int]) -> Load[PendingChanges]:
    """Read the changes of some zones that are not indexed yet, at most `TAIL_MAX`."""
    changed: set[int] = set()
    behind, room = 0, TAIL_MAX
    for progress in (yield from progress_read(zones)):
        if progress.is_lost or progress.scan_after is not None or progress.revision is None:
            behind += progress.behind
            continue
        until = min(progress.newest, progress.revision + room)
        if until > progress.revision:
            changed.update((yield from changed_read(progress.zone, since=progress.revision, until=until)))
        room -= until - progress.revision
        behind += progress.newest - until
    return PendingChanges(frozenset(changed), behind)


def indexed_read(query: WordQuery, *, limit: int, is_container_pending: bool) -> Load[list[SearchCandidate]]:
    """Read objects that match all words by themselves, or all words that no container's name matches."""
    candidates = {each.id: each for each in (yield from _read(query, query.words, limit=limit))}
    if not 1 < len(query.words) <= SPLIT_WORDS_MAX:
        return list(candidates.values())
    above = []
    for word in query.words:
        containers = query._replace(names_only=True, kinds=sorted(_CONTAINERS))
        if is_container_pending or (yield from _read(containers, (word,), limit=1)):
            above.append(word)
    for count in range(1, len(query.words)):
        for met_above in combinations(above, count):
            own = tuple(word for word in query.words if word not in met_above)
            if own and len(candidates) < limit:
                candidates |= {each.id: each for each in (yield from _read(query, own, limit=limit - len(candidates)))}
    return list(candidates.values())


def _read(query: WordQuery, words: Sequence[str], *, limit: int) -> Load[list[SearchCandidate]]:
    return words_read(words, names_only=query.names_only, zones=query.zones, kinds=query.kinds, limit=limit)
