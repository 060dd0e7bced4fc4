# SPDX-License-Identifier: Apache-2.0
"""The page of a run: timeline, steps, findings and the changes to publish; and forms that publish, discard or cancel
the run.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest, LimnosError
from limnos.model.kinds import Kind
from limnos.model.runs import DISCARDED, ENDED, HELD, LIVE
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.frame import Frame, Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.pictures import GraphPicture
from limnos.rooms.console.http.rendering import count_text, duration_text, render, size_text
from limnos.rooms.console.http.responses import html_response, redirect
from limnos.rooms.console.http.table_metadata import MetadataPart, decode_metadata, schema_changes
from limnos.rooms.console.http.tabs import Chip
from limnos.rooms.pipelines.console.pipelines import (
    RunLine,
    finding_body,
    pipeline_url,
    run_line,
    run_url,
)
from limnos.rooms.pipelines.console.states import message_text, reads_of, result_chip, state_chip, steps_picture
from limnos.rooms.pipelines.console.table_links import link_of, table_links
from limnos.rooms.pipelines.services.declarations import pipeline_load
from limnos.rooms.pipelines.services.held_runs import RunOutput, branches_remove, held_run_publish, run_outputs
from limnos.rooms.pipelines.services.run_attempts import run_finish
from limnos.services.iceberg.restricted_tables import document_for_caller, table_visibility
from limnos.services.runs.run_access import RunView
from limnos.services.runs.runs import run_cancel, run_load

_ROW: Final = 44
_WIDTH_MIN: Final = 0.5
OUTPUTS_COMPARED: Final = 50


class TimeBar(msgspec.Struct, frozen=True, kw_only=True):
    """The bar of a step on the timeline: `x` and `width` in percent of the timeline's width, `y` in pixels."""

    name: str
    words: str
    look: str
    x: float
    y: int
    width: float


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the run: its state, output, inputs, size and duration, as text. The output and inputs are links if they
    are tables or views that the caller may see.
    """

    name: str
    state: Chip
    output: Link
    reads: tuple[Link, ...]
    rows: str
    size: str
    took: str
    message: str


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a run's earlier attempts: how it ended and why, as text."""

    number: int
    state: Chip
    started_ms: int
    took: str
    holder: str
    message: str


class FindingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a run's findings: the result of one expectation."""

    step: str
    rule: str
    result: Chip
    words: str
    message: str
    sample: str


class OutputLine(msgspec.Struct, frozen=True, kw_only=True):
    """The change that publishing would make to a table."""

    path: str
    href: str
    rows_before: str
    rows_after: str
    columns: tuple[str, ...]
    words: str


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a run's page. `bars` are the timeline, `outputs` the changes that publishing would make."""

    frame: Frame
    metalake: str
    run: RunLine
    attempt: int
    holder: str
    pipeline_href: str
    """The URL of the pipeline's page; empty if the caller may not load the pipeline."""
    own: str
    bars: tuple[TimeBar, ...]
    bars_height: int
    picture: GraphPicture
    attempts: tuple[AttemptRow, ...]
    """The attempts before the newest one, newest first."""
    steps: tuple[StepLine, ...]
    findings: tuple[FindingRow, ...]
    outputs: tuple[OutputLine, ...]
    parameters: str
    is_going: bool
    may_publish: bool
    may_discard: bool
    may_cancel: bool


async def run_page(page_request: PageRequest) -> Response:
    """Show a run. Requests of the page's script receive only the part that changes while the run is in progress."""
    uuid = page_request.request.query("id") or ""
    if not uuid:
        raise BadRequest("The URL has no run id")
    frame = await frame_of(page_request, f"Run {uuid[:8]}", section="pipelines")
    view = await run_load(page_request.ctx, metalake=frame.metalake, uuid=uuid)
    page = await _page(page_request, frame, view=view)
    return html_response(page_request.request, render("part_run.html" if page_request.is_part else "run.html", page))


