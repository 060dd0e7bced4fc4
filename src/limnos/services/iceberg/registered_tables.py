# SPDX-License-Identifier: Apache-2.0
"""Reading an existing metadata file to register its table: checks its content and its paths, and finds out whose the
files at its location are.

Must not know any wire format.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple, cast

import msgspec

from limnos.files import ReadFile, is_local, is_within, normalise
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.class_properties import refuse_class_properties
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.named_paths import NamedPath, named_paths
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError
from limnos.model.uuids import new_uuid
from limnos.services.iceberg.added_files import check_registered_paths
from limnos.services.iceberg.tables import (
    NewMetadata,
    add_metadata_scheme,
    latest_time,
    new_data_paths,
    new_metadata_of,
)
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX

PART_BYTES: Final = 1 << 20
"""The size of a batch of metadata files beyond which it gets no further one."""
CHECKED_AT_ONCE: Final = 3
"""The number of small documents that are checked in one step of the event loop, in half a millisecond."""


class RegisteredTable(NamedTuple):
    """A metadata file that was read to register its table: the document, the decoded metadata (an outline of large
    metadata), and the data locations outside of the table's own.
    """

    document: MetadataDocument
    metadata: Json
    data_paths: tuple[str, ...]
    adopts: bool = False
    """Whether the metadata file is below the table's location, which shows that the files there are the table's."""
    had_files: bool = False
    """Whether files of nobody are at the table's location."""


async def table_read_new(
    ctx: Context, place: CatalogStorage, *, metadata_location: str, replaced: MetadataDocument | None = None
) -> RegisteredTable:
    """Read an existing metadata file, and find out whose the files at the table's location are. Raises as
    `table_read_registered`.
    """
    table = await table_read_registered(ctx, place, metadata_location=metadata_location, replaced=replaced)
    return await _with_owner_of_files(ctx, table, place=place)


async def tables_read_new(
    ctx: Context, place: CatalogStorage, *, locations: Sequence[str]
) -> list[RegisteredTable | None]:
    """Read the metadata files of new tables, in order, as `table_read_new` does; None for one that is refused.

    Local files are read in batches, with one call in a thread for each batch.
    """
    local = [each for each in locations if is_local(each)]
    tables = await _read_local_tables(ctx, place, locations=local)

    async def read(location: str) -> RegisteredTable | None:
        if location in tables:
            return tables[location]
        try:
            return await table_read_new(ctx, place, metadata_location=location)
        except LimnosError:
            return None

    if len(local) == len(locations):
        return [tables[each] for each in locations]
    return await map_concurrently(locations, read, at_once=AT_ONCE)


async def _read_local_tables(
    ctx: Context, place: CatalogStorage, *, locations: Sequence[str]
) -> dict[str, RegisteredTable | None]:
    """Read local metadata files as `tables_read_new` does. Returns the tables by location."""
    tables: dict[str, RegisteredTable | None] = {}
    left: list[str] = []
    for location in locations:
        try:
            place.check(location)
        except LimnosError:
            tables[location] = None
        else:
            left.append(location)
    while left:
        try:
            files = await ctx.services.files.read_each_within(
                left, place.catalog.properties, roots=place.roots, part_bytes=PART_BYTES
            )
        except LimnosError as error:
            files = [error] * len(left)
        for number, (location, file) in enumerate(zip(left, files, strict=False), 1):
            tables[location] = None
            if not isinstance(file, LimnosError):
                with suppress(LimnosError):
                    table = await _table_of(ctx, place, metadata_location=location, file=file, replaced=None)
                    tables[location] = await _with_owner_of_files(ctx, table, place=place)
            if number % CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)  # other requests run in between
        left = left[len(files) :]
    return tables


async def _with_owner_of_files(ctx: Context, table: RegisteredTable, *, place: CatalogStorage) -> RegisteredTable:
    """Find out whose the files at the location of a new table are."""
    document = table.document
    adopts = is_within(document.metadata_location, [document.location])
    had_files = not adopts and await place.has_unclaimed_files(ctx.services.files, document.location)
    return table._replace(adopts=adopts, had_files=had_files)


async def table_read_registered(
    ctx: Context, place: CatalogStorage, *, metadata_location: str, replaced: MetadataDocument | None = None
) -> RegisteredTable:
    """Read an existing metadata file as the document of a new table, or of the table whose document it replaces.

    Raises OutsideRoots, BadRequest for invalid metadata and for paths of files that are not below the table's
    locations, MissingFile.
    """
    place.check(metadata_location)
    data = await ctx.services.files.read_within(metadata_location, place.catalog.properties, place.roots)
    return await _table_of(ctx, place, metadata_location=metadata_location, file=ReadFile(data), replaced=replaced)


async def _table_of(
    ctx: Context,
    place: CatalogStorage,
    *,
    metadata_location: str,
    file: ReadFile,
    replaced: MetadataDocument | None,
) -> RegisteredTable:
    """Check the content of a metadata file, and return the table. Raises as `table_read_registered`."""
    registrable, paths = await _registrable_table(ctx, file.data)
    whole = await add_metadata_scheme(ctx.services.offloader, registrable)
    metadata = whole.metadata
    refuse_class_properties(iceberg_metadata.properties_of(metadata))
    location = cast("str", metadata["location"])
    has_links = file.has_links or not is_within(metadata_location, [location])  # a file's path includes its directory's
    document = MetadataDocument(
        node_id=0,
        version=1,
        uuid=cast("str", metadata["table-uuid"]),
        location=place.normal_location(location, "", has_links=has_links),
        metadata_location=normalise(metadata_location) if is_local(metadata_location) else metadata_location,
        body=iceberg_metadata.encode(metadata) if whole.body is None else whole.body,
    )
    data_paths = new_data_paths(metadata, before=None, place=place)
    await check_registered_paths(ctx, paths, replaced=replaced, places=(document.location, *data_paths), place=place)
    return RegisteredTable(document=document, metadata=metadata, data_paths=data_paths)


async def _registrable_table(ctx: Context, data: bytes) -> tuple[NewMetadata, list[NamedPath]]:
    """Check the content of a metadata file, and return it, with a new uuid if it has none, and the paths in it. Raises
    BadRequest.
    """
    uuid, latest_ms = new_uuid(time.time_ns() // 1_000_000), latest_time(ctx)
    if len(data) > REQUEST_BYTES_MAX or iceberg_metadata.is_packed(data):
        *parts, paths = await ctx.services.offloader.do("iceberg-register", data, b"%b %d" % (uuid.encode(), latest_ms))
        return new_metadata_of(parts), msgspec.json.decode(paths, type=list[NamedPath])
    metadata = iceberg_metadata.decode(data)
    check_registrable(metadata, latest_ms=latest_ms)
    return NewMetadata(iceberg_metadata.with_uuid(metadata, uuid)), named_paths(metadata)
