# SPDX-License-Identifier: Apache-2.0
"""Transaction plan: the steps of a transaction's operations, each decided on the state that the earlier operations
would leave; of one catalog, or of several of one metalake on request views of the same snapshot.

Must not know any wire format; builds and writes nothing. See `services.transactions.metadata_assembly` for metadata and
`services.transactions.mutations` for the mutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from msgspec.structs import replace

from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.services.iceberg.dataset_fence import DatasetGuard
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.operations import OperationStep, TransactionOperation
from limnos.services.transactions.transaction_view import NEW_ID, TransactionView
from limnos.view.cache_miss import CacheMiss, for_each
from limnos.view.keys import ABSENT, Key, document_key, owner_key

_NEW_IDS = 1 << 20
"""The number of temporary ids for each catalog: more than a transaction has operations."""


class TablePlan(NamedTuple):
    """A table or view whose metadata the transaction creates or changes: the indices of its steps, its current
    document, the storage of its catalog, and the guard of a dataset.
    """

    steps: tuple[int, ...]
    document: MetadataDocument | None
    place: CatalogStorage
    view: tuple[Node, int] | None = None
    """For a changed view: its node, and the writer of its text if the text changes."""
    guard: DatasetGuard | None = None


class TransactionPlan(NamedTuple):
    """The plan of a transaction: its steps, with access decisions made on one snapshot."""

    steps: tuple[OperationStep, ...]
    works: tuple[TablePlan, ...]
    permit: Permit[None]
    zones: tuple[int, ...]
    """The zone of each catalog, in the order of `CatalogOperations.scopes`."""

    @property
    def lines(self) -> list[int]:
        """The ids of the changed tables and views, by which the per-key queues are identified."""
        tables = [work.document.node_id for work in self.works if work.document is not None]
        return tables + [step.queue_id for step in self.steps if step.queue_id is not None]


class CatalogOperations(NamedTuple):
    """The operations of a transaction, with the catalog of each: `catalogs` has indices of `scopes`."""

    scopes: tuple[RequestScope, ...]
    catalogs: tuple[int, ...]
    operations: tuple[TransactionOperation, ...]

    @property
    def scope_of_each(self) -> list[RequestScope]:
        """The catalog of each operation."""
        return [self.scopes[number] for number in self.catalogs]


def operations_of(placed: Sequence[tuple[RequestScope, TransactionOperation]]) -> CatalogOperations:
    """Return operations with their catalogs, in order."""
    scopes = tuple(dict.fromkeys(scope for scope, _ in placed))
    numbers = {scope: number for number, scope in enumerate(scopes)}
    return CatalogOperations(scopes, tuple(numbers[scope] for scope, _ in placed), tuple(each for _, each in placed))


async def read_plan(ctx: Context, requested: CatalogOperations) -> TransactionPlan:
    """Make the access decision on every operation on one snapshot, and return the plan."""
    if len(requested.scopes) == 1:
        return await ctx.read(requested.scopes[0], lambda request_view: plan_of(requested, (request_view,)))
    plan = await read_many_scopes(ctx, requested.scopes, lambda request_views: plan_of(requested, request_views))
    ctx.mark_decided()
    return plan


def plan_of(requested: CatalogOperations, request_views: Sequence[RequestView]) -> TransactionPlan:
    """Make the access decision on every operation, in order, and return the plan. `request_views` has one view for
    each catalog, all of the same snapshot.
    """
    for request_view in request_views:
        request_view.require_in_use()
    operations, catalogs = requested.operations, requested.catalogs
    if len(operations) > 1:
        for_each(
            list(enumerate(request_views)),
            lambda each: _require_cached(
                [operation for operation, at in zip(operations, catalogs, strict=True) if at == each[0]], each[1]
            ),
        )
    pending = [
        TransactionView(request_view, first_id=NEW_ID + number * _NEW_IDS)
        for number, request_view in enumerate(request_views)
    ]
    steps = tuple([_decide_operation(each, pending[at]) for each, at in zip(operations, catalogs, strict=True)])
    catalog_storages = [catalog_storage_of(request_view) for request_view in request_views]
    by_table: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if step.table is not None:
            by_table.setdefault(step.table.id, []).append(number)
    works = tuple(
        [
            _table_plan(steps[numbers[0]], tuple(numbers), place=catalog_storages[catalogs[numbers[0]]])
            for numbers in by_table.values()
        ]
    )
    zones = tuple([request_view.zone for request_view in request_views])
    decisions = [decision for step in steps for decision in step.permit.decisions]
    permit = request_views[0].permit(None, *decisions)
    return TransactionPlan(steps, works, permit if len(zones) == 1 else _joint_permit(permit, request_views), zones)


def _joint_permit(permit: Permit[None], request_views: Sequence[RequestView]) -> Permit[None]:
    """Return a permit to write to several catalogs, which is stale if access to one of them has changed."""
    first, *more = sorted(request_view.zone for request_view in request_views)
    zones = (*request_views[0].settled.zones[:-1], first, *more)
    stamps = request_views[0].view.access_stamps(zones)
    return replace(permit, zone=first, more_zones=tuple(more), stamps=stamps)


def _table_plan(first: OperationStep, numbers: tuple[int, ...], *, place: CatalogStorage) -> TablePlan:
    changes_view = first.kind is Kind.VIEW and first.draft is None
    view = (cast("Node", first.table), first.writer_id) if changes_view else None
    return TablePlan(steps=numbers, document=first.document, place=place, view=view, guard=first.guard)


def _decide_operation(operation: TransactionOperation, pending: TransactionView) -> OperationStep:
    try:
        return operation.decide(pending)
    except (BadRequest, CommitConflict) as error:
        kind, path = operation.targets[0]
        raise name_object_in_error(error, path, what=kind) from error


def _require_cached(operations: Sequence[TransactionOperation], request_view: RequestView) -> None:
    """Raise one CacheMiss for all missing facts of the operations."""
    targets = [target for each in operations for target in each.targets]
    results = for_each(targets, lambda target: request_view.find(target[1], target[0]))
    view = request_view.view
    requested: dict[Key, int] = {}
    for node, chain in results:
        for link in chain:
            key = owner_key(link.id)
            if link.id > 0 and view.get(key) is ABSENT:
                requested[key] = request_view.zone_of(link.kind)
        if node is not None and view.get(document_key(node.id)) is ABSENT:
            requested[document_key(node.id)] = request_view.zone
    if requested:
        raise CacheMiss(requested)
