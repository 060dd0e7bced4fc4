"""Files of one table, as maintenance reads, lists and deletes them: below the table's own location alone.

May import the rooms below. Must not know operations. The server reads with the catalog's own keys, and follows no
symbolic link out of the table's location.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.files import place_key
from limnos.model.errors import BadRequest, OutsideRoots
from limnos.model.records import CatalogRecord
from limnos.services.request.catalog_storage import catalog_storage_within
from limnos.store.objects.nodes import node_read, zones_of_read

if TYPE_CHECKING:
    from limnos.files.entries import FileEntry
    from limnos.model.entities import MetadataDocument
    from limnos.services.request.catalog_storage import CatalogStorage
    from limnos.services.request.node_services import NodeServices


class MaintainedFiles:
    """The files of a table below its location."""

    def __init__(self, services: NodeServices, place: CatalogStorage, *, location: str) -> None:
        self.location = location
        self._files, self._place = services.files, place
        self._key = f"{place_key(location)}/"

    def covers(self, location: str) -> bool:
        """Return whether a file lies below the table's location, where the server may look."""
        try:
            return place_key(location).startswith(self._key) and self._place.allowed.covers(location)
        except BadRequest:
            return False

    async def entries(self, location: str) -> list[FileEntry]:
        """List the files directly in a directory of the table; none if it lies elsewhere, or links lead out of it."""
        if not self.covers(f"{location}/"):
            return []
        return await self._files.entries(location, self._place.catalog.properties, roots=(self.location,))

    async def delete(self, location: str) -> None:
        """Delete a file of the table. Raises OutsideRoots. A failure of the storage is only logged."""
        if not self.covers(location):
            raise OutsideRoots(f"File {location} lies outside of the table's location")
        await self._files.delete(location, self._place.catalog.properties)

    async def read(self, location: str, *, bytes_max: int) -> bytes:
        """Read a file of the table. Raises OutsideRoots, MissingFile, TooLarge, StorageFailed."""
        if not self.covers(location):
            raise OutsideRoots(f"File {location} lies outside of the table's location")
        return await self._files.read_within(
            location, self._place.catalog.properties, (self.location,), bytes_max=bytes_max
        )


async def maintained_files(services: NodeServices, document: MetadataDocument) -> MaintainedFiles | None:
    """Return a table's files; None if its catalog is gone, or its location conflicts with another object's."""
    if document.node_id in services.defaults.location_conflicts.ids:
        return None
    zones = await services.gate.look_up(lambda: zones_of_read([document.node_id]))
    catalog_id = zones.get(document.node_id)
    node = None if catalog_id is None else await services.gate.look_up(lambda: node_read(catalog_id))
    if node is None or not isinstance(node.record, CatalogRecord):
        return None
    place = catalog_storage_within(
        node.record, f"{services.defaults.warehouse}/{catalog_id}", services.defaults.allowed,
        storages=services.defaults.storages,
    )  # fmt: skip
    return MaintainedFiles(services, place, location=document.location)
