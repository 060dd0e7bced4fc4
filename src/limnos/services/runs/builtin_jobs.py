# SPDX-License-Identifier: Apache-2.0
"""Built-in job templates: a component of the node has them and executes their jobs, which are operations on tables.

Must not know the operations. A node without the component has no built-in template; their names stay reserved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from limnos.model.errors import BadRequest, NotFound
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.store.activity.maintenance import OperationRow

PREFIX: Final = "builtin-"
"""The prefix of the names of built-in templates. Other templates cannot have a name with this prefix."""
_JOB_ID: Final = re.compile(r"maintenance-(\d{1,18})", re.ASCII)
_STATUSES: Final = {
    "waiting": "queued",
    "running": "started",
    "done": "succeeded",
    "failed": "failed",
    "lost": "failed",
    "cancelled": "cancelled",
}


class BuiltinTemplate(NamedTuple):
    """A built-in template: its name, its comment, the kind of operation, and the fields of a job's configuration in
    addition to the table's name.
    """

    name: str
    comment: str
    kind: str
    fields: tuple[str, ...] = ()


class BuiltinJob(NamedTuple):
    """A job of a built-in template: an operation on a table."""

    id: str
    template: str
    row: OperationRow

    @property
    def status(self) -> str:
        """The state of the operation in the words of jobs: queued, started, succeeded, failed or cancelled."""
        return _STATUSES[self.row.state]

    @property
    def began_at(self) -> int | None:
        """The time at which the work began, in milliseconds since 1970; None for a job that waits for an executor, or
        that was cancelled before one leased it.
        """
        row = self.row
        if row.state == "waiting":
            return None
        if row.leased_at is not None:
            return row.leased_at
        return None if row.state == "cancelled" else row.started_at


def is_builtin(name: str) -> bool:
    """Return whether a template's name is the name of a built-in template."""
    return name.startswith(PREFIX)


def refuse_builtin(name: str) -> None:
    """Refuse a change of a built-in template, or the use of its name. Raises BadRequest for the name of a built-in
    template.
    """
    if is_builtin(name):
        raise BadRequest(f"Names with {PREFIX} are those of built-in job templates, which cannot be changed")


def operation_of(job_id: str) -> int | None:
    """Parse the id of a built-in job into the id of its operation; None for the id of another job."""
    match = _JOB_ID.fullmatch(job_id)
    return None if match is None else int(match[1])


def job_id(operation: int) -> str:
    """Return the id of an operation's job."""
    return f"maintenance-{operation}"


class BuiltinJobs(Protocol):
    """The built-in templates of a node, and their jobs."""

    @property
    def templates(self) -> tuple[BuiltinTemplate, ...]:
        """All templates."""

    def template(self, name: str) -> BuiltinTemplate:
        """Return a template. Raises NotFound."""

    async def run(self, ctx: Context, metalake: str, *, name: str, conf: Mapping[str, str]) -> BuiltinJob:
        """Start a job of a template with the values of its configuration.

        Raises:
            NotFound: The template or the table is missing.
            PermissionDenied: The caller may not maintain the table.
            UnsupportedOperation: The server does not execute such operations, or the catalog is federated.
            BadRequest: The configuration is invalid.
            RunConflict: The table has an open operation of this kind with other options.
        """

    async def load(self, ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
        """Return the job of an operation. Raises NotFound, also for a job that the caller may not see, and
        PermissionDenied if the caller may not use the metalake.
        """

    async def newest(self, ctx: Context, metalake: str, *, name: str | None) -> list[BuiltinJob]:
        """Return the newest jobs that the caller may see, optionally of one template. Raises NotFound for an unknown
        template or metalake, PermissionDenied if the caller may not use the metalake.
        """

    async def cancel(self, ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
        """Cancel a job. An ended job stays unchanged. Raises NotFound, PermissionDenied, and UnsupportedOperation for a
        job that cannot be cancelled.
        """


class NoBuiltinJobs:
    """The null implementation, for a node without maintenance: there is no built-in template and no job of one."""

    templates: tuple[BuiltinTemplate, ...] = ()

    def template(self, name: str) -> BuiltinTemplate:
        """Refuse the template. Raises NotFound."""
        raise _no_template(name)

    async def run(self, ctx: Context, metalake: str, *, name: str, conf: Mapping[str, str]) -> BuiltinJob:
        """Refuse the job. Raises NotFound, PermissionDenied if the caller may not use the metalake."""
        del conf
        await _require_metalake(ctx, metalake)
        raise _no_template(name)

    async def load(self, ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
        """Refuse the job. Raises NotFound, PermissionDenied if the caller may not use the metalake."""
        await _require_metalake(ctx, metalake)
        raise _no_job(operation)

    async def newest(self, ctx: Context, metalake: str, *, name: str | None) -> list[BuiltinJob]:
        """Return no job. Raises NotFound for the name of a template, PermissionDenied if the caller may not use the
        metalake.
        """
        await _require_metalake(ctx, metalake)
        if name is not None:
            raise _no_template(name)
        return []

    async def cancel(self, ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
        """Refuse the job. Raises NotFound, PermissionDenied if the caller may not use the metalake."""
        await _require_metalake(ctx, metalake)
        raise _no_job(operation)


async def _require_metalake(ctx: Context, metalake: str) -> None:
    await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake)


def _no_template(name: str) -> NotFound:
    text = f"Job template {name[:200]} does not exist: this server does not serve maintenance of tables, which has it"
    return NotFound(text, kind="job template")


def _no_job(operation: int) -> NotFound:
    text = f"Job {job_id(operation)} does not exist: this server does not serve maintenance of tables, which has it"
    return NotFound(text, kind="job")


BUILTIN_JOBS: ComponentKey[BuiltinJobs] = ComponentKey("built-in jobs", lambda _: NoBuiltinJobs())
