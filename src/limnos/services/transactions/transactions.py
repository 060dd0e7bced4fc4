"""Transactions: several operations in one catalog, all of them or none, in one transaction of the store.

May import the rooms below. Knows no wire format. Every operation is decided as if the earlier ones were done, with its own privilege
(`plans`); metadata files are written before (`assembly`), and deleted when it is certain that they are not wanted; then the mutations
of single requests run one after the other under one permit (`deeds`; decision record 0030).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from limnos.model.entities import Document
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, LimnosError
from limnos.model.kinds import Kind
from limnos.names.iceberg import render
from limnos.services.catalog.views import Held
from limnos.services.iceberg.added_files import check_added_files
from limnos.services.iceberg.commits import (
    LOST_RACES,
    OFFERED_BYTES_MAX,
    PATIENCE_S,
    Change,
    LostRace,
    clean,
    files_of,
    lost_race_pause,
)
from limnos.services.iceberg.tables import TableRequest
from limnos.services.request.chores import is_heavy
from limnos.services.request.operation_errors import told_about
from limnos.services.request.recent import RECENT
from limnos.services.transactions.assembly import build_all
from limnos.services.transactions.deeds import command_of, transaction_run
from limnos.services.transactions.plans import plan_of
from limnos.services.transactions.publishing import with_runs
from limnos.view.keys import document_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.permits import Permit
    from limnos.services.iceberg.added_files import CommitFiles
    from limnos.services.request.context import Context
    from limnos.services.request.files import Pile
    from limnos.services.request.scene import Scene, Scope
    from limnos.services.transactions.assembly import Built
    from limnos.services.transactions.deeds import Done, Transact
    from limnos.services.transactions.operations import Operation
    from limnos.services.transactions.plans import Plan

Told = Callable[[int, "Sequence[Document | None]"], bytes]
OPERATIONS_MAX = 1000
"""Operations of one transaction: a thousand commits take the store's loop some fifty milliseconds at once."""


async def transact(
    ctx: Context, scope: Scope, operations: Sequence[Operation], *, told: Told | None = None
) -> tuple[int, list[Document | None]]:
    """Do all operations or none. Returns the revision after it, and the metadata that each left.

    `told` makes an answer of these, to be kept with the transaction of a request that has a key.

    Raises what the single requests would: the first one's that is refused, in their order; CommitConflict for a requirement that does
    not hold, with the table's name.
    """
    if len(operations) > OPERATIONS_MAX:
        raise BadRequest(
            f"{len(operations)} changes in one transaction are more than the {OPERATIONS_MAX} that are taken: send several"
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
        async with ctx.services.files.pile(lambda: ctx.submitted) as pile:
            plan, built, done = await _carry_out(ctx, scope, operations, plan, pile, told=told)
    await _settle(ctx, plan, built, revision=done.revision, epoch=epoch)
    documents = _documents(plan, built)
    for number, each in done.results.items():
        if plan.steps[number].mutation is None and isinstance(each, (Document, Held)):
            documents[number] = each.document if isinstance(each, Held) else each
    return done.revision, documents


async def _check_files(ctx: Context, plan: Plan) -> None:
    """Look for the files that the transaction's commits add, if the setting asks for it. Raises BadRequest with the table's name."""
    commits: list[CommitFiles] = []
    for work in plan.works:
        made = plan.steps[work.steps[0]].source
        location = made.location if isinstance(made, TableRequest) else None
        for step in [plan.steps[number] for number in work.steps]:
            if isinstance(step.source, Change):
                files = files_of(step.source, document=work.document, place=work.place)
                commits.append(files._replace(path=step.path, location=location))
    await check_added_files(ctx, commits)


def _documents(plan: Plan, built: list[Built]) -> list[Document | None]:
    documents = {number: each.document for each in built for number in each.work.steps}
    return [documents.get(number) for number in range(len(plan.steps))]


def _answer(told: Told, documents: list[Document | None], revision: int) -> bytes:
    return told(revision, documents)


async def _carry_out(
    ctx: Context, scope: Scope, operations: Sequence[Operation], plan: Plan, pile: Pile, *, told: Told | None
) -> tuple[Plan, list[Built], Done]:
    """Build and submit until no other node comes first, or the request's deadline ends it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    built: list[Built] = []
    for attempt in count():
        built = await build_all(ctx, plan, before=built, pile=pile)
        current, ready = plan, built
        if told is not None:
            ctx.keep_answer(partial(_answer, told, _documents(plan, built)))

        def decide(scene: Scene) -> Permit[Transact]:
            now = plan_of(operations, scene)
            if now.works != current.works:  # noqa: B023 - it is called within this turn of the loop
                raise LostRace
            return command_of(now, ready)  # noqa: B023

        try:
            return plan, built, await ctx.write(scope, decide, transaction_run, first=command_of(plan, built))
        except LostRace:
            LOST_RACES[()] += 1
        except LimnosError as error:
            raise _told_of_deed(error, plan) from error
        if loop.time() > until:
            break
        await lost_race_pause(attempt)
        plan = await ctx.read(scope, partial(plan_of, operations))
    raise CommitConflict("Too many commits to these tables at once: read them again and retry")


async def _settle(ctx: Context, plan: Plan, built: list[Built], *, revision: int, epoch: int) -> None:
    """Do what may follow only now that the commit is certain."""
    view, zone = ctx.services.view, plan.permit.zone
    if True in [step.wakes for step in plan.steps]:
        ctx.services.wake_worker()
    for each in built:
        document = each.document
        if document is None or each.work.document is None:
            continue
        is_view = plan.steps[each.work.steps[0]].kind is Kind.VIEW
        if not is_view and each.new is not None and each.data is document.body and not is_heavy(document):
            RECENT.of(ctx.services).put(document, each.new)
        if len(document.body) <= OFFERED_BYTES_MAX:
            view.offer(document_key(document.node_id), document, zone=zone, revision=revision, epoch=epoch)
    for each in built:  # nothing was awaited until here
        if each.document is not None and each.old is not None and each.new is not None:
            await clean(ctx, each.document, built=(each.old, each.new), place=each.work.place)


def _told_of_deed(error: LimnosError, plan: Plan) -> LimnosError:
    """Say what a refusal inside the transaction is about."""
    place = error.context.get("operation")
    if not isinstance(place, int):
        return error
    step = plan.steps[place]
    if isinstance(error, AlreadyExists):
        if step.draft is None or isinstance(step.source, TableRequest) or error.kind not in ("table", "view"):
            return AlreadyExists(f"{error.kind.capitalize()} already exists: {render(step.path)}", kind=error.kind)
        taken = CommitConflict("Requirement failed: table already exists", requirement="assert-create")
        return told_about(taken, step.path)
    return told_about(error, step.path, what=step.kind) if isinstance(error, (BadRequest, CommitConflict)) else error
