# SPDX-License-Identifier: Apache-2.0
"""Lineage datasets: maps OpenLineage datasets to objects of this server, first by location and then by name.

A name is considered if the catalog's URL in the producer's event is this server's, or is `limnos://<metalake>`, or if a
property of the metalake maps the producer's namespace to a catalog. A location belongs to at most one table, so it
takes precedence over a catalog name, which a producer's session chose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from limnos.access.actions import Action
from limnos.files.locations import normalise
from limnos.formats.openlineage_namespaces import mapped_path
from limnos.model.decisions import SecurableChain
from limnos.model.errors import BadRequest, NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.names import display, iceberg
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.rooms.pipelines.formats.openlineage import EventDataset
from limnos.services.lookup.change_publishing import ChangesOutdated
from limnos.services.lookup.visibility import (
    ATTEMPTS_MAX,
    UsableCatalogs,
    body_of,
    catalogs_of,
    chain_of,
    require_nodes_cached,
    usable_catalogs_of,
)
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.feed import NodePosition, zones_read
from limnos.store.activity.lineage import tables_at_read
from limnos.store.objects.storage_locations import parent_locations
from limnos.view.cache_miss import for_each

OWN_SCHEME: Final = "limnos"
DatasetKey = tuple[str, str]
ObjectPath = tuple[str, ...]


class ResolvedDataset(NamedTuple):
    """The result of resolving a dataset: a visible, hidden or missing object of this server, or an external dataset."""

    dataset: EventDataset
    node_id: int | None = None
    catalog: str | None = None
    catalog_id: int | None = None
    is_seen: bool = False
    is_lost: bool = False
    body: bytes | None = None
    """The document of a visible table, if requested."""

    @property
    def is_hidden(self) -> bool:
        """Whether the dataset is an object of this server that is not visible to the caller, or no longer exists."""
        return self.is_lost or (self.node_id is not None and not self.is_seen)

    @property
    def outside(self) -> DatasetKey:
        """The key for storing it as an external dataset: its first alias (logical name) if it has one, else its own
        key.
        """
        return self.dataset.aliases[0] if self.dataset.aliases else self.dataset.key


class _DatasetCandidate(NamedTuple):
    """The candidates for a dataset's object: possible paths, and the object at the dataset's location with its
    catalog's id (0 if dropped).
    """

    dataset: EventDataset
    paths: tuple[ObjectPath, ...]
    is_ours: bool
    at: tuple[int, int] | None


async def datasets_find(
    ctx: Context,
    metalake: str,
    *,
    home: UsableCatalogs,
    datasets: Iterable[EventDataset],
    authority: str,
    linked: Collection[DatasetKey],
) -> dict[DatasetKey, ResolvedDataset]:
    """Resolve datasets to the objects of a metalake that are visible to the caller.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        home: The metalake's id, and its catalogs that the caller may use.
        datasets: The datasets of the events.
        authority: The host and port by which the caller reached this server.
        linked: The keys of the datasets whose table's document is read, too.

    Raises:
        ServiceUnavailable: Concurrent moves of objects made every attempt fail.
    """
    merged_datasets: dict[DatasetKey, EventDataset] = {}
    for each in datasets:
        earlier_dataset = merged_datasets.get(each.key)
        if earlier_dataset is None or len(each.aliases) > len(earlier_dataset.aliases):
            merged_datasets[each.key] = each
    for _ in range(ATTEMPTS_MAX):
        candidates = await _dataset_candidates(
            ctx, metalake, home=home, datasets=tuple(merged_datasets.values()), authority=authority
        )
        try:
            return await _resolve_candidates(ctx, metalake, home=home, candidates=candidates, linked=linked)
        except (NotFound, PermissionDenied, ChangesOutdated):
            home = await ctx.read(
                RequestScope(metalake), usable_catalogs_of
            )  # a catalog was dropped or renamed, or the rights changed
    raise ServiceUnavailable("The objects of the event were moved too often during the request: send it again")


async def _dataset_candidates(
    ctx: Context, metalake: str, *, home: UsableCatalogs, datasets: Sequence[EventDataset], authority: str
) -> list[_DatasetCandidate]:
    locations_by_key = {each.key: _candidate_locations(each) for each in datasets}
    holders = await ctx.look_up(
        partial(tables_at_read, {place for path in locations_by_key.values() for place in path})
    )
    node_positions = await ctx.look_up(partial(zones_read, set(holders.values())))
    homes = catalogs_of(holders.values(), node_positions, metalake_id=home.metalake_id)
    candidates = []
    for each in datasets:
        holder = next((holders[place] for place in locations_by_key[each.key] if place in holders), None)
        is_own = holder is not None and _is_of(holder, node_positions, metalake_id=home.metalake_id)
        at = (holder, homes.get(holder, 0)) if holder is not None and is_own else None
        is_ours, paths = _paths(each, metalake, authority=authority, properties=home.properties)
        candidates.append(_DatasetCandidate(each, paths, is_ours or at is not None, at))
    return candidates


def _is_of(node_id: int, node_positions: Mapping[int, NodePosition], *, metalake_id: int) -> bool:
    """Return whether a node, live or dropped, belongs to a metalake."""
    while node_id in node_positions:
        if node_id == metalake_id:
            return True
        node_id = node_positions[node_id].parent_id
    return False


def _candidate_locations(dataset: EventDataset) -> tuple[str, ...]:
    """Return the location in a dataset's name and its parent directories, innermost first; empty if the name is not a
    location.
    """
    namespace, name = dataset.key
    if namespace == "file" or namespace.startswith("file:"):
        text = name if name.startswith("/") else f"/{name}"
    elif "://" in namespace:
        text = f"{namespace.rstrip('/')}/{name.lstrip('/')}"
    else:
        return ()
    try:
        location = normalise(text)
    except BadRequest:
        return ()
    return (location, *reversed(parent_locations(location)))


def _paths(
    dataset: EventDataset, metalake: str, *, authority: str, properties: Mapping[str, str]
) -> tuple[bool, tuple[ObjectPath, ...]]:
    """Return whether a dataset's namespace denotes this server, and the possible paths of its name."""
    paths: list[ObjectPath] = []
    is_ours = False
    for namespace, name in (*dataset.aliases, dataset.key):
        mapped = mapped_path(properties, namespace, name=name)
        if mapped is not None:
            is_ours = True
            paths += _check_dataset(mapped)
            continue
        parts = _split(namespace) if "://" in namespace else None
        if parts is None:
            continue
        if parts.scheme == OWN_SCHEME:
            is_ours = True
            if parts.netloc == metalake:
                paths += _parse_address(name)
        elif parts.scheme in {"http", "https"} and parts.netloc.lower() == authority.lower():
            is_ours = True
            catalog = _catalog_of(dataset, metalake)
            if catalog is not None:
                paths += _check_dataset((catalog, *name.split(".")))
    return is_ours, tuple([path for path in dict.fromkeys(paths) if len(path) > 1])


