# SPDX-License-Identifier: Apache-2.0
"""Released locations: a task frees the locations of permanently dropped objects, once no file is left there.

A round reads the register page by page, up to a maximum number of locations; the next round continues from there. A
location is checked a day after its object was dropped, when credentials have expired and statements have ended.
Conflicting locations from before the rules existed, and those of external filesets, are freed without a check: the
files belong to another object. If a node of an earlier release deleted the purge task of a location, the location is
released. An earlier location or data path of a live object is freed once it has no file and the object's metadata does
not state it. Claims that lasted as long as credentials end when these have expired.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from limnos.files import key_of, place_key
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError
from limnos.model.storage_locations import OF_CATALOGS, LocationKind, LocationState
from limnos.services.lance.purge_tasks import LANCE_PURGE, LancePurgePayload
from limnos.services.request.task_context import TaskContext
from limnos.services.storage.fileset_purges import FILESET_PURGE, FilesetPurgePayload
from limnos.services.storage.purges import PURGE, PurgePayload, catalog_storage_find, is_empty
from limnos.store.objects.storage_locations import RegisteredLocation
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.places")
FREE_PLACES: Final = "free-places"
FREE_PLACES_EVERY_S: Final = 86_400.0
GRACE_MS: Final = 86_400_000
"""The delay after an object was dropped before its location is checked, in milliseconds."""
PAGE: Final = 1000
LOOKS_MAX: Final = 5000
"""The maximum number of locations that one round checks in their storage."""
NAMED_MAX: Final = 20


class ReleasedLocations(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a round: the position in the register, and the count and examples of locations that still have
    files.
    """

    location: str = ""
    owner: int = -1
    kind: int = -1
    kept: int = 0
    kept_first: tuple[str, ...] = ()


class _ReleaseRound:
    """One round of the task: the counts of freed and checked locations, and the locations that stay reserved."""

    def __init__(self) -> None:
        self.freed = 0
        self.looks = 0
        self.kept_locations: list[str] = []

    async def take(self, work: TaskContext, page: list[RegisteredLocation], *, pending: frozenset[int]) -> None:
        """Check the released locations of a page of the register, and free those without files."""
        for each in page:
            if each.claim.kind is LocationKind.DATA_PATH and each.claim.state is LocationState.LIVE:
                await self._take_earlier(work, each)
                continue
            is_left = each.claim.state is LocationState.DELETING and each.claim.owner_id not in pending
            if each.claim.kind in OF_CATALOGS or not (each.claim.state is LocationState.RELEASED or is_left):
                continue
            is_due = await work.submit(partial(_is_due, each))
            owns_none = each.claim.is_conflicting or each.claim.kind is LocationKind.EXTERNAL_FILESET
            if is_due and (owns_none or await self._is_empty(work, each)):
                self.freed += await work.submit(lambda tx, each=each: tx.places.free_one(each))  # type: ignore[misc]
                log.info("released a location of a dropped object", location=each.location, id=each.claim.owner_id)
            elif is_due:
                self.kept_locations.append(each.location)

    async def _take_earlier(self, work: TaskContext, each: RegisteredLocation) -> None:
        """Free a live object's data path that it no longer states, or an earlier location, if no file is left there."""
        document = await work.submit(partial(_left_document, each))
        if document is None or await work.run_in_thread(lambda _: _states(document.body, each.location)):
            return
        if await self._is_empty(work, each):
            self.freed += await work.submit(partial(_free_earlier, each, version=document.version))
            log.info("released an earlier location", location=each.location, id=each.claim.owner_id)

    async def _is_empty(self, work: TaskContext, each: RegisteredLocation) -> bool:
        self.looks += 1
        catalog_storage = await catalog_storage_find(work, each.claim.catalog_id)
        if catalog_storage is None:
            return False
        try:
            return await work.run_in_thread(lambda _: is_empty(each.location, catalog_storage))
        except LimnosError as error:
            log.warning("a location of a dropped object cannot be read", location=each.location, error=error.message)
            return False


def _left_document(each: RegisteredLocation, tx: Tx) -> MetadataDocument | None:
    """Return the object's document if it claimed or left the location a day ago, when credentials have expired."""
    return tx.documents.read(each.claim.owner_id) if tx.now_ms - each.since >= GRACE_MS else None


def _states(body: bytes, location: str) -> bool:
    """Return whether an object's metadata states a location as a data path."""
    return location in {
        place_key(path) for path in iceberg_metadata.outside_paths(iceberg_metadata.decode(body)).values()
    }


def _free_earlier(each: RegisteredLocation, tx: Tx, *, version: int) -> bool:
    """Delete an earlier location, unless the object has changed since. Returns whether it was deleted."""
    document = tx.documents.read(each.claim.owner_id)
    if document is None or document.version != version:
        return False
    tx.places.clear(each.claim.owner_id, location=each.location, kind=each.claim.kind)
    return True


def _is_due(each: RegisteredLocation, tx: Tx) -> bool:
    """Return whether a location was released long enough ago.

    A location that is not recorded as released yet is recorded as such, and is not due yet.
    """
    is_old = tx.now_ms - each.since >= GRACE_MS
    return is_old and not tx.places.release_one(each)


async def released_free(work: TaskContext, payload: ReleasedLocations) -> tuple[ReleasedLocations, str]:
    """Free released locations without files. Returns the position at which the next round continues, and a summary."""
    after = payload.location, payload.owner, payload.kind
    at, pending = _ReleaseRound(), await work.submit(_pending)
    at.freed += await work.submit(lambda tx: tx.places.end_expired())
    while at.looks < LOOKS_MAX:
        page = await work.submit(lambda tx, after=after: tx.places.page(after, limit=PAGE))  # type: ignore[misc]
        if not page:
            after = "", -1, -1
            break
        await work.await_with_lease(at.take(work, page, pending=pending))
        last = page[-1]
        after = last.location, last.claim.owner_id, int(last.claim.kind)
    text = (
        f"released {at.freed} locations of dropped objects; {len(at.kept_locations)} contain files, or cannot be read"
    )
    first = tuple(each[:1000] for each in at.kept_locations[:NAMED_MAX])
    location, owner, kind = after
    released = ReleasedLocations(
        location=location, owner=owner, kind=kind, kept=len(at.kept_locations), kept_first=first
    )
    return released, text


def _pending(tx: Tx) -> frozenset[int]:
    """Return the ids of the objects whose files a task will delete. Failed tasks are included, because they may be
    retried.
    """
    locations: list[tuple[str, int]] = []
    for text in tx.tasks.payloads(PURGE):
        table = msgspec.json.decode(text, type=PurgePayload)
        if table.location is not None:
            locations.append((table.location, table.catalog))
    for text in tx.tasks.payloads(LANCE_PURGE):
        lance = msgspec.json.decode(text, type=LancePurgePayload)
        locations.append((lance.location, lance.catalog))
    owners = (tx.places.is_being_deleted(key_of(at), catalog_id=catalog)[0] for at, catalog in locations)
    filesets = (msgspec.json.decode(text, type=FilesetPurgePayload) for text in tx.tasks.payloads(FILESET_PURGE))
    return frozenset((*owners, *(each.fileset for each in filesets)))
