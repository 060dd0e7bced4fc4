# SPDX-License-Identifier: Apache-2.0
"""Exclusive access: a drop of a dataset or dataverse waits for the statements that write there.

Must not know statements. Access is decided first: a caller who may not drop must not delay writers. If no statement
writes, no lock is taken, since a drop is one transaction: a statement that begins concurrently finds no dataset.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from limnos.model.errors import NotFound
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.names.path import Levels
from limnos.rooms.sqlpp.services.locks.statement_locks import LOCKS
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.request_view import RequestView


@asynccontextmanager
async def dataset_exclude_writers(
    session: StatementSession, path: Levels, *, may: Callable[[RequestView], object]
) -> AsyncIterator[None]:
    """Hold an exclusive lock on a dataset for the body of the `with`, unless no other statement locks it.

    `may` makes the access decision. Its errors are raised, except NotFound, after which no lock is taken. Raises
    LockTimeout, LockLost, ServiceUnavailable.
    """

    def lock_requests(catalog_id: int) -> list[LockRequest]:
        dataverse = DataverseName.create(path[:-1])
        return [
            LockRequest(LockKey(catalog_id, LockKind.DATAVERSE, dataverse), LockMode.READ),
            LockRequest(LockKey(catalog_id, LockKind.DATASET, dataverse, path[-1]), LockMode.WRITE),
        ]

    async with _exclude_writers(session, lock_requests, may=may):
        yield


@asynccontextmanager
async def dataverse_exclude_writers(
    session: StatementSession, path: Levels, *, may: Callable[[RequestView], object]
) -> AsyncIterator[None]:
    """Hold an exclusive lock on a dataverse for the body of the `with`, unless no other statement locks it.

    `may` makes the access decision. Its errors are raised, except NotFound, after which no lock is taken. Raises
    LockTimeout, LockLost, ServiceUnavailable.
    """

    def lock_requests(catalog_id: int) -> list[LockRequest]:
        return [LockRequest(LockKey(catalog_id, LockKind.DATAVERSE, DataverseName.create(path)), LockMode.WRITE)]

    async with _exclude_writers(session, lock_requests, may=may):
        yield


@asynccontextmanager
async def _exclude_writers(
    session: StatementSession,
    lock_requests: Callable[[int], list[LockRequest]],
    *,
    may: Callable[[RequestView], object],
) -> AsyncIterator[None]:
    def decide(request_view: RequestView) -> int:
        may(request_view)
        return request_view.catalog.id

    try:
        catalog_id = await session.ctx.read(scope_of(session.ctx), decide)
    except NotFound:
        yield  # the drop itself reports what is missing
        return
    requests = lock_requests(catalog_id)
    if await LOCKS.of(session.ctx.services).are_free(requests):
        yield
        return
    async with LOCKS.of(session.ctx.services).hold(requests, session.seconds_left):
        yield
