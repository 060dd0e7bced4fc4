"""Searches: finds objects by id, uuid, path, name, name prefix and words, with filters, among those visible to a
caller.

May import the rooms below. Must not know any wire format. Results come in tiers, each read with a limit; there is no
ranking over all matches. A search that reached its limit of candidates reports that, whether or not the caller may see
them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.subjects import principal_of
from limnos.model.errors import NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import KINDS, Kind, KindGroup, ZoneKind
from limnos.names.folding import fold
from limnos.services.lookup.visibility import ATTEMPTS_MAX, UsableCatalogs, usable_catalogs_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.search.facets import FACETS_OF, SearchFacet, facets_of
from limnos.services.search.indexed_words import WordQuery, indexed_read, pending_read
from limnos.services.search.object_words import PARSED_BYTES, match_words, object_words
from limnos.services.search.questions import SearchQuestion
from limnos.services.search.spelling import SPELLED_WORDS_MAX, Suggestion, has_word, near_words
from limnos.services.search.visible_nodes import CatalogsOutdated, VisibleNode, visible_nodes
from limnos.services.search.words import question_words
from limnos.store.activity.search_index import known_words_read
from limnos.store.objects import name_search
from limnos.store.sql import Load

LIMIT_MAX: Final = 200
LOOKED_MAX: Final = 5_000
"""The maximum number of candidates that one search decides on."""
HITS_FEW: Final = 3
"""A search with fewer hits suggests corrections of its words."""
TRIED_MAX: Final = 20
"""The number of corrections of a word that are tried."""
MEANT_MAX: Final = 3
AT_ONCE: Final = 200
"""The number of candidates that are decided together."""
PREFIX_MIN: Final = 2
"""The minimum length of a name prefix that is searched."""
_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
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


class SearchHome(NamedTuple):
    """The scope of a search: the caller's catalogs, and the ids of the query's tags and owners; None for an unknown
    one.
    """

    usable: UsableCatalogs
    tags: tuple[int | None, ...]
    owners: tuple[int, ...]


async def search(
    ctx: Context, metalake: str, *, question: SearchQuestion, limit: int = 50, with_facets: bool = False
) -> SearchAnswer:
    """Return at most `limit` objects that match a query and that the caller may load.

    If there are fewer than `HITS_FEW`, corrections of misspelled words are suggested.

    Raises NotFound for the metalake, NotInUse, PermissionDenied for a caller who is no user of it, and
    ServiceUnavailable if objects move faster than they can be read.
    """
    for _ in range(ATTEMPTS_MAX):
        home = await ctx.read(RequestScope(metalake), partial(_home_of, question=question))
        try:
            answer = await _Search(
                ctx, metalake, home=home, question=question, limit=max(limit, FACETS_OF) if with_facets else limit
            ).run()
            facets = facets_of((each.kind, each.path, each.table_format) for each in answer.hits) if with_facets else ()
            meant = () if len(answer.hits) >= HITS_FEW else await _meant(ctx, metalake, home=home, question=question)
            return answer._replace(
                hits=answer.hits[:limit],
                more=answer.more or len(answer.hits) > limit,
                meant=meant,
                facets=tuple(facets),
            )
        except (CatalogsOutdated, NotFound, PermissionDenied):
            continue  # a catalog was dropped or renamed, or the rights on it changed
    raise ServiceUnavailable("The found objects were moved too often during the request: try again")


async def _meant(ctx: Context, metalake: str, *, home: SearchHome, question: SearchQuestion) -> tuple[Suggestion, ...]:
    """Return corrections of a query's words. Each word is a whole word of an object that the corrected query finds."""
    words, meant = question_words(question.words), list[Suggestion]()
    for place, word in enumerate(words[:SPELLED_WORDS_MAX]):
        near = near_words(word)
        known = await ctx.look_up(partial(known_words_read, near)) if near else []
        for tried in known[:TRIED_MAX]:
            spelled = question._replace(
                text="", path=(), number=None, words=(*words[:place], tried, *words[place + 1 :])
            )
            one = _Search(ctx, metalake, home=home, question=spelled, limit=1, whole_word=tried)
            if (await one.run()).hits:
                meant.append(Suggestion(word, tried))
            if len(meant) == MEANT_MAX:
                return tuple(meant)
    return tuple(meant)


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
    return SearchHome(usable, tags, tuple(owners))


def _tag_id(request_view: RequestView, name: str) -> int | None:
    """Return the id of a tag that the caller may load; None for any other."""
    node, chain = request_view.find_outside(Kind.TAG, (name,))
    return node.id if node is not None and request_view.decide(Action.METADATA_LOAD, chain).allowed else None


