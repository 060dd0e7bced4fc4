"""Transactions: several operations in one catalog, all of them or none, in one transaction of the store.

May import the rooms below. Knows no wire format. Every operation is decided as if the earlier ones were done, with its own privilege;
one permit carries all decisions, and the mutations of single requests run one after the other under it (decision record
0030). Metadata files are written before, and deleted when it is certain that they are not wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from limnos.formats.iceberg.metadata import encode
from limnos.model.entities import Document, Node
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, LimnosError
from limnos.model.kinds import Kind
from limnos.names.iceberg import render
from limnos.services.chores import is_heavy
from limnos.services.commits import (
    LOST_RACES,
    OFFERED_BYTES_MAX,
    PATIENCE_S,
    LostRace,
    Stand,
    TableCommit,
    change_apply,
    change_create,
    clean,
    document_swap,
    lost_race_pause,
    stand_of,
)
from limnos.services.files import AT_ONCE, is_inline
from limnos.services.iceberg_tables import TableRequest, Whole, build, document_of, settled_whole
from limnos.services.iceberg_views import ViewReplace, adopted_by, view_build, view_rebuild, view_swap
from limnos.services.operations import Mutation, Operation, Step
from limnos.services.parallel import each_of
from limnos.services.pending import Pending, is_new
from limnos.services.places import place_of
from limnos.services.tables import TableCreate, table_insert
from limnos.services.views import Held, ViewCreate, view_insert
from limnos.store.faults import DEED_POINT, fault_point
from limnos.view.cold import Cold, for_each
from limnos.view.keys import ABSENT, document_key, owner_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.formats.iceberg.json_types import Json
    from limnos.model.permits import Permit
    from limnos.model.records import ViewRecord
    from limnos.names.path import Levels
    from limnos.services.commits import Change
    from limnos.services.context import Context
    from limnos.services.files import Pile
    from limnos.services.iceberg_views import Asked as ViewAsked
    from limnos.services.iceberg_views import ViewRequest
    from limnos.services.places import Place
    from limnos.services.scene import Scene, Scope
    from limnos.services.tables import NewTable
    from limnos.store.tx import Tx
    from limnos.view.keys import Key

Told = Callable[[int, "Sequence[Document | None]"], bytes]
OPERATIONS_MAX = 1000
"""Operations of one transaction: a thousand commits take the store's loop some fifty milliseconds at once."""
_HEAVY_AT_A_TIME = 4
_LIGHT_AT_A_TIME = 8
"""Tables whose metadata is built before others have their turn."""


class DocumentHold(msgspec.Struct, frozen=True):
    """A table that must still have the document that was looked at, though nothing of it changes."""

    table: Node
    expected: int


class Deed(msgspec.Struct, frozen=True):
    """One mutation of a transaction; `made` is the number under which later ones know what it makes."""

    command: object
    mutation: Mutation
    place: int
    made: int | None = None


class Transact(msgspec.Struct, frozen=True):
    """Everything that a transaction does, in order."""

    deeds: tuple[Deed, ...]


class Work(NamedTuple):
    """One table whose metadata is made or changed: by which steps, and on what."""

    steps: tuple[int, ...]
    document: Document | None
    place: Place
    view: tuple[Node, int] | None = None
    """Of a view that is changed: its node, and whom its text is by if it is written anew."""


class Built(NamedTuple):
    """What the steps of a table come to; `old` is None for a new one. Without a document nothing is changed."""

    work: Work
    document: Document | None
    data: bytes = b""
    old: Json | None = None
    new: Json | None = None
    record: ViewRecord | None = None
    """What a view's record becomes, if it changes."""


class Plan(NamedTuple):
    """A transaction as it was decided at one moment."""

    steps: tuple[Step, ...]
    works: tuple[Work, ...]
    permit: Permit[None]

    @property
    def lines(self) -> list[int]:
        """The tables that are changed, by the numbers of their lines."""
        return [work.document.node_id for work in self.works if work.document is not None]


class Done(NamedTuple):
    """The revision that a transaction left its zone at, and what its mutations returned, by the number of the operation."""

    revision: int
    results: dict[int, object]


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
    lines, look = ctx.services.lines, partial(_plan, operations)
    epoch = ctx.services.view.epoch
    plan = await ctx.read(scope, look)
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


def _documents(plan: Plan, built: list[Built]) -> list[Document | None]:
    documents = {number: each.document for each in built for number in each.work.steps}
    return [documents.get(number) for number in range(len(plan.steps))]


def _answer(told: Told, documents: list[Document | None], revision: int) -> bytes:
    return told(revision, documents)


