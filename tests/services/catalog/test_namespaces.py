# SPDX-License-Identifier: Apache-2.0
"""Namespaces: a create also creates missing parents, all or nothing; a move takes the subtree along and never creates a
cycle.
"""

from __future__ import annotations

import pytest

from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotEmpty, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.names.errors import InvalidName
from limnos.services.catalog.namespaces import namespace_create, namespace_drop, namespace_load, namespace_move
from limnos.services.catalog.tables import table_exists, table_move
from limnos.services.identity.owners import owner_load
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE, MAIN
from tests.services.conftest import ServiceDesk


def load(desk: ServiceDesk, *levels: str, user: str = "admin") -> Node:
    """Load a namespace."""
    return desk.run(desk.ctx(user).read(MAIN, lambda request_view: namespace_load(request_view, levels)))


def owner(desk: ServiceDesk, full_name: str) -> str | None:
    """Return the name of a namespace's owner."""
    principal = desk.run(owner_load(desk.ctx(), metalake=LAKE, kind=Kind.NAMESPACE, full_name=full_name))
    return None if principal is None else principal.name


def move(desk: ServiceDesk, source: str, target: str, *, user: str = "admin") -> None:
    """Move a namespace; names are single letters."""
    desk.run(namespace_move(desk.ctx(user), MAIN, source=tuple(source), target=tuple(target)))


def count(desk: ServiceDesk) -> int:
    """Return the number of live namespaces."""
    number: int = desk.rows("SELECT count(*) FROM node WHERE kind = 3 AND deleted = 0")[0][0]
    return number


def test_missing_parents_are_created_with_the_targets_owner(desk: ServiceDesk) -> None:
    """A create makes all missing parents, none of them implicit, with the same owner as the target."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)

    desk.namespace("a", "b", "c", user="ana")

    assert [load(desk, *"abc"[:size]).implicit for size in (1, 2, 3)] == [False] * 3
    assert [owner(desk, name) for name in ("main.a", "main.a:b", "main.a:b:c")] == ["ana"] * 3


def test_existing_parents_keep_their_owner(desk: ServiceDesk) -> None:
    """Only missing parents are created; existing ones keep their owners."""
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.CREATE_SCHEMA)

    desk.namespace("a", "b", "c", user="ana")

    assert [owner(desk, name) for name in ("main.a", "main.a:b", "main.a:b:c")] == ["admin", "ana", "ana"]


def test_create_privilege_is_checked_at_nearest_ancestor(desk: ServiceDesk) -> None:
    """The privilege to create is checked at the nearest existing ancestor, and a refused create makes no parents."""
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.CREATE_SCHEMA)

    with pytest.raises(PermissionDenied, match="CREATE_SCHEMA"):
        desk.namespace("b", "c", user="ana")

    assert count(desk) == 1


@pytest.mark.parametrize("levels", [("a", "b:c"), ("a", "b", ""), ("a", ".."), ("a", "x" * 256), ("p",) * 33])
def test_invalid_level_refuses_the_whole_create(desk: ServiceDesk, levels: tuple[str, ...]) -> None:
    """One invalid level refuses the whole create."""
    from limnos.names.path import check_levels

    async def create() -> Node:
        return (await namespace_create(desk.ctx(), MAIN, levels=check_levels(levels), properties={}))[0]

    with pytest.raises(InvalidName):
        desk.run(create())

    assert count(desk) == 0


def test_create_of_existing_namespace_is_refused(desk: ServiceDesk) -> None:
    """Creating an existing namespace, or an existing parent, is AlreadyExists with the full name, whether the
    node has it in its view or only the store does.
    """
    desk.namespace("a", "b")

    for levels, name in ((("a",), "a"), (("a", "b"), r"a\.b")) * 2:
        with pytest.raises(AlreadyExists, match=f"^Namespace already exists: {name}$"):
            desk.namespace(*levels)
        with pytest.raises(PermissionDenied, match="CREATE_SCHEMA"):
            desk.namespace(*levels, user="ana")
        desk.run(desk.ctx().read(MAIN, lambda request_view, levels=levels: request_view.find(levels, Kind.NAMESPACE)))
    assert count(desk) == 2


def test_namespace_owner_may_drop_objects_of_other_users(desk: ServiceDesk) -> None:
    """The owner of a namespace may drop objects of other users in it."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)
    desk.namespace("a", "b", user="ana")
    desk.namespace("a", "b", "c")

    desk.run(namespace_drop(desk.ctx("ana"), MAIN, levels=("a", "b", "c")))

    assert count(desk) == 2


def test_drop_needs_empty_target_and_retains_parents(desk: ServiceDesk) -> None:
    """A namespace with content cannot be dropped, and a drop does not remove the target's parents."""
    desk.namespace("a", "b")
    with pytest.raises(NotEmpty):
        desk.run(namespace_drop(desk.ctx(), MAIN, levels=("a",)))

    desk.run(namespace_drop(desk.ctx(), MAIN, levels=("a", "b")))

    assert load(desk, "a").name == "a"
    with pytest.raises(NotFound):
        load(desk, "a", "b")


