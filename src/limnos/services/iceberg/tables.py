# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables: build a new table's metadata, stage it, and write its file.

Must not know any wire format. Operations on tables of any format (find, load, list, drop, move) are in
`services.catalog.tables`; commits are in `services.iceberg.commits`, and registered metadata files in
`services.iceberg.registrations`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import check_size, is_local, is_within, normalise
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.create import new_table
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.offloaded import CreateTerms
from limnos.model.entities import MetadataDocument
from limnos.model.errors import AlreadyExists, BadRequest, MissingFile, OutsideRoots
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_taken_error
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.model.uuids import new_uuid
from limnos.names.path import Levels
from limnos.services.catalog.tables import (
    NewTable,
    StagedLocation,
    TableCreate,
    new_table_of,
    table_insert,
    table_stage_claim,
)
from limnos.services.iceberg.added_files import check_directories
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import WorkOffloader, is_heavy
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced
from limnos.services.vending.credentials import VendedCredentials, new_table_credentials

OWN_KEYS_MS: Final = 86_400_000
"""How long a location that the server chose is kept for a staged create, in milliseconds. Clients with keys of their
own may write for longer than vended credentials live.
"""


class TableRequest(NamedTuple):
    """A client's request to create a table; schema, partition spec and other parts are JSON values as the client sent
    them.
    """

    name: str
    location: str | None
    schema: object
    partition_spec: object
    write_order: object
    properties: object
    raw: bytes | None = None
    """The body of a large request, decoded only by offloaded work; the parts are then None."""
    delegates: bool = False
    """Whether the client requests credentials for the table's files."""


class TableRegisterRequest(NamedTuple):
    """The request to register a table by the location of its metadata file."""

    metadata_location: str


class NewMetadata(NamedTuple):
    """New metadata. If offloaded work built it, `metadata` is an outline and `body` its bytes."""

    metadata: Json
    body: bytes | None = None
    packed: bytes = b""


def new_metadata_of(parts: list[bytes]) -> NewMetadata:
    """Decode the result of offloaded work: outline, bytes, compressed bytes."""
    return NewMetadata(msgspec.json.decode(parts[0]), *parts[1:])


def file_to_verify(ctx: Context, document: MetadataDocument) -> str | None:
    """Return the location of the metadata file to check before the response is sent; None if the setting disables the
    check.
    """
    mode, location = ctx.services.defaults.verify_metadata_file, document.metadata_location
    return None if mode == "never" or (mode == "local" and not is_local(location)) else location


async def table_verify(ctx: Context, document: MetadataDocument, catalog: CatalogRecord) -> None:
    """Check that a table's metadata file still exists, if the setting enables the check. Raises MissingFile,
    StorageFailed, ServiceUnavailable.
    """
    location = file_to_verify(ctx, document)
    if location is None:
        return
    files = ctx.services.files
    exists = (
        files.exists_now(location)
        if is_local(location)
        else await files.exists(location, ctx.services.defaults.storages.usable(catalog.properties))
    )
    if not exists:
        raise MissingFile(f"Failed to open input stream for file: {location}")


async def refs_only_body(ctx: Context, document: MetadataDocument) -> bytes:
    """Return a table's metadata with only the snapshots that references point to."""
    if is_heavy(document):
        (reduced,) = await ctx.services.offloader.do("iceberg-refs-only", document.body)
        return reduced
    return iceberg_metadata.encode(iceberg_metadata.refs_only(iceberg_metadata.decode(document.body)))


