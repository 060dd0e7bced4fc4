"""Transactions: moves, drops, creates and commits in one catalog, all of them or none.

May import `access`, `names`, `services`, `model` and this package. Operations are taken in their order; what an earlier one makes or
moves is where the later ones find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.access.actions import Action
from limnos.http.admin.bodies import Body, names_of
from limnos.http.admin.numbers import Attempt
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.records import NamespaceRecord
from limnos.names.parts import check_some_levels
from limnos.services.iceberg.commits import Change
from limnos.services.iceberg.tables import TableRequest
from limnos.services.iceberg.views import Asked as ViewAsked
from limnos.services.iceberg.views import ViewRequest
from limnos.services.request.chores import REQUEST_BYTES_MAX
from limnos.services.request.scene import Scope
from limnos.services.transactions import operations as operated
from limnos.services.transactions.publishing import RunPublished
from limnos.services.transactions.transactions import OPERATIONS_MAX, transact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.http.application import Handler
    from limnos.model.entities import Document
    from limnos.services.request.context import Context
    from limnos.services.transactions.operations import Operation

_REQUIREMENTS_SEEN_MAX = 8
"""Of a large commit: a create's assert-create stands alone."""


class _Operation(Body, frozen=True, tag_field="do"):
    """One operation; `do` says which."""


class NamespaceCreate(_Operation, frozen=True, tag="create-namespace"):
    """Make a namespace; its parent is there, or an earlier operation makes it."""

    path: list[str]
    comment: str | None = None
    properties: dict[str, str] | None = None

    def asked(self) -> Operation:
        """Say it in the services' words."""
        record = NamespaceRecord(comment=self.comment, properties=self.properties or {})
        return operated.NamespaceMade(check_some_levels(self.path), record)


class NamespaceDrop(_Operation, frozen=True, tag="drop-namespace"):
    """Drop a namespace that is empty then."""

    path: list[str]

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return operated.NamespaceDropped(check_some_levels(self.path))


class NamespaceMove(_Operation, frozen=True, tag="move-namespace"):
    """Rename or move a namespace with whatever is in it."""

    source: list[str]
    target: list[str]

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return operated.NamespaceMoved(check_some_levels(self.source), check_some_levels(self.target))


class TableCreate(_Operation, frozen=True, tag="create-table"):
    """Make a table; the parts are as in Iceberg REST."""

    path: list[str]
    schema: dict[str, object]
    location: str | None = None
    partition_spec: dict[str, object] | None = None
    write_order: dict[str, object] | None = None
    properties: dict[str, str] | None = None

    def asked(self) -> Operation:
        """Say it in the services' words; a large schema is left to a chore."""
        path = check_some_levels(self.path)
        parts = {
            "schema": self.schema, "partition-spec": self.partition_spec, "write-order": self.write_order,
            "properties": self.properties,
        }  # fmt: skip
        raw = msgspec.json.encode(parts)
        if len(raw) > REQUEST_BYTES_MAX:
            return operated.TableMade(path, TableRequest(path[-1], self.location, None, None, None, None, raw))
        return operated.TableMade(
            path,
            TableRequest(path[-1], self.location, self.schema, self.partition_spec, self.write_order, self.properties),
        )


class TableCommit(_Operation, frozen=True, tag="commit-table"):
    """Commit to a table, as in Iceberg REST; with `assert-create` it is made."""

    path: list[str]
    requirements: tuple[object, ...] = ()
    updates: tuple[object, ...] = ()

    def asked(self) -> Operation:
        """Say it in the services' words; what is large is left to a chore."""
        path = check_some_levels(self.path)
        change = Change(list(self.requirements), list(self.updates))
        raw = msgspec.json.encode({"requirements": self.requirements, "updates": self.updates})
        if len(raw) > REQUEST_BYTES_MAX:
            change = Change(list(self.requirements[:_REQUIREMENTS_SEEN_MAX]), [], raw)
        return operated.TableCommitted(path, change)


class TableDrop(_Operation, frozen=True, tag="drop-table"):
    """Drop a table; with `purge` its files, too."""

    path: list[str]
    purge: bool = False

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return operated.TableDropped(check_some_levels(self.path), self.purge)


class TableMove(_Operation, frozen=True, tag="move-table"):
    """Rename or move a table."""

    source: list[str]
    target: list[str]

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return operated.TableMoved(check_some_levels(self.source), check_some_levels(self.target))


