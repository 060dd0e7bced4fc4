# SPDX-License-Identifier: Apache-2.0
"""Roles: created with their rules, visible to their holders and owners, dropped with their grants and assignments."""

from __future__ import annotations

import pytest

from limnos.access import subjects
from limnos.access.actions import Action
from limnos.model.entities import RoleWithRules
from limnos.model.errors import AlreadyExists, IllegalPrivilege, LimnosError, PermissionDenied, StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.catalog.namespaces import namespace_drop, namespaces_list
from limnos.services.identity import roles as module
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.roles import (
    RoleDrop,
    RoleObject,
    role_create,
    role_delete,
    role_drop,
    role_load,
    role_objects,
    roles_list,
    rules_override,
)
from limnos.services.lookup.securables import role_look_up
from limnos.services.request.name_pages import ALL_NAMES
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity import roles as store_roles
from limnos.store.sql import Load
from limnos.view import fact_reads
from limnos.view.freshness_gate import COLD_READS
from tests.inprocess import LAKE, MAIN, add_catalog
from tests.services.conftest import ServiceDesk


def make(desk: ServiceDesk, name: str, *privilege_requests: PrivilegeRequest, user: str = "admin") -> None:
    """Create a role."""
    desk.run(
        role_create(desk.ctx(user), metalake=LAKE, name=name, properties={}, privilege_requests=privilege_requests)
    )


def privilege_request(kind: Kind, full_name: str, privilege: Privilege) -> PrivilegeRequest:
    """Return a grant of one privilege."""
    return PrivilegeRequest(kind, full_name, ((privilege, GrantCondition.ALLOW),))


def names(desk: ServiceDesk, user: str) -> list[str]:
    """Return the roles that a user sees in the list."""
    return [role.name for role in desk.run(desk.ctx(user).read(RequestScope(LAKE), roles_list))]


def objects(desk: ServiceDesk, name: str) -> list[tuple[Kind, tuple[str, ...]]]:
    """Return the objects of a role's rules."""
    role = desk.run(desk.ctx().read(RequestScope(LAKE), lambda request_view: role_load(request_view, name)))
    return [(each.kind, each.path) for each in desk.run(all_objects(desk, role))]


async def all_objects(desk: ServiceDesk, role: RoleWithRules) -> list[RoleObject]:
    """Return the objects of all parts of a role's rules."""
    return [each async for some in role_objects(desk.ctx(), role) for each in some]


def test_role_is_returned_with_its_live_objects_sorted_by_path(desk: ServiceDesk) -> None:
    """The objects of a role's rules are sorted by path, the metalake first, and dropped objects are omitted."""
    desk.run(add_catalog(desk.ctx(), "attic"))
    desk.namespace("b")
    desk.namespace("a")
    use = Privilege.USE_SCHEMA
    make(
        desk,
        "r",
        privilege_request(Kind.NAMESPACE, "main.b", use),
        privilege_request(Kind.NAMESPACE, "main.a", use),
        privilege_request(Kind.CATALOG, "main", Privilege.USE_CATALOG),
        privilege_request(Kind.CATALOG, "attic", Privilege.USE_CATALOG),
        privilege_request(Kind.METALAKE, LAKE, Privilege.CREATE_CATALOG),
    )

    before = objects(desk, "r")
    desk.run(namespace_drop(desk.ctx(), MAIN, levels=("a",)))

    whole = [(Kind.METALAKE, (LAKE,)), (Kind.CATALOG, ("attic",)), (Kind.CATALOG, ("main",))]
    spaces = [(Kind.NAMESPACE, ("main", name)) for name in ("a", "b")]
    assert before == whole + spaces
    assert objects(desk, "r") == whole + spaces[1:]


def test_role_is_visible_only_to_holders_and_owner(desk: ServiceDesk) -> None:
    """Only holders and the owner of a role see it."""
    desk.allow("bob", Kind.METALAKE, LAKE, Privilege.CREATE_ROLE)
    make(desk, "held")
    make(desk, "his", user="bob")
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("held",)))

    assert names(desk, "ana") == ["held"]
    assert names(desk, "bob") == ["his", "of bob"]
    with pytest.raises(PermissionDenied):
        desk.run(desk.ctx("ana").read(RequestScope(LAKE), lambda request_view: role_load(request_view, "his")))


