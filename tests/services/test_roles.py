"""Roles: made with their rules, told to those they concern, dropped with all that hung on them."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.model.entities import Ruled
from limnos.model.errors import AlreadyExists, Forbidden, IllegalPrivilege, LimnosError, StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import Condition, Privilege
from limnos.services import roles as module
from limnos.services.grants import Wish, privileges_grant, roles_give
from limnos.services.namespaces import namespace_drop, namespaces_list
from limnos.services.objects import role_look_up
from limnos.services.roles import (
    RoleDrop,
    RoleObject,
    role_create,
    role_delete,
    role_drop,
    role_load,
    role_objects,
    roles_list,
)
from limnos.services.scene import Scene, Scope
from limnos.store import roles as store_roles
from tests.inprocess import LAKE, MAIN, add_catalog
from tests.services.conftest import Desk


def make(desk: Desk, name: str, *wishes: Wish, user: str = "admin") -> None:
    """Make a role."""
    desk.run(role_create(desk.ctx(user), metalake=LAKE, name=name, properties={}, wishes=wishes))


def wish(kind: Kind, full_name: str, privilege: Privilege) -> Wish:
    """Allow one thing."""
    return Wish(kind, full_name, ((privilege, Condition.ALLOW),))


def names(desk: Desk, user: str) -> list[str]:
    """Which roles a user sees."""
    return [role.name for role in desk.run(desk.ctx(user).read(Scope(LAKE), roles_list))]


def objects(desk: Desk, name: str) -> list[tuple[Kind, tuple[str, ...]]]:
    """What a role has rules on."""
    found = desk.run(desk.ctx().read(Scope(LAKE), lambda scene: role_load(scene, name)))
    return [(each.kind, each.path) for each in desk.run(all_objects(desk, found))]


async def all_objects(desk: Desk, found: Ruled) -> list[RoleObject]:
    """The objects of all lists."""
    return [each async for some in role_objects(desk.ctx(), found) for each in some]


def test_rules_come_with_the_role(desk: Desk) -> None:
    """A role's objects are told in the order of their paths, the metalake first; one that was dropped is left out."""
    desk.run(add_catalog(desk.ctx(), "attic"))
    desk.namespace("b")
    desk.namespace("a")
    use = Privilege.USE_SCHEMA
    make(
        desk, "r", wish(Kind.NAMESPACE, "main.b", use), wish(Kind.NAMESPACE, "main.a", use),
        wish(Kind.CATALOG, "main", Privilege.USE_CATALOG), wish(Kind.CATALOG, "attic", Privilege.USE_CATALOG),
        wish(Kind.METALAKE, LAKE, Privilege.CREATE_CATALOG),
    )  # fmt: skip

    before = objects(desk, "r")
    desk.run(namespace_drop(desk.ctx(), MAIN, levels=("a",)))

    whole = [(Kind.METALAKE, (LAKE,)), (Kind.CATALOG, ("attic",)), (Kind.CATALOG, ("main",))]
    spaces = [(Kind.NAMESPACE, ("main", name)) for name in ("a", "b")]
    assert before == whole + spaces
    assert objects(desk, "r") == whole + spaces[1:]


def test_who_sees_a_role(desk: Desk) -> None:
    """Its holders and its owner see a role, and nobody else does."""
    desk.allow("bob", Kind.METALAKE, LAKE, Privilege.CREATE_ROLE)
    make(desk, "held")
    make(desk, "his", user="bob")
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("held",)))

    assert names(desk, "ana") == ["held"]
    assert names(desk, "bob") == ["his", "of bob"]
    with pytest.raises(Forbidden):
        desk.run(desk.ctx("ana").read(Scope(LAKE), lambda scene: role_load(scene, "his")))


def test_dropped_role_gives_nothing(desk: Desk) -> None:
    """What came by a role ends with it, also for a role of the same name that is made after."""
    make(desk, "r", wish(Kind.CATALOG, "main", Privilege.USE_CATALOG))
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",)))
    desk.run(desk.ctx("ana").read(MAIN, lambda scene: namespaces_list(scene, ())))

    desk.run(role_drop(desk.ctx(), metalake=LAKE, name="r"))
    make(desk, "r", wish(Kind.CATALOG, "main", Privilege.USE_CATALOG))

    assert names(desk, "ana") == []
    with pytest.raises(LimnosError):
        desk.run(desk.ctx("ana").read(MAIN, lambda scene: namespaces_list(scene, ())))


def test_holder_neither_makes_nor_drops(desk: Desk) -> None:
    """Holding a role is no right to drop it, and a name is taken once."""
    make(desk, "r")
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",)))

    with pytest.raises(Forbidden):
        desk.run(role_drop(desk.ctx("ana"), metalake=LAKE, name="r"))
    with pytest.raises(AlreadyExists):
        make(desk, "r")


def test_successor_is_not_dropped_in_place_of_the_one_decided_on(desk: Desk) -> None:
    """A drop that was decided for one role does not hit another one that has the name by then."""
    make(desk, "r")

    def decide(scene: Scene) -> Permit[RoleDrop]:
        role, _, decision = role_look_up(scene, "r", Action.ROLE_DROP)
        return scene.permit(RoleDrop(role), decision)

    permit = desk.run(desk.ctx().read(Scope(LAKE), decide))
    desk.run(role_drop(desk.ctx(), metalake=LAKE, name="r"))
    make(desk, "r")

    with pytest.raises(StalePermit):
        desk.run(desk.ctx().submit(permit, role_delete))

    assert names(desk, "admin") == ["r"]


def test_a_role_of_many_is_read_and_changed_in_parts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grant reads the rules on its own object alone; what is shown comes in lists, each read by itself, and is whole and in order."""
    monkeypatch.setattr(store_roles, "PART_MAX", 5)
    monkeypatch.setattr(module, "PART_MAX", 5)
    spaces = [f"n{at:02}" for at in range(12)]
    for name in reversed(spaces):
        desk.namespace(name)
    use = Privilege.USE_SCHEMA
    make(desk, "r", *(wish(Kind.NAMESPACE, f"main.{name}", use) for name in spaces[:-1]))
    granted = Wish(Kind.NAMESPACE, "main.n11", ((use, Condition.ALLOW), (Privilege.CREATE_TABLE, Condition.DENY)))

    found = desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role="r", wish=granted))
    lists = desk.run(lists_of(desk, found))

    assert found.in_parts
    assert not found.grants
    assert [each.path for some in lists for each in some] == [("main", name) for name in spaces]
    assert max(map(len, lists)) == 5
    assert [len(each.grants) for some in lists for each in some] == [1] * 11 + [2]
    assert objects(desk, "r") == [(Kind.NAMESPACE, ("main", name)) for name in spaces]


def test_the_opposite_of_what_stands_is_found_in_the_transaction(desk: Desk) -> None:
    """By the rules on that object, however many others the role has; another object's are no obstacle."""
    desk.namespace("a")
    desk.namespace("b")
    use = Privilege.USE_SCHEMA
    make(desk, "r", wish(Kind.NAMESPACE, "main.a", use))
    denial = ((use, Condition.DENY),)

    with pytest.raises(IllegalPrivilege, match="has USE_SCHEMA allowed on this object: revoke that first"):
        desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role="r", wish=Wish(Kind.NAMESPACE, "main.a", denial)))
    desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role="r", wish=Wish(Kind.NAMESPACE, "main.b", denial)))

    assert len(objects(desk, "r")) == 2


async def lists_of(desk: Desk, found: Ruled) -> list[list[RoleObject]]:
    """The lists as they come."""
    return [some async for some in role_objects(desk.ctx(), found)]
