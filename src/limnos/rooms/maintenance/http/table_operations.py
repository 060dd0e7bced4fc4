# SPDX-License-Identifier: Apache-2.0
"""Gravitino's routes of table maintenance: they start maintenance jobs of a policy and jobs that compute statistics,
append statistics as JSON Lines, and read and compare metrics.

Has no business rules. Gravitino has not released these routes. Their paths do not contain the metalake: the query
parameter `metalake` names it, by default the setting `server.metalake`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, wrap_body_handler, wrap_handler
from limnos.rooms.maintenance.services import table_operations as operations
from limnos.rooms.maintenance.services.table_operations import MetricPoint, Recommendation, tables_require
from limnos.services.governance.statistics import tables_statistics_update
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request.context import Context

_RESERVED: Final = frozenset({"stats-type", "identifier", "partition-path", "timestamp"})
_STATISTICS_TYPES: Final = ("table", "partition")
LINES_MAX: Final = 1_000
"""The maximum number of lines of statistics in one request."""
_RANGE_S: Final = 86_400


class StrategyJobs(GravitinoRequestBody, frozen=True):
    """A request to start the maintenance jobs of the policy `strategy_name` on the tables that need them."""

    identifiers: list[str]
    strategy_name: str
    dry_run: bool = False
    limit: int | None = None


class UpdateStatsJobs(GravitinoRequestBody, frozen=True, kw_only=True):
    """A request to compute statistics of tables. The options of the updater and of Spark are ignored: they are for
    Gravitino's own jobs.
    """

    identifiers: list[str]
    dry_run: bool = False
    update_mode: str = "all"
    updater_options: dict[str, str] | None = None
    spark_conf: dict[str, str] | None = None


class StatisticsPayload(GravitinoRequestBody, frozen=True):
    """Statistics or metrics as JSON Lines. With `identifiers`, lines about other tables are ignored."""

    calculator_name: str
    statistics_payload: str
    identifiers: list[str] | None = None


class MonitorMetrics(GravitinoRequestBody, frozen=True):
    """A request to compare metrics of tables in the `range_seconds` before and after `action_time` (seconds since
    1970).
    """

    identifiers: list[str]
    action_time: int
    range_seconds: int = _RANGE_S
    partition_path: str | None = None


class StatisticsLine(msgspec.Struct, frozen=True, rename="kebab"):
    """The reserved fields of a line in `statisticsPayload`. All other fields of the line are statistics."""

    identifier: str
    stats_type: str = "table"
    partition_path: dict[str, str] | None = None


def _metalake(request: Request, ctx: Context) -> str:
    return request.query("metalake") or ctx.services.defaults.metalake


def _identifiers(request: Request) -> list[str]:
    return [text.strip() for text in (request.query("identifiers") or "").split(",") if text.strip()]


async def strategy_jobs(request: Request, ctx: Context, *, body: StrategyJobs) -> Response:
    """Start the jobs of a policy on the tables that need them, at most `limit`; `dryRun` only returns them.

    `withoutJobs` has the reason for each table that needs none.
    """
    planned = await operations.strategy_jobs(
        ctx,
        _metalake(request, ctx),
        identifiers=body.identifiers,
        policy=body.strategy_name,
        limit=body.limit,
        is_dry_run=body.dry_run,
    )
    results = [{"strategyName": body.strategy_name, **_job(each)} for each in planned.jobs]
    without = [{"identifier": identifier, "reason": reason} for identifier, reason in planned.without_jobs.items()]
    return ok(results=results, withoutJobs=without, dryRun=body.dry_run)


def _job(each: Recommendation) -> dict[str, object]:
    started = {} if each.job is None else {"jobId": each.job}
    return {
        "identifier": each.identifier,
        "score": each.score,
        "jobTemplate": each.template,
        "jobConfig": each.conf,
        **started,
    }


async def update_stats_jobs(request: Request, ctx: Context, *, body: UpdateStatsJobs) -> Response:
    """Start a job for each table that computes statistics of all columns; `dryRun` only returns them."""
    results = await operations.statistics_jobs(
        ctx,
        _metalake(request, ctx),
        identifiers=body.identifiers,
        update_mode=body.update_mode,
        is_dry_run=body.dry_run,
    )
    return ok(results=[_job(each) for each in results], dryRun=body.dry_run)


async def statistics_append(request: Request, ctx: Context, *, body: StatisticsPayload) -> Response:
    """Write statistics of tables and partitions, sent as JSON Lines. Their names begin with `custom-`."""
    metalake = _metalake(request, ctx)
    lines = await _lines(ctx, metalake, body=body)
    of_table: dict[str, list[tuple[str, str, object]]] = {}
    counts = dict.fromkeys(_STATISTICS_TYPES, 0)
    for line, values in lines:
        counts[line.stats_type] += 1
        partition = "/".join(f"{name}={value}" for name, value in (line.partition_path or {}).items())
        of_table.setdefault(line.identifier, []).extend([(partition, name, value) for name, value in values.items()])
    targets = {AttachmentTarget(metalake, Kind.TABLE, identifier): values for identifier, values in of_table.items()}
    await tables_statistics_update(ctx, targets)
    records = {"totalRecords": len(lines), "tableRecords": counts["table"], "partitionRecords": counts["partition"]}
    return ok(**records, jobRecords=0)


async def _lines(
    ctx: Context, metalake: str, *, body: StatisticsPayload
) -> list[tuple[StatisticsLine, dict[str, object]]]:
    """Parse the lines about the tables of a request, and check the right to maintain these tables.

    Raises BadRequest if a line is not a record of statistics, or there are none or too many.
    """
    texts = [*filter(str.strip, body.statistics_payload.splitlines())]
    if not 0 < len(texts) <= LINES_MAX:
        raise BadRequest(f"Field statisticsPayload must have 1 to {LINES_MAX} lines, not {len(texts)}")
    identifiers = frozenset(body.identifiers or ())
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            fields = msgspec.json.decode(text, type=dict[str, object])
            line = msgspec.convert(fields, StatisticsLine)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadRequest(f"Line {number} of statisticsPayload is not a record of statistics: {error}") from None
        if identifiers and line.identifier not in identifiers:
            continue
        if line.stats_type not in _STATISTICS_TYPES or (line.stats_type == "partition") is not bool(
            line.partition_path
        ):
            raise BadRequest(
                f"Line {number} of statisticsPayload, about {line.identifier[:200]}, has the stats-type"
                f" '{line.stats_type[:50]}': use table, or partition with a partition-path"
            )
        lines.append((line, {name: _value(value) for name, value in fields.items() if name not in _RESERVED}))
    await tables_require(ctx, metalake, identifiers=list(dict.fromkeys(line.identifier for line, _ in lines)))
    return lines


def _value(value: object) -> object:
    return value["value"] if isinstance(value, dict) and value.keys() == {"value"} else value


async def metrics_append(request: Request, ctx: Context, *, body: StatisticsPayload) -> Response:
    """Refuse metrics of tables with 405: the server reads them from the tables' snapshots."""
    await _lines(ctx, _metalake(request, ctx), body=body)
    raise UnsupportedOperation(
        "Metrics are not stored: the server reads those of tables from their snapshots, and those of jobs from their"
        " operations. Other numbers can be written as statistics"
    )


