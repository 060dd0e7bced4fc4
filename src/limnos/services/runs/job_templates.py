# SPDX-License-Identifier: Apache-2.0
"""Job templates of a metalake, including pipelines: register, find, list, alter, drop; and check whether a run of one
is in progress.

Must not know any wire format. `formats.gravitino` checks the content of a template of Gravitino's types;
`services.runs.pipelines` declares pipelines. This module runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.job_templates import alter_content, content_of, type_of
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, PipelineBusy, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import JobTemplateRecord
from limnos.model.runs import CANCELLING, PipelineRun
from limnos.names.path import check_gravitino_name
from limnos.services.lookup.metalake_objects import (
    metalake_object_create,
    metalake_object_exists_error,
    metalake_object_find,
    metalake_object_load,
    metalake_objects_list,
)
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits, object_edit
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

KIND = Kind.JOB_TEMPLATE
TemplateFieldUpdate = Mapping[str, object]
"""New content of a template: `newExecutable` and so on."""


class TemplateRequest(NamedTuple):
    """A request to register a template: its type, comment and content."""

    job_type: str
    comment: str | None
    fields: Mapping[str, object]


class TemplateAlter(msgspec.Struct, frozen=True):
    """The command to change a template's name, comment or content."""

    template: Node
    edits: PropertyEdits
    updates: tuple[TemplateFieldUpdate, ...]


class TemplateDrop(msgspec.Struct, frozen=True):
    """The command to drop a template with the records of its jobs."""

    template: Node


def record_of(template: Node) -> JobTemplateRecord:
    """Return the job-template record of a template's node: its type, content and comment."""
    return cast("JobTemplateRecord", template.record)


async def template_register(ctx: Context, *, metalake: str, name: str, request: TemplateRequest) -> Node:
    """Create a template; the caller owns it. Raises AlreadyExists, InvalidName, BadRequest for invalid content,
    NotInUse, PermissionDenied.
    """
    job_type = type_of(request.job_type)
    content = content_of(job_type, request.fields)
    record = JobTemplateRecord(
        comment=request.comment, properties={}, declared=0, digest="", job_type=job_type, content=content.text
    )
    return await metalake_object_create(ctx, metalake=metalake, kind=KIND, name=name, record=record)


def template_find(request_view: RequestView, name: str) -> Node:
    """Return a template by name, if the caller owns it or may use it. Raises NotFound, NotInUse, PermissionDenied."""
    return metalake_object_load(request_view, KIND, name=name)


def templates_list(request_view: RequestView) -> list[Node]:
    """Return the templates that the caller may load, by name. Raises NotInUse, PermissionDenied."""
    return metalake_objects_list(request_view, KIND)


async def template_alter(
    ctx: Context, *, metalake: str, name: str, edits: PropertyEdits, updates: Sequence[TemplateFieldUpdate] = ()
) -> Node:
    """Rename a template, or change its comment or content.

    Raises NotFound, AlreadyExists, InvalidName, BadRequest for invalid content, NotInUse, PermissionDenied,
    UnsupportedOperation for the content of a pipeline.
    """
    if edits.name is not None:
        check_gravitino_name(edits.name, kind="JOB_TEMPLATE")

    def decide(request_view: RequestView) -> Permit[TemplateAlter]:
        metalake_object = metalake_object_find(request_view, KIND, name=name, action=Action.JOB_TEMPLATE_ALTER)
        if updates and not record_of(metalake_object.entity).job_type:
            raise UnsupportedOperation(
                "The declaration of a pipeline cannot change here: change it with PUT"
                " /api/limnos/v1/metalakes/{m}/pipelines/{p}"
            )
        return request_view.permit(
            TemplateAlter(metalake_object.entity, edits, tuple(updates)), metalake_object.decision
        )

    try:
        return await ctx.write(RequestScope(metalake), decide, template_update)
    except AlreadyExists:
        raise metalake_object_exists_error(KIND, edits.name or name, metalake=metalake) from None


def template_update(tx: Tx, permit: Permit[TemplateAlter]) -> Node:
    """Write the template's new record, then its new name. Returns the changed node."""
    node = tx.nodes.confirm(permit.command.template)
    record = record_of(node)
    for update in permit.command.updates:
        content = alter_content(record.job_type, record.content, changes=update)
        record = replace(record, content=content.text)
    return object_edit(tx, msgspec.structs.replace(node, record=record), edits=permit.command.edits)


async def template_drop(ctx: Context, *, metalake: str, name: str) -> None:
    """Drop a template with the records of its jobs. Raises NotFound, PipelineBusy while a run or job is in progress,
    NotInUse, PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[TemplateDrop]:
        metalake_object = metalake_object_find(request_view, KIND, name=name, action=Action.JOB_TEMPLATE_DROP)
        return request_view.permit(TemplateDrop(metalake_object.entity), metalake_object.decision)

    await ctx.write(RequestScope(metalake), decide, template_delete)


def template_delete(tx: Tx, permit: Permit[TemplateDrop]) -> None:
    """Drop the template. Raises PipelineBusy if one of its runs or jobs has not ended.

    A task deletes the rows of its runs later, which is safe because ids are never reused.
    """
    node = tx.nodes.confirm(permit.command.template)
    refuse_busy(tx.runs.live_of(node.id), node.name, now_ms=tx.now_ms)
    job = tx.template_jobs.live_of(node.id)
    if job is not None:
        raise PipelineBusy(
            f"Job {job.uuid} of job template {node.name} is {job.state}: wait for it, or cancel it first", run=job.uuid
        )
    tx.nodes.drop(node)


def refuse_busy(runs: list[PipelineRun], name: str, *, now_ms: int, but: int = 0) -> None:
    """Raise PipelineBusy if a process holds the lease of one of a pipeline's `runs`, other than the run with id
    `but`.
    """
    for run in runs:
        if run.id != but and run.is_held(now_ms):
            left_s = -(-(run.beat_at + run.lease_ms - now_ms) // 1000)
            advice = (
                f"It is being cancelled: if its process was killed, the run is over in {left_s} s"
                if run.state == CANCELLING
                else f"Wait for it, or stop it with 'limnos pipeline cancel {run.uuid}'; if its process was killed,"
                f" repeat this in {left_s} s"
            )
            raise PipelineBusy(
                f"Pipeline {name} is being run: {describe_busy_run(run)}. {advice}",
                run=run.uuid,
            )


def describe_busy_run(run: PipelineRun) -> str:
    """Describe a run in progress for a message: its id, user, attempt, process and start time."""
    since = datetime.fromtimestamp((run.resumed_at or run.started_at) // 1000, UTC).isoformat().replace("+00:00", "Z")
    return f"run {run.uuid} of {run.user}, attempt {run.attempt}, held by {run.holder} since {since}"
