# SPDX-License-Identifier: Apache-2.0
"""New Lance tables: declare a table without data, or register one from existing files.

Must not know any wire format, and never reads a table's content: worker processes do that (`services.workers`).
The document of such a table contains only its location; its directory contains everything else. A table may lie
directly in its catalog; then the catalog's node is its parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Decision, SecurableChain
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import AlreadyExists, BadRequest, InvalidTable, UnsupportedOperation
from limnos.model.extras import missing_lance_text
from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.object_errors import name_taken_error
from limnos.model.permits import Permit
from limnos.model.records import BLANK_NAMESPACE, TableRecord
from limnos.model.storage_locations import LocationKind
from limnos.model.uuids import new_uuid
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.rooms.lance.services.manifests import find_manifests
from limnos.rooms.lance.services.table_data import has_data
from limnos.services.catalog.namespaces import namespace_create_of
from limnos.services.catalog.tables import require_free
from limnos.services.lance.table_commands import LanceCreate
from limnos.services.lance.tables import LanceTable
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, refuse_directory_request, require_format
from limnos.services.storage.location_claims import location_claim, locations_lock, locations_release
from limnos.services.storage.namespace_locations import inherited_location
from limnos.services.vending.credentials import new_table_credentials
from limnos.store.tx import Tx

MANAGED: Final = "managed_versioning"
CATALOG_MANAGED: Final = "lance.managed-versioning"
"""The property of a catalog that sets managed versions for its tables."""
_BODY: Final = b"{}"


class DryRunComplete(Exception):
    """Raised when a dry run has passed all checks, to roll it back."""


class LanceTableDraft(NamedTuple):
    """The decision on a new table: the permit, its parent in the tree, and the storage of its files."""

    permit: Permit[None]
    parent: Node
    space: str
    owner_id: int | None
    place: CatalogStorage
    home: str | None
    missing: str | None = None
    """In a dry run, the first of the namespaces that would have to be created before the table."""

    def document(self, location: str | None, *, now_ms: int) -> MetadataDocument:
        """Return the document of the new table, at the given location or at a unique one.

        Raises OutsideRoots for a location outside of the catalog's roots, BadRequest for an invalid one.
        """
        uuid = new_uuid(now_ms)
        if location is None:
            base = self.home or self.place.warehouse
            location = f"{base}/{uuid.replace('-', '')}"
        elif "://" not in location and not location.startswith(("/", "file:")):
            location = f"{self.place.warehouse}/{location}"
        return MetadataDocument(
            node_id=0,
            version=1,
            uuid=uuid,
            location=self.place.normal_location(location.rstrip("/"), uuid),
            metadata_location="",
            body=_BODY,
        )

    def command(
        self,
        name: str,
        document: MetadataDocument,
        *,
        record: TableRecord,
        instead: Node | None = None,
        versions: tuple[LanceVersion, ...] = (),
        mark: int | None = None,
        had_files: bool = False,
    ) -> Permit[LanceCreate]:
        """Return the permit to create the table with this name and document."""
        missing_name = self.missing or name
        command = LanceCreate(
            parent=self.parent,
            name=missing_name,
            space=self.space,
            document=document,
            record=record,
            owner_id=self.owner_id,
            instead=instead,
            versions=versions,
            mark=mark,
            had_files=had_files,
        )
        return self.permit.about(command)

    def is_managed(self, properties: Mapping[str, str]) -> bool:
        """Return whether the store keeps the new table's versions, by its own property or else its catalog's.

        Raises BadRequest if the property is neither `true` nor `false`.
        """
        property_value = properties.get(MANAGED)
        if property_value is not None and property_value.lower() not in ("true", "false"):
            raise BadRequest(f"Property {MANAGED} must be true or false, not {property_value[:40]}")
        property_value = property_value or self.place.catalog.properties.get(CATALOG_MANAGED, "false")
        return property_value.lower() == "true"


def lance_draft_of(request_view: RequestView, levels: Levels, *, action: Action, dry: bool = False) -> LanceTableDraft:
    """Decide on creating a table, and return the decision with the storage of its files.

    Raises NotFound (the namespace), AlreadyExists, BadRequest in a catalog of another format, PermissionDenied.
    """
    draft, _ = (_draft_with_parents if dry else lance_draft_replacing)(request_view, levels, action=action)
    if draft.missing is None:
        require_free(request_view, draft.parent.id, levels, kind=Kind.TABLE)
    return draft


def _draft_with_parents(
    request_view: RequestView, levels: Levels, *, action: Action
) -> tuple[LanceTableDraft, Decision]:
    """Decide, in a dry run, on creating a table whose missing namespaces the same caller would create first.

    Raises the errors of creating those, and of `lance_draft_replacing`.
    """
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
        permit=permit.about(None),
        parent=making.parent,
        space=space,
        owner_id=request_view.maker_id,
        place=place,
        home=home or None,
        missing=making.names[0],
    )
    return draft, decision


def lance_draft_replacing(
    request_view: RequestView, levels: Levels, *, action: Action
) -> tuple[LanceTableDraft, Decision]:
    """Decide on creating a table, even if its name is taken.

    Raises NotFound (the namespace), BadRequest in a catalog of another format, PermissionDenied.
    """
    request_view.require_in_use()
    if not levels:
        raise BadRequest("A table's identifier needs at least two names: its catalog's, then its own")
    check_levels(levels)
    parent, chain, decision = _parent_of(request_view, levels, action=action)
    require_format(request_view, LANCE)
    permit = request_view.permit(None, decision)
    catalog_storage = catalog_storage_of(request_view)
    return LanceTableDraft(
        permit=permit,
        parent=parent,
        space=request_view.space(Kind.TABLE),
        owner_id=request_view.maker_id,
        place=catalog_storage,
        home=inherited_location(request_view, chain),
    ), decision


def _parent_of(request_view: RequestView, levels: Levels, *, action: Action) -> tuple[Node, SecurableChain, Decision]:
    if len(levels) > 1:
        refuse_directory_request(request_view, action)  # namespaces of a directory are not in the tree
        return request_view.look_up(Kind.NAMESPACE, levels[:-1], action)
    decision = request_view.require(action, request_view.settled.outer)
    return request_view.catalog, request_view.settled.outer, decision


def require_lance_library() -> None:
    """Raise UnsupportedOperation, with the extra to install, if the server lacks the library of Lance tables."""
    if find_spec("lance") is None:
        raise UnsupportedOperation(missing_lance_text())


async def table_declare(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    location: str | None,
    properties: dict[str, str],
    delegates: bool = False,
    dry: bool = False,
) -> LanceTable:
    """Create a table without data, which reserves its name and its location.

    Args:
        ctx: The request.
        scope: The catalog.
        levels: The levels of the table's name.
        location: The location of the table; None for a unique one.
        properties: The properties of the table.
        delegates: Whether the client requests credentials. If the server cannot vend them, no table is created.
        dry: Whether to make all checks, also for missing namespaces, and store nothing.

    Raises:
        NotFound: The namespace is missing.
        AlreadyExists: The name is taken.
        OutsideRoots: The location is outside of the catalog's roots.
        BadRequest: The location or a property is invalid, or the catalog has another format.
        PermissionDenied: The caller may not create the table.
        UnsupportedOperation: The server has no Lance library, so that no user could open the table.
    """
    now_ms = ctx.services.store.time.now_ms()
    draft = await ctx.read(
        scope, lambda request_view: lance_draft_of(request_view, levels, action=Action.TABLE_CREATE, dry=dry)
    )
    require_lance_library()
    record = TableRecord(comment=None, properties=properties, declared=True, managed=draft.is_managed(properties))
    document = draft.document(location, now_ms=now_ms)
    versions = await versions_of(ctx, document, place=draft.place, record=record) if location else ()
    had_files = location is not None and await draft.place.has_unclaimed_files(ctx.services.files, document.location)
    if delegates:
        await new_table_credentials(ctx, document.location, place=draft.place)

    def decide(request_view: RequestView) -> Permit[LanceCreate]:
        drafted = lance_draft_of(request_view, levels, action=Action.TABLE_CREATE, dry=dry)
        return drafted.command(levels[-1], document, record=record, versions=versions, had_files=had_files)

    node = await lance_table_make(ctx, scope, decide=decide, levels=levels, dry=dry)
    return LanceTable(node, record, document.location, draft.place)


async def table_register(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    location: str,
    properties: dict[str, str],
    overwrite: bool,
    dry: bool = False,
) -> LanceTable:
    """Create a table from existing files; with `overwrite` it replaces a table of that name, whose files are kept.

    With `dry` all checks are made, also for missing namespaces, and nothing is stored. Raises NotFound, AlreadyExists,
    OutsideRoots, InvalidTable if there is no table at the location, BadRequest, PermissionDenied.
    """
    now_ms = ctx.services.store.time.now_ms()
    draft, _ = await ctx.read(
        scope, lambda request_view: _decide_register(request_view, levels, overwrite=overwrite, dry=dry)
    )
    document = draft.document(location, now_ms=now_ms)
    if not await has_data(ctx, document.location, place=draft.place):
        raise InvalidTable(
            f"At {document.location} there is no Lance table: write one there first, or declare the table"
        )
    record = TableRecord(comment=None, properties=properties, managed=draft.is_managed(properties))
    versions = await versions_of(ctx, document, place=draft.place, record=record)

    def decide(request_view: RequestView) -> Permit[LanceCreate]:
        drafted, instead = _decide_register(request_view, levels, overwrite=overwrite, dry=dry)
        return drafted.command(levels[-1], document, record=record, instead=instead, versions=versions)

    node = await lance_table_make(ctx, scope, decide=decide, levels=levels, dry=dry)
    return LanceTable(node, record, document.location, draft.place)


async def versions_of(
    ctx: Context, document: MetadataDocument, *, place: CatalogStorage, record: TableRecord
) -> tuple[LanceVersion, ...]:
    """List the versions that the files of a new managed table already have; none for other tables."""
    if not record.managed:
        return ()
    now_ms = ctx.services.store.time.now_ms()
    return await find_manifests(ctx.services.files, document.location, place=place, now_ms=now_ms)


def _decide_register(
    request_view: RequestView, levels: Levels, *, overwrite: bool, dry: bool
) -> tuple[LanceTableDraft, Node | None]:
    """Decide on registering a table, and on dropping the table that it replaces."""
    draft, decision = (_draft_with_parents if dry else lance_draft_replacing)(
        request_view, levels, action=Action.TABLE_REGISTER
    )
    if draft.missing is not None:
        return draft, None
    node, chain = request_view.find(levels, Kind.TABLE)
    if node is None or not overwrite or node.kind is not Kind.TABLE:
        require_free(request_view, draft.parent.id, levels, kind=Kind.TABLE)
        return draft, None
    dropping = request_view.require(Action.TABLE_DROP, chain)
    return draft._replace(permit=request_view.permit(None, decision, dropping)), node


async def lance_table_make(
    ctx: Context, scope: RequestScope, *, decide: object, levels: Levels, dry: bool = False
) -> Node:
    """Add a table to the tree; with `dry` only check that it could be added. Raises AlreadyExists with the whole
    path.
    """
    nodes: list[Node] = []

    def insert_and_stop(tx: Tx, permit: Permit[LanceCreate]) -> Node:
        nodes.append(lance_insert(tx, permit))
        raise DryRunComplete

    try:
        return await ctx.write(scope, decide, insert_and_stop if dry else lance_insert)  # type: ignore[arg-type]  # returns a permit for a request view
    except DryRunComplete:
        return nodes[-1]
    except AlreadyExists as error:
        raise name_taken_error(levels, kind=Kind.TABLE, holder=error.kind) from None


def lance_insert(tx: Tx, permit: Permit[LanceCreate]) -> Node:
    """Insert the table with its owner, location and versions; first drop the table that it replaces."""
    command = permit.command
    if command.instead is not None:
        confirm = tx.nodes.confirm(command.instead)
        tx.documents.delete(confirm.id)
        locations_release(tx, confirm.id, claimant_id=tx.actor_id)
        tx.lance_versions.delete_all(confirm.id)
        tx.nodes.drop(confirm)
    node = tx.nodes.create(
        kind=Kind.TABLE,
        space=command.space,
        name=command.name,
        parent_id=command.parent.id,
        zone=permit.zone,
        record=command.record,
        owner_id=command.owner_id,
        node_format=LANCE,
        under=command.parent,
    )
    document = msgspec.structs.replace(command.document, node_id=node.id)
    locations_lock(tx, documents=(document,))
    location_claim(
        tx,
        LocationKind.LANCE_TABLE,
        owner_id=node.id,
        catalog_id=permit.zone,
        location=document.location,
        had_files=command.had_files,
        namespace_id=command.parent.id,
    )
    tx.documents.insert(document)
    tx.lance_versions.create_all(node.id, command.versions)
    if command.mark is not None:
        tx.tasks.delete_finished(command.mark)
    return node