async def table_stage(
    ctx: Context, scope: RequestScope, *, namespace: Levels, request: TableRequest
) -> tuple[bytes, VendedCredentials | None]:
    """Build the metadata of a table that a later commit will create. Nothing is stored but a claim of its location, if
    the catalog gives keys.

    Returns the metadata and, if requested, credentials to write the table's files. Creates the directories of a local
    location, since clients write files before that commit and not all of them create directories. Without the commit
    the directories stay empty. Raises as `table_create`.
    """

    def look(request_view: RequestView) -> NewTable:
        draft = new_table_of(request_view, namespace, request.name, Action.TABLE_CREATE)
        path = (*namespace, request.name)
        other, _ = request_view.find(path, Kind.TABLE)  # a staged create runs no mutation that would check the name
        if other is not None:
            raise name_taken_error(path, kind=Kind.TABLE, holder=other.kind.word)
        return draft

    draft = await ctx.read(scope, look)
    new_metadata = await add_metadata_scheme(ctx.services.offloader, await build_metadata(ctx, request, draft))
    document, _ = document_of(new_metadata, previous=None, node_id=0, place=draft.place)
    new_data_paths(new_metadata.metadata, before=None, place=draft.place)
    vended = await _claim_staged(ctx, scope, request=request, draft=draft, look=look, location=document.location)
    ctx.services.files.prepare(document.location)
    return document.body, vended


async def _claim_staged(
    ctx: Context,
    scope: RequestScope,
    *,
    request: TableRequest,
    draft: NewTable,
    look: Callable[[RequestView], NewTable],
    location: str,
) -> VendedCredentials | None:
    """Claim the location of a staged create for the caller, if the catalog gives keys. Returns the credentials that the
    client requested; None if it requested none, or files are there.

    The claim lasts as long as the credentials. Without them it lasts as long as others would, or a day where the server
    chose the location.
    """
    catalog_storage = draft.place
    life_ms = catalog_storage.keys_life_ms(location)
    if not life_ms:
        return None
    is_chosen = request.location is not None
    had_files = is_chosen and await catalog_storage.has_unclaimed_files(ctx.services.files, location)
    vended = (
        await new_table_credentials(ctx, location, place=catalog_storage)
        if request.delegates and not had_files
        else None
    )
    now_ms = ctx.services.store.time.now_ms()
    until = now_ms + (life_ms if is_chosen else max(life_ms, OWN_KEYS_MS))
    if vended is not None:
        until = max(until, vended.credentials.expires_ms)
    command = StagedLocation(draft.namespace, location, until, had_files)
    await ctx.write(
        scope,
        lambda request_view: look(request_view).permit.about(command),
        table_stage_claim,
        first=draft.permit.about(command),
    )
    return vended


async def table_create(
    ctx: Context, scope: RequestScope, *, namespace: Levels, request: TableRequest, draft: NewTable | None = None
) -> tuple[MetadataDocument, CatalogRecord]:
    """Create a table with its first metadata file.

    Raises NotFound (the namespace), AlreadyExists, BadRequest (invalid metadata), OutsideRoots (the location),
    PermissionDenied.

    `draft` is the decision, if the caller has already made it.
    """
    if draft is None:
        draft = await new_table_read(ctx, scope, namespace, request.name)
    new_metadata = await build_metadata(ctx, request, draft)
    return await table_make(
        ctx,
        scope,
        namespace=namespace,
        name=request.name,
        whole=new_metadata,
        draft=draft,
        delegates=request.delegates,
        is_chosen=request.location is not None,
    )


async def new_table_read(ctx: Context, scope: RequestScope, namespace: Levels, name: str) -> NewTable:
    """Decide on creating a table, before its metadata is built. Raises as `new_table_of`."""
    return await ctx.read(scope, lambda request_view: new_table_of(request_view, namespace, name, Action.TABLE_CREATE))


async def new_table_located(
    ctx: Context, scope: RequestScope, *, path_of: Callable[[RequestView], Levels]
) -> tuple[Levels, NewTable | None]:
    """Decide on creating a table whose path depends on the catalog's name codec, before the rest of the request is
    read.

    Returns the path and the decision; None for a catalog of an external system, where the connector decides. Raises as
    `new_table_of`.
    """

    def look(request_view: RequestView) -> tuple[Levels, NewTable | None]:
        path = path_of(request_view)
        return path, None if is_sourced(request_view) else new_table_of(
            request_view, path[:-1], path[-1], Action.TABLE_CREATE
        )

    return await ctx.read(scope, look)


