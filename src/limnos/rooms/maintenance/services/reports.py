# SPDX-License-Identifier: Apache-2.0
"""Reports about maintenance: findings about a catalog's tables, their reasons, and past operations.

Must not know any wire format. Reports contain only tables that the caller may maintain. Figures come from the last
assessment; the explanation of one table uses its current state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.policies import ORPHAN_FILE_REMOVAL, SNAPSHOT_EXPIRATION
from limnos.model.entities import MetadataDocument, Node
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.assessment import COMPACT, DELETES, EXPIRE, MANIFESTS
from limnos.rooms.maintenance.formats.explanation import TableExplanation
from limnos.rooms.maintenance.formats.lance_tables import INDEXES
from limnos.rooms.maintenance.formats.row_retention import RETENTION
from limnos.rooms.maintenance.services.acting import REWRITE_ACTIONS, WORK_ACTIONS, authors_refusal
from limnos.rooms.maintenance.services.assessing import ASSESS_TABLES, AssessmentPosition, AssessmentRound
from limnos.rooms.maintenance.services.guards import snapshots_judge
from limnos.rooms.maintenance.services.inactions import inactions, turns_off
from limnos.rooms.maintenance.services.lance.reports import ExplanationResult, lance_explain, lance_orphans
from limnos.rooms.maintenance.services.orphans.reports import OrphanReport, orphan_findings, orphans_report
from limnos.rooms.maintenance.services.orphans.rounds import ORPHANS
from limnos.rooms.maintenance.services.policies import EffectivePolicy, deciding_policy, policies_load
from limnos.rooms.maintenance.services.requests import TableTarget, table_target
from limnos.rooms.maintenance.services.rewriting.leases import is_executor_active
from limnos.rooms.maintenance.services.rewriting.planning import policy_refusals
from limnos.rooms.maintenance.services.rewriting.row_retention import retention_refusals, without_retained
from limnos.rooms.maintenance.services.table_access import catalog_require, maintained_table
from limnos.rooms.maintenance.services.waiting import with_reasons
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE, format_of
from limnos.store.activity.maintenance import (
    FindingRow,
    OperationRow,
    ancestors_read,
    findings_page,
    operation_read,
    operations_of,
    operations_page,
)
from limnos.store.activity.rewrites import open_rewrites
from limnos.store.activity.tasks import task_payload_read
from limnos.store.ancestry import path_of
from limnos.store.objects.protection import protection_read
from limnos.view.cache_miss import for_each

ROWS_MAX: Final = 1_000
OPERATIONS_SHOWN: Final = 20
_DECIDED_KINDS: Final = {
    ICEBERG: (COMPACT, DELETES, MANIFESTS, RETENTION, EXPIRE, ORPHANS),
    LANCE: (COMPACT, INDEXES, EXPIRE),
}
"""The kinds of operations about which policies decide, by the format of the table."""
_SERVER_TYPES: Final = (SNAPSHOT_EXPIRATION, ORPHAN_FILE_REMOVAL)
"""The types of policies whose operations the server itself executes."""
_DATASET: Final = "SQL++ compacts its datasets by itself, and expires their snapshots"


class TableFinding(NamedTuple):
    """A finding, and the path of its table below the catalog."""

    path: Levels
    row: FindingRow


class FindingsPage(NamedTuple):
    """Findings of the tables that the caller may maintain; `after` is the page token of the next page, None at the
    end.
    """

    findings: tuple[TableFinding, ...]
    after: int | None


class TableOperation(NamedTuple):
    """An operation, and the current path of its table below the catalog."""

    path: Levels
    row: OperationRow


class PolicyReport(NamedTuple):
    """A policy that applies to a table, and the path of the object to which it is attached, the catalog first.

    The name of a policy that the caller may not load is omitted.
    """

    policy: EffectivePolicy
    on: Levels
    name: str | None
    others: tuple[str, ...]
    decides: tuple[str, ...]
    """The kinds of operations that it requests or turns off; about the others of its type another policy decides."""
    turned_off: tuple[str, ...] = ()
    """Those of `decides` that its content turns off."""


class _ExplainedTable(NamedTuple):
    """The table of an explanation: its path and format, its node, document and metalake, and its catalog's name."""

    target: TableTarget
    node: Node
    document: MetadataDocument
    metalake_id: int
    catalog: str
    names_files: bool
    """Whether the report may name files: the caller may read the rows."""


