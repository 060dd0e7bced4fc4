# SPDX-License-Identifier: Apache-2.0
"""Transactions: moves, drops, creates and commits in one or several catalogs, executed atomically.

Has no business rules. Operations apply in order: later ones see the objects that earlier ones created or moved.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.access.actions import Action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import Attempt
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest
from limnos.model.records import NamespaceRecord
from limnos.names.parts import check_catalog_name, check_some_levels
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.iceberg.tables import TableRequest
from limnos.services.iceberg.views import ViewReplaceRequest as ViewAsked
from limnos.services.iceberg.views import ViewRequest
from limnos.services.lance.table_files import NewVersion
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions import operations as operated
from limnos.services.transactions.lance_versions import LanceVersionOperation
from limnos.services.transactions.operations import TransactionOperation
from limnos.services.transactions.run_publishing import RunPublishOperation
from limnos.services.transactions.transactions import (
    CATALOGS_MAX,
    OPERATIONS_MAX,
    joint_transaction_execute,
    require_member,
)

_REQUIREMENTS_DECODED_MAX = 8
"""The number of requirements of a large commit that are decoded: enough to find `assert-create`, which is the only
requirement of a create.
"""


class _OperationBody(AdminRequestBody, frozen=True, tag_field="do", kw_only=True):
    """The base class of operations. The JSON field `do` selects the type."""

    catalog: str | None = None
    """The operation's catalog, in a transaction of several; else None."""


class NamespaceCreate(_OperationBody, frozen=True, tag="create-namespace"):
    """An operation that creates a namespace, whose parent exists or is created by an earlier operation."""

    path: list[str]
    comment: str | None = None
    properties: dict[str, str] | None = None

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        record = NamespaceRecord(comment=self.comment, properties=self.properties or {})
        return operated.NamespaceCreateOperation(check_some_levels(self.path), record)


class NamespaceDrop(_OperationBody, frozen=True, tag="drop-namespace"):
    """An operation that drops a namespace, which must be empty when the operation is applied."""

    path: list[str]

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.NamespaceDropOperation(check_some_levels(self.path))


class NamespaceMove(_OperationBody, frozen=True, tag="move-namespace"):
    """An operation that renames or moves a namespace with its content."""

    source: list[str]
    target: list[str]

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.NamespaceMoveOperation(check_some_levels(self.source), check_some_levels(self.target))


class TableCreate(_OperationBody, frozen=True, tag="create-table", kw_only=True):
    """An operation that creates a table; its fields are those of Iceberg REST."""

    path: list[str]
    schema: dict[str, object]
    location: str | None = None
    partition_spec: dict[str, object] | None = None
    write_order: dict[str, object] | None = None
    properties: dict[str, str] | None = None

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command. A large schema is passed on as encoded JSON, which a separate
        process decodes.
        """
        path = check_some_levels(self.path)
        parts = {
            "schema": self.schema,
            "partition-spec": self.partition_spec,
            "write-order": self.write_order,
            "properties": self.properties,
        }
        raw = msgspec.json.encode(parts)
        if len(raw) > REQUEST_BYTES_MAX:
            return operated.TableCreateOperation(
                path,
                TableRequest(
                    name=path[-1],
                    location=self.location,
                    schema=None,
                    partition_spec=None,
                    write_order=None,
                    properties=None,
                    raw=raw,
                ),
            )
        return operated.TableCreateOperation(
            path,
            TableRequest(
                name=path[-1],
                location=self.location,
                schema=self.schema,
                partition_spec=self.partition_spec,
                write_order=self.write_order,
                properties=self.properties,
            ),
        )


class TableRegister(_OperationBody, frozen=True, tag="register-table"):
    """An operation that creates a table from an existing metadata file."""

    path: list[str]
    metadata_location: str

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.TableRegisterOperation(check_some_levels(self.path), self.metadata_location)


class TableCommit(_OperationBody, frozen=True, tag="commit-table"):
    """An operation that commits to a table, as in Iceberg REST. With the requirement `assert-create` it creates the
    table.
    """

    path: list[str]
    requirements: tuple[object, ...] = ()
    updates: tuple[object, ...] = ()

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command. A large commit is passed on as encoded JSON, which a separate
        process decodes.
        """
        path = check_some_levels(self.path)
        change = CommitChange(list(self.requirements), list(self.updates))
        raw = msgspec.json.encode({"requirements": self.requirements, "updates": self.updates})
        if len(raw) > REQUEST_BYTES_MAX:
            change = CommitChange(list(self.requirements[:_REQUIREMENTS_DECODED_MAX]), [], raw)
        return operated.TableCommitOperation(path, change)


