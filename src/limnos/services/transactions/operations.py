# SPDX-License-Identifier: Apache-2.0
"""Transaction operations: makes the access decision on each operation, on the state that the earlier operations would
leave.

Must not know any wire format, and writes nothing. A step contains the mutation that a single request would submit;
`services.transactions.transactions` runs them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from limnos.access.actions import Action
from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import NamespaceRecord, ViewRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.catalog import tables, views
from limnos.services.catalog.namespaces import (
    namespace_create_of,
    namespace_delete,
    namespace_drop_of,
    namespace_insert,
    namespace_move_of,
    namespace_reparent,
)
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.iceberg.dataset_fence import DatasetGuard, dataset_guard_of
from limnos.services.iceberg.tables import TableRegisterRequest, TableRequest
from limnos.services.iceberg.views import ViewReplaceRequest as ViewAsked
from limnos.services.iceberg.views import ViewRequest
from limnos.services.transactions.transaction_view import TransactionView, is_new
from limnos.store.tx import Tx

OperationMutation = Callable[["Tx", "Permit[object]"], object]


class OperationStep(NamedTuple):
    """An operation after its access decision, with the mutation to run.

    `mutation` is None for an operation on a table's or view's metadata: its mutation is assembled after the metadata is
    built from `source`.
    """

    permit: Permit[object]
    path: Levels
    mutation: OperationMutation | None = None
    created_node: Node | None = None
    """The node that it creates, under a temporary id."""
    table: Node | None = None
    document: MetadataDocument | None = None
    """The present document of the changed table or view; None if the transaction creates it."""
    draft: tables.NewTable | None = None
    source: CommitChange | TableRequest | TableRegisterRequest | ViewRequest | ViewAsked | None = None
    kind: Kind = Kind.TABLE
    writer_id: int = 0
    """The writer of a view's text, if the step writes it."""
    guard: DatasetGuard | None = None
    """The guard of the SQL++ dataset that it changes; None for another object."""
    queue_id: int | None = None
    """The id of the table in whose queue the transaction waits, beside the tables of `table`."""
    wakes: bool = False
    """Whether it creates a task, so that the worker must be woken."""

    @property
    def table_change(self) -> CommitChange | None:
        """The change of a table's metadata; None for another operation."""
        return self.source if isinstance(self.source, CommitChange) else None

    @property
    def is_new_table(self) -> bool:
        """Whether it creates or registers a table; False for a commit that creates one (`assert-create`)."""
        return isinstance(self.source, (TableRequest, TableRegisterRequest))

    @property
    def requested_location(self) -> str | None:
        """The location that the creator of a table asks for; None for another operation."""
        return self.source.location if isinstance(self.source, TableRequest) else None


class TransactionOperation(Protocol):
    """The interface of a transaction's operations: the names that an operation needs, and its access decision."""

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The names of objects that the operation needs, so that they can be loaded with one statement."""

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Make the access decision on the operation, and record its effects for later operations.

        Raises the errors that a single request of this kind raises.
        """


class TableCommitOperation(NamedTuple):
    """The operation that commits to a table; the commit creates the table if it asserts that none exists."""

    path: Levels
    change: CommitChange

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The name of the table that the commit changes."""
        return ((Kind.TABLE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Find the table, and decide whether the caller may commit to it; for a missing table, whether the caller may
        create it. Raises CommitConflict if a table exists and the commit asserts that none does.
        """
        if iceberg_requirements.is_create(self.change.requirements):
            try:
                return _decide_table_create(request_view, self.path, self.change)
            except AlreadyExists as error:
                if error.kind not in ("table", "view"):
                    raise
                raise CommitConflict("Requirement failed: table already exists", requirement="assert-create") from error
        node, chain, decision = tables.table_find(request_view, self.path[:-1], self.path[-1], Action.TABLE_COMMIT)
        if request_view.is_registered(node):
            raise BadRequest(
                "An earlier operation of this transaction registers the table: commit to it in a later request"
            )
        document = None if is_new(node.id) else request_view.document(node.id)
        guard, more = dataset_guard_of(request_view, node, chain=chain, path=self.path)
        request_view.note_changed(node)
        permit = request_view.permit(None, decision, *more)
        return OperationStep(
            permit=permit, path=self.path, table=node, document=document, source=self.change, guard=guard
        )


