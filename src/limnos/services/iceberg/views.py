# SPDX-License-Identifier: Apache-2.0
"""Iceberg views: build a new view's metadata and write its file, replace a view, and register an existing metadata
file.

Must not know any wire format. Operations on views of any format are in `services.catalog.views`. As for tables, a
replace writes a new metadata file, then replaces the document by compare-and-swap. The file is deleted if the replace
has failed, and kept if its outcome is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local, normalise
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg import view_metadata, view_updates
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.offloaded import CommitTerms, CreateTerms
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_taken_error
from limnos.model.permits import Permit
from limnos.model.records import ViewRecord
from limnos.model.storage_locations import LocationKind
from limnos.model.uuids import new_uuid
from limnos.names.path import Levels
from limnos.services.catalog.tables import NewTable
from limnos.services.catalog.views import ViewCreate, ViewState, new_view_of, view_find, view_insert, writer_of
from limnos.services.iceberg.tables import NewMetadata, add_metadata_scheme, document_of, latest_time, new_metadata_of
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX, is_heavy
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_claims import location_move, locations_lock
from limnos.store.tx import Tx

PATIENCE_S = 300.0
"""The time for which a replace without a deadline is retried, in seconds."""


class ViewRequest(NamedTuple):
    """A client's request to create a view; the view version and other parts are JSON values as the client sent them."""

    name: str
    location: str | None
    schema: Json
    version: Json
    properties: object
    raw: bytes | None = None
    """The body of a large request, decoded only by offloaded work; the parts are then empty."""


class ViewReplace(msgspec.Struct, frozen=True, kw_only=True):
    """The command to replace a view's document if no other replace has changed it, and record the definer, who wrote
    its text.
    """

    view: Node
    document: MetadataDocument | None
    """The new document; None if only the writer changes."""
    expected: int
    relocates: bool
    record: ViewRecord | None
    used: tuple[int, ...] | None = None
    """The ids of the objects to which the new text refers; None if unknown."""


class ViewReplaceBase(NamedTuple):
    """The document and storage from which a replace builds a view's new metadata."""

    permit: Permit[None]
    view: Node
    document: MetadataDocument
    place: CatalogStorage
    writer_id: int
    used: tuple[int, ...] | None


class ViewReplaceRequest(NamedTuple):
    """A request to replace a view.

    `raw` is the body of a large request; the other parts are then empty. `needs` finds the objects that the view's text
    refers to.
    """

    namespace: Levels
    name: str
    requirements: list[object]
    updates: list[object]
    raw: bytes | None = None
    needs: Callable[[RequestView], tuple[int, ...]] | None = None

    def find_references(self, request_view: RequestView) -> tuple[int, ...] | None:
        """Return the ids of the objects that the view's new text refers to; None if unknown."""
        return None if self.needs is None else self.needs(request_view)


class _LostReplaceRace(Exception):
    """Raised on a conflict with another replace; the caller rebuilds the metadata on the result of that replace."""


async def view_create(ctx: Context, scope: RequestScope, *, namespace: Levels, request: ViewRequest) -> ViewState:
    """Create a view with its first metadata file.

    Raises NotFound (the namespace), AlreadyExists, BadRequest (invalid metadata), OutsideRoots (the location),
    PermissionDenied.
    """
    draft = await ctx.read(scope, lambda request_view: new_view_of(request_view, namespace, request.name))
    new_metadata = await add_metadata_scheme(ctx.services.offloader, await view_build(ctx, request, draft))
    document, data = document_of(new_metadata, previous=None, node_id=0, place=draft.place)
    metadata_file = ctx.services.files.written_file(
        document.metadata_location, data, draft.place.catalog.properties, first=True
    )
    async with metadata_file:
        return await _insert(ctx, scope, (*namespace, request.name), document)


async def view_build(ctx: Context, request: ViewRequest, draft: NewTable) -> NewMetadata:
    """Build a new view's metadata. Without a location in the request the view gets a unique one. Raises BadRequest if a
    part is invalid.
    """
    now_ms, ahead_ms = ctx.services.store.time.now_ms(), ctx.services.defaults.clock_ahead_ms
    uuid = new_uuid(now_ms)
    location = draft.own_location(uuid) if request.location is None else request.location
    if not location:
        raise BadRequest("Field 'location' is empty: give a location, or leave it out to get one")
    if request.raw is not None:
        terms = msgspec.json.encode(CreateTerms(uuid, now_ms, location, ahead_ms))
        return new_metadata_of(await ctx.services.offloader.do("iceberg-view-create", request.raw, terms))
    metadata = view_updates.new_view(
        uuid=uuid,
        location=location,
        schema=request.schema,
        version=request.version,
        properties=request.properties,
        now_ms=now_ms,
        ahead_ms=ahead_ms,
    )
    return NewMetadata(metadata)


