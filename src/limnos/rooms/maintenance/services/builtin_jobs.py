# SPDX-License-Identifier: Apache-2.0
"""Built-in job templates of Gravitino for Iceberg tables: their jobs are operations of maintenance.

Must not know any wire format. A job needs the right to maintain its table, and no other right. Users who may maintain
the table see its jobs, including those of other users, and may cancel jobs that rewrite files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from limnos.formats.gravitino.policies import REWRITE_OPTIONS, check_options, unknown_options
from limnos.model.errors import BadRequest, NotFound
from limnos.names import display
from limnos.rooms.maintenance.formats.assessment import COMPACT, MANIFESTS
from limnos.rooms.maintenance.services.operations import EXPIRE, expiry_request
from limnos.rooms.maintenance.services.orphans.requests import orphans_request
from limnos.rooms.maintenance.services.orphans.rounds import ORPHANS
from limnos.rooms.maintenance.services.reports import visible_paths
from limnos.rooms.maintenance.services.rewriting.cancellation import rewrite_cancel
from limnos.rooms.maintenance.services.rewriting.kinds import STATISTICS
from limnos.rooms.maintenance.services.rewriting.planning import rewrite_request
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.runs.builtin_jobs import PREFIX, BuiltinJob, BuiltinTemplate, job_id
from limnos.store.activity.maintenance import OperationRow, ancestors_read, metalake_operations_read, operation_read
from limnos.store.ancestry import path_of

JOBS_MAX: Final = 1_000
_PASSED_OVER: Final = re.compile(r"spark_\w+|catalog_type|catalog_uri|warehouse_location|strategy")
"""Fields of jobConf for Gravitino's own Spark applications, which are ignored: an executor has its own settings."""


TEMPLATES: Final = (
    BuiltinTemplate(f"{PREFIX}iceberg-expire-snapshots", "Expires the snapshots that are not retained", EXPIRE),
    BuiltinTemplate(f"{PREFIX}iceberg-remove-orphan-files", "Removes old files that no metadata refers to", ORPHANS),
    BuiltinTemplate(f"{PREFIX}iceberg-rewrite-data-files", "Rewrites small data files", COMPACT, ("options",)),
    BuiltinTemplate(f"{PREFIX}iceberg-rewrite-manifests", "Rewrites manifests", MANIFESTS),
    BuiltinTemplate(f"{PREFIX}iceberg-update-stats", "Computes statistics of all columns", STATISTICS),
)
_BY_NAME: Final = {each.name: each for each in TEMPLATES}
_BY_KIND: Final = {each.kind: each for each in TEMPLATES}


def template_of(name: str) -> BuiltinTemplate:
    """Return a built-in template. Raises NotFound."""
    template = _BY_NAME.get(name)
    if template is None:
        names = ", ".join(_BY_NAME)
        raise NotFound(f"Job template {name[:200]} does not exist: the built-in ones are {names}", kind="job template")
    return template


async def builtin_run(ctx: Context, metalake: str, *, name: str, conf: Mapping[str, str]) -> BuiltinJob:
    """Request the operation of a built-in template on the table that `conf` names.

    Raises:
        NotFound: The template or the table is missing.
        PermissionDenied: The caller may not maintain the table.
        UnsupportedOperation: The server does not execute such operations, or the catalog is federated.
        BadRequest: The configuration is invalid.
        RunConflict: The table has an open operation of this kind with other options.
    """
    return await builtin_load(ctx, metalake, operation=await builtin_start(ctx, metalake, name=name, conf=conf))


async def builtin_start(ctx: Context, metalake: str, *, name: str, conf: Mapping[str, str]) -> int:
    """Request the operation of a built-in template. Returns its id. Raises as `builtin_run`."""
    await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake)
    template = template_of(name)
    fields = {key: value for key, value in conf.items() if value and not _PASSED_OVER.fullmatch(key)}
    catalog, table = fields.pop("catalog_name", ""), fields.pop("table_identifier", "")
    path = tuple(display.parse(table or "-"))
    if not catalog or len(path) < 2:
        raise BadRequest(
            "jobConf must name the table: catalog_name is its catalog, table_identifier its path, as raw.trips"
        )
    options = _options(fields.pop("options", "")) if "options" in template.fields else {}
    if fields:
        argument_names = ", ".join(("catalog_name", "table_identifier", *template.fields))
        raise BadRequest(
            f"{min(fields)[:100]} is not a field of jobConf of this template: use {argument_names}, or a policy"
        )
    scope = RequestScope(metalake, catalog)
    if template.kind == EXPIRE:
        return await expiry_request(ctx, scope, path=path)
    if template.kind == ORPHANS:
        return await orphans_request(ctx, scope, path=path)
    return await rewrite_request(ctx, scope, path=path, kind=template.kind, options=options)


