# SPDX-License-Identifier: Apache-2.0
"""Children: the objects of all kinds directly in a namespace or catalog, page by page, filtered for the caller.

Must not know any wire format. A page is read with a few SQL statements, regardless of the number of children. Children
are sorted by kind in a fixed order, then by name in code point order. A child that the caller may not load has its kind
and its name only: lists may name a container because of an object below it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from limnos.access.actions import Action, actions_named
from limnos.formats.iceberg.descriptions import NO_SUMMARY, DocumentSummary, summary_of
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Node, Principal
from limnos.model.errors import ConnectorMissing, PermissionDenied, UnsupportedOperation
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.names.path import Levels
from limnos.services.federation import schemas, topics
from limnos.services.federation import tables as source_tables
from limnos.services.federation import views as source_views
from limnos.services.federation.source_objects import VisibleSourceNames
from limnos.services.request.browsing import listing_require, may_list_namespaces
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_for
from limnos.services.request.name_pages import PageRequest, ids_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE, can_contain, format_of, refuse_directory_request
from limnos.view.cache_miss import CacheMiss, for_each, require_fact
from limnos.view.keys import ABSENT, node_key, nodes_key, principal_id_key

PAGE_MAX: Final = 500
"""The maximum number of children of one page: the documents of its tables are read together."""
CHILD_KINDS: Final = (Kind.NAMESPACE, *NAMESPACE_OBJECTS)
"""The kinds of children, in the order of a page."""
_LISTS: Final = {Kind.NAMESPACE: Action.NAMESPACE_LIST, **actions_named("list", *NAMESPACE_OBJECTS)}


class ChildrenRequest(NamedTuple):
    """A request for a page: at most `size` children after a kind and a name, of one kind if `kind` is given."""

    after: tuple[Kind, str] | None = None
    size: int = 100
    kind: Kind | None = None


class ChildObject(NamedTuple):
    """A child of a container. `node` is None if the caller may not load the child.

    - `owner`: the owner; None if it has none.
    - `comment`: the comment; None if it has none.
    - `changed_at`: when it was last changed or committed to, in milliseconds since 1970.
    """

    kind: Kind
    name: str
    node: Node | None = None
    owner: Principal | None = None
    comment: str | None = None
    changed_at: int | None = None


class ChildrenPage(NamedTuple):
    """A page of children, and the kind and name of the last one, after which the next page begins; None at the end."""

    children: list[ChildObject]
    following: tuple[Kind, str] | None


async def children_list(ctx: Context, scope: RequestScope, *, parent: Levels, request: ChildrenRequest) -> ChildrenPage:
    """Return a page of the children of a namespace, or of the catalog if `parent` is empty.

    For a catalog of an external system, children have only a kind and a name.

    Raises:
        NotFound: The namespace is missing, and the caller may know that.
        PermissionDenied: The caller may list no kind of children there.
        UnsupportedOperation: The provider is `lance-directory`, whose objects are not nodes; or the connector of the
            catalog cannot be called here (ConnectorMissing).
        NotInUse: The catalog or metalake is disabled.
    """
    page = await ctx.read(scope, lambda request_view: _page_or_sources(request_view, parent, request=request))
    if isinstance(page, ChildrenPage):
        return page
    children: list[ChildObject] = []
    for kind, visible_names in page.items():
        try:
            names = sorted(await _SOURCE_LISTS[kind](ctx, visible_names))
        except ConnectorMissing:
            raise  # an empty list would say that the catalog has no objects
        except UnsupportedOperation:
            continue  # the connector knows no such objects
        if kind is Kind.NAMESPACE:  # a name with the separator would be parsed as another schema
            codec = codec_for(ctx.services.defaults)
            names = [name for name in names if codec.join_or_none((*parent, name)) is not None]
        children += [ChildObject(kind=kind, name=name) for name in names]
    begin = (-1, "") if request.after is None else (_order(request.after[0]), request.after[1])
    rest = [child for child in children if (_order(child.kind), child.name) > begin]
    page_objects = rest[: request.size]
    return ChildrenPage(
        page_objects, (page_objects[-1].kind, page_objects[-1].name) if len(rest) > len(page_objects) else None
    )


def _page_or_sources(
    request_view: RequestView, parent: Levels, *, request: ChildrenRequest
) -> ChildrenPage | dict[Kind, VisibleSourceNames]:
    """Return a page of children; for an external catalog, the visible names of its source by kind."""
    request_view.require_in_use()
    if not (request_view.traits.is_sourced or request_view.traits.is_federated):
        return children_page(request_view, parent, request=request)
    visible_names: dict[Kind, VisibleSourceNames] = {}
    refusal: PermissionDenied | None = None
    for kind, visible in _SOURCE_NAMES.items():
        if request.kind in (None, kind) and (parent or kind is Kind.NAMESPACE):
            try:
                visible_names[kind] = visible(request_view, parent)
            except PermissionDenied as error:
                refusal = refusal or error
    if refusal is not None and not visible_names:
        raise refusal
    return visible_names


_SOURCE_NAMES: Final[dict[Kind, Callable[[RequestView, Levels], VisibleSourceNames]]] = {
    Kind.NAMESPACE: schemas.schemas_visible,
    Kind.TABLE: source_tables.tables_visible,
    Kind.VIEW: source_views.views_visible,
    Kind.TOPIC: topics.topics_visible,
}
_SOURCE_LISTS: Final[dict[Kind, Callable[[Context, VisibleSourceNames], Awaitable[list[str]]]]] = {
    Kind.NAMESPACE: schemas.schemas_list,
    Kind.TABLE: source_tables.tables_list,
    Kind.VIEW: source_views.views_list,
    Kind.TOPIC: topics.topics_list,
}


def children_page(request_view: RequestView, parent: Levels, *, request: ChildrenRequest) -> ChildrenPage:
    """Return a page of the children in the server's own tree. Raises as `children_list`, and CacheMiss."""
    kinds, chain = _listable(request_view, parent, only_kind=request.kind)
    entries: list[tuple[Kind, str, int]] = []
    for kind in kinds:
        if request.after is not None and _order(kind) < _order(request.after[0]):
            continue
        begin = request.after[1] if request.after is not None and request.after[0] is kind else ""
        page = PageRequest(begin, request.size + 1 - len(entries))
        listed = ids_of(request_view, _LISTS[kind], kind=kind, chain=chain, page_request=page)
        entries += [(kind, name, node_id) for name, node_id in listed.names]
        if len(entries) > request.size:
            break
    page_entries = entries[: request.size]
    following = (page_entries[-1][0], page_entries[-1][1]) if len(entries) > len(page_entries) else None
    _require_cached(request_view, [node_id for _, _, node_id in page_entries])
    children = for_each(
        page_entries, lambda each: _child(request_view, each[2], name=each[1], kind=each[0], chain=chain)
    )
    return ChildrenPage(children, following)


