# SPDX-License-Identifier: Apache-2.0
"""Lance namespaces: the catalog is the first level, the mode of a creation determines what happens to an existing
namespace, and drops may cascade.

Must not know any wire format. `services.catalog.namespaces` and `services.catalog.catalogs` define namespaces. The
owner of a namespace owns its content, so one decision authorizes the drop of all objects in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotEmpty, NotFound, UnsupportedOperation
from limnos.model.kinds import GENERIC_PROVIDER, Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord, NamespaceRecord
from limnos.names.path import Levels
from limnos.services.catalog.catalogs import CatalogDrop, catalog_create, catalog_delete, catalog_load
from limnos.services.catalog.namespaces import NamespaceCreate, namespace_create, namespace_find, namespace_insert
from limnos.services.lance.tables import lance_drop_confirmed
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE
from limnos.services.storage.namespace_locations import check_new_location
from limnos.store.tx import Tx

BELOW_MAX: Final = 10_000
"""The maximum number of objects that one request drops."""


class NamespaceEmpty(msgspec.Struct, frozen=True):
    """The command to drop a namespace; with `takes_all` also its content; with `again`, then recreate it empty."""

    namespace: Node
    keep_ms: int
    takes_all: bool
    again: NamespaceCreate | None = None


def record_properties(record: CatalogRecord | NamespaceRecord) -> dict[str, str]:
    """Return a namespace's properties, with its comment as the property `comment`."""
    comment = {} if record.comment is None else {"comment": record.comment}
    return {**record.properties, **comment}