async def _page(page_request: PageRequest, frame: Frame, *, view: RunView) -> RunPage:
    run, metalake = view.run, frame.metalake
    state = view.state
    outputs: tuple[OutputLine, ...] = ()
    if state == HELD:
        outputs = await _outputs(page_request, metalake, outputs=run_outputs(view.steps))
    names = [name for step in view.steps for name in (step.output, *reads_of(step))]
    hrefs = await table_links(page_request, metalake, names=names)
    is_ended = run.state in ENDED
    return RunPage(
        frame=frame,
        metalake=metalake,
        run=run_line(page_request, metalake, view=view),
        attempt=run.attempt,
        holder=run.holder,
        pipeline_href=await _pipeline_href(page_request, metalake, name=view.pipeline),
        own=run_url(page_request, metalake, run=run.uuid),
        bars=_bars(view),
        bars_height=max(1, len(view.steps)) * _ROW + 8,
        picture=steps_picture(view.steps),
        attempts=_attempt_rows(view),
        steps=_step_lines(view, hrefs),
        findings=_finding_rows(view),
        outputs=outputs,
        parameters="" if run.parameters in {"", "{}"} else run.parameters,
        is_going=run.state in LIVE,
        may_publish=bool(outputs),
        may_discard=state in {HELD, "failed", "cancelled"},
        may_cancel=not is_ended and state != HELD,
    )


async def _pipeline_href(page_request: PageRequest, metalake: str, *, name: str) -> str:
    try:
        await pipeline_load(page_request.ctx, metalake=metalake, name=name)
    except LimnosError:
        return ""
    return pipeline_url(page_request, metalake, name=name)


def _bars(view: RunView) -> tuple[TimeBar, ...]:
    """Return the timeline, to scale from the first start to the last end: a bar per step, empty before its start."""
    begins = [step.started_at for step in view.steps if step.started_at is not None]
    start = min([view.run.started_at, *begins])
    ends = [step.ended_at for step in view.steps if step.ended_at is not None]
    end = max([view.run.ended_at or view.now_ms if view.run.state in LIVE else start + 1, *ends, *begins])
    scale = 100 / max(1, end - start)
    bars = []
    for number, step in enumerate(view.steps):
        if step.started_at is None:
            bars.append(TimeBar(name=step.name, words=step.state, look="none", x=0, y=number * _ROW + 4, width=0))
            continue
        until = step.ended_at if step.ended_at is not None else end
        look = "going" if step.ended_at is None else {"done": "ok", "failed": "bad"}.get(step.state, "plain")
        words = f"{step.state}, {duration_text(until - step.started_at)}"
        width = max(_WIDTH_MIN, round((until - step.started_at) * scale, 2))
        x = min(round((step.started_at - start) * scale, 2), 100 - width)
        bars.append(TimeBar(name=step.name, words=words, look=look, x=x, y=number * _ROW + 4, width=width))
    return tuple(bars)


def _step_lines(view: RunView, hrefs: Mapping[str, str]) -> tuple[StepLine, ...]:
    return tuple(
        StepLine(
            name=step.name,
            state=state_chip(step.state),
            output=link_of(step.output, hrefs),
            reads=tuple([link_of(name, hrefs) for name in reads_of(step)]),
            rows="" if step.rows is None else count_text(step.rows),
            size=size_text(step.bytes),
            took=""
            if step.started_at is None or step.ended_at is None
            else duration_text(step.ended_at - step.started_at),
            message=step.message or "",
        )
        for step in view.steps
    )


def _attempt_rows(view: RunView) -> tuple[AttemptRow, ...]:
    return tuple(
        AttemptRow(
            number=each.attempt,
            state=state_chip(each.state),
            started_ms=each.started_at,
            took=duration_text(max(0, each.ended_at - each.started_at)),
            holder=each.holder,
            message=each.message or "",
        )
        for each in reversed(view.run.earlier_attempts)
    )


def _finding_rows(view: RunView) -> tuple[FindingRow, ...]:
    rows = []
    for each in view.findings:
        body = finding_body(each.body)
        message = message_text(each.rule, body.message)
        has_count = f"{body.checked:,} rows" in message
        words = "" if has_count else f"{count_text(body.broken)} of {count_text(body.checked)} violate it"
        rows.append(
            FindingRow(
                step=each.step,
                rule=each.rule,
                result=result_chip(is_held=body.held, action=body.action),
                words=words,
                message=message,
                sample=body.sample or "",
            )
        )
    return tuple(rows)


