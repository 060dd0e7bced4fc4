"""What drops a dataset or a dataverse waits for the statements that write there.

May import the rooms below. Knows no statement. It is decided first: who may not drop something must not hold up those who work with it. Where
nobody writes no lock is taken, as a drop is one transaction: a statement that begins in that very moment finds nothing to write to.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from limnos.model.errors import NotFound
from limnos.names.dataverse import DataverseName
from limnos.services.sqlpp.locking import LOCKS
from limnos.services.sqlpp.names import scope_of
from limnos.sqlpp.locks import LockKey, LockKind, LockMode, LockWish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from limnos.names.path import Levels
    from limnos.services.request.scene import Scene
    from limnos.services.sqlpp.session import Session


@asynccontextmanager
async def dataset_alone(session: Session, path: Levels, *, may: Callable[[Scene], object]) -> AsyncIterator[None]:
    """Have no writers beside a dataset, if it is there; `may` decides, and what it raises is raised, but that nothing is there."""

    def wishes(catalog_id: int) -> list[LockWish]:
        dataverse = DataverseName.create(path[:-1])
        return [
            LockWish(LockKey(catalog_id, LockKind.DATAVERSE, dataverse), LockMode.READ),
            LockWish(LockKey(catalog_id, LockKind.DATASET, dataverse, path[-1]), LockMode.WRITE),
        ]

    async with _alone(session, wishes, may=may):
        yield


@asynccontextmanager
async def dataverse_alone(session: Session, path: Levels, *, may: Callable[[Scene], object]) -> AsyncIterator[None]:
    """Have no writers in a dataverse, if it is there."""

    def wishes(catalog_id: int) -> list[LockWish]:
        return [LockWish(LockKey(catalog_id, LockKind.DATAVERSE, DataverseName.create(path)), LockMode.WRITE)]

    async with _alone(session, wishes, may=may):
        yield


@asynccontextmanager
async def _alone(
    session: Session, wishes: Callable[[int], list[LockWish]], *, may: Callable[[Scene], object]
) -> AsyncIterator[None]:
    def decide(scene: Scene) -> int:
        may(scene)
        return scene.catalog.id

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
