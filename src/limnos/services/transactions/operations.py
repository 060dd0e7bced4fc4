"""Operations of one transaction: what each does, decided on the scene as the earlier ones left it.

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
from limnos.services.iceberg.dataset_fence import guard_of
from limnos.services.iceberg.tables import TableRequest
from limnos.services.transactions.pending import is_new

if TYPE_CHECKING:
    from limnos.model.entities import Document, Node
    from limnos.model.permits import Permit
    from limnos.model.records import NamespaceRecord
    from limnos.names.path import Levels
    from limnos.services.catalog.tables import NewTable
    from limnos.services.iceberg.commits import Change
    from limnos.services.iceberg.dataset_fence import Guard
    from limnos.services.iceberg.views import Asked as ViewAsked
    from limnos.services.iceberg.views import ViewRequest
    from limnos.services.transactions.pending import Pending
    from limnos.store.tx import Tx

Mutation = Callable[["Tx", "Permit[object]"], object]


class Step(NamedTuple):
    """What one operation comes to.

    `mutation` takes the permit; None when it is the table's metadata that is made or changed, which is built from `source` first.
    """

    permit: Permit[object]
    path: Levels
    mutation: Mutation | None = None
    made: Node | None = None
    """What it makes, under its own number."""
    table: Node | None = None
    document: Document | None = None
    """What a commit's table has now; None when the transaction makes the table."""
    draft: NewTable | None = None
    source: Change | TableRequest | ViewRequest | ViewAsked | None = None
    kind: Kind = Kind.TABLE
    writer_id: int = 0
    """Whom a view's text is by when the step writes it."""
    guard: Guard | None = None
    """What is to be looked after when it changes a table that is a dataset's."""
    wakes: bool = False
    """Whether it leaves a task to whoever works on those."""


class Operation(Protocol):
    """One operation."""

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """What it is about, to be read in advance."""
        ...

    def look(self, scene: Pending) -> Step:
        """Decide, and note what it would do. Raises what the single request would."""
        ...


class TableCommitted(NamedTuple):
    """Commit to a table; one that the commit makes when it asserts that there is none."""

    path: Levels
    change: Change

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The table."""
        return ((Kind.TABLE, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the table, or the place for it."""
        if iceberg_requirements.is_create(self.change.requirements):
            try:
                return _making(scene, self.path, self.change)
            except AlreadyExists as error:
                if error.kind not in ("table", "view"):
                    raise
                raise CommitConflict("Requirement failed: table already exists", requirement="assert-create") from error
        node, chain, decision = table_find(scene, self.path[:-1], self.path[-1], Action.TABLE_COMMIT)
        document = None if is_new(node.id) else scene.document(node.id)
        guard, more = guard_of(scene, node, chain=chain, path=self.path)
        scene.note_changed(node)
        permit = scene.permit(None, decision, *more)
        return Step(permit, self.path, table=node, document=document, source=self.change, guard=guard)


class TableMade(NamedTuple):
    """Make a table."""

    path: Levels
    request: TableRequest

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The place, which is free."""
        return ((Kind.TABLE, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the place."""
        return _making(scene, self.path, self.request)


def _making(scene: Pending, path: Levels, source: Change | TableRequest) -> Step:
    if len(path) < 2:
        raise BadRequest("A table lies in a namespace: name at least two levels")
    draft = new_table_of(scene, path[:-1], path[-1], Action.TABLE_CREATE)
    node = scene.note_made(Kind.TABLE, parent_id=draft.namespace.id, name=path[-1])
    return Step(draft.permit, path, made=node, table=node, draft=draft, source=source)


class TableDropped(NamedTuple):
    """Drop a table; with `purge` its files, too."""

    path: Levels
    purge: bool = False

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The table."""
        return ((Kind.TABLE, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the table."""
        permit = table_drop_of(scene, self.path[:-1], self.path[-1], purge=self.purge)
        _drop(scene, permit.command.table, self.path)
        return Step(permit, self.path, cast("Mutation", table_delete), wakes=self.purge)


class TableMoved(NamedTuple):
    """Give a table another name, or another namespace."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The table, and where it goes."""
        return ((Kind.TABLE, self.path), (Kind.TABLE, self.target))

    def look(self, scene: Pending) -> Step:
        """Find the table, and where it goes."""
        permit = table_move_of(scene, self.path, self.target)
        scene.note_moved(permit.command.table, parent_id=permit.command.into.id, name=self.target[-1])
        return Step(permit, self.target, cast("Mutation", table_reparent))


