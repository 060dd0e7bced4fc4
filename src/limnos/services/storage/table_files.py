"""Table files: reads a table's manifest lists and manifests, and the sizes of its files, within bounds, and notices if
they change while a statement reads them.

May import the layers below and `formats.iceberg`. Must not know any wire format. Only files in the table's own
locations (its location, earlier locations, and data paths) are opened or checked. The writer of a manifest must not
learn about files elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.files import FileVersion
from limnos.formats.iceberg.current_files import is_plainly_below
from limnos.formats.iceberg.file_lists import FilePage, ListedManifest, page_request
from limnos.formats.iceberg.named_paths import NamedPath
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, MissingFile, OutsideRoots
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.storage.table_locations import TableLocations, prefixes_of
from limnos.store.objects.storage_locations import own_locations_read

T = TypeVar("T")
MANIFEST_BYTES_MAX: Final = 64 << 20
"""The maximum size of a manifest list or manifest that a check of a table reads, in bytes."""
PATHS_AT_ONCE: Final = 200
"""The number of paths that are compared before other requests have a turn."""


class TableFiles:
    """Reads one table's files, and nothing outside its locations."""

    def __init__(
        self, ctx: Context, place: CatalogStorage, *, places: Iterable[str], bytes_max: int = MANIFEST_BYTES_MAX
    ) -> None:
        self._files, self._offloader = ctx.services.files, ctx.services.offloader
        self._place, self._bytes_max = place, bytes_max
        self.locations = TableLocations(places, place.allowed)

    def covers(self, location: str) -> bool:
        """Return whether a file is in one of the table's locations, and in storage that the server may read."""
        return self.locations.covers(location)

    async def manifests(self, location: str) -> tuple[tuple[ListedManifest, ...], int]:
        """Read a manifest list. Returns its manifests, and its length in bytes. Raises MissingFile, OutsideRoots,
        TooLarge, InvalidTable.
        """
        data = await self.read(location)
        (result,) = await self._offloader.do("iceberg-manifests", data)
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
        (result,) = await self._offloader.do("iceberg-files", data, requested)
        return msgspec.json.decode(result, type=FilePage), len(data)

    async def size(self, location: str) -> int | None:
        """Return the length of a file in bytes; None if it does not exist. Raises OutsideRoots."""
        if not self.covers(location):
            raise _outside_error(location)
        return await self._files.size(location, self._place.catalog.properties, roots=self.locations.roots)

    async def read(self, location: str) -> bytes:
        """Read a manifest list or a manifest. Raises MissingFile, OutsideRoots, TooLarge, StorageFailed."""
        if not self.covers(location):
            raise _outside_error(location)
        try:
            return await self._files.read_within(
                location, self._place.catalog.properties, self.locations.roots, bytes_max=self._bytes_max
            )
        except MissingFile as error:
            if "leads_to" in error.context:
                raise _outside_error(location) from error
            raise


def _outside_error(location: str) -> OutsideRoots:
    return OutsideRoots(f"File {location} is outside of the table's location and data paths")


async def own_locations(ctx: Context, document: MetadataDocument) -> tuple[str, ...]:
    """Return a table's locations: its own, and those that the register has for it without conflicts."""
    locations = await ctx.look_up(partial(own_locations_read, document.node_id))
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
        locations = TableLocations((*own, *await own_locations(ctx, document)), place.allowed)
        foreign = await _first_foreign(paths, locations)
    if foreign is not None:
        raise BadRequest(
            f"The {foreign.what} is {foreign.path[:1000]}, which is not below a location of the table "
            f"({', '.join(locations.roots[:3]) or 'chosen by the server'}): write the file there and name that file, or "
            "remove the snapshot or entry that names it"
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

    root: str
    """The table's location, which is part of the versions of files on this machine."""
    place: CatalogStorage
    versions: Mapping[str, FileVersion]

    async def is_unchanged(self, ctx: Context) -> bool:
        """Return whether all these files are still the checked ones. Raises StorageFailed, ServiceUnavailable."""
        current = await versions_of(ctx, list(self.versions), root=self.root, place=self.place)
        return current == self.versions


async def versions_of(
    ctx: Context, locations: Sequence[str], *, root: str, place: CatalogStorage
) -> dict[str, FileVersion | None]:
    """Return the versions of a table's files; None for a missing one. Raises StorageFailed, ServiceUnavailable."""
    return await ctx.services.files.versions(locations, place.catalog.properties, root=root)


class StatementFiles:
    """The checked snapshots that the running statements of a node read, by the token of the statement's lock.

    The engine commits over HTTP to its own node, with the token, so they are in the memory of the node.
    """

    def __init__(self) -> None:
        self._by_lock: dict[int, tuple[CheckedSnapshot, ...]] = {}

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

        Raises BadRequest if one was replaced, StorageFailed, ServiceUnavailable.
        """
        if not await are_unchanged(ctx, self._by_lock.get(token, ())):
            raise BadRequest(
                "Files of a table were replaced while the statement read them, so it is not committed: run it again"
            )


async def are_unchanged(ctx: Context, snapshots: tuple[CheckedSnapshot, ...]) -> bool:
    """Return whether no manifest list or manifest was replaced after its check. Raises StorageFailed,
    ServiceUnavailable.
    """
    return all([await each.is_unchanged(ctx) for each in snapshots])


STATEMENT_FILES: ComponentKey[StatementFiles] = ComponentKey("files of statements", lambda _: StatementFiles())
