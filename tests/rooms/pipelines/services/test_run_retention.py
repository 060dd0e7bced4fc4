# SPDX-License-Identifier: Apache-2.0
"""The task that deletes old runs."""

from __future__ import annotations

from uuid import uuid4

import pytest

from limnos.app.task_kinds import KINDS
from limnos.files import allow_everything
from limnos.model.permits import upkeep_permit
from limnos.rooms.pipelines.services.declarations import pipeline_put
from limnos.rooms.pipelines.services.run_attempts import RunBegin, run_finish, run_start
from limnos.rooms.pipelines.tasks import PRUNE_RUNS, RUNS_AT_ONCE
from limnos.services.request.task_context import TaskContext
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk

DAY_MS = 86_400_000


def runs(desk: ServiceDesk, count: int) -> None:
    """Create failed runs, each of its own version."""
    for number in range(count):
        declaration = b'{"n": %d}' % number
        desk.run(pipeline_put(desk.ctx(), metalake=LAKE, name="nyc", declaration=declaration, comment=None))
        begin = RunBegin(uuid=str(uuid4()), holder="h:1", lease_ms=30_000, parameters="{}", options="{}", steps=())
        started_run = desk.run(run_start(desk.ctx(), metalake=LAKE, pipeline="nyc", begin=begin))
        desk.run(
            run_finish(desk.ctx(), metalake=LAKE, uuid=started_run.run.uuid, attempt=1, state="failed", message=None)
        )


@pytest.mark.parametrize("keep_ms,left", [(90 * DAY_MS, (1, 2)), (0, (RUNS_AT_ONCE + 3, RUNS_AT_ONCE + 3))])
def test_old_runs_and_their_unused_versions_are_deleted(desk: ServiceDesk, keep_ms: int, left: tuple[int, int]) -> None:
    """With a limit, the task deletes all runs that ended before it and the versions that have no other runs. Without a
    limit it deletes nothing.
    """
    runs(desk, RUNS_AT_ONCE + 3)
    desk.lab.database.sql(
        f"UPDATE pipeline_run SET ended_at = ended_at - {100 * DAY_MS} WHERE id <> (SELECT min(id) FROM pipeline_run)"
    )
    work = TaskContext(
        0,
        store=desk.lab.store,
        permit=upkeep_permit("test"),
        allowed=allow_everything(),
        warehouse="file:/w",
        lease_ms=30_000,
        keep_runs_ms=keep_ms,
    )

    desk.run(KINDS[PRUNE_RUNS].runner(work, "{}"))  # type: ignore[arg-type]

    assert (
        desk.rows("SELECT count(*) FROM pipeline_run")[0][0],
        desk.rows("SELECT count(*) FROM pipeline_version")[0][0],
    ) == left
