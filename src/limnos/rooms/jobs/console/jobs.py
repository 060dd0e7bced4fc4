# SPDX-License-Identifier: Apache-2.0
"""Jobs from job templates: a list of jobs and pipeline runs, and the page of a job with the tail of its output and a
button that cancels it.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest, NotFound
from limnos.model.jobs import ENDED
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    CodeBlock,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    sheet_response,
)
from limnos.rooms.console.http.tabs import Chip, ChipLook, Fact
from limnos.services.runs.jobs import JobView, job_cancel, job_output, jobs_list
from limnos.services.runs.run_access import RunView

SHOWN: Final = 100
_OUTPUT_CHARS_MAX: Final = 100_000
_LOOKS: Final[Mapping[str, tuple[ChipLook, str]]] = {
    "succeeded": ("ok", "check"),
    "published": ("ok", "check"),
    "failed": ("bad", "cross"),
    "lost": ("bad", "cross"),
    "cancelled": ("warn", "alert"),
    "held": ("warn", "alert"),
    "started": ("info", "ring"),
    "running": ("info", "ring"),
}


def _state(text: str) -> Chip:
    return Chip(text, *_LOOKS.get(text, ("plain", "")))


async def jobs_page(page_request: PageRequest) -> Response:
    """Show the newest visible jobs and pipeline runs."""
    frame = await frame_of(page_request, "Jobs", section="jobs")
    entries = await jobs_list(page_request.ctx, metalake=frame.metalake, template=None)
    columns = (
        SheetColumn(text="Template or pipeline"),
        SheetColumn(text="State"),
        SheetColumn(text="By", hides=True),
        SheetColumn(text="Began"),
        SheetColumn(text="Id", hides=True, is_code=True),
    )
    rows = tuple(_row(page_request, frame.metalake, entry=each) for each in entries[:SHOWN])
    page = SheetPage(
        frame=frame,
        title="Jobs",
        intro="Programs that the server ran from templates, and runs of pipelines, the newest first.",
        sheets=(
            Sheet(
                title="",
                columns=columns,
                rows=rows,
                note="There is no job that you may see. Programs start one with limnos job run.",
                more=f"The newest {SHOWN} of {len(entries)} are shown." if len(entries) > SHOWN else "",
            ),
        ),
    )
    return sheet_response(page_request, page)


def _row(page_request: PageRequest, metalake: str, *, entry: RunView | JobView) -> tuple[SheetCell, ...]:
    if isinstance(entry, RunView):
        name, uuid, user, at_ms, page = entry.pipeline, entry.run.uuid, entry.run.user, entry.run.started_at, "run"
    else:
        name, uuid, user, at_ms, page = entry.template, entry.job.uuid, entry.job.user, entry.job.queued_at, "job"
    href = f"{page_request.base}/{page}?{urlencode({'metalake': metalake, 'id': uuid})}"
    return (
        SheetCell(text=name, href=href, is_name=True),
        SheetCell(chips=(_state(entry.state),)),
        SheetCell(text=user),
        SheetCell(at_ms=at_ms),
        SheetCell(text=uuid),
    )


async def job_page(page_request: PageRequest) -> Response:
    """Show a job with the tail of its output."""
    uuid = page_request.request.query("id") or ""
    if not uuid:
        raise BadRequest("The URL has no job id")
    frame = await frame_of(page_request, f"Job {uuid[:8]}", section="jobs")
    view, output = await job_output(page_request.ctx, metalake=frame.metalake, uuid=uuid)
    job = view.job
    facts = [Fact(label="By", text=job.user), Fact(label="Asked for", text="", at_ms=job.queued_at)]
    facts += [
        Fact(label=label, text="", at_ms=at)
        for label, at in (("Started", job.started_at), ("Ended", job.ended_at))
        if at is not None
    ]
    if job.exit_code is not None:
        facts.append(Fact(label="Exit code", text=str(job.exit_code)))
    blocks = tuple(
        CodeBlock(title, text[-_OUTPUT_CHARS_MAX:], name)
        for title, text, name in (("Output", output.stdout, "stdout"), ("Errors", output.stderr, "stderr"))
        if text
    )
    cancel = FormView(
        action=f"{page_request.base}/job/cancel",
        button="Cancel the job",
        fields=hidden_fields(metalake=frame.metalake, id=uuid),
        is_danger=True,
    )
    page = SheetPage(
        frame=frame,
        title=view.template,
        icon="run",
        intro="",
        crumbs=(Link("Jobs", f"{page_request.base}/jobs?{urlencode({'metalake': frame.metalake})}"),),
        chips=(_state(view.state),),
        facts=tuple(facts),
        warning=job.message or "",
        blocks=blocks,
        forms=() if view.state in ENDED else (cancel,),
    )
    return sheet_response(page_request, page)


async def cancel(page_request: PageRequest) -> Response:
    """Cancel a job, and redirect to its page."""
    fields = await page_request.form()
    metalake, uuid = fields.get("metalake", ""), fields.get("id", "")
    if not metalake or not uuid:
        raise BadRequest("The form has no job id")
    view = await job_cancel(page_request.ctx, metalake=metalake, uuid=uuid)
    if view is None:
        raise NotFound(f"Job {uuid[:50]} does not exist", kind="job")
    fields = {"metalake": metalake, "id": uuid, "done": f"The job is {view.state}"}
    return redirect(f"{page_request.base}/job?{urlencode(fields)}")


ROUTES = (
    ConsoleRoute(method="GET", path="/jobs", handler=jobs_page, operation="jobs-page", query=("metalake",)),
    ConsoleRoute(method="GET", path="/job", handler=job_page, operation="job-page", query=("metalake", "id", "done")),
    ConsoleRoute(method="POST", path="/job/cancel", handler=cancel, operation="cancel-job-from-console"),
)
