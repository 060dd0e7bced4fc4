# SPDX-License-Identifier: Apache-2.0
"""Cascades: drop a schema with its content, in catalogs of filesets, models and Lance tables.

Must not know any wire format. A caller who may drop a namespace owns it or one of its ancestors, and by policy may drop
each object in it. So one decision is enough. Each object is dropped as by a single request: into the trash, with its
location, files and changes. A protected object, or one of another kind, makes the whole drop fail.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, NotEmpty
from limnos.model.kinds import FILESET_PROVIDER, GENERIC_PROVIDER, MODEL_PROVIDER, Kind
from limnos.model.permits import Permit
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.catalog.filesets import fileset_drop_confirmed
from limnos.services.catalog.namespaces import namespace_find
from limnos.services.lance.tables import lance_drop_confirmed
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE
from limnos.store.tx import Tx

CASCADING: Final = frozenset({FILESET_PROVIDER, MODEL_PROVIDER, GENERIC_PROVIDER})
"""Providers whose schemas Gravitino drops with their content, and whose objects are in the tree."""
OBJECTS_MAX: Final = 10_000
"""The maximum number of objects that one request drops."""


class NamespaceDropAll(msgspec.Struct, frozen=True):
    """The command to drop a namespace with its content; each object can be restored for `keep_ms` milliseconds."""

    namespace: Node
    keep_ms: int
    levels: Levels


async def namespace_drop_all(ctx: Context, scope: RequestScope, *, levels: Levels) -> None:
    """Drop a namespace with its content.

    Raises:
        NotFound: The namespace is missing.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not drop it.
        ProtectedObject: The namespace or an object in it is protected.
        BadRequest: The provider does not cascade, or more than OBJECTS_MAX objects lie in it.
        NotEmpty: It contains an object of a kind that another protocol drops.
    """

    def decide(request_view: RequestView) -> Permit[NamespaceDropAll]:
        node, _, decision = namespace_find(request_view, levels, Action.NAMESPACE_DROP)
        provider = request_view.catalog_record.provider
        if provider not in CASCADING:
            raise BadRequest(
                f"Parameter cascade is not supported by catalogs of provider {provider}, so nothing was dropped:"
                " drop the schema's objects first, then the schema itself"
            )
        return request_view.permit(NamespaceDropAll(node, request_view.defaults.keep_dropped_ms, levels), decision)

    await ctx.write(scope, decide, namespace_delete_all)
    ctx.services.wake_worker()


def namespace_delete_all(tx: Tx, permit: Permit[NamespaceDropAll]) -> None:
    """Drop the content, the deepest first, then the namespace. Raises BadRequest for more than `OBJECTS_MAX` objects,
    NotEmpty for an object of another kind, ProtectedObject for a protected object.
    """
    command = permit.command
    node = tx.nodes.confirm(command.namespace)
    below = tx.nodes.below(node.id, limit=OBJECTS_MAX + 1)
    if len(below) > OBJECTS_MAX:
        raise BadRequest(
            f"More than {OBJECTS_MAX} objects are in schema {render(command.levels)}: drop some of them first"
        )
    for each in below:
        _drop(tx, each, keep_ms=command.keep_ms)
    tx.nodes.drop(node, keep_ms=command.keep_ms)


def _drop(tx: Tx, node: Node, *, keep_ms: int) -> None:
    if node.kind is Kind.FILESET:
        fileset_drop_confirmed(tx, node, keep_ms=keep_ms)
    elif node.format == LANCE:
        lance_drop_confirmed(tx, node, keep_ms=keep_ms, purges=True)
    elif node.kind in (Kind.NAMESPACE, Kind.MODEL, Kind.FUNCTION, *DECLARED_KINDS):
        tx.nodes.drop(node, keep_ms=keep_ms)
    else:
        raise NotEmpty(
            f"{node.kind.word.replace('_', ' ').capitalize()} {node.name} is in the schema: drop it first",
            kind="namespace",
        )
