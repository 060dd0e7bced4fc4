# SPDX-License-Identifier: Apache-2.0
"""Old metadata files: deletes metadata files of live tables that are no longer in the metadata log, at a configured
age.

Must not know other operations. Only files with names that this server generates are deleted: in the table's own
metadata directory, with a version below all versions in the metadata, and with a time in the name that is old enough
and later than the time at which the store's current epoch was first recorded. So files that a restored backup may name
are kept.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.files import place_key
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.audit import REMOVE_METADATA_FILE, AuditContext, AuditedDecision
from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError, StorageFailed
from limnos.model.permits import upkeep_permit
from limnos.model.storage_locations import ROOTS
from limnos.names import display
from limnos.rooms.maintenance.formats.table_metadata import metadata_of
from limnos.rooms.maintenance.services.table_storage import maintained_files
from limnos.services.request.node_services import NodeServices
from limnos.store.activity.maintenance import ancestors_read
from limnos.store.activity.orphan_files import DELETED as REMOVED
from limnos.store.activity.orphan_files import REMOVING, NewOrphan, orphan_files_read
from limnos.store.ancestry import path_of
from limnos.store.objects.documents import claims_read, document_read
from limnos.store.objects.node_reads import zones_of_read
from limnos.store.objects.storage_locations import rivals_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.maintenance")
DELETED = Counter(
    "limnos_maintenance_deleted_files_total", "Files of tables deleted by maintenance, by kind of file.", ("what",)
)
_PERMIT: Final = upkeep_permit("limnos")
_REASON: Final = "it is outside of the table's metadata log (setting maintenance.metadata_retention_s)"
FILES_MAX: Final = 1_000
"""The maximum number of metadata files of one table that a round deletes."""
_NAME: Final = re.compile(
    r"([0-9]{5,9})-([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json"
)


class AgeWindow(NamedTuple):
    """The interval of creation times of files that may be deleted, in milliseconds since 1970."""

    since_ms: int
    until_ms: int


def old_metadata_files(names: Iterable[str], document: MetadataDocument, *, window: AgeWindow) -> list[str]:
    """Return those of `names` that are metadata files no longer in the table's metadata log, and in the window.

    Raises InvalidTable if the document cannot be read.
    """
    logged = [each.metadata_file for each in metadata_of(document.body).metadata_log or ()]
    needed_names = {each.rpartition("/")[2] for each in (document.metadata_location, *logged)}
    oldest = min(iceberg_metadata.version_of(name) for name in needed_names)
    names_found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None or name in needed_names or int(match[1]) >= oldest:
            continue
        if window.since_ms < int(match[2] + match[3], 16) < window.until_ms:
            names_found.append(name)
    return sorted(names_found)[:FILES_MAX]


async def metadata_files_delete(services: NodeServices, node_id: int, *, window: AgeWindow) -> int:
    """Delete old metadata files of a table. Returns the count of deleted files. Raises StorageFailed,
    ServiceUnavailable, InvalidTable.

    The directory is listed before the document is read: a file that a concurrent commit adds has a later version. Files
    whose deletion fails are tried again in the next round, and only deleted files are recorded.
    """
    look_up = services.gate.look_up
    former_document = await look_up(lambda: document_read(node_id))
    files = None if former_document is None else await maintained_files(services, former_document)
    if former_document is None or files is None:
        return 0
    directory = former_document.metadata_location.rpartition("/")[0]
    entries = {entry.name: entry for entry in await files.entries(directory)}
    document = await look_up(lambda: document_read(node_id))
    if document is None or document.metadata_location.rpartition("/")[0] != directory:
        return 0
    before_names = await _files_deleted_before(services, document, directory=directory, names=entries)
    await _record(services, document, names=before_names)
    old = old_metadata_files(entries, document, window=window)
    if not old or await _has_rivals(services, document):
        return 0
    below = _path_below(document, directory)
    rows = [NewOrphan(f"{below}{name}", entries[name].size, entries[name].modified_ms) for name in old]
    await services.store.submit(_PERMIT, lambda tx: tx.orphan_files.add(node_id, rows, state=REMOVING, reason=_REASON))
    deleted: list[str] = []
    failure: StorageFailed | None = None
    try:
        for name in old:
            try:
                await files.delete(f"{directory}/{name}")
                deleted.append(name)
            except StorageFailed as error:  # the storage may refuse this file alone
                failure = error
    finally:
        await _record(services, document, names=[f"{below}{name}" for name in deleted])
    if failure is not None:
        raise failure
    log.info("old metadata files deleted", table=node_id, count=len(old), first=old[0], last=old[-1])
    return len(old)


def _path_below(document: MetadataDocument, directory: str) -> str:
    """Return the name of a directory below the table's location, with a slash at the end."""
    return f"{directory}/".removeprefix(f"{document.location}/")


async def _files_deleted_before(
    services: NodeServices, document: MetadataDocument, *, directory: str, names: Container[str]
) -> list[str]:
    """Return the files that a process deleted but did not record before it was killed, by name below the location."""
    below = _path_below(document, directory)
    rows = await services.gate.look_up(lambda: orphan_files_read(document.node_id))
    return [
        row.name
        for row in rows
        if row.state == REMOVING and row.reason == _REASON and row.name.removeprefix(below) not in names
    ]


async def _record(services: NodeServices, document: MetadataDocument, *, names: Sequence[str]) -> None:
    """Record that metadata files are deleted, each with an audit record."""
    if not names:
        return
    node_id = document.node_id
    ancestry = await services.gate.look_up(lambda: ancestors_read([node_id]))
    path = display.render(path_of(node_id, ancestry) or ())
    zones = await services.gate.look_up(lambda: zones_of_read([node_id]))
    right = AuditedDecision(action=REMOVE_METADATA_FILE, object_id=node_id, kind="table", name=path)
    contexts = [AuditContext(rights=(right,), detail=f"{name}: {_REASON}") for name in names]
    texts = [msgspec.json.encode(each).decode() for each in contexts] if services.audit.rules.changes else []

    def record(tx: Tx) -> None:
        tx.orphan_files.mark(node_id, names, state=REMOVED, reason=_REASON)
        tx.orphan_files.audit(zones.get(node_id, 0), actor=tx.actor, request_id="maintenance", accounts=texts)

    await services.store.submit(_PERMIT, record)
    DELETED["metadata",] += len(names)


async def _has_rivals(services: NodeServices, document: MetadataDocument) -> bool:
    """Return whether another object's location equals, contains or is below the table's location; also True if that
    cannot be determined. Roots of catalogs do not count.
    """
    try:
        claims = await services.gate.look_up(lambda: claims_read(document.location))
        key = place_key(document.location)
        rival_locations = await services.gate.look_up(lambda: rivals_read(key, but=document.node_id))
    except LimnosError as error:
        log.warning("old metadata files are kept", table=document.node_id, error=error.message)
        return True
    return any(node_id != document.node_id for node_id, _ in claims) or any(
        each.claim.kind not in ROOTS for each in rival_locations
    )
