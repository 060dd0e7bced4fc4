# SPDX-License-Identifier: Apache-2.0
"""Registering tables: creates a table from an existing metadata file, or replaces the metadata of an existing table.

Must not know any wire format. `tables` builds and checks new metadata.
"""

from __future__ import annotations

import time
from typing import NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local, is_within, normalise
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.class_properties import refuse_class_properties
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.named_paths import NamedPath, named_paths
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import CommitConflict, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.model.storage_locations import LocationKind
from limnos.model.uuids import new_uuid
from limnos.names.path import Levels
from limnos.services.catalog.tables import TableCreate, new_table_of, table_find
from limnos.services.iceberg import tables
from limnos.services.iceberg.added_files import check_registered_paths
from limnos.services.iceberg.dataset_fence import DatasetGuard, check_dataset_commit, dataset_guard_of
from limnos.services.iceberg.former_columns import EndedNames, ended_names_of, restrictions_follow
from limnos.services.iceberg.snapshot_pins import pins_check, removed_snapshots
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_claims import location_move, locations_claim, locations_lock
from limnos.store.tx import Tx


class TableReplace(msgspec.Struct, frozen=True, kw_only=True):
    """The command to point an existing table at another metadata file (register with overwrite)."""

    table: Node
    document: MetadataDocument
    expected: int
    removed: frozenset[int] = frozenset()
    """The snapshots of the table that the new metadata does not contain."""
    data_paths: tuple[str, ...] = ()
    ended: EndedNames = ()
    """Columns that it renames or drops."""
    had_files: bool = False
    """Whether its new location has files of nobody."""
    adopts: bool = False
    """Whether the new metadata's table existed before, at this location."""


class RegisteredTable(NamedTuple):
    """A metadata file that was read to register its table: the document, the decoded metadata (an outline of large
    metadata), and the data locations outside of the table's own.
    """

    document: MetadataDocument
    metadata: Json
    data_paths: tuple[str, ...]


async def table_register(
    ctx: Context, scope: RequestScope, *, namespace: Levels, name: str, metadata_location: str, overwrite: bool
) -> tuple[MetadataDocument, CatalogRecord]:
    """Create a table from an existing metadata file; with `overwrite` point an existing table at it.

    Raises NotFound, AlreadyExists without `overwrite`, CommitConflict, BadRequest for invalid metadata, OutsideRoots,
    MissingFile, PermissionDenied; for an existing table also ProtectedObject, OutsideWriter (a dataset of SQL++), and
    ServiceUnavailable while its orphan files are being deleted.
    """

    def look(request_view: RequestView) -> tuple[CatalogStorage, MetadataDocument | None, DatasetGuard | None]:
        node, chain = request_view.find((*namespace, name), Kind.TABLE)
        if node is not None and node.kind is Kind.TABLE and overwrite:
            request_view.require_in_use()
            if not request_view.decide(Action.TABLE_DROP, chain).allowed:
                # The refusal must not reveal that the name is taken.
                request_view.require(Action.TABLE_REGISTER, chain[1:])
            request_view.require(Action.TABLE_DROP, chain)
            guard, _ = dataset_guard_of(request_view, node, chain=chain, path=(*namespace, name))
            return catalog_storage_of(request_view), request_view.document(node.id), guard
        return new_table_of(request_view, namespace, name, Action.TABLE_REGISTER).place, None, None

    place, replaced, guard = await ctx.read(scope, look)
    document, metadata, paths = await table_read_registered(
        ctx, place, metadata_location=metadata_location, replaced=replaced
    )
    # A metadata file below the location shows that the files there are the registered table's.
    adopts = is_within(document.metadata_location, [document.location])
    had_files = not adopts and await place.has_unclaimed_files(ctx.services.files, document.location)
    if replaced is not None:
        document = msgspec.structs.replace(document, node_id=replaced.node_id, version=replaced.version + 1)
        if guard is not None:
            check_dataset_commit(guard, None, before=iceberg_metadata.decode(replaced.body), after=metadata)

    def decide(request_view: RequestView) -> Permit[TableCreate]:
        return new_table_of(request_view, namespace, name, Action.TABLE_REGISTER).command(
            name, document, data_paths=paths, had_files=had_files, adopts=adopts
        )

    def decide_again(request_view: RequestView) -> Permit[TableReplace]:
        node, _, decision = table_find(request_view, namespace, name, Action.TABLE_DROP)
        current = request_view.document(node.id)
        if replaced is not None and (node.id != replaced.node_id or (guard is not None and current != replaced)):
            raise CommitConflict("The table was changed concurrently: read it again and retry")
        after = msgspec.structs.replace(document, node_id=node.id, version=current.version + 1)
        command = TableReplace(
            table=node,
            document=after,
            expected=current.version,
            removed=removed_snapshots(current.body, after.body) if ctx.services.defaults.keep_pinned else frozenset(),
            data_paths=paths,
            ended=ended_names_of(current.body, after.body),
            had_files=had_files,
            adopts=adopts,
        )
        return request_view.permit(command, decision)

    if replaced is None:
        return await tables.insert_table(ctx, scope, decide=decide, path=(*namespace, name)), place.catalog
    return await ctx.write(scope, decide_again, table_replace), place.catalog


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
    whole = await tables.add_metadata_scheme(ctx.services.offloader, registrable)
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
    data_paths = tables.new_data_paths(metadata, before=None, place=place)
    await check_registered_paths(ctx, paths, replaced=replaced, places=(document.location, *data_paths), place=place)
    return RegisteredTable(document, metadata, data_paths)


