# SPDX-License-Identifier: Apache-2.0
"""Old metadata files: after a commit, deletes the metadata files that the commit removed from the metadata log, if the
table's properties enable that.

Must not know any wire format. Files are deleted only after the commit is certain.
"""

from __future__ import annotations

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg import updates as iceberg_updates
from limnos.formats.iceberg.json_types import Json
from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError
from limnos.services.request.catalog_storage import CatalogStorage, split_own_locations
from limnos.services.request.context import Context
from limnos.store.objects.documents import claims_read
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.files")


async def delete_old_metadata_files(
    ctx: Context, document: MetadataDocument, *, built: tuple[Json, Json], place: CatalogStorage
) -> None:
    """Delete the metadata files below the table's location that a commit has removed from its metadata log.

    Call it after the commit is certain. `built` is the metadata before and after the commit. Errors are only logged.
    """
    names = iceberg_updates.removed_metadata_files(*built) if iceberg_metadata.deletes_old_files(built[1]) else []
    if not names:
        return
    try:
        claims = await ctx.look_up(lambda: claims_read(document.location))
    except LimnosError as error:
        log.warning("old metadata files are kept", location=document.location, error=error.message)
        return
    own_names, outside_names = split_own_locations(document.location, names)
    rivals = [at for node_id, at in claims if node_id != document.node_id]  # older releases allowed nested locations
    if outside_names or rivals:
        log.warning(
            "metadata files that are not the table's own are kept",
            location=document.location,
            count=len(outside_names),
            first=outside_names[:10],
            rivals=rivals[:10],
        )
    if not rivals:
        for location in own_names:
            await ctx.services.files.delete(location, place.catalog.properties)
