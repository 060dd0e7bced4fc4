# SPDX-License-Identifier: Apache-2.0
"""Disabled users, catalogs and metalakes: from the next request on every node refuses them, until they are enabled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.model.errors import BadRequest, InUse, LimnosError, NotEmpty, NotFound, NotInUse, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.catalogs import catalog_drop, catalog_enable, catalog_load
from limnos.services.catalog.metalakes import metalake_create, metalake_drop, metalake_set, metalakes_visible
from limnos.services.catalog.namespaces import namespace_create, namespace_load
from limnos.services.identity.users import principal_remove, principals_list, user_enable
from limnos.services.request.request_scope import RequestScope
from tests.backends import StoreLab
from tests.inprocess import ADMIN, LAKE, MAIN, fill
from tests.services.conftest import ServiceDesk


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a namespace that ana may load."""
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)


@pytest.fixture
def open_desk(file_lab: StoreLab) -> Iterator[ServiceDesk]:
    """Return a desk on the same store, on a node with access control off."""
    desk = ServiceDesk(file_lab, access=False)
    yield desk
    desk.node.services.files.close()


def loads(desk: ServiceDesk, user: str) -> str:
    """Return the result of a user's load of the namespace."""
    try:
        desk.run(desk.ctx(user).read(MAIN, lambda request_view: namespace_load(request_view, ("a",))))
    except LimnosError as error:
        return type(error).__name__
    return "loaded"


def enable(desk: ServiceDesk, name: str, *, enabled: bool) -> None:
    """Enable or disable a user."""
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name=name, enabled=enabled))


def test_disabled_user_is_refused_at_the_next_request(desk: ServiceDesk) -> None:
    """Disabling a user takes effect at the next request, with a message that says so; enabling takes effect
    immediately, too.
    """
    outcomes = [loads(desk, "ana")]
    enable(desk, "ana", enabled=False)
    outcomes.append(loads(desk, "ana"))
    with pytest.raises(PermissionDenied, match="User ana is disabled in metalake lake"):
        desk.run(
            desk.ctx("ana").read(RequestScope(LAKE), lambda request_view: principals_list(request_view, Kind.USER))
        )
    enable(desk, "ana", enabled=True)

    assert [*outcomes, loads(desk, "ana")] == ["loaded", "PermissionDenied", "loaded"]


def test_disabled_user_is_refused_without_access_control(desk: ServiceDesk, open_desk: ServiceDesk) -> None:
    """With access control off every user may do everything, except disabled users."""
    assert loads(open_desk, "nobody at all") == "loaded"

    enable(desk, "ana", enabled=False)

    assert loads(open_desk, "ana") == "PermissionDenied"
    with pytest.raises(PermissionDenied):
        open_desk.run(namespace_create(open_desk.ctx("ana"), MAIN, levels=("b",), properties={}))


def test_metalake_is_hidden_from_disabled_users_and_non_members(desk: ServiceDesk) -> None:
    """A metalake is not listed to users who are disabled in it or do not belong to it."""
    listed = [[node.name for node in desk.run(metalakes_visible(desk.ctx(user)))] for user in ("ana", "stranger")]
    enable(desk, "ana", enabled=False)

    assert listed == [[LAKE], []]
    assert desk.run(metalakes_visible(desk.ctx("ana"))) == []


def test_metalake_owner_cannot_be_disabled_or_removed(desk: ServiceDesk) -> None:
    """The owner of the metalake can be neither disabled nor removed."""
    with pytest.raises(BadRequest, match="give it another owner"):
        enable(desk, ADMIN, enabled=False)
    with pytest.raises(BadRequest, match="give it another owner"):
        desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name=ADMIN))

    assert loads(desk, ADMIN) == "loaded"


def test_removed_user_inherits_nothing_when_added_again(desk: ServiceDesk) -> None:
    """A user who is added under a removed user's name has none of the removed user's rights."""
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana"))
    removed_outcome = loads(desk, "ana")
    desk.users("ana")

    assert (removed_outcome, loads(desk, "ana")) == ("PermissionDenied", "PermissionDenied")


def test_disabled_catalog_refuses_access_to_its_content(desk: ServiceDesk) -> None:
    """In a disabled catalog nothing can be read or created. The catalog itself can be loaded and enabled."""
    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=False))
    outcome = loads(desk, "ana")
    with pytest.raises(NotInUse, match="enable it first"):
        desk.namespace("b")
    catalog = desk.run(desk.ctx("ana").read(MAIN, catalog_load))
    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=True))

    assert (outcome, catalog.name, loads(desk, "ana")) == ("NotInUse", "main", "loaded")


def test_disabled_metalake_refuses_access_to_its_content(desk: ServiceDesk) -> None:
    """In a disabled metalake nothing can be read or created until it is enabled."""
    desk.run(metalake_set(desk.ctx(), name=LAKE, in_use=False))
    outcome = loads(desk, "ana")
    with pytest.raises(NotInUse):
        desk.users("eve")
    desk.run(metalake_set(desk.ctx(), name=LAKE, in_use=True))

    assert (outcome, loads(desk, "ana")) == ("NotInUse", "loaded")


def test_catalog_in_use_is_not_dropped(desk: ServiceDesk) -> None:
    """A catalog is dropped only if it is disabled and empty, or by force. A request that names it then gets
    NotFound.
    """
    with pytest.raises(InUse, match="disable it first"):
        desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=False))
    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=False))
    with pytest.raises(NotEmpty, match="drop its namespace a first, or force"):
        desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=False))

    desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=True))

    with pytest.raises(NotFound):
        desk.run(desk.ctx().read(MAIN, catalog_load))
    assert loads(desk, "ana") == "PermissionDenied"


def test_metalake_in_use_is_not_dropped(desk: ServiceDesk) -> None:
    """A metalake is dropped only if it is disabled and empty, or by force. A new metalake of the same name has nothing
    of the old one.
    """
    with pytest.raises(InUse):
        desk.run(metalake_drop(desk.ctx(), name=LAKE, force=False))
    desk.run(metalake_set(desk.ctx(), name=LAKE, in_use=False))
    with pytest.raises(NotEmpty):
        desk.run(metalake_drop(desk.ctx(), name=LAKE, force=False))
    desk.run(metalake_drop(desk.ctx(), name=LAKE, force=True))

    desk.run(fill(desk.ctx()))

    assert loads(desk, "ana") == "PermissionDenied"
    assert loads(desk, ADMIN) == "NotFound"


def test_only_service_admins_create_metalakes(desk: ServiceDesk) -> None:
    """Only service admins create metalakes."""
    with pytest.raises(PermissionDenied):
        desk.run(metalake_create(desk.ctx("ana"), name="pond", comment=None, properties={}))
