# SPDX-License-Identifier: Apache-2.0
"""The trash: which objects can be restored, where, by whom, with which owner and grants, and the locations of dropped
objects.
"""

from __future__ import annotations

import pytest

from limnos.model.entities import MetadataDocument
from limnos.model.errors import AlreadyExists, BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.model.privileges import GrantCondition, Privilege
from limnos.names.path import PARTS_MAX
from limnos.services.catalog.namespaces import namespace_drop, namespace_move, namespaces_list
from limnos.services.catalog.tables import table_drop, table_load, table_move, tables_list
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.owners import owner_load, owner_set
from limnos.services.identity.roles import role_load, role_objects
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.trash import NEWEST, TrashEntry, TrashRestored, trash_list, trash_restore, trash_sweep
from limnos.store.activity.upkeep import feed_prune, orphans_sweep
from tests.inprocess import ADMIN, LAKE, MAIN, new_table
from tests.services.conftest import ServiceDesk

USES = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
WEEK_MS = 604_800_000


def drop(desk: ServiceDesk, *levels: str, user: str = ADMIN, purge: bool = False) -> None:
    """Drop a table."""
    desk.run(table_drop(desk.ctx(user), MAIN, namespace=levels[:-1], name=levels[-1], purge=purge))


def drop_space(desk: ServiceDesk, *levels: str) -> None:
    """Drop a namespace."""
    desk.run(namespace_drop(desk.ctx(), MAIN, levels=levels))


def trash(desk: ServiceDesk, user: str = ADMIN, below: tuple[str, ...] = ()) -> list[TrashEntry]:
    """Return the objects that a user may restore, newest first."""
    return list(desk.run(trash_list(desk.ctx(user), MAIN, below=below, before=NEWEST, limit=100)).entries)


def paths(desk: ServiceDesk, user: str = ADMIN, below: tuple[str, ...] = ()) -> list[str]:
    """Return the same objects as paths."""
    return [".".join(each.path) for each in trash(desk, user, below)]


def back(
    desk: ServiceDesk, path: str, user: str = ADMIN, *, to: tuple[str, ...] | None = None, contents: bool = False
) -> TrashRestored:
    """Restore, as the administrator, the object that has this path in the trash."""
    number = next(each.row.id for each in trash(desk) if ".".join(each.path) == path)
    return desk.run(trash_restore(desk.ctx(user), MAIN, dropped_id=number, to=to, contents=contents))


def load(desk: ServiceDesk, *levels: str, user: str = ADMIN) -> MetadataDocument:
    """Load a table."""
    return desk.run(desk.ctx(user).read(MAIN, lambda request_view: table_load(request_view, levels[:-1], levels[-1])))


def objects_of(desk: ServiceDesk, role: str) -> list[tuple[str, ...]]:
    """Return the paths of a role's rules, as its list has them."""
    ruled = desk.run(desk.ctx().read(RequestScope(LAKE), lambda request_view: role_load(request_view, role)))

    async def paths() -> list[tuple[str, ...]]:
        return [each.path async for some in role_objects(desk.ctx(), ruled) for each in some]

    return desk.run(paths())


def sweep(desk: ServiceDesk, *, after_ms: int) -> None:
    """Run the sweep at a later time, after the feed's changes were deleted, for whose readers grants are kept."""
    permit = upkeep_permit("limnos")
    desk.lab.database.sql("UPDATE trash SET expires_at = expires_at - ?", after_ms)
    desk.run(desk.node.services.store.submit(permit, trash_sweep))
    desk.run(desk.node.services.store.submit(permit, lambda tx: feed_prune(tx, keep_ms=-after_ms)))
    desk.run(desk.node.services.store.submit(permit, orphans_sweep))