class _Search:
    """One search on one state of the caller's catalogs."""

    def __init__(
        self, ctx: Context, metalake: str, *, home: SearchHome, question: SearchQuestion, limit: int,
        whole_word: str | None = None,
    ) -> None:  # fmt: skip
        self.ctx = ctx
        self.metalake = metalake
        self.home = home
        self.question = question
        self.limit = limit
        self.whole_word = whole_word
        self.hits: dict[int, SearchHit] = {}
        self.more = self.bounded = False
        self.behind = 0
        self.looked: set[int] = set()
        self.words = question_words(question.words)

    async def run(self) -> SearchAnswer:
        """Search tier by tier until there are enough hits."""
        question = self.question
        if question.has_filter:
            await self._run_chosen(await self._chosen())
        else:
            await self._run_tier(TIER_PATH, await self._by_identity(), judge=self._judge_identity)
            if len(question.path) > 1:
                await self._run_tier(TIER_PATH, await self._named(fold(question.path[-1])), judge=self._judge_path)
            if question.words:
                await self._run_tier(TIER_NAME, await self._named(question.name), judge=self._judge_name)
            if len(question.name) >= PREFIX_MIN or not question.words:
                await self._run_tier(TIER_START, await self._beginning(question.name), judge=self._judge_start)
            if self.words:
                await self._run_words()
        hits = sorted(self.hits.values(), key=_order)
        return SearchAnswer(hits[: self.limit], self.more or len(hits) > self.limit, self.bounded, self.behind)

    # -- candidates ------------------------------------------------------------------------------------------------

    @property
    def zones(self) -> list[int]:
        """The zones to search: those of the usable catalogs, and the metalake's."""
        above = [] if self.question.below else [self.home.usable.metalake_id]
        return [*self.home.usable.catalogs, *above]

    async def _by_identity(self) -> list[name_search.SearchCandidate]:
        if self.question.number is not None:
            number = self.question.number
            return await self.ctx.look_up(partial(name_search.candidates_read, [number]))
        if _UUID.fullmatch(self.question.text):
            return await self.ctx.look_up(partial(name_search.uuid_read, self.question.text.lower()))
        return []

    async def _named(self, name: str) -> list[name_search.SearchCandidate]:
        return await self._in_range(name, f"{name}\x01")

    async def _beginning(self, name: str) -> list[name_search.SearchCandidate]:
        return await self._in_range(name, f"{name}{name_search.LAST}")

    async def _in_range(self, low: str, high: str) -> list[name_search.SearchCandidate]:
        if len(self.hits) > self.limit:
            return []
        query = name_search.NameRange(low, high, self.zones, [int(kind) for kind in self.question.kinds])
        results = await self.ctx.look_up(partial(name_search.named_read, query, limit=LOOKED_MAX + 1))
        self.bounded = self.bounded or len(results) > LOOKED_MAX
        return results[:LOOKED_MAX]

    async def _chosen(self) -> list[name_search.SearchCandidate]:
        """Return the candidates that have the query's tags and owner."""
        chosen: set[int] | None = None
        for tag_id, (_, value) in zip(self.home.tags, self.question.tags, strict=True):
            ids = (
                []
                if tag_id is None
                else await self._ids(partial(name_search.tagged_read, tag_id, value, limit=LOOKED_MAX + 1))
            )
            chosen = set(ids) if chosen is None else chosen.intersection(ids)
        if self.question.owner is not None:
            owned: set[int] = set()
            for owner_id in self.home.owners:
                owned.update(await self._ids(partial(name_search.owned_ids_read, owner_id, limit=LOOKED_MAX + 1)))
            chosen = owned if chosen is None else chosen & owned
        return await self.ctx.look_up(partial(name_search.candidates_read, chosen or ()))

    async def _ids(self, load: Callable[[], Load[list[int]]]) -> list[int]:
        results = await self.ctx.look_up(load)
        self.bounded = self.bounded or len(results) > LOOKED_MAX
        return results[:LOOKED_MAX]

    # -- tiers -----------------------------------------------------------------------------------------------------

    async def _run_chosen(self, chosen: Sequence[name_search.SearchCandidate]) -> None:
        """Sort the candidates with the query's tags and owner into tiers by their names."""
        name = self.question.name
        if not self.question.words:
            await self._run_tier(TIER_START, chosen, judge=self._judge_start)
            return
        await self._run_tier(TIER_NAME, [each for each in chosen if each.folded == name], judge=self._judge_name)
        await self._run_tier(
            TIER_START, [each for each in chosen if each.folded.startswith(name)], judge=self._judge_start
        )
        if self.words:
            await self._run_met(chosen)

    async def _run_tier(
        self, tier: int, candidates: Iterable[name_search.SearchCandidate], *,
        judge: Callable[[VisibleNode], SearchMatch | Sequence[SearchMatch] | None], with_documents: bool = False,
    ) -> None:  # fmt: skip
        """Decide on candidates, best first, until there are enough hits."""
        kinds = {int(kind) for kind in self.question.kinds}
        fresh = [each for each in candidates if each.id not in self.looked and each.kind in kinds]
        fresh.sort(key=lambda each: (len(each.folded), _kind_rank(KINDS[each.kind]), each.id))
        for begin in range(0, len(fresh), AT_ONCE):
            if len(self.hits) > self.limit:
                self.more = True
                return
            part = fresh[begin : begin + AT_ONCE]
            seen = await visible_nodes(
                self.ctx, self.metalake, home=self.home.usable, candidates=part, with_documents=with_documents
            )
            parsed_bytes = 0
            for visible in seen.values():
                size = len(visible.body or b"")
                parsed_bytes += size
                if size <= PARSED_BYTES < parsed_bytes:
                    parsed_bytes = size
                    await asyncio.sleep(0)
                matched = judge(visible) if size <= PARSED_BYTES else await asyncio.to_thread(judge, visible)
                if matched is not None and self.whole_word is not None and not _has_word(visible, self.whole_word):
                    continue
                if matched is not None and self._passes(visible):
                    self.looked.add(visible.node.id)
                    self.hits[visible.node.id] = _hit(visible, tier, matched=matched)

    # -- words -----------------------------------------------------------------------------------------------------

    async def _run_words(self) -> None:
        """Search the tiers of words: in the index, and in the objects that changed after it was updated."""
        pending = await self.ctx.look_up(partial(pending_read, self.zones))
        self.behind = pending.behind
        tail = await self.ctx.look_up(partial(name_search.candidates_read, pending.changed))
        for names_only in (True, False):
            if len(self.hits) > self.limit:
                return
            query = WordQuery(self.words, names_only, self.zones, [int(kind) for kind in self.question.kinds])
            is_pending = pending.has_containers(tail)
            load = partial(indexed_read, query, limit=LOOKED_MAX + 1, is_container_pending=is_pending)
            results = await self.ctx.look_up(load)
            self.bounded = self.bounded or len(results) > LOOKED_MAX
            untouched = [each for each in results[:LOOKED_MAX] if each.id not in pending.changed]
            await self._run_met([*untouched, *tail], with_documents=not names_only)

    async def _run_met(self, candidates: Sequence[name_search.SearchCandidate], *, with_documents: bool = True) -> None:
        """Add the candidates that match every word of the query, by their own words or their ancestors' names."""
        await self._run_tier(TIER_WORDS, candidates, judge=self._judge_words, with_documents=with_documents)

    def _judge_words(self, visible: VisibleNode) -> Sequence[SearchMatch] | None:
        results = match_words(self.words, visible.node, above=visible.path[:-1], body=visible.body)
        return None if results is None else [SearchMatch(each.where, each.text) for each in results]

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


