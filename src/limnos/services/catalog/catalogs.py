"""Catalogs: create, load, list, alter, enable, disable, test and drop.

May import the rooms below. Must not know any wire format. A catalog is an object of its metalake's zone, and has a zone
of its own for the objects in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.files import STORAGE
from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, InUse
from limnos.model.kinds import (
    FILESET_PROVIDER,
    GENERIC_PROVIDER,
    ICEBERG_PROVIDER,
    MESSAGING_PROVIDER,
    MODEL_PROVIDER,
    SOURCE_PROVIDERS,
    Kind,
)
from limnos.model.records import CatalogRecord
from limnos.names.path import check_catalog_name
from limnos.services.catalog.catalog_backends import check_backend, check_edited_backend
from limnos.services.catalog.nested_namespaces import refuse_nesting_change
from limnos.services.catalog.scan_modes import check_scan_mode
from limnos.services.federation.sources import SOURCES
from limnos.services.request.catalog_properties import catalog_mask, check_unmasked, is_secret
from limnos.services.request.catalog_storage import WAREHOUSE, check_locations, check_server_location, stated_locations
from limnos.services.request.catalog_traits import check_nested, is_nested
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.secret_sealing import SealingKeys
from limnos.services.request.table_formats import is_sourced
from limnos.services.storage.catalog_locations import catalog_locations_claim
from limnos.sources.vending import check_credential_issuers
from limnos.view.cache_miss import for_each, require_fact, require_facts
from limnos.view.keys import listing_key, name_key, node_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.defaults import RequestDefaults
    from limnos.services.request.request_view import RequestView
    from limnos.store.tx import Tx

PROVIDERS = {
    ICEBERG_PROVIDER: "RELATIONAL",
    GENERIC_PROVIDER: "RELATIONAL",
    FILESET_PROVIDER: "FILE",
    MODEL_PROVIDER: "ML",
    MESSAGING_PROVIDER: "STREAM",
    **SOURCE_PROVIDERS,
}
"""The supported providers, with the catalog type of each."""
_TYPES = {"FILESET": "FILE", "MODEL": "ML", "MESSAGING": "STREAM"}
"""Gravitino's names of catalog types, where they differ from ours."""
_ADDRESSES = ("bootstrap.servers", "jdbc-url", "oauth2-server-uri", "uri")
"""Properties with the address of an external system, to which the server sends a catalog's secrets."""
_BUILT_IN = {"FILE": FILESET_PROVIDER, "ML": MODEL_PROVIDER, "STREAM": MESSAGING_PROVIDER}
"""The default provider of a catalog type."""


class CatalogCreate(msgspec.Struct, frozen=True):
    """Create a catalog."""

    metalake: Node
    name: str
    record: CatalogRecord
    owner_id: int | None
    warehouse: str
    """The server's warehouse, in which a catalog without a warehouse of its own gets a directory."""


class CatalogAlter(msgspec.Struct, frozen=True):
    """Change a catalog's name, comment, properties or state."""

    catalog: Node
    edits: PropertyEdits
    in_use: bool | None = None
    separator: str = ""
    """The separator, which no namespace name may contain once namespaces may nest."""
    keys: SealingKeys = SealingKeys()  # holds no keys
    """The keys that seal secrets."""
    warehouse: str = ""
    """The server's warehouse; empty if no location changes."""


class CatalogDrop(msgspec.Struct, frozen=True):
    """Drop a catalog; with `force` even if it is enabled or has namespaces."""

    catalog: Node
    force: bool
    in_use_too: bool = False
    """Whether an enabled catalog may be dropped if it is empty."""


def catalog_require(request_view: RequestView) -> Node:
    """Return the scope's catalog if the caller may use it, enabled or not. Raises NotFound, PermissionDenied."""
    request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)
    return request_view.catalog


def catalog_use(request_view: RequestView) -> CatalogRecord:
    """Return the record of an enabled catalog that the caller may use. Raises NotInUse, NotFound, PermissionDenied."""
    request_view.require_in_use()
    return cast("CatalogRecord", catalog_require(request_view).record)


def catalog_load(request_view: RequestView) -> Node:
    """Return a catalog that the caller may use, with the properties that the caller may see.

    Raises NotFound, NotInUse (a disabled metalake), PermissionDenied.
    """
    catalog = catalog_require(request_view)
    request_view.require_in_metalake_use()
    return _catalog_for_caller(request_view, catalog)


def _catalog_for_caller(request_view: RequestView, catalog: Node) -> Node:
    chain = (ChainLink(catalog.id, Kind.CATALOG, catalog.name), *request_view.settled.outer[-1:])
    return catalog_mask(catalog, may_alter=request_view.decide(Action.CATALOG_ALTER, chain).allowed)