class TableReport(NamedTuple):
    """The maintenance report of one table: its explanation, findings, policies, operations and orphan files, and the
    reasons why operations have no effect.
    """

    explanation: TableExplanation
    findings: tuple[TableFinding, ...]
    policies: tuple[PolicyReport, ...]
    blocked: tuple[str, ...]
    operations: tuple[TableOperation, ...]
    orphans: OrphanReport
    inactions: Mapping[str, str]
    """For each kind of finding that leads to no operation, the reason."""


class ExecutorQueue(NamedTuple):
    """The executor that the settings name, the number of operations that wait for one, and whether an executor has
    requested or renewed leases at this node within the last minute.
    """

    executor: str
    waiting: int
    is_active: bool


async def findings_list(ctx: Context, scope: RequestScope, *, after: int) -> FindingsPage:
    """Return a page of the findings of a catalog, ordered by table. Raises NotFound, PermissionDenied.

    `after` is 0 for the first page, then `after` of the previous page.
    """
    catalog_id = await ctx.read(scope, _catalog)
    rows = await ctx.look_up(lambda: findings_page(catalog_id, after=after, limit=ROWS_MAX))
    orphans = await orphan_findings(ctx, catalog_id, after=after, limit=ROWS_MAX)
    # The last table of a full page may have more findings on the next one: it is shown there as a whole.
    ends = [max(0, page[-1].node_id - 1) for page in (rows, orphans) if len(page) == ROWS_MAX]
    last = min(ends) if ends else None
    rows = await without_retained(ctx, [row for row in (*rows, *orphans) if last is None or row.node_id <= last])
    paths = await visible_paths(ctx, scope, node_ids=[row.node_id for row in rows])
    visible = sorted([row for row in rows if row.node_id in paths])
    return FindingsPage(tuple([TableFinding(paths[row.node_id], row) for row in visible]), last)


async def operations_list(ctx: Context, scope: RequestScope, *, before: int) -> tuple[TableOperation, ...]:
    """Return operations with ids below `before` on a catalog's tables, newest first. Raises NotFound,
    PermissionDenied.
    """
    catalog_id = await ctx.read(scope, _catalog)
    rows = await ctx.look_up(lambda: operations_page(catalog_id, before=before, limit=ROWS_MAX))
    rows = await with_reasons(ctx, rows)
    paths = await visible_paths(ctx, scope, node_ids=[row.node_id for row in rows])
    rows = await _hide_policies(ctx, scope, rows=[row for row in rows if row.node_id in paths])
    return tuple([TableOperation(paths[row.node_id], row) for row in rows])


async def operation_state(ctx: Context, scope: RequestScope, *, operation: int) -> str:
    """Return the reason for which an operation waits, or its result or state.

    Empty if the operation does not exist, or the caller may not maintain its table.
    """
    row = await ctx.look_up(lambda: operation_read(operation))
    rows = await with_reasons(ctx, [] if row is None else [row])
    visible = await visible_paths(ctx, scope, node_ids=[each.node_id for each in rows])
    return next((each.result or each.state for each in rows if each.node_id in visible), "")


async def executor_queue(ctx: Context, scope: RequestScope, *, operations: Sequence[TableOperation]) -> ExecutorQueue:
    """Return the executor of the settings, and how many of some operations wait for an executor.

    The server itself executes the other waiting operations.
    """
    waiting = {each.row.id: each.row.node_id for each in operations if each.row.state == "waiting"}
    tables = list(set(waiting.values()))
    queued = set((await ctx.look_up(lambda: open_rewrites(tables))).values()) if waiting else set[int]()
    visible = await visible_paths(ctx, scope, node_ids=tables)
    count = sum(operation in queued and node_id in visible for operation, node_id in waiting.items())
    is_active = is_executor_active(ctx.services, scope.metalake or "")
    return ExecutorQueue(ctx.services.defaults.maintenance.executor, count, is_active)


