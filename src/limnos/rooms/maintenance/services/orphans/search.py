# SPDX-License-Identifier: Apache-2.0
"""Search for the orphan files of one table: lists its directories, reads its metadata afterwards, and compares.

Must not know the schedule of removals. A file that a commit adds after the listing is not in the listing, and a file
added before it is in the metadata, which is read later. If anything cannot be read, the search finds no orphans and
returns the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.files import FileKeys, place_key
from limnos.files.entries import FileEntry
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, LimnosError, ServiceUnavailable, StorageFailed
from limnos.model.storage_locations import ROOTS
from limnos.rooms.maintenance.formats.orphans import (
    ListedFileState,
    OrphanSearch,
    newer_metadata_files,
    search_orphans,
)
from limnos.rooms.maintenance.services.assessing import is_dataset
from limnos.rooms.maintenance.services.orphans.references import referenced_files_read
from limnos.rooms.maintenance.services.table_storage import MaintainedFiles, maintained_files
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import Heartbeat, TaskContext
from limnos.store.activity.maintenance import TableHead, tables_of
from limnos.store.objects.documents import document_read
from limnos.store.objects.protection import protection_read
from limnos.store.objects.storage_locations import RIVALS_MAX, RegisteredLocation, own_locations_read
from limnos.store.sql import Load, drive_load
from limnos.store.tx import Tx

_PLAIN: Final = re.compile(r"[A-Za-z0-9._/:=@+-]+")
_NAMED: Final = 3


class TableSearch(NamedTuple):
    """The result of a search: the orphan files, all listed files, the count of references, and the snapshots of the
    metadata.

    `blocked` is the reason why nothing may be removed; None if orphans may be removed.
    """

    candidates: tuple[ListedFileState, ...]
    names: frozenset[str]
    """The names of all listed files."""
    referenced: int
    snapshots: frozenset[int]
    files: MaintainedFiles | None
    blocked: str | None = None


def _blocked_search(reason: str) -> TableSearch:
    return TableSearch(
        candidates=(), names=frozenset(), referenced=0, snapshots=frozenset(), files=None, blocked=reason
    )


async def orphans_search(work: TaskContext, services: NodeServices, *, node_id: int) -> TableSearch:
    """Search for the orphan files of a table.

    Raises StorageFailed, ServiceUnavailable. Other failures are reasons in the result.
    """
    look_up = services.gate.look_up
    former_document, heads = await look_up(lambda: _table_read(node_id))
    if former_document is None:
        return _blocked_search("the table was dropped")
    files = await maintained_files(services, former_document)
    if files is None:
        return _blocked_search("its location conflicts with that of another object")
    if _PLAIN.fullmatch(former_document.location) is None:
        return _blocked_search("its location has characters that readers encode differently")
    if any(is_dataset(head) for head in heads):
        return _blocked_search("SQL++ removes the files of its datasets by itself")
    try:
        file_entries = await work.run_in_thread(files.all_entries)
        return await _compare(work, services, files=files, before=former_document, listed=file_entries)
    except (StorageFailed, ServiceUnavailable):
        raise
    except LimnosError as error:
        return _blocked_search(error.message)


def _table_read(node_id: int) -> Load[tuple[MetadataDocument | None, list[TableHead]]]:
    document = yield from document_read(node_id)
    return document, (yield from tables_of([node_id]))


def _locations_read(node_id: int) -> Load[tuple[MetadataDocument | None, list[RegisteredLocation]]]:
    document = yield from document_read(node_id)
    return document, (yield from own_locations_read(node_id))


async def _compare(
    work: TaskContext,
    services: NodeServices,
    *,
    files: MaintainedFiles,
    before: MetadataDocument,
    listed: Sequence[FileEntry],
) -> TableSearch:
    document, own = await services.gate.look_up(lambda: _locations_read(before.node_id))
    if document is None or document.location != before.location:
        return _blocked_search("the table was dropped or got another location")
    names = frozenset([each.name for each in listed])
    if newer := newer_metadata_files(names, document.metadata_location):
        return _blocked_search(
            f"metadata file {newer[0]} is newer than the current one: another catalog may write here"
        )
    read = await referenced_files_read(services, files, document=document)
    if read.references.keeps_files:
        return _blocked_search("gc.enabled is false")
    others = [f"{each.location}/" for each in own if each.location != place_key(document.location)]
    result = await work.run_in_thread(lambda beat: _search(beat, files.location, listed=listed, references=read.files))
    if result.missing:
        return _blocked_search(f"{_file_samples(result.missing)} of its metadata are missing")
    outside_paths = [each for each in result.elsewhere if not place_key(each).startswith(tuple(others))]
    if outside_paths:
        return _blocked_search(f"{_file_samples(outside_paths)} of its metadata are outside of its locations")
    return TableSearch(
        candidates=result.candidates,
        names=names,
        referenced=len(read.files),
        snapshots=frozenset(read.references.snapshots),
        files=files,
    )


def _search(beat: Heartbeat, location: str, *, listed: Sequence[FileEntry], references: Sequence[str]) -> OrphanSearch:
    """Compare the listed files with the references, by normalized location. Blocks. Raises BadRequest for a reference
    that is not a location.
    """
    keys = FileKeys()
    listing = {}
    for number, each in enumerate(listed):
        try:
            listing[keys.of(f"{location}/{each.name}")] = ListedFileState(*each)
        except BadRequest:  # metadata cannot contain such a name, so the file is not one of the table's: keep it
            continue
        if number % 1_000 == 0:
            beat(number)
    prefix = f"{place_key(location)}/"
    return search_orphans(
        listing,
        references,
        key_of=keys.of,
        target_of=keys.target_of,
        is_own=lambda each: place_key(each).startswith(prefix),
        name_key=lambda name: keys.of(f"{location}/{name}"),
    )


def _file_samples(locations: Sequence[str]) -> str:
    text = ", ".join(each[:300] for each in locations[:_NAMED])
    return f"{len(locations)} files ({text}{', …' if len(locations) > _NAMED else ''})"


def removal_refusal(tx: Tx, node_id: int, *, snapshots: frozenset[int]) -> str | None:
    """Return the reason why no file of a table may be removed now; None if files may be removed.

    No commit of the table is in progress while this transaction runs. `snapshots` are those in its metadata.
    """
    if tx.snapshot_pins.version(node_id) is None or not tx.nodes.is_alive(node_id):
        return "the table was dropped"
    document = tx.documents.read(node_id)
    if document is None:
        return "the table was dropped"
    if drive_load(protection_read(node_id), tx.rows):
        return "the table is protected"
    key = place_key(document.location)
    lower = tx.places.lower(key, but=node_id)
    if lower or len(lower) == RIVALS_MAX:
        return "another object is below its location"
    if any(each.claim.kind not in ROOTS for each in tx.places.upwards(key, but=node_id)):
        return "another object is at or above its location"
    if any(other != node_id for other, _ in tx.documents.claims(document.location)):
        return "another table has the same location"
    for holder in tx.snapshot_pins.holders(node_id):
        if holder.run is not None:
            return f"pipeline run {holder.run} ({holder.state}) uses the table"
        if not holder.snapshots <= snapshots:
            return "a planned scan reads a snapshot that the table no longer has"
    return None
