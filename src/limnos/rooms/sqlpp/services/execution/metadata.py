# SPDX-License-Identifier: Apache-2.0
"""Metadata queries: read the visible namespaces and objects for the datasets of the dataverse `Metadata`.

Must not know any wire format. If conditions fix the dataverse, only its objects are read, and if they fix names, only
those objects. Objects are read in slices, with other requests in between. Each slice has its own request view, so a
concurrent change may be visible in one slice and not in another. Data that is not in the view is yielded only if a
later request view still lists its object. `limnos.rooms.sqlpp.language.metadata` builds the records.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from limnos.access.actions import Action, kind_action
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import MetadataDocument, Node
from limnos.model.kinds import Kind
from limnos.model.records import SqlppObjectRecord
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.metadata import METADATA, MetadataObject
from limnos.rooms.sqlpp.services.execution.metadata_listings import (
    LISTINGS_FIRST,
    PARENTS_AT_ONCE,
    ListingEntry,
    ListingSlice,
    NamespaceListing,
)
from limnos.rooms.sqlpp.services.execution.metadata_requests import MetadataRequest, narrowing_advice
from limnos.rooms.sqlpp.services.execution.restricted_counts import without_hidden_counts
from limnos.rooms.sqlpp.services.requests.names import DEFAULT, scope_of
from limnos.services.lookup.visibility import chain_of, require_nodes_cached
from limnos.services.request.browsing import paths_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import PageRequest, ids_of, is_listed
from limnos.services.request.request_view import RequestView
from limnos.store.objects.documents import documents_read
from limnos.store.objects.node_reads import live_nodes_read
from limnos.view.cache_miss import for_each

T = TypeVar("T")
SLICE: Final = 100
"""The number of objects that are listed, and then read, before other requests run."""
REMEMBERED_MAX: Final = 12
"""The maximum number of listings of one slice whose decisions are cached: those of a few dataverses."""
DOCUMENTS_AT_ONCE: Final = 20
"""The number of documents of views that one slice reads."""
BYTES_MAX: Final = 64 << 20
"""The maximum size of the objects that one metadata query collects, in bytes: about 300,000 tables."""
_KINDS: Final = {
    "Dataset": (Kind.TABLE, Kind.EXTERNAL_DATASET, Kind.VIEW),
    "Datatype": (Kind.DATATYPE, Kind.TABLE, Kind.EXTERNAL_DATASET),
    "Index": (Kind.TABLE,),
    "Function": (Kind.FUNCTION,),
    "Synonym": (Kind.SYNONYM,),
}
"""The kinds of objects in each metadata dataset."""


def _slices(items: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(items)
    while some := list(islice(waiting, size)):
        yield some


class GatheredObjects:
    """The objects for one source of a query: encoded in chunks, and decoded as well up to `kept_max` objects."""

    def __init__(self, kept_max: int) -> None:
        self.parts: list[bytes] = []
        self.count = self.bytes = self.text_length = 0
        self.few: list[MetadataObject] | None = []
        self._kept_max = kept_max

    def add(self, objects: Sequence[MetadataObject]) -> None:
        """Encode further objects and count them."""
        if not objects:
            return
        self.parts.append(msgspec.json.encode(objects))
        self.count += len(objects)
        self.bytes += len(self.parts[-1])
        self.text_length += sum(sum(map(len, each.statements)) + len(bytes(each.document)) for each in objects)
        if self.few is not None:
            self.few = [*self.few, *objects] if self.count <= self._kept_max else None


async def metadata_gather(
    ctx: Context, requests: Iterable[MetadataRequest], *, few_max: int
) -> dict[MetadataRequest, GatheredObjects]:
    """Read the objects of requests. Raises SqlppError for more than BYTES_MAX bytes, PermissionDenied."""
    results: dict[MetadataRequest, GatheredObjects] = {}
    total = 0
    for request in requests:
        gathered = results[request] = GatheredObjects(few_max)
        async for objects in _objects(ctx, request):
            former_bytes = gathered.bytes
            gathered.add(objects)
            total += gathered.bytes - former_bytes
            if total > BYTES_MAX:
                raise _too_large_error(request)
            if request.limit is not None and gathered.count >= request.limit:
                break
    return results


def _too_large_error(request: MetadataRequest) -> SqlppError:
    return compilation(
        f"Metadata.`{request.dataset}` is too large for one query: its conditions select more than {BYTES_MAX >> 20}"
        " MiB. " + narrowing_advice(request)
    )


async def _objects(ctx: Context, request: MetadataRequest) -> AsyncGenerator[list[MetadataObject], None]:
    """Yield the objects of a request in slices, built-in ones first."""
    if request.dataset == "Dataverse":
        own_dataverses = (
            (DEFAULT, METADATA) if request.dataverses is None else set(request.dataverses) & {DEFAULT, METADATA}
        )
        yield [MetadataObject(kind=Kind.NAMESPACE, path=each) for each in sorted(own_dataverses)]
        async for spaces in _dataverses(ctx, request):
            yield [each for each in spaces if each.path not in (DEFAULT, METADATA)]
        return
    async for nodes in _objects_of_kind(ctx, request, kinds=_KINDS.get(request.dataset, ())):
        results = await without_hidden_counts(ctx, nodes)
        views = [pair for pair in results if pair[1].kind is Kind.VIEW] if request.documents else []
        yield [_object((*path, node.name), node) for path, node in results if node.kind is not Kind.VIEW or not views]
        for some in _slices(views, DOCUMENTS_AT_ONCE):
            documents = await ctx.look_up(partial(documents_read, [node.id for _, node in some]))
            visible = await ctx.read(scope_of(ctx), partial(_views_visible, nodes=some))
            yield [
                _object((*path, node.name), node, document=documents[node.id])
                for (path, node), is_visible in zip(some, visible, strict=True)
                if is_visible
            ]
            await asyncio.sleep(0)


def _views_visible(request_view: RequestView, *, nodes: _FoundNodes) -> list[bool]:
    """Return for each view whether it still is in its dataverse, and visible to the caller. Raises CacheMiss."""
    request_view.require_in_use()
    return for_each(nodes, partial(_is_view_visible, request_view))


def _is_view_visible(request_view: RequestView, entry: tuple[Levels, Node]) -> bool:
    node = entry[1]
    chain = chain_of(request_view, node.id)
    if chain is None or len(chain) < 2 or chain[1].id != node.parent_id:
        return False
    may_list = request_view.decide_for(request_view.user, Action.VIEW_LIST, chain[1:]).allowed
    return may_list and is_listed(request_view, Action.VIEW_LIST, chain=chain)


async def _dataverses(ctx: Context, request: MetadataRequest) -> AsyncIterator[list[MetadataObject]]:
    """Yield the requested dataverses that are visible to the caller, in slices."""
    if request.dataverses is not None:
        for paths in _slices(request.dataverses, PARENTS_AT_ONCE):
            nodes = await ctx.read(scope_of(ctx), partial(_find_dataverses, paths=paths))
            yield [_object(path, node) for path, node in zip(paths, nodes, strict=True) if node is not None]
            await asyncio.sleep(0)
        return
    level: list[int] | None = None
    while level is None or level:
        below: list[int] = []
        listings = [NamespaceListing(each, Kind.NAMESPACE) for each in ([None] if level is None else level)]
        async for results in _children(ctx, listings, names=None):
            below += [node.id for _, node in results]
            yield [
                _object((*path, node.name), node) for path, node in results if is_dataverse((*path, node.name), node)
            ]
        level = below


def is_dataverse(path: Levels, node: Node) -> bool:
    """Return whether a namespace is a dataverse: created explicitly, and not Metadata itself."""
    return not node.implicit and path != METADATA


def _find_dataverses(request_view: RequestView, *, paths: Sequence[Levels]) -> list[Node | None]:
    request_view.require_in_use()
    if not _may_list(request_view):
        return [None] * len(paths)
    return for_each(paths, partial(_find_dataverse, request_view))


def _may_list(request_view: RequestView) -> bool:
    """Return whether the caller may list namespaces of the catalog, by privilege or because of objects below it."""
    return request_view.decide(Action.NAMESPACE_LIST, request_view.settled.outer).allowed or bool(
        paths_of(request_view).ids
    )


def _decider(request_view: RequestView, count: int) -> Callable[[Action, SecurableChain], Decision]:
    """Return the function that decides on `count` namespaces. Many decisions are not cached, as they would evict those
    of other requests.
    """
    return request_view.decide if count <= REMEMBERED_MAX else partial(request_view.decide_for, request_view.user)


def _name_alone(node: Node) -> Node:
    """Return a namespace without its creation time, for a caller who may only see its name."""
    return replace(node, created_at=0)


def _find_dataverse(request_view: RequestView, path: Levels) -> Node | None:
    """Return a dataverse by name, if it and its parents are visible to the caller; else None."""
    node: Node | None = None
    chain: SecurableChain = ()
    for depth in range(1, len(path) + 1):
        node, chain = request_view.find(path[:depth], Kind.NAMESPACE)
        if node is None or not is_listed(request_view, Action.NAMESPACE_LIST, chain=chain):
            return None
    if node is None or not is_dataverse(path, node):
        return None
    return node if request_view.decide(Action.NAMESPACE_SEE, chain).allowed else _name_alone(node)


async def _objects_of_kind(
    ctx: Context, request: MetadataRequest, *, kinds: Sequence[Kind]
) -> AsyncIterator[_FoundNodes]:
    """Yield the objects of some kinds in a request's dataverses, in slices.

    Dataverses that the request names are resolved and listed in one read.
    """
    if request.dataverses is not None and request.names is None:
        for paths in _slices(request.dataverses, PARENTS_AT_ONCE):
            async for results in _read(ctx, partial(_listed_in, paths=paths, kinds=kinds), names=None):
                yield results
        return
    async for spaces in _dataverses(ctx, request):
        namespaces = [each.id for each in spaces]
        if request.is_pinned:
            for kind in kinds:
                async for results in _objects_by_name(ctx, namespaces, kind=kind, names=request.names):
                    yield results
        else:
            listings = [NamespaceListing(each, kind) for kind in kinds for each in namespaces]
            async for results in _children(ctx, listings, names=request.names):
                yield results


_FoundNodes = list[tuple["Levels", "Node"]]
"""Nodes with the paths of their namespaces."""


async def _children(
    ctx: Context, listings: Sequence[NamespaceListing], *, names: frozenset[str] | None
) -> AsyncIterator[_FoundNodes]:
    """Yield the visible objects of listings, in slices; only those in `names` unless it is None."""
    begin = partial(_list_entries, listings=listings, names=names, count=LISTINGS_FIRST)
    async for results in _read(ctx, begin, names=names):
        yield results


async def _read(
    ctx: Context, begin: Callable[[RequestView], ListingSlice], *, names: frozenset[str] | None
) -> AsyncIterator[_FoundNodes]:
    """Yield the nodes of the entries that `begin` returns, then those of the remaining listings, in slices.

    The nodes are not in the view, so the entries are listed again after they were read: a change that follows a revoke
    must not be visible.
    """
    scope, reader = scope_of(ctx), begin
    while True:
        former_slice = await ctx.read(scope, reader)
        waiting = former_slice.waiting
        if former_slice.entries:
            await asyncio.sleep(0)
            nodes = await ctx.look_up(partial(live_nodes_read, [each.id for each in former_slice.entries]))
            again = partial(_list_again, before=former_slice, names=names)
            current = await ctx.read(scope, again)
            if current is not former_slice:
                waiting = min(former_slice.waiting, current.waiting, key=_position)
            yield _still_listed(current.entries, nodes)
        await asyncio.sleep(0)
        if not waiting:
            return
        reader = partial(_list_entries, listings=waiting, names=names, count=former_slice.next_count)


def _position(waiting: Sequence[NamespaceListing]) -> tuple[int, str]:
    """Return the sort key of cursors into the same listings: entries before the least ones were read."""
    return -len(waiting), waiting[0].after if waiting else ""


def _list_again(request_view: RequestView, *, before: ListingSlice, names: frozenset[str] | None) -> ListingSlice:
    """Return the same slice in a later request view; `before` itself if nothing has changed."""
    if request_view.view.known_revisions(request_view.settled.zones) == before.revisions:
        return before
    return _list_entries(request_view, listings=before.listings, names=names, count=before.read)


def _listed_in(request_view: RequestView, *, paths: Sequence[Levels], kinds: Sequence[Kind]) -> ListingSlice:
    """Return the first visible entries of the named dataverses, and cursors for the remaining entries."""
    nodes = _find_dataverses(request_view, paths=paths)
    listings = [NamespaceListing(node.id, kind) for kind in kinds for node in nodes if node is not None]
    return _list_entries(request_view, listings=listings, names=None, count=LISTINGS_FIRST)


def _still_listed(entries: Sequence[ListingEntry], nodes: Iterable[Node]) -> _FoundNodes:
    """Return the nodes that were not moved or dropped since they were listed, in the order of the listing."""
    by_id = {node.id: node for node in nodes}
    return [
        (each.path, _name_alone(node) if each.is_name else node)
        for each in entries
        if (node := by_id.get(each.id)) is not None and each.namespace_id in (None, node.parent_id)
    ]


def _list_entries(
    request_view: RequestView, *, listings: Sequence[NamespaceListing], names: frozenset[str] | None, count: int
) -> ListingSlice:
    """Return about SLICE entries of the first `count` listings, and cursors for the remaining entries.

    Raises one CacheMiss for all missing facts.
    """
    request_view.require_in_use()
    some = listings[:count]
    require_nodes_cached(request_view, {each.namespace_id for each in some if each.namespace_id is not None})
    pages = for_each(some, partial(_page, request_view, decide=_decider(request_view, len(some))))
    entries: list[ListingEntry] = []
    waiting, total = list(listings[len(some) :]), 0
    for index, (listing, (path, page)) in enumerate(zip(some, pages, strict=True)):
        entries += [
            ListingEntry(path, listing.namespace_id, id_, id_ in page.alone)
            for name, id_ in page.found
            if names is None or name in names
        ]
        total += len(page.found)
        if page.last is not None:
            waiting = [listing._replace(after=page.last), *listings[index + 1 :]]
            break
        if total >= SLICE:
            waiting = list(listings[index + 1 :])
            break
    return ListingSlice(
        entries=entries,
        waiting=waiting,
        listings=listings,
        revisions=request_view.view.known_revisions(request_view.settled.zones),
        read=len(some),
    )


class _ListingPage(NamedTuple):
    """A page of a listing: names with ids, the name to continue after, and the ids of nodes of which only the name is
    visible.
    """

    found: list[tuple[str, int]]
    last: str | None
    alone: frozenset[int] = frozenset()


_NOTHING: Final = _ListingPage([], None)


def _page(
    request_view: RequestView, listing: NamespaceListing, *, decide: Callable[[Action, SecurableChain], Decision]
) -> tuple[Levels, _ListingPage]:
    """Return a namespace's path and a page of its visible children; the page is empty if it may not be listed or is
    missing.
    """
    kind = listing.kind
    chain = request_view.settled.outer if listing.namespace_id is None else chain_of(request_view, listing.namespace_id)
    if chain is None:
        return (), _NOTHING
    action = kind_action(kind, "list")
    if kind is Kind.NAMESPACE:
        # Listing the namespaces in a namespace requires no right: the result is filtered by visibility.
        may = listing.namespace_id is not None or _may_list(request_view)
    else:
        may = decide(action, chain).allowed
    if not may:
        return (), _NOTHING
    page = ids_of(request_view, action, kind=kind, chain=chain, page_request=PageRequest(listing.after, SLICE))
    alone: frozenset[int] = frozenset()
    if kind is Kind.NAMESPACE:
        links = [ChainLink(id_, kind, name) for name, id_ in page.names]
        decisions = for_each(
            links, lambda link: request_view.decide_for(request_view.user, Action.NAMESPACE_SEE, (link, *chain))
        )
        alone = frozenset(link.id for link, decision in zip(links, decisions, strict=True) if not decision.allowed)
    return _path(request_view, chain), _ListingPage(page.names, page.last, alone)


def _path(request_view: RequestView, chain: SecurableChain) -> Levels:
    return tuple([link.name for link in reversed(chain[: len(chain) - len(request_view.settled.outer)])])


async def _objects_by_name(
    ctx: Context, namespaces: Sequence[int], *, kind: Kind, names: frozenset[str] | None
) -> AsyncIterator[_FoundNodes]:
    """Yield the objects with the given names in visible namespaces, in slices."""
    pairs = ((each, name) for each in namespaces for name in sorted(names or ()))
    for some in _slices(pairs, SLICE):
        results = await ctx.read(scope_of(ctx), partial(_find_named, pairs=some, kind=kind))
        yield [each for each in results if each is not None]
        await asyncio.sleep(0)


def _find_named(
    request_view: RequestView, *, pairs: Sequence[tuple[int, str]], kind: Kind
) -> list[tuple[Levels, Node] | None]:
    request_view.require_in_use()
    require_nodes_cached(request_view, {each for each, _ in pairs})
    return for_each(pairs, partial(_find_one, request_view, kind=kind))


def _find_one(request_view: RequestView, pair: tuple[int, str], *, kind: Kind) -> tuple[Levels, Node] | None:
    namespace_id, name = pair
    above = chain_of(request_view, namespace_id)
    if above is None or not request_view.decide_for(request_view.user, kind_action(kind, "list"), above).allowed:
        return None
    path = _path(request_view, above)
    node, chain = request_view.find((*path, name), kind)
    if node is None or node.kind is not kind or not is_listed(request_view, kind_action(kind, "list"), chain=chain):
        return None
    return path, node


def _object(path: Levels, node: Node, *, document: MetadataDocument | None = None) -> MetadataObject:
    record = cast("SqlppObjectRecord", node.record)
    return MetadataObject(
        kind=node.kind,
        path=path,
        id=node.id,
        created_at=node.created_at,
        statements=tuple(getattr(record, "statements", ())),
        dependencies=tuple(getattr(record, "dependencies", ())),
        document=msgspec.Raw(b"null" if document is None else document.body),
    )
