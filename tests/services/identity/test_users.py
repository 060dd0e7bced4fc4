# SPDX-License-Identifier: Apache-2.0
"""Users and groups of a metalake: added, listed, disabled, removed."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.model.errors import AlreadyExists, BadRequest, LimnosError, NotFound, PermissionDenied, StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import Privilege
from limnos.services.catalog.namespaces import namespaces_list
from limnos.services.identity.users import (
    PrincipalRemove,
    principal_add,
    principal_delete,
    principal_load,
    principal_remove,
    principal_require,
    principals_list,
    user_enable,
)
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from tests.inprocess import LAKE, MAIN
from tests.services.conftest import ServiceDesk

USER, GROUP = Kind.USER, Kind.GROUP


def names(desk: ServiceDesk, kind: Kind, user: str = "admin") -> list[str]:
    """Return the names of the users that a user sees in the list."""
    return [each.name for each in desk.run(desk.ctx(user).read(RequestScope(LAKE), lambda s: principals_list(s, kind)))]


def load(desk: ServiceDesk, name: str, user: str) -> str:
    """Load a user."""
    return desk.run(desk.ctx(user).read(RequestScope(LAKE), lambda s: principal_load(s, USER, name))).principal.name


def test_user_names_and_external_ids_are_unique(desk: ServiceDesk) -> None:
    """Users and groups may have equal names; user names and external ids are unique."""
    desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=GROUP, name="ana", external_id="x1"))

    with pytest.raises(AlreadyExists, match="User ana"):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=USER, name="ana"))
    with pytest.raises(AlreadyExists):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=GROUP, name="other", external_id="x1"))
    assert names(desk, GROUP) == ["ana"]


@pytest.mark.parametrize("name", ["", "a\nb", "\u202eana", "x" * 2000])
def test_empty_long_and_invisible_names_are_refused(desk: ServiceDesk, name: str) -> None:
    """Empty, too long, and invisible names are refused."""
    with pytest.raises(BadRequest):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=USER, name=name))


def test_users_may_load_themselves_but_not_others(desk: ServiceDesk) -> None:
    """Users may load themselves. Loading and adding other users needs MANAGE_USERS."""
    assert load(desk, "ana", "ana") == "ana"
    with pytest.raises(PermissionDenied):
        load(desk, "bob", "ana")
    with pytest.raises(PermissionDenied):
        desk.run(principal_add(desk.ctx("ana"), metalake=LAKE, kind=USER, name="eve"))

    desk.allow("ana", Kind.METALAKE, LAKE, Privilege.MANAGE_USERS)

    assert load(desk, "bob", "ana") == "bob"


def test_metalake_owner_cannot_remove_or_disable_itself(desk: ServiceDesk) -> None:
    """The owner of the metalake can be neither removed nor disabled, not even by the owner."""
    for work in (
        principal_remove(desk.ctx(), metalake=LAKE, kind=USER, name="admin"),
        user_enable(desk.ctx(), metalake=LAKE, name="admin", enabled=False),
    ):
        with pytest.raises(BadRequest, match="owns metalake"):
            desk.run(work)


def test_disabled_user_is_refused_everywhere(desk: ServiceDesk) -> None:
    """A disabled user, whatever its privileges, can read nothing until it is enabled."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)

    def look() -> object:
        return desk.run(desk.ctx("ana").read(MAIN, lambda request_view: namespaces_list(request_view, ()))).names

    before = look()
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))
    with pytest.raises(LimnosError, match="disabled"):
        look()
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=True))

    assert look() == before


def test_removal_does_not_hit_a_new_user_of_the_same_name(desk: ServiceDesk) -> None:
    """A removal that was authorized for one user does not remove another user who has taken the name since."""

    def decide(request_view: RequestView) -> Permit[PrincipalRemove]:
        decision = request_view.require(Action.USER_MANAGE, request_view.settled.outer)
        return request_view.permit(PrincipalRemove(principal_require(request_view, USER, "ana")), decision)

    permit = desk.run(desk.ctx().read(RequestScope(LAKE), decide))
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=USER, name="ana"))
    desk.users("ana")

    with pytest.raises(StalePermit):
        desk.run(desk.ctx().submit(permit, principal_delete))

    assert "ana" in names(desk, USER)


def test_missing_user_is_refused_by_name(desk: ServiceDesk) -> None:
    """A request about a missing user is refused with the user's name."""
    with pytest.raises(NotFound, match="nobody"):
        desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=USER, name="nobody"))