def _plan(operations: Sequence[Operation], scene: Scene) -> Plan:
    """Decide on every operation, in order."""
    scene.require_in_use()
    if len(operations) > 1:
        _warm(operations, scene)
    pending = Pending(scene)
    steps = tuple([_look(each, pending) for each in operations])
    place = place_of(scene)
    by_table: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if step.table is not None:
            by_table.setdefault(step.table.id, []).append(number)
    works = tuple([_work(steps[numbers[0]], tuple(numbers), place) for numbers in by_table.values()])
    decisions = [decision for step in steps for decision in step.permit.decisions]
    return Plan(steps, works, scene.permit(None, *decisions))


def _work(first: Step, numbers: tuple[int, ...], place: Place) -> Work:
    changes_view = first.kind is Kind.VIEW and first.draft is None
    view = (cast("Node", first.table), first.writer_id) if changes_view else None
    return Work(numbers, first.document, place, view)


def _look(operation: Operation, pending: Pending) -> Step:
    try:
        return operation.look(pending)
    except (BadRequest, CommitConflict) as error:
        kind, path = operation.targets[0]
        raise told_about(error, path, kind) from error


def _warm(operations: Sequence[Operation], scene: Scene) -> None:
    """Ask for everything at once that is not cached. Raises Cold."""
    targets = [target for each in operations for target in each.targets]
    found = for_each(targets, lambda target: scene.find(target[1], target[0]))
    view = scene.view
    wanted: dict[Key, int] = {}
    for node, chain in found:
        for link in chain:
            key = owner_key(link.id)
            if link.id > 0 and view.get(key) is ABSENT:
                wanted[key] = scene.zone_of(link.kind)
        if node is not None and view.get(document_key(node.id)) is ABSENT:
            wanted[document_key(node.id)] = scene.zone
    if wanted:
        raise Cold(wanted)


async def _carry_out(
    ctx: Context, scope: Scope, operations: Sequence[Operation], plan: Plan, pile: Pile, *, told: Told | None
) -> tuple[Plan, list[Built], Done]:
    """Build and submit until no other node comes first, or the request's deadline ends it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    built: list[Built] = []
    for attempt in count():
        built = await _build_all(ctx, plan, built, pile)
        current, ready = plan, built
        if told is not None:
            ctx.keep_answer(partial(_answer, told, _documents(plan, built)))

        def decide(scene: Scene) -> Permit[Transact]:
            now = _plan(operations, scene)
            if now.works != current.works:  # noqa: B023 - it is called within this turn of the loop
                raise LostRace
            return _command(now, ready)  # noqa: B023

        try:
            return plan, built, await ctx.write(scope, decide, transaction_run, first=_command(plan, built))
        except LostRace:
            LOST_RACES[()] += 1
        except LimnosError as error:
            raise _told_of_deed(error, plan) from error
        if loop.time() > until:
            break
        await lost_race_pause(attempt)
        plan = await ctx.read(scope, partial(_plan, operations))
    raise CommitConflict("Too many commits to these tables at once: read them again and retry")


# -- metadata ----------------------------------------------------------------------------------------------------------


async def _build_all(ctx: Context, plan: Plan, before: list[Built], pile: Pile) -> list[Built]:
    """Build every table's metadata, then write the files. What an earlier attempt built on the same documents stays."""
    works = {work.steps: work for work in plan.works}
    known = {each.work.steps: each for each in before if works.get(each.work.steps) == each.work}
    for each in before:
        if each.work.steps not in known and each.document is not None:
            await pile.take_back(each.document.metadata_location)
    heavy = [work for work in plan.works if work.steps not in known and _is_heavy(plan, work)]
    by_chores = await each_of(heavy, lambda work: _build(ctx, plan, work), at_once=_HEAVY_AT_A_TIME)
    done = known | {each.work.steps: each for each in by_chores}
    built: list[Built] = []
    for number, work in enumerate(plan.works, 1):
        built.append(done.get(work.steps) or await _build(ctx, plan, work))
        if number % _LIGHT_AT_A_TIME == 0:
            await asyncio.sleep(0)
    fresh = [each for each in built if each.document is not None and each.work.steps not in known]

    await _lay_all(fresh, pile)
    return built


