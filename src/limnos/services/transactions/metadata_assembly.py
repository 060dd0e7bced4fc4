# SPDX-License-Identifier: Apache-2.0
"""Metadata assembly: builds the metadata of a transaction's tables and views by applying the changes in order, and
writes the metadata files.

Makes no access decisions; `services.request.files` deletes the files if the transaction fails.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.metadata import encode
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_object_in_error
from limnos.model.records import ViewRecord
from limnos.services.catalog.tables import NewTable
from limnos.services.iceberg.commit_values import CommitChange, CommitGuards, CommitState
from limnos.services.iceberg.commits import change_apply, change_create, commit_guards, commit_state_of
from limnos.services.iceberg.dataset_fence import check_dataset_commit
from limnos.services.iceberg.registered_tables import table_read_new
from limnos.services.iceberg.tables import (
    NewMetadata,
    TableRegisterRequest,
    TableRequest,
    add_metadata_scheme,
    build_metadata,
    document_of,
    new_data_paths,
)
from limnos.services.iceberg.views import ViewReplaceRequest as ViewAsked
from limnos.services.iceberg.views import ViewRequest, view_build, view_rebuild, view_record_for_writer
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE, FileBatch, is_inline
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.recent_metadata import RECENT_METADATA
from limnos.services.transactions.operations import OperationStep
from limnos.services.transactions.transaction_plan import TablePlan, TransactionPlan

_HEAVY_AT_A_TIME = 4
_LIGHT_AT_A_TIME = 8
"""The number of tables whose metadata is built before other requests run."""


class BuiltMetadata(NamedTuple):
    """The built metadata of a table or view.

    `old` is None for a new table or view; `document` is None if nothing changes.
    """

    work: TablePlan
    document: MetadataDocument | None
    data: bytes = b""
    old: Json | None = None
    new: Json | None = None
    record: ViewRecord | None = None
    """A view's new record, if it changes."""
    guards: CommitGuards = CommitGuards(frozenset(), None)
    """Conditions that the transaction checks: the removed snapshots are not needed, and the deadline has not passed."""
    data_paths: tuple[str, ...] = ()
    """Locations outside its own to which a table sends writers from now on."""
    had_files: bool = False
    """Whether a table's new location has files of nobody."""
    adopts: bool = False
    """Whether the table existed before, at this location."""
    is_registered: bool = False
    """Whether its metadata file existed before: the transaction neither writes nor deletes it."""


async def build_all(
    ctx: Context, plan: TransactionPlan, *, before: list[BuiltMetadata], file_batch: FileBatch
) -> list[BuiltMetadata]:
    """Build every table's metadata, then write the files.

    Results in `before`, from an earlier attempt, are reused if they were built from the same documents.
    """
    works = {work.steps: work for work in plan.works}
    documents_by_steps = {each.work.steps: each for each in before if works.get(each.work.steps) == each.work}
    for each in before:
        if each.work.steps not in documents_by_steps and each.document is not None and not each.is_registered:
            await file_batch.delete(each.document.metadata_location)
    heavy = [work for work in plan.works if work.steps not in documents_by_steps and _is_heavy(plan, work)]
    by_offloader = await map_concurrently(heavy, lambda work: _build(ctx, plan, work=work), at_once=_HEAVY_AT_A_TIME)
    all_documents = documents_by_steps | {each.work.steps: each for each in by_offloader}
    registered = [work for work in plan.works if work.steps not in all_documents and _is_registered(plan, work)]
    read = await map_concurrently(registered, lambda work: _build(ctx, plan, work=work), at_once=AT_ONCE)
    all_documents |= {each.work.steps: each for each in read}
    built_documents: list[BuiltMetadata] = []
    for number, work in enumerate(plan.works, 1):
        built_documents.append(all_documents.get(work.steps) or await _build(ctx, plan, work=work))
        if number % _LIGHT_AT_A_TIME == 0:
            await asyncio.sleep(0)
    new_documents = [
        each
        for each in built_documents
        if each.document is not None and each.work.steps not in documents_by_steps and not each.is_registered
    ]

    await _write_all(new_documents, file_batch)
    return built_documents


async def _write_all(fresh: list[BuiltMetadata], file_batch: FileBatch) -> None:
    """Write metadata files: small local files sequentially on the event loop, other files concurrently."""

    async def write(each: BuiltMetadata) -> None:
        document = cast("MetadataDocument", each.document)
        properties = each.work.place.catalog.properties
        await file_batch.write(document.metadata_location, each.data, properties, first=each.work.document is None)

    slow: list[BuiltMetadata] = []
    for number, each in enumerate(fresh, 1):
        if not is_inline(cast("MetadataDocument", each.document).metadata_location, each.data):
            slow.append(each)
            continue
        await write(each)
        if number % _LIGHT_AT_A_TIME == 0:
            await asyncio.sleep(0)
    await map_concurrently(slow, write, at_once=AT_ONCE)


def _is_registered(plan: TransactionPlan, work: TablePlan) -> bool:
    """Return whether the metadata of this table is an existing file."""
    return isinstance(plan.steps[work.steps[0]].source, TableRegisterRequest)


def _is_heavy(plan: TransactionPlan, work: TablePlan) -> bool:
    """Return whether a worker process builds the metadata of this table, so that several tables can be built
    concurrently.
    """
    if work.document is not None and is_heavy(work.document):
        return True
    sources = [plan.steps[number].source for number in work.steps]
    return any(
        source is not None and not isinstance(source, TableRegisterRequest) and source.raw is not None
        for source in sources
    )