def test_dropped_role_grants_no_rights(desk: ServiceDesk) -> None:
    """The rights of a dropped role end, and a new role of the same name does not restore them."""
    make(desk, "r", privilege_request(Kind.CATALOG, "main", Privilege.USE_CATALOG))
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",)))
    desk.run(desk.ctx("ana").read(MAIN, lambda request_view: namespaces_list(request_view, ())))

    desk.run(role_drop(desk.ctx(), metalake=LAKE, name="r"))
    make(desk, "r", privilege_request(Kind.CATALOG, "main", Privilege.USE_CATALOG))

    assert names(desk, "ana") == []
    with pytest.raises(LimnosError):
        desk.run(desk.ctx("ana").read(MAIN, lambda request_view: namespaces_list(request_view, ())))


def test_role_holder_cannot_drop_role_and_taken_name_is_refused(desk: ServiceDesk) -> None:
    """The holder of a role may not drop it, and creating a role with a taken name is refused."""
    make(desk, "r")
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",)))

    with pytest.raises(PermissionDenied):
        desk.run(role_drop(desk.ctx("ana"), metalake=LAKE, name="r"))
    with pytest.raises(AlreadyExists):
        make(desk, "r")


def test_drop_does_not_hit_a_new_role_of_the_same_name(desk: ServiceDesk) -> None:
    """A drop that was authorized for one role does not drop another role that has taken its name since."""
    make(desk, "r")

    def decide(request_view: RequestView) -> Permit[RoleDrop]:
        role, _, decision = role_look_up(request_view, "r", Action.ROLE_DROP)
        return request_view.permit(RoleDrop(role), decision)

    permit = desk.run(desk.ctx().read(RequestScope(LAKE), decide))
    desk.run(role_drop(desk.ctx(), metalake=LAKE, name="r"))
    make(desk, "r")

    with pytest.raises(StalePermit):
        desk.run(desk.ctx().submit(permit, role_delete))

    assert names(desk, "admin") == ["r"]


def test_large_role_is_read_and_changed_in_parts(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grant reads only the rules on its own object. Lists of rules are read in parts, and are complete and sorted."""
    monkeypatch.setattr(store_roles, "PART_MAX", 5)
    monkeypatch.setattr(module, "PART_MAX", 5)
    monkeypatch.setattr(subjects, "PART_MAX", 5)
    spaces = [f"n{at:02}" for at in range(12)]
    for name in reversed(spaces):
        desk.namespace(name)
    use = Privilege.USE_SCHEMA
    make(desk, "r", *(privilege_request(Kind.NAMESPACE, f"main.{name}", use) for name in spaces[:-1]))
    granted = PrivilegeRequest(
        Kind.NAMESPACE, "main.n11", ((use, GrantCondition.ALLOW), (Privilege.CREATE_TABLE, GrantCondition.DENY))
    )

    changed_role = desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role="r", privilege_request=granted))
    lists = desk.run(lists_of(desk, changed_role))

    assert changed_role.in_parts
    assert not changed_role.grants
    assert [each.path for some in lists for each in some] == [("main", name) for name in spaces]
    assert max(map(len, lists)) == 5
    assert [len(each.grants) for some in lists for each in some] == [1] * 11 + [2]
    assert objects(desk, "r") == [(Kind.NAMESPACE, ("main", name)) for name in spaces]


def test_opposite_rule_conflict_is_detected_in_the_transaction(desk: ServiceDesk) -> None:
    """A grant conflicts only with the opposite rule on the same object, found inside the transaction."""
    desk.namespace("a")
    desk.namespace("b")
    use = Privilege.USE_SCHEMA
    make(desk, "r", privilege_request(Kind.NAMESPACE, "main.a", use))
    denial = ((use, GrantCondition.DENY),)

    with pytest.raises(IllegalPrivilege, match="has USE_SCHEMA allowed on this object: revoke that first"):
        desk.run(
            privileges_grant(
                desk.ctx(),
                metalake=LAKE,
                role="r",
                privilege_request=PrivilegeRequest(Kind.NAMESPACE, "main.a", denial),
            )
        )
    desk.run(
        privileges_grant(
            desk.ctx(), metalake=LAKE, role="r", privilege_request=PrivilegeRequest(Kind.NAMESPACE, "main.b", denial)
        )
    )

    assert len(objects(desk, "r")) == 2


@pytest.fixture
def parts_read(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give ana a role with rules on 45 namespaces, with ten rules per part. Returns the list of the sizes of the parts
    that are read.
    """
    for room in (store_roles, module, subjects):
        monkeypatch.setattr(room, "PART_MAX", 10)
    for at in range(45):
        desk.namespace(f"n{at:02}")
    use = Privilege.USE_SCHEMA
    make(desk, "r", *(privilege_request(Kind.NAMESPACE, f"main.n{at:02}", use) for at in range(45)))
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",)))
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    part_sizes: list[int] = []

    def read(*key: object) -> Load[object]:
        part = yield from store_roles.rules_part_read(*key)  # type: ignore[arg-type]
        part_sizes.append(len(part))
        return part

    monkeypatch.setitem(fact_reads._READS, "rules part", read)
    return part_sizes


def grant(desk: ServiceDesk, at: int, *privileges: Privilege, condition: GrantCondition = GrantCondition.ALLOW) -> None:
    """Add rules on one namespace to the role."""
    rules = tuple((privilege, condition) for privilege in privileges)
    requested = PrivilegeRequest(Kind.NAMESPACE, f"main.n{at:02}", rules)
    desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role="r", privilege_request=requested))


