# SPDX-License-Identifier: Apache-2.0
"""Row retention: the condition for the rows that an operation deletes, from the current policy, and requests for such
operations.

Must not know leases or Spark. The column and the age come from the effective policy alone, never from a request, and
the rows are deleted with the rights of the operation's user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from limnos.formats.gravitino.policies import ROW_RETENTION
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.row_retention import RETENTION, RetentionTerms, retention_terms
from limnos.rooms.maintenance.formats.table_metadata import metadata_of
from limnos.rooms.maintenance.services.assessing import effective_policies
from limnos.rooms.maintenance.services.policies import EffectivePolicy, PolicyTerms, retention_rule
from limnos.rooms.maintenance.services.rewriting.kinds import RewriteOptions
from limnos.rooms.maintenance.services.rewriting.planning import RETENTION_INTERVAL_MS, rewrite_request
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.maintenance import FindingRow, done_since
from limnos.store.activity.rewrites import options_read

_NO_POLICY: Final = (
    f"No enabled policy of type {ROW_RETENTION} applies to the table: attach one to it, its schema or catalog"
)

_CHANGED: Final = "The policy of row retention has changed since this was planned or requested: no row is deleted"
_ENDED: Final = "The policy no longer deletes the rows that this operation was leased for. Nothing was committed"
NO_LANCE: Final = f"no row is deleted: policies of type {ROW_RETENTION} are executed on Iceberg tables alone"
"""The reason why a policy of row retention does nothing on a Lance table."""


async def terms_of(services: NodeServices, document: MetadataDocument) -> RetentionTerms:
    """Return the condition for the rows of a table that its current policy deletes.

    Raises BadRequest if no policy applies, or if its column is missing or of another type.
    """
    policies = await effective_policies(services, document.node_id)
    return _terms_of(document, policies, now_ms=services.store.time.now_ms())


async def planned_terms(
    services: NodeServices, document: MetadataDocument, *, planned: PolicyTerms | None, is_exact: bool
) -> RetentionTerms:
    """Return the condition for the rows that an operation deletes, by the policy for which it was planned.

    Raises as `terms_of`, and BadRequest if another policy applies now, or one with another author; with `is_exact`
    also if its content has changed, because the operation acts for the user who requested it.
    """
    policies = await effective_policies(services, document.node_id)
    terms = _terms_of(document, policies, now_ms=services.store.time.now_ms())
    policy = policies[ROW_RETENTION]
    if planned is None or not planned.has_authors_of(policy) or (is_exact and planned != policy.terms):
        raise BadRequest(_CHANGED)
    return terms


def _terms_of(document: MetadataDocument, policies: Mapping[str, EffectivePolicy], *, now_ms: int) -> RetentionTerms:
    rule = retention_rule(policies)
    if rule is None:
        raise BadRequest(_NO_POLICY)
    return retention_terms(metadata_of(document.body), rule, now_ms=now_ms)


async def deletion_require(ctx: Context, document: MetadataDocument, *, operation: int) -> None:
    """Require that the policy still deletes all rows for whose deletion an operation was leased.

    Raises PermissionDenied if the policy or its column was removed or changed since the lease.
    """
    text = await ctx.look_up(partial(options_read, operation))
    stored_options = RewriteOptions() if text is None else msgspec.json.decode(text, type=RewriteOptions)
    leased = stored_options.terms
    try:
        now = await planned_terms(
            ctx.services, document, planned=stored_options.policy, is_exact=stored_options.is_requested
        )
    except BadRequest as error:
        raise PermissionDenied(f"{_ENDED}. {error.message}") from None
    if leased is None or now[:2] != leased[:2] or now.before < leased.before:
        raise PermissionDenied(_ENDED)


def retention_refusals(
    document: MetadataDocument, policies: Mapping[str, EffectivePolicy], *, now_ms: int
) -> tuple[str, ...]:
    """Return the reasons why a table's policy of row retention cannot be executed; empty if it can, or if there is no
    policy.
    """
    rule = retention_rule(policies)
    try:
        if rule is not None:
            retention_terms(metadata_of(document.body), rule, now_ms=now_ms)
    except BadRequest as error:
        return (f"no row is deleted: {error.message}",)
    return ()


async def without_retained(ctx: Context, rows: Sequence[FindingRow]) -> list[FindingRow]:
    """Return the findings without those about old rows of tables whose rows were deleted in the last day."""
    tables = [row.node_id for row in rows if row.kind == RETENTION]
    if not tables:
        return [*rows]
    since_ms = ctx.services.store.time.now_ms() - RETENTION_INTERVAL_MS
    retained_ids = await ctx.look_up(lambda: done_since(tables, kind=RETENTION, since_ms=since_ms))
    return [row for row in rows if row.kind != RETENTION or row.node_id not in retained_ids]


async def retention_request(ctx: Context, scope: RequestScope, *, path: Levels) -> int:
    """Request the deletion, on behalf of the caller, of the rows that are older than the table's policy allows.

    Returns the id of the operation, new or already open. Raises as `maintained_table`, and BadRequest if no policy
    requires a deletion.
    """

    def look(request_view: RequestView) -> MetadataDocument:
        return request_view.document(maintained_table(request_view, path).entity.id)

    await terms_of(ctx.services, await ctx.read(scope, look))
    return await rewrite_request(ctx, scope, path=path, kind=RETENTION)
