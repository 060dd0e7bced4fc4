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
from limnos.model.entities import Document, Node
from limnos.model.errors import AlreadyExists, BadRequest, InvalidTable, NotFound
from limnos.model.kinds import Kind
from limnos.model.places import PlaceKind
from limnos.model.records import BLANK_NAMESPACE, TableRecord
from limnos.model.uuids import new_uuid
from limnos.names.parts import check_levels
from limnos.services.catalog.namespaces import namespace_create_of
from limnos.services.catalog.tables import name_taken, require_free, table_find, table_move_of, table_reparent
from limnos.services.lance.manifests import manifests_found
from limnos.services.request.places import place_of
from limnos.services.request.table_formats import LANCE, refuse_work, require_format
from limnos.services.storage.homes import given
from limnos.services.storage.place_claims import place_take, places_delete, places_release
from limnos.services.vending.credentials import new_table_credentials
from limnos.store.lance_versions import lance_top_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.decisions import Chain, Decision
    from limnos.model.lance import LanceVersion
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.catalog.tables import TableMove
    from limnos.services.request.context import Context
    from limnos.services.request.places import Place
    from limnos.services.request.scene import Found, Scene, Scope
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
    place: Place


class LanceCreate(msgspec.Struct, frozen=True):
    """Make a table at a location; with `instead` in place of another, whose files stay."""

    parent: Node
    name: str
    space: str
    document: Document
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


class CheckedOnly(Exception):
    """Everything that making a table checks has been checked, and nothing is kept."""


