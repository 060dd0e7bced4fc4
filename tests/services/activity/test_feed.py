# SPDX-License-Identifier: Apache-2.0
"""The change feed: it omits no visible change, repeats none, and contains no change that the caller may not see."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import BadRequest, NotFound, PermissionDenied, PositionPruned
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.activity.feed import FeedPage, changes_read
from limnos.services.catalog.catalogs import catalog_drop
from limnos.services.catalog.namespaces import namespace_create, namespace_drop
from limnos.services.catalog.tables import table_drop, table_move
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant
from limnos.services.identity.owners import owner_set
from limnos.services.request.request_scope import RequestScope
from limnos.store.activity.upkeep import feed_prune
from tests.inprocess import ADMIN, LAKE, MAIN, add_catalog, new_table
from tests.services.conftest import ServiceDesk

WHOLE = RequestScope(LAKE)


def read(
    desk: ServiceDesk, user: str = ADMIN, *, after: str | None = None, scope: RequestScope = WHOLE, limit: int = 1000
) -> FeedPage:
    """Read changes, without waiting."""
    return desk.run(changes_read(desk.ctx(user), scope, after=after, limit=limit))


def now(desk: ServiceDesk, user: str = ADMIN, scope: RequestScope = WHOLE) -> str:
    """Return the position after all committed changes."""
    return read(desk, user, after="now", scope=scope).position.text()


def lines(page: FeedPage) -> list[str]:
    """Return changes as text: operation, kind and path, and for a move the paths before and after."""
    texts = []
    for each in page.changes:
        path, old, new = ("?" if part is None else ".".join(part) for part in (each.path, each.old, each.new))
        moved = f" {old}>{new}" if each.operation == "move" else ""
        texts.append(f"{each.operation} {each.kind.word} {path}{moved}")
    return texts


@pytest.fixture
def lake(desk: ServiceDesk) -> ServiceDesk:
    """Namespaces `a` and `b`; ana may read all tables of `a`, bob may only use the catalog."""
    desk.namespace("a")
    desk.namespace("b")
    for user in ("ana", "bob"):
        desk.allow(user, Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    return desk


def test_change_is_visible_to_users_who_may_load_its_object(lake: ServiceDesk) -> None:
    """A change is visible to users who may load its object."""
    at = {user: now(lake, user) for user in (ADMIN, "ana", "bob")}
    lake.table("a", "t")
    lake.table("b", "u")

    visible_changes = {user: lines(read(lake, user, after=after)) for user, after in at.items()}

    assert visible_changes == {
        ADMIN: ["create table main.a.t", "create table main.b.u"],
        "ana": ["create table main.a.t"],
        "bob": [],
    }


def test_position_advances_past_hidden_changes(lake: ServiceDesk) -> None:
    """Hidden changes that the position has passed are not delivered later, and no change is delivered twice."""
    at = now(lake, "bob")
    lake.table("a", "t")
    passed = read(lake, "bob", after=at)
    lake.allow("bob", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    lake.table("a", "u")

    assert passed.changes == []
    assert [line for line in lines(read(lake, "bob", after=passed.position.text())) if " table " in line] == [
        "create table main.a.u"
    ]


def test_visibility_is_decided_at_read_time(lake: ServiceDesk) -> None:
    """Visibility is decided when the feed is read: a change that was hidden when it was made is delivered to a caller
    who may see it by then.
    """
    at = now(lake, "bob")
    lake.table("a", "t")
    lake.allow("bob", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)

    assert "create table main.a.t" in lines(read(lake, "bob", after=at))


def test_move_to_hidden_path_omits_new_path(lake: ServiceDesk) -> None:
    """A reader sees that an object was moved to a path that the reader may not see, but neither the new path nor later
    changes.
    """
    lake.table("a", "t")
    at = now(lake, "ana")
    lake.run(table_move(lake.ctx(), MAIN, source=("a", "t"), target=("b", "secret")))
    lake.run(table_drop(lake.ctx(), MAIN, namespace=("b",), name="secret", purge=False))

    assert lines(read(lake, "ana", after=at)) == ["move table ? main.a.t>?"]


def test_move_to_visible_path_omits_old_path(lake: ServiceDesk) -> None:
    """A reader who may see only the new path of a moved object does not receive the old path."""
    lake.table("b", "secret")
    at = now(lake, "ana")
    lake.run(table_move(lake.ctx(), MAIN, source=("b", "secret"), target=("a", "t")))

    assert lines(read(lake, "ana", after=at)) == ["move table main.a.t ?>main.a.t"]


def test_earlier_changes_are_hidden_after_move_to_hidden_path(lake: ServiceDesk) -> None:
    """Earlier changes of an object are hidden once the object is at a path that the reader may not see."""
    at = now(lake, "ana")
    lake.table("a", "t")
    lake.run(table_move(lake.ctx(), MAIN, source=("a", "t"), target=("b", "secret")))

    assert lines(read(lake, "ana", after=at)) == ["move table ? main.a.t>?"]


def test_dropped_table_visibility_follows_remaining_ancestors(lake: ServiceDesk) -> None:
    """The visibility of changes of a dropped table in a dropped namespace is decided by the remaining ancestors."""
    lake.namespace("a", "inner")
    at = {user: now(lake, user) for user in ("ana", "bob")}
    lake.table("a", "inner", "t")
    lake.run(
        table_drop(
            lake.ctx(),
            MAIN,
            namespace=(
                "a",
                "inner",
            ),
            name="t",
            purge=False,
        )
    )
    lake.run(namespace_drop(lake.ctx(), MAIN, levels=("a", "inner")))

    assert lines(read(lake, "ana", after=at["ana"])) == [
        "create table main.a.inner.t",
        "drop table main.a.inner.t",
        "drop namespace main.a.inner",
    ]
    assert lines(read(lake, "bob", after=at["bob"])) == []


def test_drop_of_denied_table_is_hidden(lake: ServiceDesk) -> None:
    """The drop of a table that was denied to the caller is hidden."""
    lake.table("a", "t")
    lake.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE, condition=GrantCondition.DENY)
    at = now(lake, "ana")
    lake.run(table_drop(lake.ctx(), MAIN, namespace=("a",), name="t", purge=False))

    assert lines(read(lake, "ana", after=at)) == []


def test_newly_usable_catalog_is_read_from_its_oldest_change(lake: ServiceDesk) -> None:
    """When a reader may use a catalog for the first time, the feed delivers its changes from the oldest one. A position
    has no entries for catalogs that the reader may not use.
    """
    lake.run(add_catalog(lake.ctx(), "side"))
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    first = read(lake, "ana", after="now")
    hidden = lake.rows("SELECT id FROM node WHERE name = 'side'")[0][0]
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)

    page = read(lake, "ana", after=first.position.text())

    assert hidden not in first.position.zones
    assert "create namespace side.n" in lines(page)
    assert lines(read(lake, "ana", after=page.position.text())) == []


def test_changes_of_unusable_catalog_are_delivered_once_usable(lake: ServiceDesk) -> None:
    """Changes that are made while a reader may not use a catalog are delivered once, when the reader may use it
    again.
    """
    lake.run(add_catalog(lake.ctx(), "side"))
    side = RequestScope(LAKE, "side")
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    lake.namespace("before", scope=side)
    at = now(lake, "ana")
    privilege_request = PrivilegeRequest(Kind.CATALOG, "side", ((Privilege.USE_CATALOG, GrantCondition.ALLOW),))
    lake.run(
        privileges_grant(
            lake.ctx(), metalake=LAKE, role="of ana", privilege_request=privilege_request, grants_them=False
        )
    )
    lake.namespace("during", scope=side)
    denied = read(lake, "ana", after=at)
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG)
    again = read(lake, "ana", after=denied.position.text())

    assert [line for line in lines(denied) if "side" in line] == []
    assert [line for line in lines(again) if "side" in line] == ["create namespace side.during"]


def test_short_lived_catalog_is_visible_to_metalake_owner_only(lake: ServiceDesk) -> None:
    """Changes in a catalog that was created and dropped between two reads are delivered to the metalake's owner
    only.
    """
    at = {user: now(lake, user) for user in (ADMIN, "ana")}
    lake.run(add_catalog(lake.ctx(), "side"))
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    lake.run(catalog_drop(lake.ctx(), metalake=LAKE, name="side", force=True))

    first = read(lake, after=at[ADMIN])
    second = read(lake, after=first.position.text())

    assert lines(first) == ["create catalog side", "drop catalog side"]
    assert first.more
    assert lines(second) == ["create namespace side.n"]
    assert lines(read(lake, "ana", after=at["ana"])) == []


def test_dropped_catalog_is_visible_to_metalake_owner_only(lake: ServiceDesk) -> None:
    """The unread changes of a dropped catalog are delivered only to the metalake's owner, not to its other former
    readers.
    """
    lake.run(add_catalog(lake.ctx(), "side"))
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    at = {user: now(lake, user) for user in (ADMIN, "ana")}
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    lake.run(catalog_drop(lake.ctx(), metalake=LAKE, name="side", force=True))

    visible_changes = {user: pages(lake, user, at[user]) for user in at}

    assert "create namespace side.n" in visible_changes[ADMIN]
    assert "create namespace side.n" not in visible_changes["ana"]


def pages(desk: ServiceDesk, user: str, after: str) -> list[str]:
    """Return all changes after a position, page by page."""
    changes = []
    while True:
        page = read(desk, user, after=after)
        changes += lines(page)
        if not page.more:
            return changes
        after = page.position.text()


def test_position_drops_catalog_after_its_changes_are_deleted(lake: ServiceDesk) -> None:
    """A position has an entry for a dropped catalog until the catalog's changes are deleted."""
    lake.run(add_catalog(lake.ctx(), "side"))
    side = lake.rows("SELECT id FROM node WHERE name = 'side'")[0][0]
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    at = read(lake)
    lake.run(catalog_drop(lake.ctx(), metalake=LAKE, name="side", force=True))
    page_before_prune = read(lake, after=at.position.text())
    prune(lake)

    after = read(lake, after=page_before_prune.position.text())

    assert [side in page.position.zones for page in (at, page_before_prune, after)] == [True, True, False]


