"""The change feed as callers see it: no change missing, none twice, none that the caller may not see."""

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
    """Ask for changes, without waiting."""
    return desk.run(changes_read(desk.ctx(user), scope, after=after, limit=limit))


def now(desk: ServiceDesk, user: str = ADMIN, scope: RequestScope = WHOLE) -> str:
    """The position after all that was committed."""
    return read(desk, user, after="now", scope=scope).position.text()


def lines(page: FeedPage) -> list[str]:
    """Changes as words: operation, kind, where it is; then what the change tells of the places before and after."""
    found = []
    for each in page.changes:
        path, old, new = ("?" if part is None else ".".join(part) for part in (each.path, each.old, each.new))
        moved = f" {old}>{new}" if each.operation == "move" else ""
        found.append(f"{each.operation} {each.kind.word} {path}{moved}")
    return found


@pytest.fixture
def lake(desk: ServiceDesk) -> ServiceDesk:
    """Namespaces `a` and `b`; ana may read all tables of `a`, bob may use the catalog alone."""
    desk.namespace("a")
    desk.namespace("b")
    for user in ("ana", "bob"):
        desk.allow(user, Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    return desk


def test_who_may_see_it_is_told(lake: ServiceDesk) -> None:
    """A change is told to those who may load what it is about."""
    at = {user: now(lake, user) for user in (ADMIN, "ana", "bob")}
    lake.table("a", "t")
    lake.table("b", "u")

    told = {user: lines(read(lake, user, after=after)) for user, after in at.items()}

    assert told == {
        ADMIN: ["create table main.a.t", "create table main.b.u"],
        "ana": ["create table main.a.t"],
        "bob": [],
    }


def test_position_goes_on_over_what_is_hidden(lake: ServiceDesk) -> None:
    """What was passed over because the caller could not see it is not told later, and nothing is told twice."""
    at = now(lake, "bob")
    lake.table("a", "t")
    passed = read(lake, "bob", after=at)
    lake.allow("bob", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    lake.table("a", "u")

    assert passed.changes == []
    assert [line for line in lines(read(lake, "bob", after=passed.position.text())) if " table " in line] == [
        "create table main.a.u"
    ]


def test_rights_are_those_of_the_reading(lake: ServiceDesk) -> None:
    """A change made when the caller could not see it is told when it is read with the right to."""
    at = now(lake, "bob")
    lake.table("a", "t")
    lake.allow("bob", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)

    assert "create table main.a.t" in lines(read(lake, "bob", after=at))


def test_moved_out_of_sight(lake: ServiceDesk) -> None:
    """Who saw it where it was learns that it has gone from there, and not where to, nor what becomes of it there."""
    lake.table("a", "t")
    at = now(lake, "ana")
    lake.run(table_move(lake.ctx(), MAIN, source=("a", "t"), target=("b", "secret")))
    lake.run(table_drop(lake.ctx(), MAIN, namespace=("b",), name="secret", purge=False))

    assert lines(read(lake, "ana", after=at)) == ["move table ? main.a.t>?"]


def test_moved_into_sight(lake: ServiceDesk) -> None:
    """Who sees it where it is now does not learn where it came from."""
    lake.table("b", "secret")
    at = now(lake, "ana")
    lake.run(table_move(lake.ctx(), MAIN, source=("b", "secret"), target=("a", "t")))

    assert lines(read(lake, "ana", after=at)) == ["move table main.a.t ?>main.a.t"]


def test_what_happened_before_a_move_out_of_sight(lake: ServiceDesk) -> None:
    """A change of what lies out of sight now is not told, though it was in sight then."""
    at = now(lake, "ana")
    lake.table("a", "t")
    lake.run(table_move(lake.ctx(), MAIN, source=("a", "t"), target=("b", "secret")))

    assert lines(read(lake, "ana", after=at)) == ["move table ? main.a.t>?"]


def test_what_was_dropped_is_told_where_it_lay(lake: ServiceDesk) -> None:
    """A dropped table in a dropped namespace is told by what is left above it, and to nobody else."""
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


def test_a_denial_outlives_its_object(lake: ServiceDesk) -> None:
    """The name of a table that was denied to the caller is not told when it is dropped."""
    lake.table("a", "t")
    lake.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE, condition=GrantCondition.DENY)
    at = now(lake, "ana")
    lake.run(table_drop(lake.ctx(), MAIN, namespace=("a",), name="t", purge=False))

    assert lines(read(lake, "ana", after=at)) == []


def test_a_catalog_that_comes_into_sight_is_told_from_its_beginning(lake: ServiceDesk) -> None:
    """Who may use a catalog from now on is told what is kept of it, as far as they may see it; the others are not
    in the position.
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


def test_a_catalog_out_of_sight_stands_still(lake: ServiceDesk) -> None:
    """What happens in a catalog that the caller may not use for a while comes when it may be used again, once."""
    lake.run(add_catalog(lake.ctx(), "side"))
    side = RequestScope(LAKE, "side")
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    lake.namespace("before", scope=side)
    at = now(lake, "ana")
    wish = PrivilegeRequest(Kind.CATALOG, "side", ((Privilege.USE_CATALOG, GrantCondition.ALLOW),))
    lake.run(privileges_grant(lake.ctx(), metalake=LAKE, role="of ana", wish=wish, grants_them=False))
    lake.namespace("during", scope=side)
    denied = read(lake, "ana", after=at)
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG)
    again = read(lake, "ana", after=denied.position.text())

    assert [line for line in lines(denied) if "side" in line] == []
    assert [line for line in lines(again) if "side" in line] == ["create namespace side.during"]


def test_a_catalog_that_came_and_went(lake: ServiceDesk) -> None:
    """What a catalog held that was made and dropped between two questions is told to the metalake's owner alone."""
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


def test_what_happened_in_a_catalog_that_went_is_the_metalake_owners(lake: ServiceDesk) -> None:
    """Who followed a catalog until it was dropped is told nothing of what they have not read by then."""
    lake.run(add_catalog(lake.ctx(), "side"))
    lake.allow("ana", Kind.CATALOG, "side", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    at = {user: now(lake, user) for user in (ADMIN, "ana")}
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    lake.run(catalog_drop(lake.ctx(), metalake=LAKE, name="side", force=True))

    found = {user: pages(lake, user, at[user]) for user in at}

    assert "create namespace side.n" in found[ADMIN]
    assert "create namespace side.n" not in found["ana"]


def pages(desk: ServiceDesk, user: str, after: str) -> list[str]:
    """Return all changes that a user gets from a position on."""
    found = []
    while True:
        page = read(desk, user, after=after)
        found += lines(page)
        if not page.more:
            return found
        after = page.position.text()


def test_a_position_forgets_what_is_gone_for_good(lake: ServiceDesk) -> None:
    """A dropped catalog stands in the position as long as something of it is kept."""
    lake.run(add_catalog(lake.ctx(), "side"))
    side = lake.rows("SELECT id FROM node WHERE name = 'side'")[0][0]
    lake.namespace("n", scope=RequestScope(LAKE, "side"))
    at = read(lake)
    lake.run(catalog_drop(lake.ctx(), metalake=LAKE, name="side", force=True))
    kept = read(lake, after=at.position.text())
    prune(lake)

    after = read(lake, after=kept.position.text())

    assert [side in page.position.zones for page in (at, kept, after)] == [True, True, False]


def prune(desk: ServiceDesk) -> None:
    """Delete all changes that there are."""
    desk.lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))


