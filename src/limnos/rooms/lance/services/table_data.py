# SPDX-License-Identifier: Apache-2.0
"""Whether a Lance table has data."""

from __future__ import annotations

from functools import partial

from limnos.formats.lance_manifests import VERSIONS
from limnos.services.lance.tables import LanceTable
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.store.objects.lance_versions import lance_top_read


async def has_data(ctx: Context, location: str, *, place: CatalogStorage) -> bool:
    """Return whether files of a Lance table with data are at a location within the catalog's storage."""
    return await ctx.services.files.holds(f"{location}/{VERSIONS}", place.catalog.properties, roots=place.roots)


async def has_table_data(ctx: Context, table: LanceTable) -> bool:
    """Return whether a table has data, by its files or, if managed, by the store."""
    if table.record.managed:
        return await ctx.look_up(partial(lance_top_read, table.node.id, "")) is not None
    return await has_data(ctx, table.location, place=table.place)
