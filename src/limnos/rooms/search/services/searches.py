# SPDX-License-Identifier: Apache-2.0
"""Searches: finds objects by id, uuid, path, name, name prefix and words, with filters, among those visible to a
caller.

Must not know any wire format. Results come in tiers, each read with a limit; there is no ranking over all matches. A
search that reached its limit of candidates reports that, even if the candidates are hidden from the caller.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from limnos.access.actions import Action
from limnos.access.subjects import principal_of
from limnos.model.errors import NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import KINDS, Kind
from limnos.names.parts import fold
from limnos.rooms.search.services.facets import FACETS_OF, facets_of
from limnos.rooms.search.services.hits import (
    TIER_COLUMNS,
    TIER_NAME,
    TIER_PATH,
    TIER_START,
    TIER_WORDS,
    SearchAnswer,
    SearchHit,
    SearchMatch,
    has_whole_word,
    hit_of,
    kind_rank,
    order_of,
    place_of,
)
from limnos.rooms.search.services.indexed_words import (
    IndexedCandidates,
    PendingChanges,
    WordQuery,
    indexed_read,
    pending_read,
)
from limnos.rooms.search.services.narrow_scopes import NarrowObjects, RightRoots, narrow_objects, roots_of
from limnos.rooms.search.services.object_words import PARSED_BYTES, match_words
from limnos.rooms.search.services.questions import SearchQuestion
from limnos.rooms.search.services.spelling import SPELLED_WORDS_MAX, Suggestion, near_words
from limnos.rooms.search.services.visible_nodes import CatalogsOutdated, VisibleNode, visible_nodes
from limnos.rooms.search.services.words import question_words
from limnos.services.lookup.visibility import ATTEMPTS_MAX, UsableCatalogs, usable_catalogs_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.search_index import known_words_read
from limnos.store.objects import name_search
from limnos.store.sql import Load

LIMIT_MAX: Final = 200
LOOKED_FIRST: Final = 1_000
"""The number of candidates that a search reads first; most searches find enough hits among them."""
LOOKED_MAX: Final = 5_000
"""The maximum number of candidates that one search decides on."""
TRIED_MAX: Final = 20
"""The number of corrections of a word that are tried."""
SUGGESTIONS_MAX: Final = 3
AT_ONCE: Final = 200
"""The maximum number of candidates that are decided together."""
AT_ONCE_MIN: Final = 10
"""The minimum number of candidates that are decided together."""
_KIND_RANKS: Final = {int(number): kind_rank(kind) for number, kind in KINDS.items()}
EXACT: Final = "\x01"
"""Suffix that makes the exclusive upper bound of a range with exactly one name: `name` to `name + EXACT`."""
PREFIX_MIN: Final = 2
"""The minimum length of a name prefix that is searched."""
_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class SearchHome(NamedTuple):
    """The resolved scope of a search: the catalogs usable by the caller, the ids of the query's tags (None for an
    unknown tag) and owners, and the roots of the caller's rights; None if the scope is not narrow.
    """

    usable: UsableCatalogs
    tags: tuple[int | None, ...]
    owners: tuple[int, ...]
    roots: RightRoots | None = None


class SearchSpace:
    """The scope of a search: a metalake, the caller's catalogs, and all candidates of a caller with few rights."""

    def __init__(self, metalake: str, *, home: SearchHome, narrow: NarrowObjects | None) -> None:
        self.metalake, self.home, self.narrow = metalake, home, narrow
        self._pending: PendingChanges | None = None

    async def pending(self, ctx: Context, zones: Sequence[int]) -> PendingChanges:
        """Return the changes that are not indexed yet.

        They are read once, and reused by the searches for spelling corrections.
        """
        if self._pending is None:
            candidate_ids = None if self.narrow is None else [each.id for each in self.narrow.candidates]
            self._pending = await ctx.look_up(partial(pending_read, zones, within=candidate_ids))
        return self._pending


