# SPDX-License-Identifier: Apache-2.0
"""Requests for a check of one table for orphan files: on behalf of the caller, as an operation and a task.

Must not know any wire format.
"""

from __future__ import annotations

from limnos.names.path import Levels
from limnos.rooms.maintenance.services.operations import operation_request
from limnos.rooms.maintenance.services.orphans.rounds import OFF, ORPHANS
from limnos.rooms.maintenance.services.orphans.task import CHECK_ORPHANS
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


async def orphans_request(ctx: Context, scope: RequestScope, *, path: Levels) -> int:
    """Request a check of a table for orphan files. Returns the operation's id; that of the open operation if there is
    one.

    Raises:
        NotFound: The table is missing or has another format.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not maintain it.
        UnsupportedOperation: The setting turns the removal off, or the catalog is federated.
    """
    is_off = ctx.services.defaults.maintenance.orphans == OFF
    refusal = "This server does not remove orphan files (setting maintenance.orphan_files)" if is_off else None
    return await operation_request(ctx, scope, path=path, kind=ORPHANS, task=CHECK_ORPHANS, refusal=refusal)
