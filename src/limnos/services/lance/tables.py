"""Lance tables as nodes of the tree: find, declare, register, drop, deregister, and where their files are.

May import the rooms below. Knows no wire format, and never looks into a table: what is in it is read by processes of their own
(`services.lance.work`). The document of such a table says where it lies, and nothing else: what it holds, its directory says.
A table may lie directly in its catalog; then the catalog's node is its parent.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.formats.lance_manifests import VERSIONS
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import AlreadyExists, BadRequest, InvalidTable, NotFound
from limnos.model.kinds import Kind
from limnos.model.records import BLANK_NAMESPACE, TableRecord
from limnos.model.storage_locations import LocationKind
from limnos.model.uuids import new_uuid
from limnos.names.parts import check_levels
from limnos.services.catalog.namespaces import namespace_create_of
from limnos.services.catalog.tables import name_taken_error, require_free, table_find, table_move_of, table_reparent
from limnos.services.lance.manifests import find_manifests
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.table_formats import LANCE, refuse_directory_request, require_format
from limnos.services.storage.location_claims import location_claim, locations_mark_deleting, locations_release
from limnos.services.storage.namespace_locations import inherited_location
from limnos.services.vending.credentials import new_table_credentials
from limnos.store.lance_versions import lance_top_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.decisions import Decision, SecurableChain
    from limnos.model.lance import LanceVersion
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.catalog.tables import TableMove
    from limnos.services.request.catalog_storage import CatalogStorage
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import AuthorizedObject, RequestScope, RequestView
    from limnos.store.tx import Tx

LANCE_PURGE: Final = "purge-lance-table"
MANAGED: Final = "managed_versioning"
CATALOG_MANAGED: Final = "lance.managed-versioning"
"""The property of a catalog that says it for its tables."""
_BODY: Final = b"{}"


class LanceTable(NamedTuple):
    """A Lance table: its node, what is stored of it, where it lies, and its catalog's place, which knows how to get there."""

    node: Node
    record: TableRecord
    location: str
    place: CatalogStorage


class LanceCreate(msgspec.Struct, frozen=True):
    """Make a table at a location; with `instead` in place of another, whose files stay."""

    parent: Node
    name: str
    space: str
    document: MetadataDocument
    record: TableRecord
    owner_id: int | None
    instead: Node | None = None
    versions: tuple[LanceVersion, ...] = ()
    """Those that a managed table comes with."""
    mark: int | None = None
    """The task that would delete the table's files, had it not come to be."""


class LanceDrop(msgspec.Struct, frozen=True):
    """Drop a table, to be brought back for `keep_ms`; after that its files go. Without `purges` they stay, and it is gone at once."""

    table: Node
    keep_ms: int
    purges: bool


class DryRunComplete(Exception):
    """Everything that making a table checks has been checked, and nothing is kept."""


class LanceTableDraft(NamedTuple):
    """A table about to be made: permission to make it, where it goes in the tree, and where its files may be."""

    permit: Permit[None]
    parent: Node
    space: str
    owner_id: int | None
    place: CatalogStorage
    home: str | None
    missing: str | None = None
    """Of a dry run: the first of the namespaces that are to be made before the table."""

    def document(self, location: str | None, *, now_ms: int) -> MetadataDocument:
        """Return where the table lies: at a location of its own when none is given, which nobody else has."""
        uuid = new_uuid(now_ms)
        if location is None:
            base = self.home or self.place.warehouse
            location = f"{base}/{uuid.replace('-', '')}"
        elif "://" not in location and not location.startswith(("/", "file:")):
            location = f"{self.place.warehouse}/{location}"
        return MetadataDocument(0, 1, uuid, self.place.normal_location(location.rstrip("/"), uuid), "", _BODY)

    def command(
        self, name: str, document: MetadataDocument, *, record: TableRecord, instead: Node | None = None,
        versions: tuple[LanceVersion, ...] = (), mark: int | None = None,
    ) -> Permit[LanceCreate]:  # fmt: skip
        """Return the permission to make just this table."""
        taken = self.missing or name
        command = LanceCreate(self.parent, taken, self.space, document, record, self.owner_id, instead, versions, mark)
        return self.permit.about(command)

    def is_managed(self, properties: Mapping[str, str]) -> bool:
        """Say whether the store keeps the new table's versions: its own property says so, else its catalog's. Raises BadRequest."""
        stated = properties.get(MANAGED)
        if stated is not None and stated.lower() not in ("true", "false"):
            raise BadRequest(f"Property {MANAGED} is true or false, not {stated[:40]}")
        stated = stated or self.place.catalog.properties.get(CATALOG_MANAGED, "false")
        return stated.lower() == "true"


