# SPDX-License-Identifier: Apache-2.0
"""Background tasks of the room `sqlpp`."""

from __future__ import annotations

from typing import Final

from limnos.app.task_kind import TaskKind, result_runner
from limnos.rooms.sqlpp.services.definitions.dataset_tables import (
    DROP_UNFINISHED,
    UnfinishedDataset,
    unfinished_drop_run,
)
from limnos.rooms.sqlpp.services.execution.compaction_requests import CLEAN_UP, COMPACT, CompactPayload
from limnos.rooms.sqlpp.services.execution.compaction_task import LEASE_MS as COMPACT_LEASE_MS
from limnos.rooms.sqlpp.services.execution.compaction_task import compact_run

KINDS: Final = (
    TaskKind(
        name=COMPACT,
        runner=result_runner(CompactPayload, compact_run),
        tries=5,
        lease_ms=COMPACT_LEASE_MS,
        takes_long=True,
    ),
    TaskKind(
        name=CLEAN_UP,
        runner=result_runner(CompactPayload, compact_run),
        tries=5,
        lease_ms=COMPACT_LEASE_MS,
        takes_long=True,
    ),
    TaskKind(name=DROP_UNFINISHED, runner=result_runner(UnfinishedDataset, unfinished_drop_run), tries=5),
)
