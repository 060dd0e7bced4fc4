"""What drops a dataset or a dataverse waits for the statements that write there.

May import the rooms below. Knows no statement. It is decided first: who may not drop something must not hold up those who work with it. Where
nobody writes no lock is taken, as a drop is one transaction: a statement that begins in that very moment finds nothing to write to.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from limnos.model.errors import NotFound
from limnos.names.dataverse import DataverseName
from limnos.services.sqlpp.names import scope_of
from limnos.services.sqlpp.statement_locks import LOCKS
from limnos.sqlpp.locks import LockKey, LockKind, LockMode, LockRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from limnos.names.path import Levels
    from limnos.services.request.request_view import RequestView
    from limnos.services.sqlpp.session import StatementSession


@asynccontextmanager
async def dataset_exclude_writers(
    session: StatementSession, path: Levels, *, may: Callable[[RequestView], object]
) -> AsyncIterator[None]:
    """Have no writers beside a dataset, if it is there; `may` decides, and what it raises is raised, but that nothing is there."""

    def wishes(catalog_id: int) -> list[LockRequest]:
        dataverse = DataverseName.create(path[:-1])
        return [
            LockRequest(LockKey(catalog_id, LockKind.DATAVERSE, dataverse), LockMode.READ),
            LockRequest(LockKey(catalog_id, LockKind.DATASET, dataverse, path[-1]), LockMode.WRITE),
        ]

    async with _exclude_writers(session, wishes, may=may):
        yield


@asynccontextmanager
async def dataverse_exclude_writers(
    session: StatementSession, path: Levels, *, may: Callable[[RequestView], object]
) -> AsyncIterator[None]:
    """Have no writers in a dataverse, if it is there."""

    def wishes(catalog_id: int) -> list[LockRequest]:
        return [LockRequest(LockKey(catalog_id, LockKind.DATAVERSE, DataverseName.create(path)), LockMode.WRITE)]

    async with _exclude_writers(session, wishes, may=may):
        yield


@asynccontextmanager
async def _exclude_writers(
    session: StatementSession, wishes: Callable[[int], list[LockRequest]], *, may: Callable[[RequestView], object]
) -> AsyncIterator[None]:
    def decide(request_view: RequestView) -> int:
        may(request_view)
        return request_view.catalog.id

    try:
        catalog_id = await session.ctx.read(scope_of(session.ctx), decide)
    except NotFound:
        yield  # whoever drops says what is missing
        return
    asked = wishes(catalog_id)
    if await LOCKS.of(session.ctx.services).are_free(asked):
        yield
        return
    async with LOCKS.of(session.ctx.services).held(asked, session.seconds_left):
        yield