def lance_find(request_view: RequestView, levels: Levels, *, action: Action) -> AuthorizedObject[Node]:
    """Find a Lance table for who may do the action to it. Raises NotFound (of the namespace, for who may know that), PermissionDenied."""
    if not levels:
        raise NotFound(f"Table does not exist: {request_view.scope.catalog} names a catalog", kind="table")
    refuse_directory_request(request_view, action)
    try:
        return table_find(request_view, levels[:-1], levels[-1], action, wanted=LANCE)
    except NotFound as error:
        raise _missing_namespace_error(request_view, levels, error=error) from None


def _missing_namespace_error(request_view: RequestView, levels: Levels, *, error: NotFound) -> NotFound:
    """Say that a table's namespace is missing, where it is: whoever is told of the table may know."""
    if error.kind == "table" and len(levels) > 1 and request_view.find(levels[:-1], Kind.NAMESPACE)[0] is None:
        return request_view.missing(Kind.NAMESPACE, levels[:-1])
    return error


def lance_load(request_view: RequestView, levels: Levels, *, action: Action = Action.TABLE_LOAD) -> LanceTable:
    """Return a table, for who may do the action to it."""
    return _load_table(request_view, lance_find(request_view, levels, action=action).entity)


def _load_table(request_view: RequestView, node: Node) -> LanceTable:
    return LanceTable(
        node,
        cast("TableRecord", node.record),
        request_view.document(node.id).location,
        catalog_storage_of(request_view),
    )


def lance_draft_of(request_view: RequestView, levels: Levels, *, action: Action, dry: bool = False) -> LanceTableDraft:
    """Decide on making a table. Raises NotFound (namespace), AlreadyExists, BadRequest in a catalog of another format."""
    draft, _ = (_draft_with_parents if dry else lance_draft_replacing)(request_view, levels, action=action)
    if draft.missing is None:
        require_free(request_view, draft.parent.id, levels, wanted=Kind.TABLE)
    return draft


def _draft_with_parents(
    request_view: RequestView, levels: Levels, *, action: Action
) -> tuple[LanceTableDraft, Decision]:
    """Decide on making a table whose namespaces may have to be made first, by the same caller. Raises what making those does, and `lance_draft_replacing`."""
    if len(levels) < 2 or request_view.find(levels[:-1], Kind.NAMESPACE)[0] is not None:
        return lance_draft_replacing(request_view, levels, action=action)
    check_levels(levels)
    refuse_directory_request(request_view, action)
    permit, home = namespace_create_of(request_view, levels[:-1], BLANK_NAMESPACE)
    require_format(request_view, LANCE)
    making, place = permit.command, catalog_storage_of(request_view)
    space = request_view.space(Kind.TABLE)
    (decision,) = permit.decisions
    draft = LanceTableDraft(
        permit.about(None), making.parent, space, request_view.maker_id, place, home or None, making.names[0]
    )
    return draft, decision


def lance_draft_replacing(
    request_view: RequestView, levels: Levels, *, action: Action
) -> tuple[LanceTableDraft, Decision]:
    """Decide on making a table, whatever has its name. Raises NotFound (namespace), BadRequest in a catalog of another format."""
    request_view.require_in_use()
    if not levels:
        raise BadRequest("A table's identifier has two names at least: its catalog's, then its own")
    check_levels(levels)
    parent, chain, decision = _parent_of(request_view, levels, action=action)
    require_format(request_view, LANCE)
    permit = request_view.permit(None, decision)
    place = catalog_storage_of(request_view)
    return LanceTableDraft(
        permit,
        parent,
        request_view.space(Kind.TABLE),
        request_view.maker_id,
        place,
        inherited_location(request_view, chain),
    ), decision


def _parent_of(request_view: RequestView, levels: Levels, *, action: Action) -> tuple[Node, SecurableChain, Decision]:
    if len(levels) > 1:
        refuse_directory_request(request_view, action)  # a directory's namespaces are none of the tree's
        return request_view.look_up(Kind.NAMESPACE, levels[:-1], action)
    decision = request_view.require(action, request_view.settled.outer)
    return request_view.catalog, request_view.settled.outer, decision


