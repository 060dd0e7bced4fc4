# SPDX-License-Identifier: Apache-2.0
"""Lance batches: atomic commits to several Lance tables, in one transaction of the store.

Must not know any wire format. Each operation requires its own privilege, and is decided on the state that the earlier
operations would leave. Staged manifests are checked before the commit and get their final names after it, so that no
reader sees them earlier. The mutations are those of single requests (`services.transactions.mutations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, LimnosError
from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.rooms.lance.services.commits import VersionDraft, publish_manifest, version_draft_of, version_insert
from limnos.rooms.lance.services.deletions import (
    VersionDeletion,
    VersionsDelete,
    VersionSpan,
    version_deletion_of,
    versions_delete,
)
from limnos.rooms.lance.services.table_drafts import lance_draft_of, lance_insert, versions_of
from limnos.rooms.lance.services.versions import VersionView
from limnos.services.lance.table_files import NewVersion
from limnos.services.lance.tables import LanceDrop, LanceTable, lance_delete, lance_find
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE
from limnos.services.transactions.mutations import TransactionCommand, TransactionMutation, transaction_run
from limnos.services.transactions.operations import OperationMutation
from limnos.services.transactions.transaction_view import TransactionView, is_new

OPERATIONS_MAX = 1000


class DeclareOperation(NamedTuple):
    """The operation that creates a table without data."""

    levels: Levels
    location: str | None
    properties: dict[str, str]


class CreateVersionOperation(NamedTuple):
    """The operation that commits a version of a table with managed versions."""

    levels: Levels
    new_version: NewVersion


class DeleteVersionsOperation(NamedTuple):
    """The operation that deletes versions of a table with managed versions."""

    levels: Levels
    branch: str
    spans: tuple[VersionSpan, ...]


class DeregisterOperation(NamedTuple):
    """The operation that removes a table from the catalog, without deleting its files."""

    levels: Levels


LanceBatchOperation = DeclareOperation | CreateVersionOperation | DeleteVersionsOperation | DeregisterOperation
LanceBatchResult = LanceTable | VersionView | int


class PreparedOperation(NamedTuple):
    """The data prepared for an operation before the transaction: a new table's document with its versions, a version to
    insert, or a range of versions to delete.
    """

    document: MetadataDocument | None = None
    versions: tuple[LanceVersion, ...] = ()
    draft: VersionDraft | None = None
    version_deletion: VersionDeletion | None = None
    had_files: bool = False
    """Whether a new table's location has files of nobody."""


class LanceBatchStep(NamedTuple):
    """An operation after its access decision: the table (existing, or created by the batch), and the permit for its
    mutation.
    """

    table: LanceTable
    permit: Permit[object]
    mutation: OperationMutation
    new_document: MetadataDocument | None = None
    """The document of a new table."""


async def tables_commit(
    ctx: Context, scope: RequestScope, *, operations: Sequence[LanceBatchOperation]
) -> list[LanceBatchResult]:
    """Execute all operations atomically. Returns for each operation the result that a single request would have.

    Raises BadRequest for too many operations, and the errors of single requests, with the table's name.
    """
    if not operations:
        return []
    if len(operations) > OPERATIONS_MAX:
        raise BadRequest(
            f"{len(operations)} operations are more than the {OPERATIONS_MAX} that are allowed: send several"
        )
    now_ms = ctx.services.store.time.now_ms()
    first = await ctx.read(
        scope,
        lambda request_view: _steps(
            request_view, operations, ready=[PreparedOperation()] * len(operations), now_ms=now_ms
        ),
    )
    tables = {step.table.node.id for step in first if not is_new(step.table.node.id)}
    async with ctx.services.lines.turns(tables):
        ready = await _prepare_all(ctx, operations=operations, steps=first)

        def decide(request_view: RequestView) -> Permit[TransactionCommand]:
            steps = _steps(request_view, operations, ready=ready, now_ms=now_ms)
            transaction_mutations = [
                TransactionMutation(
                    command=step.permit.command,
                    mutation=step.mutation,
                    place=number,
                    created_id=None if step.new_document is None else step.table.node.id,
                )
                for number, step in enumerate(steps)
                if step.permit.command is not None
            ]
            decisions = [decision for step in steps for decision in step.permit.decisions]
            return request_view.permit(TransactionCommand(tuple(transaction_mutations)), *decisions)

        try:
            results = await ctx.write(scope, decide, transaction_run)
        except LimnosError as error:
            raise _name_table_in_error(error, operations) from error
        return [
            await _finish_operation(step.table, ready=one, result=results.results.get(number))
            for number, (step, one) in enumerate(zip(first, ready, strict=True))
        ]


def _name_table_in_error(error: LimnosError, operations: Sequence[LanceBatchOperation]) -> LimnosError:
    """Add the table's name to an error inside the transaction."""
    place = error.context.get("operation")
    return name_object_in_error(error, operations[place].levels) if isinstance(place, int) else error


