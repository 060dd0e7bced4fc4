# SPDX-License-Identifier: Apache-2.0
"""Transactions: several operations in one catalog, executed atomically in one transaction of the store.

Must not know any wire format. Every operation requires its own privilege, checked on the state that the earlier
operations would leave (`transaction_plan`). Metadata files are written first (`metadata_assembly`), and deleted if they
are certainly not needed. Then the mutations of single requests run sequentially with one permit (`mutations`; decision
record 0030).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from limnos.model.entities import MetadataDocument
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, LimnosError
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.names.iceberg import render
from limnos.services.catalog.views import ViewState
from limnos.services.iceberg.added_files import CommitFiles, check_added_files
from limnos.services.iceberg.commits import (
    LOST_RACES,
    OFFERED_BYTES_MAX,
    PATIENCE_S,
    LostRace,
    commit_files_of,
    lost_race_pause,
)
from limnos.services.iceberg.tables import TableRequest
from limnos.services.request.context import Context
from limnos.services.request.files import FileBatch
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.old_metadata_files import delete_old_metadata_files
from limnos.services.request.recent_metadata import RECENT_METADATA
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.metadata_assembly import BuiltMetadata, build_all
from limnos.services.transactions.mutations import TransactionCommand, TransactionEffects, command_of, transaction_run
from limnos.services.transactions.operations import TransactionOperation
from limnos.services.transactions.run_publishing import with_runs
from limnos.services.transactions.transaction_plan import TransactionPlan, plan_of
from limnos.view.keys import document_key

AnswerBuilder = Callable[[int, "Sequence[MetadataDocument | None]"], bytes]
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
    if len(operations) > OPERATIONS_MAX:
        raise BadRequest(
            f"{len(operations)} changes in one transaction are more than the {OPERATIONS_MAX} that are allowed: send several"
        )
    operations = await with_runs(ctx, scope, operations=operations)
    lines, look = ctx.services.lines, partial(plan_of, operations)
    epoch = ctx.services.view.epoch
    plan = await ctx.read(scope, look)
    await _check_files(ctx, plan)
    waits = not all(map(lines.is_free, plan.lines))
    async with lines.turns(plan.lines):
        if waits:
            plan = await ctx.read(scope, look)
        async with ctx.services.files.file_batch(lambda: ctx.submitted) as file_batch:
            plan, built, done = await _carry_out(ctx, scope, operations, plan, file_batch, encode=encode)
    await _finish_commit(ctx, plan, built, revision=done.revision, epoch=epoch)
    documents = _documents(plan, built)
    for number, each in done.results.items():
        if plan.steps[number].mutation is None and isinstance(each, (MetadataDocument, ViewState)):
            documents[number] = each.document if isinstance(each, ViewState) else each
    return done.revision, documents


async def _check_files(ctx: Context, plan: TransactionPlan) -> None:
    """Check the files that the transaction's commits add, if `iceberg.check_added_files` enables it.

    Raises BadRequest, with the table's name, for a file that fails the check.
    """
    commits: list[CommitFiles] = []
    for work in plan.works:
        source = plan.steps[work.steps[0]].source
        location = source.location if isinstance(source, TableRequest) else None
        for step in [plan.steps[number] for number in work.steps]:
            if step.table_change is not None:
                files = commit_files_of(step.table_change, document=work.document, place=work.place)
                commits.append(files._replace(path=step.path, location=location))
    await check_added_files(ctx, commits)


def _documents(plan: TransactionPlan, built: list[BuiltMetadata]) -> list[MetadataDocument | None]:
    documents = {number: each.document for each in built for number in each.work.steps}
    return [documents.get(number) for number in range(len(plan.steps))]


def _answer(result: AnswerBuilder, documents: list[MetadataDocument | None], revision: int) -> bytes:
    return result(revision, documents)


async def _carry_out(
    ctx: Context,
    scope: RequestScope,
    operations: Sequence[TransactionOperation],
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
    built: list[BuiltMetadata] = []
    for attempt in count():
        built = await build_all(ctx, plan, before=built, file_batch=file_batch)
        current, ready = plan, built
        if encode is not None:
            ctx.store_response(partial(_answer, encode, _documents(plan, built)))

        def decide(request_view: RequestView) -> Permit[TransactionCommand]:
            now = plan_of(operations, request_view)
            if now.works != current.works:  # noqa: B023 - it is called within this turn of the loop
                raise LostRace
            return command_of(now, ready)  # noqa: B023

        try:
            return plan, built, await ctx.write(scope, decide, transaction_run, first=command_of(plan, built))
        except LostRace:
            LOST_RACES[()] += 1
        except LimnosError as error:
            raise _name_operation_in_error(error, plan) from error
        if loop.time() > until:
            break
        await lost_race_pause(attempt)
        plan = await ctx.read(scope, partial(plan_of, operations))
    raise CommitConflict("Too many commits to these tables at once: read them again and retry")


async def _finish_commit(
    ctx: Context, plan: TransactionPlan, built: list[BuiltMetadata], *, revision: int, epoch: int
) -> None:
    """Run the steps after a successful commit, such as deleting old metadata files."""
    view, zone = ctx.services.view, plan.permit.zone
    if True in [step.wakes for step in plan.steps]:
        ctx.services.wake_worker()
    for each in built:
        document = each.document
        if document is None or each.work.document is None:
            continue
        is_view = plan.steps[each.work.steps[0]].kind is Kind.VIEW
        if not is_view and each.new is not None and each.data is document.body and not is_heavy(document):
            RECENT_METADATA.of(ctx.services).put(document, each.new)
        if len(document.body) <= OFFERED_BYTES_MAX:
            view.offer(document_key(document.node_id), document, zone=zone, revision=revision, epoch=epoch)
    for each in built:  # last, because it awaits: the view must have all documents before
        if each.document is not None and each.old is not None and each.new is not None:
            await delete_old_metadata_files(ctx, each.document, built=(each.old, each.new), place=each.work.place)


def _name_operation_in_error(error: LimnosError, plan: TransactionPlan) -> LimnosError:
    """Add the object's name to an error inside the transaction."""
    place = error.context.get("operation")
    if not isinstance(place, int):
        return error
    step = plan.steps[place]
    if isinstance(error, AlreadyExists):
        if step.draft is None or isinstance(step.source, TableRequest) or error.kind not in ("table", "view"):
            return AlreadyExists(f"{error.kind.capitalize()} already exists: {render(step.path)}", kind=error.kind)
        conflict = CommitConflict("Requirement failed: table already exists", requirement="assert-create")
        return name_object_in_error(conflict, step.path)
    return (
        name_object_in_error(error, step.path, what=step.kind)
        if isinstance(error, (BadRequest, CommitConflict))
        else error
    )