def _options(text: str) -> dict[str, str]:
    try:
        options = msgspec.json.decode(text or "{}", type=dict[str, str])
    except msgspec.DecodeError as error:
        raise BadRequest(f"Field options of jobConf must be a JSON object of strings: {error}") from None
    check_options(options, field="options of jobConf")
    unknown = unknown_options(options)
    if unknown:
        names = ", ".join(sorted(REWRITE_OPTIONS))
        raise BadRequest(f"Field options of jobConf has {unknown[0]!a}, which Iceberg does not have: use {names}")
    return options


async def builtin_load(ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
    """Return a job of a built-in template.

    Raises NotFound, also if the caller may not maintain its table, and PermissionDenied if the caller may not use the
    metalake.
    """
    row = await ctx.look_up(lambda: operation_read(operation))
    jobs = [] if row is None else await _visible(ctx, metalake, rows=[row])
    if not jobs:
        await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake)
        raise NotFound(f"Job maintenance-{operation} does not exist", kind="job")
    return jobs[0]


async def builtin_list(ctx: Context, metalake: str, *, name: str | None) -> list[BuiltinJob]:
    """Return the newest jobs on tables that the caller may maintain, optionally of one template.

    Raises NotFound for an unknown template or metalake, PermissionDenied if the caller may not use the metalake.
    """
    kinds = tuple(_BY_KIND) if name is None else (template_of(name).kind,)
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    rows = await ctx.look_up(lambda: metalake_operations_read(metalake_id, kinds=kinds, limit=JOBS_MAX))
    return await _visible(ctx, metalake, rows=rows)


async def _visible(ctx: Context, metalake: str, *, rows: Sequence[OperationRow]) -> list[BuiltinJob]:
    """Return the jobs of the operations that belong to the metalake and whose table the caller may maintain."""
    rows = [row for row in rows if row.kind in _BY_KIND]
    ancestry = await ctx.look_up(lambda: ancestors_read([row.node_id for row in rows])) if rows else {}
    metalakes = {name for _, kind, name in ancestry.values() if kind.word == "metalake"}
    if metalakes - {metalake}:
        return []
    of_catalog: dict[str, list[int]] = {}
    for row in rows:
        path = path_of(row.node_id, ancestry)
        if path is not None:
            of_catalog.setdefault(path[0], []).append(row.node_id)
    seen_ids: set[int] = set()
    for catalog, ids in of_catalog.items():
        try:
            seen_ids.update(await visible_paths(ctx, RequestScope(metalake, catalog), node_ids=ids))
        except NotFound:
            continue  # the catalog was dropped, or is hidden from the caller
    return [BuiltinJob(job_id(row.id), _BY_KIND[row.kind].name, row) for row in rows if row.node_id in seen_ids]


async def builtin_cancel(ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
    """Cancel a job that rewrites files; its executor stops when it next renews its lease. An ended job stays unchanged.

    Raises NotFound, PermissionDenied, UnsupportedOperation for a job that does not rewrite files.
    """
    job = await builtin_load(ctx, metalake, operation=operation)
    if job.row.ended_at is not None:
        return job
    ancestry = await ctx.look_up(lambda: ancestors_read([job.row.node_id]))
    path = path_of(job.row.node_id, ancestry)
    if path is None:
        raise NotFound(f"Job {job.id} does not exist: its table was dropped", kind="job")

    await rewrite_cancel(ctx, RequestScope(metalake, path[0]), path=path[1:], operation=operation)
    return await builtin_load(ctx, metalake, operation=operation)


class MaintenanceJobs:
    """The built-in templates and their jobs, for the routes of jobs."""

    templates = TEMPLATES

    def template(self, name: str) -> BuiltinTemplate:
        """Return a template. Raises NotFound."""
        return template_of(name)

    async def run(self, ctx: Context, metalake: str, *, name: str, conf: Mapping[str, str]) -> BuiltinJob:
        """Start a job. Raises as `builtin_run`."""
        return await builtin_run(ctx, metalake, name=name, conf=conf)

    async def load(self, ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
        """Return a job. Raises as `builtin_load`."""
        return await builtin_load(ctx, metalake, operation=operation)

    async def newest(self, ctx: Context, metalake: str, *, name: str | None) -> list[BuiltinJob]:
        """Return the newest jobs. Raises as `builtin_list`."""
        return await builtin_list(ctx, metalake, name=name)

    async def cancel(self, ctx: Context, metalake: str, *, operation: int) -> BuiltinJob:
        """Cancel a job. Raises as `builtin_cancel`."""
        return await builtin_cancel(ctx, metalake, operation=operation)