def _order(kind: Kind) -> int:
    return CHILD_KINDS.index(kind)


def _listable(
    request_view: RequestView, parent: Levels, *, only_kind: Kind | None
) -> tuple[list[Kind], SecurableChain]:
    """Return the kinds whose lists the caller may read there, and the parent with its ancestors.

    Raises as `children_list`.
    """
    kinds = [
        kind for kind in CHILD_KINDS if only_kind in (None, kind) and _may_lie_there(request_view, kind, parent=parent)
    ]
    if only_kind is not None and not kinds:
        kinds = [only_kind]
    refuse_directory_request(request_view, Action.TABLE_LIST)
    if not parent:
        chain = request_view.settled.outer
    else:
        node, chain = request_view.find(parent, Kind.NAMESPACE)
        if node is None or node.kind is not Kind.NAMESPACE:
            _refuse_missing(request_view, parent, kind=kinds[-1])
    listable_kinds = [kind for kind in kinds if _may_list(request_view, kind, parent=parent, chain=chain)]
    _record_decision(request_view, (listable_kinds or kinds)[-1], parent=parent, chain=chain)
    return listable_kinds, chain


def _may_lie_there(request_view: RequestView, kind: Kind, *, parent: Levels) -> bool:
    if not parent:
        return kind is Kind.NAMESPACE or (kind is Kind.TABLE and format_of(request_view) == LANCE)
    if kind is Kind.NAMESPACE:
        return True
    if kind in (Kind.TABLE, Kind.VIEW):
        return format_of(request_view) in (ICEBERG, LANCE)
    return can_contain(request_view, kind)


def _refuse_missing(request_view: RequestView, parent: Levels, *, kind: Kind) -> None:
    """Raise the error for a missing namespace that listing its children of this kind raises: NotFound or
    PermissionDenied.
    """
    if kind is Kind.NAMESPACE:
        listing_require(request_view, parent)
        raise request_view.missing(Kind.NAMESPACE, parent)
    request_view.look_up(Kind.NAMESPACE, parent, _LISTS[kind])


def _may_list(request_view: RequestView, kind: Kind, *, parent: Levels, chain: SecurableChain) -> bool:
    if kind is Kind.NAMESPACE:
        return may_list_namespaces(request_view, parent)
    return request_view.decide(_LISTS[kind], chain).allowed


def _record_decision(request_view: RequestView, kind: Kind, *, parent: Levels, chain: SecurableChain) -> None:
    """Repeat the access decision on listing children of a kind, and record it in the audit. Raises PermissionDenied if
    it denies.
    """
    if kind is Kind.NAMESPACE:
        listing_require(request_view, parent)
    else:
        request_view.require(_LISTS[kind], chain)


def _require_cached(request_view: RequestView, ids: list[int]) -> None:
    """Raise one CacheMiss for all nodes that the view lacks, so that one statement reads them with their owners."""
    missing = [node_id for node_id in ids if request_view.view.get(node_key(node_id)) is ABSENT]
    if missing:
        raise CacheMiss({nodes_key(request_view.zone, tuple(sorted(missing))): request_view.zone})


def _child(request_view: RequestView, node_id: int, *, name: str, kind: Kind, chain: SecurableChain) -> ChildObject:
    link = ChainLink(node_id, kind, name)
    if not request_view.decide(Action.METADATA_LOAD, (link, *chain)).allowed:
        return ChildObject(kind=kind, name=name)
    node = request_view.node(node_id)
    owner_id = request_view.owner_of(link)
    owner: Principal | None = None
    if owner_id is not None:
        owner = require_fact(request_view.view, principal_id_key(owner_id), zone=request_view.metalake.id)
    summary = _summary(request_view, node)
    comment = summary.comment or getattr(node.record, "comment", None)
    changed_at = max(node.created_at, node.modified_at or 0, summary.changed_at or 0)
    return ChildObject(kind=kind, name=name, node=node, owner=owner, comment=comment, changed_at=changed_at)


def _summary(request_view: RequestView, node: Node) -> DocumentSummary:
    """Return the summary of a table's or view's metadata, cached while its document has the same version."""
    if node.kind is not Kind.VIEW and not (node.kind is Kind.TABLE and node.format == ICEBERG):
        return NO_SUMMARY
    document = request_view.document(node.id)
    derived, key = request_view.view.derived_values(request_view.zone), ("summary", node.id)
    cached_summary: tuple[int, DocumentSummary] | None = derived.get(key)
    if cached_summary is None or cached_summary[0] != document.version:
        cached_summary = derived[key] = (document.version, summary_of(document.body))
    return cached_summary[1]