async def table_declare(
    ctx: Context, scope: RequestScope, *, levels: Levels, location: str | None, properties: dict[str, str],
    delegates: bool = False, dry: bool = False,
) -> LanceTable:  # fmt: skip
    """Make a table without data: its name and its place are taken. Raises NotFound, AlreadyExists, OutsideRoots, PermissionDenied.

    A client that `delegates` gets credentials with the answer: nothing is made when there are none to be had. With `dry`
    everything is checked, for namespaces that are not there as well, and nothing is kept.
    """
    now_ms = ctx.services.store.time.now_ms()
    draft = await ctx.read(
        scope, lambda request_view: lance_draft_of(request_view, levels, action=Action.TABLE_CREATE, dry=dry)
    )
    record = TableRecord(None, properties, declared=True, managed=draft.is_managed(properties))
    document = draft.document(location, now_ms=now_ms)
    versions = await versions_of(ctx, document, place=draft.place, record=record) if location else ()
    if delegates:
        await new_table_credentials(ctx, document.location, place=draft.place, table_format=LANCE)

    def decide(request_view: RequestView) -> Permit[LanceCreate]:
        drafted = lance_draft_of(request_view, levels, action=Action.TABLE_CREATE, dry=dry)
        return drafted.command(levels[-1], document, record=record, versions=versions)

    node = await lance_table_make(ctx, scope, decide=decide, levels=levels, dry=dry)
    return LanceTable(node, record, document.location, draft.place)


async def table_register(
    ctx: Context, scope: RequestScope, *, levels: Levels, location: str, properties: dict[str, str], overwrite: bool,
    dry: bool = False,
) -> LanceTable:  # fmt: skip
    """Make a table of files that are there already; with `overwrite` in place of one that has the name, whose files stay.

    With `dry` everything is checked, for namespaces that are not there as well, and nothing is kept. Raises NotFound, AlreadyExists, OutsideRoots, InvalidTable where no table lies, PermissionDenied.
    """
    now_ms = ctx.services.store.time.now_ms()
    draft, _ = await ctx.read(
        scope, lambda request_view: _decide_register(request_view, levels, overwrite=overwrite, dry=dry)
    )
    document = draft.document(location, now_ms=now_ms)
    if not await has_data(ctx, document.location, place=draft.place):
        raise InvalidTable(f"At {document.location} lies no Lance table: write one there first, or declare the table")
    record = TableRecord(None, properties, managed=draft.is_managed(properties))
    versions = await versions_of(ctx, document, place=draft.place, record=record)

    def decide(request_view: RequestView) -> Permit[LanceCreate]:
        drafted, instead = _decide_register(request_view, levels, overwrite=overwrite, dry=dry)
        return drafted.command(levels[-1], document, record=record, instead=instead, versions=versions)

    node = await lance_table_make(ctx, scope, decide=decide, levels=levels, dry=dry)
    return LanceTable(node, record, document.location, draft.place)


async def versions_of(
    ctx: Context, document: MetadataDocument, *, place: CatalogStorage, record: TableRecord
) -> tuple[LanceVersion, ...]:
    """Return the versions that a new managed table comes with, as its files have them."""
    if not record.managed:
        return ()
    now_ms = ctx.services.store.time.now_ms()
    return await find_manifests(ctx.services.files, document.location, place=place, now_ms=now_ms)


def _decide_register(
    request_view: RequestView, levels: Levels, *, overwrite: bool, dry: bool
) -> tuple[LanceTableDraft, Node | None]:
    """Decide on registering a table, and on taking away the one that it replaces."""
    draft, decision = (_draft_with_parents if dry else lance_draft_replacing)(
        request_view, levels, action=Action.TABLE_REGISTER
    )
    if draft.missing is not None:
        return draft, None
    taken, chain = request_view.find(levels, Kind.TABLE)
    if taken is None or not overwrite or taken.kind is not Kind.TABLE:
        require_free(request_view, draft.parent.id, levels, wanted=Kind.TABLE)
        return draft, None
    dropping = request_view.require(Action.TABLE_DROP, chain)
    return draft._replace(permit=request_view.permit(None, decision, dropping)), taken


async def lance_table_make(
    ctx: Context, scope: RequestScope, *, decide: object, levels: Levels, dry: bool = False
) -> Node:
    """Put a table into the tree; with `dry` see that it could be. Raises AlreadyExists in words of the whole path."""
    made: list[Node] = []

    def checked(tx: Tx, permit: Permit[LanceCreate]) -> Node:
        made.append(lance_insert(tx, permit))
        raise DryRunComplete

    try:
        return await ctx.write(scope, decide, checked if dry else lance_insert)  # type: ignore[arg-type]  # a function from a scene to a permit
    except DryRunComplete:
        return made[-1]
    except AlreadyExists as error:
        raise name_taken_error(levels, wanted=Kind.TABLE, holder=error.kind) from None


