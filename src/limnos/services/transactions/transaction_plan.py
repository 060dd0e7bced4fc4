# SPDX-License-Identifier: Apache-2.0
"""Transaction plan: the steps of a transaction's operations, each decided on the state that the earlier operations
would leave.

Must not know any wire format; builds and writes nothing. See `services.transactions.metadata_assembly` for metadata and
`services.transactions.mutations` for the mutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.services.iceberg.dataset_fence import DatasetGuard
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.operations import OperationStep, TransactionOperation
from limnos.services.transactions.transaction_view import TransactionView
from limnos.view.cache_miss import CacheMiss, for_each
from limnos.view.keys import ABSENT, Key, document_key, owner_key


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

    @property
    def lines(self) -> list[int]:
        """The ids of the changed tables and views, by which the per-key queues are identified."""
        return [work.document.node_id for work in self.works if work.document is not None]


def plan_of(operations: Sequence[TransactionOperation], request_view: RequestView) -> TransactionPlan:
    """Make the access decision on every operation, in order, and return the plan."""
    request_view.require_in_use()
    if len(operations) > 1:
        _require_cached(operations, request_view)
    pending = TransactionView(request_view)
    steps = tuple([_decide_operation(each, pending) for each in operations])
    place = catalog_storage_of(request_view)
    by_table: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if step.table is not None:
            by_table.setdefault(step.table.id, []).append(number)
    works = tuple([_table_plan(steps[numbers[0]], tuple(numbers), place=place) for numbers in by_table.values()])
    decisions = [decision for step in steps for decision in step.permit.decisions]
    return TransactionPlan(steps, works, request_view.permit(None, *decisions))


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
