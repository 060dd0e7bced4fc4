"""Operations of one transaction: what each does, decided on the request view as the earlier ones left it.

May import the rooms below and the services of what an operation is about. Knows no wire format and writes nothing: a
step names the mutation that a single request of the kind would submit, and `services.transactions.transactions` runs them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from limnos.access.actions import Action
from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.model.records import ViewRecord
from limnos.names.iceberg import render
from limnos.services.catalog.namespaces import (
    namespace_create_of,
    namespace_delete,
    namespace_drop_of,
    namespace_insert,
    namespace_move_of,
    namespace_reparent,
)
from limnos.services.catalog.tables import (
    new_table_of,
    table_delete,
    table_drop_of,
    table_find,
    table_move_of,
    table_reparent,
)
from limnos.services.catalog.views import (
    new_view_of,
    view_delete,
    view_drop_of,
    view_find,
    view_move_of,
    view_reparent,
    writer_of,
)
from limnos.services.iceberg.dataset_fence import dataset_guard_of
from limnos.services.iceberg.tables import TableRequest
from limnos.services.transactions.transaction_view import is_new

if TYPE_CHECKING:
    from limnos.model.entities import MetadataDocument, Node
    from limnos.model.permits import Permit
    from limnos.model.records import NamespaceRecord
    from limnos.names.path import Levels
    from limnos.services.catalog.tables import NewTable
    from limnos.services.iceberg.commits import CommitChange
    from limnos.services.iceberg.dataset_fence import DatasetGuard
    from limnos.services.iceberg.views import ViewReplaceRequest as ViewAsked
    from limnos.services.iceberg.views import ViewRequest
    from limnos.services.transactions.transaction_view import TransactionView
    from limnos.store.tx import Tx

OperationMutation = Callable[["Tx", "Permit[object]"], object]


class OperationStep(NamedTuple):
    """What one operation comes to.

    `mutation` takes the permit; None when it is the table's metadata that is made or changed, which is built from `source` first.
    """

    permit: Permit[object]
    path: Levels
    mutation: OperationMutation | None = None
    made: Node | None = None
    """What it makes, under its own number."""
    table: Node | None = None
    document: MetadataDocument | None = None
    """What a commit's table has now; None when the transaction makes the table."""
    draft: NewTable | None = None
    source: CommitChange | TableRequest | ViewRequest | ViewAsked | None = None
    kind: Kind = Kind.TABLE
    writer_id: int = 0
    """Whom a view's text is by when the step writes it."""
    guard: DatasetGuard | None = None
    """What is to be looked after when it changes a table that is a dataset's."""
    wakes: bool = False
    """Whether it leaves a task to whoever works on those."""


class TransactionOperation(Protocol):
    """One operation."""

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """What it is about, to be read in advance."""
        ...

    def look(self, request_view: TransactionView) -> OperationStep:
        """Decide, and note what it would do. Raises what the single request would."""
        ...


class TableCommitOperation(NamedTuple):
    """Commit to a table; one that the commit makes when it asserts that there is none."""

    path: Levels
    change: CommitChange

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The table."""
        return ((Kind.TABLE, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the table, or the place for it."""
        if iceberg_requirements.is_create(self.change.requirements):
            try:
                return _decide_table_create(request_view, self.path, self.change)
            except AlreadyExists as error:
                if error.kind not in ("table", "view"):
                    raise
                raise CommitConflict("Requirement failed: table already exists", requirement="assert-create") from error
        node, chain, decision = table_find(request_view, self.path[:-1], self.path[-1], Action.TABLE_COMMIT)
        document = None if is_new(node.id) else request_view.document(node.id)
        guard, more = dataset_guard_of(request_view, node, chain=chain, path=self.path)
        request_view.note_changed(node)
        permit = request_view.permit(None, decision, *more)
        return OperationStep(permit, self.path, table=node, document=document, source=self.change, guard=guard)


class TableCreateOperation(NamedTuple):
    """Make a table."""

    path: Levels
    request: TableRequest

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The place, which is free."""
        return ((Kind.TABLE, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the place."""
        return _decide_table_create(request_view, self.path, self.request)


def _decide_table_create(
    request_view: TransactionView, path: Levels, source: CommitChange | TableRequest
) -> OperationStep:
    if len(path) < 2:
        raise BadRequest("A table lies in a namespace: name at least two levels")
    draft = new_table_of(request_view, path[:-1], path[-1], Action.TABLE_CREATE)
    node = request_view.note_made(Kind.TABLE, parent_id=draft.namespace.id, name=path[-1])
    return OperationStep(draft.permit, path, made=node, table=node, draft=draft, source=source)


class TableDropOperation(NamedTuple):
    """Drop a table; with `purge` its files, too."""

    path: Levels
    purge: bool = False

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The table."""
        return ((Kind.TABLE, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the table."""
        permit = table_drop_of(request_view, self.path[:-1], self.path[-1], purge=self.purge)
        _note_drop(request_view, permit.command.table, self.path)
        return OperationStep(permit, self.path, cast("OperationMutation", table_delete), wakes=self.purge)


