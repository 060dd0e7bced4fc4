# SPDX-License-Identifier: Apache-2.0
"""Files of one table, for maintenance. Files are listed and deleted only below the table's own location, and read as
files of the table only by `TableFiles`. To find other tables' references, any file within the catalog's roots is read.

Must not know operations. The server reads with the catalog's own keys, and follows no symbolic link out of these
locations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limnos.files import LOCAL_FILES, is_local, is_within, real_path, store_for
from limnos.files.entries import FileEntry
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, OutsideRoots
from limnos.model.records import CatalogRecord
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_within
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import Heartbeat
from limnos.services.storage.table_files import TableFiles, table_files
from limnos.store.faults import ORPHAN_POINT, fault_point
from limnos.store.objects.node_reads import node_read, zones_of_read
from limnos.store.sql import Load


class MaintainedFiles:
    """Reads, lists and deletes the files of a table below its location."""

    def __init__(self, services: NodeServices, place: CatalogStorage, *, document: MetadataDocument) -> None:
        self.location = document.location
        self._services, self._document = services, document
        self._files, self._place = services.files, place
        self._own = TableFiles(services, place, places=(document.location,))

    def reader(self, *, bytes_max: int) -> TableFiles:
        """Return a reader of files that the table's metadata names, of at most `bytes_max` bytes each."""
        return table_files(self._services, self._document, place=self._place, bytes_max=bytes_max)

    def may_read(self, location: str) -> bool:
        """Return whether a file lies within the roots of the table's catalog, inside or outside of the table's
        location.
        """
        try:
            return is_within(location, self._place.roots) and self._place.allowed.covers(location)
        except BadRequest:
            return False

    async def read_anywhere(self, location: str, *, bytes_max: int) -> bytes:
        """Read a file within the catalog's roots, to find references that protect files of other tables.

        The caller gets no content of it. Raises OutsideRoots, MissingFile, TooLarge, StorageFailed.
        """
        if not self.may_read(location):
            raise OutsideRoots(f"File {location} is outside of the catalog's roots")
        return await self._files.read_within(
            location, self._place.catalog.properties, self._place.roots, bytes_max=bytes_max
        )

    def covers(self, location: str) -> bool:
        """Return whether a file lies below the table's own location, where the server may read."""
        return self._own.covers(location)

    async def entries(self, location: str) -> list[FileEntry]:
        """List the files directly in a directory of the table; empty if it lies elsewhere, or links lead out of it."""
        if not self.covers(f"{location}/"):
            return []
        return await self._files.entries(location, self._place.catalog.properties, roots=(self.location,))

    def all_entries(self, beat: Heartbeat) -> list[FileEntry]:
        """List all files below the table's location, by name below it. Blocks.

        Links are omitted and not followed. Raises StorageFailed, ServiceUnavailable.
        """
        properties = self._place.catalog.properties
        self._place.allowed.check_use(properties)
        entries = store_for(self.location, properties).entries(self.location, deep=True)
        beat(len(entries))
        return entries

    def refuse_links(self, directories: Iterable[str]) -> None:
        """Check that no link leads from the table's location to the given directories below it. Blocks.

        Raises OutsideRoots. Links above the table's location are not checked.
        """
        if is_local(self.location):
            home = real_path(self.location)
            for directory in directories:
                if real_path(f"{self.location}/{directory}") != f"{home}/{directory}":
                    raise OutsideRoots(f"Directory {directory} of the table is a symbolic link out of its location")

    def delete_unchanged(self, files: Sequence[tuple[str, int, int]], beat: Heartbeat) -> list[str]:
        """Delete files by name below the table's location. Blocks. Returns the names of files that no longer exist.

        Args:
            files: The name of each file, and the length and modification time that a local file must still have.
            beat: Called after each file.

        Raises:
            OutsideRoots: A directory is a symbolic link out of the table's location.
            StorageFailed: The storage refuses or fails.
            ServiceUnavailable: The storage does not answer.
        """
        properties = self._place.catalog.properties
        self._place.allowed.check_use(properties)
        deleted: list[str] = []
        for name, size, modified_ms in files:
            location = f"{self.location}/{name}"
            if not self.covers(location):
                raise OutsideRoots(f"File {location} is outside of the table's location")
            if is_local(location):
                self.refuse_links([name.rpartition("/")[0]])
                identity = LOCAL_FILES.identity_of(location)
                if identity is not None and (
                    not identity.is_file or (identity.size, identity.modified_ns // 1_000_000) != (size, modified_ms)
                ):
                    continue
            store_for(location, properties).delete(location)
            deleted.append(name)
            fault_point(ORPHAN_POINT)
            beat(len(deleted))
        return deleted

    async def delete(self, location: str) -> None:
        """Delete a file of the table. Raises OutsideRoots, StorageFailed, ServiceUnavailable."""
        if not self.covers(location):
            raise OutsideRoots(f"File {location} is outside of the table's location")
        properties = self._place.catalog.properties
        await self._files.run_in_thread(
            location, properties=properties, call=lambda: store_for(location, properties).delete(location)
        )


async def maintained_files(services: NodeServices, document: MetadataDocument) -> MaintainedFiles | None:
    """Return access to a table's files; None if its catalog no longer exists, or its location conflicts with another
    object's.
    """
    place = await table_place(services, document)
    return None if place is None else MaintainedFiles(services, place, document=document)


async def table_place(services: NodeServices, document: MetadataDocument) -> CatalogStorage | None:
    """Return the storage of a table's catalog; None if the catalog no longer exists, or the table's location conflicts
    with another object's.
    """
    if document.node_id in services.defaults.location_conflicts.ids:
        return None
    node = await services.gate.look_up(lambda: _catalog_read(document.node_id))
    if node is None or not isinstance(node.record, CatalogRecord):
        return None
    return catalog_storage_within(
        node.record,
        f"{services.defaults.warehouse}/{node.id}",
        services.defaults.allowed,
        storages=services.defaults.storages,
    )


def _catalog_read(node_id: int) -> Load[Node | None]:
    """Read the catalog of a table, which may be in the trash; None if the catalog no longer exists."""
    catalog_id = (yield from zones_of_read([node_id])).get(node_id)
    return None if catalog_id is None else (yield from node_read(catalog_id))
