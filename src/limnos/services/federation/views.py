# SPDX-License-Identifier: Apache-2.0
"""Views of other Iceberg catalogs: list, load, create, alter, rename, drop. Rights on paths in the tree decide access.

Each function decides first, on one request view, and then calls the source. Views have placeholder nodes as tables do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from limnos.access.actions import Action
from limnos.formats.gravitino.views import GravitinoView, IcebergViewCreate
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.federation import source_objects
from limnos.services.federation.moves import rename_in_source
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object
from limnos.services.federation.sources import ask_source, shown_after_change
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import with_views


class FederatedView(NamedTuple):
    """A view of an external system, and its placeholder node."""

    info: GravitinoView
    node: Node | None
    catalog: Node


def views_visible(request_view: RequestView, schema: Levels) -> source_objects.VisibleSourceNames:
    """Authorize a list of a schema's views. Returns the filter for visible names. Raises PermissionDenied."""
    return source_objects.namespace_objects_visible(request_view, schema, kind=Kind.VIEW, action=Action.VIEW_LIST)


async def views_list(ctx: Context, seen: source_objects.VisibleSourceNames) -> list[str]:
    """List a schema's views in the source, and return the names that are visible to the caller. Raises NotFound for the
    schema.
    """
    return await source_objects.names_in_source(
        ctx, seen, visible=views_visible, of=with_views, question=lambda catalog: catalog.view_names(seen.path)
    )


def find_source_view(request_view: RequestView, path: Levels, *, action: Action) -> SourceLookup:
    """Authorize an action on a view. A caller with a right on tables of the schema may learn that the view is missing.

    Raises PermissionDenied.
    """
    return find_source_object(request_view, Kind.VIEW, path=path, action=action, probe=Action.VIEW_MAY_PROBE)


async def view_load(ctx: Context, source_lookup: SourceLookup) -> FederatedView:
    """Return a view from the external system, once access is granted. Raises NotFound, PermissionDenied."""
    schema, name = source_lookup.path[:-1], source_lookup.path[-1]
    current, source = await source_objects.read_in_source(
        ctx, source_lookup, of=with_views, question=lambda catalog: catalog.view_load(schema, name)
    )
    return FederatedView(source, current.node, current.origin.catalog)


async def view_create(
    ctx: Context, scope: RequestScope, *, path: Levels, definition: IcebergViewCreate
) -> FederatedView:
    """Create a view in the source; the caller owns its placeholder node.

    Raises AlreadyExists, NotFound for the schema, BadRequest for an invalid definition, UnsupportedOperation if the
    source has no views, PermissionDenied.
    """
    schema, name = path[:-1], path[-1]
    created = await source_objects.create_in_source(
        ctx,
        scope,
        kind=Kind.VIEW,
        path=path,
        action=Action.VIEW_CREATE,
        of=with_views,
        question=lambda catalog: catalog.view_create(schema, name, definition=definition),
        load=lambda catalog: catalog.view_load(schema, name),
    )
    return FederatedView(*created)


async def view_alter(ctx: Context, scope: RequestScope, *, path: Levels, updates: Sequence[object]) -> FederatedView:
    """Apply all updates to a view in the source, in one request. Raises NotFound, BadRequest for an invalid update,
    PermissionDenied.
    """
    schema, name = path[:-1], path[-1]
    source_lookup = await ctx.read(
        scope, lambda request_view: find_source_view(request_view, path, action=Action.VIEW_ALTER)
    )
    await source_objects.refuse_probe(ctx, source_lookup)
    await ask_source(
        ctx,
        source_lookup.origin,
        of=with_views,
        question=lambda catalog: catalog.view_alter(schema, name, updates=updates),
        changes=True,
    )
    return await shown_after_change(view_load(ctx, source_lookup))


async def view_rename(ctx: Context, scope: RequestScope, *, path: Levels, target: Levels) -> FederatedView:
    """Rename a view or move it to another schema, with its placeholder node.

    Raises NotFound, AlreadyExists, BadRequest for a path without a namespace, UnsupportedOperation if the source has no
    views, NotInUse, PermissionDenied.
    """
    renamed = await rename_in_source(
        ctx,
        scope,
        kind=Kind.VIEW,
        path=path,
        target=target,
        of=with_views,
        rename=lambda catalog: catalog.view_rename(path[:-1], path[-1], target=target),
        load=lambda catalog: catalog.view_load(target[:-1], target[-1]),
    )
    return FederatedView(*renamed)


async def view_drop(ctx: Context, scope: RequestScope, *, path: Levels) -> None:
    """Drop a view in the source, and its placeholder node.

    Raises NotFound, ProtectedObject, PermissionDenied, UnsupportedOperation if the source has no views.
    """
    await source_objects.drop_in_source(
        ctx,
        scope,
        kind=Kind.VIEW,
        path=path,
        action=Action.VIEW_DROP,
        of=with_views,
        question=lambda catalog: catalog.view_drop(path[:-1], path[-1]),
    )