async def assessment_time(ctx: Context) -> int | None:
    """Return the end of the last round of assessment, in milliseconds since 1970; None before the first one."""
    payload = await ctx.look_up(lambda: task_payload_read(ASSESS_TABLES))
    return None if payload is None else msgspec.json.decode(payload, type=AssessmentPosition).ended_at_ms or None


async def catalog_format(ctx: Context, scope: RequestScope) -> str:
    """Return the format of a catalog's tables. Raises NotFound, PermissionDenied."""

    def look(request_view: RequestView) -> str:
        catalog_require(request_view)
        return format_of(request_view)

    return await ctx.read(scope, look)


def _catalog(request_view: RequestView) -> int:
    catalog_require(request_view)
    return request_view.catalog.id


async def visible_paths(ctx: Context, scope: RequestScope, *, node_ids: Sequence[int]) -> dict[int, Levels]:
    """Return the paths below the catalog of those of the given tables that the caller may maintain, by id."""
    ids = list(dict.fromkeys(node_ids))
    if not ids:
        return {}
    ancestry = await ctx.look_up(lambda: ancestors_read(ids))
    paths = {node_id: path[1:] for node_id in ids if (path := path_of(node_id, ancestry)) is not None}

    def visible(request_view: RequestView) -> dict[int, Levels]:
        def may(node_id: int) -> bool:
            node, chain = request_view.find(paths[node_id], Kind.TABLE)
            return node is not None and node.id == node_id and request_view.decide(Action.TABLE_MAINTAIN, chain).allowed

        known = list(paths)
        return {
            node_id: paths[node_id] for node_id, is_seen in zip(known, for_each(known, may), strict=True) if is_seen
        }

    return await ctx.read(scope, visible)


async def table_explain(ctx: Context, scope: RequestScope, *, path: Levels) -> TableReport:
    """Explain a table's findings, the policies that apply, and for each snapshot why it is kept.

    Raises:
        NotFound: The table is missing, or a Lance table has no data.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not maintain it.
        UnsupportedOperation: The catalog is federated or shows a directory.
        BadRequest: The path has no namespace.
    """

    def look(request_view: RequestView) -> _ExplainedTable:
        target = table_target(request_view, path)
        node, chain, _ = maintained_table(request_view, target.path, table_format=target.table_format)
        names_files = request_view.decide(Action.TABLE_READ, chain).allowed
        return _ExplainedTable(
            target=target,
            node=node,
            document=request_view.document(node.id),
            metalake_id=request_view.metalake.id,
            catalog=request_view.catalog.name,
            names_files=names_files,
        )

    _, report = await ctx.read_confirmed(
        scope,
        look,
        work=lambda table: _report_of(ctx, scope, table=table),
        identity=lambda table: (table.node.id, table.metalake_id, table.names_files),
    )
    return report