async def build_metadata(ctx: Context, request: TableRequest, draft: NewTable) -> NewMetadata:
    """Build a new table's metadata.

    Without a location in the request the table gets a unique one. Raises BadRequest if a part is invalid.
    """
    now_ms = ctx.services.store.time.now_ms()
    table_uuid = new_uuid(now_ms)
    location = draft.own_location(table_uuid) if request.location is None else request.location
    if not location:
        raise BadRequest("Field 'location' is empty: give a location, or leave it out to get one")
    if request.raw is not None:
        terms = msgspec.json.encode(CreateTerms(table_uuid, now_ms, location))
        return new_metadata_of(await ctx.services.offloader.do("iceberg-create", request.raw, terms))
    metadata = new_table(
        uuid=table_uuid,
        location=location,
        schema=request.schema,
        partition_spec=request.partition_spec,
        write_order=request.write_order,
        properties=request.properties,
        now_ms=now_ms,
    )
    return NewMetadata(metadata)


async def table_make(
    ctx: Context,
    scope: RequestScope,
    *,
    namespace: Levels,
    name: str,
    whole: NewMetadata,
    draft: NewTable,
    delegates: bool = False,
    is_chosen: bool = True,
) -> tuple[MetadataDocument, CatalogRecord]:
    """Write a new table's metadata file and create the table; if the creation fails, the file is deleted. Raises as
    `table_create`.

    Args:
        ctx: The request.
        scope: The catalog.
        namespace: The levels of the table's namespace.
        name: The table's name.
        whole: The metadata of the table.
        draft: The decision on the table.
        delegates: Whether the client requests credentials. If the server cannot vend them, no table is created.
        is_chosen: Whether the client chose the location, so that files may be there.

    Returns:
        The table's document, and its catalog's record.
    """
    whole = await add_metadata_scheme(ctx.services.offloader, whole)
    catalog = draft.place.catalog
    document, data = document_of(whole, previous=None, node_id=0, place=draft.place)
    if delegates:
        await new_table_credentials(ctx, document.location, place=draft.place)

    paths = new_data_paths(whole.metadata, before=None, place=draft.place)
    had_files = is_chosen and await draft.place.has_unclaimed_files(ctx.services.files, document.location)

    def decide(request_view: RequestView) -> Permit[TableCreate]:
        again = new_table_of(request_view, namespace, name, Action.TABLE_CREATE)
        return again.command(name, document, data_paths=paths, had_files=had_files)

    async with ctx.services.files.written_file(document.metadata_location, data, catalog.properties, first=True):
        first = draft.command(name, document, data_paths=paths, had_files=had_files)
        metadata_document = await insert_table(ctx, scope, decide=decide, path=(*namespace, name), first=first)
    return metadata_document, catalog


async def insert_table(
    ctx: Context,
    scope: RequestScope,
    *,
    decide: Callable[[RequestView], Permit[TableCreate]],
    path: Levels,
    first: Permit[TableCreate] | None = None,
) -> MetadataDocument:
    """Decide on and insert the table. Raises AlreadyExists with the whole path if the name is taken."""
    try:
        return await ctx.write(scope, decide, table_insert, first=first)
    except AlreadyExists as error:
        raise name_taken_error(path, kind=Kind.TABLE, holder=error.kind) from None


def add_location_scheme(metadata: Json) -> Json:
    """Return the metadata with a `file:` scheme on a bare local path; the same object if the location has a scheme."""
    location = metadata["location"]
    if not isinstance(location, str) or not location.startswith("/"):
        return metadata
    return {**metadata, "location": normalise(location)}


async def add_metadata_scheme(offloader: WorkOffloader, whole: NewMetadata) -> NewMetadata:
    """Add the `file:` scheme as `add_location_scheme` does, to metadata that offloaded work may have built."""
    location = whole.metadata["location"]
    if not isinstance(location, str) or not location.startswith("/"):
        return whole
    metadata = add_location_scheme(whole.metadata)
    if whole.body is None:
        return NewMetadata(metadata)
    return NewMetadata(
        metadata, *await offloader.do("iceberg-relocate", whole.body, str(metadata["location"]).encode())
    )


