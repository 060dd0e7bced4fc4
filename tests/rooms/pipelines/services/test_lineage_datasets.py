# SPDX-License-Identifier: Apache-2.0
"""Resolution of lineage datasets to objects while other requests rename them."""

from __future__ import annotations

from limnos.rooms.pipelines.formats.openlineage import EventDataset
from limnos.rooms.pipelines.services.lineage_datasets import datasets_find
from limnos.services.lookup.visibility import UsableCatalogs, usable_catalogs_of
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk


def test_catalog_renamed_during_resolution_is_read_again(desk: ServiceDesk) -> None:
    """If a catalog is renamed between reading the catalogs and looking up names, the resolution reads the catalogs
    again.
    """
    desk.namespace("a")
    desk.table("a", "t")
    home = desk.run(desk.ctx().read(RequestScope(LAKE), usable_catalogs_of))
    (catalog_id,) = home.catalogs
    table = EventDataset(namespace="limnos://lake", name="main.a.t")
    stale = UsableCatalogs(home.metalake_id, {catalog_id + 1000: "main"})
    datasets = [
        desk.run(datasets_find(desk.ctx(), LAKE, home=each, datasets=[table], authority="h", linked=()))[table.key]
        for each in (home, stale)
    ]

    assert [(each.catalog, each.is_seen) for each in datasets] == [("main", True)] * 2