def test_pruned_changes_are_told(lake: ServiceDesk) -> None:
    """Who was away for longer than changes are kept is told so, and not that nothing happened."""
    at = now(lake)
    lake.table("a", "t")
    prune(lake)

    with pytest.raises(PositionPruned):
        read(lake, after=at)

    assert lines(read(lake)) == []
    assert lines(read(lake, after=now(lake))) == []


def test_another_epoch_is_told(lake: ServiceDesk) -> None:
    """After the store was put back from a backup nobody goes on from a position of before."""
    at = now(lake)
    lake.rows("UPDATE store SET epoch = epoch + 1")

    with pytest.raises(PositionPruned):
        read(lake, after=at)


def test_position_of_another_feed(lake: ServiceDesk) -> None:
    """A catalog's position is none of its metalake."""
    with pytest.raises(BadRequest, match="another metalake or catalog"):
        read(lake, after=now(lake, scope=MAIN))


def test_one_catalog(lake: ServiceDesk) -> None:
    """A catalog's own feed has what lies in it, and nothing of its metalake."""
    at = now(lake, scope=MAIN)
    lake.users("eve")
    lake.table("a", "t")

    assert lines(read(lake, after=at, scope=MAIN)) == ["create table main.a.t"]


def test_who_may_not_follow(lake: ServiceDesk) -> None:
    """A stranger follows nothing, a member without rights no catalog; what is not there is told to who may know."""
    lake.users("eve")
    for user, scope in (("stranger", WHOLE), ("eve", MAIN), ("stranger", MAIN)):
        with pytest.raises(PermissionDenied):
            read(lake, user, scope=scope)
    with pytest.raises(NotFound):
        read(lake, scope=RequestScope(LAKE, "none"))


