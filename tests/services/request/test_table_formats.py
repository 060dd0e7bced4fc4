# SPDX-License-Identifier: Apache-2.0
"""Catalogs of several formats: refusals of each, and names that all kinds share below a parent in a Lance catalog."""

from __future__ import annotations

import pytest

from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.model.kinds import GENERIC_PROVIDER
from limnos.services.catalog.catalogs import catalog_create
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.catalog.tables import table_load, tables_list
from limnos.services.iceberg.tables import table_create
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE, new_table
from tests.services.conftest import ServiceDesk

VECTORS = RequestScope(LAKE, "vectors")


@pytest.fixture
def generic(desk: ServiceDesk) -> ServiceDesk:
    """A catalog `vectors` for Lance tables, with a namespace `a`."""
    desk.run(
        catalog_create(
            desk.ctx(),
            metalake=LAKE,
            name="vectors",
            catalog_type=None,
            provider=GENERIC_PROVIDER,
            comment=None,
            properties={},
        )
    )
    desk.run(namespace_create(desk.ctx(), VECTORS, levels=("a",), properties={}))
    return desk


def test_iceberg_table_in_a_lance_catalog_is_refused(generic: ServiceDesk) -> None:
    """An Iceberg table is refused in a catalog of Lance tables, and the message names the catalog's format."""
    with pytest.raises(BadRequest, match="Catalog vectors contains Lance tables"):
        generic.run(table_create(generic.ctx(), VECTORS, namespace=("a",), request=new_table("t")))


def test_lance_catalog_lists_and_loads_no_iceberg_tables(generic: ServiceDesk) -> None:
    """In a catalog of Lance tables, lists of Iceberg tables are empty, and loading one is NotFound."""
    listed = generic.run(generic.ctx().read(VECTORS, lambda request_view: tables_list(request_view, ("a",)).texts()))

    assert listed == []
    with pytest.raises(NotFound):
        generic.run(generic.ctx().read(VECTORS, lambda request_view: table_load(request_view, ("a",), "t")))


def test_namespaces_nest_in_a_lance_catalog(generic: ServiceDesk) -> None:
    """Namespaces nest in a Lance catalog, and a name is unique across kinds."""
    generic.run(namespace_create(generic.ctx(), VECTORS, levels=("a", "b", "c"), properties={}))

    with pytest.raises(AlreadyExists):
        generic.run(namespace_create(generic.ctx(), VECTORS, levels=("a", "b"), properties={}))