def _catalog_of(dataset: EventDataset, metalake: str) -> str | None:
    """Return the catalog of a dataset: its warehouse, if that is the name of one, else the name in the producer's
    session, which is the session's own. None without either, and for a warehouse of another metalake.
    """
    try:
        owner, catalog = iceberg.decode_warehouse(dataset.warehouse or "")
    except InvalidName:
        return dataset.catalog  # a location, or nothing
    return catalog if owner in (None, metalake) else None


def _split(namespace: str) -> SplitResult | None:
    """Split a dataset's namespace, which is a URL, into its parts. Returns None for a malformed URL."""
    try:
        return urlsplit(namespace)
    except ValueError:
        return None


def _parse_address(text: str) -> list[ObjectPath]:
    try:
        return [tuple(display.parse(text))]
    except InvalidName:
        return []


def _check_dataset(parts: ObjectPath) -> list[ObjectPath]:
    try:
        return [tuple(check_levels(parts))]
    except InvalidName:
        return []


async def _resolve_candidates(
    ctx: Context,
    metalake: str,
    *,
    home: UsableCatalogs,
    candidates: Sequence[_DatasetCandidate],
    linked: Collection[DatasetKey],
) -> dict[DatasetKey, ResolvedDataset]:
    """Resolve candidates on one consistent state of the store. Raises ChangesOutdated, NotFound, PermissionDenied."""
    ids = {name: catalog_id for catalog_id, name in home.catalogs.items()}
    requested_names = {path[0] for candidate in candidates for path in candidate.paths if path[0] in ids}
    requested_names |= {
        home.catalogs[candidate.at[1]]
        for candidate in candidates
        if candidate.at is not None and candidate.at[1] in home.catalogs
    }
    catalogs = tuple(sorted(requested_names))

    def read(request_views: tuple[RequestView, ...]) -> list[ResolvedDataset]:
        by_name = dict(zip(catalogs, request_views, strict=True))
        for name, request_view in by_name.items():
            if request_view.settled.catalog is None or request_view.catalog.id != ids[name]:
                raise ChangesOutdated
            require_nodes_cached(
                request_view,
                [
                    candidate.at[0]
                    for candidate in candidates
                    if candidate.at is not None and candidate.at[1] == request_view.catalog.id
                ],
            )
        return for_each(
            candidates,
            lambda candidate: _resolve_candidate(
                by_name, home, candidate=candidate, with_document=candidate.dataset.key in linked
            ),
        )

    datasets = await read_many_scopes(ctx, tuple(RequestScope(metalake, name) for name in catalogs), read)
    return {each.dataset.key: each for each in datasets}


def _resolve_candidate(
    request_views: dict[str, RequestView], home: UsableCatalogs, *, candidate: _DatasetCandidate, with_document: bool
) -> ResolvedDataset:
    if candidate.at is not None:
        node_id, catalog_id = candidate.at
        name = home.catalogs.get(catalog_id)
        chain = None if name is None else chain_of(request_views[name], node_id)
        if name is None or chain is None:
            return ResolvedDataset(dataset=candidate.dataset, is_lost=True)
        return _resolve_dataset(request_views[name], candidate.dataset, chain=chain, with_document=with_document)
    for path in candidate.paths:
        request_view = request_views.get(path[0])
        node, chain = (None, ()) if request_view is None else request_view.find(path[1:], Kind.TABLE)
        if request_view is not None and node is not None:
            own_chain = chain_of(request_view, node.id)
            if own_chain is not None:
                return _resolve_dataset(request_view, candidate.dataset, chain=own_chain, with_document=with_document)
    return ResolvedDataset(dataset=candidate.dataset, is_lost=candidate.is_ours)


def _resolve_dataset(
    request_view: RequestView, dataset: EventDataset, *, chain: SecurableChain, with_document: bool
) -> ResolvedDataset:
    node_id, kind = chain[0].id, chain[0].kind
    is_visible = request_view.settled.in_use and request_view.decide(Action.METADATA_LOAD, chain).allowed
    body = body_of(request_view, node_id) if is_visible and with_document and kind is Kind.TABLE else None
    return ResolvedDataset(
        dataset=dataset,
        node_id=node_id,
        catalog=request_view.catalog.name,
        catalog_id=request_view.catalog.id,
        is_seen=is_visible,
        body=body,
    )