class ViewCreate(_Operation, frozen=True, tag="create-view"):
    """Make a view; the parts are as in Iceberg REST."""

    path: list[str]
    schema: dict[str, object]
    view_version: dict[str, object]
    location: str | None = None
    properties: dict[str, str] | None = None

    def asked(self) -> Operation:
        """Say it in the services' words; a large text is left to a chore."""
        path = check_some_levels(self.path)
        parts = {"schema": self.schema, "view-version": self.view_version, "properties": self.properties or {}}
        raw = msgspec.json.encode(parts)
        if len(raw) > REQUEST_BYTES_MAX:
            return operated.ViewMade(path, ViewRequest(path[-1], self.location, {}, {}, None, raw))
        return operated.ViewMade(
            path, ViewRequest(path[-1], self.location, self.schema, self.view_version, self.properties)
        )


class ViewCommit(_Operation, frozen=True, tag="commit-view"):
    """Apply updates to a view, as in Iceberg REST."""

    path: list[str]
    requirements: tuple[object, ...] = ()
    updates: tuple[object, ...] = ()

    def asked(self) -> Operation:
        """Say it in the services' words; what is large is left to a chore."""
        path = check_some_levels(self.path)
        raw = msgspec.json.encode({"requirements": self.requirements, "updates": self.updates})
        if len(raw) > REQUEST_BYTES_MAX:
            return operated.ViewCommitted(path, ViewAsked(path[:-1], path[-1], [], [], raw))
        asked = ViewAsked(path[:-1], path[-1], list(self.requirements), list(self.updates))
        return operated.ViewCommitted(path, asked)


class ViewDrop(_Operation, frozen=True, tag="drop-view"):
    """Drop a view."""

    path: list[str]

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return operated.ViewDropped(check_some_levels(self.path))


class ViewMove(_Operation, frozen=True, tag="move-view"):
    """Rename or move a view."""

    source: list[str]
    target: list[str]

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return operated.ViewMoved(check_some_levels(self.source), check_some_levels(self.target))


class RunPublish(_Operation, frozen=True, tag="publish-run"):
    """Set a run of a pipeline published, if it is running or held under that attempt."""

    run: str
    attempt: Attempt

    def asked(self) -> Operation:
        """Say it in the services' words."""
        return RunPublished(self.run, self.attempt)


AnyOperation = (
    ViewCreate
    | ViewCommit
    | ViewDrop
    | ViewMove
    | NamespaceCreate
    | NamespaceDrop
    | NamespaceMove
    | TableCreate
    | TableCommit
    | TableDrop
    | TableMove
    | RunPublish
)


class Transaction(Body, frozen=True):
    """What is to be done, in this order."""

    operations: list[AnyOperation]


async def transaction_run(request: Request, ctx: Context) -> Response:
    """Do all operations or none, and answer what each did."""
    metalake, catalog = names_of(request)
    body = Request.decode(await request.body(), Transaction)
    if not body.operations:
        raise BadRequest("Field 'operations' is empty: name at least one")
    if len(body.operations) > OPERATIONS_MAX:
        raise BadRequest(
            f"Field 'operations' has at most {OPERATIONS_MAX} operations, not {len(body.operations)}: send several transactions"
        )

    def told(revision: int, documents: Sequence[Document | None]) -> bytes:
        each_told = [_told(catalog, each, document) for each, document in zip(body.operations, documents, strict=True)]
        return msgspec.json.encode({"revision": revision, "operations": each_told})

    asked = [each.asked() for each in body.operations]
    return Response(200, told(*await transact(ctx, Scope(metalake, catalog), asked, told=told)))


def _told(catalog: str, operation: AnyOperation, document: Document | None) -> dict[str, object]:
    """Tell what an operation did: where its object is after it, and a table's new metadata."""
    if isinstance(operation, RunPublish):
        return {"do": "publish-run", "run": operation.run}
    path = operation.target if isinstance(operation, (NamespaceMove, TableMove, ViewMove)) else operation.path
    told: dict[str, object] = {"do": operation.__struct_config__.tag, "path": [catalog, *path]}
    if document is not None:
        told |= {"uuid": document.uuid, "metadata_location": document.metadata_location}
    return told


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        "POST",
        "/api/limnos/v1/metalakes/{m}/catalogs/{c}/transactions",
        transaction_run,
        "transaction",
        asks=(
            Action.TABLE_COMMIT,
            Action.TABLE_CREATE,
            Action.TABLE_MOVE,
            Action.TABLE_DROP,
            Action.VIEW_CREATE,
            Action.VIEW_ALTER,
            Action.VIEW_MOVE,
            Action.VIEW_DROP,
            Action.NAMESPACE_CREATE,
            Action.NAMESPACE_MOVE,
            Action.NAMESPACE_DROP,
        ),
    ),
)
