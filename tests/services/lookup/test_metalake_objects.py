# SPDX-License-Identifier: Apache-2.0
"""Objects directly in a metalake: the transaction that creates one looks at the metalake itself."""

from __future__ import annotations

import msgspec
import pytest

from limnos.access.actions import Action
from limnos.model.errors import StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import TagRecord
from limnos.services.catalog.metalakes import metalake_drop
from limnos.services.lookup.metalake_objects import MetalakeObjectCreate, metalake_object_insert
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk


def decide(request_view: RequestView) -> Permit[MetalakeObjectCreate]:
    """Return a permit to create the tag `red`."""
    decision = request_view.require(Action.TAG_CREATE, request_view.settled.outer)
    command = MetalakeObjectCreate(
        metalake=request_view.metalake,
        kind=Kind.TAG,
        name="red",
        record=TagRecord(comment="", properties={}),
        owner_id=request_view.maker_id,
    )
    return request_view.permit(command, decision)


def test_creation_in_a_dropped_metalake_is_stale(desk: ServiceDesk) -> None:
    """The transaction creates nothing in a metalake that was dropped, also with a permit that the clocks admit."""
    permit = desk.run(desk.ctx().read(RequestScope(LAKE), decide))
    desk.run(metalake_drop(desk.ctx(), name=LAKE, force=True))
    current = desk.lab.permit(*(zone for zone, _ in permit.stamps))
    later_permit = msgspec.structs.replace(permit, stamps=current.stamps)

    with pytest.raises(StalePermit):
        desk.run(desk.lab.store.submit(later_permit, lambda tx: metalake_object_insert(tx, permit)))

    assert desk.rows("SELECT 1 FROM node WHERE name = 'red'") == []
