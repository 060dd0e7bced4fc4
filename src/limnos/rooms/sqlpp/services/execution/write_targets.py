# SPDX-License-Identifier: Apache-2.0
"""Write targets: the dataset that a statement writes to, with the access decision and the lock.

Must not know wire formats or engines. Statements that write to the same dataset run one after another; readers take no
lock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.files import is_local
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.declarations import declaring_statement
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.jobs import DatasetRef
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.services.definitions.datasets import ref_of
from limnos.rooms.sqlpp.services.locks.statement_locks import LOCKS, HeldLocks
from limnos.rooms.sqlpp.services.requests.errors import invalid_operation
from limnos.rooms.sqlpp.services.requests.names import dataverse_find, is_builtin, scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

SYNONYMS_MAX: Final = 64


class WriteTarget(NamedTuple):
    """The dataset that a statement writes to, with the ids of its table and catalog."""

    ref: DatasetRef
    path: Levels
    catalog_id: int
    table_id: int


async def target_find(session: StatementSession, name: tree.DottedName, *, word: str) -> WriteTarget:
    """Find the dataset that a statement writes to, through synonyms, and decide whether the caller may write.

    `word` is the statement's keyword for errors. Raises SqlppError, PermissionDenied.
    """
    path = session.qualify(name)
    if path[:-1] == METADATA:
        raise invalid_operation(f"{word} operation is not permitted in dataverse {display_name(METADATA)}", name.at)
    return await session.ctx.read(scope_of(session.ctx), lambda request_view: target_of(request_view, path, at=name.at))


def target_of(request_view: RequestView, path: Levels, *, at: TextPosition) -> WriteTarget:
    """Find the dataset at a path, through synonyms, and decide whether the caller may write. Raises SqlppError,
    PermissionDenied, CacheMiss.
    """
    request_view.require_in_use()
    for _ in range(SYNONYMS_MAX):
        table, _chain = request_view.find(path, Kind.TABLE)
        synonym = request_view.find(path, Kind.SYNONYM)[0] if table is None else None
        if synonym is None:
            break
        request_view.look_up(Kind.SYNONYM, path, Action.SYNONYM_LOAD)
        name = declaring_statement(synonym, tree.CreateSynonym).target
        path = (*name.dataverse, name.last)
    try:
        node, chain, _ = request_view.look_up(Kind.TABLE, path, Action.TABLE_COMMIT, probe=Action.TABLE_MAY_PROBE)
    except NotFound:
        if not is_builtin(path[:-1]) and dataverse_find(request_view, path[:-1]) is None:
            raise SqlppError(1063, f"Cannot find dataverse with name {display_name(path[:-1])}", at) from None
        raise SqlppError(
            1050, f"Cannot find dataset with name {display_name(path[-1:])} in dataverse {display_name(path[:-1])}", at
        ) from None
    _check_files_open(request_view, node, chain=chain)
    return WriteTarget(ref_of(request_view, node, path=path), path, request_view.catalog.id, node.id)


def _check_files_open(request_view: RequestView, node: Node, *, chain: SecurableChain) -> None:
    """Check that the engine can open a dataset's files to write them. It opens local files itself, and those of an
    object store with credentials of the caller, which only users who may read the table get.

    Raises PermissionDenied, with the missing privilege.
    """
    decision = request_view.decide(Action.TABLE_READ, chain)
    if not decision.allowed and not is_local(request_view.document(node.id).location):
        raise PermissionDenied(
            f"{decision.message()}. The engine writes files of an object store with the caller's credentials, and only"
            " users who may also read a table get them: grant SELECT_TABLE on it",
            decision=decision,
        )


@asynccontextmanager
async def hold_dataset_lock(ctx: Context, target: WriteTarget, *, seconds: float) -> AsyncIterator[HeldLocks]:
    """Hold the locks of the dataset and of its dataverse for the body of the `with`; wait for them at most `seconds`.

    Raises LockTimeout, LockLost, ServiceUnavailable.
    """
    dataverse = DataverseName.create(target.path[:-1])
    lock_requests = [
        LockRequest(LockKey(target.catalog_id, LockKind.DATAVERSE, dataverse), LockMode.READ),
        LockRequest(
            LockKey(target.catalog_id, LockKind.DATASET, dataverse, target.path[-1]), LockMode.EXCLUSIVE_MODIFY
        ),
    ]
    async with LOCKS.of(ctx.services).hold(lock_requests, seconds) as locks:
        yield locks