async def _insert(ctx: Context, scope: RequestScope, path: Levels, document: MetadataDocument) -> ViewState:
    def decide(request_view: RequestView) -> Permit[ViewCreate]:
        draft = new_view_of(request_view, path[:-1], path[-1])
        record = ViewRecord(None, {}, writer_of(request_view))
        return draft.permit.about(
            ViewCreate(
                namespace=draft.namespace,
                name=path[-1],
                space=draft.space,
                document=document,
                owner_id=draft.owner_id,
                record=record,
            )
        )

    try:
        return await ctx.write(scope, decide, view_insert)
    except AlreadyExists as error:
        raise name_taken_error(path, kind=Kind.VIEW, holder=error.kind) from None


async def view_register(
    ctx: Context, scope: RequestScope, *, namespace: Levels, name: str, metadata_location: str
) -> ViewState:
    """Create a view from an existing metadata file.

    Raises NotFound, AlreadyExists, OutsideRoots, BadRequest for invalid metadata, MissingFile, PermissionDenied.
    """
    draft = await ctx.read(scope, lambda request_view: new_view_of(request_view, namespace, name))
    document = await view_read_registered(ctx, draft.place, metadata_location=metadata_location)
    return await _insert(ctx, scope, (*namespace, name), document)


async def view_read_registered(ctx: Context, place: CatalogStorage, *, metadata_location: str) -> MetadataDocument:
    """Read an existing metadata file as the document of a new view. Raises OutsideRoots, BadRequest for invalid
    metadata, MissingFile.
    """
    place.check(metadata_location)
    data = await ctx.services.files.read_within(metadata_location, place.catalog.properties, place.roots)
    new_metadata = await add_metadata_scheme(ctx.services.offloader, await _registrable_view(ctx, data))
    metadata = new_metadata.metadata
    return MetadataDocument(
        node_id=0,
        version=1,
        uuid=cast("str", metadata["view-uuid"]),
        location=place.normal_location(cast("str", metadata["location"]), ""),
        metadata_location=normalise(metadata_location) if is_local(metadata_location) else metadata_location,
        body=iceberg_metadata.encode(metadata) if new_metadata.body is None else new_metadata.body,
    )


async def _registrable_view(ctx: Context, data: bytes) -> NewMetadata:
    latest_ms = latest_time(ctx)
    if len(data) > REQUEST_BYTES_MAX or iceberg_metadata.is_packed(data):
        return new_metadata_of(await ctx.services.offloader.do("iceberg-view-register", data, b"%d" % latest_ms))
    metadata = iceberg_metadata.decode(data)
    view_metadata.check_registrable(metadata, latest_ms=latest_ms)
    return NewMetadata(metadata)


async def view_replace(ctx: Context, scope: RequestScope, request: ViewReplaceRequest) -> ViewState:
    """Apply updates to a view.

    Raises CommitConflict (a requirement failed, or too many conflicts), BadRequest (invalid updates), NotFound,
    PermissionDenied.

    After a conflict the new metadata is built again from the result of the other replace, since requirements only check
    the view's UUID.
    """

    def look(request_view: RequestView) -> ViewReplaceBase:
        node, _, decision = view_find(request_view, request.namespace, request.name, Action.VIEW_ALTER)
        permit = request_view.permit(None, decision)
        return ViewReplaceBase(
            permit=permit,
            view=node,
            document=request_view.document(node.id),
            place=catalog_storage_of(request_view),
            writer_id=writer_of(request_view),
            used=request.find_references(request_view),
        )

    base = await ctx.read(scope, look)
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    async with ctx.services.lines.turn(base.view.id):
        while loop.time() < until:
            base = await ctx.read(scope, look)
            try:
                return await _replace(ctx, scope, request, base)
            except _LostReplaceRace:
                await asyncio.sleep(0)
    raise CommitConflict("Cannot commit: too many replaces of this view at once; read it again and retry")


async def view_edit(ctx: Context, scope: RequestScope, *, path: Levels, edits: PropertyEdits) -> ViewState:
    """Set and remove properties of a view, whose comment is the property `comment`. Raises as `view_replace`."""
    sets = dict(edits.sets) | ({} if edits.comment is None else {"comment": edits.comment})
    removes = [*edits.removes, *(("comment",) if edits.clears_comment else ())]
    updates: list[object] = [{"action": "set-properties", "updates": sets}] if sets else []
    updates += [{"action": "remove-properties", "removals": removes}] if removes else []
    request = ViewReplaceRequest(namespace=path[:-1], name=path[-1], requirements=[], updates=updates)
    return await view_replace(ctx, scope, request)


