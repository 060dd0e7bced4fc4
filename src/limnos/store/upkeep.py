"""What keeps the store small: old rows of the change feed, and what hung on objects that are gone.

May import this room. Runs inside a transaction; a view that sleeps past the pruned feed starts afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.store import (
    attachments,
    dependencies,
    fileset_locations,
    lance_versions,
    lineage,
    models,
    nesting,
    pipelines,
    reports,
    restrictions,
    roles,
    runs,
    statistics,
    template_jobs,
    webhooks,
)
from limnos.store.changes import PRUNE_CHANGES, PRUNE_CLOCKS

if TYPE_CHECKING:
    from limnos.store.sql import Sql
    from limnos.store.transaction import StoreTransaction


def feed_prune(tx: StoreTransaction, *, keep_ms: int, audited: bool = False) -> int:
    """Delete change rows older than this, after noting in the clocks how far; returns how many.

    `audited`: an audit is kept, so what it has not read stays.
    """
    tx.count(PRUNE_CLOCKS, {"before": tx.now_ms - keep_ms, "unaudited": not audited})
    return tx.count(PRUNE_CHANGES, {})


SWEEPS: tuple[Sql, ...] = (
    roles.SWEEP, *attachments.SWEEPS, webhooks.SWEEP, reports.SWEEP, restrictions.SWEEP, pipelines.SWEEP, *runs.SWEEPS, *template_jobs.SWEEPS, *lineage.SWEEPS,
    lance_versions.SWEEP, *statistics.SWEEPS, fileset_locations.SWEEP,
    dependencies.SWEEP, *models.SWEEPS, *nesting.SWEEPS,
)  # fmt: skip
"""For each table whose rows a drop leaves behind, the statement that deletes those of objects that are gone."""


def orphans_sweep(tx: StoreTransaction) -> int:
    """Delete what hung on objects that were dropped, such as grants (their ids never come back); returns how many."""
    return sum(tx.count(statement, {}) for statement in SWEEPS)
