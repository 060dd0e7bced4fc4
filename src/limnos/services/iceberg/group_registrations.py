# SPDX-License-Identifier: Apache-2.0
"""Registering many tables of one catalog in one transaction, with one decision for each namespace.

A table that is refused is left out: the caller registers it alone, which gives it its own error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.errors import AlreadyExists, LimnosError
from limnos.model.permits import Permit
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.services.catalog.tables import NewTable, TableCreate, new_table_of, table_insert
from limnos.services.iceberg.registered_tables import RegisteredTable, table_read_new
from limnos.services.iceberg.registrations import new_table_command
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE
from limnos.services.request.idempotency import RepeatedRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_claims import locations_lock
from limnos.store.idempotency import IdempotencyKey, RequestOutcome
from limnos.store.tx import Tx
from limnos.view.cache_miss import CacheMiss
from limnos.view.keys import ABSENT, Key, name_key


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
    place = next(iter(drafts.values())).place  # all are in one catalog
    read = await map_concurrently(new_tables, lambda each: _read(ctx, place, registration=each), at_once=AT_ONCE)
    ready = [each for each in read if each is not None]

    def decide(request_view: RequestView) -> Permit[TablesRegister]:
        now, decisions = _decide(request_view, [each.registration for each in ready])
        if len(now) < len(ready):
            raise AlreadyExists("A table was created concurrently", kind="table")
        command = TablesRegister(
            tables=tuple(
                [
                    new_table_command(now[each.registration.path], each.registration.path[-1], each.table).command
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


async def _read(ctx: Context, place: CatalogStorage, *, registration: TableRegistration) -> _ReadTable | None:
    try:
        table = await table_read_new(ctx, place, metadata_location=registration.metadata_location)
    except LimnosError:
        return None
    return _ReadTable(registration, table)


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
    """Return the decision on new tables of a namespace, by the first whose name is free; None without one."""
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
