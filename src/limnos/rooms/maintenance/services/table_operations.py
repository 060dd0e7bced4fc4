# SPDX-License-Identifier: Apache-2.0
"""Gravitino's operations of table maintenance on several tables: jobs by a policy, jobs of statistics, and metrics.

Must not know any wire format. Each operation needs the right to maintain each named table, which is decided for all of
them before anything is done. Metrics are read from snapshots and operations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.formats.gravitino.policies import (
    COMPACTION,
    MAINTENANCE_TYPES,
    ORPHAN_FILE_REMOVAL,
    SNAPSHOT_EXPIRATION,
    TABLE_MAINTENANCE,
)
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, NotFound, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.records import PolicyRecord
from limnos.names import display
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.assessment import COMPACT, MANIFESTS
from limnos.rooms.maintenance.formats.table_metadata import Snapshot, metadata_of
from limnos.rooms.maintenance.services.assessing import effective_policies
from limnos.rooms.maintenance.services.builtin_jobs import (
    TEMPLATES,
    builtin_load,
    builtin_start,
)
from limnos.rooms.maintenance.services.operations import EXPIRE
from limnos.rooms.maintenance.services.orphans.rounds import ORPHANS
from limnos.rooms.maintenance.services.policies import EffectivePolicy, deciding_policy, kind_setting
from limnos.rooms.maintenance.services.reports import loadable_policies
from limnos.rooms.maintenance.services.rewriting.kinds import STATISTICS
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.services.request.context import Context, read_and_confirm
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.builtin_jobs import BuiltinJob, BuiltinTemplate, job_id, operation_of
from limnos.store.activity.maintenance import findings_of

CLOCK_SLACK_S: Final = 60
"""The allowed difference in seconds between a client's clock and the server's."""
TABLES_MAX: Final = 100
"""The maximum number of tables or jobs of one request."""
METRICS: Final = ("total-data-files", "total-delete-files", "total-files-size", "total-records")
"""The numbers in the summaries of snapshots that are metrics of a table."""
SNAPSHOTS_MAX: Final = 1_000
"""The maximum number of snapshots of a table whose metrics are returned, newest first."""
JOB_METRICS: Final = ("duration_ms",)
"""The metrics of a job: the time from its beginning to its end, without the wait for an executor."""
_KINDS: Final = {
    COMPACTION: (COMPACT,),
    TABLE_MAINTENANCE: (COMPACT, MANIFESTS),
    SNAPSHOT_EXPIRATION: (EXPIRE,),
    ORPHAN_FILE_REMOVAL: (ORPHANS,),
}
"""The kinds of operations that a policy of a type requests and that have a job template."""
_BY_KIND: Final = {each.kind: each for each in TEMPLATES}
_NOT_APPLIED: Final = (
    "The policy does not apply to this table: it is not attached to the table or to an object above it, or another"
    " policy of its type applies instead"
)
_NO_FINDING: Final = (
    "There is no finding for the policy. Findings are up to five minutes old, and a new table has none before it is"
    " assessed"
)


class NamedTable(NamedTuple):
    """A table of a request: the name as it was sent, its catalog, its path below the catalog, and its document."""

    identifier: str
    catalog: str
    path: Levels
    document: MetadataDocument


class _StrategyTarget(NamedTuple):
    """The tables and the policy of a request for recommendations."""

    tables: tuple[NamedTable, ...]
    policy_id: int
    policy_type: str

    def ids(self) -> object:
        """Return the ids of the tables and of the policy, and the policy's type."""
        return [each.document.node_id for each in self.tables], self.policy_id, self.policy_type


class Recommendation(NamedTuple):
    """A job that a policy recommends for a table, and the job's id if it was started."""

    identifier: str
    score: int
    template: str
    conf: dict[str, str]
    job: str | None = None


class KindRefusal(NamedTuple):
    """The reason why a policy requests no operations of a kind: its own content, or another policy that decides."""

    kind: str
    reason: str
    policy: str | None = None

    def text(self, loadable: Collection[str]) -> str:
        """Return the reason as text. The name of a policy that is not `loadable` for the caller is omitted."""
        if self.policy is None:
            return self.reason
        return f"policy {self.policy} {self.reason}" if self.policy in loadable else f"another policy {self.reason}"


