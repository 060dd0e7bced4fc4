# SPDX-License-Identifier: Apache-2.0
"""Tables of external systems: list, load, create, alter, rename, drop. Rights on paths in the tree decide access.

Each function decides first, on one request view, and then calls the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from limnos.access.actions import Action
from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.names.path import Levels, check_gravitino_name
from limnos.services.federation import source_objects
from limnos.services.federation.connector_values import table_of
from limnos.services.federation.moves import rename_in_source
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object
from limnos.services.federation.sources import ask_source, shown_after_change
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import SourceTableInfo, with_tables


class FederatedTable(NamedTuple):
    """A table of an external system, and its placeholder node."""

    info: SourceTableInfo
    node: Node | None
    catalog: Node


def tables_visible(request_view: RequestView, schema: Levels) -> source_objects.VisibleSourceNames:
    """Authorize a list of a schema's tables. Returns the filter for visible names. Raises PermissionDenied."""
    return source_objects.namespace_objects_visible(request_view, schema, kind=Kind.TABLE, action=Action.TABLE_LIST)


async def tables_list(ctx: Context, seen: source_objects.VisibleSourceNames) -> list[str]:
    """List a schema's tables in the source, and return the names that are visible to the caller. Raises NotFound for
    the schema.
    """
    return await source_objects.names_in_source(
        ctx, seen, visible=tables_visible, of=with_tables, question=lambda catalog: catalog.table_names(seen.path)
    )


async def table_load(ctx: Context, source_lookup: SourceLookup) -> FederatedTable:
    """Return a table from the external system, once access is granted. Raises NotFound, PermissionDenied."""
    schema, name = source_lookup.path[:-1], source_lookup.path[-1]
    current, source = await source_objects.read_in_source(
        ctx, source_lookup, of=with_tables, question=lambda catalog: table_of(catalog.table_load(schema, name))
    )
    return FederatedTable(source, current.node, current.origin.catalog)


async def table_create(
    ctx: Context, scope: RequestScope, *, path: Levels, definition: GravitinoCreate
) -> FederatedTable:
    """Create a table in the source; the caller owns its placeholder node.

    Raises AlreadyExists, NotFound for the schema, BadRequest for an invalid definition, UnsupportedOperation for a
    feature that the source does not support, PermissionDenied.
    """
    schema, name = path[:-1], path[-1]
    created = await source_objects.create_in_source(
        ctx,
        scope,
        kind=Kind.TABLE,
        path=path,
        action=Action.TABLE_CREATE,
        of=with_tables,
        question=lambda catalog: catalog.table_create(schema, name, definition=definition),
        load=lambda catalog: table_of(catalog.table_load(schema, name)),
    )
    return FederatedTable(*created)


async def table_alter(
    ctx: Context, scope: RequestScope, *, path: Levels, changes: Sequence[TableChange]
) -> FederatedTable:
    """Apply all changes to a table in the source atomically.

    Raises NotFound, BadRequest for an invalid change, UnsupportedOperation for a change that the source does not
    support, PermissionDenied.
    """
    schema, name = path[:-1], path[-1]
    source_lookup = await ctx.read(
        scope, lambda request_view: find_source_object(request_view, Kind.TABLE, path=path, action=Action.TABLE_ALTER)
    )
    await ask_source(
        ctx,
        source_lookup.origin,
        of=with_tables,
        question=lambda catalog: catalog.table_alter(schema, name, changes=changes),
        changes=True,
    )
    return await shown_after_change(table_load(ctx, source_lookup))


async def table_rename(ctx: Context, scope: RequestScope, *, path: Levels, target: Levels) -> FederatedTable:
    """Rename a table or move it to another schema, with its placeholder node.

    Raises NotFound, AlreadyExists, InvalidName (the new name), UnsupportedOperation if the source does not support the
    rename or the move, PermissionDenied.
    """
    check_gravitino_name(target[-1], kind="TABLE")
    renamed = await rename_in_source(
        ctx,
        scope,
        kind=Kind.TABLE,
        path=path,
        target=target,
        of=with_tables,
        rename=lambda catalog: catalog.table_rename(path[:-1], path[-1], target=target),
        load=lambda catalog: table_of(catalog.table_load(target[:-1], target[-1])),
    )
    return FederatedTable(*renamed)


async def table_drop(ctx: Context, scope: RequestScope, *, path: Levels, purge: bool) -> None:
    """Drop a table in the source with its rows, and its placeholder node.

    A purge also deletes its files, if it has any.

    Raises NotFound, ProtectedObject, UnsupportedOperation for a purge that the source does not support,
    PermissionDenied.
    """
    await source_objects.drop_in_source(
        ctx,
        scope,
        kind=Kind.TABLE,
        path=path,
        action=Action.TABLE_DROP,
        of=with_tables,
        question=lambda catalog: catalog.table_drop(path[:-1], path[-1], purge=purge),
    )
