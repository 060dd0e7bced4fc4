"""Iceberg tables: find, load, list, create, drop, rename and move, register. Commits are in `services.commits`.

May import the rooms below. Knows no wire format. A missing table answers NotFound to whoever could load it if it were
there, or works with tables or views beside it; Forbidden to everyone else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import normalise
from limnos.formats.iceberg import metadata as documents
from limnos.formats.iceberg.create import new_table
from limnos.model.decisions import Link
from limnos.model.entities import Document, Node
from limnos.model.errors import AlreadyExists, BadRequest, MissingFile, NotFound
from limnos.model.kinds import Kind
from limnos.model.records import BLANK_TABLE, CatalogRecord
from limnos.model.uuids import new_uuid
from limnos.names.iceberg import render
from limnos.names.parts import check_levels
from limnos.services.namespaces import not_found, parent_of
from limnos.services.pages import EVERY, Asked, Page, page_of
from limnos.services.places import Place, is_local, place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.formats.iceberg.json_types import Json
    from limnos.model.decisions import Chain
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene, Scope
    from limnos.store.tx import Tx

PURGE = "purge-table"


class TableRequest(NamedTuple):
    """What a client asks for when it makes a table; the parts are JSON as it sent them."""

    name: str
    location: str | None
    schema: object
    partition_spec: object
    write_order: object
    properties: object


class TableCreate(msgspec.Struct, frozen=True):
    """Make a table with its document."""

    namespace: Node
    name: str
    space: str
    document: Document
    owner_id: int | None


class TableDrop(msgspec.Struct, frozen=True):
    """Drop a table; with `purge` a task that deletes its files commits with it."""

    table: Node
    purge: str | None


class TableMove(msgspec.Struct, frozen=True):
    """Give a table another name, or another namespace."""

    table: Node
    into: Node
    name: str


class TableReplace(msgspec.Struct, frozen=True):
    """Point an existing table at other metadata (register with overwrite)."""

    table: Node
    document: Document
    expected: int


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def no_table(namespace: Levels, name: str) -> NotFound:
    """Say that a table does not exist."""
    return NotFound(f"Table does not exist: {render((*namespace, name))}", kind="table")


def table_find(scene: Scene, namespace: Levels, name: str, action: Action) -> tuple[Node, Chain]:
    """Return a table if the caller may do the action to it. Raises NotFound, Forbidden."""
    scene.require_in_use()
    node, chain = scene.find((*namespace, name), Kind.TABLE)
    if node is None or node.kind is not Kind.TABLE:
        absent = (Link.absent(Kind.TABLE, name), *chain)
        decision = scene.decide(action, absent)
        if decision.allowed or scene.decide(Action.TABLE_MAY_PROBE, absent).allowed:
            raise no_table(namespace, name)
        raise scene.refusal(decision)
    scene.require(action, chain)
    return node, chain


def table_exists(scene: Scene, namespace: Levels, name: str) -> None:
    """Return if the table exists. Raises NotFound, Forbidden."""
    table_find(scene, namespace, name, Action.TABLE_EXISTS)


def table_load(scene: Scene, namespace: Levels, name: str) -> Document:
    """Return a table's document. Raises MissingFile when its local metadata file has vanished."""
    node, _ = table_find(scene, namespace, name, Action.TABLE_LOAD)
    return scene.document(node.id)


def tables_list(scene: Scene, namespace: Levels, asked: Asked = EVERY) -> Page:
    """Return a page of what the caller sees of a namespace's tables."""
    scene.require_in_use()
    node, chain = scene.find(namespace, Kind.NAMESPACE)
    if node is None:
        scene.require(Action.TABLE_LIST, (Link.absent(Kind.NAMESPACE, namespace[-1]), *chain))
        raise not_found(namespace)
    scene.require(Action.TABLE_LIST, chain)
    return page_of(scene, Action.TABLE_LIST, Kind.TABLE, chain, asked)