def lance_insert(tx: Tx, permit: Permit[LanceCreate]) -> Node:
    """Insert the table, its owner and its place; the one that it replaces goes first."""
    command = permit.command
    if command.instead is not None:
        held = tx.nodes.confirm(command.instead)
        tx.documents.delete(held.id)
        locations_release(tx, held.id, claimant_id=tx.actor_id)
        tx.lance_versions.delete_all(held.id)
        tx.nodes.drop(held)
    node = tx.nodes.create(
        kind=Kind.TABLE, space=command.space, name=command.name, parent_id=command.parent.id, zone=permit.zone,
        record=command.record, owner_id=command.owner_id, node_format=LANCE, under=command.parent,
    )  # fmt: skip
    document = msgspec.structs.replace(command.document, node_id=node.id)
    tx.documents.lock(document)
    location_claim(tx, LocationKind.LANCE_TABLE, owner_id=node.id, catalog_id=permit.zone, location=document.location)
    tx.documents.insert(document)
    tx.lance_versions.create_all(node.id, command.versions)
    if command.mark is not None:
        tx.tasks.done(command.mark)
    return node


async def table_drop(ctx: Context, scope: RequestScope, *, levels: Levels, purges: bool = True) -> LanceTable:
    """Drop a table, or without `purges` only forget it; returns what it was. Raises NotFound, PermissionDenied, ProtectedObject."""
    seen: list[LanceTable] = []

    def decide(request_view: RequestView) -> Permit[LanceDrop]:
        node, _, decision = lance_find(request_view, levels, action=Action.TABLE_DROP)
        seen.append(_load_table(request_view, node))
        keep_ms = request_view.defaults.keep_dropped_ms if purges else 0
        return request_view.permit(LanceDrop(node, keep_ms, purges), decision)

    await ctx.write(scope, decide, lance_delete)
    if purges:
        ctx.services.wake_worker()
    return seen[-1]


def lance_delete(tx: Tx, permit: Permit[LanceDrop]) -> None:
    """Drop the table; its files go when it cannot be brought back any more."""
    command = permit.command
    lance_drop_confirmed(tx, tx.nodes.confirm(command.table), keep_ms=command.keep_ms, purges=command.purges)


def lance_drop_confirmed(tx: Tx, held: Node, *, keep_ms: int, purges: bool) -> None:
    """Drop a table that was confirmed, in a transaction."""
    if not keep_ms:
        document = tx.documents.read(held.id)
        if not purges:
            tx.places.clear(held.id)  # its files and its place are somebody else's from now on
        elif document is not None:
            tx.tasks.create(LANCE_PURGE, lance_purge_of(held.zone, document.location))
            locations_mark_deleting(tx, held.id)
        tx.documents.delete(held.id)
        tx.lance_versions.delete_all(held.id)
    tx.nodes.drop(held, keep_ms=keep_ms)


async def table_rename(ctx: Context, scope: RequestScope, *, source: Levels, target: Levels) -> None:
    """Give a table another name or namespace. Raises NotFound (either namespace, table), AlreadyExists, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[TableMove]:
        refuse_directory_request(request_view, Action.TABLE_RENAME)
        try:
            return table_move_of(request_view, source, target, wanted=LANCE)
        except NotFound as error:
            raise _missing_namespace_error(request_view, source, error=error) from None

    await ctx.write(scope, decide, table_reparent)


def lance_purge_of(catalog_id: int, location: str) -> str:
    """Spell the task that deletes a table's files."""
    return msgspec.json.encode({"catalog": catalog_id, "location": location}).decode()


async def has_data(ctx: Context, location: str, *, place: CatalogStorage) -> bool:
    """Say whether anything was ever written to a location, where it may lie."""
    return await ctx.services.files.holds(f"{location}/{VERSIONS}", place.catalog.properties, roots=place.roots)


async def has_table_data(ctx: Context, table: LanceTable) -> bool:
    """Say whether a table holds data: its files say so, and of a managed one the store."""
    if table.record.managed:
        return await ctx.look_up(partial(lance_top_read, table.node.id, "")) is not None
    return await has_data(ctx, table.location, place=table.place)
