# SPDX-License-Identifier: Apache-2.0
"""Locations of namespaces: given, inherited or computed, and validated only when they change."""

from __future__ import annotations

import pytest

from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.records import NamespaceRecord
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.request_view import RequestView
from limnos.services.storage.namespace_locations import (
    check_new_location,
    inherited_location,
    namespace_base_location,
    namespace_location,
)
from tests.inprocess import MAIN
from tests.services.conftest import ServiceDesk

WAREHOUSE = "file:///warehouse"


def make(desk: ServiceDesk, *levels: str, location: str | None = None) -> None:
    """Create a namespace, with its own location."""
    properties = {} if location is None else {"location": location}
    desk.run(namespace_create(desk.ctx(), MAIN, levels=levels, properties=properties))


def homes(desk: ServiceDesk, *levels: str) -> tuple[str | None, str, str]:
    """Return a namespace's inherited location, its base, and its own location without its id."""

    def read(request_view: RequestView) -> tuple[str | None, str, str]:
        node, chain = request_view.find(levels, Kind.NAMESPACE)
        assert node is not None
        return (
            inherited_location(request_view, chain),
            str(namespace_base_location(request_view, chain)),
            str(namespace_location(node, "above")).replace(str(node.id), "ID"),
        )

    return desk.run(desk.ctx().read(MAIN, read))


def test_nearest_ancestors_location_applies(desk: ServiceDesk) -> None:
    """The location of a namespace applies to all descendants, unless a nearer ancestor has one. The default is the
    warehouse.
    """
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
    """Return a namespace's record with a location."""
    return NamespaceRecord(comment=None, properties={} if location is None else {"location": location})


def test_only_a_changed_location_is_validated(desk: ServiceDesk) -> None:
    """A new location must be allowed and is stored with its scheme. An unchanged location is not validated again."""

    def read(request_view: RequestView) -> list[str | None]:
        place = catalog_storage_of(request_view)._replace(roots=("file:///warehouse",))
        unchanged_record = check_new_location(record("s3://gone/x"), record("s3://gone/x"), place)
        spelled = check_new_location(None, record("/warehouse/x"), place)
        none = check_new_location(record("s3://gone/x"), record(None), place)
        with pytest.raises(LimnosError):
            check_new_location(record("/warehouse/x"), record("file:///etc/x"), place)
        return [each.properties.get("location") for each in (unchanged_record, spelled, none)]

    assert desk.run(desk.ctx().read(MAIN, read)) == ["s3://gone/x", f"{WAREHOUSE}/x", None]