def test_people_and_roles(lake: ServiceDesk) -> None:
    """What happens to users, groups and roles is told to those who may load them."""
    at = {user: now(lake, user) for user in (ADMIN, "bob")}
    lake.users("eve")
    lake.allow("bob", Kind.NAMESPACE, "main.b", Privilege.USE_SCHEMA)

    assert "create user eve" in lines(read(lake, after=at[ADMIN]))
    assert lines(read(lake, "bob", after=at["bob"])) == ["alter role of bob"]


def test_owners_see_what_they_own(lake: ServiceDesk) -> None:
    """Ownership counts as for loads."""
    lake.table("b", "t")
    lake.allow("bob", Kind.NAMESPACE, "main.b", Privilege.USE_SCHEMA)
    at = now(lake, "bob")
    lake.run(
        owner_set(lake.ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.b.t", owner_kind=Kind.USER, owner="bob")
    )

    assert lines(read(lake, "bob", after=at)) == ["own table main.b.t"]


def test_small_steps_tell_what_one_big_step_tells(lake: ServiceDesk) -> None:
    """Read revision by revision, the feed has the same changes, each once."""
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
    """Go on once somebody waits."""
    watch = desk.node.services.watch
    while not watch.waiting:  # noqa: ASYNC110 - the watch is asked, and has no event for it
        await asyncio.sleep(0)


def test_waiting_ends_with_the_first_change(lake: ServiceDesk) -> None:
    """Who waits gets the change when it is committed, long before the time is over."""
    at = now(lake)

    async def follow() -> FeedPage:
        reading = asyncio.create_task(changes_read(lake.ctx(), WHOLE, after=at, limit=10, wait_s=30))
        await somebody_waits(lake)
        await namespace_create(lake.ctx(), MAIN, levels=("new",), properties={})
        return await asyncio.wait_for(reading, 300)

    assert lines(lake.run(follow())) == ["create namespace main.new"]


def test_waiting_goes_on_over_what_is_hidden(lake: ServiceDesk) -> None:
    """Who waits is not disturbed by what they may not see, and gets nothing when the time is over."""
    at = now(lake, "bob")

    async def follow() -> FeedPage:
        reading = asyncio.create_task(changes_read(lake.ctx("bob"), WHOLE, after=at, limit=10, wait_s=0.5))
        await somebody_waits(lake)
        await table_create(lake.ctx(), MAIN, namespace=("a",), request=new_table("t"))
        return await reading

    page = lake.run(follow())

    assert (page.changes, page.more) == ([], False)
    assert page.position.text() != at


def test_a_stop_lets_everybody_go(lake: ServiceDesk) -> None:
    """When the node stops, who waits is answered at once."""
    at = now(lake)

    async def follow() -> FeedPage:
        reading = asyncio.create_task(changes_read(lake.ctx(), WHOLE, after=at, limit=10, wait_s=30))
        await somebody_waits(lake)
        lake.node.services.watch.close()
        return await asyncio.wait_for(reading, 300)

    assert lake.run(follow()).changes == []
