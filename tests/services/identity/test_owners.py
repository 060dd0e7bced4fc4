# SPDX-License-Identifier: Apache-2.0
"""Owners: a change of an object's owner moves the clock of the object's zone."""

from __future__ import annotations

import pytest

from limnos.model.kinds import ROOT_ID, Kind
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.identity.owners import owner_load, owner_set
from limnos.services.identity.roles import role_create, role_load
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE, add_catalog
from tests.services.conftest import ServiceDesk


def hand_over(desk: ServiceDesk, kind: Kind, full_name: str, owner: str) -> None:
    """Transfer the ownership of an object to a user."""
    desk.run(owner_set(desk.ctx(), metalake=LAKE, kind=kind, full_name=full_name, owner_kind=Kind.USER, owner=owner))


def listed(desk: ServiceDesk, user: str) -> list[str]:
    """Return the catalogs that a user sees in a list."""
    return desk.run(
        desk.ctx(user).read(
            RequestScope(LAKE), lambda request_view: [node.name for node in catalogs_list(request_view)]
        )
    )


def test_owner_change_affects_catalog_list_on_another_node(desk: ServiceDesk) -> None:
    """A change of a catalog's owner affects the next list of catalogs on another node."""
    other = ServiceDesk(desk.lab)
    desk.run(add_catalog(desk.ctx(), "side"))
    assert (listed(other, "ana"), listed(other, "bob")) == ([], [])

    hand_over(desk, Kind.CATALOG, "side", "ana")
    first = (listed(other, "ana"), listed(other, "bob"))
    hand_over(desk, Kind.CATALOG, "side", "bob")

    assert first == (["side"], [])
    assert (listed(other, "ana"), listed(other, "bob")) == ([], ["side"])


@pytest.mark.parametrize(
    "kind, full_name", [(Kind.METALAKE, LAKE), (Kind.CATALOG, "main"), (Kind.ROLE, "r"), (Kind.NAMESPACE, "main.a")]
)
def test_owner_change_moves_the_clock_of_one_zone(desk: ServiceDesk, kind: Kind, full_name: str) -> None:
    """A change of owner moves the clock of one zone: the server's for a metalake, the metalake's for catalogs and
    roles, and else the catalog's.
    """
    desk.namespace("a")
    desk.run(role_create(desk.ctx(), metalake=LAKE, name="r", properties={}, privilege_requests=()))
    ((lake, main),) = desk.rows(
        "SELECT l.id, m.id FROM node l JOIN node m ON m.parent_id = l.id WHERE l.name = ? AND m.name = 'main'", LAKE
    )
    home = {Kind.METALAKE: ROOT_ID, Kind.CATALOG: lake, Kind.ROLE: lake, Kind.NAMESPACE: main}[kind]
    before = dict(desk.rows("SELECT zone, revision FROM clock"))

    hand_over(desk, kind, full_name, "ana")

    after = dict(desk.rows("SELECT zone, revision FROM clock"))
    assert {zone for zone, revision in after.items() if revision != before[zone]} == {home}


def test_new_role_owner_can_load_role_at_next_request(desk: ServiceDesk) -> None:
    """The new owner of a role may load it at the next request, also on another node."""
    other = ServiceDesk(desk.lab)
    desk.run(role_create(desk.ctx(), metalake=LAKE, name="r", properties={}, privilege_requests=()))
    hand_over(desk, Kind.ROLE, "r", "ana")

    loaded_role = other.run(
        other.ctx("ana").read(RequestScope(LAKE), lambda request_view: role_load(request_view, "r"))
    )
    owner = other.run(owner_load(other.ctx("ana"), metalake=LAKE, kind=Kind.ROLE, full_name="r"))

    assert loaded_role.role.name == "r"
    assert owner is not None
    assert owner.name == "ana"