def prune(desk: ServiceDesk) -> None:
    """Delete all stored changes."""
    desk.lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))


def test_pruned_changes_raise_position_pruned(lake: ServiceDesk) -> None:
    """A reader whose next changes were deleted gets PositionPruned, not an empty page."""
    at = now(lake)
    lake.table("a", "t")
    prune(lake)

    with pytest.raises(PositionPruned):
        read(lake, after=at)

    assert lines(read(lake)) == []
    assert lines(read(lake, after=now(lake))) == []


def test_position_issued_before_restore_is_refused(lake: ServiceDesk) -> None:
    """Feed positions that were issued before a restore of a backup are refused."""
    at = now(lake)
    lake.rows("UPDATE store SET epoch = epoch + 1")

    with pytest.raises(PositionPruned):
        read(lake, after=at)


def test_position_of_another_feed_is_refused(lake: ServiceDesk) -> None:
    """A position of a catalog's feed is refused by the metalake's feed."""
    with pytest.raises(BadRequest, match="another metalake or catalog"):
        read(lake, after=now(lake, scope=MAIN))


def test_catalog_feed_has_only_its_own_changes(lake: ServiceDesk) -> None:
    """The feed of a catalog contains only that catalog's changes, none of the metalake."""
    at = now(lake, scope=MAIN)
    lake.users("eve")
    lake.table("a", "t")

    assert lines(read(lake, after=at, scope=MAIN)) == ["create table main.a.t"]


