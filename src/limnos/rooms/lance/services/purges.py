# SPDX-License-Identifier: Apache-2.0
"""Lance purges: delete a dropped table's own files, and the directories that become empty.

As for Iceberg, only files below the table's own location and within the catalog's roots are deleted. No file is deleted
while another table's location overlaps this one. Lance's directory names identify the table's own files; other files
are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from limnos.files import key_of, store_for
from limnos.formats.lance_orphans import BYPASSED
from limnos.services.lance.purge_tasks import LancePurgePayload
from limnos.services.request.task_context import TaskContext
from limnos.services.storage.location_claims import rivals_of
from limnos.services.storage.purges import (
    KEPT_REASON,
    PurgePayload,
    TablePurge,
    catalog_storage_find,
    location_mark_purged,
)
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.purge")
OWN: Final = ("data", "_indices", "_deletions", "_transactions", "_refs", "tree", BYPASSED, "_versions")
"""The subdirectories that belong to a table, with the manifests last."""
OWN_FILES: Final = (".lance-reserved", ".lance-deregistered", "_latest.manifest")


async def lance_purge_run(work: TaskContext, payload: LancePurgePayload) -> str | None:
    """Purge a dropped table. Returns the reason if files were kept; None if all were deleted."""
    at = payload.location
    catalog_storage = await catalog_storage_find(work, payload.catalog)
    claims = await work.submit(lambda tx: rivals_of(tx, at))
    if catalog_storage is None:
        return KEPT_REASON
    purge_payload = PurgePayload(
        metadata_location=at, roots=catalog_storage.roots, catalog=payload.catalog, location=at
    )
    purge = LancePurge(
        purge_payload, catalog_storage.catalog.properties, rivals=claims, allowed=catalog_storage.allowed
    )
    result = await work.run_in_thread(purge.run)
    log.info("purged", task=work.task_id, location=at, files=result.deleted)
    await location_mark_purged(
        work, key_of(at), catalog=payload.catalog, place=catalog_storage, is_reached=result.is_reached
    )
    if not result.kept_count:
        return None
    reason = "another table is at that location" if claims else "they are not below the table's own location"
    log.warning(
        "files of a dropped table are kept", task=work.task_id, location=at, files=result.kept_count, reason=reason
    )
    return f"deleted {result.deleted} files; kept {result.kept_count}, as {reason}"


class LancePurge(TablePurge):
    """A purge of a dropped Lance table: deletes the files in the directories that belong to the table."""

    def _files(self) -> Iterator[str]:
        location = self.payload.metadata_location
        store = store_for(location, self.properties)
        for name in OWN:
            yield from store.below(f"{location}/{name}")
        for name in OWN_FILES:
            yield f"{location}/{name}"
