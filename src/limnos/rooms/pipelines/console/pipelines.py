# SPDX-License-Identifier: Apache-2.0
"""The list of pipelines, and the page of one: its steps, its runs, and the results of its expectations.

Has no business rules.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.rooms.console.http.addresses import run_path
from limnos.rooms.console.http.frame import Frame, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.pictures import GraphPicture
from limnos.rooms.console.http.rendering import count_text, duration_text, render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.tabs import Chip
from limnos.rooms.pipelines.console.states import message_text, result_chip, state_chip, steps_picture
from limnos.rooms.pipelines.services.declarations import pipeline_load
from limnos.rooms.pipelines.services.findings import findings_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.runs.pipelines import pipelines_list
from limnos.services.runs.run_access import RunView
from limnos.services.runs.run_lists import runs_list
from limnos.services.runs.runs import run_load

RUNS_SHOWN: Final = 50
RUNS_READ: Final = 200
LATEST: Final = 10
FINDINGS_READ: Final = 200
_NEWEST: Final = 2**53


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a list of runs. `took` is the duration as text; empty while the run is in progress."""

    id: str
    href: str
    pipeline: str
    state: Chip
    user: str
    version: int
    started_ms: int
    took: str
    message: str


class PipelineLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline of the list with its latest runs, newest first."""

    name: str
    href: str
    comment: str
    version: int
    latest: tuple[RunLine, ...]


class PipelinesPage(msgspec.Struct, frozen=True):
    """The data of the page that lists the pipelines that the caller may load, with their latest runs."""

    frame: Frame
    pipelines: tuple[PipelineLine, ...]
    runs: tuple[RunLine, ...]
    schedules_href: str


class FindingLine(msgspec.Struct, frozen=True):
    """A row for one expectation of a step: its results in the latest runs, newest first, and the newest message."""

    step: str
    rule: str
    results: tuple[Chip, ...]
    message: str


class PipelinePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a pipeline's page: its graph, its declaration, and its latest runs with their findings."""

    frame: Frame
    name: str
    comment: str
    version: int
    picture: GraphPicture
    runs: tuple[RunLine, ...]
    findings: tuple[FindingLine, ...]
    declaration: str
    list_href: str


async def pipelines_page(page_request: PageRequest) -> Response:
    """Show the pipelines of a metalake and their latest runs."""
    frame = await frame_of(page_request, "Pipelines", section="pipelines")
    metalake = frame.metalake
    versions = await page_request.ctx.read(RequestScope(metalake), pipelines_list)
    views, _ = await runs_list(
        page_request.ctx, metalake=metalake, pipeline=None, state="", before=_NEWEST, limit=RUNS_READ
    )
    lines = [run_line(page_request, metalake, view=view) for view in views]
    pipelines = tuple(
        PipelineLine(
            name=each.node.name,
            href=pipeline_url(page_request, metalake, name=each.node.name),
            comment=each.record.comment or "",
            version=each.record.declared,
            latest=tuple([line for line in lines if line.pipeline == each.node.name][:LATEST]),
        )
        for each in versions
    )
    schedules_href = f"{page_request.base}/schedules?{urlencode({'metalake': metalake})}"
    page = PipelinesPage(frame, pipelines, tuple(lines[:RUNS_SHOWN]), schedules_href)
    return html_response(page_request.request, render("pipelines.html", page))


def pipeline_url(page_request: PageRequest, metalake: str, *, name: str) -> str:
    """Return the URL of a pipeline's page."""
    return f"{page_request.base}/pipeline?{urlencode({'metalake': metalake, 'name': name})}"


def run_url(page_request: PageRequest, metalake: str, *, run: str) -> str:
    """Return the URL of a run's page."""
    return page_request.base + run_path(metalake, run=run)


def run_line(page_request: PageRequest, metalake: str, *, view: RunView) -> RunLine:
    """Return a row of a list of runs: state, user, start and duration."""
    run = view.run
    took = "" if run.ended_at is None else duration_text(run.ended_at - run.started_at)
    return RunLine(
        id=run.uuid,
        href=run_url(page_request, metalake, run=run.uuid),
        pipeline=view.pipeline,
        state=state_chip(view.state),
        user=run.user,
        version=run.version,
        started_ms=run.started_at,
        took=took,
        message=run.message or "",
    )


async def pipeline_page(page_request: PageRequest) -> Response:
    """Show a pipeline: the steps of its newest run, its runs, the results of its expectations, and its declaration."""
    name = page_request.request.query("name") or ""
    if not name:
        raise BadRequest("The URL has no pipeline name")
    frame = await frame_of(page_request, name, section="pipelines")
    ctx, metalake = page_request.ctx, frame.metalake
    version = await pipeline_load(ctx, metalake=metalake, name=name)
    views, _ = await runs_list(ctx, metalake=metalake, pipeline=name, state="", before=_NEWEST, limit=RUNS_SHOWN)
    steps = (await run_load(ctx, metalake=metalake, uuid=views[0].run.uuid)).steps if views else ()
    declaration = "" if version.declaration is None else version.declaration.text
    page = PipelinePage(
        frame=frame,
        name=name,
        comment=version.record.comment or "",
        version=version.record.declared,
        picture=steps_picture(steps),
        runs=tuple(run_line(page_request, metalake, view=view) for view in views),
        findings=await _finding_lines(page_request, metalake, name=name),
        declaration=msgspec.json.format(declaration.encode(), indent=2).decode() if declaration else "",
        list_href=f"{page_request.base}/pipelines?{urlencode({'metalake': metalake})}",
    )
    return html_response(page_request.request, render("pipeline.html", page))


class FindingBody(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a finding that the page shows."""

    kind: str = ""
    action: str = ""
    broken: int = 0
    checked: int = 0
    held: bool = True
    message: str = ""
    sample: str | None = None


def finding_body(text: str) -> FindingBody:
    """Decode a finding's JSON. If its structure is unknown, all fields have their defaults."""
    try:
        return msgspec.json.decode(text, type=FindingBody)
    except msgspec.MsgspecError:
        return FindingBody()


async def _finding_lines(page_request: PageRequest, metalake: str, *, name: str) -> tuple[FindingLine, ...]:
    """Return a row for each expectation, with its results in the latest runs, newest first."""
    findings, _ = await findings_list(
        page_request.ctx, metalake=metalake, pipeline=name, rule="", step="", before=_NEWEST, limit=FINDINGS_READ
    )
    by_rule: dict[tuple[str, str], list[FindingBody]] = {}
    for each in findings:
        by_rule.setdefault((each.step, each.rule), []).append(finding_body(each.body))
    return tuple(
        FindingLine(
            step, rule, tuple(_result_chip(each) for each in bodies[:LATEST]), message_text(rule, bodies[0].message)
        )
        for (step, rule), bodies in sorted(by_rule.items())
    )


def _result_chip(body: FindingBody) -> Chip:
    words = f"{count_text(body.broken)} of {count_text(body.checked)}"
    return result_chip(is_held=body.held, action=body.action, words=words)


ROUTES = (
    ConsoleRoute(
        method="GET", path="/pipelines", handler=pipelines_page, operation="pipelines-page", query=("metalake", "done")
    ),
    ConsoleRoute(
        method="GET",
        path="/pipeline",
        handler=pipeline_page,
        operation="pipeline-page",
        query=("metalake", "name", "done"),
    ),
)