def test_move_keeps_subtree_and_its_grants(desk: ServiceDesk) -> None:
    """A move keeps the subtree and the grants on it; grants inherited from the old parent end."""
    desk.namespace("a", "b", "c")
    desk.namespace("d")
    desk.table("a", "b", "c", "t")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)
    desk.allow("ana", Kind.NAMESPACE, "main.a:b", Privilege.SELECT_TABLE)
    desk.run(desk.ctx("ana").read(MAIN, lambda request_view: table_exists(request_view, ("a", "b", "c"), "t")))

    move(desk, "ab", "dx")

    with pytest.raises(PermissionDenied, match="USE_SCHEMA"):
        desk.run(desk.ctx("ana").read(MAIN, lambda request_view: table_exists(request_view, ("d", "x", "c"), "t")))
    desk.allow("ana", Kind.NAMESPACE, "main.d", Privilege.USE_SCHEMA)
    desk.run(desk.ctx("ana").read(MAIN, lambda request_view: table_exists(request_view, ("d", "x", "c"), "t")))
    with pytest.raises(NotFound):
        load(desk, "a", "b")


@pytest.mark.parametrize("target", ["ab", "abx", "abcx"])
def test_move_into_itself_is_refused(desk: ServiceDesk, target: str) -> None:
    """A namespace cannot be moved below itself or its descendants. A move to its current path changes nothing."""
    desk.namespace("a", "b", "c")
    desk.namespace("a", "x")

    if target == "ab":
        move(desk, "ab", "ab")
    else:
        with pytest.raises(BadRequest, match="cannot be moved into itself"):
            move(desk, "ab", target)

    assert load(desk, "a", "b", "c").name == "c"


@pytest.mark.parametrize(
    "source,target,error",
    [
        ("z", "y", NotFound),
        ("a", "zy", NotFound),
        ("a", "d", AlreadyExists),
        ("ab", "db", AlreadyExists),
    ],
)
def test_impossible_moves_are_refused(desk: ServiceDesk, source: str, target: str, error: type[Exception]) -> None:
    """A move whose source or target parent is missing is NotFound, a move to a taken name is refused, and neither moves
    anything.
    """
    desk.namespace("a", "b")
    desk.namespace("d", "b")

    with pytest.raises(error):
        move(desk, source, target)

    assert (load(desk, "a", "b").name, load(desk, "d", "b").name) == ("b", "b")


def test_move_needs_privileges_at_source_and_target(desk: ServiceDesk) -> None:
    """The owner of a namespace may rename it in its parent, but may move it only to a parent in which the owner may
    create namespaces.
    """
    desk.namespace("d")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)
    desk.namespace("a", user="ana")
    move(desk, "a", "b", user="ana")

    from limnos.model.privileges import GrantCondition
    from limnos.services.identity.grants import PrivilegeRequest, privileges_grant

    privilege_request = PrivilegeRequest(Kind.CATALOG, "main", ((Privilege.CREATE_SCHEMA, GrantCondition.ALLOW),))
    desk.run(
        privileges_grant(
            desk.ctx(), metalake=LAKE, role="of ana", privilege_request=privilege_request, grants_them=False
        )
    )
    with pytest.raises(PermissionDenied, match="CREATE_SCHEMA"):
        move(desk, "b", "db", user="ana")

    assert load(desk, "b").name == "b"


def test_table_move_needs_ownership_and_create_table(desk: ServiceDesk) -> None:
    """Renaming a table needs MODIFY_TABLE; moving it needs ownership, and CREATE_TABLE at the target."""
    desk.namespace("a")
    desk.namespace("d")
    desk.table("a", "t")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.CREATE_TABLE)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.MODIFY_TABLE)

    desk.run(table_move(desk.ctx("ana"), MAIN, source=("a", "t"), target=("a", "u")))
    with pytest.raises(PermissionDenied, match="own"):
        desk.run(table_move(desk.ctx("ana"), MAIN, source=("a", "u"), target=("d", "u")))

    desk.table("a", "mine", user="ana")
    desk.run(table_move(desk.ctx("ana"), MAIN, source=("a", "mine"), target=("d", "mine")))
    desk.run(desk.ctx("ana").read(MAIN, lambda request_view: table_exists(request_view, ("d",), "mine")))


def test_create_with_parents_false_needs_existing_parents(desk: ServiceDesk) -> None:
    """With `parents=false`, a create whose parent is missing fails and names the parent. It succeeds when the parents
    exist.
    """

    def create(*levels: str) -> None:
        desk.run(namespace_create(desk.ctx(), MAIN, levels=levels, properties={}, parents=False))

    with pytest.raises(NotFound, match=r"x\.y"):
        create("x", "y", "z")
    assert count(desk) == 0

    for levels in (("x",), ("x", "y"), ("x", "y", "z")):
        create(*levels)
    assert count(desk) == 3


def test_create_refusal_does_not_reveal_existing_parents(desk: ServiceDesk) -> None:
    """A caller without the privilege to create gets the same refusal for existing parents, missing parents and missing
    catalogs.
    """
    desk.namespace("there")

    def refusal_message(scope: RequestScope, *levels: str) -> str:
        with pytest.raises(PermissionDenied) as refused:
            desk.namespace(*levels, user="ana", scope=scope)
        return refused.value.message.replace("gone", "there").replace("nowhere", "main")

    nowhere = RequestScope(LAKE, "nowhere")
    assert (
        refusal_message(MAIN, "there", "x")
        == refusal_message(MAIN, "gone", "x")
        == refusal_message(nowhere, "gone", "x")
    )
    assert refusal_message(MAIN, "there", "y", "x") == refusal_message(MAIN, "gone", "y", "x")
    assert "CREATE_SCHEMA on main.there" in refusal_message(MAIN, "there", "x")