def catalogs_list(request_view: RequestView) -> list[Node]:
    """Return the catalogs that the caller may use, by name, with the properties that the caller may see."""
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


def catalog_check(
    *, name: str, catalog_type: str | None, provider: str | None, properties: dict[str, str], defaults: RequestDefaults, metalake: str,
    catalog_id: int | None = 0,
) -> CatalogRecord:  # fmt: skip
    """Check the fields of a new catalog, and return its record.

    Args:
        name: The catalog's name.
        catalog_type: Gravitino's catalog type, in any case; None for the provider's.
        provider: The provider; None for the default of the type.
        properties: The catalog's properties.
        defaults: The server's settings.
        metalake: The name of the metalake.
        catalog_id: As for `check_storage`.

    Raises:
        BadRequest: A field is invalid, or the server does not allow it.
        InvalidName: The name is not allowed.
    """
    check_catalog_name(name)
    requested = None if catalog_type is None else _TYPES.get(catalog_type.upper(), catalog_type.upper())
    provider = provider or _BUILT_IN.get(requested or "")
    if provider is None or provider not in PROVIDERS:
        served = ", ".join(PROVIDERS)
        raise BadRequest(f"Provider {provider} of catalog {name} is not served: use one of {served}")
    expected = PROVIDERS[provider]
    if requested not in (None, expected):
        words = {current: word.lower() for word, current in _TYPES.items()}
        text = words.get(expected, expected.lower())
        raise BadRequest(f"A catalog of provider {provider} has type {text}, not {catalog_type}")
    check_unmasked(properties)
    check_nested(properties)
    check_scan_mode(properties)
    check_storage(properties, defaults, metalake=metalake, provider=provider, catalog_id=catalog_id)
    return CatalogRecord(type=expected, provider=provider, comment=None, properties=properties, in_use=True)


def check_storage(
    properties: Mapping[str, str],
    defaults: RequestDefaults,
    *,
    metalake: str,
    provider: str = "",
    catalog_id: int | None = 0,
) -> None:
    """Check the properties that say where a catalog's files are and how they are reached.

    Args:
        properties: The catalog's properties.
        defaults: The server's settings.
        metalake: The name of the metalake.
        provider: The catalog's provider.
        catalog_id: The catalog whose directory in the server's warehouse they may name: 0 for none, None for any.

    Raises:
        BadRequest: A property is invalid, or the server does not allow it.
    """
    defaults.storages.check(properties, metalake=metalake)
    for location in stated_locations(properties, provider=provider):
        check_server_location(location, defaults.warehouse, catalog_id=catalog_id)
    check_locations(properties, defaults.storages.allowed(properties, defaults.allowed), provider=provider)
    check_credential_issuers(properties)


async def catalog_test(
    ctx: Context, *, metalake: str, name: str, catalog_type: str | None, provider: str | None,
    properties: dict[str, str],
) -> None:  # fmt: skip
    """Check that a catalog with these properties could be created, without creating it.

    Raises what `catalog_create` raises, and ServiceUnavailable or StorageFailed if the warehouse does not answer.
    """

    def decide(request_view: RequestView) -> None:
        request_view.require_in_use()
        request_view.require(Action.CATALOG_CREATE, request_view.settled.outer)
        if (
            require_fact(request_view.view, name_key(request_view.metalake.id, "catalog", name), zone=request_view.zone)
            is not None
        ):
            raise AlreadyExists(f"Catalog {name} already exists in metalake {metalake}", kind="catalog")

    await ctx.read(RequestScope(metalake), decide)
    record = catalog_check(
        name=name, catalog_type=catalog_type, provider=provider, properties=properties,
        defaults=ctx.services.defaults, metalake=metalake,
    )  # fmt: skip
    check_backend(record.provider, record.properties)
    if record.provider in SOURCE_PROVIDERS:
        SOURCES.of(ctx.services).check(record.provider, record.properties)
        await SOURCES.of(ctx.services).check_connection(record.provider, record.properties)
    else:
        await _probe_warehouse(ctx, record.properties)


