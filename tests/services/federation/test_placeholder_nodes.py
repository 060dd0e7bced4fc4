# SPDX-License-Identifier: Apache-2.0
"""Placeholder nodes that two requests create at the same time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import BLANK_TABLE
from limnos.services.federation.placeholder_nodes import PlaceholderCreate, placeholder_insert
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import make_world

WRITERS = 4
PATHS = (("a", "t"), ("a", "u"), ("a", "t"))
"""Every writer creates these, in its own order: equal names, and names with the same parent."""


@pytest.mark.parametrize("renews", [False, True])
def test_concurrent_creates_of_same_placeholder_all_succeed(lab: StoreLab, *, renews: bool) -> None:
    """Concurrent creates of the same placeholder node all succeed and return the same node, because they take the
    catalog's lock. With `renews`, a create replaces the earlier node.
    """
    world = make_world(lab)
    stores = [lab.open() for _ in range(WRITERS)]

    def submit(writer: int, path: tuple[str, ...]) -> asyncio.Task[Node]:
        steps = tuple(zip((Kind.NAMESPACE, Kind.TABLE), ("namespace", "table"), path, strict=True))
        command = PlaceholderCreate(parent=world.main, steps=steps, owner_id=None, renews=renews, record=BLANK_TABLE)
        permit = msgspec.structs.replace(lab.permit(world.main.id), stamps=()).about(command)  # done at the source

        def insert(tx: Tx) -> Node:
            return placeholder_insert(tx, permit)

        return asyncio.create_task(stores[writer].submit(permit, insert))

    async def all_at_once() -> list[Node]:
        turns = [(writer, PATHS[(at + writer) % len(PATHS)]) for at in range(len(PATHS)) for writer in range(WRITERS)]
        return await asyncio.gather(*[submit(*each) for each in turns])

    created_nodes = lab.run(all_at_once())

    live = lab.database.sql("SELECT id, name FROM node WHERE zone = ? AND deleted = 0", world.main.id)
    assert sorted(name for _, name in live) == ["a", "t", "u"]
    assert {each.name for each in created_nodes} == {"t", "u"}
    ids = {name: node_id for node_id, name in live}
    assert renews or all(ids[each.name] == each.id for each in created_nodes)
