# SPDX-License-Identifier: Apache-2.0
"""Table files: the one way by which the server reads files that a table's metadata names, within bounds. It notices if
they change while a statement reads them.

Must not know any wire format. Only files in the table's own locations (its location, earlier locations, and data paths)
are opened or checked. The writer of a manifest must not learn about files elsewhere, and errors name no file. Decision
record 0179.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.files import FileVersion
from limnos.formats.iceberg.current_files import is_plainly_below
from limnos.formats.iceberg.file_lists import FilePage, ListedManifest, page_request
from limnos.formats.iceberg.named_paths import NamedPath
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, LockLost, MissingFile, OutsideRoots
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.concurrency.last_used import LastUsed
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey, NodeServices
from limnos.services.storage.table_locations import TableLocations, prefixes_of
from limnos.store.objects.storage_locations import own_locations_read
from limnos.telemetry.logs import get_logger

T = TypeVar("T")
log = get_logger("limnos.table_files")
OUTSIDE: Final = (
    "a snapshot of the table names files outside of the table's locations, and the server reads none of these: set the"
    " table's property write.data.path to the directory of the data files, point its branch main at another snapshot,"
    " or write the rows again below the table's location"
)
MANIFEST_BYTES_MAX: Final = 64 << 20
"""The maximum size of a manifest list or manifest that a check of a table reads, in bytes."""
OPERATIONS_MAX: Final = 4_096
"""The maximum number of operations whose loaded snapshots a node remembers."""
PATHS_AT_ONCE: Final = 200
"""The number of paths that are compared before other requests have a turn."""


class TableFiles:
    """Reads one table's files, and nothing outside its locations."""

    def __init__(
        self,
        services: NodeServices,
        place: CatalogStorage,
        *,
        places: Iterable[str],
        document: MetadataDocument | None = None,
        bytes_max: int = MANIFEST_BYTES_MAX,
    ) -> None:
        """Prepare a reader.

        Args:
            services: The node's services.
            place: The storage of the table's catalog.
            places: Locations of the table.
            document: The document of a table whose further locations are read from the register once a file is not
                below `places`; None if `places` are all locations.
            bytes_max: The maximum size of a file that is read, in bytes.
        """
        self._services, self._place, self._bytes_max = services, place, bytes_max
        self._document = document
        self.locations = TableLocations(places, place.allowed)

    def covers(self, location: str) -> bool:
        """Return whether a file is in one of the table's known locations, and in storage that the server may read."""
        return self.locations.covers(location)

    async def widen(self) -> None:
        """Add the locations that the register gives the table; no-op if they are known."""
        if self._document is not None:
            locations = await own_locations(self._services, self._document)
            self._document = None
            self.locations = TableLocations((*self.locations.roots, *locations), self._place.allowed)

    async def require(self, paths: Iterable[str]) -> None:
        """Require that all files are in the table's locations. Raises OutsideRoots, which names no file."""
        outside = [path for path in paths if not self.covers(path)]
        if outside and self._document is not None:
            await self.widen()
            outside = [path for path in outside if not self.covers(path)]
        if outside:
            log.warning(
                "a table names files outside of its locations", locations=self.locations.roots[:3], file=outside[0]
            )
            raise OutsideRoots(OUTSIDE)

    async def manifests(self, location: str) -> tuple[tuple[ListedManifest, ...], int]:
        """Read a manifest list. Returns its manifests, and its length in bytes. Raises MissingFile, OutsideRoots,
        TooLarge, InvalidTable.
        """
        data = await self.read(location)
        (result,) = await self._services.offloader.do("iceberg-manifests", data)
        return msgspec.json.decode(result, type=tuple[ListedManifest, ...]), len(data)

    async def page(self, location: str, *, only_added: bool, skip: int, limit: int) -> tuple[FilePage, int]:
        """Read some files of a manifest.

        Args:
            location: The location of the manifest.
            only_added: Whether to list only files that the manifest's snapshot added.
            skip: The number of files to skip.
            limit: The maximum number of files to list.

        Returns:
            The files, and the length of the manifest in bytes.

        Raises:
            MissingFile: The manifest does not exist.
            OutsideRoots: It lies outside of the table's locations.
            TooLarge: It is too large.
            InvalidTable: It is not a manifest.
        """
        data = await self.read(location)
        requested = page_request(only_added=only_added, skip=skip, limit=limit)
        (result,) = await self._services.offloader.do("iceberg-files", data, requested)
        return msgspec.json.decode(result, type=FilePage), len(data)

    async def size(self, location: str) -> int | None:
        """Return the length of a file in bytes; None if it does not exist. Raises OutsideRoots."""
        await self.require((location,))
        return await self._services.files.size(location, self._place.catalog.properties, roots=self.locations.roots)

    async def read(self, location: str, *, bytes_max: int | None = None) -> bytes:
        """Read a manifest list or a manifest of at most `bytes_max` bytes, by default the reader's maximum.

        Raises MissingFile, OutsideRoots, TooLarge, StorageFailed.
        """
        await self.require((location,))
        (data,) = await self._read_first([location], bytes_max=bytes_max or self._bytes_max, part_bytes=0)
        return data

    async def read_parts(self, locations: Sequence[str], *, part_bytes: int) -> AsyncIterator[list[bytes]]:
        """Read files of the table, and yield them in order, in parts of a bounded size.

        Args:
            locations: The files.
            part_bytes: A part that exceeds this size gets no further file.

        Raises:
            OutsideRoots: A file is outside of the table's locations, by its name or by a link.
            MissingFile: A file is missing.
            TooLarge: A file is larger than the reader's maximum.
            StorageFailed: The storage refuses or fails.
            ServiceUnavailable: The storage does not answer.
        """
        await self.require(locations)
        bytes_read = 0
        while bytes_read < len(locations):
            part = await self._read_first(locations[bytes_read:], bytes_max=self._bytes_max, part_bytes=part_bytes)
            bytes_read += len(part)
            yield part

    async def _read_first(self, locations: Sequence[str], *, bytes_max: int, part_bytes: int) -> list[bytes]:
        """Read the first of some files in the table's locations. Raises as `read_parts`."""
        properties, roots = self._place.catalog.properties, self.locations.roots
        try:
            return await self._services.files.read_first_within(
                locations, properties, roots=roots, bytes_max=bytes_max, part_bytes=part_bytes
            )
        except MissingFile as error:
            if "leads_to" in error.context:
                raise OutsideRoots(OUTSIDE) from error
            raise