async def _registrable_table(ctx: Context, data: bytes) -> tuple[tables.NewMetadata, list[NamedPath]]:
    """Check the content of a metadata file, and return it, with a new uuid if it has none, and the paths in it. Raises
    BadRequest.
    """
    uuid, latest_ms = new_uuid(time.time_ns() // 1_000_000), tables.latest_time(ctx)
    if len(data) > REQUEST_BYTES_MAX or iceberg_metadata.is_packed(data):
        *parts, paths = await ctx.services.offloader.do("iceberg-register", data, b"%b %d" % (uuid.encode(), latest_ms))
        return tables.new_metadata_of(parts), msgspec.json.decode(paths, type=list[NamedPath])
    metadata = iceberg_metadata.decode(data)
    check_registrable(metadata, latest_ms=latest_ms)
    return tables.NewMetadata(iceberg_metadata.with_uuid(metadata, uuid)), named_paths(metadata)


def table_replace(tx: Tx, permit: Permit[TableReplace]) -> MetadataDocument:
    """Replace the table's document by compare-and-swap, and its registered locations.

    Raises StalePermit if another commit came first, ProtectedObject, CommitConflict (a pinned snapshot),
    ServiceUnavailable while orphan files of the table are being deleted.
    """
    command = permit.command
    node = tx.nodes.confirm(command.table)
    tx.protection.refuse(node)
    if tx.orphan_files.is_removing(node.id):
        raise ServiceUnavailable("Orphan files of the table are being deleted: try again in a few minutes")
    locations_lock(tx, documents=(command.document,), locations=command.data_paths)
    if not tx.documents.swap(command.document, expected=command.expected):
        tx.stale()
    pins_check(tx, command.table.id, removed=command.removed)
    location_move(
        tx,
        LocationKind.TABLE,
        owner_id=node.id,
        catalog_id=permit.zone,
        location=command.document.location,
        had_files=command.had_files,
        adopts=command.adopts,
    )
    if command.data_paths:
        locations_claim(
            tx,
            LocationKind.DATA_PATH,
            owner_id=node.id,
            catalog_id=permit.zone,
            locations=command.data_paths,
            adopts=command.adopts,
        )
    restrictions_follow(tx, node, ended=command.ended)
    tx.nodes.committed(node)
    return command.document
