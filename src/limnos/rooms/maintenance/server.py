# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `maintenance`: checks of commits, built-in jobs, pauses, the executor of operations."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial

from limnos.app.room_parts import LoopStart
from limnos.config.settings import Settings
from limnos.rooms.maintenance.app.maintenance_process import maintenance_process_of
from limnos.rooms.maintenance.services.builtin_jobs import MaintenanceJobs
from limnos.rooms.maintenance.services.rewriting.pauses import REFRESH_EVERY_S, pauses_refresh
from limnos.rooms.maintenance.services.rewriting.rewrite_commits import RewriteCommits
from limnos.rooms.maintenance.services.spans.queue import LeasedSpans
from limnos.services.iceberg.rewrite_commits import OPERATION_COMMITS
from limnos.services.iceberg.spans.executors import SPAN_EXECUTORS
from limnos.services.request.node_services import NodeServices
from limnos.services.runs.builtin_jobs import BUILTIN_JOBS


def register_parts(services: NodeServices, settings: Settings) -> None:
    """Register the check of commits of operations, the executors of restricted files, and built-in job templates."""
    del settings
    OPERATION_COMMITS.put(services, RewriteCommits())
    SPAN_EXECUTORS.put(services, LeasedSpans())
    BUILTIN_JOBS.put(services, MaintenanceJobs())


def pauses_loop(start: LoopStart) -> Coroutine[object, object, None]:
    """Return the loop that computes the delays of operations again."""
    loop = start.services.loops.add("maintenance pauses", every_s=REFRESH_EVERY_S)
    return loop.run(partial(pauses_refresh, start.services))


def executor_loop(start: LoopStart) -> Coroutine[object, object, None] | None:
    """Return the loop that keeps the executor of operations running; None if the settings disable it."""
    if start.settings.maintenance.executor != "local":
        return None
    process = maintenance_process_of(start.settings, start.services, bound=start.bound())
    return None if process is None else process.run()