def table_files(
    services: NodeServices, document: MetadataDocument, *, place: CatalogStorage, bytes_max: int = MANIFEST_BYTES_MAX
) -> TableFiles:
    """Return a reader of a table's files in all of its locations: its own, and those that the register gives it."""
    return TableFiles(services, place, places=(document.location,), document=document, bytes_max=bytes_max)


async def own_locations(services: NodeServices, document: MetadataDocument) -> tuple[str, ...]:
    """Return a table's locations: its own, and those that the register has for it without conflicts."""
    locations = await services.gate.look_up(partial(own_locations_read, document.node_id))
    return (document.location, *[each.location for each in locations if not each.claim.is_conflicting])


def are_plainly_own(paths: Iterable[NamedPath], *, document: MetadataDocument, place: CatalogStorage) -> bool:
    """Return whether all paths are in a usual spelling below the table's own location. False does not mean that one
    lies elsewhere.
    """
    prefixes = prefixes_of(document.location, place.allowed)
    return not [each for each in paths if not is_plainly_below(each.path, prefixes)]


async def refuse_foreign_paths(
    ctx: Context,
    paths: Sequence[NamedPath],
    *,
    document: MetadataDocument | None,
    places: Iterable[str],
    place: CatalogStorage,
) -> None:
    """Check that paths which a change adds to a table's document are below its locations, as strings.

    Args:
        ctx: The request.
        paths: The paths.
        document: The table's document before the change, which has further locations; None for a new table.
        places: The locations that the change sets. The caller checks them by the rules of locations.
        place: The storage of the table's catalog.

    Raises:
        BadRequest: A path is elsewhere, or malformed.
    """
    own = (*places, *(() if document is None else (document.location,)))
    locations = TableLocations(own, place.allowed)
    foreign = await _first_foreign(paths, locations)
    if foreign is not None and document is not None:
        locations = TableLocations((*own, *await own_locations(ctx.services, document)), place.allowed)
        foreign = await _first_foreign(paths, locations)
    if foreign is not None:
        raise BadRequest(
            f"The {foreign.what} is {foreign.path[:1000]}, which is not below a location of the table"
            f" ({', '.join(locations.roots[:3]) or 'chosen by the server'}): write the file there and name that file,"
            " or remove the snapshot or entry that names it"
        )