async def _lay_all(fresh: list[Built], pile: Pile) -> None:
    """Write files: those that the loop writes one after the other, the rest several at a time."""

    async def lay(each: Built) -> None:
        document = cast("Document", each.document)
        properties = each.work.place.catalog.properties
        await pile.lay(document.metadata_location, each.data, properties, first=each.work.document is None)

    slow: list[Built] = []
    for number, each in enumerate(fresh, 1):
        if not is_inline(cast("Document", each.document).metadata_location, each.data):
            slow.append(each)
            continue
        await lay(each)
        if number % _LIGHT_AT_A_TIME == 0:
            await asyncio.sleep(0)
    await each_of(slow, lay, at_once=AT_ONCE)


def _is_heavy(plan: Plan, work: Work) -> bool:
    """Say whether chores build it, who may do so for several tables at a time."""
    if work.document is not None and is_heavy(work.document):
        return True
    sources = [plan.steps[number].source for number in work.steps]
    return any(source is not None and source.raw is not None for source in sources)


async def _build(ctx: Context, plan: Plan, work: Work) -> Built:
    """Apply a table's changes one after the other, each to what the earlier ones left."""
    if plan.steps[work.steps[0]].kind is Kind.VIEW:
        return await _build_view(ctx, plan.steps[work.steps[0]], work)
    old: Json | None = None
    whole: Whole | None = None
    for number in work.steps:
        step = plan.steps[number]
        try:
            if step.draft is not None:
                whole = await _begin(ctx, step)
                continue
            change = cast("Change", step.source)
            stand = _stand(ctx, work, change) if whole is None else _stand_after(whole)
            applied = await change_apply(ctx.services, change, stand)
        except LimnosError as error:
            raise told_about(error, step.path) from error
        if applied is not None:
            old, whole = applied[0] if whole is None else old, applied[1]
    if whole is None:
        return Built(work, None)
    whole = await settled_whole(ctx.services.chores, whole)
    node_id = 0 if work.document is None else work.document.node_id
    try:
        document, data = document_of(whole, previous=work.document, node_id=node_id, place=work.place, before=old)
    except LimnosError as error:
        raise told_about(error, plan.steps[work.steps[0]].path) from error
    return Built(work, document, data, old, whole.metadata)


async def _build_view(ctx: Context, step: Step, work: Work) -> Built:
    """Make a view's metadata, or apply a change to it."""
    old: Json | None = None
    record: ViewRecord | None = None
    try:
        if step.draft is not None:
            whole = await view_build(ctx, cast("ViewRequest", step.source), step.draft)
        else:
            before = cast("Document", work.document)
            applied, writes_text = await view_rebuild(ctx, cast("ViewAsked", step.source), before)
            record = adopted_by(cast("Node", step.table), step.writer_id) if writes_text else None
            if applied is None:
                return Built(work, None, record=record)
            old, whole = applied
        whole = await settled_whole(ctx.services.chores, whole)
        node_id = 0 if work.document is None else work.document.node_id
        document, data = document_of(whole, previous=work.document, node_id=node_id, place=work.place, before=old)
    except LimnosError as error:
        raise told_about(error, step.path, Kind.VIEW) from error
    return Built(work, document, data, old, whole.metadata, record)


async def _begin(ctx: Context, step: Step) -> Whole:
    """Build the first metadata of a new table."""
    if isinstance(step.source, TableRequest):
        return await build(ctx, step.source, cast("NewTable", step.draft))
    return await change_create(ctx.services, cast("Change", step.source))


def _stand(ctx: Context, work: Work, change: Change) -> Stand:
    """Return what the first change of a table is applied to."""
    return stand_of(ctx.services.recent, cast("Document", work.document), change)


def _stand_after(whole: Whole) -> Stand:
    """Return what a later change of the same table is applied to."""
    uuid = cast("str", whole.metadata["table-uuid"])
    if whole.body is not None:
        return Stand(uuid, None, None, whole.body)
    return Stand(uuid, None, whole.metadata, encode(whole.metadata))


# -- the transaction ---------------------------------------------------------------------------------------------------


def _command(plan: Plan, built: list[Built]) -> Permit[Transact]:
    """Put the mutations together, in the order of the operations: a table's metadata where it is first spoken of."""
    of_step = {each.work.steps[0]: each for each in built}
    deeds: list[Deed] = []
    for number, step in enumerate(plan.steps):
        made = None if step.made is None else step.made.id
        if step.mutation is not None:
            deeds.append(Deed(step.permit.command, step.mutation, number, made))
        elif number in of_step:
            command, mutation = _table_deed(step, of_step[number])
            deeds.append(Deed(command, mutation, number, made))
    return plan.permit.about(Transact(tuple(deeds)))


