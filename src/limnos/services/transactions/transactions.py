# SPDX-License-Identifier: Apache-2.0
"""Transactions: several operations in one or several catalogs of a metalake, executed atomically in one transaction of
the store.

Must not know any wire format. Every operation requires its own privilege, checked on the state that the earlier
operations would leave (`transaction_plan`). Metadata files are written first (`metadata_assembly`), and deleted if they
are certainly not needed. Then the mutations of single requests run sequentially with one permit (`mutations`; decision
record 0030).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

from limnos.access.actions import Action
from limnos.model.entities import MetadataDocument
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, LimnosError
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.names.iceberg import render
from limnos.services.iceberg.added_files import CommitFiles, check_added_files
from limnos.services.iceberg.commits import (
    LOST_RACES,
    OFFERED_BYTES_MAX,
    PATIENCE_S,
    LostRace,
    commit_files_of,
    lost_race_pause,
)
from limnos.services.request.context import Context
from limnos.services.request.files import FileBatch
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.old_metadata_files import delete_old_metadata_files
from limnos.services.request.recent_metadata import RECENT_METADATA
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.lance_versions import publish_manifests, with_checked_versions
from limnos.services.transactions.metadata_assembly import BuiltMetadata, build_all
from limnos.services.transactions.mutations import (
    TransactionCommand,
    TransactionEffects,
    command_of,
    document_of_result,
    transaction_run,
)
from limnos.services.transactions.operations import TransactionOperation
from limnos.services.transactions.run_publishing import with_runs
from limnos.services.transactions.transaction_plan import CatalogOperations, TransactionPlan, operations_of, read_plan
from limnos.view.keys import document_key

AnswerBuilder = Callable[[dict[str, int], "Sequence[MetadataDocument | None]"], bytes]
"""Builds the body of a response from the revision of each catalog, by its name, and the documents of the operations."""
CATALOGS_MAX = 16
"""The maximum number of catalogs: the locks of all are held together."""
OPERATIONS_MAX = 1000
"""The maximum number of operations: a thousand commits block the store's event loop for about fifty milliseconds."""


async def transaction_execute(
    ctx: Context,
    scope: RequestScope,
    operations: Sequence[TransactionOperation],
    *,
    encode: AnswerBuilder | None = None,
) -> tuple[int, list[MetadataDocument | None]]:
    """Execute the operations of a transaction atomically.

    Args:
        ctx: The request.
        scope: The catalog.
        operations: The operations, in order.
        encode: Builds the response body from the results. It is stored with the transaction of a request with an
            idempotency key.

    Returns:
        The zone's revision after the transaction, and the resulting document of each operation.

    Raises:
        CommitConflict: A requirement failed, or other requests committed first in every attempt; the message names the
            table.
        BadRequest: There are too many operations. Also raises the error of the first operation that a single request
            would refuse.
    """
    revisions, documents = await joint_transaction_execute(ctx, [(scope, each) for each in operations], encode=encode)
    return revisions[scope.catalog or ""], documents


async def require_member(ctx: Context, metalake: str) -> None:
    """Refuse callers who are no users of a metalake, before the body of their request is read.

    Raises NotFound, NotInUse, AuthenticationFailed, PermissionDenied.
    """
    await ctx.read(RequestScope(metalake), member_check)


def member_check(request_view: RequestView) -> None:
    """Refuse a caller who is no user of the metalake. Raises as `require_member`."""
    request_view.require_in_metalake_use()
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer)


async def joint_transaction_execute(
    ctx: Context,
    placed: Sequence[tuple[RequestScope, TransactionOperation]],
    *,
    encode: AnswerBuilder | None = None,
) -> tuple[dict[str, int], list[MetadataDocument | None]]:
    """Execute the operations of a transaction atomically, in catalogs of one metalake.

    Args:
        ctx: The request.
        placed: The operations, in order, each with its catalog.
        encode: As for `transaction_execute`.

    Returns:
        The revision of each catalog after the transaction, by its name, and the resulting document of each operation.

    Raises the errors of `transaction_execute`.
    """
    if len(placed) > OPERATIONS_MAX:
        raise BadRequest(
            f"{len(placed)} changes in one transaction are more than the {OPERATIONS_MAX} that are allowed: send"
            " several"
        )
    requested = operations_of(placed)
    requested = requested._replace(
        operations=tuple(await with_runs(ctx, requested.scopes[0], operations=requested.operations))
    )
    lines, epoch = ctx.services.lines, ctx.services.view.epoch
    plan = await read_plan(ctx, requested)
    await _check_files(ctx, plan)
    waits = not all(map(lines.is_free, plan.lines))
    async with lines.turns(plan.lines):
        ready = await with_checked_versions(ctx, requested.scope_of_each, operations=requested.operations)
        if waits or ready != requested.operations:
            requested = requested._replace(operations=ready)
            plan = await read_plan(ctx, requested)
        async with ctx.services.files.file_batch(lambda: ctx.submitted) as file_batch:
            plan, built_documents, outcome = await _carry_out(ctx, requested, plan, file_batch, encode=encode)
        await publish_manifests(requested.operations, outcome.results)
    await _finish_commit(ctx, plan, built_documents, revisions=outcome.revisions, epoch=epoch)
    documents = _documents(plan, built_documents)
    for number, each in outcome.results.items():
        if plan.steps[number].mutation is None and (document := document_of_result(each)) is not None:
            documents[number] = document
    return _revisions_by_catalog(requested, plan, revisions=outcome.revisions), documents