async def table_verify(ctx: Context, document: Document, catalog: CatalogRecord) -> None:
    """Notice that a metadata file has vanished, as far as the setting asks for it. Raises MissingFile."""
    mode = ctx.services.defaults.verify_metadata_file
    local = is_local(document.metadata_location)
    if mode == "never" or (mode == "local" and not local):
        return
    files = ctx.services.files
    there = files.exists_now(document.metadata_location) if local else await files.exists(
        document.metadata_location, catalog.properties
    )  # fmt: skip
    if not there:
        raise MissingFile(f"Failed to open input stream for file: {document.metadata_location}")


class Draft(NamedTuple):
    """A table about to be made: permission to make it, and where its files go."""

    permit: Permit[None]
    namespace: Node
    space: str
    owner_id: int | None
    place: Place

    def command(self, name: str, document: Document) -> Permit[TableCreate]:
        """Return the permission to make just this table."""
        return self.permit.about(TableCreate(self.namespace, name, self.space, document, self.owner_id))


def draft_of(scene: Scene, namespace: Levels, name: str, action: Action) -> Draft:
    """Decide on making a table. Raises NotFound (namespace), AlreadyExists (a table or view has the name)."""
    scene.require_in_use()
    check_levels((*namespace, name))
    node, chain = scene.find(namespace, Kind.NAMESPACE)
    if node is None:
        scene.require(action, (Link.absent(Kind.NAMESPACE, namespace[-1]), *chain))
        raise not_found(namespace)
    decision = scene.require(action, chain)
    if scene.is_taken(node.id, Kind.TABLE, name):
        raise AlreadyExists(f"Table already exists: {render((*namespace, name))}", kind="table")
    permit = scene.permit(None, decision)
    return Draft(permit, node, scene.space(Kind.TABLE), scene.maker_id, place_of(scene))


async def table_stage(
    ctx: Context, scope: Scope, *, namespace: Levels, request: TableRequest
) -> tuple[Json, CatalogRecord]:
    """Build the metadata of a table that a later commit will make; stores nothing. Raises what that commit would."""

    def look(scene: Scene) -> Draft:
        draft = draft_of(scene, namespace, request.name, Action.TABLE_CREATE)
        taken, _ = scene.find((*namespace, request.name), Kind.TABLE)  # no mutation will look
        if taken is not None:
            raise AlreadyExists(f"Table already exists: {render((*namespace, request.name))}", kind=taken.kind.word)
        return draft

    draft = await ctx.read(scope, look)
    metadata = build(request, draft.place)
    document_of(metadata, previous=None, node_id=0, place=draft.place)
    return metadata, draft.place.catalog


async def table_create(
    ctx: Context, scope: Scope, *, namespace: Levels, request: TableRequest
) -> tuple[Document, CatalogRecord]:
    """Make a table with its first metadata file. Raises NotFound, AlreadyExists, BadRequest, OutsideRoots, Forbidden."""
    draft = await draft_read(ctx, scope, namespace, request.name)
    metadata = build(request, draft.place)
    return await table_make(ctx, scope, namespace=namespace, name=request.name, metadata=metadata, draft=draft)


async def draft_read(ctx: Context, scope: Scope, namespace: Levels, name: str) -> Draft:
    """Decide on making a table, before its metadata is built."""
    return await ctx.read(scope, lambda scene: draft_of(scene, namespace, name, Action.TABLE_CREATE))


def build(request: TableRequest, place: Place) -> Json:
    """Build a new table's metadata; without a location of its own it gets one that no other table has."""
    now_ms = _now_ms()
    table_uuid = new_uuid(now_ms)
    location = place.own_location(table_uuid) if request.location is None else request.location
    if not location:
        raise BadRequest("Field 'location' is empty: give a location, or leave it out to get one")
    return new_table(
        uuid=table_uuid, location=location, schema=request.schema, partition_spec=request.partition_spec,
        write_order=request.write_order, properties=request.properties, now_ms=now_ms,
    )  # fmt: skip


