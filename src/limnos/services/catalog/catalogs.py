# SPDX-License-Identifier: Apache-2.0
"""Catalogs: create, load, list, alter, enable, disable and drop.

Must not know any wire format. A catalog is an object of its metalake's zone, and has a zone of its own for the objects
in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.files import STORAGE
from limnos.formats.iceberg.class_properties import refuse_catalog_classes
from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, InUse
from limnos.model.kinds import TABLE_FORMATS, Kind, is_source_provider
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.names.path import check_catalog_name
from limnos.services.catalog.catalog_backends import check_backend, check_edited_backend
from limnos.services.catalog.catalog_checks import _refuse_other_address, catalog_check, check_storage, metalake_label
from limnos.services.catalog.nested_namespaces import refuse_nesting_change
from limnos.services.catalog.scan_modes import check_scan_mode
from limnos.services.federation.sources import SOURCES
from limnos.services.request.catalog_properties import catalog_mask, check_unmasked
from limnos.services.request.catalog_traits import check_nested, is_nested
from limnos.services.request.context import Context
from limnos.services.request.defaults import RequestDefaults
from limnos.services.request.named_storages import MetalakeLabel
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.secret_sealing import SealingKeys
from limnos.services.request.table_formats import is_sourced
from limnos.services.storage.catalog_locations import catalog_locations_claim
from limnos.store.objects.successors import SAME_OWNER, SUCCESSORS, SuccessorWrites, check_successors
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each, require_fact, require_facts
from limnos.view.keys import listing_key, name_key, node_key


class CatalogCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a catalog with its record, owner and storage locations."""

    metalake: Node
    name: str
    record: CatalogRecord
    owner_id: int | None
    warehouse: str
    """The server's warehouse, in which a catalog without its own warehouse gets a directory."""


class CatalogAlter(msgspec.Struct, frozen=True, kw_only=True):
    """The command to change a catalog's name, comment, properties or state."""

    catalog: Node
    edits: PropertyEdits
    in_use: bool | None = None
    separator: str = ""
    """The separator, which no namespace name may contain once namespaces may nest."""
    keys: SealingKeys = SealingKeys()  # empty and without a file, so it never changes and may be shared
    """The keys that encrypt secret properties; none by default."""
    warehouse: str = ""
    """The server's warehouse; empty if no location changes."""


class CatalogDrop(msgspec.Struct, frozen=True):
    """The command to drop a catalog; with `force` even if it is enabled or has namespaces."""

    catalog: Node
    force: bool
    in_use_too: bool = False
    """Whether an enabled catalog may be dropped if it is empty."""


def catalog_require(request_view: RequestView) -> Node:
    """Return the catalog of the request view's scope, enabled or not, if the caller may use it. Raises NotFound,
    PermissionDenied.
    """
    request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)
    return request_view.catalog


def catalog_use(request_view: RequestView) -> CatalogRecord:
    """Return the record of an enabled catalog that the caller may use. Raises NotInUse, NotFound, PermissionDenied."""
    request_view.require_in_use()
    return cast("CatalogRecord", catalog_require(request_view).record)


def catalog_load(request_view: RequestView) -> Node:
    """Return a catalog that the caller may use, with the properties that are visible to the caller.

    Raises NotFound, NotInUse (a disabled metalake), PermissionDenied.
    """
    catalog = catalog_require(request_view)
    request_view.require_in_metalake_use()
    return _catalog_for_caller(request_view, catalog)


def _catalog_for_caller(request_view: RequestView, catalog: Node) -> Node:
    chain = (ChainLink(catalog.id, Kind.CATALOG, catalog.name), *request_view.settled.outer[-1:])
    return catalog_mask(catalog, may_alter=request_view.decide(Action.CATALOG_ALTER, chain).allowed)


