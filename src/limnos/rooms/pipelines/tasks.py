# SPDX-License-Identifier: Apache-2.0
"""Background tasks of the room `pipelines`."""

from __future__ import annotations

from typing import Final

from limnos.app.task_kind import NoPayload, TaskKind, TaskOutcome, typed_runner
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.pipelines import declarations_prune

PRUNE_RUNS: Final = "prune-runs"
PRUNE_RUNS_EVERY_S: Final = 3600.0
RUNS_AT_ONCE: Final = 100
"""The number of runs that one transaction deletes, with their steps and findings."""


async def _prune_runs(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    if work.keep_runs_ms:
        while (
            await work.submit(lambda tx: tx.runs.prune(keep_ms=work.keep_runs_ms, limit=RUNS_AT_ONCE)) == RUNS_AT_ONCE
        ):
            pass
        while (
            await work.submit(lambda tx: tx.template_jobs.prune(keep_ms=work.keep_runs_ms, limit=RUNS_AT_ONCE))
            == RUNS_AT_ONCE
        ):
            pass
        await work.submit(declarations_prune)
    return TaskOutcome()


KINDS: Final = (
    TaskKind(name=PRUNE_RUNS, runner=typed_runner(NoPayload, _prune_runs), tries=5, every_s=PRUNE_RUNS_EVERY_S),
)
