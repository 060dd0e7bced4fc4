"""Old metadata files: deletes metadata files of live tables that have left the metadata log, after a stated age.

May import the rooms below. Must not know other operations. Only files whose name this server gives are deleted: in the
table's own metadata directory, with a version below all that the metadata names, and with a time in the name that is
old enough and after the store's present epoch was first seen. So a restored store keeps what its backups may name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.files import place_key
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.maintenance.table_metadata import metadata_of
from limnos.model.errors import LimnosError
from limnos.model.storage_locations import ROOTS
from limnos.services.maintenance.table_storage import maintained_files
from limnos.store.objects.documents import claims_read, document_read
from limnos.store.objects.storage_locations import rivals_read
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limnos.model.entities import MetadataDocument
    from limnos.services.request.node_services import NodeServices

log = get_logger("limnos.maintenance")
DELETED = Counter(
    "limnos_maintenance_deleted_files_total", "Files of tables that maintenance deleted, by what they were.", ("what",)
)
FILES_MAX: Final = 1_000
"""How many metadata files of one table a round deletes."""
_NAME: Final = re.compile(
    r"([0-9]{5,9})-([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json"
)


class AgeWindow(NamedTuple):
    """Between which times a file was made that may be deleted, in milliseconds since 1970."""

    since_ms: int
    until_ms: int


def old_metadata_files(names: Iterable[str], document: MetadataDocument, *, window: AgeWindow) -> list[str]:
    """Return the names of metadata files that have left a table's log. Raises InvalidTable."""
    logged = [each.metadata_file for each in metadata_of(document.body).metadata_log or ()]
    named = {each.rpartition("/")[2] for each in (document.metadata_location, *logged)}
    oldest = min(iceberg_metadata.version_of(name) for name in named)
    names_found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None or name in named or int(match[1]) >= oldest:
            continue
        if window.since_ms < int(match[2] + match[3], 16) < window.until_ms:
            names_found.append(name)
    return sorted(names_found)[:FILES_MAX]


async def metadata_files_delete(services: NodeServices, node_id: int, *, window: AgeWindow) -> int:
    """Delete old metadata files of a table. Returns how many. Raises StorageFailed, ServiceUnavailable, InvalidTable.

    The directory is listed before the document is read: a file that a commit adds meanwhile has a later version.
    """
    look_up = services.gate.look_up
    before = await look_up(lambda: document_read(node_id))
    files = None if before is None else await maintained_files(services, before)
    if before is None or files is None:
        return 0
    directory = before.metadata_location.rpartition("/")[0]
    names = [entry.name for entry in await files.entries(directory)]
    document = await look_up(lambda: document_read(node_id))
    if document is None or document.metadata_location.rpartition("/")[0] != directory:
        return 0
    old = old_metadata_files(names, document, window=window)
    if not old or await _has_rivals(services, document):
        return 0
    for name in old:
        await files.delete(f"{directory}/{name}")
    DELETED["metadata",] += len(old)
    log.info("old metadata files deleted", table=node_id, count=len(old), first=old[0], last=old[-1])
    return len(old)


async def _has_rivals(services: NodeServices, document: MetadataDocument) -> bool:
    """Return whether another object lies at the table's location, above it or below it."""
    try:
        claims = await services.gate.look_up(lambda: claims_read(document.location))
        key = place_key(document.location)
        near = await services.gate.look_up(lambda: rivals_read(key, but=document.node_id))
    except LimnosError as error:
        log.warning("old metadata files are kept", table=document.node_id, error=error.message)
        return True
    return any(node_id != document.node_id for node_id, _ in claims) or any(
        each.claim.kind not in ROOTS for each in near
    )
