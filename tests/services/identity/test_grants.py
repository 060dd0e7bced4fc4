# SPDX-License-Identifier: Apache-2.0
"""Grants: a caller who may not grant learns nothing about the objects that the request names, and long requests need
few reads.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.model.errors import BadRequest, IllegalObject, LimnosError, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.identity import grants, roles
from limnos.services.identity.grants import RULES_MAX, PrivilegeRequest, roles_give
from limnos.services.identity.roles import role_create, rules_override
from limnos.view.freshness_gate import InlineFreshnessGate
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk


def privilege_request(kind: Kind, full_name: str, *privileges: Privilege) -> PrivilegeRequest:
    """Return a request for a privilege on an object."""
    return PrivilegeRequest(kind, full_name, tuple((privilege, GrantCondition.ALLOW) for privilege in privileges))


def create(desk: ServiceDesk, user: str, *privilege_requests: PrivilegeRequest) -> None:
    """Create a role."""
    desk.run(
        role_create(
            desk.ctx(user), metalake=LAKE, name=f"by {user}", properties={}, privilege_requests=privilege_requests
        )
    )


def override(desk: ServiceDesk, user: str, *privilege_requests: PrivilegeRequest) -> None:
    """Replace the rules of the role `r`. The role is created only if the test needs a target."""
    desk.run(rules_override(desk.ctx(user), metalake=LAKE, role="r", privilege_requests=privilege_requests))


WAYS = pytest.mark.parametrize("way", [create, override], ids=["create", "override"])
Way = Callable[..., None]


@WAYS
@pytest.mark.parametrize("user", ["ana", "stranger", "anonymous"])
@pytest.mark.parametrize(
    "named",
    [
        (Kind.TABLE, "main.hid.t", "main.hid.none", Privilege.SELECT_TABLE),
        (Kind.NAMESPACE, "main.hid", "main.none", Privilege.USE_SCHEMA),
        (Kind.CATALOG, "main", "none", Privilege.USE_CATALOG),
        (Kind.METALAKE, LAKE, "none", Privilege.CREATE_ROLE),
    ],
)
def test_unprivileged_caller_gets_same_refusal_for_any_body(
    desk: ServiceDesk, way: Way, user: str, named: tuple[Kind, str, str, Privilege]
) -> None:
    """A caller who may neither create roles nor replace rules gets the same refusal for every request body."""
    desk.namespace("hid")
    desk.table("hid", "t")
    kind, existing, missing, privilege = named

    def refusal_parts(name: str) -> tuple[type[LimnosError], str]:
        with pytest.raises(LimnosError) as refused:
            way(desk, user, privilege_request(kind, name, privilege))
        return type(refused.value), refused.value.message

    assert refusal_parts(existing) == refusal_parts(missing)
    assert refusal_parts(existing)[0] is PermissionDenied


@WAYS
def test_refusal_comes_before_any_object_is_looked_up(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    """A refused request that names a thousand objects looks none of them up."""
    searched: list[str] = []
    monkeypatch.setattr(grants, "target_find", lambda *args: searched.append(args[2]))

    with pytest.raises(PermissionDenied):
        way(desk, "ana", *[privilege_request(Kind.TABLE, f"main.a.t{i}", Privilege.SELECT_TABLE) for i in range(1000)])

    assert searched == []


def test_missing_object_is_400_on_create_and_404_on_replace(desk: ServiceDesk) -> None:
    """If a named object does not exist, creating a role with it is 400 and replacing a role's rules with it is 404."""
    missing = privilege_request(Kind.NAMESPACE, "main.none", Privilege.USE_SCHEMA)

    with pytest.raises(IllegalObject, match="does not exist"):
        create(desk, "admin", missing)
    with pytest.raises(NotFound, match="does not exist"):
        override(desk, "admin", missing)


def test_objects_of_new_role_are_loaded_in_few_reads(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with an empty view loads the 150 objects of a new role in a few reads, not with one read per object."""
    for i in range(150):
        desk.namespace(f"n{i}")
    fresh, fetch, rounds = ServiceDesk(desk.lab), InlineFreshnessGate.fetch, []

    async def counted(self: InlineFreshnessGate, *args: object) -> None:
        rounds.append(args)
        await fetch(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(InlineFreshnessGate, "fetch", counted)

    create(fresh, "admin", *[privilege_request(Kind.NAMESPACE, f"main.n{i}", Privilege.USE_SCHEMA) for i in range(150)])

    assert len(rounds) < 15
    assert desk.rows("SELECT count(*) FROM access_grant") == [(150,)]


@WAYS
def test_too_many_rules_are_refused(desk: ServiceDesk, way: Way) -> None:
    """The number of rules in a request is limited for all callers, and the limit is checked first."""
    both = (Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE)
    privilege_requests = [privilege_request(Kind.TABLE, f"main.a.t{i}", *both) for i in range(RULES_MAX // 2 + 1)]

    for user in ("admin", "ana"):
        with pytest.raises(BadRequest, match=f"{RULES_MAX + 2} privileges .* more than the {RULES_MAX} .* in further"):
            way(desk, user, *privilege_requests)


def test_many_roles_are_granted_in_one_request(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with an empty view grants two hundred roles in one request; a request with ten thousand roles is
    refused.
    """
    names = tuple(f"r{i}" for i in range(200))
    for name in names:
        desk.run(role_create(desk.ctx(), metalake=LAKE, name=name, properties={}, privilege_requests=()))
    fresh = ServiceDesk(desk.lab)

    holder = fresh.run(roles_give(fresh.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=names))

    assert set(holder.roles) == set(names)
    with pytest.raises(BadRequest, match="10000 roles"):
        fresh.run(roles_give(fresh.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=names * 50))


@pytest.mark.parametrize(
    "act,privilege", [(override, Privilege.MANAGE_GRANTS), (create, Privilege.CREATE_ROLE)], ids=["override", "create"]
)
def test_privilege_lost_before_write_is_refused(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch, act: Way, privilege: Privilege
) -> None:
    """A caller who loses the privilege between the lookup and the write is refused."""
    desk.run(role_create(desk.ctx(), metalake=LAKE, name="r", properties={}, privilege_requests=()))
    desk.allow("ana", Kind.METALAKE, LAKE, privilege)
    find = grants.privilege_requests_resolve

    async def found_and_lost(*args: object) -> object:
        resolved_requests = await find(*args)  # type: ignore[arg-type]
        await roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("of ana",), gives=False)
        return resolved_requests

    monkeypatch.setattr(roles, "privilege_requests_resolve", found_and_lost)

    with pytest.raises(PermissionDenied, match=privilege.name):
        act(desk, "ana")
