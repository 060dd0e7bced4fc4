# SPDX-License-Identifier: Apache-2.0
"""Maintenance of the files of Lance tables: a component of the node, which the room of Lance has.

Must not know policies or operations. A node without the component refuses every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from limnos.access.actions import Action
from limnos.formats.lance_table_state import LanceTableState, MaintenanceResult
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import UnsupportedOperation
from limnos.names.path import Levels
from limnos.services.lance.tables import lance_find
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey, NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView


class MaintainedLanceTable(NamedTuple):
    """A Lance table that the server reads for its own maintenance, without a caller: its node, its document, and its
    catalog's storage.
    """

    node: Node
    document: MetadataDocument
    place: CatalogStorage


def maintained_lance_table(request_view: RequestView, levels: Levels) -> AuthorizedObject[Node]:
    """Find a Lance table for a caller who may maintain it. Raises as `lance_find`."""
    return lance_find(request_view, levels, action=Action.TABLE_MAINTAIN)


class LanceMaintenance(Protocol):
    """Reads the state of Lance tables, and changes their files on behalf of a user."""

    async def table_state(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> LanceTableState:
        """Read the state of a table, for a caller who may maintain it.

        Raises NotFound, PermissionDenied, InvalidTable, StorageFailed, UnsupportedOperation.
        """

    async def stored_table_state(self, services: NodeServices, table: MaintainedLanceTable) -> LanceTableState:
        """Read the state of a table for the server's own maintenance, without a caller. Raises NotFound for a table
        without data, StorageFailed, UnsupportedOperation.
        """

    async def table_compact(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> MaintenanceResult:
        """Merge a table's small fragments. Raises as `table_state`, and CommitConflict."""

    async def indexes_refresh(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> MaintenanceResult:
        """Add to a table's indexes the rows that they do not cover. Raises as `table_compact`."""

    async def versions_clean_up(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, versions: Sequence[int]
    ) -> MaintenanceResult:
        """Remove versions of a table with the files that only they refer to. A version with a tag, or at which a branch
        begins, is kept. Raises as `table_compact`.
        """


class NoLanceMaintenance:
    """The null implementation, for a node without the room of Lance: every operation is refused."""

    async def table_state(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> LanceTableState:
        """Raise UnsupportedOperation; NotFound or PermissionDenied as the room does."""
        await ctx.read(scope, lambda request_view: maintained_lance_table(request_view, levels))
        raise _refusal()

    async def stored_table_state(self, services: NodeServices, table: MaintainedLanceTable) -> LanceTableState:
        """Raise UnsupportedOperation."""
        del services, table
        raise _refusal()

    async def table_compact(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> MaintenanceResult:
        """Raise UnsupportedOperation; NotFound or PermissionDenied as the room does."""
        await ctx.read(scope, lambda request_view: maintained_lance_table(request_view, levels))
        raise _refusal()

    async def indexes_refresh(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> MaintenanceResult:
        """Raise UnsupportedOperation; NotFound or PermissionDenied as the room does."""
        return await self.table_compact(ctx, scope, levels=levels)

    async def versions_clean_up(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, versions: Sequence[int]
    ) -> MaintenanceResult:
        """Raise UnsupportedOperation; NotFound or PermissionDenied as the room does."""
        del versions
        return await self.table_compact(ctx, scope, levels=levels)


def _refusal() -> UnsupportedOperation:
    return UnsupportedOperation("This server does not maintain Lance tables: it does not serve Lance REST")


LANCE_MAINTENANCE: ComponentKey[LanceMaintenance] = ComponentKey(
    "maintenance of Lance tables", lambda _: NoLanceMaintenance()
)