class PolicyJobs(NamedTuple):
    """The jobs that a policy recommends, and for each table without one the reason."""

    jobs: tuple[Recommendation, ...]
    without_jobs: dict[str, str]


class MetricPoint(NamedTuple):
    """The value of a metric at a point in time, which is in seconds since 1970."""

    name: str
    timestamp_s: int
    value: int


class MetricsEvaluation(NamedTuple):
    """The metrics of a table before and after a point in time. `passed` is true if its file count is known before and
    after, and has not grown.
    """

    identifier: str
    passed: bool
    before: tuple[MetricPoint, ...]
    after: tuple[MetricPoint, ...]


def _metalake_require(request_view: RequestView) -> None:
    """Require that the caller may load the metalake, before any other check of the request. Raises PermissionDenied."""
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])


async def tables_require(ctx: Context, metalake: str, *, identifiers: Sequence[str]) -> tuple[NamedTable, ...]:
    """Find the tables of a request, for a caller who may maintain each of them.

    Raises as `maintained_table` for each of them, and BadRequest for an invalid or too long list.
    """
    await ctx.read(RequestScope(metalake), _metalake_require)
    if not 0 < len(identifiers) <= TABLES_MAX:
        raise BadRequest(f"Field identifiers must name 1 to {TABLES_MAX} tables, not {len(identifiers)}")
    tables = []
    for text in dict.fromkeys(identifiers):
        parts = tuple(display.parse(text))
        if len(parts) < 3:
            raise BadRequest(f"'{text[:200]}' does not name a table: write catalog.schema.table")

        def look(request_view: RequestView, path: Levels = parts[1:]) -> MetadataDocument:
            return request_view.document(maintained_table(request_view, path).entity.id)

        document = await ctx.read(RequestScope(metalake, parts[0]), look)
        tables.append(NamedTable(text, parts[0], parts[1:], document))
    return tuple(tables)


async def strategy_jobs(
    ctx: Context, metalake: str, *, identifiers: Sequence[str], policy: str, limit: int | None, is_dry_run: bool
) -> PolicyJobs:
    """Recommend the jobs of a policy on the tables to which it applies, most useful first; without `is_dry_run` also
    start them.

    A table needs a job if the server has a finding about it; a job for orphan files needs no finding. Raises as
    `tables_require`, and as `builtin_run` if it starts jobs; NotFound also for the policy, BadRequest also for a policy
    without jobs or an invalid `limit`.
    """

    async def decide() -> _StrategyTarget:
        tables = await tables_require(ctx, metalake, identifiers=identifiers)
        return _StrategyTarget(
            tables, *await ctx.read(RequestScope(metalake), lambda request_view: _policy_of(request_view, policy))
        )

    async def recommend(target: _StrategyTarget) -> list[tuple[NamedTable, list[Recommendation] | str]]:
        if limit is not None and limit < 1:
            raise BadRequest(f"Field limit must be 1 at least, not {limit}")
        return [
            (table, await _recommend(ctx, table, metalake=metalake, policy=policy, policy_type=target.policy_type))
            for table in target.tables
        ]

    _, results = await read_and_confirm(await decide(), decide, work=recommend, identity=_StrategyTarget.ids)
    without_jobs = {table.identifier: jobs for table, jobs in results if isinstance(jobs, str)}
    recommendations = [each for _, jobs in results if not isinstance(jobs, str) for each in jobs]
    best_recommendations = sorted(recommendations, key=lambda each: -each.score)[:limit]
    if not is_dry_run:
        best_recommendations = [
            each._replace(job=await _start(ctx, metalake, recommendation=each)) for each in best_recommendations
        ]
    return PolicyJobs(tuple(best_recommendations), without_jobs)


async def _start(ctx: Context, metalake: str, *, recommendation: Recommendation) -> str:
    return job_id(await builtin_start(ctx, metalake, name=recommendation.template, conf=recommendation.conf))


