"""Assembly: the metadata of a transaction's tables and views, built from what each change makes of the one before, and written.

May import the rooms below and the services of tables and views. Decides nothing; the files are `services.request.files`' to take back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, cast

from limnos.formats.iceberg.metadata import encode
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.services.iceberg.commits import Stand, change_apply, change_create, removed_by, stand_of
from limnos.services.iceberg.dataset_fence import fenced
from limnos.services.iceberg.tables import TableRequest, Whole, build, document_of, new_data_paths, settled_whole
from limnos.services.iceberg.views import adopted_by, view_build, view_rebuild
from limnos.services.request.chores import is_heavy
from limnos.services.request.files import AT_ONCE, is_inline
from limnos.services.request.operation_errors import told_about
from limnos.services.request.parallel import each_of
from limnos.services.request.recent import RECENT
from limnos.services.transactions.plans import Work

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.model.entities import Document, Node
    from limnos.model.records import ViewRecord
    from limnos.services.catalog.tables import NewTable
    from limnos.services.iceberg.commits import Change
    from limnos.services.iceberg.views import Asked as ViewAsked
    from limnos.services.iceberg.views import ViewRequest
    from limnos.services.request.context import Context
    from limnos.services.request.files import Pile
    from limnos.services.transactions.operations import Step
    from limnos.services.transactions.plans import Plan

_HEAVY_AT_A_TIME = 4
_LIGHT_AT_A_TIME = 8
"""Tables whose metadata is built before others have their turn."""


class Built(NamedTuple):
    """What the steps of a table come to; `old` is None for a new one. Without a document nothing is changed."""

    work: Work
    document: Document | None
    data: bytes = b""
    old: Json | None = None
    new: Json | None = None
    record: ViewRecord | None = None
    """What a view's record becomes, if it changes."""
    removed: frozenset[int] = frozenset()
    """The snapshots of the table that go."""
    data_paths: tuple[str, ...] = ()
    """Locations outside its own to which a table sends writers from now on."""


async def build_all(ctx: Context, plan: Plan, *, before: list[Built], pile: Pile) -> list[Built]:
    """Build every table's metadata, then write the files. What an earlier attempt built on the same documents stays."""
    works = {work.steps: work for work in plan.works}
    known = {each.work.steps: each for each in before if works.get(each.work.steps) == each.work}
    for each in before:
        if each.work.steps not in known and each.document is not None:
            await pile.take_back(each.document.metadata_location)
    heavy = [work for work in plan.works if work.steps not in known and _is_heavy(plan, work)]
    by_chores = await each_of(heavy, lambda work: _build(ctx, plan, work=work), at_once=_HEAVY_AT_A_TIME)
    done = known | {each.work.steps: each for each in by_chores}
    built: list[Built] = []
    for number, work in enumerate(plan.works, 1):
        built.append(done.get(work.steps) or await _build(ctx, plan, work=work))
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


async def _build(ctx: Context, plan: Plan, *, work: Work) -> Built:
    """Apply a table's changes one after the other, each to what the earlier ones left."""
    if plan.steps[work.steps[0]].kind is Kind.VIEW:
        return await _build_view(ctx, plan.steps[work.steps[0]], work=work)
    old: Json | None = None
    whole: Whole | None = None
    for number in work.steps:
        step = plan.steps[number]
        try:
            if step.draft is not None:
                whole = await _begin(ctx, step)
                continue
            change = cast("Change", step.source)
            stand = _stand(ctx, work, change=change) if whole is None else _stand_after(whole)
            applied = await change_apply(ctx.services, change, stand)
        except LimnosError as error:
            raise told_about(error, step.path) from error
        if applied is not None:
            old, whole = applied[0] if whole is None else old, applied[1]
    if whole is None:
        return Built(work, None)
    whole = await settled_whole(ctx.services.chores, whole)
    node_id = 0 if work.document is None else work.document.node_id
    if old is not None:
        fenced(work.guard, None, before=old, after=whole.metadata)
    try:
        document, data = document_of(whole, previous=work.document, node_id=node_id, place=work.place, before=old)
        paths = new_data_paths(whole.metadata, before=old, place=work.place)
    except LimnosError as error:
        raise told_about(error, plan.steps[work.steps[0]].path) from error
    removed: frozenset[int] = frozenset()
    if work.document is not None:
        changes = [cast("Change", plan.steps[number].source) for number in work.steps]
        removed = removed_by(ctx.services, changes, before=work.document, after=document)
    return Built(work, document, data, old, whole.metadata, removed=removed, data_paths=paths)


async def _build_view(ctx: Context, step: Step, *, work: Work) -> Built:
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
        raise told_about(error, step.path, what=Kind.VIEW) from error
    return Built(work, document, data, old, whole.metadata, record)


async def _begin(ctx: Context, step: Step) -> Whole:
    """Build the first metadata of a new table."""
    if isinstance(step.source, TableRequest):
        return await build(ctx, step.source, cast("NewTable", step.draft))
    return await change_create(ctx.services, cast("Change", step.source))


def _stand(ctx: Context, work: Work, *, change: Change) -> Stand:
    """Return what the first change of a table is applied to."""
    return stand_of(RECENT.of(ctx.services), cast("Document", work.document), change)


def _stand_after(whole: Whole) -> Stand:
    """Return what a later change of the same table is applied to."""
    uuid = cast("str", whole.metadata["table-uuid"])
    if whole.body is not None:
        return Stand(uuid, None, None, whole.body)
    return Stand(uuid, None, whole.metadata, encode(whole.metadata))
