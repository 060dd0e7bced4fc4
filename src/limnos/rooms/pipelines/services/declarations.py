# SPDX-License-Identifier: Apache-2.0
"""Declarations of pipelines: declare, load, drop.

Must not know any wire format, nor the content of a declaration. Each declaration that differs from the previous
declaration is a new version. Its text is stored as long as a run of that version exists.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import escape_percent
from limnos.model.records import JobTemplateRecord
from limnos.model.runs import PipelineDeclaration
from limnos.names import display
from limnos.names.path import check_gravitino_name
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.job_templates import TemplateDrop, template_delete
from limnos.services.runs.pipelines import PipelineVersion, pipeline_find, require_pipeline_type
from limnos.store.activity.pipelines import declaration_put, declaration_read
from limnos.store.tx import Tx


class PipelineDeclare(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a pipeline, or to add a version of its declaration."""

    metalake: Node
    pipeline: Node | None
    name: str
    comment: str | None
    text: str
    digest: str
    owner_id: int | None


def declaration_of(raw: bytes) -> tuple[str, str]:
    """Return the minified JSON of a declaration, and the SHA-256 digest of its canonical form (sorted keys).

    Raises BadRequest for anything but a JSON object.
    """
    try:
        decoded = msgspec.json.decode(raw)
        text = msgspec.json.format(raw, indent=-1).decode()
        canonical = msgspec.json.encode(decoded, order="sorted")
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise BadRequest(f"The declaration is not JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise BadRequest("The declaration must be a JSON object: send the content of the pipeline's file")
    return text, sha256(canonical).hexdigest()


async def pipeline_put(
    ctx: Context, *, metalake: str, name: str, declaration: bytes, comment: str | None
) -> PipelineVersion:
    """Create a pipeline, or its next version if the declaration differs from the newest; an equal declaration changes
    nothing.

    A caller who may use a pipeline may repeat its declaration; changing it needs ownership. Raises InvalidName,
    BadRequest for a malformed declaration, NotInUse, PermissionDenied, AlreadyExists if a template that is not visible
    to the caller has the name, NotFound if a template of another type has it.
    """
    check_gravitino_name(name, kind="JOB_TEMPLATE")
    text, digest = declaration_of(declaration)

    def look(request_view: RequestView) -> Node | None:
        node, _ = _decide_declaration(request_view, name, digest=digest, comment=comment)
        return node if node is not None and not _differs(node, digest, comment=comment) else None

    def decide(request_view: RequestView) -> Permit[PipelineDeclare]:
        node, decision = _decide_declaration(request_view, name, digest=digest, comment=comment)
        command = PipelineDeclare(
            metalake=request_view.metalake,
            pipeline=node,
            name=name,
            comment=comment,
            text=text,
            digest=digest,
            owner_id=request_view.maker_id,
        )
        return request_view.permit(command, decision)

    node = await ctx.read(RequestScope(metalake), look)
    if node is None:
        try:
            node = await ctx.write(RequestScope(metalake), decide, pipeline_declare)
        except AlreadyExists:  # created concurrently, or hidden: the next decision determines which
            node = await ctx.write(RequestScope(metalake), decide, pipeline_declare)
    newest = cast("JobTemplateRecord", node.record).declared
    # The newest version has this digest, even if another caller sent it first.
    return PipelineVersion(
        node,
        PipelineDeclaration(
            pipeline_id=node.id, version=newest, digest=digest, text=text, declared_by="", declared_at=0
        ),
    )


def _decide_declaration(
    request_view: RequestView, name: str, *, digest: str, comment: str | None
) -> tuple[Node | None, Decision]:
    """Authorize the declaration of a pipeline. Returns the existing pipeline (None for a new one) and the decision.

    If an existing pipeline is not visible to the caller, only the right to create pipelines is checked.
    """
    request_view.require_in_metalake_use()
    node, chain = request_view.find_outside(Kind.JOB_TEMPLATE, (name,))
    if node is None:
        return None, request_view.require(Action.JOB_TEMPLATE_CREATE, request_view.settled.outer)
    if not request_view.decide(Action.JOB_TEMPLATE_LOAD, chain).allowed:
        request_view.require(Action.JOB_TEMPLATE_CREATE, request_view.settled.outer)
        raise _exists(name, request_view.metalake.name)
    require_pipeline_type(node)
    action = Action.JOB_TEMPLATE_ALTER if _differs(node, digest, comment=comment) else Action.JOB_TEMPLATE_LOAD
    return node, request_view.require(action, chain)


def _differs(node: Node, digest: str, *, comment: str | None) -> bool:
    record = cast("JobTemplateRecord", node.record)
    return record.digest != digest or (comment is not None and record.comment != comment)


def _exists(name: str, metalake: str) -> AlreadyExists:
    escaped_name = escape_percent(display.render((name,)))
    return AlreadyExists(
        f"Pipeline {name} already exists in metalake {metalake}, and you may not use it. If it is yours to run, ask its"
        f" owner for USE_JOB_TEMPLATE on it: 'limnos grant use_job_template --on {escaped_name}"
        " --kind job_template --to ROLE'",
        kind=Kind.JOB_TEMPLATE.word,
    )


def pipeline_declare(tx: Tx, permit: Permit[PipelineDeclare]) -> Node:
    """Insert the pipeline with its owner, or add the next version of its declaration. Returns its node."""
    command = permit.command
    if command.pipeline is None:
        return _pipeline_insert(tx, command, zone=permit.zone)
    node = tx.nodes.confirm(command.pipeline)
    record = cast("JobTemplateRecord", node.record)
    if not _differs(node, command.digest, comment=command.comment):
        return node
    declared = record.declared + (record.digest != command.digest)
    comment = record.comment if command.comment is None else command.comment
    tx.nodes.write_record(node, replace(record, comment=comment, declared=declared, digest=command.digest))
    if declared != record.declared:
        declaration_put(tx, node.id, version=declared, digest=command.digest, text=command.text)
    return tx.nodes.by_id(node.id)


def _pipeline_insert(tx: Tx, command: PipelineDeclare, *, zone: int) -> Node:
    if not tx.nodes.is_alive(command.metalake.id):
        tx.stale()
    kind, record = (
        Kind.JOB_TEMPLATE,
        JobTemplateRecord(comment=command.comment, properties={}, declared=1, digest=command.digest),
    )
    node = tx.nodes.create(
        kind=kind,
        space=kind.word,
        name=command.name,
        parent_id=command.metalake.id,
        zone=zone,
        record=record,
        owner_id=command.owner_id,
    )
    declaration_put(tx, node.id, version=1, digest=command.digest, text=command.text)
    return node


async def pipeline_load(ctx: Context, *, metalake: str, name: str, version: int | None = None) -> PipelineVersion:
    """Return a pipeline with the declaration of the given version, or of the newest.

    Raises NotFound, also for a missing version, NotInUse, PermissionDenied.
    """
    pipeline_version = await ctx.read(RequestScope(metalake), lambda request_view: pipeline_find(request_view, name))
    return await _with_declaration(ctx, pipeline_version.node, version=version)


async def _with_declaration(ctx: Context, node: Node, *, version: int | None = None) -> PipelineVersion:
    newest = cast("JobTemplateRecord", node.record).declared
    requested = newest if version is None else version
    # A version that is newer than the decision may have been declared after the caller lost the right.
    declaration = await ctx.look_up(lambda: declaration_read(node.id, requested)) if requested <= newest else None
    if declaration is None and version is not None:
        raise NotFound(f"Pipeline {node.name} has no version {version}, or it is no longer stored", kind="version")
    return PipelineVersion(node, declaration)


async def pipeline_drop(ctx: Context, *, metalake: str, name: str) -> None:
    """Drop a pipeline with the records of its runs. Raises NotFound, PipelineBusy while a run is in progress, NotInUse,
    PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[TemplateDrop]:
        request_view.require_in_metalake_use()
        result = request_view.look_up(Kind.JOB_TEMPLATE, (name,), Action.JOB_TEMPLATE_DROP)
        return request_view.permit(TemplateDrop(require_pipeline_type(result.entity)), result.decision)

    await ctx.write(RequestScope(metalake), decide, template_delete)
