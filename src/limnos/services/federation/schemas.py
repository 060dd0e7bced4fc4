# SPDX-License-Identifier: Apache-2.0
"""Schemas of external systems: list, load, create, alter, drop. Rights on paths in the tree decide access.

Each function decides first, on one request view, and then calls the source. If an object is not visible to the caller,
the error is the same whether it exists in the source or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import UnsupportedOperation
from limnos.model.kinds import FURTHER_PROVIDER, Kind
from limnos.names.path import Levels
from limnos.services.federation import source_objects
from limnos.services.federation.connector_values import schema_of
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object, placeholder_find
from limnos.services.federation.sources import ask_source, shown_after_change
from limnos.services.request.browsing import listing_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import SourceSchemaInfo, with_schemas


class FederatedSchema(NamedTuple):
    """A schema of an external system, and its placeholder node."""

    info: SourceSchemaInfo
    node: Node | None
    catalog: Node


def schemas_visible(request_view: RequestView, parent: Levels = ()) -> source_objects.VisibleSourceNames:
    """Authorize a list of the schemas in `parent` (empty: the top level). Returns the filter for visible names.

    Raises NotInUse, PermissionDenied.
    """
    request_view.require_in_use()
    listing_require(request_view, parent)
    chain = placeholder_find(request_view, Kind.NAMESPACE, path=parent)[1] if parent else request_view.settled.outer
    return source_objects.visible_names_of_container(
        request_view, parent, chain=chain, kind=Kind.NAMESPACE, action=Action.NAMESPACE_LIST
    )


async def schemas_list(ctx: Context, seen: source_objects.VisibleSourceNames) -> list[str]:
    """List the schemas in the source, and return the names that are visible to the caller.

    Raises UnsupportedOperation for the schemas in a schema of another package's connector: only catalogs of another
    Iceberg catalog nest, and names that no request could use would be listed.
    """
    if seen.path and seen.origin.provider.startswith(FURTHER_PROVIDER):
        raise UnsupportedOperation(f"Schemas of catalog {seen.origin.catalog.name} contain no schemas")
    return await source_objects.names_in_source(
        ctx, seen, visible=schemas_visible, of=with_schemas, question=lambda catalog: catalog.schema_names(seen.path)
    )


async def schema_load(ctx: Context, source_lookup: SourceLookup) -> FederatedSchema:
    """Return a schema from the external system, once access is granted. Raises NotFound, PermissionDenied."""
    current, source = await source_objects.read_in_source(
        ctx,
        source_lookup,
        of=with_schemas,
        question=lambda namespaces: schema_of(namespaces.schema_load(source_lookup.path)),
    )
    return FederatedSchema(source, current.node, current.origin.catalog)


async def schema_create(
    ctx: Context, scope: RequestScope, *, path: Levels, comment: str | None, properties: dict[str, str]
) -> FederatedSchema:
    """Create a schema in the source; the caller owns its placeholder node.

    Raises AlreadyExists, NotFound for the parent, InvalidName, BadRequest for an invalid property, PermissionDenied,
    UnsupportedOperation for properties that the source cannot store.
    """
    created = await source_objects.create_in_source(
        ctx,
        scope,
        kind=Kind.NAMESPACE,
        path=path,
        action=Action.NAMESPACE_CREATE,
        of=with_schemas,
        question=lambda namespaces: namespaces.schema_create(path, comment=comment, properties=properties),
        load=lambda namespaces: schema_of(namespaces.schema_load(path)),
    )
    return FederatedSchema(*created)


async def schema_alter(
    ctx: Context, scope: RequestScope, *, path: Levels, sets: dict[str, str], removes: Sequence[str]
) -> FederatedSchema:
    """Set and remove properties of a schema.

    Raises UnsupportedOperation if the source's schemas have no properties, NotFound, PermissionDenied.
    """
    source_lookup = await ctx.read(
        scope,
        lambda request_view: find_source_object(request_view, Kind.NAMESPACE, path=path, action=Action.NAMESPACE_ALTER),
    )
    await ask_source(
        ctx,
        source_lookup.origin,
        of=with_schemas,
        question=lambda namespaces: namespaces.schema_alter(path, sets=sets, removes=removes),
        changes=True,
    )
    return await shown_after_change(schema_load(ctx, source_lookup))


async def schema_drop(ctx: Context, scope: RequestScope, *, path: Levels) -> None:
    """Drop an empty schema in the source, and its placeholder node.

    Raises NotFound, NotEmpty, ProtectedObject, PermissionDenied, UnsupportedOperation if the source cannot drop
    schemas.
    """
    await source_objects.drop_in_source(
        ctx,
        scope,
        kind=Kind.NAMESPACE,
        path=path,
        action=Action.NAMESPACE_DROP,
        of=with_schemas,
        question=lambda namespaces: namespaces.schema_drop(path),
    )
