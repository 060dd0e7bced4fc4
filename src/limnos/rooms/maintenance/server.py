# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `maintenance`: deletions by policies, pauses, and the executor of operations."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial

from limnos.app.maintenance_process import maintenance_process_of
from limnos.app.room_parts import LoopStart
from limnos.config.settings import Settings
from limnos.services.iceberg.rewrite_commits import ROW_DELETIONS
from limnos.services.maintenance.rewriting.pauses import REFRESH_EVERY_S, pauses_refresh
from limnos.services.maintenance.rewriting.row_retention import PolicyDeletions
from limnos.services.request.node_services import NodeServices


def register_deletions(services: NodeServices, settings: Settings) -> None:
    """Register the check of commits that delete rows by a policy."""
    del settings
    ROW_DELETIONS.put(services, PolicyDeletions())


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
