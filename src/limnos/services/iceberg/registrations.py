# SPDX-License-Identifier: Apache-2.0
"""Registering tables: creates a table from an existing metadata file, or replaces the metadata of an existing table; or
creates many tables of a catalog in one transaction, with one decision for each namespace.

Must not know any wire format. `tables` builds and checks new metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.decisions import Decision
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import AlreadyExists, CommitConflict, LimnosError, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.model.storage_locations import LocationKind
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.services.catalog.tables import NewTable, TableCreate, new_table_of, table_find, table_insert
from limnos.services.iceberg import tables
from limnos.services.iceberg.dataset_fence import DatasetGuard, check_dataset_commit, dataset_guard_of
from limnos.services.iceberg.former_columns import EndedNames, ended_names_of, restrictions_follow
from limnos.services.iceberg.registered_tables import RegisteredTable, table_read_new, tables_read_new
from limnos.services.iceberg.snapshot_pins import pins_check, removed_snapshots
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.idempotency import RepeatedRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_claims import location_move, locations_claim, locations_lock
from limnos.store.idempotency import IdempotencyKey, RequestOutcome
from limnos.store.tx import Tx
from limnos.view.cache_miss import CacheMiss
from limnos.view.keys import ABSENT, Key, name_key


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


async def table_register(
    ctx: Context,
    scope: RequestScope,
    *,
    namespace: Levels,
    name: str,
    metadata_location: str,
    overwrite: bool,
    expected: str | None = None,
) -> tuple[MetadataDocument, CatalogRecord]:
    """Create a table from an existing metadata file; with `overwrite` point an existing table at it.

    `expected` is the metadata location that the existing table must have.

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

    catalog_storage, replaced, guard = await ctx.read(scope, look)
    _require_expected(replaced, expected)
    registered = await table_read_new(ctx, catalog_storage, metadata_location=metadata_location, replaced=replaced)
    if replaced is not None and guard is not None:
        before = iceberg_metadata.decode(replaced.body)
        check_dataset_commit(guard, None, before=before, after=registered.metadata)

    def decide(request_view: RequestView) -> Permit[TableCreate]:
        return new_table_command(
            new_table_of(request_view, namespace, name, Action.TABLE_REGISTER), name, registered=registered
        )

    def decide_again(request_view: RequestView) -> Permit[TableReplace]:
        node, _, decision = table_find(request_view, namespace, name, Action.TABLE_DROP)
        current = request_view.document(node.id)
        _require_expected(current, expected)
        if replaced is not None and (node.id != replaced.node_id or (guard is not None and current != replaced)):
            raise CommitConflict("The table was changed concurrently: read it again and retry")
        keeps_pinned = ctx.services.defaults.keep_pinned
        return request_view.permit(_replacement(registered, node, current=current, keeps_pinned=keeps_pinned), decision)

    if replaced is None:
        return await tables.insert_table(ctx, scope, decide=decide, path=(*namespace, name)), catalog_storage.catalog
    return await ctx.write(scope, decide_again, table_replace), catalog_storage.catalog


def new_table_command(draft: NewTable, name: str, *, registered: RegisteredTable) -> Permit[TableCreate]:
    """Return the command that creates a table from the metadata file that was read."""
    return draft.command(
        name,
        registered.document,
        data_paths=registered.data_paths,
        had_files=registered.had_files,
        adopts=registered.adopts,
    )


def _replacement(
    registered: RegisteredTable, node: Node, *, current: MetadataDocument, keeps_pinned: bool
) -> TableReplace:
    """Return the command that points a table, whose document is `current`, at the metadata file that was read."""
    after = msgspec.structs.replace(registered.document, node_id=node.id, version=current.version + 1)
    return TableReplace(
        table=node,
        document=after,
        expected=current.version,
        removed=removed_snapshots(current.body, after.body) if keeps_pinned else frozenset(),
        data_paths=registered.data_paths,
        ended=ended_names_of(current.body, after.body),
        had_files=registered.had_files,
        adopts=registered.adopts,
    )


def _require_expected(document: MetadataDocument | None, expected: str | None) -> None:
    """Raise CommitConflict if an existing table has another metadata location than the caller expects."""
    if document is not None and expected is not None and document.metadata_location != expected:
        raise CommitConflict(
            f"The table's metadata file is {document.metadata_location}, not {expected}: another client committed to it"
        )


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
    tx.nodes.add_commit_change(node)
    return command.document


class TableRegistration(NamedTuple):
    """A table to register, and the outcome to store with it."""

    path: Levels
    """Its path below the catalog."""
    metadata_location: str
    key: IdempotencyKey
    outcome: RequestOutcome