class Draft(NamedTuple):
    """A table about to be made: permission to make it, where it goes in the tree, and where its files may be."""

    permit: Permit[None]
    parent: Node
    space: str
    owner_id: int | None
    place: Place
    home: str | None
    missing: str | None = None
    """Of a dry run: the first of the namespaces that are to be made before the table."""

    def document(self, location: str | None, *, now_ms: int) -> Document:
        """Return where the table lies: at a location of its own when none is given, which nobody else has."""
        uuid = new_uuid(now_ms)
        if location is None:
            base = self.home or self.place.warehouse
            location = f"{base}/{uuid.replace('-', '')}"
        elif "://" not in location and not location.startswith(("/", "file:")):
            location = f"{self.place.warehouse}/{location}"
        return Document(0, 1, uuid, self.place.normal_location(location.rstrip("/"), uuid), "", _BODY)

    def command(
        self, name: str, document: Document, *, record: TableRecord, instead: Node | None = None,
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


def lance_find(scene: Scene, levels: Levels, *, action: Action) -> Found[Node]:
    """Find a Lance table for who may do the action to it. Raises NotFound (of the namespace, for who may know that), Forbidden."""
    if not levels:
        raise NotFound(f"Table does not exist: {scene.scope.catalog} names a catalog", kind="table")
    refuse_work(scene, action)
    try:
        return table_find(scene, levels[:-1], levels[-1], action, wanted=LANCE)
    except NotFound as error:
        raise _told_of_namespace(scene, levels, error=error) from None


def _told_of_namespace(scene: Scene, levels: Levels, *, error: NotFound) -> NotFound:
    """Say that a table's namespace is missing, where it is: whoever is told of the table may know."""
    if error.kind == "table" and len(levels) > 1 and scene.find(levels[:-1], Kind.NAMESPACE)[0] is None:
        return scene.missing(Kind.NAMESPACE, levels[:-1])
    return error


def lance_load(scene: Scene, levels: Levels, *, action: Action = Action.TABLE_LOAD) -> LanceTable:
    """Return a table, for who may do the action to it."""
    return _loaded(scene, lance_find(scene, levels, action=action).entity)


def _loaded(scene: Scene, node: Node) -> LanceTable:
    return LanceTable(node, cast("TableRecord", node.record), scene.document(node.id).location, place_of(scene))


def draft_of(scene: Scene, levels: Levels, *, action: Action, dry: bool = False) -> Draft:
    """Decide on making a table. Raises NotFound (namespace), AlreadyExists, BadRequest in a catalog of another format."""
    draft, _ = (_planned if dry else drafted)(scene, levels, action=action)
    if draft.missing is None:
        require_free(scene, draft.parent.id, levels, wanted=Kind.TABLE)
    return draft


def _planned(scene: Scene, levels: Levels, *, action: Action) -> tuple[Draft, Decision]:
    """Decide on making a table whose namespaces may have to be made first, by the same caller. Raises what making those does, and `drafted`."""
    if len(levels) < 2 or scene.find(levels[:-1], Kind.NAMESPACE)[0] is not None:
        return drafted(scene, levels, action=action)
    check_levels(levels)
    refuse_work(scene, action)
    permit, home = namespace_create_of(scene, levels[:-1], BLANK_NAMESPACE)
    require_format(scene, LANCE)
    making, place = permit.command, place_of(scene)
    space = scene.space(Kind.TABLE)
    (decision,) = permit.decisions
    draft = Draft(permit.about(None), making.parent, space, scene.maker_id, place, home or None, making.names[0])
    return draft, decision


def drafted(scene: Scene, levels: Levels, *, action: Action) -> tuple[Draft, Decision]:
    """Decide on making a table, whatever has its name. Raises NotFound (namespace), BadRequest in a catalog of another format."""
    scene.require_in_use()
    if not levels:
        raise BadRequest("A table's identifier has two names at least: its catalog's, then its own")
    check_levels(levels)
    parent, chain, decision = _parent_of(scene, levels, action=action)
    require_format(scene, LANCE)
    permit = scene.permit(None, decision)
    place = place_of(scene)
    return Draft(permit, parent, scene.space(Kind.TABLE), scene.maker_id, place, given(scene, chain)), decision


def _parent_of(scene: Scene, levels: Levels, *, action: Action) -> tuple[Node, Chain, Decision]:
    if len(levels) > 1:
        refuse_work(scene, action)  # a directory's namespaces are none of the tree's
        return scene.look_up(Kind.NAMESPACE, levels[:-1], action)
    decision = scene.require(action, scene.settled.outer)
    return scene.catalog, scene.settled.outer, decision


async def table_declare(
    ctx: Context, scope: Scope, *, levels: Levels, location: str | None, properties: dict[str, str],
    delegates: bool = False, dry: bool = False,
) -> LanceTable:  # fmt: skip
    """Make a table without data: its name and its place are taken. Raises NotFound, AlreadyExists, OutsideRoots, Forbidden.

    A client that `delegates` gets credentials with the answer: nothing is made when there are none to be had. With `dry`
    everything is checked, for namespaces that are not there as well, and nothing is kept.
    """
    now_ms = ctx.services.store.time.now_ms()
    draft = await ctx.read(scope, lambda scene: draft_of(scene, levels, action=Action.TABLE_CREATE, dry=dry))
    record = TableRecord(None, properties, declared=True, managed=draft.is_managed(properties))
    document = draft.document(location, now_ms=now_ms)
    versions = await versions_of(ctx, document, place=draft.place, record=record) if location else ()
    if delegates:
        await new_table_credentials(ctx, document.location, place=draft.place, table_format=LANCE)

    def decide(scene: Scene) -> Permit[LanceCreate]:
        drafted = draft_of(scene, levels, action=Action.TABLE_CREATE, dry=dry)
        return drafted.command(levels[-1], document, record=record, versions=versions)

    node = await lance_made(ctx, scope, decide=decide, levels=levels, dry=dry)
    return LanceTable(node, record, document.location, draft.place)


async def table_register(
    ctx: Context, scope: Scope, *, levels: Levels, location: str, properties: dict[str, str], overwrite: bool,
    dry: bool = False,
) -> LanceTable:  # fmt: skip
    """Make a table of files that are there already; with `overwrite` in place of one that has the name, whose files stay.

    With `dry` everything is checked, for namespaces that are not there as well, and nothing is kept. Raises NotFound, AlreadyExists, OutsideRoots, InvalidTable where no table lies, Forbidden.
    """
    now_ms = ctx.services.store.time.now_ms()
    draft, _ = await ctx.read(scope, lambda scene: _registered(scene, levels, overwrite=overwrite, dry=dry))
    document = draft.document(location, now_ms=now_ms)
    if not await has_data(ctx, document.location, place=draft.place):
        raise InvalidTable(f"At {document.location} lies no Lance table: write one there first, or declare the table")
    record = TableRecord(None, properties, managed=draft.is_managed(properties))
    versions = await versions_of(ctx, document, place=draft.place, record=record)

    def decide(scene: Scene) -> Permit[LanceCreate]:
        drafted, instead = _registered(scene, levels, overwrite=overwrite, dry=dry)
        return drafted.command(levels[-1], document, record=record, instead=instead, versions=versions)

    node = await lance_made(ctx, scope, decide=decide, levels=levels, dry=dry)
    return LanceTable(node, record, document.location, draft.place)


async def versions_of(
    ctx: Context, document: Document, *, place: Place, record: TableRecord
) -> tuple[LanceVersion, ...]:
    """Return the versions that a new managed table comes with, as its files have them."""
    if not record.managed:
        return ()
    now_ms = ctx.services.store.time.now_ms()
    return await manifests_found(ctx.services.files, document.location, place=place, now_ms=now_ms)


def _registered(scene: Scene, levels: Levels, *, overwrite: bool, dry: bool) -> tuple[Draft, Node | None]:
    """Decide on registering a table, and on taking away the one that it replaces."""
    draft, decision = (_planned if dry else drafted)(scene, levels, action=Action.TABLE_REGISTER)
    if draft.missing is not None:
        return draft, None
    taken, chain = scene.find(levels, Kind.TABLE)
    if taken is None or not overwrite or taken.kind is not Kind.TABLE:
        require_free(scene, draft.parent.id, levels, wanted=Kind.TABLE)
        return draft, None
    dropping = scene.require(Action.TABLE_DROP, chain)
    return draft._replace(permit=scene.permit(None, decision, dropping)), taken


async def lance_made(ctx: Context, scope: Scope, *, decide: object, levels: Levels, dry: bool = False) -> Node:
    """Put a table into the tree; with `dry` see that it could be. Raises AlreadyExists in words of the whole path."""
    made: list[Node] = []

    def checked(tx: Tx, permit: Permit[LanceCreate]) -> Node:
        made.append(lance_insert(tx, permit))
        raise CheckedOnly

    try:
        return await ctx.write(scope, decide, checked if dry else lance_insert)  # type: ignore[arg-type]  # a function from a scene to a permit
    except CheckedOnly:
        return made[-1]
    except AlreadyExists as error:
        raise name_taken(levels, wanted=Kind.TABLE, holder=error.kind) from None


def lance_insert(tx: Tx, permit: Permit[LanceCreate]) -> Node:
    """Insert the table, its owner and its place; the one that it replaces goes first."""
    command = permit.command
    if command.instead is not None:
        held = tx.nodes.confirm(command.instead)
        tx.documents.delete(held.id)
        places_release(tx, held.id, claimant_id=tx.actor_id)
        tx.lance_versions.delete_all(held.id)
        tx.nodes.drop(held)
    node = tx.nodes.create(
        kind=Kind.TABLE, space=command.space, name=command.name, parent_id=command.parent.id, zone=permit.zone,
        record=command.record, owner_id=command.owner_id, node_format=LANCE, under=command.parent,
    )  # fmt: skip
    document = msgspec.structs.replace(command.document, node_id=node.id)
    tx.documents.lock(document)
    place_take(tx, PlaceKind.LANCE_TABLE, owner_id=node.id, catalog_id=permit.zone, location=document.location)
    tx.documents.insert(document)
    tx.lance_versions.create_all(node.id, command.versions)
    if command.mark is not None:
        tx.tasks.done(command.mark)
    return node


async def table_drop(ctx: Context, scope: Scope, *, levels: Levels, purges: bool = True) -> LanceTable:
    """Drop a table, or without `purges` only forget it; returns what it was. Raises NotFound, Forbidden, Protected."""
    seen: list[LanceTable] = []

    def decide(scene: Scene) -> Permit[LanceDrop]:
        node, _, decision = lance_find(scene, levels, action=Action.TABLE_DROP)
        seen.append(_loaded(scene, node))
        keep_ms = scene.defaults.keep_dropped_ms if purges else 0
        return scene.permit(LanceDrop(node, keep_ms, purges), decision)

    await ctx.write(scope, decide, lance_delete)
    if purges:
        ctx.services.wake_worker()
    return seen[-1]


def lance_delete(tx: Tx, permit: Permit[LanceDrop]) -> None:
    """Drop the table; its files go when it cannot be brought back any more."""
    command = permit.command
    lance_bury(tx, tx.nodes.confirm(command.table), keep_ms=command.keep_ms, purges=command.purges)


def lance_bury(tx: Tx, held: Node, *, keep_ms: int, purges: bool) -> None:
    """Drop a table that was confirmed, in a transaction."""
    if not keep_ms:
        document = tx.documents.read(held.id)
        if not purges:
            tx.places.clear(held.id)  # its files and its place are somebody else's from now on
        elif document is not None:
            tx.tasks.create(LANCE_PURGE, lance_purge_of(held.zone, document.location))
            places_delete(tx, held.id)
        tx.documents.delete(held.id)
        tx.lance_versions.delete_all(held.id)
    tx.nodes.drop(held, keep_ms=keep_ms)


async def table_rename(ctx: Context, scope: Scope, *, source: Levels, target: Levels) -> None:
    """Give a table another name or namespace. Raises NotFound (either namespace, table), AlreadyExists, Forbidden."""

    def decide(scene: Scene) -> Permit[TableMove]:
        refuse_work(scene, Action.TABLE_RENAME)
        try:
            return table_move_of(scene, source, target, wanted=LANCE)
        except NotFound as error:
            raise _told_of_namespace(scene, source, error=error) from None

    await ctx.write(scope, decide, table_reparent)


def lance_purge_of(catalog_id: int, location: str) -> str:
    """Spell the task that deletes a table's files."""
    return msgspec.json.encode({"catalog": catalog_id, "location": location}).decode()


async def has_data(ctx: Context, location: str, *, place: Place) -> bool:
    """Say whether anything was ever written to a location, where it may lie."""
    return await ctx.services.files.holds(f"{location}/{VERSIONS}", place.catalog.properties, roots=place.roots)


async def holds_data(ctx: Context, table: LanceTable) -> bool:
    """Say whether a table holds data: its files say so, and of a managed one the store."""
    if table.record.managed:
        return await ctx.look_up(partial(lance_top_read, table.node.id, "")) is not None
    return await has_data(ctx, table.location, place=table.place)
