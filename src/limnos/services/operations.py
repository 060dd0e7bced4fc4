"""Operations of one transaction: what each does, decided on the scene as the earlier ones left it.

May import the rooms below and the services of what an operation is about. Knows no wire format and writes nothing: a
step names the mutation that a single request of the kind would submit, and `services.transactions` runs them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from limnos.access.actions import Action
from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.names.iceberg import render
from limnos.services.iceberg_tables import TableRequest
from limnos.services.pending import is_new
from limnos.services.tables import new_table_of, table_find

if TYPE_CHECKING:
    from limnos.model.entities import Document, Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.commits import Change
    from limnos.services.pending import Pending
    from limnos.services.tables import NewTable
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
    source: Change | TableRequest | None = None
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
        node, _, decision = table_find(scene, self.path[:-1], self.path[-1], Action.TABLE_COMMIT)
        document = None if is_new(node.id) else scene.document(node.id)
        return Step(scene.permit(None, decision), self.path, table=node, document=document, source=self.change)


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


def shown(path: Levels) -> str:
    """Return a path as messages have it."""
    return render(path)
