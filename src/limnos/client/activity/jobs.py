# SPDX-License-Identifier: Apache-2.0
"""Calls on job templates and their jobs (Gravitino REST; a job's output over the admin API)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import AuditInfo, Json


class JobTemplate(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A job template: a program on the server's machine (`shell`), or a Spark application (`spark`)."""

    name: str
    job_type: str
    executable: str
    comment: str | None = None
    arguments: tuple[str, ...] = ()
    environments: dict[str, str] = {}
    custom_fields: dict[str, str] = {}
    scripts: tuple[str, ...] = ()
    class_name: str | None = None
    jars: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    configs: dict[str, str] = {}
    audit: AuditInfo = AuditInfo()


class JobInfo(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An execution of a job template, or a run of a pipeline.

    `status` is queued, started, cancelling, succeeded, failed or cancelled. Times are ISO 8601 strings in UTC.
    """

    job_id: str
    job_template_name: str
    status: str
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    audit: AuditInfo = AuditInfo()


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job, with the last part of its output once it has ended.

    `stdout_bytes` is the output's total size.
    """

    id: str
    template: str
    state: str
    user: str
    message: str | None = None
    exit_code: int | None = None
    queued_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0


class JobTemplates(Resource[S]):
    """Calls on the job templates of the client's metalake, including pipelines."""

    @verb
    def list(self) -> Flow[tuple[JobTemplate, ...]]:
        """List the templates that the caller may use."""
        url = self.gravitino_url("jobs", "templates") + "?details=true"
        return call("GET", url, answer=tuple[JobTemplate, ...], field="jobTemplates")

    @verb
    def get(self, name: str) -> Flow[JobTemplate]:
        """Load a job template by its name, with its executable, arguments and environment."""
        return call("GET", self.gravitino_url("jobs", "templates", name), answer=JobTemplate, field="jobTemplate")

    @verb
    def register(self, name: str, *, job_type: str, executable: str, fields: Json | None = None) -> Flow[None]:
        """Create a template, owned by the caller.

        `fields` are further fields of `JobTemplate`, such as arguments and environments, with Gravitino's names.
        """
        template = {**(fields or {}), "name": name, "jobType": job_type, "executable": executable}
        yield request("POST", self.gravitino_url("jobs", "templates"), body={"jobTemplate": template})

    @verb
    def alter(self, name: str, *, job_type: str, fields: Json) -> Flow[JobTemplate]:
        """Change a template by fields such as `newExecutable` and `newArguments`. Other fields are not changed."""
        update = {"@type": "updateTemplate", "newTemplate": {"@type": job_type, **fields}}
        url = self.gravitino_url("jobs", "templates", name)
        return call("PUT", url, answer=JobTemplate, field="jobTemplate", body={"updates": [update]})

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a template with the records of its jobs. Returns whether it existed."""
        return call("DELETE", self.gravitino_url("jobs", "templates", name), answer=bool, field="dropped")


class Jobs(Resource[S]):
    """Calls on the jobs of the client's metalake, including runs of pipelines."""

    @verb
    def list(self, template: str | None = None) -> Flow[tuple[JobInfo, ...]]:
        """List the newest jobs that are visible to the caller, of all templates or of one."""
        url = self.gravitino_url("jobs", "runs")
        return call("GET", url, answer=tuple[JobInfo, ...], field="jobs", query={"jobTemplateName": template})

    @verb
    def get(self, job: str) -> Flow[JobInfo]:
        """Load a job by its id, with its state and times."""
        return call("GET", self.gravitino_url("jobs", "runs", job), answer=JobInfo, field="job")

    @verb
    def run(self, template: str, *, conf: Mapping[str, str] | None = None) -> Flow[JobInfo]:
        """Start a job of a template, with values for its placeholders."""
        body = {"jobTemplateName": template, "jobConf": dict(conf or {})}
        return call("POST", self.gravitino_url("jobs", "runs"), answer=JobInfo, field="job", body=body)

    @verb
    def cancel(self, job: str) -> Flow[JobInfo]:
        """Request the cancellation of a job. A job that has ended is not changed."""
        url = self.gravitino_url("jobs", "runs", job)
        return call("POST", url, answer=JobInfo, field="job", repeatable=True)

    @verb
    def result(self, job: str) -> Flow[JobResult]:
        """Return the result and output of a job that the server ran itself."""
        return call("GET", self.own_url("jobs", job), answer=JobResult)