def table_commit_of(path: Levels, *, requirements: list[object], updates: list[object]) -> TableCommitOperation:
    """Return the operation that commits to a table, from the JSON of requirements and updates."""
    return TableCommitOperation(path, CommitChange(requirements, updates))


class TableCreateOperation(NamedTuple):
    """The operation that creates a table from its metadata, within the transaction."""

    path: Levels
    request: TableRequest

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The new table's name."""
        return ((Kind.TABLE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may create the table."""
        return _decide_table_create(request_view, self.path, self.request)


class TableRegisterOperation(NamedTuple):
    """The operation that creates a table from an existing metadata file, which the transaction reads and keeps."""

    path: Levels
    metadata_location: str

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The new table's name."""
        return ((Kind.TABLE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may register the table."""
        source = TableRegisterRequest(self.metadata_location)
        step = _decide_table_create(request_view, self.path, source, action=Action.TABLE_REGISTER)
        request_view.note_registered(cast("Node", step.table))
        return step


def _decide_table_create(
    request_view: TransactionView,
    path: Levels,
    source: CommitChange | TableRequest | TableRegisterRequest,
    *,
    action: Action = Action.TABLE_CREATE,
) -> OperationStep:
    if len(path) < 2:
        raise BadRequest("A table must be in a namespace: give at least two levels")
    draft = tables.new_table_of(request_view, path[:-1], path[-1], action)
    node = request_view.note_made(Kind.TABLE, parent_id=draft.namespace.id, name=path[-1])
    return OperationStep(permit=draft.permit, path=path, created_node=node, table=node, draft=draft, source=source)


class TableDropOperation(NamedTuple):
    """The operation that drops a table; with `purge` also its files."""

    path: Levels
    purge: bool = False

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The name of the table to drop."""
        return ((Kind.TABLE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may drop the table."""
        permit = tables.table_drop_of(request_view, self.path[:-1], self.path[-1], purge=self.purge)
        _note_drop(request_view, permit.command.table, self.path)
        return OperationStep(
            permit=permit, path=self.path, mutation=cast("OperationMutation", tables.table_delete), wakes=self.purge
        )


class TableMoveOperation(NamedTuple):
    """The operation that renames a table, or moves it to another namespace."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The old and the new name of the table."""
        return ((Kind.TABLE, self.path), (Kind.TABLE, self.target))

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may move the table."""
        permit = tables.table_move_of(request_view, self.path, self.target)
        request_view.note_moved(permit.command.table, parent_id=permit.command.into.id, name=self.target[-1])
        return OperationStep(permit=permit, path=self.target, mutation=cast("OperationMutation", tables.table_reparent))


class ViewCreateOperation(NamedTuple):
    """The operation that creates a view from its metadata, within the transaction."""

    path: Levels
    request: ViewRequest

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The new view's name."""
        return ((Kind.VIEW, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may create the view."""
        if len(self.path) < 2:
            raise BadRequest("A view must be in a namespace: give at least two levels")
        draft = views.new_view_of(request_view, self.path[:-1], self.path[-1])
        record = ViewRecord(None, {}, views.writer_of(request_view))
        node = request_view.note_made(Kind.VIEW, parent_id=draft.namespace.id, name=self.path[-1], record=record)
        return OperationStep(
            permit=draft.permit,
            path=self.path,
            created_node=node,
            table=node,
            draft=draft,
            source=self.request,
            kind=Kind.VIEW,
        )


class ViewCommitOperation(NamedTuple):
    """The operation that applies updates to a view, at most once in a transaction."""

    path: Levels
    request: ViewAsked

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The name of the view that the commit changes."""
        return ((Kind.VIEW, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may change the view. Raises BadRequest if an earlier operation creates or changes
        it.
        """
        node, _, decision = views.view_find(request_view, self.path[:-1], self.path[-1], Action.VIEW_ALTER)
        if request_view.is_touched(node):
            raise BadRequest("An earlier operation of this transaction creates or changes it: merge both operations")
        request_view.note_changed(node)
        return OperationStep(
            permit=request_view.permit(None, decision),
            path=self.path,
            table=node,
            document=request_view.document(node.id),
            source=self.request,
            kind=Kind.VIEW,
            writer_id=views.writer_of(request_view),
        )


class ViewDropOperation(NamedTuple):
    """The operation that drops a view."""

    path: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The name of the view to drop."""
        return ((Kind.VIEW, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may drop the view."""
        permit = views.view_drop_of(request_view, self.path[:-1], self.path[-1])
        _note_drop(request_view, permit.command.view, self.path)
        return OperationStep(
            permit=permit, path=self.path, mutation=cast("OperationMutation", views.view_delete), kind=Kind.VIEW
        )


class ViewMoveOperation(NamedTuple):
    """The operation that renames a view, or moves it to another namespace."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The old and the new name of the view."""
        return ((Kind.VIEW, self.path), (Kind.VIEW, self.target))

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may move the view."""
        permit = views.view_move_of(request_view, self.path, self.target)
        request_view.note_moved(permit.command.view, parent_id=permit.command.into.id, name=self.target[-1])
        return OperationStep(
            permit=permit, path=self.target, mutation=cast("OperationMutation", views.view_reparent), kind=Kind.VIEW
        )


class NamespaceCreateOperation(NamedTuple):
    """The operation that creates a namespace in an existing parent."""

    path: Levels
    record: NamespaceRecord

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The new namespace's name."""
        return ((Kind.NAMESPACE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may create the namespace."""
        permit, _ = namespace_create_of(request_view, self.path, self.record, parents=False)
        command = permit.command
        node = request_view.note_made(
            Kind.NAMESPACE, parent_id=command.parent.id, name=self.path[-1], record=command.record
        )
        return OperationStep(
            permit=permit,
            path=self.path,
            mutation=cast("OperationMutation", namespace_insert),
            created_node=node,
            kind=Kind.NAMESPACE,
        )


class NamespaceDropOperation(NamedTuple):
    """The operation that drops a namespace, which must be empty after the earlier operations."""

    path: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The name of the namespace to drop."""
        return ((Kind.NAMESPACE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may drop the namespace."""
        permit = namespace_drop_of(request_view, self.path)
        _note_drop(request_view, permit.command.namespace, self.path)
        return OperationStep(
            permit=permit, path=self.path, mutation=cast("OperationMutation", namespace_delete), kind=Kind.NAMESPACE
        )


class NamespaceMoveOperation(NamedTuple):
    """The operation that renames or moves a namespace, with all objects in it."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The old and the new name of the namespace."""
        return ((Kind.NAMESPACE, self.path), (Kind.NAMESPACE, self.target))

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may move the namespace."""
        permit = namespace_move_of(request_view, self.path, self.target)
        request_view.note_moved(permit.command.namespace, parent_id=permit.command.into.id, name=self.target[-1])
        return OperationStep(
            permit=permit, path=self.target, mutation=cast("OperationMutation", namespace_reparent), kind=Kind.NAMESPACE
        )


def _note_drop(request_view: TransactionView, node: Node, path: Levels) -> None:
    """Record a drop. Raises BadRequest for an object that the same transaction creates or changes."""
    if request_view.is_touched(node):
        raise BadRequest(
            f"An earlier operation of this transaction creates or changes {render(path)}: leave that one out, or"
            " this one"
        )
    request_view.note_dropped(node)
