"""Many users, groups and roles: whatever their number, a fresh node answers lists of them from a few statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from limnos.model.kinds import Kind
from limnos.model.privileges import Condition, Privilege
from limnos.services.grants import Wish, roles_give
from limnos.services.owners import owner_set
from limnos.services.roles import role_create, role_drop, roles_list, roles_on
from limnos.services.scene import Scene, Scope
from limnos.services.users import holders_list, principal_add, principal_remove
from tests.inprocess import LAKE, Node
from tests.services.conftest import Desk

MANY = 300
"""More than a read may have rounds."""
STATEMENTS_MAX = 20


def ask(desk: Desk, reader: Callable[[Scene], Any], user: str = "admin") -> tuple[Any, int]:
    """Ask a node that knows nothing; returns the answer and how many statements it took."""
    fresh = Node(desk.lab.open())
    found = desk.run(fresh.ctx(user).read(Scope(LAKE), reader))
    return found, fresh.store.statements


def give(desk: Desk, name: str, *roles: str, kind: Kind = Kind.USER, gives: bool = True) -> None:
    """Give roles to somebody, or take them."""
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=kind, name=name, roles=roles, gives=gives))


def make_role(desk: Desk, name: str, *privileges: Privilege) -> None:
    """Make a role, with these rights to the catalog."""
    wish = Wish(Kind.CATALOG, "main", tuple((each, Condition.ALLOW) for each in privileges))
    wishes = (wish,) if privileges else ()
    desk.run(role_create(desk.ctx(), metalake=LAKE, name=name, properties={}, wishes=wishes))


@pytest.mark.parametrize("kind", [Kind.USER, Kind.GROUP])
def test_details_of_many(desk: Desk, kind: Kind) -> None:
    """Everybody comes with the roles held directly, sorted, from as many statements for many as for few."""
    for role in ("r1", "r0"):
        make_role(desk, role)
    for number in range(MANY):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=kind, name=f"p{number:03}"))
    give(desk, "p007", "r1", "r0", kind=kind)
    give(desk, "p008", "r1", kind=kind)

    holders, statements = ask(desk, lambda scene: holders_list(scene, kind))

    roles = {each.principal.name: each.roles for each in holders if each.principal.name[0] == "p"}
    assert len(roles) == MANY
    assert {name: held for name, held in roles.items() if held} == {"p007": ("r0", "r1"), "p008": ("r1",)}
    assert statements <= STATEMENTS_MAX


def test_details_follow_changes(desk: Desk) -> None:
    """What is known of holders follows a role that is given, taken or dropped, and a user who is removed."""
    for role in ("r", "s"):
        make_role(desk, role)

    def known() -> dict[str, tuple[str, ...]]:
        found = desk.run(desk.ctx().read(Scope(LAKE), lambda scene: holders_list(scene, Kind.USER)))
        return {each.principal.name: each.roles for each in found if each.roles}

    assert known() == {}
    give(desk, "ana", "r", "s")
    assert known() == {"ana": ("r", "s")}
    give(desk, "ana", "s", gives=False)
    assert known() == {"ana": ("r",)}
    give(desk, "bob", "s")
    desk.run(role_drop(desk.ctx(), metalake=LAKE, name="r"))
    assert known() == {"bob": ("s",)}
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="bob"))
    assert known() == {}


def test_many_roles_and_who_sees_them(desk: Desk) -> None:
    """The list of roles takes a few statements; who owns one or holds one sees just those, also after a transfer."""
    for number in range(MANY):
        make_role(desk, f"r{number:03}", Privilege.USE_CATALOG)
    give(desk, "ana", "r001")

    def seen() -> tuple[list[str], int]:
        found, statements = ask(desk, roles_list, "ana")
        return [role.name for role in found], statements

    names, statements = seen()
    assert names == ["r001"]
    assert statements <= STATEMENTS_MAX
    everything, statements = ask(desk, roles_list)
    assert len(everything) == MANY
    assert statements <= STATEMENTS_MAX

    warm = desk.ctx("ana")
    desk.run(warm.read(Scope(LAKE), roles_list))
    desk.run(owner_set(desk.ctx(), metalake=LAKE, kind=Kind.ROLE, full_name="r002", owner_kind=Kind.USER, owner="ana"))
    assert [role.name for role in desk.run(warm.read(Scope(LAKE), roles_list))] == ["r001", "r002"]


@pytest.mark.parametrize("count", [3, 50, 51, MANY])
def test_roles_on_an_object(desk: Desk, count: int) -> None:
    """The roles on an object are told for few and many alike: those that the caller may load."""
    for number in range(count):
        make_role(desk, f"r{number:03}", Privilege.USE_CATALOG)
    make_role(desk, "elsewhere")
    give(desk, "ana", "r001", "elsewhere")
    ((catalog,),) = desk.rows("SELECT id FROM node WHERE kind = 2")

    every, statements = ask(desk, lambda scene: roles_on(scene, catalog))
    mine, _ = ask(desk, lambda scene: roles_on(scene, catalog), "ana")

    assert every == tuple(f"r{number:03}" for number in range(count))
    assert mine == ("r001",)
    assert statements <= STATEMENTS_MAX + 2 * min(count, 50)