def document_of(
    whole: NewMetadata,
    *,
    previous: MetadataDocument | None,
    node_id: int,
    place: CatalogStorage,
    before: Json | None = None,
) -> tuple[MetadataDocument, bytes]:
    """Build the document of new metadata, with a new file name, and the content of the file.

    A location is checked only if the metadata changes it.

    Args:
        whole: The new metadata.
        previous: The document that it replaces; None for a new table or view.
        node_id: The id of the table or view; 0 for a new one.
        place: The catalog's storage.
        before: The metadata that the commit was built on, or an outline of it.

    Raises:
        OutsideRoots: A new location is outside of the catalog's roots.
        BadRequest: A new location, or a directory of metadata or data files, is not allowed.
    """
    metadata = whole.metadata
    check_directories(metadata, before=before)
    version = iceberg_metadata.version_of(None if previous is None else previous.metadata_location) + 1
    packs = iceberg_metadata.wants_gzip(metadata)
    table_uuid, location = _uuid_of(metadata), cast("str", metadata["location"])
    stays = previous is not None and location == previous.location
    name = location if stays else place.normal_location(location, table_uuid)
    directory, file_uuid = _directory(metadata, before), new_uuid(time.time_ns() // 1_000_000)
    document = MetadataDocument(
        node_id=node_id,
        version=1 if previous is None else previous.version + 1,
        uuid=table_uuid,
        location=name,
        metadata_location=f"{directory}/{iceberg_metadata.file_name(version, uuid=file_uuid, gzip=packs)}",
        body=iceberg_metadata.encode(metadata) if whole.body is None else whole.body,
    )
    return document, (whole.packed or iceberg_metadata.pack(document.body)) if packs else document.body


def new_data_paths(metadata: Json, *, before: Json | None, place: CatalogStorage) -> tuple[str, ...]:
    """Return the data locations in a table's properties that are outside of its own location and not in `before`.

    Locations that are in `before` are not checked again. Raises BadRequest for a location that is not allowed.
    """
    data_paths = iceberg_metadata.outside_paths(metadata)
    if not data_paths:
        return ()
    earlier = {} if before is None else iceberg_metadata.outside_paths(before)
    location, names = cast("str", metadata["location"]), []
    for key, path in data_paths.items():
        if earlier.get(key) == path:
            continue
        try:
            normal = place.normal_location(path, "")
        except (BadRequest, OutsideRoots) as error:
            raise BadRequest(f"Property '{key}' of the table: {error.message}") from error
        if not is_within(normal, [location]):
            names.append(normal)
    return tuple(dict.fromkeys(names))


def _uuid_of(metadata: Json) -> str:
    """Return the uuid in the metadata of a table or view."""
    return cast("str", metadata["view-uuid" if "view-uuid" in metadata else "table-uuid"])


def _directory(metadata: Json, before: Json | None) -> str:
    """Return the directory of metadata files. It is always below the table's location, where files belong to the table.

    Raises BadRequest if the commit sets a directory that is not below the location. Such a directory from an earlier
    release is ignored.
    """
    location = cast("str", metadata["location"])
    default = f"{iceberg_metadata.strip_slash(location)}/metadata"
    if not iceberg_metadata.stated_path(metadata):
        return default
    directory = iceberg_metadata.metadata_directory(metadata)
    if directory == default:
        return directory
    check_size(directory)
    if is_within(directory, [location]):
        return directory
    if (
        before is not None
        and iceberg_metadata.stated_path(before) == iceberg_metadata.stated_path(metadata)
        and (before["location"] == location or not is_within(directory, [cast("str", before["location"])]))
    ):
        return default
    raise BadRequest(
        f"Property '{iceberg_metadata.METADATA_PATH}' is {directory}, which is not below the location {location}: "
        "remove the property, or choose a directory below the location"
    )


def latest_time(ctx: Context) -> int:
    """Return the latest timestamp that clients' metadata may contain, in milliseconds since 1970."""
    return ctx.services.store.time.now_ms() + ctx.services.defaults.clock_ahead_ms