class TableMoveOperation(NamedTuple):
    """Give a table another name, or another namespace."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The table, and where it goes."""
        return ((Kind.TABLE, self.path), (Kind.TABLE, self.target))

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the table, and where it goes."""
        permit = table_move_of(request_view, self.path, self.target)
        request_view.note_moved(permit.command.table, parent_id=permit.command.into.id, name=self.target[-1])
        return OperationStep(permit, self.target, cast("OperationMutation", table_reparent))


class ViewCreateOperation(NamedTuple):
    """Make a view."""

    path: Levels
    request: ViewRequest

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The place, which is free."""
        return ((Kind.VIEW, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the place."""
        if len(self.path) < 2:
            raise BadRequest("A view lies in a namespace: name at least two levels")
        draft = new_view_of(request_view, self.path[:-1], self.path[-1])
        record = ViewRecord(None, {}, writer_of(request_view))
        node = request_view.note_made(Kind.VIEW, parent_id=draft.namespace.id, name=self.path[-1], record=record)
        return OperationStep(
            draft.permit, self.path, made=node, table=node, draft=draft, source=self.request, kind=Kind.VIEW
        )  # fmt: skip


class ViewCommitOperation(NamedTuple):
    """Apply updates to a view, once in a transaction."""

    path: Levels
    asked: ViewAsked

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The view."""
        return ((Kind.VIEW, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the view."""
        node, _, decision = view_find(request_view, self.path[:-1], self.path[-1], Action.VIEW_ALTER)
        if request_view.is_touched(node):
            raise BadRequest("An earlier operation of this transaction makes or changes it: put both into one")
        request_view.note_changed(node)
        return OperationStep(
            request_view.permit(None, decision), self.path, table=node, document=request_view.document(node.id), source=self.asked,
            kind=Kind.VIEW, writer_id=writer_of(request_view),
        )  # fmt: skip


class ViewDropOperation(NamedTuple):
    """Drop a view."""

    path: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The view."""
        return ((Kind.VIEW, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the view."""
        permit = view_drop_of(request_view, self.path[:-1], self.path[-1])
        _note_drop(request_view, permit.command.view, self.path)
        return OperationStep(permit, self.path, cast("OperationMutation", view_delete), kind=Kind.VIEW)


class ViewMoveOperation(NamedTuple):
    """Give a view another name, or another namespace."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The view, and where it goes."""
        return ((Kind.VIEW, self.path), (Kind.VIEW, self.target))

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the view, and where it goes."""
        permit = view_move_of(request_view, self.path, self.target)
        request_view.note_moved(permit.command.view, parent_id=permit.command.into.id, name=self.target[-1])
        return OperationStep(permit, self.target, cast("OperationMutation", view_reparent), kind=Kind.VIEW)


class NamespaceCreateOperation(NamedTuple):
    """Make a namespace, in one that is there."""

    path: Levels
    record: NamespaceRecord

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The place, which is free."""
        return ((Kind.NAMESPACE, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the place."""
        permit, _ = namespace_create_of(request_view, self.path, self.record, parents=False)
        command = permit.command
        made = request_view.note_made(
            Kind.NAMESPACE, parent_id=command.parent.id, name=self.path[-1], record=command.record
        )
        return OperationStep(permit, self.path, cast("OperationMutation", namespace_insert), made, kind=Kind.NAMESPACE)


class NamespaceDropOperation(NamedTuple):
    """Drop a namespace that is empty then."""

    path: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The namespace."""
        return ((Kind.NAMESPACE, self.path),)

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the namespace."""
        permit = namespace_drop_of(request_view, self.path)
        _note_drop(request_view, permit.command.namespace, self.path)
        return OperationStep(permit, self.path, cast("OperationMutation", namespace_delete), kind=Kind.NAMESPACE)


class NamespaceMoveOperation(NamedTuple):
    """Give a namespace another name or place, with whatever is in it."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The namespace, and where it goes."""
        return ((Kind.NAMESPACE, self.path), (Kind.NAMESPACE, self.target))

    def look(self, request_view: TransactionView) -> OperationStep:
        """Find the namespace, and where it goes."""
        permit = namespace_move_of(request_view, self.path, self.target)
        request_view.note_moved(permit.command.namespace, parent_id=permit.command.into.id, name=self.target[-1])
        return OperationStep(permit, self.target, cast("OperationMutation", namespace_reparent), kind=Kind.NAMESPACE)


def _note_drop(request_view: TransactionView, node: Node, path: Levels) -> None:
    """Note that something goes. What the same transaction makes or changes does not: it would be done for nothing."""
    if request_view.is_touched(node):
        raise BadRequest(
            f"An earlier operation of this transaction makes or changes {render(path)}: leave that one out, or this one"
        )
    request_view.note_dropped(node)
