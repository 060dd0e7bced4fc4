# SPDX-License-Identifier: Apache-2.0
"""PyIceberg's view calls against a real server: create, list, load and drop, also with unusual names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from tests.integration.live import LiveServer
from tests.integration.test_pyiceberg import ODD_NAMES, SCHEMA, connect


def version(*levels: str) -> ViewVersion:
    """A view version in Spark's dialect."""
    text = SQLViewRepresentation(type="sql", sql="select 1 as id, 'Oslo' as city", dialect="spark")
    return ViewVersion(
        version_id=1,
        schema_id=1,
        timestamp_ms=1_700_000_000_000,
        summary={"engine-name": "test"},
        representations=[text],
        default_namespace=list(levels),
    )


@pytest.fixture
def catalog(server: LiveServer) -> Iterator[RestCatalog]:
    """The catalog `main` as the administrator."""
    connected = connect(server)
    yield connected
    connected.close()


@pytest.mark.parametrize("name", ["plain", *ODD_NAMES])
def test_views_four_levels_deep_are_created_and_dropped(catalog: RestCatalog, name: str) -> None:
    """Views with unusual names, four levels deep, are created, listed, loaded and dropped."""
    levels = ("views", name, "c", "d")
    for depth in range(1, 5):
        catalog.create_namespace_if_not_exists(levels[:depth])
    created = catalog.create_view((*levels, name), SCHEMA, version(*levels))
    loaded = catalog.load_view((*levels, name))

    assert catalog.list_views(levels) == [(*levels, name)]
    assert catalog.list_tables(levels) == []
    assert loaded.metadata == created.metadata
    assert loaded.schema().column_names == ["id", "city"]
    assert catalog.view_exists((*levels, name))
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view((*levels, name), SCHEMA, version(*levels))
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((*levels, name), SCHEMA)

    catalog.drop_view((*levels, name))
    assert not catalog.view_exists((*levels, name))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((*levels, name))
    with pytest.raises(NoSuchViewError):
        catalog.drop_view((*levels, name))
