# SPDX-License-Identifier: Apache-2.0
"""Expiry of a table's snapshots: an ordinary commit that removes unneeded snapshots and references, and deletes no
files.

Must not know any wire format. The snapshots to remove are chosen on one version of the metadata, and the commit is made
for that version alone: after another commit or a new pin, they are chosen again. So a branch that was just created
keeps its snapshots.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.formats.gravitino.policies import SNAPSHOT_EXPIRATION
from limnos.model.decisions import SecurableChain
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import CommitConflict
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.expiry import ExpiryPlan, expiry_updates
from limnos.rooms.maintenance.services.assessed_changes import assess_changes
from limnos.rooms.maintenance.services.guards import snapshots_judge
from limnos.rooms.maintenance.services.policies import PolicyTerms, policies_load, require_terms
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.services.iceberg.commits import table_commit
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.telemetry.metrics import Counter

TRIES_MAX: Final = 5
"""The maximum number of attempts of an expiry while other commits change the table."""
EXPIRED = Counter("limnos_maintenance_expired_snapshots_total", "Snapshots removed by expiry.", ())
_DATASET: Final = "SQL++ expires the snapshots of its datasets by itself"
_UNASSESSED: Final = (
    "the server has not yet recorded the positions of incremental readers: wait until it has assessed all tables"
    " (setting maintenance.assess)"
)


class ExpiryResult(NamedTuple):
    """The result of an expiry: removed snapshots and references, the count of remaining snapshots, and the reason if
    none was removed.
    """

    removed: tuple[int, ...]
    refs: tuple[str, ...]
    left: int
    blocked: str | None = None

    @property
    def text(self) -> str:
        """The result as human-readable text, for the response and for the operation's row."""
        if self.blocked is not None:
            return self.blocked
        more = "" if not self.refs else f" and {len(self.refs)} references"
        return f"removed {len(self.removed)} snapshots{more}; {self.left} stay"


class _ExpiryBase(NamedTuple):
    """The version of the table's metadata on which an expiry is decided."""

    document: MetadataDocument
    node: Node
    chain: SecurableChain
    metalake_id: int
    catalog: str


async def table_expire(
    ctx: Context, scope: RequestScope, *, path: Levels, planned: PolicyTerms | None = None
) -> ExpiryResult:
    """Expire the snapshots and references of a table that neither its retention rules nor a guard keep, on behalf of
    the caller.

    `planned` is the policy of snapshot expiration for which the expiry was planned or requested; None without one.

    Raises:
        NotFound: The table is missing or has another format.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not maintain it, or not commit to it, or its location conflicts with that of
            another object, or the policy has changed since.
        CommitConflict: `TRIES_MAX` attempts conflicted with other commits.
        UnsupportedOperation: The catalog is federated.
        InvalidTable: The metadata cannot be read.
    """

    def look(request_view: RequestView) -> _ExpiryBase:
        node, chain, _ = maintained_table(request_view, path)
        request_view.defaults.location_conflicts.refuse(node.id, what="table")
        return _ExpiryBase(
            document=request_view.document(node.id),
            node=node,
            chain=chain,
            metalake_id=request_view.metalake.id,
            catalog=request_view.catalog.name,
        )

    for attempt in range(TRIES_MAX):
        base = await ctx.read(scope, look)
        plan, count = await _decide(ctx, base, path=path, planned=planned)
        try:
            await _commit(ctx, scope, path=path, base=base, plan=plan)
        except CommitConflict:
            if attempt == TRIES_MAX - 1:
                raise
            continue
        EXPIRED[()] += len(plan.removed)
        return ExpiryResult(plan.removed, plan.refs, count - len(plan.removed), plan.blocked)
    raise AssertionError("the last try returns or raises")


async def _decide(
    ctx: Context, base: _ExpiryBase, *, path: Levels, planned: PolicyTerms | None
) -> tuple[ExpiryPlan, int]:
    """Choose the snapshots to remove, from the metadata of a base.

    Returns the plan, and the table's count of snapshots; the count is 0 for a SQL++ dataset, and while the assessment
    is not complete. Raises PermissionDenied if the policy is not the planned one.
    """
    if isinstance(base.node.record, TableRecord) and base.node.record.statements:
        return ExpiryPlan((), (), {}, _DATASET), 0
    if not await assess_changes(ctx.services):
        return ExpiryPlan((), (), {}, _UNASSESSED), 0
    chain = [link.id for link in base.chain if link.id != base.metalake_id]
    policies = (await ctx.look_up(policies_load)).effective(chain)
    require_terms(planned, policies.get(SNAPSHOT_EXPIRATION))
    text = await snapshots_judge(
        ctx,
        "maintenance-expiry",
        document=base.document,
        metalake_id=base.metalake_id,
        path=(base.catalog, *path),
        policies=policies,
    )
    removed_ids, refs, blocked, count = msgspec.json.decode(
        text, type=tuple[tuple[int, ...], tuple[str, ...], str | None, int]
    )
    return ExpiryPlan(removed_ids, refs, {}, blocked), count


async def _commit(ctx: Context, scope: RequestScope, *, path: Levels, base: _ExpiryBase, plan: ExpiryPlan) -> None:
    """Commit a plan to the version of the table for which it was made. Raises CommitConflict if the table has changed
    since.
    """
    updates = expiry_updates(plan)
    if updates:
        requirements: list[object] = [{"type": "assert-table-uuid", "uuid": base.document.uuid}]
        await table_commit(
            ctx,
            scope,
            namespace=path[:-1],
            name=path[-1],
            requirements=requirements,
            updates=list(updates),
            version=base.document.version,
        )
