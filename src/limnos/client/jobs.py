"""Calls on job templates and the jobs that a server runs of them (Gravitino REST; what a job wrote over the own API).

May import this room.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.metalakes import DropAnswer
from limnos.client.paths import metalake_url, own_url
from limnos.client.values import Audit, Json


class JobTemplate(msgspec.Struct, frozen=True, rename="camel"):
    """What is run: a program of the server's machine (`shell`), or a Spark application (`spark`)."""

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
    audit: Audit = Audit()


class Job(msgspec.Struct, frozen=True, rename="camel"):
    """A job; `status` is queued, started, cancelling, succeeded, failed or cancelled. Times are ISO-8601 texts, UTC."""

    job_id: str
    job_template_name: str
    status: str
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    audit: Audit = Audit()


class JobResult(msgspec.Struct, frozen=True):
    """What became of a job, and the ends of what it wrote, which are there when it has ended; `stdout_bytes` is how much it was in all."""

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


class _Template(msgspec.Struct, rename="camel"):
    job_template: JobTemplate


class _Templates(msgspec.Struct, rename="camel"):
    job_templates: tuple[JobTemplate, ...]


class _Job(msgspec.Struct):
    job: Job


class _Jobs(msgspec.Struct):
    jobs: tuple[Job, ...]


class JobTemplates(Resource[S]):
    """The job templates of the client's metalake; pipelines show among them."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[JobTemplate, ...]]:
        """List the templates that the caller may use."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "jobs", "templates") + "?details=true")
        return decode(reply, _Templates).job_templates

    @verb
    def get(self, name: str) -> Flow[JobTemplate]:
        """Load a template."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "jobs", "templates", name))
        return decode(reply, _Template).job_template

    @verb
    def register(self, name: str, *, job_type: str, executable: str, fields: Json | None = None) -> Flow[None]:
        """Make a template, which the caller then owns; `fields` are the others of `JobTemplate`, in Gravitino's words."""
        template = {**(fields or {}), "name": name, "jobType": job_type, "executable": executable}
        yield request("POST", metalake_url(self.scope.metalake, "jobs", "templates"), body={"jobTemplate": template})

    @verb
    def alter(self, name: str, *, job_type: str, fields: Json) -> Flow[JobTemplate]:
        """Change what a template runs: `newExecutable`, `newArguments` and so on; what is not named stays."""
        update = {"@type": "updateTemplate", "newTemplate": {"@type": job_type, **fields}}
        url = metalake_url(self.scope.metalake, "jobs", "templates", name)
        reply = yield request("PUT", url, body={"updates": [update]})
        return decode(reply, _Template).job_template

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a template with its jobs, and tell whether it was there."""
        reply = yield request("DELETE", metalake_url(self.scope.metalake, "jobs", "templates", name))
        return decode(reply, DropAnswer).dropped


class Jobs(Resource[S]):
    """The jobs of the client's metalake; runs of pipelines show among them."""

    __slots__ = ()

    @verb
    def list(self, template: str | None = None) -> Flow[tuple[Job, ...]]:
        """List the newest jobs that the caller sees, of a template if it is named."""
        url = metalake_url(self.scope.metalake, "jobs", "runs")
        reply = yield request("GET", url, query={"jobTemplateName": template})
        return decode(reply, _Jobs).jobs

    @verb
    def get(self, job: str) -> Flow[Job]:
        """Load a job."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "jobs", "runs", job))
        return decode(reply, _Job).job

    @verb
    def run(self, template: str, *, conf: Mapping[str, str] | None = None) -> Flow[Job]:
        """Ask for a job of a template, with values for the places that it leaves open."""
        body = {"jobTemplateName": template, "jobConf": dict(conf or {})}
        reply = yield request("POST", metalake_url(self.scope.metalake, "jobs", "runs"), body=body)
        return decode(reply, _Job).job

    @verb
    def cancel(self, job: str) -> Flow[Job]:
        """Ask a job to stop; one that has ended stays as it is."""
        url = metalake_url(self.scope.metalake, "jobs", "runs", job)
        reply = yield request("POST", url, repeatable=True)
        return decode(reply, _Job).job

    @verb
    def result(self, job: str) -> Flow[JobResult]:
        """Tell what became of a job that the server ran by itself, and what it wrote."""
        reply = yield request("GET", own_url(self.scope.metalake, "jobs", job))
        return decode(reply, JobResult)