async def metrics_monitor(request: Request, ctx: Context, *, body: MonitorMetrics) -> Response:
    """Compare the metrics of tables before and after a point in time. A table passes if its file count has not
    grown.
    """
    metalake = _metalake(request, ctx)
    if body.partition_path:
        await tables_require(ctx, metalake, identifiers=body.identifiers)
        raise UnsupportedOperation("Metrics are those of whole tables: leave partitionPath out")
    results = await operations.metrics_monitor(
        ctx, metalake, identifiers=body.identifiers, action_s=body.action_time, range_s=body.range_seconds
    )
    evaluations = await _encode_results(
        {
            "scopeType": "TABLE",
            "identifier": each.identifier,
            "evaluation": each.passed,
            "evaluatorName": "limnos",
            "actionTimeSeconds": body.action_time,
            "rangeSeconds": body.range_seconds,
            "beforeMetrics": _metrics(each.before),
            "afterMetrics": _metrics(each.after),
        }
        for each in results
    )
    return ok(results=evaluations)


def _metrics(points: Sequence[MetricPoint]) -> dict[str, list[dict[str, int]]]:
    """Encode metrics as JSON: for each metric name, its values in order of time."""
    sorted_points = sorted(points)
    return {
        name: [{"timestamp": each.timestamp_s, "value": each.value} for each in group]
        for name, group in groupby(sorted_points, key=lambda each: each.name)
    }


