"""Jobs that the server runs: the result of a job, and the last part of its output. Gravitino REST starts and lists
jobs.

May import `services` and this package. Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.services.request.context import Context
from limnos.services.runs import jobs


async def job_show(request: Request, ctx: Context) -> Response:
    """Return a job, with its exit code and the last part of its output once it has ended."""
    metalake, uuid = names_of(request)
    view, output = await jobs.job_output(ctx, metalake=metalake, uuid=uuid)
    job = view.job
    return json_response(
        {
            "id": job.uuid, "template": view.template, "state": view.state, "user": job.user, "message": job.message,
            "exit_code": job.exit_code, "queued_at": instant(job.queued_at), "started_at": instant(job.started_at),
            "ended_at": instant(job.ended_at), "stdout": output.stdout, "stderr": output.stderr,
            "stdout_bytes": output.stdout_bytes, "stderr_bytes": output.stderr_bytes,
        }
    )  # fmt: skip


ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", "/api/limnos/v1/metalakes/{m}/jobs/{id}", job_show, "show-job"),
)  # fmt: skip