def _policy_of(request_view: RequestView, name: str) -> tuple[int, str]:
    """Return the id and the type of a policy that requests jobs. Raises NotFound, BadRequest."""
    node, chain = request_view.find_outside(Kind.POLICY, (name,))
    if node is None or not request_view.decide(Action.POLICY_LOAD, chain).allowed:
        raise NotFound(f"Policy {name[:200]} does not exist", kind="policy")
    policy_type = node.record.policy_type if isinstance(node.record, PolicyRecord) else ""
    if policy_type not in _KINDS:
        names = ", ".join(each for each in MAINTENANCE_TYPES if each in _KINDS)
        raise BadRequest(f"Policy {name[:200]} has no jobs: strategyName must name a policy of type {names}")
    return node.id, policy_type


async def _recommend(
    ctx: Context, table: NamedTable, *, metalake: str, policy: str, policy_type: str
) -> list[Recommendation] | str:
    """Return the jobs that a policy recommends for one table, or the reason why there are none."""
    effective = await effective_policies(ctx.services, table.document.node_id)
    effective_policy = effective.get(policy_type)
    if effective_policy is None or effective_policy.name != policy:
        return _NOT_APPLIED
    if not effective_policy.is_enabled:
        return "The policy is disabled"
    refusals = {
        kind: refusal for kind in _KINDS[policy_type] if (refusal := _refusal(effective, effective_policy, kind=kind))
    }
    kinds = [kind for kind in _KINDS[policy_type] if kind not in refusals]
    rows = await ctx.look_up(lambda: findings_of([table.document.node_id]))
    # Only the check itself finds out whether there are any.
    scores = {row.kind: row.score for row in rows} | {ORPHANS: 0}
    jobs = [(_BY_KIND[kind], scores[kind]) for kind in kinds if kind in scores]
    if jobs:
        return [
            Recommendation(identifier=table.identifier, score=score, template=each.name, conf=_conf(table))
            for each, score in jobs
        ]
    if not refusals:
        return _NO_FINDING
    names = [each.policy for each in refusals.values() if each.policy is not None]
    loadable = await loadable_policies(ctx, RequestScope(metalake), names=names)
    reasons = [each.text(loadable) for each in refusals.values()]
    missing = [f"there is no finding {kind}" for kind in kinds]
    return f"The policy requests no job here: {'; '.join([*reasons, *missing])}"


def _refusal(policies: Mapping[str, EffectivePolicy], own: EffectivePolicy, *, kind: str) -> KindRefusal | None:
    """Return the reason why a policy requests no operations of a kind on a table; None if it requests them."""
    decides = deciding_policy(policies, kind)
    if decides is None:
        return KindRefusal(kind, f"its content leaves {kind} to policies of other types")
    if decides != own:
        return KindRefusal(kind, f"of type {decides.policy_type} decides about {kind}", decides.name)
    is_rewrite = own.policy_type == TABLE_MAINTENANCE
    return KindRefusal(kind, f"its content turns {kind} off") if is_rewrite and not kind_setting(own, kind) else None


def _conf(table: NamedTable) -> dict[str, str]:
    return {"catalog_name": table.catalog, "table_identifier": display.render(table.path)}


async def statistics_jobs(
    ctx: Context, metalake: str, *, identifiers: Sequence[str], update_mode: str, is_dry_run: bool
) -> tuple[Recommendation, ...]:
    """Start a job for each table that computes statistics of its columns, or with `is_dry_run` only return these jobs.

    Raises as `tables_require`, and as `builtin_run` if it starts jobs; BadRequest also for an unknown mode,
    UnsupportedOperation also for mode `metrics`, as metrics need no job.
    """
    tables = await tables_require(ctx, metalake, identifiers=identifiers)
    if update_mode not in ("stats", "metrics", "all"):
        raise BadRequest(f"Field updateMode must be stats, metrics or all, not '{update_mode[:50]}'")
    if update_mode == "metrics":
        raise UnsupportedOperation("Metrics need no job: the server reads them from the snapshots of tables")
    template: BuiltinTemplate = _BY_KIND[STATISTICS]
    recommendations = [
        Recommendation(identifier=each.identifier, score=0, template=template.name, conf=_conf(each)) for each in tables
    ]
    return tuple(
        recommendations
        if is_dry_run
        else [each._replace(job=await _start(ctx, metalake, recommendation=each)) for each in recommendations]
    )