def catalogs_list(request_view: RequestView) -> list[Node]:
    """Return the catalogs that the caller may use, by name, with the properties that are visible to the caller. Raises
    NotFound, NotInUse (a disabled metalake), PermissionDenied.
    """
    request_view.require(Action.CATALOG_LIST, request_view.settled.outer)
    request_view.require_in_metalake_use()
    metalake_id = request_view.metalake.id
    fact = require_fact(request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    ids = fact.ids
    if request_view.rules.access_enabled:
        output = list_filter(
            request_view.subject, Action.CATALOG_LIST, request_view.settled.outer, request_view.owner_of
        )
        ids = tuple(ids[position] for position in output.positions(fact.ids, fact.owners))
    nodes = cast(
        "list[Node]", require_facts(request_view.view, [node_key(node_id) for node_id in ids], zone=metalake_id)
    )
    return for_each(nodes, lambda node: _catalog_for_caller(request_view, node))


async def _label(ctx: Context, metalake: str, *, properties: Mapping[str, str]) -> MetalakeLabel:
    """Return a metalake's label; without its name in settings if the properties name no storage."""
    return await metalake_label(ctx, metalake) if STORAGE in properties else MetalakeLabel(metalake, "")


async def catalog_create(
    ctx: Context,
    *,
    metalake: str,
    name: str,
    catalog_type: str | None,
    provider: str | None,
    comment: str | None,
    properties: dict[str, str],
) -> Node:
    """Create a catalog; the caller owns it.

    Raises AlreadyExists, BadRequest for an invalid field, InvalidName, NotInUse (a disabled metalake),
    PermissionDenied.
    """
    checked_catalog = catalog_check(
        name=name,
        catalog_type=catalog_type,
        provider=provider,
        properties=properties,
        defaults=ctx.services.defaults,
        metalake=await _label(ctx, metalake, properties=properties),
    )
    check_backend(checked_catalog.provider, properties)
    defaults = ctx.services.defaults
    sealed = defaults.storages.keys.seal_properties(properties)
    record = replace(checked_catalog, comment=comment, properties=sealed)
    if is_source_provider(record.provider):
        await SOURCES.of(ctx.services).load()

    def decide(request_view: RequestView) -> Permit[CatalogCreate]:
        request_view.require_in_use()
        decision = request_view.require(Action.CATALOG_CREATE, request_view.settled.outer)
        if is_source_provider(record.provider):
            SOURCES.of(ctx.services).check(record.provider, properties)
        if (
            require_fact(request_view.view, name_key(request_view.metalake.id, "catalog", name), zone=request_view.zone)
            is not None
        ):
            raise AlreadyExists(f"Catalog {name} already exists in metalake {metalake}", kind="catalog")
        return request_view.permit(
            CatalogCreate(
                metalake=request_view.metalake,
                name=name,
                record=record,
                owner_id=request_view.maker_id,
                warehouse=defaults.warehouse,
            ),
            decision,
        )

    return catalog_mask(await ctx.write(RequestScope(metalake), decide, catalog_insert), may_alter=True)


def catalog_insert(tx: Tx, permit: Permit[CatalogCreate]) -> Node:
    """Insert the catalog with its own zone, its owner and its locations."""
    command = permit.command
    if not tx.nodes.is_alive(command.metalake.id):
        tx.stale()
    catalog_id = tx.next_id()
    tx.new_zone(catalog_id)
    node = tx.nodes.create(
        kind=Kind.CATALOG,
        space="catalog",
        name=command.name,
        parent_id=command.metalake.id,
        zone=command.metalake.id,
        record=command.record,
        owner_id=command.owner_id,
        node_id=catalog_id,
    )
    catalog_locations_claim(tx, catalog_id, record=command.record, warehouse=command.warehouse)
    return node


async def catalog_alter(ctx: Context, *, metalake: str, name: str, edits: PropertyEdits) -> Node:
    """Rename a catalog, or change its comment or properties.

    Raises NotFound, AlreadyExists (the new name), BadRequest for an invalid property, InvalidName if a namespace's name
    contains the separator and namespaces would nest, InvalidName, NotInUse (a disabled metalake or catalog),
    PermissionDenied.
    """
    if edits.name is not None:
        check_catalog_name(edits.name)
    check_unmasked(edits.sets)
    refuse_catalog_classes(edits.sets)
    check_nested(edits.sets)
    check_scan_mode(edits.sets)
    defaults, label = ctx.services.defaults, await metalake_label(ctx, metalake)

    def decide(request_view: RequestView) -> Permit[CatalogAlter]:
        decision = request_view.require(Action.CATALOG_ALTER, request_view.settled.outer)
        request_view.require_in_use()
        record = request_view.catalog_record
        _check_edited(record, edits, defaults=defaults, metalake=label, catalog_id=request_view.catalog.id)
        if is_sourced(request_view):
            record = replace(record, properties=defaults.storages.keys.open_properties(record.properties))
            properties = edits.over(record.properties)
            SOURCES.of(ctx.services).check(record.provider, properties)
            _refuse_other_address(record, properties, edits=edits)
        command = CatalogAlter(
            catalog=request_view.catalog,
            edits=edits,
            separator=defaults.separator,
            keys=defaults.storages.keys,
            warehouse=defaults.warehouse,
        )
        return request_view.permit(command, decision, zone=request_view.metalake.id)

    return catalog_mask(await ctx.write(RequestScope(metalake, name), decide, catalog_update), may_alter=True)


def _check_edited(
    record: CatalogRecord, edits: PropertyEdits, *, defaults: RequestDefaults, metalake: MetalakeLabel, catalog_id: int
) -> None:
    """Check the edited properties that affect locations and storage access.

    If the catalog uses a named storage, all properties are checked. Raises BadRequest if one is invalid.
    """
    after = edits.over(record.properties)
    check_successors(after, has_tables=record.provider in TABLE_FORMATS)
    check_edited_backend(record.provider, after, edited=edits.sets)
    sets = after if STORAGE in after else dict(edits.sets)
    check_storage(sets, defaults, metalake=metalake, provider=record.provider, catalog_id=catalog_id)


async def catalog_enable(ctx: Context, *, metalake: str, name: str, in_use: bool) -> Node:
    """Enable or disable a catalog; no error if it is in that state already. Raises NotFound, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[CatalogAlter]:
        action = Action.CATALOG_LOAD if request_view.rules.users_enable_catalogs else Action.CATALOG_ENABLE
        decision = request_view.require(action, request_view.settled.outer)
        return request_view.permit(
            CatalogAlter(catalog=request_view.catalog, edits=PropertyEdits(), in_use=in_use),
            decision,
            zone=request_view.metalake.id,
        )

    return await ctx.write(RequestScope(metalake, name), decide, catalog_update)


def catalog_update(tx: Tx, permit: Permit[CatalogAlter]) -> Node:
    """Write the catalog's new record and locations, then its new name."""
    command = permit.command
    node = tx.nodes.confirm(command.catalog)
    record = cast("CatalogRecord", node.record)
    in_use = record.in_use if command.in_use is None else command.in_use
    new_record = replace(
        record,
        comment=command.edits.edited_comment(record.comment),
        properties=command.keys.seal_properties(command.edits.over(record.properties)),
        in_use=in_use,
    )
    refuse_nesting_change(tx, node, before=is_nested(record), after=is_nested(new_record), separator=command.separator)
    if command.warehouse:
        catalog_locations_claim(tx, node.id, record=new_record, warehouse=command.warehouse)
    if new_record.properties.get(SUCCESSORS) != SAME_OWNER:
        SuccessorWrites(tx).forget_zone(node.id)
    # decisions below the catalog depend on its roots and its state
    tx.nodes.write_record(node, new_record, moves_access=True)
    if command.edits.name is not None and command.edits.name != node.name:
        tx.nodes.move(node, parent_id=node.parent_id, name=command.edits.name, moves_access=True)
    return tx.nodes.by_id(node.id)


async def catalog_drop(ctx: Context, *, metalake: str, name: str, force: bool, in_use_too: bool = False) -> None:
    """Drop a catalog.

    Raises NotFound, PermissionDenied, InUse while it is enabled, NotEmpty while it has namespaces. `force` skips the
    last two checks, and `in_use_too` the first of them.
    """

    def decide(request_view: RequestView) -> Permit[CatalogDrop]:
        decision = request_view.require(Action.CATALOG_DROP, request_view.settled.outer)
        command = CatalogDrop(request_view.catalog, force, in_use_too)
        return request_view.permit(command, decision, zone=request_view.metalake.id)

    await ctx.write(RequestScope(metalake, name), decide, catalog_delete)


def catalog_delete(tx: Tx, permit: Permit[CatalogDrop]) -> None:
    """Drop the catalog's node and release its storage roots; objects below it can no longer be reached.

    Raises InUse, NotEmpty.
    """
    node = tx.nodes.confirm(permit.command.catalog)
    if not permit.command.force:
        if cast("CatalogRecord", node.record).in_use and not permit.command.in_use_too:
            raise InUse(f"Catalog {node.name} is enabled: disable it first, or force the drop", kind="catalog")
        # catalogs of external systems contain only placeholder nodes
        if not is_source_provider(cast("CatalogRecord", node.record).provider):
            tx.nodes.require_empty(node, ", or force the drop")
    tx.places.clear_roots(node.id)
    tx.nodes.drop(node)
