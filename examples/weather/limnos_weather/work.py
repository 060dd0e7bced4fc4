# SPDX-License-Identifier: Apache-2.0
"""The task and the loop of the room."""

from __future__ import annotations

from collections.abc import Coroutine

from limnos.app.room_parts import LoopStart
from limnos.app.task_kind import NoPayload, TaskKind, TaskOutcome, typed_runner
from limnos.services.request.task_context import TaskContext

SEEN: dict[str, str] = {}


async def _look(_work: TaskContext, _payload: NoPayload) -> TaskOutcome:
    return TaskOutcome()


async def _remember(place: str) -> None:
    SEEN["place"] = place


def loop(start: LoopStart) -> Coroutine[object, object, None]:
    """Return a loop that remembers the place of the settings, and ends."""
    return _remember(start.settings.section("weather").place)


KINDS = (TaskKind(name="look-at-the-sky", runner=typed_runner(NoPayload, _look), tries=5, every_s=60.0),)