async def _report_of(ctx: Context, scope: RequestScope, *, table: _ExplainedTable) -> TableReport:
    """Build the report of a table. Its caller decides again afterwards."""
    path, node_id = table.target.path, table.node.id
    round_ = AssessmentRound(ctx.services, tables_max=1)
    policies = (await ctx.look_up(policies_load)).effective(await round_.chain_of(node_id))
    if table.target.table_format == LANCE:
        result = await lance_explain(ctx, scope, node=table.node, path=path, policies=policies)
        orphans = lance_orphans(ctx.services.defaults.lance_debris_ms)
    else:
        result = await _explain_iceberg(ctx, round_, table=table, policies=policies)
        orphans = await orphans_report(ctx, node_id, policies=policies, names_files=table.names_files)
    ancestry = await ctx.look_up(lambda: ancestors_read([each.object_id for each in policies.values()]))
    loadable = await loadable_policies(
        ctx, scope, names=[name for each in policies.values() for name in (each.name, *each.others)]
    )
    kinds = _DECIDED_KINDS[table.target.table_format]
    reports = tuple(
        [
            PolicyReport(
                policy=each,
                on=path_of(each.object_id, ancestry) or (),
                name=each.name if each.name in loadable else None,
                others=tuple([name for name in each.others if name in loadable]),
                decides=tuple([kind for kind in kinds if deciding_policy(policies, kind) == each]),
                turned_off=tuple(
                    [kind for kind in kinds if deciding_policy(policies, kind) == each and turns_off(each, kind)]
                ),
            )
            for each in policies.values()
        ]
    )
    blocked = (*result.blocked, *await _policies_without_effect(ctx, node_id, policies=policies, loadable=loadable))
    operations = await ctx.look_up(lambda: operations_of(node_id, limit=OPERATIONS_SHOWN))
    operations = await with_reasons(ctx, await _hide_policies(ctx, scope, rows=operations))
    return TableReport(
        explanation=result.explanation,
        findings=tuple([TableFinding(path, row) for row in result.findings]),
        policies=reports,
        blocked=blocked,
        operations=tuple([TableOperation(path, row) for row in operations]),
        orphans=orphans,
        inactions=inactions(
            ctx.services.defaults.maintenance,
            policies,
            kinds=[row.kind for row in result.findings],
            loadable=loadable,
            is_lance=table.target.table_format == LANCE,
        ),
    )


async def _policies_without_effect(
    ctx: Context, node_id: int, *, policies: Mapping[str, EffectivePolicy], loadable: Collection[str]
) -> list[str]:
    """Return why enabled policies have no effect on a table: their authors, or who attached them, lack the right."""
    reasons = []
    for policy in policies.values():
        if policy.is_enabled:
            label = f"policy {policy.name}" if policy.name in loadable else "a policy that you may not load"
            actions = WORK_ACTIONS if policy.policy_type in _SERVER_TYPES else REWRITE_ACTIONS
            reason = await authors_refusal(ctx.services, node_id, policy=policy, label=label, actions=actions)
            reasons += [] if reason is None else [reason]
    return reasons


async def _explain_iceberg(
    ctx: Context, round_: AssessmentRound, *, table: _ExplainedTable, policies: Mapping[str, EffectivePolicy]
) -> ExplanationResult:
    """Explain an Iceberg table from its current metadata."""
    text = await snapshots_judge(
        ctx,
        "maintenance-explain",
        document=table.document,
        metalake_id=table.metalake_id,
        path=(table.catalog, *table.target.path),
        policies=policies,
    )
    explanation = msgspec.json.decode(text, type=TableExplanation)
    blocked = [] if explanation.blocked is None else [explanation.blocked]
    if await round_.is_dataset(table.node.id):
        blocked.append(_DATASET)
    blocked += policy_refusals(policies)
    blocked += retention_refusals(table.document, policies, now_ms=ctx.services.store.time.now_ms())
    if await ctx.look_up(lambda: protection_read(table.node.id)):
        blocked.append("the table is protected: no file of it is removed")
    findings = await round_.findings_now(table.document, policies=policies)
    return ExplanationResult(explanation, await without_retained(ctx, findings), tuple(blocked))


async def loadable_policies(ctx: Context, scope: RequestScope, *, names: Sequence[str]) -> frozenset[str]:
    """Return the given names of policies that the caller may load."""

    def look(request_view: RequestView) -> frozenset[str]:
        def may(name: str) -> bool:
            node, chain = request_view.find_outside(Kind.POLICY, (name,))
            return node is not None and request_view.decide(Action.POLICY_LOAD, chain).allowed

        known = list(dict.fromkeys(names))
        return frozenset([name for name, is_seen in zip(known, for_each(known, may), strict=True) if is_seen])

    return await ctx.read(scope, look) if names else frozenset()


async def _hide_policies(ctx: Context, scope: RequestScope, *, rows: Sequence[OperationRow]) -> list[OperationRow]:
    """Return the operations without the names of policies that the caller may not load."""
    loadable = await loadable_policies(ctx, scope, names=[row.policy for row in rows if row.policy is not None])
    return [row if row.policy in loadable else row._replace(policy=None) for row in rows]