def lance_namespace_properties(
    request_view: RequestView, levels: Levels, *, action: Action = Action.NAMESPACE_LOAD
) -> dict[str, str]:
    """Return the properties of a namespace, or of the catalog if `levels` is empty, as far as they are visible to the
    caller.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    if not levels:
        return record_properties(cast("CatalogRecord", catalog_load(request_view).record))
    return record_properties(cast("NamespaceRecord", namespace_find(request_view, levels, action).entity.record))


async def lance_namespace_create(
    ctx: Context, scope: RequestScope, *, levels: Levels, properties: Mapping[str, str], mode: str
) -> dict[str, str]:
    """Create a namespace, or a catalog if `levels` is empty. Returns its properties.

    `mode` is `create`, `existok` (return an existing namespace) or `overwrite` (drop an existing namespace with all of
    its content first). Raises NotFound for a missing parent, AlreadyExists, ProtectedObject, PermissionDenied,
    BadRequest if it contains too many objects, and UnsupportedOperation for overwriting a catalog.
    """
    if mode == "overwrite" and levels:
        return await _overwrite(ctx, scope, levels=levels, properties=properties)
    if mode == "overwrite":
        raise UnsupportedOperation(f"Catalog {scope.catalog} cannot be overwritten: drop it first, with its content")
    try:
        return await _create(ctx, scope, levels=levels, properties=properties)
    except AlreadyExists:
        if mode != "existok":
            raise
        try:
            return await ctx.read(
                scope,
                lambda request_view: lance_namespace_properties(
                    request_view, levels, action=Action.NAMESPACE_LOAD_ICEBERG
                ),
            )
        except NotFound:
            pass
        raise  # not a namespace but a table has the name


async def _create(
    ctx: Context, scope: RequestScope, *, levels: Levels, properties: Mapping[str, str]
) -> dict[str, str]:
    rest = dict(properties)
    comment = rest.pop("comment", None)
    if levels:
        node, _ = await namespace_create(ctx, scope, levels=levels, comment=comment, properties=rest, parents=False)
        return record_properties(cast("NamespaceRecord", node.record))
    node = await catalog_create(
        ctx,
        metalake=cast("str", scope.metalake),
        name=cast("str", scope.catalog),
        catalog_type=None,
        provider=GENERIC_PROVIDER,
        comment=comment,
        properties=rest,
    )
    return record_properties(cast("CatalogRecord", node.record))


async def _overwrite(
    ctx: Context, scope: RequestScope, *, levels: Levels, properties: Mapping[str, str]
) -> dict[str, str]:
    rest = dict(properties)
    record = NamespaceRecord(rest.pop("comment", None), rest)

    def decide(request_view: RequestView) -> Permit[NamespaceEmpty]:
        nonlocal record
        node, _, dropping = namespace_find(request_view, levels, Action.NAMESPACE_DROP)
        record = check_new_location(None, record, catalog_storage_of(request_view))
        into, above = request_view.find_parent(levels)
        making = request_view.require(Action.NAMESPACE_CREATE, above)
        again = NamespaceCreate(
            parent=into,
            names=levels[-1:],
            space=request_view.space(Kind.NAMESPACE),
            record=record,
            owner_id=request_view.maker_id,
        )
        command = NamespaceEmpty(node, request_view.defaults.keep_dropped_ms, takes_all=True, again=again)
        return request_view.permit(command, dropping, making)

    try:
        await ctx.write(scope, decide, namespace_empty)
    except NotFound as error:
        if error.kind != "namespace":
            raise
        return await _create(ctx, scope, levels=levels, properties=properties)
    ctx.services.wake_worker()
    return record_properties(record)


async def lance_namespace_drop(ctx: Context, scope: RequestScope, *, levels: Levels, cascade: bool) -> dict[str, str]:
    """Drop a namespace, or the catalog if `levels` is empty; with `cascade` also everything in it. Returns its
    properties.

    Raises NotFound, NotEmpty, ProtectedObject, PermissionDenied, BadRequest if it contains too many objects, and
    UnsupportedOperation for a catalog with tables of another format.
    """
    if not levels:
        return await _drop_catalog(ctx, scope, cascade=cascade)
    entries: dict[str, str] = {}

    def decide(request_view: RequestView) -> Permit[NamespaceEmpty]:
        nonlocal entries
        node, _, decision = namespace_find(request_view, levels, Action.NAMESPACE_DROP)
        entries = record_properties(cast("NamespaceRecord", node.record))
        return request_view.permit(
            NamespaceEmpty(node, request_view.defaults.keep_dropped_ms, takes_all=cascade), decision
        )

    await ctx.write(scope, decide, namespace_empty)
    ctx.services.wake_worker()
    return entries


def namespace_empty(tx: Tx, permit: Permit[NamespaceEmpty]) -> None:
    """Drop the objects in the namespace, the deepest first, then the namespace. Recreates it if the command has
    `again`.

    Raises BadRequest for too many objects, NotEmpty if it is not empty or contains an object of another format,
    ProtectedObject.
    """
    command = permit.command
    node = tx.nodes.confirm(command.namespace)
    below = tx.nodes.below(node.id, limit=BELOW_MAX + 1) if command.takes_all else []
    if len(below) > BELOW_MAX:
        raise BadRequest(f"More than {BELOW_MAX} objects are in namespace {node.name}: drop some of them first")
    for each in below:
        _drop(tx, each, keep_ms=command.keep_ms)
    tx.nodes.require_empty(node)
    tx.nodes.drop(node, keep_ms=command.keep_ms)
    if command.again is not None:
        namespace_insert(tx, cast("Permit[NamespaceCreate]", permit.about(command.again)))


def _drop(tx: Tx, node: Node, *, keep_ms: int) -> None:
    if node.kind is Kind.NAMESPACE:
        tx.nodes.drop(node, keep_ms=keep_ms)
    elif node.format == LANCE:
        lance_drop_confirmed(tx, node, keep_ms=keep_ms, purges=True)
    else:
        raise NotEmpty(
            f"{node.kind.word.capitalize()} {node.name} is not a Lance table: drop it over another protocol first",
            kind="namespace",
        )


async def _drop_catalog(ctx: Context, scope: RequestScope, *, cascade: bool) -> dict[str, str]:
    """Drop a catalog of Lance tables if it is empty. With `cascade` its objects are dropped first, in batches."""
    entries: dict[str, str] = {}

    def decide(request_view: RequestView) -> Permit[CatalogDrop]:
        nonlocal entries
        decision = request_view.require(Action.CATALOG_DROP, request_view.settled.outer)
        if request_view.catalog_record.provider != GENERIC_PROVIDER:
            raise UnsupportedOperation(
                f"Catalog {request_view.catalog.name} has Iceberg tables: delete it over Gravitino REST, or with"
                " 'limnos delete'"
            )
        entries = record_properties(cast("CatalogRecord", catalog_load(request_view).record))
        command = CatalogDrop(request_view.catalog, force=False, in_use_too=True)
        return request_view.permit(command, decision, zone=request_view.metalake.id)

    if cascade:
        await _empty_catalog(ctx, scope)
    await ctx.write(scope, decide, catalog_delete)
    return entries


async def _empty_catalog(ctx: Context, scope: RequestScope) -> None:
    def decide(request_view: RequestView) -> Permit[CatalogEmpty]:
        decision = request_view.require(Action.CATALOG_DROP, request_view.settled.outer)
        if request_view.catalog_record.provider != GENERIC_PROVIDER:
            raise UnsupportedOperation(
                f"Catalog {request_view.catalog.name} has Iceberg tables: delete it over Gravitino REST, or with"
                " 'limnos delete'"
            )
        return request_view.permit(CatalogEmpty(request_view.catalog), decision)

    while await ctx.write(scope, decide, catalog_empty):
        pass
    ctx.services.wake_worker()


class CatalogEmpty(msgspec.Struct, frozen=True):
    """The command to drop objects of a catalog that is about to be dropped. This is permanent, since they could not be
    restored without the catalog.
    """

    catalog: Node


def catalog_empty(tx: Tx, permit: Permit[CatalogEmpty]) -> int:
    """Drop the deepest objects of a catalog, at most `BELOW_MAX`. Returns the count of dropped objects. Raises
    ProtectedObject before any drop, NotEmpty if one is not a Lance table or namespace.
    """
    catalog = permit.command.catalog
    tx.protection.refuse_within(catalog)
    tx.protection.refuse(catalog)
    below = tx.nodes.below(catalog.id, limit=BELOW_MAX)
    for each in below:
        _drop(tx, each, keep_ms=0)
    return len(below)
