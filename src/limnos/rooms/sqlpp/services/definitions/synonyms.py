# SPDX-License-Identifier: Apache-2.0
"""Synonyms of SQL++: alternative names for datasets and views, which need not exist.

Must not know any wire format. A target without a dataverse is in the synonym's own. Synonyms may refer to synonyms; a
cycle is an error at resolution.
"""

from __future__ import annotations

import msgspec

from limnos.model.kinds import Kind
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import object_create_of, object_drop, object_make
from limnos.rooms.sqlpp.services.definitions.dataverses import default_dataverse_make
from limnos.rooms.sqlpp.services.requests.errors import check_object
from limnos.rooms.sqlpp.services.requests.session import StatementSession


async def synonym_create(session: StatementSession, statement: tree.CreateSynonym) -> None:
    """Execute CREATE SYNONYM. Raises SqlppError if the name is invalid or taken, PermissionDenied."""
    ctx = session.ctx
    path, target = session.qualify(statement.name), statement.target
    check_object(target)
    await default_dataverse_make(ctx, path[:-1])
    if not target.dataverse:
        target = msgspec.structs.replace(target, parts=(*path[:-1], target.last))
    whole = msgspec.structs.replace(statement, target=target)
    await object_make(
        ctx,
        Kind.SYNONYM,
        decide=lambda request_view: object_create_of(request_view, path, kind=Kind.SYNONYM, statement=whole),
        name=statement.name,
        path=path,
        quiet=statement.if_not_exists,
    )


async def synonym_drop(session: StatementSession, statement: tree.Drop) -> None:
    """Execute DROP SYNONYM. Raises SqlppError if the synonym is missing or in use, PermissionDenied,
    ProtectedObject.
    """
    ctx = session.ctx
    path = session.qualify(statement.name)
    session.warnings += await object_drop(
        ctx, (Kind.SYNONYM,), name=statement.name, path=path, quiet=statement.if_exists
    )