async def catalog_test_edited(ctx: Context, *, metalake: str, name: str, edits: PropertyEdits) -> None:
    """Check that a catalog works, or that it would work with the edits; nothing is written.

    Raises as `catalog_test`.
    """
    if edits.name is not None:
        check_catalog_name(edits.name)
    check_unmasked(edits.sets)
    action = Action.CATALOG_LOAD if edits == PropertyEdits() else Action.CATALOG_ALTER

    def read(request_view: RequestView) -> tuple[CatalogRecord, int]:
        request_view.require(action, request_view.settled.outer)
        request_view.require_in_use()
        return request_view.catalog_record, request_view.catalog.id

    record, catalog_id = await ctx.read(RequestScope(metalake, name), read)
    record = replace(record, properties=ctx.services.defaults.storages.keys.opened(record.properties))
    properties = edits.over(record.properties)
    if record.provider in SOURCE_PROVIDERS:
        _refuse_other_address(record, properties, edits=edits)
        SOURCES.of(ctx.services).check(record.provider, properties)
        await SOURCES.of(ctx.services).check_connection(record.provider, properties)
        return
    check_edited_backend(record.provider, properties, edited=edits.sets)
    check_storage(properties, ctx.services.defaults, metalake=metalake, catalog_id=catalog_id)
    await _probe_warehouse(ctx, properties)


def _refuse_other_address(record: CatalogRecord, properties: Mapping[str, str], *, edits: PropertyEdits) -> None:
    """Refuse to send a stored secret to a new address.

    A caller who changes an address must repeat the secrets, which proves that the caller knows them. Raises BadRequest.
    """
    moved = sorted(key for key in _ADDRESSES if properties.get(key) != record.properties.get(key))
    names = sorted(key for key in properties if is_secret(key) and key not in edits.sets)
    if moved and names:
        raise BadRequest(
            f"Property {moved[0]} says to whom this server shows {', '.join(names)}: change it together with that, saying the secret again"
        )


async def _probe_warehouse(ctx: Context, properties: Mapping[str, str]) -> None:
    """Look for a file that does not exist in the warehouse: any answer shows that the connection works."""
    warehouse = properties.get(WAREHOUSE) or ctx.services.defaults.warehouse
    await ctx.services.files.exists(
        f"{warehouse.rstrip('/')}/{uuid4().hex}", ctx.services.defaults.storages.usable(properties)
    )


async def catalog_create(
    ctx: Context, *, metalake: str, name: str, catalog_type: str | None, provider: str | None, comment: str | None,
    properties: dict[str, str],
) -> Node:  # fmt: skip
    """Create a catalog; the caller owns it.

    Raises AlreadyExists, BadRequest, InvalidName, NotInUse, PermissionDenied.
    """
    checked = catalog_check(
        name=name, catalog_type=catalog_type, provider=provider, properties=properties,
        defaults=ctx.services.defaults, metalake=metalake,
    )  # fmt: skip
    check_backend(checked.provider, properties)
    defaults = ctx.services.defaults
    sealed = defaults.storages.keys.sealed(properties)
    record = replace(checked, comment=comment, properties=sealed)

    def decide(request_view: RequestView) -> Permit[CatalogCreate]:
        request_view.require_in_use()
        decision = request_view.require(Action.CATALOG_CREATE, request_view.settled.outer)
        if record.provider in SOURCE_PROVIDERS:
            SOURCES.of(ctx.services).check(record.provider, properties)
        if (
            require_fact(request_view.view, name_key(request_view.metalake.id, "catalog", name), zone=request_view.zone)
            is not None
        ):
            raise AlreadyExists(f"Catalog {name} already exists in metalake {metalake}", kind="catalog")
        return request_view.permit(
            CatalogCreate(request_view.metalake, name, record, request_view.maker_id, defaults.warehouse), decision
        )

    return catalog_mask(await ctx.write(RequestScope(metalake), decide, catalog_insert), may_alter=True)


def catalog_insert(tx: Tx, permit: Permit[CatalogCreate]) -> Node:
    """Insert the catalog with its clock, its owner and its locations."""
    command = permit.command
    if not tx.nodes.is_alive(command.metalake.id):
        tx.stale()
    catalog_id = tx.next_id()
    tx.new_zone(catalog_id)
    node = tx.nodes.create(
        kind=Kind.CATALOG, space="catalog", name=command.name, parent_id=command.metalake.id,
        zone=command.metalake.id, record=command.record, owner_id=command.owner_id, node_id=catalog_id,
    )  # fmt: skip
    catalog_locations_claim(tx, catalog_id, record=command.record, warehouse=command.warehouse)
    return node