async def search(
    ctx: Context, metalake: str, *, question: SearchQuestion, limit: int = 50, with_facets: bool = False
) -> SearchAnswer:
    """Search for objects that match a query and that the caller may load. Returns at most `limit` hits.

    If there are no hits, corrections of misspelled words are suggested.

    Raises NotFound if the metalake does not exist, NotInUse if it is disabled, PermissionDenied if the caller is not a
    user of it, and ServiceUnavailable if objects move faster than they can be read.
    """
    read_home = partial(_home_of, question=question)
    for _ in range(ATTEMPTS_MAX):
        home = await ctx.read(RequestScope(metalake), read_home)
        narrow = None if question.has_filter else await narrow_objects(ctx, home.roots)
        space = SearchSpace(metalake, home=home, narrow=narrow)
        try:
            hits_max = max(limit, FACETS_OF) if with_facets else limit
            answer = await _Search(ctx, space, question=question, limit=hits_max).run()
            facets = facets_of((each.kind, each.path, each.table_format) for each in answer.hits) if with_facets else ()
            # Paths are usually copied, not typed, so they are not corrected.
            is_misspelled = not answer.hits and len(question.path) <= 1
            suggestions = await _suggest_corrections(ctx, space, question=question) if is_misspelled else ()
            if question.tags and home.tags != (await ctx.read(RequestScope(metalake), read_home)).tags:
                continue  # a tag was renamed or dropped, or the rights on it changed
            return answer._replace(
                hits=answer.hits[:limit],
                more=answer.more or len(answer.hits) > limit,
                suggestions=suggestions,
                facets=tuple(facets),
            )
        except (CatalogsOutdated, NotFound, PermissionDenied):
            continue  # a catalog was dropped or renamed, or the rights on it changed
    raise ServiceUnavailable("The found objects were moved too often during the request: try again")


async def _suggest_corrections(ctx: Context, space: SearchSpace, *, question: SearchQuestion) -> tuple[Suggestion, ...]:
    """Return corrections of a query's words. Each word is a whole word of an object that the corrected query finds."""
    words, suggestions = question_words(question.words), list[Suggestion]()
    for index, word in enumerate(words[:SPELLED_WORDS_MAX]):
        near = near_words(word)
        if space.narrow is not None:
            present_words = await space.narrow.known_words(ctx, near)
        else:
            present_words = await ctx.look_up(partial(known_words_read, near)) if near else []
        for tried in present_words[:TRIED_MAX]:
            corrected_question = question._replace(
                text="", path=(), number=None, words=(*words[:index], tried, *words[index + 1 :])
            )
            one = _Search(ctx, space, question=corrected_question, limit=0, whole_word=tried)
            if (await one.run()).more:
                suggestions.append(Suggestion(word, tried))
            if len(suggestions) == SUGGESTIONS_MAX:
                return tuple(suggestions)
    return tuple(suggestions)


def _home_of(request_view: RequestView, *, question: SearchQuestion) -> SearchHome:
    usable = usable_catalogs_of(request_view)
    if question.below:
        inside = {key: name for key, name in usable.catalogs.items() if name == question.below[0]}
        usable = usable._replace(catalogs=inside)
    tags = tuple(_tag_id(request_view, name) for name, _ in question.tags)
    owners: list[int] = []
    if question.owner is not None:
        for kind in (Kind.USER, Kind.GROUP):
            results = principal_of(request_view.view, usable.metalake_id, kind, question.owner)
            owners += [] if results is None else [results.id]
    return SearchHome(usable, tags, tuple(owners), roots_of(request_view, usable.metalake_id, catalogs=usable.catalogs))


def _tag_id(request_view: RequestView, name: str) -> int | None:
    """Return the id of a tag that the caller may load; None for any other tag."""
    node, chain = request_view.find_outside(Kind.TAG, (name,))
    return node.id if node is not None and request_view.decide(Action.METADATA_LOAD, chain).allowed else None


_RankedCandidate: TypeAlias = tuple[int, int, int, name_search.SearchCandidate]
"""A candidate after its sort key: the length of its name, the rank of its kind, and its id. A plain tuple, because
Python compares a thousand of these without calling Python code.
"""


def _tie_end(ranked: Sequence[_RankedCandidate], *, begin: int, end: int) -> int:
    """Extend the range from `begin` to `end` to the end of a tie: candidates with equal lengths and ranks. Returns the
    new end.

    Access to candidates with equal keys is decided together, because only data of their nodes determines their order.
    """
    end, last = min(end, len(ranked)), min(begin + AT_ONCE, len(ranked))
    while end < last and ranked[end][:2] == ranked[end - 1][:2]:
        end += 1
    return end


