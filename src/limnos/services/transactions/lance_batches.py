"""Commits of several Lance tables at once: all of them or none, in one transaction of the store.

May import the rooms below. Knows no wire format. Each operation is decided as if the earlier ones were done, with its own privilege; staged
manifests are looked at before, and get their final names after the commit: until then nobody sees any of them. The mutations are those of
single requests (`services.transactions.deeds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.entities import Document
from limnos.model.errors import BadRequest, LimnosError
from limnos.model.kinds import Kind
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.services.lance.commits import Draft, NewVersion, drafted, settle, version_insert
from limnos.services.lance.deletions import VersionsDelete, pruned, versions_delete
from limnos.services.lance.tables import (
    LanceDrop,
    LanceTable,
    draft_of,
    lance_delete,
    lance_find,
    lance_insert,
    versions_of,
)
from limnos.services.lance.versions import Shown
from limnos.services.request.operation_errors import told_about
from limnos.services.request.places import place_of
from limnos.services.request.table_formats import LANCE
from limnos.services.transactions.deeds import Deed, Transact, transaction_run
from limnos.services.transactions.pending import Pending, is_new

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.lance import LanceVersion
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.lance.deletions import Doomed, Span
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope
    from limnos.services.transactions.operations import Mutation

OPERATIONS_MAX = 1000


class Declare(NamedTuple):
    """Make a table without data."""

    levels: Levels
    location: str | None
    properties: dict[str, str]


class CreateVersion(NamedTuple):
    """Commit a version of a managed table."""

    levels: Levels
    asked: NewVersion


class DeleteVersions(NamedTuple):
    """Delete versions of a managed table."""

    levels: Levels
    branch: str
    spans: tuple[Span, ...]


class Deregister(NamedTuple):
    """Forget a table; its files stay."""

    levels: Levels


Operation = Declare | CreateVersion | DeleteVersions | Deregister
Result = LanceTable | Shown | int


class Ready(NamedTuple):
    """What was found out about an operation before the commit: where a new table goes, a version's draft, or what is deleted."""

    document: Document | None = None
    versions: tuple[LanceVersion, ...] = ()
    draft: Draft | None = None
    doomed: Doomed | None = None


class Step(NamedTuple):
    """What an operation comes to: the table as it is or will be, and the permission for its mutation."""

    table: LanceTable
    permit: Permit[object]
    mutation: Mutation
    made: Document | None = None
    """Where a new table goes."""


async def tables_commit(ctx: Context, scope: Scope, *, operations: Sequence[Operation]) -> list[Result]:
    """Do all operations or none; returns what single requests would. Raises what they would, with the table's name."""
    if not operations:
        return []
    if len(operations) > OPERATIONS_MAX:
        raise BadRequest(
            f"{len(operations)} operations are more than the {OPERATIONS_MAX} that are taken: send several"
        )
    now_ms = ctx.services.store.time.now_ms()
    first = await ctx.read(
        scope, lambda scene: _steps(scene, operations, ready=[Ready()] * len(operations), now_ms=now_ms)
    )
    tables = {step.table.node.id for step in first if not is_new(step.table.node.id)}
    async with ctx.services.lines.turns(tables):
        ready = await _ready(ctx, operations=operations, steps=first)

        def decide(scene: Scene) -> Permit[Transact]:
            steps = _steps(scene, operations, ready=ready, now_ms=now_ms)
            deeds = [
                Deed(step.permit.command, step.mutation, number, None if step.made is None else step.table.node.id)
                for number, step in enumerate(steps)
                if step.permit.command is not None
            ]
            decisions = [decision for step in steps for decision in step.permit.decisions]
            return scene.permit(Transact(tuple(deeds)), *decisions)

        try:
            done = await ctx.write(scope, decide, transaction_run)
        except LimnosError as error:
            raise _told(error, operations) from error
        return [
            await _finished(step.table, ready=one, result=done.results.get(number))
            for number, (step, one) in enumerate(zip(first, ready, strict=True))
        ]


def _told(error: LimnosError, operations: Sequence[Operation]) -> LimnosError:
    """Say which table a refusal inside the transaction is about."""
    place = error.context.get("operation")
    return told_about(error, operations[place].levels) if isinstance(place, int) else error


