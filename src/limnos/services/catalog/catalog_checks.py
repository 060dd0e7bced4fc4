# SPDX-License-Identifier: Apache-2.0
"""Checks of a catalog before it is created or changed: its properties, its storage and its external system.

Writes nothing: `catalogs` creates, alters and drops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from uuid import uuid4

from limnos.access.actions import Action
from limnos.formats.iceberg.class_properties import refuse_catalog_classes
from limnos.model import kinds
from limnos.model.errors import AlreadyExists, BadRequest
from limnos.model.records import CatalogRecord
from limnos.names.path import check_catalog_name
from limnos.services.catalog.catalog_backends import check_backend, check_edited_backend
from limnos.services.catalog.scan_modes import check_scan_mode
from limnos.services.federation.sources import SOURCES, next_hops
from limnos.services.request.catalog_properties import check_unmasked, is_secret, mask_passwords
from limnos.services.request.catalog_storage import WAREHOUSE, check_locations, check_server_location, stated_locations
from limnos.services.request.catalog_traits import check_nested
from limnos.services.request.context import Context
from limnos.services.request.defaults import RequestDefaults
from limnos.services.request.named_storages import MetalakeLabel
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.further import broken_reason, further_providers
from limnos.sources.vending import check_credential_issuers
from limnos.store.objects.setting_names import setting_name_read
from limnos.store.objects.successors import check_successors
from limnos.view.cache_miss import require_fact
from limnos.view.keys import name_key

PROVIDERS = {
    kinds.ICEBERG_PROVIDER: "RELATIONAL",
    kinds.GENERIC_PROVIDER: "RELATIONAL",
    kinds.FILESET_PROVIDER: "FILE",
    kinds.MODEL_PROVIDER: "ML",
    kinds.MESSAGING_PROVIDER: "STREAM",
    **kinds.SOURCE_PROVIDERS,
}
"""The providers of this distribution, with the catalog type of each."""
_TYPES = {"FILESET": "FILE", "MODEL": "ML", "MESSAGING": "STREAM"}
"""Gravitino's names of catalog types, where they differ from ours."""
_BUILT_IN = {"FILE": kinds.FILESET_PROVIDER, "ML": kinds.MODEL_PROVIDER, "STREAM": kinds.MESSAGING_PROVIDER}
"""The default provider of a catalog type."""
_FORMER_NAMES = {"hadoop": kinds.FILESET_PROVIDER}
"""Names of providers before Gravitino 1.0, which its older clients still send."""
_ADDRESSES = ("bootstrap.servers", "jdbc-url", "oauth2-server-uri", "uri")
"""Properties with the URL or hosts of an external system, to which the server sends a catalog's secrets."""


def catalog_check(
    *,
    name: str,
    catalog_type: str | None,
    provider: str | None,
    properties: dict[str, str],
    defaults: RequestDefaults,
    metalake: MetalakeLabel,
    catalog_id: int | None = 0,
) -> CatalogRecord:
    """Check the fields of a new catalog, and return its record.

    Args:
        name: The catalog's name.
        catalog_type: Gravitino's catalog type, in any case; None for the provider's.
        provider: The provider; None for the default of the type.
        properties: The catalog's properties.
        defaults: The server's settings.
        metalake: The metalake, whose name in settings the named storages list.
        catalog_id: The catalog whose directory in the server's warehouse is allowed, as for `check_storage`.

    Raises:
        BadRequest: A field is invalid, or the server does not allow it.
        InvalidName: The name is not allowed.
    """
    check_catalog_name(name)
    requested = None if catalog_type is None else _TYPES.get(catalog_type.upper(), catalog_type.upper())
    provider = _FORMER_NAMES.get(provider or "", provider) or _BUILT_IN.get(requested or "")
    providers = PROVIDERS | further_providers()
    if provider is None or provider not in providers:
        what = "needs a provider" if provider is None else f"cannot have the provider {provider}"
        if provider is not None and (reason := broken_reason(provider)):
            raise BadRequest(f"Catalog {name} {what}: {reason}")
        raise BadRequest(
            f"Catalog {name} {what}: use one of {', '.join(providers)}; Lance tables are in catalogs of"
            " lakehouse-generic"
        )
    expected = providers[provider]
    if requested not in (None, expected):
        words = {current: word.lower() for word, current in _TYPES.items()}
        text = words.get(expected, expected.lower())
        raise BadRequest(f"A catalog of provider {provider} has type {text}, not {catalog_type}")
    check_unmasked(properties)
    refuse_catalog_classes(properties)
    check_nested(properties)
    check_scan_mode(properties)
    check_successors(properties, has_tables=provider in kinds.TABLE_FORMATS)
    check_storage(properties, defaults, metalake=metalake, provider=provider, catalog_id=catalog_id)
    return CatalogRecord(type=expected, provider=provider, comment=None, properties=properties, in_use=True)


