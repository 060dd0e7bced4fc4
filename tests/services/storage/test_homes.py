"""Homes of namespaces: given, inherited or computed, checked only when they change."""

from __future__ import annotations

import pytest

from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.records import NamespaceRecord
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.request.places import place_of
from limnos.services.request.scene import Scene
from limnos.services.storage.homes import base_of, given, home_of, located
from tests.inprocess import MAIN
from tests.services.conftest import Desk

WAREHOUSE = "file:///warehouse"


def make(desk: Desk, *levels: str, location: str | None = None) -> None:
    """Make a namespace, with a location of its own."""
    properties = {} if location is None else {"location": location}
    desk.run(namespace_create(desk.ctx(), MAIN, levels=levels, properties=properties))


def homes(desk: Desk, *levels: str) -> tuple[str | None, str, str]:
    """What a namespace inherits, its base, and its home without its id."""

    def read(scene: Scene) -> tuple[str | None, str, str]:
        node, chain = scene.find(levels, Kind.NAMESPACE)
        assert node is not None
        return given(scene, chain), base_of(scene, chain), home_of(node, "above").replace(str(node.id), "ID")

    return desk.run(desk.ctx().read(MAIN, read))


def test_nearest_location_counts(desk: Desk) -> None:
    """A location holds for all that lies below, until a nearer one; without any it is the warehouse."""
    make(desk, "plain")
    none, warehouse, computed = homes(desk, "plain")
    of_a, of_d = f"{warehouse}/of_a", f"{warehouse}/of_d"
    make(desk, "a", location=f"{of_a}/")
    make(desk, "a", "b", "c")
    make(desk, "a", "d", location=of_d)

    assert (none, computed) == (None, "above/nID")
    assert warehouse.startswith(WAREHOUSE)
    assert homes(desk, "a", "b", "c") == (of_a, of_a, "above/nID")
    assert homes(desk, "a", "d") == (of_d, of_d, of_d)


def record(location: str | None) -> NamespaceRecord:
    """A namespace's record with such a location."""
    return NamespaceRecord(comment=None, properties={} if location is None else {"location": location})


def test_only_what_changes_is_checked(desk: Desk) -> None:
    """A location that is new must be allowed and is spelled with its scheme; one that was there already stays as it is."""

    def read(scene: Scene) -> list[str | None]:
        place = place_of(scene)._replace(roots=("file:///warehouse",))
        kept = located(record("s3://gone/x"), record("s3://gone/x"), place)
        spelled = located(None, record("/warehouse/x"), place)
        none = located(record("s3://gone/x"), record(None), place)
        with pytest.raises(LimnosError):
            located(record("/warehouse/x"), record("file:///etc/x"), place)
        return [each.properties.get("location") for each in (kept, spelled, none)]

    assert desk.run(desk.ctx().read(MAIN, read)) == ["s3://gone/x", f"{WAREHOUSE}/x", None]