def _table_deed(step: Step, built: Built) -> tuple[object, Mutation]:
    document, before = built.document, built.work.document
    if step.kind is Kind.VIEW:
        return _view_deed(step, built)
    if step.draft is not None:
        draft = step.draft
        command = TableCreate(draft.namespace, step.path[-1], draft.space, cast("Document", document), draft.owner_id)
        return command, cast("Mutation", table_insert)
    table, before = cast("Node", step.table), cast("Document", before)
    if document is None:
        return DocumentHold(table, before.version), cast("Mutation", document_hold)
    relocates = document.location != before.location
    return TableCommit(table, document, before.version, relocates), cast("Mutation", document_swap)


def _view_deed(step: Step, built: Built) -> tuple[object, Mutation]:
    document, before, node = built.document, built.work.document, cast("Node", step.table)
    if step.draft is not None:
        draft, record = step.draft, cast("ViewRecord", node.record)
        made = cast("Document", document)
        command = ViewCreate(draft.namespace, step.path[-1], draft.space, made, draft.owner_id, record)
        return command, cast("Mutation", view_insert)
    before = cast("Document", before)
    if document is None and built.record is None:
        return DocumentHold(node, before.version), cast("Mutation", document_hold)
    relocates = document is not None and document.location != before.location
    return ViewReplace(node, document, before.version, relocates, built.record), cast("Mutation", view_swap)


def transaction_run(tx: Tx, permit: Permit[Transact]) -> Done:
    """Run the mutations of single requests one after the other. What refuses one undoes all."""
    deeds = permit.command.deeds
    tx.documents.meet([place for deed in deeds if (place := _new_place(deed.command)) is not None])
    made: dict[int, int] = {}
    results: dict[int, object] = {}
    for deed in deeds:
        command = _settled(deed.command, made) if made else deed.command
        try:
            result = deed.mutation(tx, permit.about(command))
        except LimnosError as error:
            error.context["operation"] = deed.place
            raise
        fault_point(DEED_POINT)
        results[deed.place] = result
        if deed.made is not None:
            made[deed.made] = _id_of(result)
    return Done(tx.revision if tx.drafts else tx.revision - 1, results)


def _id_of(made: object) -> int:
    """Return the id of what a mutation made."""
    if isinstance(made, Document):
        return made.node_id
    return made.node.id if isinstance(made, Held) else cast("Node", made).id


def _new_place(command: object) -> Document | None:
    """Return the document of a command that brings a location."""
    if isinstance(command, (TableCreate, ViewCreate)):
        return command.document
    return command.document if isinstance(command, (TableCommit, ViewReplace)) and command.relocates else None


def _settled(command: object, made: dict[int, int]) -> object:
    """Give what the transaction has made meanwhile its id."""
    if not isinstance(command, msgspec.Struct):
        return command
    fields = {name: getattr(command, name) for name in command.__struct_fields__}
    news = {
        name: msgspec.structs.replace(
            value, id=made.get(value.id, value.id), parent_id=made.get(value.parent_id, value.parent_id)
        )
        for name, value in fields.items()
        if isinstance(value, Node) and (is_new(value.id) or is_new(value.parent_id))
    }
    return msgspec.structs.replace(command, **news) if news else command


def document_hold(tx: Tx, permit: Permit[DocumentHold]) -> None:
    """Make sure that a table's document is the one that was looked at. Raises StalePermit."""
    command = permit.command
    tx.nodes.require(command.table)
    if tx.documents.version(command.table.id) != command.expected:
        tx.stale()


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
            ctx.services.recent.put(document, each.new)
        if len(document.body) <= OFFERED_BYTES_MAX:
            view.offer(document_key(document.node_id), document, zone=zone, revision=revision, epoch=epoch)
    for each in built:  # nothing was awaited until here
        if each.document is not None and each.old is not None and each.new is not None:
            await clean(ctx, each.document, built=(each.old, each.new), place=each.work.place)


# -- what is told ------------------------------------------------------------------------------------------------------


def told_about(error: LimnosError, path: Levels, what: Kind = Kind.TABLE) -> LimnosError:
    """Say what an error is about; a requirement that failed is named by its type, too."""
    words, requirement = error.message, error.context.get("requirement")
    failed = "Requirement failed: "
    if words.startswith(failed):
        kind = f" ({requirement})" if requirement else ""
        words = f"{failed}{what.word} {render(path)}: {words.removeprefix(failed)}{kind}"
    else:
        words = f"{what.word.capitalize()} {render(path)}: {words}"
    told = copy(error)
    told.message, told.args = words, (words,)
    return told


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
    return told_about(error, step.path, step.kind) if isinstance(error, (BadRequest, CommitConflict)) else error