async def _first_foreign(paths: Sequence[NamedPath], locations: TableLocations) -> NamedPath | None:
    for number, each in enumerate(paths, 1):
        if not locations.covers(each.path):
            return each
        if number % PATHS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return None


class CheckedSnapshot(NamedTuple):
    """The manifest lists and manifests of a snapshot that were checked, with their versions at that time."""

    roots: tuple[str, ...]
    """The table's locations, which are part of the versions of files on this machine."""
    place: CatalogStorage
    versions: Mapping[str, FileVersion]

    async def is_unchanged(self, ctx: Context) -> bool:
        """Return whether all these files are still the checked ones. Raises StorageFailed, ServiceUnavailable."""
        current = await versions_of(ctx, list(self.versions), roots=self.roots, place=self.place)
        return current == self.versions


async def versions_of(
    ctx: Context, locations: Sequence[str], *, roots: Sequence[str], place: CatalogStorage
) -> dict[str, FileVersion | None]:
    """Return the versions of a table's files; None for a missing one. Raises StorageFailed, ServiceUnavailable."""
    return await ctx.services.files.versions(locations, place.catalog.properties, roots=roots)


class StatementFiles:
    """The checked snapshots that the running statements of a process read, by the token of the statement's lock, and
    those that operations of maintenance have loaded from it, by the id of the operation's token.

    The engine commits over HTTP to the process that started it, with the token, so they are in the memory of that one.
    An executor on another machine may commit to another process, which then compares nothing.
    """

    def __init__(self) -> None:
        self._by_lock: dict[int, tuple[CheckedSnapshot, ...]] = {}
        self._by_operation: LastUsed[int, tuple[CheckedSnapshot, ...]] = LastUsed(OPERATIONS_MAX)

    def record_loaded(self, token_id: int, snapshots: tuple[CheckedSnapshot, ...]) -> None:
        """Compare the files of these snapshots before each commit with an operation's token, too."""
        before = self._by_operation.get(token_id) or ()
        self._by_operation.put(token_id, (*before, *[each for each in snapshots if each not in before]))

    async def require_unchanged_for_operation(self, ctx: Context, token_id: int) -> None:
        """Check the files that an operation of maintenance has loaded, before it commits.

        Raises BadRequest if one was replaced, StorageFailed, ServiceUnavailable.
        """
        if not await are_unchanged(ctx, self._by_operation.get(token_id) or ()):
            raise BadRequest("Files of the table were replaced while the operation read them: it is not committed")

    @contextmanager
    def of_lock(self, token: int | None, snapshots: tuple[CheckedSnapshot, ...]) -> Iterator[None]:
        """Compare the files of these snapshots before each commit with a lock's token, while the block runs; no-op
        without a token.
        """
        if token is None:
            yield
            return
        self._by_lock[token] = snapshots
        try:
            yield
        finally:
            self._by_lock.pop(token, None)

    async def require_unchanged(self, ctx: Context, token: int) -> None:
        """Check the files that a statement has read, before it commits.

        Raises BadRequest if one was replaced, LockLost if this process runs no statement with the lock, StorageFailed,
        ServiceUnavailable.
        """
        snapshots = self._by_lock.get(token)
        if snapshots is None:
            raise LockLost(
                "The statement doesn't hold its lock any more; nothing was changed: run it again", token=token
            )
        if not await are_unchanged(ctx, snapshots):
            raise BadRequest(
                "Files of a table were replaced while the statement read them, so it is not committed: run it again"
            )


async def are_unchanged(ctx: Context, snapshots: tuple[CheckedSnapshot, ...]) -> bool:
    """Return whether no manifest list or manifest was replaced after its check. Raises StorageFailed,
    ServiceUnavailable.
    """
    return all([await each.is_unchanged(ctx) for each in snapshots])


STATEMENT_FILES: ComponentKey[StatementFiles] = ComponentKey("files of statements", lambda _: StatementFiles())
