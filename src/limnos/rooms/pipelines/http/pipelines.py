# SPDX-License-Identifier: Apache-2.0
"""Pipelines: declare, list, load and drop them, and list the findings of their expectations.

Must not know the content of a declaration.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.rooms.pipelines.http.runs import encode_finding, parse_page
from limnos.rooms.pipelines.services import declarations, findings
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.runs import pipelines
from limnos.services.runs.pipelines import PipelineVersion

_ALL = "/api/limnos/v1/metalakes/{m}/pipelines"


class PipelinePut(AdminRequestBody, frozen=True):
    """A pipeline's declaration, as JSON that the server does not interpret.

    If the comment is omitted, the existing one remains.
    """

    declaration: msgspec.Raw
    comment: str | None = None


async def pipeline_put(request: Request, ctx: Context) -> Response:
    """Create a pipeline, or a new version if the declaration has changed."""
    metalake, name = names_of(request)
    body = Request.decode(await request.body(), PipelinePut)
    version = await declarations.pipeline_put(
        ctx, metalake=metalake, name=name, declaration=bytes(body.declaration), comment=body.comment
    )
    return json_response(_encode(version))


async def pipelines_list(request: Request, ctx: Context) -> Response:
    """Return the pipelines that the caller may load, by name, without their declarations."""
    versions = await ctx.read(RequestScope(*names_of(request)), pipelines.pipelines_list)
    return json_response({"pipelines": [_encode(each) for each in versions]})


async def pipeline_load(request: Request, ctx: Context) -> Response:
    """Return a pipeline with its declaration: the newest, or that of `version`."""
    metalake, name = names_of(request)
    text = request.query("version")
    version = None if text is None else number_of(text)
    if text is not None and not version:
        raise BadRequest(f"'{text[:50]}' is not a version of a pipeline: give a number from 1")
    return json_response(_encode(await declarations.pipeline_load(ctx, metalake=metalake, name=name, version=version)))


async def pipeline_drop(request: Request, ctx: Context) -> Response:
    """Drop a pipeline with its runs, unless a run is in progress."""
    metalake, name = names_of(request)
    await declarations.pipeline_drop(ctx, metalake=metalake, name=name)
    return json_response({"dropped": name})


async def findings_list(request: Request, ctx: Context) -> Response:
    """Return a page of a pipeline's findings, newest first; optionally of one `rule` or `step`.

    A page has at most `limit` findings; `page` is the page token that the previous page returned as `next`.
    """
    metalake, name = names_of(request)
    before, limit = parse_page(request)
    results, following = await findings.findings_list(
        ctx,
        metalake=metalake,
        pipeline=name,
        rule=request.query("rule") or "",
        step=request.query("step") or "",
        before=before,
        limit=limit,
    )
    entries = [encode_finding(each) | {"run": each.run, "run_state": each.state} for each in results]
    return json_response({"findings": entries, "next": None if following is None else str(following)})


def _encode(pipeline: PipelineVersion) -> dict[str, object]:
    node, record, declaration = pipeline.node, pipeline.record, pipeline.declaration
    body: dict[str, object] = {
        "name": node.name,
        "comment": record.comment,
        "version": record.declared if declaration is None else declaration.version,
        "digest": record.digest if declaration is None else declaration.digest,
        "created_by": node.created_by,
        "created_at": instant(node.created_at),
        "modified_by": node.modified_by,
        "modified_at": instant(node.modified_at),
    }
    return body if declaration is None else body | {"declaration": msgspec.Raw(declaration.text.encode())}


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_ALL, handler=pipelines_list, operation="list-pipelines"),
    Route(
        method="PUT",
        path=f"{_ALL}/{{p}}",
        handler=pipeline_put,
        operation="put-pipeline",
        asks=(Action.JOB_TEMPLATE_CREATE, Action.JOB_TEMPLATE_ALTER, Action.JOB_TEMPLATE_LOAD),
    ),
    Route(method="GET", path=f"{_ALL}/{{p}}", handler=pipeline_load, operation="load-pipeline", query=("version",)),
    Route(method="DELETE", path=f"{_ALL}/{{p}}", handler=pipeline_drop, operation="drop-pipeline"),
    Route(
        method="GET",
        path=f"{_ALL}/{{p}}/findings",
        handler=findings_list,
        operation="list-findings",
        query=("rule", "step", "page", "limit"),
    ),
)