def _steps(
    request_view: RequestView,
    operations: Sequence[LanceBatchOperation],
    *,
    ready: Sequence[PreparedOperation],
    now_ms: int,
) -> list[LanceBatchStep]:
    """Make the access decision on every operation, in order. Returns the steps with their permits."""
    request_view.require_in_use()
    pending, documents = TransactionView(request_view), dict[int, MetadataDocument]()
    return [
        (
            _decide_declare(pending, each, ready=one, documents=documents, now_ms=now_ms)
            if isinstance(each, DeclareOperation)
            else _step(pending, each, ready=one, documents=documents)
        )
        for each, one in zip(operations, ready, strict=True)
    ]


def _step(
    request_view: TransactionView,
    operation: CreateVersionOperation | DeleteVersionsOperation | DeregisterOperation,
    *,
    ready: PreparedOperation,
    documents: dict[int, MetadataDocument],
) -> LanceBatchStep:
    drops = isinstance(operation, DeregisterOperation)
    node, _, decision = lance_find(
        request_view, operation.levels, action=Action.TABLE_DROP if drops else Action.TABLE_COMMIT
    )
    record = cast("TableRecord", node.record)
    document = documents[node.id] if is_new(node.id) else request_view.document(node.id)
    table = LanceTable(node, record, document.location, catalog_storage_of(request_view))
    if drops:
        if request_view.is_touched(node):
            raise BadRequest(
                f"An earlier operation creates or changes {render(operation.levels)}: leave that one out, or this one"
            )
        request_view.note_dropped(node)
        return LanceBatchStep(
            table,
            request_view.permit(LanceDrop(node, 0, purges=False), decision),
            cast("OperationMutation", lance_delete),
        )
    if not record.managed:
        raise BadRequest(
            f"The versions of {render(operation.levels)} are in its files and not in the server, so each commit needs"
            " its own request: several tables in one request need managed_versioning"
        )
    request_view.note_changed(node)
    return _decide_change(request_view.permit(None, decision), table, ready=ready)


def _decide_change(permit: Permit[None], table: LanceTable, *, ready: PreparedOperation) -> LanceBatchStep:
    if ready.version_deletion is not None:
        command = VersionsDelete(table.node, ready.version_deletion.branch, ready.version_deletion.spans)
        return LanceBatchStep(table, permit.about(command), cast("OperationMutation", versions_delete))
    command_of = None if ready.draft is None or ready.draft.done else ready.draft.command(table.node)
    return LanceBatchStep(table, permit.about(command_of), cast("OperationMutation", version_insert))


def _decide_declare(
    request_view: TransactionView,
    operation: DeclareOperation,
    *,
    ready: PreparedOperation,
    documents: dict[int, MetadataDocument],
    now_ms: int,
) -> LanceBatchStep:
    draft = lance_draft_of(request_view, operation.levels, action=Action.TABLE_CREATE)
    record = TableRecord(
        comment=None, properties=operation.properties, declared=True, managed=draft.is_managed(operation.properties)
    )
    document = ready.document or draft.document(operation.location, now_ms=now_ms)
    name = operation.levels[-1]
    node = request_view.note_made(Kind.TABLE, parent_id=draft.parent.id, name=name, record=record, table_format=LANCE)
    documents[node.id] = document
    permit = draft.command(name, document, record=record, versions=ready.versions, had_files=ready.had_files)
    table = LanceTable(node, record, document.location, draft.place)
    return LanceBatchStep(table, cast("Permit[object]", permit), cast("OperationMutation", lance_insert), document)


async def _prepare_all(
    ctx: Context, *, operations: Sequence[LanceBatchOperation], steps: Sequence[LanceBatchStep]
) -> list[PreparedOperation]:
    """Check the files that the operations need. Raises the errors of single requests, with the table's name."""
    prepared_operation: list[PreparedOperation] = []
    for operation, step in zip(operations, steps, strict=True):
        try:
            prepared_operation.append(await _prepare_one(ctx, operation, step=step))
        except LimnosError as error:
            raise name_object_in_error(error, operation.levels) from error
    return prepared_operation


async def _prepare_one(ctx: Context, operation: LanceBatchOperation, *, step: LanceBatchStep) -> PreparedOperation:
    table = step.table
    if step.new_document is not None:
        versions = await versions_of(ctx, step.new_document, place=table.place, record=table.record)
        is_chosen = isinstance(operation, DeclareOperation) and operation.location is not None
        location = step.new_document.location
        had_files = is_chosen and await table.place.has_unclaimed_files(ctx.services.files, location)
        return PreparedOperation(document=step.new_document, versions=versions, had_files=had_files)
    if isinstance(operation, CreateVersionOperation):
        return PreparedOperation(draft=await version_draft_of(ctx, table, new_version=operation.new_version))
    if isinstance(operation, DeleteVersionsOperation):
        return PreparedOperation(
            version_deletion=await version_deletion_of(ctx, table, branch=operation.branch, spans=operation.spans)
        )
    return PreparedOperation()


async def _finish_operation(table: LanceTable, *, ready: PreparedOperation, result: object) -> LanceBatchResult:
    """Run the steps after a successful commit, such as publishing manifests. Returns the operation's result."""
    if ready.draft is not None:
        row = ready.draft.row if result is None else cast("LanceVersion", result)
        return await publish_manifest(ready.draft._replace(row=row))
    if ready.version_deletion is not None:
        await ready.version_deletion.drop_files()
        return cast("int", result)
    return table
