# SPDX-License-Identifier: Apache-2.0
"""Reading an existing metadata file to register its table: checks its content and its paths, and finds out whose the
files at its location are.

Must not know any wire format.
"""

from __future__ import annotations

import time
from typing import NamedTuple, cast

import msgspec

from limnos.files import is_local, is_within, normalise
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.class_properties import refuse_class_properties
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.named_paths import NamedPath, named_paths
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.model.entities import MetadataDocument
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
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX


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
    registrable, paths = await _registrable_table(ctx, data)
    whole = await add_metadata_scheme(ctx.services.offloader, registrable)
    metadata = whole.metadata
    refuse_class_properties(iceberg_metadata.properties_of(metadata))
    document = MetadataDocument(
        node_id=0,
        version=1,
        uuid=cast("str", metadata["table-uuid"]),
        location=place.normal_location(cast("str", metadata["location"]), ""),
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
