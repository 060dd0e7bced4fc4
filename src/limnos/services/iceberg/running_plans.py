# SPDX-License-Identifier: Apache-2.0
"""Running plans: the scan plans that this node is computing.

Later requests for a plan wait for the same computation; the computation of an abandoned plan is cancelled.

Must not know the content of a plan. If a node fails, the next request computes the plan again from its row in the
store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.node_services import ComponentKey

T = TypeVar("T")
IDLE_S: Final = 90.0
"""The time after which a plan without requests is cancelled, in seconds; clients wait at most a minute between two
requests.
"""
PLANS_MAX: Final = 64
OWN_MAX: Final = 16
"""The maximum number of running plans of one user."""


class _RunningPlan:
    def __init__(self, task: asyncio.Task[Any], caller: str) -> None:
        self.task = task
        self.caller = caller
        self.timer: asyncio.TimerHandle | None = None


class RunningPlans:
    """The scan plans that this node is computing, by plan id."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._held: dict[str, _RunningPlan] = {}

    async def outcome(
        self, plan_id: str, begin: Callable[[], Coroutine[object, object, T]], *, caller: str, wait_s: float
    ) -> T | None:
        """Return the result of a plan, and start its computation if it is not running.

        Args:
            plan_id: The id of the plan.
            begin: Starts the computation.
            caller: The user, whose number of concurrent plans is limited.
            wait_s: The maximum time to wait for the result, in seconds.

        Returns:
            The result; None if it takes longer.

        Raises:
            ServiceUnavailable: Too many plans run. Also raises the errors of the computation.
        """
        flight = self._held.get(plan_id) or self._begin_plan(plan_id, begin, caller=caller)
        if flight.timer is not None:
            flight.timer.cancel()
        try:
            finished_tasks, _ = await asyncio.wait((flight.task,), timeout=wait_s)
        except asyncio.CancelledError:
            self.end(plan_id)  # the client has gone
            raise
        if not finished_tasks:
            flight.timer = asyncio.get_running_loop().call_later(self._idle_s, self.end, plan_id)
            return None
        self._held.pop(plan_id, None)
        result: T = flight.task.result()
        return result

    def _begin_plan(
        self, plan_id: str, begin: Callable[[], Coroutine[object, object, T]], *, caller: str
    ) -> _RunningPlan:
        running_count = sum(each.caller == caller for each in self._held.values())
        if len(self._held) >= PLANS_MAX or running_count >= OWN_MAX:
            raise ServiceUnavailable("Too many scans are being planned: try again", retry_after_s=1)
        flight = self._held[plan_id] = _RunningPlan(asyncio.ensure_future(begin()), caller)
        return flight

    def end(self, plan_id: str) -> None:
        """Cancel a plan's computation, if it is running."""
        flight = self._held.pop(plan_id, None)
        if flight is not None:
            flight.task.cancel()
            flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def __len__(self) -> int:
        return len(self._held)

    def close(self) -> None:
        """Cancel all running computations."""
        for plan_id in tuple(self._held):
            self.end(plan_id)


RUNNING_PLANS: ComponentKey[RunningPlans] = ComponentKey("flights", lambda _: RunningPlans())