class TableDrop(_OperationBody, frozen=True, tag="drop-table"):
    """An operation that drops a table; with `purge` also its files."""

    path: list[str]
    purge: bool = False

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.TableDropOperation(check_some_levels(self.path), self.purge)


class TableMove(_OperationBody, frozen=True, tag="move-table"):
    """An operation that renames or moves a table."""

    source: list[str]
    target: list[str]

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.TableMoveOperation(check_some_levels(self.source), check_some_levels(self.target))


class ViewCreate(_OperationBody, frozen=True, tag="create-view", kw_only=True):
    """An operation that creates a view; its fields are those of Iceberg REST."""

    path: list[str]
    schema: dict[str, object]
    view_version: dict[str, object]
    location: str | None = None
    properties: dict[str, str] | None = None

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command. A large view definition is passed on as encoded JSON, which a
        separate process decodes.
        """
        path = check_some_levels(self.path)
        parts = {"schema": self.schema, "view-version": self.view_version, "properties": self.properties or {}}
        raw = msgspec.json.encode(parts)
        if len(raw) > REQUEST_BYTES_MAX:
            return operated.ViewCreateOperation(
                path,
                ViewRequest(name=path[-1], location=self.location, schema={}, version={}, properties=None, raw=raw),
            )
        return operated.ViewCreateOperation(
            path,
            ViewRequest(
                name=path[-1],
                location=self.location,
                schema=self.schema,
                version=self.view_version,
                properties=self.properties,
            ),
        )


class ViewCommit(_OperationBody, frozen=True, tag="commit-view"):
    """An operation that applies updates to a view, as in Iceberg REST."""

    path: list[str]
    requirements: tuple[object, ...] = ()
    updates: tuple[object, ...] = ()

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command. A large commit is passed on as encoded JSON, which a separate
        process decodes.
        """
        path = check_some_levels(self.path)
        raw = msgspec.json.encode({"requirements": self.requirements, "updates": self.updates})
        if len(raw) > REQUEST_BYTES_MAX:
            return operated.ViewCommitOperation(
                path, ViewAsked(namespace=path[:-1], name=path[-1], requirements=[], updates=[], raw=raw)
            )
        request = ViewAsked(
            namespace=path[:-1], name=path[-1], requirements=list(self.requirements), updates=list(self.updates)
        )
        return operated.ViewCommitOperation(path, request)


class ViewDrop(_OperationBody, frozen=True, tag="drop-view"):
    """An operation that drops a view."""

    path: list[str]

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.ViewDropOperation(check_some_levels(self.path))


class ViewMove(_OperationBody, frozen=True, tag="move-view"):
    """An operation that renames or moves a view."""

    source: list[str]
    target: list[str]

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return operated.ViewMoveOperation(check_some_levels(self.source), check_some_levels(self.target))


class LanceVersionCommit(_OperationBody, frozen=True, tag="commit-lance-version", kw_only=True):
    """An operation that commits a staged version of a Lance table; its fields are those of Lance REST."""

    path: list[str]
    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None
    metadata: dict[str, str] | None = None

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        new_version = NewVersion(
            version=self.version,
            path=self.manifest_path,
            size=self.manifest_size,
            e_tag=self.e_tag,
            metadata=msgspec.json.encode(self.metadata or {}, order="sorted").decode(),
            branch="",
        )
        return LanceVersionOperation(check_some_levels(self.path), new_version)


class RunPublish(_OperationBody, frozen=True, tag="publish-run"):
    """An operation that marks a pipeline run as published. The run must be running or held, and its current attempt the
    given one.
    """

    run: str
    attempt: Attempt

    def to_operation(self) -> TransactionOperation:
        """Convert the operation to the service's command."""
        return RunPublishOperation(self.run, self.attempt)


AnyOperation = (
    ViewCreate
    | ViewCommit
    | ViewDrop
    | ViewMove
    | NamespaceCreate
    | NamespaceDrop
    | NamespaceMove
    | TableCreate
    | TableRegister
    | TableCommit
    | TableDrop
    | TableMove
    | LanceVersionCommit
    | RunPublish
)


class TransactionRequest(AdminRequestBody, frozen=True):
    """The body of a transaction request: operations in the order in which they are applied."""

    operations: list[AnyOperation]