async def table_metrics(request: Request, ctx: Context) -> Response:
    """Return metrics of the tables `identifiers`, separated by commas, from their snapshots."""
    metalake, identifiers = _metalake(request, ctx), _identifiers(request)
    if request.query("partitionPath"):
        await tables_require(ctx, metalake, identifiers=identifiers)
        raise UnsupportedOperation("Metrics are those of whole tables: leave partitionPath out")
    metrics = await operations.metrics_list(ctx, metalake, identifiers=identifiers)
    return ok(results=await _results("TABLE", metrics))


async def job_metrics(request: Request, ctx: Context) -> Response:
    """Return metrics of the jobs `identifiers`, separated by commas, from their operations."""
    metrics = await operations.job_metrics(ctx, _metalake(request, ctx), identifiers=_identifiers(request))
    return ok(results=await _results("JOB", metrics))


async def _results(scope_type: str, metrics: Mapping[str, Sequence[MetricPoint]]) -> list[msgspec.Raw]:
    return await _encode_results(
        {"scopeType": scope_type, "identifier": identifier, "metrics": _metrics(points)}
        for identifier, points in metrics.items()
    )


async def _encode_results(results: Iterator[dict[str, object]]) -> list[msgspec.Raw]:
    """Build and encode results one by one, yielding to other requests in between: each may have thousands of values."""
    encoded = []
    for result in results:
        encoded.append(msgspec.Raw(msgspec.json.encode(result)))
        await asyncio.sleep(0)
    return encoded


_FAILED: Final = "Failed to operate table maintenance operation [%s]"
_OPS: Final = "/maintenance/table/ops"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path=f"{_OPS}/strategy-jobs",
        handler=wrap_body_handler(_FAILED % "SUBMIT", StrategyJobs, strategy_jobs),
        operation="submit-strategy-jobs",
        query=("metalake",),
    ),
    Route(
        method="POST",
        path=f"{_OPS}/update-stats-jobs",
        handler=wrap_body_handler(_FAILED % "SUBMIT", UpdateStatsJobs, update_stats_jobs),
        operation="submit-update-stats-jobs",
        query=("metalake",),
    ),
    Route(
        method="POST",
        path=f"{_OPS}/statistics",
        handler=wrap_body_handler(_FAILED % "UPDATE", StatisticsPayload, statistics_append),
        operation="append-table-statistics",
        query=("metalake",),
    ),
    Route(
        method="POST",
        path=f"{_OPS}/metrics",
        handler=wrap_body_handler(_FAILED % "APPEND", StatisticsPayload, metrics_append),
        operation="append-table-metrics",
        query=("metalake",),
    ),
    Route(
        method="POST",
        path=f"{_OPS}/metrics/monitor",
        handler=wrap_body_handler(_FAILED % "MONITOR", MonitorMetrics, metrics_monitor),
        operation="monitor-table-metrics",
        query=("metalake",),
    ),
    Route(
        method="GET",
        path=f"{_OPS}/metrics/tables",
        handler=wrap_handler(_FAILED % "LIST", table_metrics),
        operation="list-table-metrics",
        query=("metalake", "identifiers", "partitionPath"),
    ),
    Route(
        method="GET",
        path=f"{_OPS}/metrics/jobs",
        handler=wrap_handler(_FAILED % "LIST", job_metrics),
        operation="list-job-metrics",
        query=("metalake", "identifiers"),
    ),
)
