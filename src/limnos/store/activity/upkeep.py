# SPDX-License-Identifier: Apache-2.0
"""Cleanup of the store: deletes old rows of the change feed, and rows of objects that no longer exist.

Must not know schedules. Runs inside a transaction. A view that is older than the pruned feed starts empty.
"""

from __future__ import annotations

from limnos.store.activity import (
    lineage,
    maintenance,
    orphan_files,
    pipelines,
    reports,
    rewrites,
    runs,
    schedules,
    template_jobs,
    webhooks,
)
from limnos.store.changes import PRUNE_CHANGES, PRUNE_CLOCKS
from limnos.store.identity import access_answers, access_requests, restrictions, roles
from limnos.store.objects import (
    attachments,
    dependencies,
    fileset_locations,
    former_names,
    lance_versions,
    models,
    nesting,
    statistics,
    successors,
)
from limnos.store.sql import Sql
from limnos.store.transaction import StoreTransaction


def feed_prune(tx: StoreTransaction, *, keep_ms: int, audited: bool = False) -> int:
    """Delete change rows older than `keep_ms`, after storing the pruned revision in the clocks.

    Returns the number of deleted rows. With `audited`, rows that have no audit record yet are not deleted.
    """
    tx.count(PRUNE_CLOCKS, {"before": tx.now_ms - keep_ms, "unaudited": not audited})
    return tx.count(PRUNE_CHANGES, {})


SWEEPS: tuple[Sql, ...] = (
    successors.SWEEP,
    access_answers.SWEEP,
    access_requests.SWEEP,
    roles.SWEEP,
    *attachments.SWEEPS,
    webhooks.SWEEP,
    reports.SWEEP,
    restrictions.SWEEP,
    former_names.SWEEP,
    pipelines.SWEEP,
    schedules.SWEEP,
    *runs.SWEEPS,
    *template_jobs.SWEEPS,
    *lineage.SWEEPS,
    *maintenance.SWEEPS,
    *orphan_files.SWEEPS,
    *rewrites.SWEEPS,
    lance_versions.SWEEP,
    *statistics.SWEEPS,
    fileset_locations.SWEEP,
    dependencies.SWEEP,
    *models.SWEEPS,
    *nesting.SWEEPS,
)
"""For each table whose rows a drop does not delete, the statement that deletes the rows of objects that no longer
exist.
"""


def orphans_sweep(tx: StoreTransaction) -> int:
    """Delete rows that belong to permanently dropped objects, such as grants; ids of objects are never reused.

    Returns the number of deleted rows.
    """
    return sum(tx.count(statement, {"now": tx.now_ms}) for statement in SWEEPS)