def _has_word(visible: VisibleNode, word: str) -> bool:
    """Return whether an object or a container above it has a word as a whole, not only as the start of another."""
    return has_word(word, texts=object_words(visible.node, visible.body), names=visible.path)


def _hit(visible: VisibleNode, tier: int, *, matched: SearchMatch | Sequence[SearchMatch]) -> SearchHit:
    node, matches = visible.node, (matched,) if isinstance(matched, SearchMatch) else tuple(matched)
    if tier == TIER_WORDS:
        places = {each.where for each in matches}
        tier = TIER_COMMENT if "comment" in places else TIER_COLUMNS if "column" in places else TIER_WORDS
    return SearchHit(node.id, node.kind, visible.path, node.format, tier, matches, node.modified_at or node.created_at)


def _kind_rank(kind: Kind) -> int:
    """Return the rank of a kind: tables and views first, then containers, then all others."""
    if kind in _DATA:
        return 0
    return 1 if kind.form is KindGroup.CONTAINER else 2 if kind.home is ZoneKind.CATALOG else 3


def _order(hit: SearchHit) -> tuple[int, int, int, int, int, tuple[str, ...]]:
    """Return the sort key of a hit: tier, length of the name, kind, number of levels, then the latest change first."""
    length = len(hit.path[-1]) if hit.tier == TIER_START else 0
    return hit.tier, length, _kind_rank(hit.kind), len(hit.path), -hit.changed_at, hit.path
