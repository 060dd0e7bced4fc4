# SPDX-License-Identifier: Apache-2.0
"""Group members: a request changes all named members or none, and only members and group managers may list them."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.identity.groups import (
    MEMBERS_MAX,
    groups_of_user,
    may_change_members,
    member_remove,
    members_add,
    members_list,
)
from limnos.services.identity.users import principal_add, principal_remove
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk


@pytest.fixture
def crew(desk: ServiceDesk) -> ServiceDesk:
    """A desk with the group `crew`."""
    desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name="crew"))
    return desk


def join(desk: ServiceDesk, *users: str, by: str = "admin") -> tuple[str, ...]:
    """Add users to `crew`."""
    return desk.run(members_add(desk.ctx(by), metalake=LAKE, group="crew", users=users))


def members(desk: ServiceDesk, user: str = "admin") -> tuple[str, ...]:
    """Return the members of `crew` as one user sees them."""
    return desk.run(desk.ctx(user).read(RequestScope(LAKE), lambda request_view: members_list(request_view, "crew")))


def test_adding_members_is_all_or_none(crew: ServiceDesk) -> None:
    """One unknown user refuses the whole request. Adding is idempotent, and members are listed in order."""
    with pytest.raises(NotFound, match="nobody"):
        join(crew, "ana", "nobody")
    assert members(crew) == ()

    assert join(crew, "bob") == ("bob",)
    assert join(crew, "bob", "ana") == ("ana", "bob")


def test_request_with_too_many_users_is_refused(crew: ServiceDesk) -> None:
    """A request with more users than the limit is refused before any user is looked up."""
    with pytest.raises(BadRequest, match=str(MEMBERS_MAX)):
        join(crew, *(f"u{number}" for number in range(MEMBERS_MAX + 1)))


def test_only_members_see_the_members_of_a_group(crew: ServiceDesk) -> None:
    """Members see the group's members and other users do not. Members may not add members."""
    join(crew, "ana")

    assert members(crew, "ana") == ("ana",)
    with pytest.raises(PermissionDenied):
        members(crew, "bob")
    with pytest.raises(PermissionDenied):
        join(crew, "bob", by="ana")


def test_leaving_a_group_ends_its_rights(crew: ServiceDesk) -> None:
    """A user who leaves a group loses the group's rights. A removed user is no longer a member, and a new user of the
    same name does not become one.
    """
    crew.allow("ana", Kind.METALAKE, LAKE, Privilege.MANAGE_GROUPS, Privilege.MANAGE_GRANTS)
    join(crew, "ana", "bob")

    def remove_member(user: str) -> bool:
        return crew.run(member_remove(crew.ctx("ana"), metalake=LAKE, group="crew", user=user))

    assert [remove_member("bob"), remove_member("bob")] == [True, False]
    crew.run(principal_remove(crew.ctx(), metalake=LAKE, kind=Kind.USER, name="ana"))
    crew.users("ana")
    assert members(crew) == ()


def groups_of(desk: ServiceDesk, user: str, *, by: str) -> tuple[str, ...]:
    """Return the groups of a user as another user sees them."""
    return desk.run(desk.ctx(by).read(RequestScope(LAKE), lambda request_view: groups_of_user(request_view, user)))


def test_list_of_a_users_groups_omits_groups_hidden_from_caller(crew: ServiceDesk) -> None:
    """A user sees their own groups. A user with MANAGE_USERS who may not load groups gets an empty list; other users
    are refused.
    """
    crew.run(principal_add(crew.ctx(), metalake=LAKE, kind=Kind.GROUP, name="admins"))
    join(crew, "ana")
    crew.run(members_add(crew.ctx(), metalake=LAKE, group="admins", users=("ana",)))
    crew.allow("bob", Kind.METALAKE, LAKE, Privilege.MANAGE_USERS)

    assert groups_of(crew, "ana", by="ana") == ("admins", "crew")
    assert groups_of(crew, "ana", by="bob") == ()
    assert groups_of(crew, "bob", by="admin") == ()
    with pytest.raises(PermissionDenied):
        groups_of(crew, "bob", by="ana")


def test_changing_members_needs_manage_groups_and_manage_grants(crew: ServiceDesk) -> None:
    """Changing members needs MANAGE_GROUPS and MANAGE_GRANTS. A member, or a user with MANAGE_GROUPS only, may load the
    group but not change it; other users are refused.
    """
    crew.users("cyd", "dan")
    join(crew, "ana")
    crew.allow("bob", Kind.METALAKE, LAKE, Privilege.MANAGE_GROUPS)
    crew.allow("cyd", Kind.METALAKE, LAKE, Privilege.MANAGE_GROUPS, Privilege.MANAGE_GRANTS)

    def may(user: str) -> bool:
        scope = RequestScope(LAKE)
        return crew.run(crew.ctx(user).read(scope, lambda request_view: may_change_members(request_view, "crew")))

    assert [may(user) for user in ("ana", "bob", "cyd", "admin")] == [False, False, True, True]
    with pytest.raises(PermissionDenied):
        may("dan")