async def _replace(ctx: Context, scope: RequestScope, request: ViewReplaceRequest, base: ViewReplaceBase) -> ViewState:
    """Make one attempt: rebuild the view's metadata, then replace the stored document. Raises _LostReplaceRace if
    another replace came first.
    """
    old_and_new, writes_text = await view_rebuild(ctx, request, base.document)
    adopted = view_record_for_writer(base.view, base.writer_id) if writes_text else None
    if old_and_new is None:
        if adopted is None and base.used is None:
            return ViewState(base.view, base.document)
        return await _swap(
            ctx,
            scope,
            request,
            base,
            ViewReplace(
                view=base.view,
                document=None,
                expected=base.document.version,
                relocates=False,
                record=adopted,
                used=base.used,
            ),
        )
    old, new_metadata = old_and_new[0], await add_metadata_scheme(ctx.services.offloader, old_and_new[1])
    document, data = document_of(
        new_metadata, previous=base.document, node_id=base.view.id, place=base.place, before=old
    )
    relocates = document.location != base.document.location
    command = ViewReplace(
        view=base.view,
        document=document,
        expected=base.document.version,
        relocates=relocates,
        record=adopted,
        used=base.used,
    )
    async with ctx.services.files.written_file(document.metadata_location, data, base.place.catalog.properties):
        return await _swap(ctx, scope, request, base, command)


def view_record_for_writer(view: Node, writer_id: int) -> ViewRecord | None:
    """Return the view's record with a new definer, who wrote its text; None if the definer is unchanged."""
    record = cast("ViewRecord", view.record)
    adopted = replace(record, writer_id=writer_id)
    return adopted if adopted != record else None


async def view_rebuild(
    ctx: Context, request: ViewReplaceRequest, document: MetadataDocument
) -> tuple[tuple[Json, NewMetadata] | None, bool]:
    """Build the new metadata, None if nothing changes, and return whether the updates change the view's SQL text.

    Large changes run as offloaded work, which can be cancelled.
    """
    now_ms, ahead_ms = ctx.services.store.time.now_ms(), ctx.services.defaults.clock_ahead_ms
    if request.raw is None and not is_heavy(document):
        base = iceberg_metadata.decode(document.body)
        view_updates.check(base, request.requirements)
        new = view_updates.apply(base, request.updates, now_ms=now_ms, ahead_ms=ahead_ms)
        return None if new is base else (base, NewMetadata(new)), view_updates.writes_text(request.updates)
    raw = request.raw or msgspec.json.encode({"requirements": request.requirements, "updates": request.updates})
    terms = msgspec.json.encode(CommitTerms(document.uuid, now_ms, document.metadata_location, ahead_ms))
    data, *parts = await ctx.services.offloader.do("iceberg-view-commit", document.body, raw, terms)
    return (msgspec.json.decode(parts[0]), new_metadata_of(parts[1:])) if parts else None, data == b"text"


async def _swap(
    ctx: Context, scope: RequestScope, request: ViewReplaceRequest, base: ViewReplaceBase, command: ViewReplace
) -> ViewState:
    """Replace the view's document by compare-and-swap.

    If only access rules changed concurrently, the new metadata is still valid, and access is decided again.
    """

    def decide(request_view: RequestView) -> Permit[ViewReplace]:
        node, _, decision = view_find(request_view, request.namespace, request.name, Action.VIEW_ALTER)
        now = request_view.document(node.id)
        if (
            ViewReplaceBase(
                permit=base.permit,
                view=node,
                document=now,
                place=catalog_storage_of(request_view),
                writer_id=writer_of(request_view),
                used=request.find_references(request_view),
            )
            != base
        ):
            raise _LostReplaceRace
        return request_view.permit(command, decision)

    node = await ctx.write(scope, decide, view_swap, first=base.permit.about(command))
    return ViewState(node, command.document or base.document)


def view_swap(tx: Tx, permit: Permit[ViewReplace]) -> Node:
    """Replace the view's document by compare-and-swap, and return the view.

    Raises StalePermit if the view was moved or another replace came first.
    """
    command = permit.command
    if command.document is not None and command.relocates:
        locations_lock(tx, documents=(command.document,))
    if command.document is None:
        node = tx.nodes.confirm(command.view)
        current = tx.documents.read(node.id)
        if current is None or current.version != command.expected:
            tx.stale()
    elif not tx.documents.swap(
        command.document, expected=command.expected, relocates=command.relocates, table=command.view
    ):
        tx.stale()
    else:
        if command.relocates:
            location_move(
                tx,
                LocationKind.VIEW,
                owner_id=command.view.id,
                catalog_id=permit.zone,
                location=command.document.location,
            )
        tx.nodes.add_commit_change(command.view)
    if command.used is not None:
        tx.dependencies.replace(command.view.id, command.used)
    if command.record is None:
        return command.view
    tx.nodes.write_record(command.view, command.record)
    return tx.nodes.by_id(command.view.id)
