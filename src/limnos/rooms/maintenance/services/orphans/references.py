# SPDX-License-Identifier: Apache-2.0
"""References: lists the files that a table's metadata names, and finds other tables whose metadata names a table's
files.

Must not know the use of the lists. Manifests are read in the server's file threads and decoded by offloaded work, in
parts of bounded size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from limnos.files import place_key
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, InvalidTable, MissingFile, OutsideRoots
from limnos.model.kinds import Kind
from limnos.rooms.maintenance.formats.orphans import TableReferences
from limnos.rooms.maintenance.services.table_storage import MaintainedFiles, maintained_files
from limnos.services.request.node_services import ComponentKey, NodeServices
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX, InlineOffloader
from limnos.store.activity.orphan_files import documents_after
from limnos.store.objects.documents import document_read
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
MANIFEST_BYTES_MAX: Final = 256 << 20
"""The maximum size of a manifest or manifest list that is read, in bytes."""
_PART_BYTES: Final = 4 << 20
_PAGE: Final = 64
_KNOWN_MAX: Final = 500_000


class ReferencedFiles(NamedTuple):
    """The files that a table's metadata references and that must exist, and the references of the document itself."""

    references: TableReferences
    files: tuple[str, ...]


async def _offload(services: NodeServices, work: str, *parts: bytes) -> bytes:
    is_small = sum(map(len, parts)) <= REQUEST_BYTES_MAX
    offloader = InlineOffloader() if is_small else services.offloader
    (text,) = await offloader.do(work, *parts)
    return text


async def document_references(services: NodeServices, document: MetadataDocument) -> TableReferences:
    """List the files that a metadata document itself names, without reading them. Raises InvalidTable if it cannot be
    parsed.
    """
    text = await _offload(services, "maintenance-references", document.body)
    return msgspec.json.decode(text, type=TableReferences)


async def referenced_files_read(
    services: NodeServices, files: MaintainedFiles, *, document: MetadataDocument
) -> ReferencedFiles:
    """List all files that a table's metadata names: the files of all snapshots, manifests and statistics.

    Raises:
        OutsideRoots: A manifest or manifest list lies outside of the table's locations.
        MissingFile: A manifest or manifest list is missing.
        InvalidTable: The document, a manifest or a manifest list cannot be parsed.
        TooLarge: A manifest or manifest list is too large.
        StorageFailed: The storage refuses or fails.
        ServiceUnavailable: The storage does not answer.
    """
    references = await document_references(services, document)
    locations = dict.fromkeys([document.metadata_location, *references.files, *references.manifest_lists])
    manifests = dict.fromkeys(references.manifests)
    reader = files.reader(bytes_max=MANIFEST_BYTES_MAX)
    async for part in reader.read_parts(references.manifest_lists, part_bytes=_PART_BYTES):
        text = await _offload(services, "maintenance-manifest-paths", *part)
        manifests |= dict.fromkeys(msgspec.json.decode(text, type=list[str]))
    locations |= manifests
    async for part in reader.read_parts(list(manifests), part_bytes=_PART_BYTES):
        text = await _offload(services, "maintenance-referenced-files", *part)
        locations |= dict.fromkeys(msgspec.json.decode(text, type=list[str]))
    return ReferencedFiles(references, tuple(locations))


# ------------------------------------------------------------------------------------------- other tables


class ForeignReferences:
    """Finds tables whose metadata names files below other tables' locations.

    A manifest never changes. So a manifest that names only files of its own table is read once.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    async def find(self, services: NodeServices, locations: Mapping[int, str]) -> dict[int, int]:
        """Map the id of each table with files that another table references to the id of one such table. Tables in the
        trash are included.

        Args:
            services: The node's services.
            locations: The locations of the tables, by id.

        Raises:
            TooLarge: A manifest or manifest list is too large.
            StorageFailed: The storage refuses or fails.
            ServiceUnavailable: The storage does not answer.
        """
        prefixes = {node_id: f"{place_key(each)}/" for node_id, each in locations.items()}
        references_by_table: dict[int, int] = {}
        after = 0
        while ids := await services.gate.look_up(
            lambda after=after: documents_after(after, kind=int(Kind.TABLE), limit=_PAGE)  # type: ignore[misc]
        ):
            for node_id in ids:
                for owner_id in await self._of_table(services, node_id, prefixes=prefixes):
                    references_by_table.setdefault(owner_id, node_id)
            after = ids[-1]
        return references_by_table

    async def _of_table(self, services: NodeServices, node_id: int, *, prefixes: Mapping[int, str]) -> set[int]:
        """Return the other tables whose locations contain files that a table's metadata names."""
        document = await services.gate.look_up(lambda: document_read(node_id))
        files = None if document is None else await maintained_files(services, document)
        if document is None or files is None:
            return set()
        look = _TableScan(files, own=f"{place_key(document.location)}/", prefixes=prefixes, known=self._known)
        try:
            await look.run(services, document)
        except (InvalidTable, MissingFile, OutsideRoots) as error:
            log.info("a table cannot be read for its references", table=node_id, error=error.message)
        if len(self._known) > _KNOWN_MAX:
            self._known.clear()
        return look.found - {node_id}


class _TableScan:
    """The scan of one table's metadata for files below other tables' locations."""

    def __init__(self, files: MaintainedFiles, *, own: str, prefixes: Mapping[int, str], known: set[bytes]) -> None:
        self.files = files
        self.own = own
        self.prefixes = prefixes
        self.known = known
        self.found: set[int] = set()

    async def run(self, services: NodeServices, document: MetadataDocument) -> None:
        """Scan a document, its manifest lists and manifests."""
        references = await document_references(services, document)
        self._all_own([*references.files, *references.metadata_log])
        manifests = dict.fromkeys(references.manifests)
        self._all_own(references.manifest_lists)
        for location in references.manifest_lists:
            manifests |= dict.fromkeys(await self._names(services, "maintenance-manifest-paths", location=location))
        for location in manifests:
            await self._names(services, "maintenance-referenced-files", location=location)

    async def _names(self, services: NodeServices, work: str, *, location: str) -> list[str]:
        """Return the locations in a manifest or manifest list; none for a manifest of which an earlier scan found that
        it names only files of its own table.

        A file that cannot be read yields no locations: the table's readers cannot read it either.
        """
        digest = blake2b(f"{self.own} {location}".encode(), digest_size=16).digest()
        if digest in self.known:
            return []
        try:
            data = await self.files.read_anywhere(location, bytes_max=MANIFEST_BYTES_MAX)
            names = msgspec.json.decode(await _offload(services, work, data), type=list[str])
        except (InvalidTable, MissingFile, OutsideRoots) as error:
            log.info("a manifest cannot be read", location=location, error=error.message)
            return []
        if self._all_own(names) and work == "maintenance-referenced-files":
            self.known.add(digest)
        return names

    def _all_own(self, locations: Sequence[str]) -> bool:
        """Record the other tables whose locations contain some of the files.

        Returns whether all files lie below this table's own location.
        """
        is_own = True
        for location in locations:
            try:
                key = place_key(location)
            except BadRequest:
                is_own = False
                continue
            if not key.startswith(self.own):
                is_own = False
                self.found |= {node_id for node_id, prefix in self.prefixes.items() if key.startswith(prefix)}
        return is_own


FOREIGN_REFERENCES: ComponentKey[ForeignReferences] = ComponentKey("foreign references", lambda _: ForeignReferences())
