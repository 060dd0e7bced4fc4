"""Details of an object: its owner, tags and the caller's rights, at one moment."""

from __future__ import annotations

import pytest

from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.governance.details import ObjectDetails, details_load
from tests.inprocess import ADMIN, MAIN
from tests.services.conftest import ServiceDesk


def load(desk: ServiceDesk, kind: Kind, *levels: str, user: str = ADMIN) -> ObjectDetails:
    """The details of an object as a user gets them."""
    return desk.run(desk.ctx(user).read(MAIN, lambda request_view: details_load(request_view, kind, levels=levels)))


def test_owner_has_every_right(desk: ServiceDesk) -> None:
    """The owner may read, write, change, drop and grant."""
    desk.namespace("a")
    desk.table("a", "t")

    found = load(desk, Kind.TABLE, "a", "t")

    assert found.rights >= {"read", "write", "alter", "drop", "grant", "set_owner", "protect"}
    assert found.owner is not None
    assert found.owner.name == ADMIN


def test_reader_has_the_right_to_read_alone(desk: ServiceDesk) -> None:
    """A reader's rights are those that the operations would decide."""
    desk.namespace("a")
    desk.table("a", "t")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)

    assert load(desk, Kind.TABLE, "a", "t", user="ana").rights == {"read", "scan"}
    assert "create_table" not in load(desk, Kind.NAMESPACE, "a", user="ana").rights


def test_stranger_and_missing_object(desk: ServiceDesk) -> None:
    """Who may not load an object is refused; a missing one is not found for the owner."""
    desk.namespace("a")
    desk.table("a", "t")

    with pytest.raises(PermissionDenied):
        load(desk, Kind.TABLE, "a", "t", user="ana")
    with pytest.raises(NotFound):
        load(desk, Kind.TABLE, "a", "u")


def test_catalog_and_namespace_have_details(desk: ServiceDesk) -> None:
    """Containers as well, with their own rights."""
    desk.namespace("a")

    assert load(desk, Kind.CATALOG).node.name == "main"
    assert {"create_namespace", "create_table", "drop"} <= load(desk, Kind.NAMESPACE, "a").rights