def check_storage(
    properties: Mapping[str, str],
    defaults: RequestDefaults,
    *,
    metalake: MetalakeLabel,
    provider: str = "",
    catalog_id: int | None = 0,
) -> None:
    """Check a catalog's properties for the locations of its files and the connection to them.

    Args:
        properties: The catalog's properties.
        defaults: The server's settings.
        metalake: The metalake, whose name in settings the named storages list.
        provider: The catalog's provider.
        catalog_id: The catalog whose directory in the server's warehouse is allowed: 0 for none, None for any.

    Raises:
        BadRequest: A property is invalid, or the server does not allow it.
    """
    defaults.storages.check(properties, metalake=metalake)
    for location in stated_locations(properties, provider=provider):
        check_server_location(location, defaults.warehouse, catalog_id=catalog_id)
    check_locations(properties, defaults.storages.allowed_storage(properties, defaults.allowed), provider=provider)
    check_credential_issuers(properties)


async def metalake_label(ctx: Context, metalake: str) -> MetalakeLabel:
    """Return a metalake's current name with its name in settings. Raises NotFound."""
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    return MetalakeLabel(metalake, await ctx.look_up(partial(setting_name_read, metalake_id)))


async def catalog_test(
    ctx: Context,
    *,
    metalake: str,
    name: str,
    catalog_type: str | None,
    provider: str | None,
    properties: dict[str, str],
) -> None:
    """Check that a catalog with these properties could be created, without creating it.

    Raises the errors of `catalog_create`, ServiceUnavailable or StorageFailed if the warehouse does not respond, and
    SourceFailed if the external system does not.
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
        name=name,
        catalog_type=catalog_type,
        provider=provider,
        properties=properties,
        defaults=ctx.services.defaults,
        metalake=await metalake_label(ctx, metalake),
    )
    check_backend(record.provider, record.properties)
    if kinds.is_source_provider(record.provider):
        await SOURCES.of(ctx.services).load()
        SOURCES.of(ctx.services).check(record.provider, record.properties)
        await SOURCES.of(ctx.services).check_connection(
            record.provider, record.properties, catalog=name, hops=await next_hops(ctx)
        )
    else:
        await _probe_warehouse(ctx, record.properties)


async def catalog_test_edited(ctx: Context, *, metalake: str, name: str, edits: PropertyEdits) -> None:
    """Test the connection to a catalog's warehouse or external system, with its stored properties or with the edits.

    Writes nothing. Raises as `catalog_test`, and NotFound.
    """
    if edits.name is not None:
        check_catalog_name(edits.name)
    check_unmasked(edits.sets)
    refuse_catalog_classes(edits.sets)
    action = Action.CATALOG_LOAD if edits == PropertyEdits() else Action.CATALOG_ALTER

    def read(request_view: RequestView) -> tuple[CatalogRecord, int]:
        request_view.require(action, request_view.settled.outer)
        request_view.require_in_use()
        return request_view.catalog_record, request_view.catalog.id

    record, catalog_id = await ctx.read(RequestScope(metalake, name), read)
    record = replace(record, properties=ctx.services.defaults.storages.keys.open_properties(record.properties))
    properties = edits.over(record.properties)
    if kinds.is_source_provider(record.provider):
        _refuse_other_address(record, properties, edits=edits)
        await SOURCES.of(ctx.services).load()
        SOURCES.of(ctx.services).check(record.provider, properties)
        await SOURCES.of(ctx.services).check_connection(
            record.provider, properties, catalog=name, hops=await next_hops(ctx)
        )
        return
    check_edited_backend(record.provider, properties, edited=edits.sets)
    label = await metalake_label(ctx, metalake)
    check_storage(properties, ctx.services.defaults, metalake=label, provider=record.provider, catalog_id=catalog_id)
    await _probe_warehouse(ctx, properties)


def _refuse_other_address(record: CatalogRecord, properties: Mapping[str, str], *, edits: PropertyEdits) -> None:
    """Refuse an edit that would send a stored secret to a new endpoint.

    A caller who changes a property with an endpoint must send the secrets again, which proves that the caller knows
    them. Of a connector of another package, every property may name an endpoint. Raises BadRequest otherwise.
    """
    is_further = record.provider.startswith(kinds.FURTHER_PROVIDER)
    checked_names = properties.keys() | record.properties.keys() if is_further else _ADDRESSES
    moved = sorted(key for key in checked_names if properties.get(key) != record.properties.get(key))
    names = sorted(
        key
        for key, value in properties.items()
        if key not in edits.sets and (is_secret(key) or (is_further and mask_passwords(value) != value))
    )
    if moved and names:
        verb = "may decide" if is_further else "decides"
        raise BadRequest(
            f"Property {moved[0]} {verb} which system receives {', '.join(names)}: change both together, and send the"
            " secret again"
        )


async def _probe_warehouse(ctx: Context, properties: Mapping[str, str]) -> None:
    """Test the connection to the warehouse by a request for a missing file: any response means success."""
    warehouse = properties.get(WAREHOUSE) or ctx.services.defaults.warehouse
    await ctx.services.files.exists(
        f"{warehouse.rstrip('/')}/{uuid4().hex}", ctx.services.defaults.storages.usable(properties)
    )