def test_unprivileged_callers_are_refused_feeds(lake: ServiceDesk) -> None:
    """Non-members may read no feed, and members without privileges no feed of a catalog. That a catalog does not exist
    is reported only to callers who could use it.
    """
    lake.users("eve")
    for user, scope in (("stranger", WHOLE), ("eve", MAIN), ("stranger", MAIN)):
        with pytest.raises(PermissionDenied):
            read(lake, user, scope=scope)
    with pytest.raises(NotFound):
        read(lake, scope=RequestScope(LAKE, "none"))


def test_user_and_role_changes_are_visible_to_permitted_users(lake: ServiceDesk) -> None:
    """Changes of users, groups and roles are visible to users who may load them."""
    at = {user: now(lake, user) for user in (ADMIN, "bob")}
    lake.users("eve")
    lake.allow("bob", Kind.NAMESPACE, "main.b", Privilege.USE_SCHEMA)

    assert "create user eve" in lines(read(lake, after=at[ADMIN]))
    assert lines(read(lake, "bob", after=at["bob"])) == ["alter role of bob"]


def test_owners_see_changes_of_their_objects(lake: ServiceDesk) -> None:
    """Owners see changes of their objects."""
    lake.table("b", "t")
    lake.allow("bob", Kind.NAMESPACE, "main.b", Privilege.USE_SCHEMA)
    at = now(lake, "bob")
    lake.run(
        owner_set(lake.ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.b.t", owner_kind=Kind.USER, owner="bob")
    )

    assert lines(read(lake, "bob", after=at)) == ["own table main.b.t"]


def test_small_pages_return_the_same_changes_as_one_large_page(lake: ServiceDesk) -> None:
    """Reading one revision at a time returns the same changes as one large page, each once."""
    lake.run(add_catalog(lake.ctx(), "side"))
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    for name in "tuvw":
        lake.table("a", name)
    whole = read(lake)
    steps, after, more = [], None, True
    while more:
        page = read(lake, after=after, limit=1)
        steps += page.changes
        after, more = page.position.text(), page.more

    assert sorted(steps, key=str) == sorted(whole.changes, key=str)


async def somebody_waits(desk: ServiceDesk) -> None:
    """Wait until a caller waits for a change."""
    watch = desk.node.services.watch
    while not watch.waiting:  # noqa: ASYNC110 - the watch offers no event for this, so it is polled
        await asyncio.sleep(0)


def test_waiting_ends_with_the_first_change(lake: ServiceDesk) -> None:
    """A waiting caller gets a change as soon as it is committed."""
    at = now(lake)

    async def follow() -> FeedPage:
        reading = asyncio.create_task(changes_read(lake.ctx(), WHOLE, after=at, limit=10, wait_s=30))
        await somebody_waits(lake)
        await namespace_create(lake.ctx(), MAIN, levels=("new",), properties={})
        return await asyncio.wait_for(reading, 300)

    assert lines(lake.run(follow())) == ["create namespace main.new"]


def test_hidden_change_does_not_end_the_wait(lake: ServiceDesk) -> None:
    """A hidden change does not end the wait. The caller gets an empty page at the end of the wait."""
    at = now(lake, "bob")

    async def follow() -> FeedPage:
        reading = asyncio.create_task(changes_read(lake.ctx("bob"), WHOLE, after=at, limit=10, wait_s=0.5))
        await somebody_waits(lake)
        await table_create(lake.ctx(), MAIN, namespace=("a",), request=new_table("t"))
        return await reading

    page = lake.run(follow())

    assert (page.changes, page.more) == ([], False)
    assert page.position.text() != at


def test_node_stop_answers_waiting_callers(lake: ServiceDesk) -> None:
    """When the node stops, waiting callers are answered immediately."""
    at = now(lake)

    async def follow() -> FeedPage:
        reading = asyncio.create_task(changes_read(lake.ctx(), WHOLE, after=at, limit=10, wait_s=30))
        await somebody_waits(lake)
        lake.node.services.watch.close()
        return await asyncio.wait_for(reading, 300)

    assert lake.run(follow()).changes == []