async def catalog_alter(ctx: Context, *, metalake: str, name: str, edits: PropertyEdits) -> Node:
    """Rename a catalog, or change its comment or properties.

    Raises NotFound, AlreadyExists, BadRequest, InvalidName, NotInUse, PermissionDenied.
    """
    if edits.name is not None:
        check_catalog_name(edits.name)
    check_unmasked(edits.sets)
    check_nested(edits.sets)
    check_scan_mode(edits.sets)
    defaults = ctx.services.defaults

    def decide(request_view: RequestView) -> Permit[CatalogAlter]:
        decision = request_view.require(Action.CATALOG_ALTER, request_view.settled.outer)
        request_view.require_in_use()
        record = request_view.catalog_record
        _check_edited(record, edits, defaults=defaults, metalake=metalake, catalog_id=request_view.catalog.id)
        if is_sourced(request_view):
            record = replace(record, properties=defaults.storages.keys.opened(record.properties))
            properties = edits.over(record.properties)
            SOURCES.of(ctx.services).check(record.provider, properties)
            _refuse_other_address(record, properties, edits=edits)
        command = CatalogAlter(
            request_view.catalog,
            edits,
            separator=defaults.separator,
            keys=defaults.storages.keys,
            warehouse=defaults.warehouse,
        )
        return request_view.permit(command, decision, zone=request_view.metalake.id)

    return catalog_mask(await ctx.write(RequestScope(metalake, name), decide, catalog_update), may_alter=True)


def _check_edited(
    record: CatalogRecord, edits: PropertyEdits, *, defaults: RequestDefaults, metalake: str, catalog_id: int
) -> None:
    """Check the edited properties about files.

    If a named storage is set, check all properties beside it. Raises BadRequest.
    """
    after = edits.over(record.properties)
    check_edited_backend(record.provider, after, edited=edits.sets)
    sets = after if STORAGE in after else dict(edits.sets)
    check_storage(sets, defaults, metalake=metalake, provider=record.provider, catalog_id=catalog_id)


async def catalog_enable(ctx: Context, *, metalake: str, name: str, in_use: bool) -> Node:
    """Enable or disable a catalog; no error if it is in that state already. Raises NotFound, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[CatalogAlter]:
        decision = request_view.require(Action.CATALOG_ENABLE, request_view.settled.outer)
        return request_view.permit(
            CatalogAlter(request_view.catalog, PropertyEdits(), in_use), decision, zone=request_view.metalake.id
        )

    return await ctx.write(RequestScope(metalake, name), decide, catalog_update)


def catalog_update(tx: Tx, permit: Permit[CatalogAlter]) -> Node:
    """Write the catalog's new record, then its new name."""
    command = permit.command
    node = tx.nodes.confirm(command.catalog)
    record = cast("CatalogRecord", node.record)
    in_use = record.in_use if command.in_use is None else command.in_use
    changed = replace(
        record,
        comment=command.edits.edited_comment(record.comment),
        properties=command.keys.sealed(command.edits.over(record.properties)),
        in_use=in_use,
    )
    refuse_nesting_change(tx, node, before=is_nested(record), after=is_nested(changed), separator=command.separator)
    if command.warehouse:
        catalog_locations_claim(tx, node.id, record=changed, warehouse=command.warehouse)
    # decisions below the catalog depend on its roots and its state
    tx.nodes.write_record(node, changed, moves_access=True)
    if command.edits.name is not None and command.edits.name != node.name:
        tx.nodes.move(node, parent_id=node.parent_id, name=command.edits.name, moves_access=True)
    return tx.nodes.by_id(node.id)


async def catalog_drop(ctx: Context, *, metalake: str, name: str, force: bool) -> None:
    """Drop a catalog.

    Raises NotFound, PermissionDenied, InUse while it is enabled, NotEmpty while it has namespaces. `force` skips the
    last two.
    """

    def decide(request_view: RequestView) -> Permit[CatalogDrop]:
        decision = request_view.require(Action.CATALOG_DROP, request_view.settled.outer)
        return request_view.permit(CatalogDrop(request_view.catalog, force), decision, zone=request_view.metalake.id)

    await ctx.write(RequestScope(metalake, name), decide, catalog_delete)


def catalog_delete(tx: Tx, permit: Permit[CatalogDrop]) -> None:
    """Drop the catalog's node; objects below it can no longer be reached."""
    node = tx.nodes.confirm(permit.command.catalog)
    if not permit.command.force:
        if cast("CatalogRecord", node.record).in_use and not permit.command.in_use_too:
            raise InUse(f"Catalog {node.name} is enabled: disable it first, or force the drop", kind="catalog")
        # catalogs of external systems contain only placeholder nodes
        if cast("CatalogRecord", node.record).provider not in SOURCE_PROVIDERS:
            tx.nodes.require_empty(node, ", or force the drop")
    tx.places.clear_roots(node.id)
    tx.nodes.drop(node)
