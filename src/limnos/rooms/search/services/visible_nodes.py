# SPDX-License-Identifier: Apache-2.0
"""Visible nodes: selects the candidates of a search that the caller may load, with their current names and paths.

Only ids come from an index: names, paths and rights are read here, from request views of one snapshot, taken after the
index was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink, SecurableChain, path_of
from limnos.model.entities import Node
from limnos.rooms.search.services.object_words import has_columns
from limnos.services.lookup.visibility import UsableCatalogs, chain_of, require_nodes_cached
from limnos.services.request.browsing import is_permitted
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.objects.name_search import SearchCandidate
from limnos.view.cache_miss import for_each, require_facts
from limnos.view.keys import ABSENT, document_key, node_key


class CatalogsOutdated(Exception):
    """A catalog was replaced by another catalog of the same name, so the search must read the catalogs again."""


class VisibleNode(NamedTuple):
    """A node that the caller may load, and its path from the catalog down; a tag or policy has only its own name."""

    node: Node
    path: tuple[str, ...]
    body: bytes | None = None
    """Its document, if requested."""


async def visible_nodes(
    ctx: Context,
    metalake: str,
    *,
    home: UsableCatalogs,
    candidates: Iterable[SearchCandidate],
    with_documents: bool = False,
) -> dict[int, VisibleNode]:
    """Return the candidates that exist and that the caller may load, by id, from one consistent state that is not older
    than this call.

    Raises CatalogsOutdated, NotFound or PermissionDenied if the catalogs of `home` have changed, and ServiceUnavailable
    if facts change faster than they can be read.
    """
    by_zone: dict[int, list[int]] = {}
    for each in candidates:
        if each.zone in home.catalogs or each.zone == home.metalake_id:
            by_zone.setdefault(each.zone, []).append(each.id)
    scopes = tuple(RequestScope(metalake, home.catalogs.get(zone)) for zone in by_zone)
    return await read_many_scopes(ctx, scopes, partial(_visible, by_zone=by_zone, with_documents=with_documents))


def _visible(
    request_views: tuple[RequestView, ...], *, by_zone: dict[int, list[int]], with_documents: bool
) -> dict[int, VisibleNode]:
    pairs = zip(request_views, by_zone.items(), strict=True)
    nodes: dict[int, VisibleNode] = {}
    for part in for_each(pairs, lambda pair: _visible_in_zone(pair[0], pair[1], with_documents=with_documents)):
        nodes |= part
    return nodes


def _visible_in_zone(
    request_view: RequestView, part: tuple[int, list[int]], *, with_documents: bool
) -> dict[int, VisibleNode]:
    zone, ids = part
    if request_view.zone != zone:
        raise CatalogsOutdated
    if not request_view.settled.in_use:
        return {}
    require_nodes_cached(request_view, ids)
    visible = for_each(ids, lambda node_id: _visible_node(request_view, node_id))
    nodes = {each.node.id: each for each in visible if each is not None}
    described = [each for each in nodes.values() if with_documents and has_columns(each.node.kind, each.node.format)]
    keys = [document_key(each.node.id) for each in described]
    documents = require_facts(request_view.view, keys, zone=zone)
    for each, document in zip(described, documents, strict=True):
        nodes[each.node.id] = each._replace(body=None if document is None else document.body)
    return nodes


def _visible_node(request_view: RequestView, node_id: int) -> VisibleNode | None:
    chain = _chain(request_view, node_id)
    if chain is None or not is_permitted(request_view, Action.METADATA_LOAD, chain=chain):
        return None
    return VisibleNode(request_view.node(node_id), path_of(chain))


def _chain(request_view: RequestView, node_id: int) -> SecurableChain | None:
    if request_view.settled.catalog is not None:
        return chain_of(request_view, node_id)
    node = request_view.view.get(node_key(node_id))
    if node is ABSENT or node is None:
        return None
    return (ChainLink(node_id, node.kind, node.name), *request_view.settled.outer)
