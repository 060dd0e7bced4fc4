# SPDX-License-Identifier: Apache-2.0
"""Metalakes: visibility, conditions of a drop, and owners."""

from __future__ import annotations

import pytest

from limnos.model.errors import AlreadyExists, InUse, LimnosError, NotEmpty, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.services.catalog.catalogs import catalog_enable
from limnos.services.catalog.metalakes import (
    metalake_alter,
    metalake_create,
    metalake_drop,
    metalake_load,
    metalake_set,
    metalakes_visible,
)
from limnos.services.identity.owners import owner_load
from limnos.services.identity.users import principal_add, user_enable
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk


@pytest.fixture
def two(desk: ServiceDesk) -> ServiceDesk:
    """Metalakes `lake` and `side`; ana is a user of `lake`."""
    desk.run(metalake_create(desk.ctx(), name="side", comment=None, properties={}))
    return desk


def seen(desk: ServiceDesk, user: str) -> list[str]:
    """Return the metalakes that a user sees."""
    return [node.name for node in desk.run(metalakes_visible(desk.ctx(user)))]


def test_users_see_only_metalakes_they_belong_to(two: ServiceDesk) -> None:
    """A user sees the metalakes that the user belongs to. Adding or disabling the user takes effect immediately, and
    only in the metalake concerned.
    """
    assert [seen(two, user) for user in ("admin", "ana", "eve")] == [["lake", "side"], ["lake"], []]

    two.run(principal_add(two.ctx(), metalake="side", kind=Kind.USER, name="ana"))
    assert seen(two, "ana") == ["lake", "side"]
    two.run(user_enable(two.ctx(), metalake=LAKE, name="ana", enabled=False))
    assert seen(two, "ana") == ["side"]


def test_creator_is_owner_and_only_user(two: ServiceDesk) -> None:
    """A metalake's creator is its owner and only user; only service admins may create one."""
    owner = two.run(owner_load(two.ctx(), metalake="side", kind=Kind.METALAKE, full_name="side"))

    assert owner is not None
    assert owner.name == "admin"
    with pytest.raises(PermissionDenied):
        two.run(metalake_create(two.ctx("ana"), name="more", comment=None, properties={}))
    with pytest.raises(AlreadyExists):
        two.run(metalake_create(two.ctx(), name="side", comment=None, properties={}))


def test_drop_needs_a_disabled_and_empty_metalake(desk: ServiceDesk) -> None:
    """A drop is refused while the metalake is enabled or has catalogs. A forced drop also drops its content."""
    with pytest.raises(InUse):
        desk.run(metalake_drop(desk.ctx(), name=LAKE, force=False))
    desk.run(metalake_set(desk.ctx(), name=LAKE, in_use=False))
    with pytest.raises(NotEmpty):
        desk.run(metalake_drop(desk.ctx(), name=LAKE, force=False))

    desk.run(metalake_drop(desk.ctx(), name=LAKE, force=True))

    with pytest.raises(NotFound):
        desk.run(desk.ctx().read(RequestScope(LAKE), metalake_load))


def test_rename_needs_unused_name_and_frees_the_old_one(two: ServiceDesk) -> None:
    """A rename needs an unused name and frees the old one. A rename to the own name changes nothing."""
    with pytest.raises(AlreadyExists):
        two.run(metalake_alter(two.ctx(), name="side", edits=PropertyEdits(name=LAKE)))

    assert two.run(metalake_alter(two.ctx(), name="side", edits=PropertyEdits(name="side", comment="c"))).name == "side"
    assert two.run(metalake_alter(two.ctx(), name="side", edits=PropertyEdits(name="edge"))).name == "edge"
    assert seen(two, "admin") == ["edge", "lake"]


def test_disabled_metalake_cannot_be_altered(desk: ServiceDesk) -> None:
    """A disabled metalake cannot be altered until it is enabled; its catalogs can be enabled meanwhile."""
    desk.run(metalake_set(desk.ctx(), name=LAKE, in_use=False))

    with pytest.raises(LimnosError, match="disabled"):
        desk.run(metalake_alter(desk.ctx(), name=LAKE, edits=PropertyEdits(comment="c")))
    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=True))
    desk.run(metalake_set(desk.ctx(), name=LAKE, in_use=True))
    desk.run(metalake_alter(desk.ctx(), name=LAKE, edits=PropertyEdits(comment="c")))
