# SPDX-License-Identifier: Apache-2.0
"""Jobs that the server runs: the result of a job, and the tail of its output. Gravitino REST starts and lists jobs.

Has no business rules.
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
from limnos.services.runs.builtin_jobs import BUILTIN_JOBS, BuiltinJob, operation_of


async def job_show(request: Request, ctx: Context) -> Response:
    """Return a job or a maintenance operation; a job that has ended has its exit code and the tail of its output."""
    metalake, uuid = names_of(request)
    operation = operation_of(uuid)
    if operation is not None:
        builtin_job = await BUILTIN_JOBS.of(ctx.services).load(ctx, metalake, operation=operation)
        return json_response(_builtin_job(builtin_job))
    view, output = await jobs.job_output(ctx, metalake=metalake, uuid=uuid)
    job = view.job
    return json_response(
        {
            "id": job.uuid,
            "template": view.template,
            "state": view.state,
            "user": job.user,
            "message": job.message,
            "exit_code": job.exit_code,
            "queued_at": instant(job.queued_at),
            "started_at": instant(job.started_at),
            "ended_at": instant(job.ended_at),
            "stdout": output.stdout,
            "stderr": output.stderr,
            "stdout_bytes": output.stdout_bytes,
            "stderr_bytes": output.stderr_bytes,
        }
    )


def _builtin_job(job: BuiltinJob) -> dict[str, object]:
    """Encode a maintenance operation as a job without output, whose message is the operation's result."""
    row = job.row
    return {
        "id": job.id,
        "template": job.template,
        "state": job.status,
        "user": row.user,
        "message": row.result,
        "exit_code": None,
        "queued_at": instant(row.started_at),
        "started_at": instant(job.began_at),
        "ended_at": instant(row.ended_at),
        "stdout": "",
        "stderr": "",
        "stdout_bytes": 0,
        "stderr_bytes": 0,
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path="/api/limnos/v1/metalakes/{m}/jobs/{id}", handler=job_show, operation="show-job"),
)