async def _outputs(page_request: PageRequest, metalake: str, *, outputs: list[RunOutput]) -> tuple[OutputLine, ...]:
    """Return the changes that publishing would make to the first `OUTPUTS_COMPARED` tables.

    If a table cannot be loaded, for example by this caller, its line has the message of the error.
    """
    lines = []
    for output in outputs[:OUTPUTS_COMPARED]:
        address = ObjectAddress(Kind.TABLE, metalake, output.table[0], output.table[1:])
        path = display.render(output.table)
        try:
            metadata = await _metadata(page_request, address)
        except LimnosError as error:
            lines.append(OutputLine(path=path, href="", rows_before="", rows_after="", columns=(), words=error.message))
            continue
        former_rows, new_rows = _rows_of(metadata, output.base), _rows_of(metadata, output.head)
        words = "a new table" if output.is_new else "no rows change" if output.base == output.head else ""
        columns = _column_changes(metadata, output)
        lines.append(
            OutputLine(
                path=path,
                href=page_request.base + address.path,
                rows_before=former_rows,
                rows_after=new_rows,
                columns=columns,
                words=words,
            )
        )
    return tuple(lines)


async def _metadata(page_request: PageRequest, address: ObjectAddress) -> MetadataPart:
    visible = await page_request.ctx.read(address.scope, lambda view: table_visibility(view, address.levels))
    document = await document_for_caller(page_request.ctx, visible)
    return decode_metadata(document.body)


def _rows_of(metadata: MetadataPart, snapshot_id: int | None) -> str:
    snapshot = next((each for each in metadata.snapshots if each.snapshot_id == snapshot_id), None)
    rows = "" if snapshot is None else snapshot.summary.get("total-records", "")
    return count_text(int(rows)) if rows.isdigit() else "0" if snapshot_id is None else "?"


def _column_changes(metadata: MetadataPart, output: RunOutput) -> tuple[str, ...]:
    """Describe the columns that the run drops, and those that differ between the schemas of the two snapshots."""
    schemas = {each.schema_id: each for each in metadata.schemas}
    ids = {each.snapshot_id: -1 if each.schema_id is None else each.schema_id for each in metadata.snapshots}
    former_schema, new_schema = (schemas.get(ids.get(each or -1, -1)) for each in (output.base, output.head))
    changes = [f"drops {name}" for name in output.columns_to_drop]
    if output.base is None or former_schema is None or new_schema is None:
        return tuple(changes)
    return (*changes, *schema_changes(former_schema, new_schema))


async def publish(page_request: PageRequest) -> Response:
    """Publish a held run, and redirect to its page."""
    metalake, uuid = await _run_of(page_request)
    view = await run_load(page_request.ctx, metalake=metalake, uuid=uuid)
    await held_run_publish(page_request.ctx, metalake=metalake, run=view.run, steps=view.steps)
    return _back(page_request, metalake, run=uuid, done="Published: its tables show the new rows from now on")


async def discard(page_request: PageRequest) -> Response:
    """Discard an unpublished run, remove its branches, and redirect to its page."""
    metalake, uuid = await _run_of(page_request)
    ctx = page_request.ctx
    view = await run_load(ctx, metalake=metalake, uuid=uuid)
    run = view.run
    await run_finish(ctx, metalake=metalake, uuid=uuid, attempt=run.attempt, state=DISCARDED, message=run.message)
    left = await branches_remove(ctx, metalake=metalake, run=run, steps=view.steps)
    notice = "Discarded"
    if left:
        notice += f"; limnos delete run {uuid} removes what is left of {len(left)} tables"
    return _back(page_request, metalake, run=uuid, done=notice)


async def cancel(page_request: PageRequest) -> Response:
    """Request that a run's process stops, and redirect to the run's page."""
    metalake, uuid = await _run_of(page_request)
    view = await run_cancel(page_request.ctx, metalake=metalake, uuid=uuid)
    return _back(page_request, metalake, run=uuid, done=f"The run is {view.state}")


async def _run_of(page_request: PageRequest) -> tuple[str, str]:
    fields = await page_request.form()
    metalake, uuid = fields.get("metalake", ""), fields.get("id", "")
    if not metalake or not uuid:
        raise BadRequest("The form has no run id")
    return metalake, uuid


def _back(page_request: PageRequest, metalake: str, *, run: str, done: str) -> Response:
    return redirect(f"{run_url(page_request, metalake, run=run)}&{urlencode({'done': done})}")


ROUTES = (
    ConsoleRoute(method="GET", path="/run", handler=run_page, operation="run-page", query=("metalake", "id", "done")),
    ConsoleRoute(method="POST", path="/run/publish", handler=publish, operation="publish-held-run"),
    ConsoleRoute(method="POST", path="/run/discard", handler=discard, operation="discard-run"),
    ConsoleRoute(method="POST", path="/run/cancel", handler=cancel, operation="cancel-run"),
)