async def _build(ctx: Context, plan: TransactionPlan, *, work: TablePlan) -> BuiltMetadata:
    """Apply a table's changes in order, each to the result of the previous one."""
    if plan.steps[work.steps[0]].kind is Kind.VIEW:
        return await _build_view(ctx, plan.steps[work.steps[0]], work=work)
    if _is_registered(plan, work):
        return await _read_registered(ctx, plan.steps[work.steps[0]], work=work)
    old: Json | None = None
    new_metadata: NewMetadata | None = None
    for number in work.steps:
        step = plan.steps[number]
        try:
            if step.draft is not None:
                new_metadata = await _build_new(ctx, step)
                continue
            change = cast("CommitChange", step.source)
            commit_state = _first_state(ctx, work, change=change) if new_metadata is None else _next_state(new_metadata)
            applied = await change_apply(ctx.services, change, commit_state)
        except LimnosError as error:
            raise name_object_in_error(error, step.path) from error
        if applied is not None:
            old, new_metadata = applied[0] if new_metadata is None else old, applied[1]
    if new_metadata is None:
        return BuiltMetadata(work=work, document=None)
    new_metadata = await add_metadata_scheme(ctx.services.offloader, new_metadata)
    node_id = 0 if work.document is None else work.document.node_id
    if old is not None:
        check_dataset_commit(work.guard, None, before=old, after=new_metadata.metadata)
    try:
        document, data = document_of(
            new_metadata, previous=work.document, node_id=node_id, place=work.place, before=old
        )
        paths = new_data_paths(new_metadata.metadata, before=old, place=work.place)
    except LimnosError as error:
        raise name_object_in_error(error, plan.steps[work.steps[0]].path) from error
    guards = CommitGuards(frozenset(), None)
    if work.document is not None:
        changes = [cast("CommitChange", plan.steps[number].source) for number in work.steps]
        try:
            guards = await commit_guards(ctx, changes, before=work.document, after=document, place=work.place)
        except LimnosError as error:
            raise name_object_in_error(error, plan.steps[work.steps[0]].path) from error
    return BuiltMetadata(
        work=work,
        document=document,
        data=data,
        old=old,
        new=new_metadata.metadata,
        guards=guards,
        data_paths=paths,
        had_files=await _had_files(ctx, plan, work=work, document=document),
    )


async def _read_registered(ctx: Context, step: OperationStep, *, work: TablePlan) -> BuiltMetadata:
    """Read the metadata file of a table that the transaction registers."""
    source = cast("TableRegisterRequest", step.source)
    try:
        table = await table_read_new(ctx, work.place, metadata_location=source.metadata_location)
    except LimnosError as error:
        raise name_object_in_error(error, step.path) from error
    return BuiltMetadata(
        work=work,
        document=table.document,
        data_paths=table.data_paths,
        had_files=table.had_files,
        adopts=table.adopts,
        is_registered=True,
    )


async def _had_files(ctx: Context, plan: TransactionPlan, *, work: TablePlan, document: MetadataDocument) -> bool:
    """Return whether the table's new location, if the client chose it, has files of nobody."""
    source = plan.steps[work.steps[0]].source
    # Only the request of a single create shows that the server chose the location: later steps may set another.
    is_default = isinstance(source, TableRequest) and source.location is None and len(work.steps) == 1
    if is_default or (work.document is not None and work.document.location == document.location):
        return False
    return await work.place.has_unclaimed_files(ctx.services.files, document.location)


async def _build_view(ctx: Context, step: OperationStep, *, work: TablePlan) -> BuiltMetadata:
    """Build a new view's metadata, or apply a change to a view."""
    old: Json | None = None
    record: ViewRecord | None = None
    try:
        if step.draft is not None:
            new_metadata = await view_build(ctx, cast("ViewRequest", step.source), step.draft)
        else:
            before = cast("MetadataDocument", work.document)
            applied, writes_text = await view_rebuild(ctx, cast("ViewAsked", step.source), before)
            record = view_record_for_writer(cast("Node", step.table), step.writer_id) if writes_text else None
            if applied is None:
                return BuiltMetadata(work=work, document=None, record=record)
            old, new_metadata = applied
        new_metadata = await add_metadata_scheme(ctx.services.offloader, new_metadata)
        node_id = 0 if work.document is None else work.document.node_id
        document, data = document_of(
            new_metadata, previous=work.document, node_id=node_id, place=work.place, before=old
        )
    except LimnosError as error:
        raise name_object_in_error(error, step.path, what=Kind.VIEW) from error
    return BuiltMetadata(work=work, document=document, data=data, old=old, new=new_metadata.metadata, record=record)


async def _build_new(ctx: Context, step: OperationStep) -> NewMetadata:
    """Build the first metadata of a new table."""
    if isinstance(step.source, TableRequest):
        return await build_metadata(ctx, step.source, cast("NewTable", step.draft))
    return await change_create(ctx.services, cast("CommitChange", step.source))


def _first_state(ctx: Context, work: TablePlan, *, change: CommitChange) -> CommitState:
    """Return the state to which the first change of a table in the transaction applies: its stored document."""
    return commit_state_of(RECENT_METADATA.of(ctx.services), cast("MetadataDocument", work.document), change)


def _next_state(whole: NewMetadata) -> CommitState:
    """Return the state to which the next change of the same table applies: the metadata that the previous change
    built.
    """
    uuid = cast("str", whole.metadata["table-uuid"])
    if whole.body is not None:
        return CommitState(uuid, None, None, whole.body)
    return CommitState(uuid, None, whole.metadata, encode(whole.metadata))