class _Search:
    """The execution of one search on one state of the caller's catalogs."""

    def __init__(
        self, ctx: Context, space: SearchSpace, *, question: SearchQuestion, limit: int, whole_word: str | None = None
    ) -> None:
        self.ctx = ctx
        self.space = space
        self.metalake, self.home, self.narrow = space.metalake, space.home, space.narrow
        self.question = question
        self.limit = limit
        self.whole_word = whole_word
        self.hits: dict[int, SearchHit] = {}
        self.more = self.is_bounded = False
        self.unindexed_changes = 0
        self.best_tier = TIER_WORDS
        """The best tier that a further candidate may have."""
        self.looked: set[int] = set()
        self.words = question_words(question.words)

    async def run(self) -> SearchAnswer:
        """Search tier by tier until there are enough hits."""
        question = self.question
        if self.whole_word is not None and not question.has_filter:
            await self._run_words()
        elif question.has_filter:
            await self._run_filtered(await self._filtered_candidates())
        else:
            await self._run_tier(TIER_PATH, await self._find_by_id(), judge=self._judge_identity)
            if len(question.path) > 1:
                await self._run_named(TIER_PATH, fold(question.path[-1]), last=EXACT, judge=self._judge_path)
            if question.words:
                await self._run_named(TIER_NAME, question.name, last=EXACT, judge=self._judge_name)
            if len(question.name) >= PREFIX_MIN or not question.words:
                await self._run_named(TIER_START, question.name, last=name_search.LAST, judge=self._judge_start)
            if self.words:
                await self._run_words()
        hits = sorted(self.hits.values(), key=order_of)
        return SearchAnswer(
            hits=hits[: self.limit],
            more=self.more or len(hits) > self.limit,
            is_bounded=self.is_bounded,
            unindexed_changes=self.unindexed_changes,
        )

    # -- candidates ------------------------------------------------------------------------------------------------

    @property
    def zones(self) -> list[int]:
        """The zones to search: those of the usable catalogs, and the metalake's."""
        above = [] if self.question.below else [self.home.usable.metalake_id]
        return [*self.home.usable.catalogs, *above]

    async def _find_by_id(self) -> list[name_search.SearchCandidate]:
        if self.question.number is not None:
            number = self.question.number
            return await self.ctx.look_up(partial(name_search.candidates_read, [number]))
        if _UUID.fullmatch(self.question.text):
            return await self.ctx.look_up(partial(name_search.uuid_read, self.question.text.lower()))
        return []

    async def _run_named(
        self, tier: int, name: str, *, last: str, judge: Callable[[VisibleNode], SearchMatch | None]
    ) -> None:
        """Search a tier of name matches: objects whose folded name is at least `name` and below `name + last`."""
        low, high = name, f"{name}{last}"
        if self.narrow is not None:
            inside = [each for each in self.narrow.candidates if low <= each.folded < high]
            await self._run_tier(tier, inside, judge=judge)
            return
        query = name_search.NameRange(low, high, self.zones, [int(kind) for kind in self.question.kinds])
        first = min(LOOKED_FIRST, LOOKED_MAX)
        results = await self.ctx.look_up(partial(name_search.names_read, query, limit=first + 1))
        await asyncio.sleep(0)  # the read may be a long step
        await self._run_tier(tier, results[:first], judge=judge)
        if len(results) <= first or len(self.hits) > self.limit:
            return
        is_bounded = True
        if first < LOOKED_MAX:
            results, is_bounded = await self._named_in_parts(query)
            await self._run_tier(tier, results, judge=judge)
        self.is_bounded = self.is_bounded or is_bounded

    async def _named_in_parts(self, query: name_search.NameRange) -> tuple[list[name_search.SearchCandidate], bool]:
        """Return up to `LOOKED_MAX` candidates of a range of names, and whether there are more. Read in parts, between
        which other requests run.
        """
        results, is_bounded, most = list[name_search.SearchCandidate](), False, LOOKED_MAX // name_search.NAME_PARTS
        for part in range(name_search.NAME_PARTS):
            candidates = await self.ctx.look_up(partial(name_search.names_read, query, limit=most + 1, part=part))
            results += candidates[:most]
            is_bounded = is_bounded or len(candidates) > most
            await asyncio.sleep(0)
        return results, is_bounded

    async def _filtered_candidates(self) -> list[name_search.SearchCandidate]:
        """Return the candidates that have the query's tags and owner."""
        candidate_ids: set[int] | None = None
        for tag_id, (_, value) in zip(self.home.tags, self.question.tags, strict=True):
            ids = (
                []
                if tag_id is None
                else await self._ids(partial(name_search.tagged_read, tag_id, value, limit=LOOKED_MAX + 1))
            )
            candidate_ids = set(ids) if candidate_ids is None else candidate_ids.intersection(ids)
        if self.question.owner is not None:
            owned: set[int] = set()
            for owner_id in self.home.owners:
                owned.update(await self._ids(partial(name_search.owned_ids_read, owner_id, limit=LOOKED_MAX + 1)))
            candidate_ids = owned if candidate_ids is None else candidate_ids & owned
        return await self.ctx.look_up(partial(name_search.candidates_read, candidate_ids or ()))

    async def _ids(self, load: Callable[[], Load[list[int]]]) -> list[int]:
        results = await self.ctx.look_up(load)
        self.is_bounded = self.is_bounded or len(results) > LOOKED_MAX
        return results[:LOOKED_MAX]

    # -- tiers -----------------------------------------------------------------------------------------------------

    async def _run_filtered(self, chosen: Sequence[name_search.SearchCandidate]) -> None:
        """Search the tiers of name and word matches among the candidates with the query's tags and owner."""
        name = self.question.name
        if not self.question.words:
            await self._run_tier(TIER_START, chosen, judge=self._judge_start)
            return
        await self._run_tier(TIER_NAME, [each for each in chosen if each.folded == name], judge=self._judge_name)
        await self._run_tier(
            TIER_START, [each for each in chosen if each.folded.startswith(name)], judge=self._judge_start
        )
        if self.words:
            await self._run_word_matches(chosen)

    async def _run_tier(
        self,
        tier: int,
        candidates: Iterable[name_search.SearchCandidate],
        *,
        judge: Callable[[VisibleNode], SearchMatch | Sequence[SearchMatch] | None],
        with_documents: bool = False,
    ) -> None:
        """Check access and matches of candidates, best first, until there are enough hits."""
        kinds = {int(kind) for kind in self.question.kinds}
        ranked = sorted(
            (len(each.folded), _KIND_RANKS[each.kind], each.id, each)
            for each in candidates
            if each.id not in self.looked and each.kind in kinds
        )
        begin = size = 0
        while begin < len(ranked):
            if len(self.hits) > self.limit:
                self.more = True
                return
            # The words of a candidate do not determine its rank among hits: many are compared.
            size = AT_ONCE if tier == TIER_WORDS and self.whole_word is None else self._next_count(last=size)
            end = begin + size if self.whole_word is not None else _tie_end(ranked, begin=begin, end=begin + size)
            part, begin = [each[-1] for each in ranked[begin:end]], end
            if with_documents:
                await self._decide_by_documents(tier, part, judge=judge)
            else:
                await self._decide(tier, part, judge=judge)

    def _next_count(self, *, last: int = 0) -> int:
        """Return the number of candidates to check next.

        `last` is the number of candidates in the previous round, which gave too few hits; 0 for the first round.
        """
        return min(max(self.limit + 1 - len(self.hits), 2 * last, AT_ONCE_MIN), AT_ONCE)

    async def _decide_by_documents(
        self,
        tier: int,
        part: Sequence[name_search.SearchCandidate],
        *,
        judge: Callable[[VisibleNode], SearchMatch | Sequence[SearchMatch] | None],
    ) -> None:
        """Check candidates against their documents: read the documents of the visible candidates, in the order of hits.

        Stops when further candidates cannot precede the hits found.
        """
        size = self._next_count()
        if len(part) > size:
            await asyncio.sleep(0)  # other requests run, also if everything is cached
            visible = await visible_nodes(self.ctx, self.metalake, home=self.home.usable, candidates=part)
            ordered = sorted(visible.values(), key=place_of)
            by_id = {each.id: each for each in part}
            part = [by_id[each.node.id] for each in ordered]
        begin = 0
        while begin < len(part) and sum(each.tier <= self.best_tier for each in self.hits.values()) <= self.limit:
            await self._decide(tier, part[begin : begin + size], judge=judge, with_documents=True)
            begin, size = begin + size, min(2 * size, AT_ONCE)

    async def _decide(
        self,
        tier: int,
        part: Sequence[name_search.SearchCandidate],
        *,
        judge: Callable[[VisibleNode], SearchMatch | Sequence[SearchMatch] | None],
        with_documents: bool = False,
    ) -> None:
        """Add the visible and matching candidates of a batch to the hits; large documents are parsed in a thread."""
        await asyncio.sleep(0)  # other requests run, also if everything is cached
        home = self.home.usable
        visible_hits = await visible_nodes(
            self.ctx, self.metalake, home=home, candidates=part, with_documents=with_documents
        )
        parsed_bytes = 0
        for visible in visible_hits.values():
            size = len(visible.body or b"")
            parsed_bytes += size
            if size <= PARSED_BYTES < parsed_bytes:
                parsed_bytes = size
                await asyncio.sleep(0)
            matches = judge(visible) if size <= PARSED_BYTES else await asyncio.to_thread(judge, visible)
            if matches is not None and self.whole_word is not None and not has_whole_word(visible, self.whole_word):
                continue
            if matches is not None and self._passes(visible):
                self.looked.add(visible.node.id)
                self.hits[visible.node.id] = hit_of(visible, tier, matched=matches)

    # -- words -----------------------------------------------------------------------------------------------------

    async def _run_words(self) -> None:
        """Search the tiers of word matches: in the index, and in the objects whose changes are not indexed yet."""
        pending, is_bounded = await self.space.pending(self.ctx, self.zones), False
        self.unindexed_changes = pending.unread_changes
        for names_only in (True, False):
            query = WordQuery(self.words, names_only, self.zones, [int(kind) for kind in self.question.kinds])
            for looked in (min(LOOKED_FIRST, LOOKED_MAX), LOOKED_MAX):
                if len(self.hits) > self.limit:
                    return
                results = await self._match_words(query, pending.tail, limit=looked + 1)
                untouched = [each for each in results.candidates[:looked] if each.id not in pending.changed]
                await self._run_word_matches([*untouched, *pending.tail], with_documents=not names_only)
                is_bounded = results.is_bounded
                if not is_bounded:
                    self.best_tier = TIER_COLUMNS  # all with the words in their names are among the hits
                    break
        self.is_bounded = self.is_bounded or is_bounded

    async def _match_words(
        self, query: WordQuery, tail: Sequence[name_search.SearchCandidate], *, limit: int
    ) -> IndexedCandidates:
        """Return the candidates that match the words: from the index, or from the objects of a narrow scope."""
        if self.narrow is None:
            return await self.ctx.look_up(partial(indexed_read, query, limit=limit, pending=tail), aside=True)
        matches = await self.narrow.having_any(self.ctx, query.words, names_only=query.names_only)
        return IndexedCandidates(matches, is_bounded=False)

    async def _run_word_matches(
        self, candidates: Sequence[name_search.SearchCandidate], *, with_documents: bool = True
    ) -> None:
        """Add the candidates that match every word of the query, by their own words or their ancestors' names."""
        await self._run_tier(TIER_WORDS, candidates, judge=self._judge_words, with_documents=with_documents)

    def _judge_words(self, visible: VisibleNode) -> Sequence[SearchMatch] | None:
        results = match_words(self.words, visible.node, above=visible.path[:-1], body=visible.body)
        return None if results is None else [SearchMatch(*each) for each in dict.fromkeys(results)]

    def _passes(self, visible: VisibleNode) -> bool:
        below, query = self.question.below, self.question.table_format
        if below and (len(visible.path) <= len(below) or visible.path[: len(below)] != below):
            return False
        return query is None or visible.node.format == query

    def _judge_identity(self, visible: VisibleNode) -> SearchMatch | None:
        return SearchMatch("id", self.question.text)

    def _judge_path(self, visible: VisibleNode) -> SearchMatch | None:
        query, path = tuple(map(fold, self.question.path)), tuple(map(fold, visible.path))
        return SearchMatch("path", ".".join(visible.path)) if path[-len(query) :] == query else None

    def _judge_name(self, visible: VisibleNode) -> SearchMatch | None:
        return SearchMatch("name", visible.node.name) if fold(visible.node.name) == self.question.name else None

    def _judge_start(self, visible: VisibleNode) -> SearchMatch | None:
        is_met = fold(visible.node.name).startswith(self.question.name)
        where = "name" if self.question.words else "filter"
        return SearchMatch(where, visible.node.name) if is_met else None