async def metrics_list(
    ctx: Context, metalake: str, *, identifiers: Sequence[str]
) -> dict[str, tuple[MetricPoint, ...]]:
    """Return the metrics of tables, from their newest snapshots on `main`. Raises as `tables_require`."""
    tables = await tables_require(ctx, metalake, identifiers=identifiers)
    metrics: dict[str, tuple[MetricPoint, ...]] = {}
    for each in tables:
        metrics[each.identifier] = _points(each.document)
        await asyncio.sleep(0)  # other requests run between two large documents
    return metrics


async def metrics_monitor(
    ctx: Context, metalake: str, *, identifiers: Sequence[str], action_s: int, range_s: int
) -> tuple[MetricsEvaluation, ...]:
    """Compare the metrics of tables before and after a point in time.

    Args:
        ctx: The request.
        metalake: The metalake.
        identifiers: The tables.
        action_s: The point in time, in seconds since 1970.
        range_s: The length of the compared ranges before and after it, in seconds.

    Raises as `tables_require`, and BadRequest for a time that is negative or in the future.
    """
    tables = await tables_require(ctx, metalake, identifiers=identifiers)
    if not 0 <= action_s <= ctx.services.store.time.now_ms() // 1000 + CLOCK_SLACK_S or range_s < 1:
        raise BadRequest(
            "Field actionTime must be a time in seconds since 1970 and not in the future, and rangeSeconds 1 at least"
        )
    evaluations = []
    for each in tables:
        evaluations.append(_evaluate(each, action_s=action_s, range_s=range_s))
        await asyncio.sleep(0)  # other requests run between two large documents
    return tuple(evaluations)


def _evaluate(table: NamedTable, *, action_s: int, range_s: int) -> MetricsEvaluation:
    points = _points(table.document)
    before = tuple([each for each in points if action_s - range_s <= each.timestamp_s < action_s])
    after = tuple([each for each in points if action_s <= each.timestamp_s <= action_s + range_s])
    files_before, files_after = _last_files(before), _last_files(after)
    passed = files_before is not None and files_after is not None and files_after <= files_before
    return MetricsEvaluation(table.identifier, passed, before, after)


def _last_files(points: Sequence[MetricPoint]) -> int | None:
    counts = [each.value for each in points if each.name == METRICS[0]]
    return counts[-1] if counts else None


def _points(document: MetadataDocument) -> tuple[MetricPoint, ...]:
    """Return the metrics of a table's newest snapshots on `main`, oldest first."""
    metadata = metadata_of(document.body)
    snapshots: list[Snapshot] = []
    if metadata.current is not None:
        snapshots = [*islice(metadata.ancestors(metadata.current.snapshot_id), SNAPSHOTS_MAX)]
    return tuple(
        [
            MetricPoint(name, each.timestamp_ms // 1000, value)
            for each in reversed(snapshots)
            for name in METRICS
            if (value := each.count(name)) is not None
        ]
    )


async def job_metrics(ctx: Context, metalake: str, *, identifiers: Sequence[str]) -> dict[str, tuple[MetricPoint, ...]]:
    """Return the metrics of jobs of built-in templates. Raises NotFound, PermissionDenied, BadRequest for an invalid or
    too long list.
    """
    await ctx.read(RequestScope(metalake), _metalake_require)
    if not 0 < len(identifiers) <= TABLES_MAX:
        raise BadRequest(f"Parameter identifiers must name 1 to {TABLES_MAX} jobs, not {len(identifiers)}")
    metrics: dict[str, tuple[MetricPoint, ...]] = {}
    for text in dict.fromkeys(identifiers):
        operation = operation_of(text)
        if operation is None:
            raise NotFound(f"Job {text[:200]} is not one of a built-in template", kind="job")
        metrics[text] = _job_points(await builtin_load(ctx, metalake, operation=operation))
    return metrics


def _job_points(job: BuiltinJob) -> tuple[MetricPoint, ...]:
    """Return the metrics of a job; empty if it has not ended, or ended before it began."""
    began, ended_at = job.began_at, job.row.ended_at
    if began is None or ended_at is None:
        return ()
    return (MetricPoint(JOB_METRICS[0], ended_at // 1000, max(0, ended_at - began)),)
