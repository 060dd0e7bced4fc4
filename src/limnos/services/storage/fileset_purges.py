# SPDX-License-Identifier: Apache-2.0
"""Fileset purges: a task deletes the files of a managed fileset that was dropped permanently.

The task deletes no file at a location if another fileset or a table lies at, above or below it. From the transaction
that releases the fileset until the task ends, its locations are being deleted: no fileset can be created there. As with
tables, only files below the fileset's own location and within its catalog's roots are deleted, and symbolic links out
of it are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from limnos.files import key_of, store_for
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.task_context import TaskContext
from limnos.services.storage import purges
from limnos.services.storage.location_claims import locations_mark_deleting, rivals_of
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.purge")
FILESET_PURGE: Final = "purge-fileset"


class FilesetPurgePayload(msgspec.Struct):
    """The payload of the task: the fileset's id, its catalog and its locations."""

    catalog: int
    fileset: int
    locations: tuple[str, ...]


def fileset_purge_later(tx: Tx, *, catalog: int, fileset: int) -> None:
    """Create the task that deletes a fileset's files, in the transaction that drops the fileset permanently."""
    locations = tx.fileset_places.begin(fileset)
    if locations:
        locations_mark_deleting(tx, fileset)
        payload = FilesetPurgePayload(catalog, fileset, tuple(locations))
        tx.tasks.create(FILESET_PURGE, msgspec.json.encode(payload).decode())


async def fileset_purge_run(work: TaskContext, payload: FilesetPurgePayload) -> str | None:
    """Delete a dropped fileset's files. Returns a sentence about the files that were kept, with the reasons; None if
    all were deleted.
    """
    catalog_storage = await purges.catalog_storage_find(work, payload.catalog)
    texts: list[str] = []
    for at in payload.locations:
        result, is_reached = (
            (purges.KEPT_REASON, False)
            if catalog_storage is None
            else await _purge(work, payload, location=at, place=catalog_storage)
        )
        texts.append(result)
        await purges.location_mark_purged(
            work, key_of(at), catalog=payload.catalog, place=catalog_storage, is_reached=is_reached
        )
    await work.submit(lambda tx: tx.fileset_places.clear(payload.fileset))
    return "; ".join(dict.fromkeys(filter(None, texts))) or None


async def _purge(
    work: TaskContext, payload: FilesetPurgePayload, *, location: str, place: CatalogStorage
) -> tuple[str, bool]:
    """Delete the files at one location. Returns a sentence about the kept files ("" for none), and whether the location
    existed.
    """
    rivals = await work.submit(lambda tx: rivals_of(tx, location, but=payload.fileset))
    if rivals:
        log.warning("files of a dropped fileset are kept", task=work.task_id, location=location, rivals=rivals[:10])
        return f"kept everything at {location}: another fileset or a table is at {rivals[0]}", False
    purge_payload = purges.PurgePayload(
        metadata_location=location, catalog=payload.catalog, roots=place.roots, location=location
    )
    purge_result = await work.run_in_thread(
        FilesetPurge(purge_payload, place.catalog.properties, rivals=(), allowed=place.allowed).run
    )
    log.info("purged", task=work.task_id, location=location, files=purge_result.deleted)
    if not purge_result.kept_count:
        return "", purge_result.is_reached
    stored_text = (
        f"kept {purge_result.kept_count}, as they are not the fileset's own: {', '.join(purge_result.kept_first)}"
    )
    return f"deleted {purge_result.deleted} files at {location}; {stored_text}", purge_result.is_reached


class FilesetPurge(purges.TablePurge):
    """A purge that deletes all files below a location."""

    def _files(self) -> Iterator[str]:
        location = self.payload.metadata_location
        yield from store_for(location, self.properties).below(location)