async def table_make(
    ctx: Context, scope: Scope, *, namespace: Levels, name: str, metadata: Json, draft: Draft
) -> tuple[Document, CatalogRecord]:
    """Write a new table's metadata file and make the table; on a refusal the file is deleted again."""
    catalog = draft.place.catalog
    document, data = document_of(metadata, previous=None, node_id=0, place=draft.place)

    def decide(scene: Scene) -> Permit[TableCreate]:
        return draft_of(scene, namespace, name, Action.TABLE_CREATE).command(name, document)

    async with ctx.services.files.written(document.metadata_location, data, catalog.properties, first=True):
        made = await _make(ctx, scope, decide, (*namespace, name), first=draft.command(name, document))
    return made, catalog


async def _make(
    ctx: Context, scope: Scope, decide: Callable[[Scene], Permit[TableCreate]], path: Levels, *,
    first: Permit[TableCreate] | None = None,
) -> Document:  # fmt: skip
    """Insert the table; that its name is taken is told with the whole path."""
    try:
        return await ctx.write(scope, decide, table_insert, first=first)
    except AlreadyExists as error:
        raise AlreadyExists(f"{error.kind.capitalize()} already exists: {render(path)}", kind=error.kind) from None


def document_of(metadata: Json, *, previous: Document | None, node_id: int, place: Place) -> tuple[Document, bytes]:
    """Build the document of new metadata, and what goes into its file, under a fresh name.

    A location is checked when the commit brings it, not again at every commit. Raises OutsideRoots.
    """
    version = documents.version_of(None if previous is None else previous.metadata_location) + 1
    packs = documents.wants_gzip(metadata)
    table_uuid, location = cast("str", metadata["table-uuid"]), cast("str", metadata["location"])
    directory = documents.metadata_directory(metadata)
    stays = previous is not None and location == previous.location
    taken = location if stays else place.normal_location(location, table_uuid)
    if directory != f"{location}/metadata":
        place.check(directory)
    document = Document(
        node_id=node_id, version=1 if previous is None else previous.version + 1, uuid=table_uuid, location=taken,
        metadata_location=f"{directory}/{documents.file_name(version, uuid=new_uuid(_now_ms()), gzip=packs)}",
        body=documents.encode(metadata),
    )  # fmt: skip
    return document, documents.pack(document.body) if packs else document.body


def table_insert(tx: Tx, permit: Permit[TableCreate]) -> Document:
    """Insert the table, its owner and its document."""
    command = permit.command
    node = tx.nodes.create(
        kind=Kind.TABLE, space=command.space, name=command.name, parent_id=command.namespace.id, zone=permit.zone,
        record=BLANK_TABLE, owner_id=command.owner_id, node_format="iceberg",
        under=command.namespace,
    )  # fmt: skip
    document = msgspec.structs.replace(command.document, node_id=node.id)
    tx.documents.create(document)
    return document


async def table_drop(ctx: Context, scope: Scope, *, namespace: Levels, name: str, purge: bool) -> None:
    """Drop a table; with `purge` its files too, by a task that commits with the drop."""

    def decide(scene: Scene) -> Permit[TableDrop]:
        node, chain = table_find(scene, namespace, name, Action.TABLE_DROP)
        decision = scene.require(Action.TABLE_DROP, chain)
        task = None
        if purge:
            document = scene.document(node.id)
            place = place_of(scene)
            payload = {
                "metadata-location": document.metadata_location,
                "roots": place.roots,
                "catalog": scene.catalog.id,
            }
            task = msgspec.json.encode(payload).decode()
        return scene.permit(TableDrop(node, task), decision)

    await ctx.write(scope, decide, table_bury)
    if purge:
        ctx.services.wake_worker()


def table_bury(tx: Tx, permit: Permit[TableDrop]) -> None:
    """Drop the table and its document, and leave the task."""
    held = tx.nodes.hold(permit.command.table)
    if permit.command.purge is not None:
        document = tx.documents.read(held.id)
        stated = msgspec.json.decode(permit.command.purge)
        if document is not None and document.metadata_location != stated["metadata-location"]:
            tx.stale()  # a commit came between: purge what it wrote, too
        tx.tasks.create(PURGE, permit.command.purge)
    tx.documents.delete(held.id)
    tx.nodes.drop(held)


