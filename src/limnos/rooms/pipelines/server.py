# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `pipelines`: the loop that starts scheduled pipelines."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Final

from limnos.app.room_parts import LoopStart
from limnos.rooms.pipelines.services.schedule_starts import schedules_step
from limnos.services.runs.job_rules import JOB_RULES

EVERY_S: Final = 2.0
"""The time between two looks at the schedules, in seconds."""


def schedules_loop(start: LoopStart) -> Coroutine[object, object, None] | None:
    """Return the loop that starts what is due; None if this server runs no scheduled pipelines."""
    services, rules = start.services, JOB_RULES.of(start.services)
    if not (rules.enabled and rules.pipelines):
        return None

    async def step() -> None:
        if JOB_RULES.of(services).is_confinable:
            await schedules_step(services)

    return services.loops.add("schedules", every_s=EVERY_S).run(step)
