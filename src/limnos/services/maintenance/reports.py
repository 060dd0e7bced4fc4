"""Reports about maintenance: what tables of a catalog need, why, and what was done.

May import the rooms below and `formats.maintenance`. Must not know any wire format. A caller sees the tables that the
caller may maintain. Figures come from the last assessment; the explanation of one table is made from its present state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.maintenance.explanation import TableExplanation
from limnos.model.kinds import Kind
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.reports import catalog_require
from limnos.services.maintenance.assessing import AssessmentRound
from limnos.services.maintenance.guards import snapshots_judge
from limnos.services.maintenance.policies import EffectivePolicy, policies_load
from limnos.store.activity.maintenance import (
    FindingRow,
    OperationRow,
    ancestors_read,
    findings_page,
    operations_of,
    operations_page,
)
from limnos.store.ancestry import path_of
from limnos.store.objects.protection import protection_read
from limnos.view.cache_miss import for_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.entities import MetadataDocument
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.request_scope import RequestScope
    from limnos.services.request.request_view import RequestView

ROWS_MAX: Final = 1_000
OPERATIONS_SHOWN: Final = 20
_DATASET: Final = "SQL++ compacts its datasets by itself, and expires their snapshots"


class TableFinding(NamedTuple):
    """A finding, and the path of its table below the catalog."""

    path: Levels
    row: FindingRow


class FindingsPage(NamedTuple):
    """Findings of the tables that the caller may maintain; `after` is the start of the next page, None at the end."""

    findings: tuple[TableFinding, ...]
    after: int | None


class TableOperation(NamedTuple):
    """An operation, and the present path of its table below the catalog."""

    path: Levels
    row: OperationRow


class PolicyReport(NamedTuple):
    """A policy that applies to a table, and the path of the object to which it is attached, the catalog first."""

    policy: EffectivePolicy
    on: Levels


class TableReport(NamedTuple):
    """The findings of one table, and the reason why each operation is or is not done."""

    explanation: TableExplanation
    findings: tuple[TableFinding, ...]
    policies: tuple[PolicyReport, ...]
    blocked: tuple[str, ...]
    operations: tuple[TableOperation, ...]


async def findings_list(ctx: Context, scope: RequestScope, *, after: int) -> FindingsPage:
    """Return findings of a catalog by table. Raises NotFound, PermissionDenied.

    `after` is 0 for the first page, and then what the page before says.
    """
    catalog_id = await ctx.read(scope, _catalog)
    rows = await ctx.look_up(lambda: findings_page(catalog_id, after=after, limit=ROWS_MAX))
    paths = await visible_paths(ctx, scope, node_ids=[row.node_id for row in rows])
    findings = tuple([TableFinding(paths[row.node_id], row) for row in rows if row.node_id in paths])
    is_cut = len(rows) == ROWS_MAX
    # The last table of a full page may have more findings on the next one: it is shown there as a whole.
    last = max([row.node_id for row in rows if row.node_id != rows[-1].node_id], default=0) if is_cut else None
    if last is not None:
        findings = tuple([each for each in findings if each.row.node_id <= last])
    return FindingsPage(findings, last)


async def operations_list(ctx: Context, scope: RequestScope, *, before: int) -> tuple[TableOperation, ...]:
    """Return operations on a catalog's tables, newest first. Raises NotFound, PermissionDenied."""
    catalog_id = await ctx.read(scope, _catalog)
    rows = await ctx.look_up(lambda: operations_page(catalog_id, before=before, limit=ROWS_MAX))
    paths = await visible_paths(ctx, scope, node_ids=[row.node_id for row in rows])
    return tuple([TableOperation(paths[row.node_id], row) for row in rows if row.node_id in paths])


def _catalog(request_view: RequestView) -> int:
    catalog_require(request_view)
    return request_view.catalog.id


async def visible_paths(ctx: Context, scope: RequestScope, *, node_ids: Sequence[int]) -> dict[int, Levels]:
    """Return the paths below the catalog of those tables that the caller may maintain."""
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
    """Explain what a table needs, which policies apply, and what keeps each of its snapshots.

    Raises:
        NotFound: The table is missing.
        PermissionDenied: The caller may not maintain it.
        UnsupportedOperation: The catalog shows another catalog.
        BadRequest: The table has another format.
    """

    def look(request_view: RequestView) -> tuple[MetadataDocument, int, str]:
        node = table_find(request_view, path[:-1], path[-1], Action.TABLE_MAINTAIN).entity
        return request_view.document(node.id), request_view.metalake.id, request_view.catalog.name

    document, metalake_id, catalog = await ctx.read(scope, look)
    node_id = document.node_id
    round_ = AssessmentRound(ctx.services, tables_max=1)
    policies = (await ctx.look_up(policies_load)).effective(await round_.chain_of(node_id))
    text = await snapshots_judge(
        ctx, "maintenance-explain", document=document, metalake_id=metalake_id, path=(catalog, *path), policies=policies
    )
    explanation = msgspec.json.decode(text, type=TableExplanation)
    ancestry = await ctx.look_up(lambda: ancestors_read([each.object_id for each in policies.values()]))
    reports = tuple([PolicyReport(each, path_of(each.object_id, ancestry) or ()) for each in policies.values()])
    blocked = [] if explanation.blocked is None else [explanation.blocked]
    if await round_.is_dataset(node_id):
        blocked.append(_DATASET)
    if await ctx.look_up(lambda: protection_read(node_id)):
        blocked.append("the table is protected: no file of it is removed")
    fresh = await round_.findings_now(document, policies=policies)
    done = await ctx.look_up(lambda: operations_of(node_id, limit=OPERATIONS_SHOWN))
    return TableReport(
        explanation, tuple([TableFinding(path, row) for row in fresh]), reports, tuple(blocked),
        tuple([TableOperation(path, row) for row in done]),
    )  # fmt: skip
