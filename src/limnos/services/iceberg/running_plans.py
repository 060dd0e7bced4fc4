"""Plans that are worked on by this node: who comes back for one finds it under way, and one that nobody comes back for is ended.

May import `model` and the standard library. Knows nothing of plans. A plan that is lost with its node is begun again by whoever asks next: it is a
function of its row in the store.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.node_services import ComponentKey

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
IDLE_S: Final = 90.0
"""How long nobody may ask for a plan before it is given up: clients wait a minute at most between two questions."""
PLANS_MAX: Final = 64
OWN_MAX: Final = 16
"""Of one user."""


class _RunningPlan:
    def __init__(self, task: asyncio.Task[Any], caller: str) -> None:
        self.task = task
        self.caller = caller
        self.timer: asyncio.TimerHandle | None = None


class RunningPlans:
    """What is under way here, by the id of its plan."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._held: dict[str, _RunningPlan] = {}

    async def outcome(
        self, plan_id: str, begin: Callable[[], Coroutine[object, object, T]], *, caller: str, wait_s: float
    ) -> T | None:
        """Return what came of a plan's work, begun now if it is not under way; None when that takes longer than the wait. Raises what it raises, Unavailable."""
        flight = self._held.get(plan_id) or self._begun(plan_id, begin, caller=caller)
        if flight.timer is not None:
            flight.timer.cancel()
        try:
            done, _ = await asyncio.wait((flight.task,), timeout=wait_s)
        except asyncio.CancelledError:
            self.end(plan_id)  # its client has gone
            raise
        if not done:
            flight.timer = asyncio.get_running_loop().call_later(self._idle_s, self.end, plan_id)
            return None
        self._held.pop(plan_id, None)
        found: T = flight.task.result()
        return found

    def _begun(self, plan_id: str, begin: Callable[[], Coroutine[object, object, T]], *, caller: str) -> _RunningPlan:
        own = sum(each.caller == caller for each in self._held.values())
        if len(self._held) >= PLANS_MAX or own >= OWN_MAX:
            raise ServiceUnavailable("Too many scans are planned at once: try again", retry_after_s=1)
        flight = self._held[plan_id] = _RunningPlan(asyncio.ensure_future(begin()), caller)
        return flight

    def end(self, plan_id: str) -> None:
        """End the work for a plan, if there is some."""
        flight = self._held.pop(plan_id, None)
        if flight is not None:
            flight.task.cancel()
            flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def __len__(self) -> int:
        return len(self._held)

    def close(self) -> None:
        """End all of it."""
        for plan_id in tuple(self._held):
            self.end(plan_id)


RUNNING_PLANS: ComponentKey[RunningPlans] = ComponentKey("flights", lambda _: RunningPlans())