def visible_namespaces(desk: ServiceDesk) -> list[str]:
    """Return the namespaces that ana sees."""
    page = desk.run(
        desk.ctx("ana").read(MAIN, lambda request_view: namespaces_list(request_view, (), page_request=ALL_NAMES))
    )
    return page.texts()


def may_create(desk: ServiceDesk) -> list[int]:
    """Return the namespaces in which ana may create tables."""
    subject = desk.run(desk.ctx("ana").read(MAIN, lambda request_view: request_view.subject))
    allowed = subject.allow_ids.get(Privilege.CREATE_TABLE, frozenset())
    rows = desk.rows("SELECT id, name FROM node")
    return sorted(int(name[1:]) for id_, name in rows if id_ in allowed)


def test_grant_to_a_large_role_rereads_one_part(desk: ServiceDesk, parts_read: list[int]) -> None:
    """The rules of a large role are read in parts. After a grant or revoke, only the part of its object is read
    again.
    """
    before = COLD_READS[()]

    assert len(visible_namespaces(desk)) == 45
    assert parts_read == [10, 10, 10, 10, 5]
    assert COLD_READS[()] - before >= len(parts_read)
    parts_read.clear()
    grant(desk, 17, Privilege.CREATE_TABLE)
    assert may_create(desk) == [17]
    assert parts_read == [11]
    parts_read.clear()
    desk.namespace("other")
    desk.allow("bob", Kind.NAMESPACE, "main.other", Privilege.USE_SCHEMA)
    assert len(visible_namespaces(desk)) == 45
    assert parts_read == []


def test_replacing_all_rules_invalidates_all_parts(desk: ServiceDesk, parts_read: list[int]) -> None:
    """After all rules of a role are replaced, all of its parts are read again."""
    visible_namespaces(desk)
    parts_read.clear()
    privilege_requests = tuple(
        privilege_request(Kind.NAMESPACE, f"main.n{at:02}", Privilege.USE_SCHEMA) for at in range(0, 45, 2)
    )
    desk.run(rules_override(desk.ctx(), metalake=LAKE, role="r", privilege_requests=privilege_requests))

    assert visible_namespaces(desk) == [f"n{at:02}" for at in range(0, 45, 2)]
    assert parts_read == [5, 5, 5, 5, 3]


def test_part_doubled_in_size_is_split(desk: ServiceDesk, parts_read: list[int]) -> None:
    """A part that has doubled in size is split, and the following parts are read at most once more."""
    visible_namespaces(desk)
    parts_read.clear()
    for at in range(12):
        grant(desk, at, Privilege.CREATE_TABLE)

    assert may_create(desk) == list(range(12))
    assert parts_read == [20, 12]
    parts_read.clear()
    grant(desk, 0, Privilege.CREATE_VIEW)
    assert may_create(desk) == list(range(12))
    assert parts_read[0] == 21
    assert max(parts_read[1:]) <= 12
    assert 21 <= sum(parts_read[1:]) <= 45 + 13
    parts_read.clear()
    grant(desk, 1, Privilege.CREATE_VIEW)
    assert may_create(desk) == list(range(12))
    assert len(parts_read) == 1


def test_role_below_the_limit_is_read_as_one_fact_again(desk: ServiceDesk, parts_read: list[int]) -> None:
    """A role whose rules fall below the limit is read as one fact again."""
    visible_namespaces(desk)
    parts_read.clear()
    desk.run(
        rules_override(
            desk.ctx(),
            metalake=LAKE,
            role="r",
            privilege_requests=(privilege_request(Kind.NAMESPACE, "main.n03", Privilege.USE_SCHEMA),),
        )
    )

    assert visible_namespaces(desk) == ["n03"]
    assert parts_read == []


async def lists_of(desk: ServiceDesk, role: RoleWithRules) -> list[list[RoleObject]]:
    """Return the parts of a role's rules as they are read."""
    return [some async for some in role_objects(desk.ctx(), role)]