def _steps(scene: Scene, operations: Sequence[Operation], *, ready: Sequence[Ready], now_ms: int) -> list[Step]:
    """Decide on every operation, in order."""
    scene.require_in_use()
    pending, documents = Pending(scene), dict[int, Document]()
    return [
        _declared(pending, each, ready=one, documents=documents, now_ms=now_ms)
        if isinstance(each, Declare)
        else _step(pending, each, ready=one, documents=documents)
        for each, one in zip(operations, ready, strict=True)
    ]


def _step(
    scene: Pending, operation: CreateVersion | DeleteVersions | Deregister, *, ready: Ready, documents: dict[int, Document]
) -> Step:  # fmt: skip
    drops = isinstance(operation, Deregister)
    node, _, decision = lance_find(scene, operation.levels, action=Action.TABLE_DROP if drops else Action.TABLE_COMMIT)
    record = cast("TableRecord", node.record)
    document = documents[node.id] if is_new(node.id) else scene.document(node.id)
    table = LanceTable(node, record, document.location, place_of(scene))
    if drops:
        if scene.is_touched(node):
            raise BadRequest(
                f"An earlier operation makes or changes {render(operation.levels)}: leave that one out, or this one"
            )
        scene.note_gone(node)
        return Step(table, scene.permit(LanceDrop(node, 0, purges=False), decision), cast("Mutation", lance_delete))
    if not record.managed:
        raise BadRequest(
            f"The versions of {render(operation.levels)} are kept by its files and not by the server, so they are committed by themselves: "
            "several at once are for tables with managed_versioning"
        )
    scene.note_changed(node)
    return _changed(scene.permit(None, decision), table, ready=ready)


def _changed(permit: Permit[None], table: LanceTable, *, ready: Ready) -> Step:
    if ready.doomed is not None:
        command = VersionsDelete(table.node, ready.doomed.branch, ready.doomed.spans)
        return Step(table, permit.about(command), cast("Mutation", versions_delete))
    command_of = None if ready.draft is None or ready.draft.done else ready.draft.command(table.node)
    return Step(table, permit.about(command_of), cast("Mutation", version_insert))


def _declared(
    scene: Pending, operation: Declare, *, ready: Ready, documents: dict[int, Document], now_ms: int
) -> Step:  # fmt: skip
    draft = draft_of(scene, operation.levels, action=Action.TABLE_CREATE)
    record = TableRecord(None, operation.properties, declared=True, managed=draft.is_managed(operation.properties))
    document = ready.document or draft.document(operation.location, now_ms=now_ms)
    name = operation.levels[-1]
    node = scene.note_made(Kind.TABLE, parent_id=draft.parent.id, name=name, record=record, table_format=LANCE)
    documents[node.id] = document
    permit = draft.command(name, document, record=record, versions=ready.versions)
    table = LanceTable(node, record, document.location, draft.place)
    return Step(table, cast("Permit[object]", permit), cast("Mutation", lance_insert), document)


async def _ready(ctx: Context, *, operations: Sequence[Operation], steps: Sequence[Step]) -> list[Ready]:
    """Look at the files that the operations are about. Raises what single requests would, with the table's name."""
    found: list[Ready] = []
    for operation, step in zip(operations, steps, strict=True):
        try:
            found.append(await _ready_one(ctx, operation, step=step))
        except LimnosError as error:
            raise told_about(error, operation.levels) from error
    return found


async def _ready_one(ctx: Context, operation: Operation, *, step: Step) -> Ready:
    table = step.table
    if step.made is not None:
        versions = await versions_of(ctx, step.made, place=table.place, record=table.record)
        return Ready(step.made, versions)
    if isinstance(operation, CreateVersion):
        return Ready(draft=await drafted(ctx, table, asked=operation.asked))
    if isinstance(operation, DeleteVersions):
        return Ready(doomed=await pruned(ctx, table, branch=operation.branch, spans=operation.spans))
    return Ready()


async def _finished(table: LanceTable, *, ready: Ready, result: object) -> Result:
    """Do what may follow only now that the commit is certain; returns the operation's result."""
    if ready.draft is not None:
        row = ready.draft.row if result is None else cast("LanceVersion", result)
        return await settle(ready.draft._replace(row=row))
    if ready.doomed is not None:
        await ready.doomed.drop_files()
        return cast("int", result)
    return table