async def table_move(ctx: Context, scope: Scope, *, source: Levels, target: Levels) -> None:
    """Rename a table, or move it to another namespace of its catalog. Raises NotFound, AlreadyExists, Forbidden."""
    if len(source) < 2 or len(target) < 2:
        raise BadRequest("A table lies in a namespace: name at least two levels")
    check_levels(target)

    def decide(scene: Scene) -> Permit[TableMove]:
        stays = source[:-1] == target[:-1]
        action = Action.TABLE_RENAME if stays else Action.TABLE_MOVE
        node, chain = table_find(scene, source[:-1], source[-1], action)
        into, above = parent_of(scene, target)
        decisions = [scene.require(action, chain)]
        if not stays:
            decisions.append(scene.require(Action.TABLE_CREATE, above))
        taken, _ = scene.find(target, Kind.TABLE)
        if taken is not None and taken.id != node.id:
            raise AlreadyExists(f"Table already exists: {render(target)}", kind=taken.kind.word)
        return scene.permit(TableMove(node, into, target[-1]), *decisions)

    await ctx.write(scope, decide, table_place)


def table_place(tx: Tx, permit: Permit[TableMove]) -> None:
    """Put the table where it goes. Grants hang on its id and move with it; what is above it changes who may."""
    held = tx.nodes.hold(permit.command.table)
    into = tx.nodes.hold(permit.command.into)
    tx.nodes.place(held, parent_id=into.id, name=permit.command.name, moves_access=held.parent_id != into.id)


async def table_register(
    ctx: Context, scope: Scope, *, namespace: Levels, name: str, metadata_location: str, overwrite: bool
) -> tuple[Document, CatalogRecord]:
    """Make a table of a metadata file that exists already; with `overwrite` point an existing table at it."""

    def look(scene: Scene) -> tuple[Place, Document | None]:
        taken, chain = scene.find((*namespace, name), Kind.TABLE)
        if taken is not None and overwrite:
            scene.require_in_use()
            scene.require(Action.TABLE_DROP, chain)
            return place_of(scene), scene.document(taken.id)
        return draft_of(scene, namespace, name, Action.TABLE_REGISTER).place, None

    place, replaced = await ctx.read(scope, look)
    place.check(metadata_location)
    metadata = documents.decode(await ctx.services.files.read(metadata_location, place.catalog.properties))
    documents.check_registrable(metadata)
    location = cast("str", metadata["location"])
    place.check(location)
    document = Document(
        node_id=0 if replaced is None else replaced.node_id, version=1 if replaced is None else replaced.version + 1,
        uuid=cast("str", metadata.get("table-uuid") or new_uuid(_now_ms())), location=normalise(location),
        metadata_location=metadata_location, body=documents.encode(metadata),
    )  # fmt: skip

    def decide(scene: Scene) -> Permit[TableCreate]:
        return draft_of(scene, namespace, name, Action.TABLE_REGISTER).command(name, document)

    def decide_again(scene: Scene) -> Permit[TableReplace]:
        node, chain = table_find(scene, namespace, name, Action.TABLE_DROP)
        current = scene.document(node.id)
        decision = scene.require(Action.TABLE_DROP, chain)
        return scene.permit(
            TableReplace(
                node, msgspec.structs.replace(document, node_id=node.id, version=current.version + 1), current.version
            ),
            decision,
        )

    if replaced is None:
        return await _make(ctx, scope, decide, (*namespace, name)), place.catalog
    return await ctx.write(scope, decide_again, table_point), place.catalog


def table_point(tx: Tx, permit: Permit[TableReplace]) -> Document:
    """Replace the table's document."""
    command = permit.command
    held = tx.nodes.hold(command.table)
    if not tx.documents.swap(command.document, expected=command.expected):
        tx.stale()
    tx.nodes.committed(held)
    return command.document
