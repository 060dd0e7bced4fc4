# SPDX-License-Identifier: Apache-2.0
"""Changes are decided on the positions that the objects have when they are published, not when they were read."""

from __future__ import annotations

from functools import partial

import pytest

from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.catalogs import catalog_drop
from limnos.services.catalog.tables import table_drop, table_move
from limnos.services.lookup.change_publishing import (
    ChangesOutdated,
    PublishedChange,
    publish_changes,
    publish_dropped_catalog_changes,
)
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.trash import trash_restore
from limnos.store.activity.feed import FeedSlice, feed_slice_read
from tests.inprocess import ADMIN, LAKE, MAIN
from tests.services.conftest import ServiceDesk


def node_id(desk: ServiceDesk, name: str) -> int:
    """Return the id of the only object with a name."""
    ((found_id,),) = desk.rows("SELECT id FROM node WHERE name = ?", name)
    return int(found_id)


def read_slice(desk: ServiceDesk) -> FeedSlice:
    """Read all changes of the catalog."""
    return desk.run(desk.ctx().look_up(partial(feed_slice_read, {node_id(desk, "main"): 0}, limit=100)))


def publish(desk: ServiceDesk, part: FeedSlice, *, user: str) -> list[PublishedChange]:
    """Return the changes of the catalog that are visible to a user now."""
    entries = part.entries[node_id(desk, "main")]
    return desk.run(desk.ctx(user).read(MAIN, lambda view: publish_changes(view, entries, part.node_positions)))


@pytest.fixture
def lake(desk: ServiceDesk) -> ServiceDesk:
    """Namespaces `a` with table `t`, and `b`; ana may read all tables of `a`."""
    desk.namespace("a")
    desk.namespace("b")
    desk.table("a", "t")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    return desk


def drop(desk: ServiceDesk) -> None:
    """Drop the table `a.t`."""
    desk.run(table_drop(desk.ctx(), MAIN, namespace=("a",), name="t", purge=False))


def test_changes_of_a_table_restored_since_they_were_read_are_outdated(lake: ServiceDesk) -> None:
    """If a dropped table is restored at a path that the caller may not see, between the read of the changes and the
    decision, the decision is not made on its former path.
    """
    drop(lake)
    part = read_slice(lake)
    before = publish(lake, part, user="ana")
    lake.run(trash_restore(lake.ctx(), MAIN, dropped_id=node_id(lake, "t"), to=("b", "secret")))

    with pytest.raises(ChangesOutdated):
        publish(lake, part, user="ana")

    assert [(each.operation, each.path) for each in before if each.kind is Kind.TABLE] == [
        ("create", ("main", "a", "t")),
        ("drop", ("main", "a", "t")),
    ]


@pytest.mark.parametrize("user", [ADMIN, "ana"])
def test_changes_of_a_table_dropped_since_they_were_read_are_outdated(lake: ServiceDesk, user: str) -> None:
    """If a table is dropped between the read of its changes and the decision, its last path is read again."""
    part = read_slice(lake)
    drop(lake)

    with pytest.raises(ChangesOutdated):
        publish(lake, part, user=user)


def test_former_path_in_a_hidden_namespace_is_not_published(lake: ServiceDesk) -> None:
    """A table that moves from a namespace that the caller may not see is published without its former path."""
    lake.table("b", "u")
    lake.run(table_move(lake.ctx(), MAIN, source=("b", "u"), target=("a", "u")))
    part = read_slice(lake)

    def moves(user: str) -> list[tuple[object, object, object]]:
        return [(each.path, each.old, each.new) for each in publish(lake, part, user=user) if each.operation == "move"]

    current, former = ("main", "a", "u"), ("main", "b", "u")
    assert moves(ADMIN) == [(current, former, current)]
    assert moves("ana") == [(current, None, current)]


def test_changes_of_a_dropped_catalog_are_published_to_the_metalakes_owners(lake: ServiceDesk) -> None:
    """Changes of a dropped catalog are published to callers who may alter the metalake, and to nobody else."""
    catalog_id = node_id(lake, "main")
    lake.run(catalog_drop(lake.ctx(), metalake=LAKE, name="main", force=True, in_use_too=True))
    part = lake.run(lake.ctx().look_up(partial(feed_slice_read, {catalog_id: 0}, limit=100)))
    entries = part.entries[catalog_id]

    def published(user: str) -> list[PublishedChange]:
        return lake.run(
            lake.ctx(user).read(
                RequestScope(LAKE), lambda view: publish_dropped_catalog_changes(view, entries, part.node_positions)
            )
        )

    assert len(published(ADMIN)) == len(entries) == 3
    assert published("ana") == []