def test_restored_table_has_its_document_owner_and_grants(desk: ServiceDesk) -> None:
    """A restored table has its document, name, owner and grants. No list contains it before."""
    desk.namespace("a")
    desk.table("a", "t")
    desk.allow("ana", Kind.CATALOG, "main", *USES)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)
    desk.run(
        owner_set(desk.ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.a.t", owner_kind=Kind.USER, owner="bob")
    )
    before = load(desk, "a", "t", user="ana")
    drop(desk, "a", "t")
    with pytest.raises((NotFound, PermissionDenied)):
        load(desk, "a", "t", user="ana")
    named = objects_of(desk, "of ana")
    sweep(desk, after_ms=WEEK_MS - 60_000)
    restored = back(desk, "a.t")
    owner = desk.run(owner_load(desk.ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.a.t"))

    assert named == [("main",)]
    assert objects_of(desk, "of ana") == [("main",), ("main", "a", "t")]
    assert restored == TrashRestored(Kind.TABLE, ("a", "t"), 0, 0)
    assert load(desk, "a", "t", user="ana") == before
    assert owner is not None
    assert owner.name == "bob"
    assert desk.run(desk.ctx().read(MAIN, lambda request_view: tables_list(request_view, ("a",)))).texts() == ["t"]
    assert paths(desk) == []


def test_sweep_deletes_dropped_object_after_retention(desk: ServiceDesk) -> None:
    """After the retention time the sweep deletes the row, document, owner and grants of a dropped object, and frees its
    location.
    """
    desk.namespace("a")
    desk.table("a", "t")
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)
    number = desk.rows("SELECT node_id FROM document")[0][0]
    drop(desk, "a", "t")
    sweep(desk, after_ms=WEEK_MS)

    assert paths(desk) == []
    assert desk.rows("SELECT * FROM document") == []
    assert desk.rows("SELECT * FROM owner WHERE object_id = ?", number) == []
    assert desk.rows("SELECT * FROM access_grant WHERE object_id = ?", number) == []
    with pytest.raises(NotFound, match="list the trash with 'limnos list trash'"):
        desk.run(trash_restore(desk.ctx(), MAIN, dropped_id=number))


def test_purged_object_cannot_be_restored(desk: ServiceDesk) -> None:
    """A drop with purge, or with a retention of zero, leaves no object to restore."""
    desk.namespace("a")
    desk.table("a", "t")
    desk.table("a", "u")
    drop(desk, "a", "t", purge=True)
    services = desk.node.services
    services.defaults = services.defaults._replace(keep_dropped_ms=0)
    drop(desk, "a", "u")

    assert trash(desk) == []
    assert desk.rows("SELECT * FROM document") == []


def test_dropped_table_can_be_restored_under_another_path(desk: ServiceDesk) -> None:
    """If another table has the name, the dropped table can be restored under another path. By path, the newest drop is
    restored.
    """
    desk.namespace("a")
    desk.namespace("b")
    desk.table("a", "t")
    first = load(desk, "a", "t")
    drop(desk, "a", "t")
    desk.table("a", "t")
    with pytest.raises(AlreadyExists, match="under another name"):
        back(desk, "a.t")
    restored = back(desk, "a.t", to=("b", "old"))

    assert restored.path == ("b", "old")
    assert load(desk, "b", "old") == first
    assert load(desk, "a", "t").uuid != first.uuid


def test_object_of_dropped_namespace_cannot_be_restored_alone(desk: ServiceDesk) -> None:
    """An object of a dropped namespace cannot be restored alone, and the error says so. Restoring the namespace with
    contents restores the objects, and of equal names the newest.
    """
    desk.namespace("a", "b")
    desk.table("a", "b", "t")
    drop(desk, "a", "b", "t")
    desk.table("a", "b", "t")
    newest = load(desk, "a", "b", "t")
    drop(desk, "a", "b", "t")
    desk.table("a", "b", "u")
    drop(desk, "a", "b", "u")
    drop_space(desk, "a", "b")
    drop_space(desk, "a")
    with pytest.raises(NotFound, match=r"lay in namespace a\.b, which was dropped, too"):
        back(desk, "a.b.u")
    assert sorted(paths(desk, below=("a", "b"))) == ["a.b", "a.b.t", "a.b.t", "a.b.u"]
    alone = back(desk, "a", to=("z",))
    rest = back(desk, "z.b", contents=True)

    assert alone == TrashRestored(Kind.NAMESPACE, ("z",), 0, 0)
    assert rest == TrashRestored(Kind.NAMESPACE, ("z", "b"), 2, 1)
    assert load(desk, "z", "b", "t") == newest
    assert paths(desk) == ["z.b.t"]


def test_table_is_restored_into_its_moved_namespace(desk: ServiceDesk) -> None:
    """A table is restored into its namespace, even if the namespace was moved since the drop."""
    desk.namespace("a")
    desk.table("a", "t")
    drop(desk, "a", "t")
    desk.run(namespace_move(desk.ctx(), MAIN, source=("a",), target=("z",)))

    assert paths(desk) == ["z.t"]
    assert back(desk, "z.t").path == ("z", "t")


def test_restore_needs_drop_and_create_privileges(desk: ServiceDesk) -> None:
    """A restore needs the privileges to drop the object and to create one at the target. For other callers the dropped
    object is NotFound.
    """
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", *USES, Privilege.CREATE_TABLE)
    desk.allow("bob", Kind.CATALOG, "main", *USES, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE)
    desk.table("a", "t", user="ana")
    drop(desk, "a", "t")

    assert paths(desk, "ana") == ["a.t"]
    assert paths(desk, "bob") == []
    with pytest.raises(NotFound, match="that you may restore"):
        back(desk, "a.t", "bob")
    assert back(desk, "a.t", "ana").path == ("a", "t")
    drop(desk, "a", "t", user="ana")
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.CREATE_TABLE, condition=GrantCondition.DENY)
    with pytest.raises(PermissionDenied, match="CREATE_TABLE"):
        back(desk, "a.t", "ana")


def test_only_the_owner_may_reuse_a_dropped_tables_location(desk: ServiceDesk) -> None:
    """Only the owner of a dropped table may create a table at or below its location. After that the dropped table
    cannot be restored.
    """
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", *USES, Privilege.CREATE_TABLE)
    desk.allow("bob", Kind.CATALOG, "main", *USES, Privilege.CREATE_TABLE)
    desk.table("a", "t", user="ana")
    place = load(desk, "a", "t").location
    drop(desk, "a", "t", user="ana")

    def make(name: str, location: str, user: str) -> None:
        request = new_table(name)._replace(location=location)
        desk.run(table_create(desk.ctx(user), MAIN, namespace=("a",), request=request))

    for location in (place, f"{place}/inner"):
        with pytest.raises(BadRequest, match="keep their locations for a while"):
            make("mine", location, "bob")
    with pytest.raises(BadRequest, match="tables cannot share files"):
        make("mine", f"{place}/inner", "ana")
    assert paths(desk) == ["a.t"]
    make("mine", place, "ana")

    assert paths(desk) == []
    assert load(desk, "a", "mine").location == place


def test_dropped_table_is_not_listed_or_moved(desk: ServiceDesk) -> None:
    """A dropped table is in no list and cannot be moved, and a namespace with only dropped tables counts as empty."""
    desk.namespace("a")
    desk.table("a", "t")
    drop(desk, "a", "t")
    with pytest.raises(NotFound):
        desk.run(table_move(desk.ctx(), MAIN, source=("a", "t"), target=("a", "u")))
    drop_space(desk, "a")

    assert desk.run(desk.ctx().read(MAIN, lambda request_view: namespaces_list(request_view, ()))).texts() == []


@pytest.mark.parametrize("depth", [1, 2])
def test_objects_of_a_dropped_namespace_can_be_restored(desk: ServiceDesk, depth: int) -> None:
    """Objects of a dropped namespace can be restored with it by name or id, or elsewhere, without inconsistency."""
    levels = ("a", "b")[:depth]
    desk.namespace(*levels)
    desk.namespace("other")
    desk.table(*levels, "t")
    drop(desk, *levels, "t")
    for end in range(depth, 0, -1):
        drop_space(desk, *levels[:end])
    path = ".".join((*levels, "t"))

    with pytest.raises(NotFound, match="which was dropped, too"):
        back(desk, path)
    with pytest.raises(NotFound, match="not exist"):
        back(desk, path, to=(*levels, "t"))
    assert back(desk, path, to=("other", "t")).path == ("other", "t")


def test_restore_of_too_deeply_nested_contents_is_refused(desk: ServiceDesk) -> None:
    """A namespace whose contents would be nested too deeply at the target is not restored, and everything stays in the
    trash.
    """
    deep = tuple(f"n{number}" for number in range(PARTS_MAX - 2))
    for levels in (("a",), ("a", "b"), ("a", "b", "c"), *(deep[:end] for end in range(1, len(deep) + 1))):
        desk.namespace(*levels)
    for end in (3, 2, 1):
        drop_space(desk, *("a", "b", "c")[:end])

    with pytest.raises(BadRequest, match="deeper than"):
        back(desk, "a", to=(*deep, "a"), contents=True)
    assert sorted(paths(desk)) == ["a", "a.b", "a.b.c"]
    assert back(desk, "a", to=("a2",), contents=True).contents == 2