class ViewMade(NamedTuple):
    """Make a view."""

    path: Levels
    request: ViewRequest

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The place, which is free."""
        return ((Kind.VIEW, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the place."""
        if len(self.path) < 2:
            raise BadRequest("A view lies in a namespace: name at least two levels")
        draft = new_view_of(scene, self.path[:-1], self.path[-1])
        record = ViewRecord(None, {}, writer_of(scene))
        node = scene.note_made(Kind.VIEW, parent_id=draft.namespace.id, name=self.path[-1], record=record)
        return Step(
            draft.permit, self.path, made=node, table=node, draft=draft, source=self.request, kind=Kind.VIEW
        )  # fmt: skip


class ViewCommitted(NamedTuple):
    """Apply updates to a view, once in a transaction."""

    path: Levels
    asked: ViewAsked

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The view."""
        return ((Kind.VIEW, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the view."""
        node, _, decision = view_find(scene, self.path[:-1], self.path[-1], Action.VIEW_ALTER)
        if scene.is_touched(node):
            raise BadRequest("An earlier operation of this transaction makes or changes it: put both into one")
        scene.note_changed(node)
        return Step(
            scene.permit(None, decision), self.path, table=node, document=scene.document(node.id), source=self.asked,
            kind=Kind.VIEW, writer_id=writer_of(scene),
        )  # fmt: skip


class ViewDropped(NamedTuple):
    """Drop a view."""

    path: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The view."""
        return ((Kind.VIEW, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the view."""
        permit = view_drop_of(scene, self.path[:-1], self.path[-1])
        _drop(scene, permit.command.view, self.path)
        return Step(permit, self.path, cast("Mutation", view_delete), kind=Kind.VIEW)


class ViewMoved(NamedTuple):
    """Give a view another name, or another namespace."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The view, and where it goes."""
        return ((Kind.VIEW, self.path), (Kind.VIEW, self.target))

    def look(self, scene: Pending) -> Step:
        """Find the view, and where it goes."""
        permit = view_move_of(scene, self.path, self.target)
        scene.note_moved(permit.command.view, parent_id=permit.command.into.id, name=self.target[-1])
        return Step(permit, self.target, cast("Mutation", view_reparent), kind=Kind.VIEW)


class NamespaceMade(NamedTuple):
    """Make a namespace, in one that is there."""

    path: Levels
    record: NamespaceRecord

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The place, which is free."""
        return ((Kind.NAMESPACE, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the place."""
        permit, _ = namespace_create_of(scene, self.path, self.record, parents=False)
        command = permit.command
        made = scene.note_made(Kind.NAMESPACE, parent_id=command.parent.id, name=self.path[-1], record=command.record)
        return Step(permit, self.path, cast("Mutation", namespace_insert), made, kind=Kind.NAMESPACE)


class NamespaceDropped(NamedTuple):
    """Drop a namespace that is empty then."""

    path: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The namespace."""
        return ((Kind.NAMESPACE, self.path),)

    def look(self, scene: Pending) -> Step:
        """Find the namespace."""
        permit = namespace_drop_of(scene, self.path)
        _drop(scene, permit.command.namespace, self.path)
        return Step(permit, self.path, cast("Mutation", namespace_delete), kind=Kind.NAMESPACE)


class NamespaceMoved(NamedTuple):
    """Give a namespace another name or place, with whatever is in it."""

    path: Levels
    target: Levels

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The namespace, and where it goes."""
        return ((Kind.NAMESPACE, self.path), (Kind.NAMESPACE, self.target))

    def look(self, scene: Pending) -> Step:
        """Find the namespace, and where it goes."""
        permit = namespace_move_of(scene, self.path, self.target)
        scene.note_moved(permit.command.namespace, parent_id=permit.command.into.id, name=self.target[-1])
        return Step(permit, self.target, cast("Mutation", namespace_reparent), kind=Kind.NAMESPACE)


def _drop(scene: Pending, node: Node, path: Levels) -> None:
    """Note that something goes. What the same transaction makes or changes does not: it would be done for nothing."""
    if scene.is_touched(node):
        raise BadRequest(
            f"An earlier operation of this transaction makes or changes {render(path)}: leave that one out, or this one"
        )
    scene.note_gone(node)