async def transaction_run(request: Request, ctx: Context) -> Response:
    """Execute all operations or none, and return the catalog's revision and the result of each operation."""
    metalake, catalog = names_of(request)
    requested = await _operations_of(request)
    for number, each in enumerate(requested):
        if each.catalog not in (None, catalog):
            raise BadRequest(
                f"Operation {number} is of catalog {each.catalog}, and the address is of catalog {catalog}: send a"
                " transaction of several catalogs to /api/limnos/v1/metalakes/{m}/transactions"
            )

    def encode_results(revisions: dict[str, int], documents: Sequence[MetadataDocument | None]) -> bytes:
        results = _encode_results([catalog] * len(requested), requested, documents=documents)
        return msgspec.json.encode({"revision": revisions[catalog], "operations": results})

    operations = [(RequestScope(metalake, catalog), each.to_operation()) for each in requested]
    return Response(200, encode_results(*await joint_transaction_execute(ctx, operations, encode=encode_results)))


async def joint_transaction_run(request: Request, ctx: Context) -> Response:
    """Execute all operations in several catalogs of a metalake or none, and return the revision of each catalog and the
    result of each operation.
    """
    (metalake,) = names_of(request)
    await require_member(ctx, metalake)
    requested = await _operations_of(request)
    catalogs: list[str] = []
    for number, each in enumerate(requested):
        if each.catalog is None:
            raise BadRequest(f"Operation {number} has no field 'catalog': name the catalog of each operation")
        catalogs.append(check_catalog_name(each.catalog))
    if len(set(catalogs)) > CATALOGS_MAX:
        raise BadRequest(
            f"The operations are of {len(set(catalogs))} catalogs, and a transaction has at most {CATALOGS_MAX}: send"
            " several"
        )

    def encode_results(revisions: dict[str, int], documents: Sequence[MetadataDocument | None]) -> bytes:
        results = _encode_results(catalogs, requested, documents=documents)
        return msgspec.json.encode({"revisions": revisions, "operations": results})

    operations = [
        (RequestScope(metalake, catalog), each.to_operation())
        for catalog, each in zip(catalogs, requested, strict=True)
    ]
    return Response(200, encode_results(*await joint_transaction_execute(ctx, operations, encode=encode_results)))


async def _operations_of(request: Request) -> list[AnyOperation]:
    """Decode the operations of a request. Raises BadRequest if there are none, or too many."""
    body = Request.decode(await request.body(), TransactionRequest)
    if not body.operations:
        raise BadRequest("Field 'operations' is empty: name at least one")
    if len(body.operations) > OPERATIONS_MAX:
        raise BadRequest(
            f"Field 'operations' has at most {OPERATIONS_MAX} operations, not {len(body.operations)}: send several"
            " transactions"
        )
    return body.operations


def _encode_results(
    catalogs: Sequence[str], operations: Sequence[AnyOperation], *, documents: Sequence[MetadataDocument | None]
) -> list[dict[str, object]]:
    return [
        _encode_result(catalog, each, document)
        for catalog, each, document in zip(catalogs, operations, documents, strict=True)
    ]


def _encode_result(catalog: str, operation: AnyOperation, document: MetadataDocument | None) -> dict[str, object]:
    """Encode the result of an operation: its object's path, and the UUID and metadata location of new metadata."""
    if isinstance(operation, RunPublish):
        return {"do": "publish-run", "run": operation.run}
    path = operation.target if isinstance(operation, (NamespaceMove, TableMove, ViewMove)) else operation.path
    body: dict[str, object] = {"do": operation.__struct_config__.tag, "path": [catalog, *path]}
    if isinstance(operation, LanceVersionCommit):
        body["version"] = operation.version
    if document is not None:
        body |= {"uuid": document.uuid, "metadata_location": document.metadata_location}
    return body


_ASKS = (
    Action.TABLE_COMMIT,
    Action.TABLE_CREATE,
    Action.TABLE_REGISTER,
    Action.TABLE_MOVE,
    Action.TABLE_DROP,
    Action.VIEW_CREATE,
    Action.VIEW_ALTER,
    Action.VIEW_MOVE,
    Action.VIEW_DROP,
    Action.NAMESPACE_CREATE,
    Action.NAMESPACE_MOVE,
    Action.NAMESPACE_DROP,
)
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/transactions",
        handler=transaction_run,
        operation="transaction",
        asks=_ASKS,
    ),
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/transactions",
        handler=joint_transaction_run,
        operation="joint-transaction",
        asks=_ASKS,
    ),
)
