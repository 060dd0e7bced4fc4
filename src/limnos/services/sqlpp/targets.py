"""The dataset that a statement writes to: found and decided for its caller, and had for itself alone by its lock.

May import the rooms below. Knows no wire format and no engine. Writers of a dataset stand in line; readers take no lock.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.names.dataverse import DataverseName
from limnos.names.display import render as shown
from limnos.services.iceberg.dataset_declarations import one_declared
from limnos.services.sqlpp.datasets import ref_of
from limnos.services.sqlpp.errors import invalid_operation
from limnos.services.sqlpp.locking import LOCKS
from limnos.services.sqlpp.names import dataverse_find, is_builtin, scope_of
from limnos.sqlpp import SqlppError, tree
from limnos.sqlpp.locks import LockKey, LockKind, LockMode, LockWish
from limnos.sqlpp.metadata import METADATA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.services.sqlpp.locking import Held
    from limnos.services.sqlpp.session import Session
    from limnos.sqlpp.errors import Place
    from limnos.sqlpp.jobs import DatasetRef

SYNONYMS_MAX: Final = 64


class Target(NamedTuple):
    """What a statement writes to."""

    ref: DatasetRef
    path: Levels
    catalog_id: int
    table_id: int


async def target_find(session: Session, name: tree.Name, *, word: str) -> Target:
    """Find the dataset that a statement writes to, synonyms followed, for who may. Raises SqlppError, Forbidden."""
    path = session.whole(name)
    if path[:-1] == METADATA:
        raise invalid_operation(f"{word} operation is not permitted in dataverse {shown(METADATA)}", name.at)
    return await session.ctx.read(scope_of(session.ctx), lambda scene: target_of(scene, path, at=name.at))


def target_of(scene: Scene, path: Levels, *, at: Place) -> Target:
    """Find and decide it on a scene. Raises SqlppError, Forbidden, Cold."""
    scene.require_in_use()
    for _ in range(SYNONYMS_MAX):
        table, _chain = scene.find(path, Kind.TABLE)
        synonym = scene.find(path, Kind.SYNONYM)[0] if table is None else None
        if synonym is None:
            break
        scene.look_up(Kind.SYNONYM, path, Action.SYNONYM_LOAD)
        found = one_declared(synonym, tree.CreateSynonym).target
        path = (*found.dataverse, found.last)
    try:
        node = scene.look_up(Kind.TABLE, path, Action.TABLE_COMMIT, probe=Action.TABLE_MAY_PROBE).entity
    except NotFound:
        if not is_builtin(path[:-1]) and dataverse_find(scene, path[:-1]) is None:
            raise SqlppError(1063, f"Cannot find dataverse with name {shown(path[:-1])}", at) from None
        raise SqlppError(
            1050, f"Cannot find dataset with name {shown(path[-1:])} in dataverse {shown(path[:-1])}", at
        ) from None
    return Target(ref_of(scene, node, path=path), path, scene.catalog.id, node.id)


@asynccontextmanager
async def in_line(ctx: Context, target: Target, *, seconds: float) -> AsyncIterator[Held]:
    """Hold the dataset's lock, and its dataverse's."""
    dataverse = DataverseName.create(target.path[:-1])
    wishes = [
        LockWish(LockKey(target.catalog_id, LockKind.DATAVERSE, dataverse), LockMode.READ),
        LockWish(LockKey(target.catalog_id, LockKind.DATASET, dataverse, target.path[-1]), LockMode.EXCLUSIVE_MODIFY),
    ]
    async with LOCKS.of(ctx.services).held(wishes, seconds) as held:
        yield held