class TablesRegister(msgspec.Struct, frozen=True, kw_only=True):
    """The command to register tables, each with its stored outcome."""

    tables: tuple[TableCreate, ...]
    keys: tuple[tuple[IdempotencyKey, RequestOutcome], ...]
    lifetime_ms: int
    """How long the outcomes are stored, in milliseconds."""


class _ReadTable(NamedTuple):
    registration: TableRegistration
    table: RegisteredTable


async def tables_register(
    ctx: Context, scope: RequestScope, *, registrations: Sequence[TableRegistration], lifetime_ms: int
) -> frozenset[IdempotencyKey]:
    """Register tables of one catalog. Returns the keys of those that were registered; the others were left out.

    A table is left out if its decision or its metadata file is refused, or if the transaction of all fails.
    """
    try:
        drafts = await ctx.read(scope, lambda request_view: _decide(request_view, registrations)[0])
    except LimnosError:
        return frozenset()
    new_tables = [each for each in registrations if each.path in drafts]
    if not new_tables:
        return frozenset()
    catalog_storage = next(iter(drafts.values())).place  # all are in one catalog
    read = await tables_read_new(ctx, catalog_storage, locations=[each.metadata_location for each in new_tables])
    ready = [_ReadTable(each, table) for each, table in zip(new_tables, read, strict=True) if table is not None]

    def decide(request_view: RequestView) -> Permit[TablesRegister]:
        now, decisions = _decide(request_view, [each.registration for each in ready])
        if len(now) < len(ready):
            raise AlreadyExists("A table was created concurrently", kind="table")
        command = TablesRegister(
            tables=tuple(
                [
                    new_table_command(
                        now[each.registration.path], each.registration.path[-1], registered=each.table
                    ).command
                    for each in ready
                ]
            ),
            keys=tuple([(each.registration.key, each.registration.outcome) for each in ready]),
            lifetime_ms=lifetime_ms,
        )
        return request_view.permit(command, *decisions)

    try:
        if ready:
            await ctx.write(scope, decide, tables_insert)
    except (LimnosError, RepeatedRequest):
        return frozenset()
    return frozenset(each.registration.key for each in ready)


def _decide(
    request_view: RequestView, registrations: Sequence[TableRegistration]
) -> tuple[dict[Levels, NewTable], list[Decision]]:
    """Decide on the registrations, once for each namespace. Returns the allowed ones by path, and the decisions."""
    drafts: dict[Levels, NewTable] = {}
    by_namespace: dict[Levels, list[TableRegistration]] = {}
    for each in registrations:
        by_namespace.setdefault(each.path[:-1], []).append(each)
    decisions: list[Decision] = []
    missing: dict[Key, int] = {}
    for namespace, some in by_namespace.items():
        draft = _draft(request_view, namespace, some=some)
        if draft is None:
            continue
        decisions += draft.permit.decisions
        parent, space = draft.namespace.id, draft.space
        for each in some:
            node_id = request_view.view.get(name_key(parent, space, each.path[-1]))
            if node_id is ABSENT:
                missing[name_key(parent, space, each.path[-1])] = request_view.zone
            elif node_id is None and _is_name(each.path):
                drafts[each.path] = draft
    if missing:
        raise CacheMiss(missing)
    return drafts, decisions


def _draft(request_view: RequestView, namespace: Levels, *, some: Sequence[TableRegistration]) -> NewTable | None:
    """Decide on the first registration whose name is free: its decision holds for all new tables of the namespace.

    Returns None if every name is taken, or the caller may create no table.
    """
    for each in some:
        try:
            return new_table_of(request_view, namespace, each.path[-1], Action.TABLE_REGISTER)
        except AlreadyExists:
            continue
        except LimnosError:
            return None
    return None


def _is_name(path: Levels) -> bool:
    try:
        check_levels(path)
    except InvalidName:
        return False
    return True


def tables_insert(tx: Tx, permit: Permit[TablesRegister]) -> None:
    """Insert the tables with their outcomes.

    Raises the errors of `table_insert`, and RepeatedRequest if an earlier request has registered one of them.
    """
    command = permit.command
    locations_lock(
        tx,
        documents=[each.document for each in command.tables],
        locations=[path for each in command.tables for path in each.data_paths],
    )
    for table, (key, outcome) in zip(command.tables, command.keys, strict=True):
        table_insert(tx, permit.about(table))
        earlier = tx.outcomes.keep(key, outcome, lifetime_ms=command.lifetime_ms)
        if earlier is not None:
            raise RepeatedRequest(earlier)