def _revisions_by_catalog(
    requested: CatalogOperations, plan: TransactionPlan, *, revisions: dict[int, int]
) -> dict[str, int]:
    """Return the revisions by the names of the catalogs."""
    return {
        scope.catalog or "": revisions[zone]
        for scope, zone in zip(requested.scopes, plan.zones, strict=True)
        if zone in revisions
    }


async def _check_files(ctx: Context, plan: TransactionPlan) -> None:
    """Check the files that the transaction's commits add, if `iceberg.check_added_files` enables it.

    Raises BadRequest, with the table's name, for a file that fails the check.
    """
    commits: list[CommitFiles] = []
    for work in plan.works:
        location = plan.steps[work.steps[0]].requested_location
        for step in [plan.steps[number] for number in work.steps]:
            if step.table_change is not None:
                files = commit_files_of(step.table_change, document=work.document, place=work.place)
                commits.append(files._replace(path=step.path, location=location))
    await check_added_files(ctx, commits)


def _documents(plan: TransactionPlan, built: list[BuiltMetadata]) -> list[MetadataDocument | None]:
    documents = {number: each.document for each in built for number in each.work.steps}
    return [documents.get(number) for number in range(len(plan.steps))]


def _answer_builder(
    encode: AnswerBuilder,
    documents: list[MetadataDocument | None],
    *,
    requested: CatalogOperations,
    plan: TransactionPlan,
) -> Callable[[dict[int, int]], bytes]:
    """Return the function that builds the body of the response from the revisions of the zones."""
    return lambda revisions: encode(_revisions_by_catalog(requested, plan, revisions=revisions), documents)


async def _carry_out(
    ctx: Context,
    requested: CatalogOperations,
    plan: TransactionPlan,
    file_batch: FileBatch,
    *,
    encode: AnswerBuilder | None,
) -> tuple[TransactionPlan, list[BuiltMetadata], TransactionEffects]:
    """Build the metadata and submit the transaction. After a conflict it is planned again, until the time limit.

    Raises CommitConflict if every attempt met a conflict.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    built_documents: list[BuiltMetadata] = []
    for attempt in count():
        built_documents = await build_all(ctx, plan, before=built_documents, file_batch=file_batch)
        current, ready = plan, built_documents
        if encode is not None:
            ctx.store_response(
                _answer_builder(encode, _documents(plan, built_documents), requested=requested, plan=plan)
            )

        async def decide() -> Permit[TransactionCommand]:
            now = await read_plan(ctx, requested)
            if now.works != current.works:  # noqa: B023 - it is called within this turn of the loop
                raise LostRace
            return command_of(now, ready)  # noqa: B023

        try:
            return (
                plan,
                built_documents,
                await ctx.write_decided(decide, transaction_run, first=command_of(plan, built_documents)),
            )
        except LostRace:
            LOST_RACES[()] += 1
        except LimnosError as error:
            raise _name_operation_in_error(error, plan) from error
        if loop.time() > until:
            break
        await lost_race_pause(attempt)
        plan = await read_plan(ctx, requested)
    raise CommitConflict("Too many commits to these tables at once: read them again and retry")


async def _finish_commit(
    ctx: Context, plan: TransactionPlan, built: list[BuiltMetadata], *, revisions: dict[int, int], epoch: int
) -> None:
    """Run the steps after a successful commit, such as deleting old metadata files."""
    view = ctx.services.view
    if True in [step.wakes for step in plan.steps]:
        ctx.services.wake_worker()
    for each in built:
        document = each.document
        if document is None or each.work.document is None:
            continue
        first = plan.steps[each.work.steps[0]]
        is_view, zone = first.kind is Kind.VIEW, first.permit.zone
        if not is_view and each.new is not None and each.data is document.body and not is_heavy(document):
            RECENT_METADATA.of(ctx.services).put(document, each.new)
        if len(document.body) <= OFFERED_BYTES_MAX:
            view.offer(document_key(document.node_id), document, zone=zone, revision=revisions[zone], epoch=epoch)
    for each in built:  # last, because it awaits: the view must have all documents before
        if each.document is not None and each.old is not None and each.new is not None:
            await delete_old_metadata_files(ctx, each.document, built=(each.old, each.new), place=each.work.place)


def _name_operation_in_error(error: LimnosError, plan: TransactionPlan) -> LimnosError:
    """Add the object's name to an error inside the transaction."""
    operation_name = error.context.get("operation")
    if not isinstance(operation_name, int):
        return error
    step = plan.steps[operation_name]
    if isinstance(error, AlreadyExists):
        if step.draft is None or step.is_new_table or error.kind not in ("table", "view"):
            return AlreadyExists(f"{error.kind.capitalize()} already exists: {render(step.path)}", kind=error.kind)
        conflict = CommitConflict("Requirement failed: table already exists", requirement="assert-create")
        return name_object_in_error(conflict, step.path)
    return (
        name_object_in_error(error, step.path, what=step.kind)
        if isinstance(error, (BadRequest, CommitConflict))
        else error
    )
