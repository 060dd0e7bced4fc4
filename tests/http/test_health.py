# SPDX-License-Identifier: Apache-2.0
"""Health checks of a node whose background work fails: it serves, and says which work fails and since when."""

from __future__ import annotations

import asyncio

import pytest

from limnos.services.request.concurrency.background_loops import FAILING
from tests.http.driver import DriverNode

SECRET = "table webhook at db.internal"


def attempt(node: DriverNode, *, fails: bool) -> None:
    """Let a background loop of the node try once."""

    async def step() -> None:
        if fails:
            raise RuntimeError(SECRET)

    async def story() -> None:
        loops = node.built.services.loops
        loop = loops._loops.get("webhooks") or loops.add("webhooks", every_s=2.0)
        await loop.attempt(step)
        await asyncio.sleep(0)

    node.runner.run(story())


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/api/health/ready"])
def test_node_with_failing_background_work_is_ready_and_degraded(node: DriverNode, path: str) -> None:
    """While webhooks fail, readiness is 200 and UP with the state `degraded`, and names the work and the time, but not
    the error. Liveness says nothing of it.
    """
    attempt(node, fails=True)

    answer, live = node.get(path, user=None), node.get("/health/live", user=None)

    (check,) = [each for each in answer.json()["checks"] if each["name"] == "webhooks"]
    assert (answer.status, answer["status"], answer["state"]) == (200, "UP", "degraded")
    assert check["status"] == "UP"
    assert check["details"]["reason"].startswith("Failing since 20")
    assert SECRET not in answer.body.decode()
    assert "state" not in live.json()
    assert FAILING["webhooks",] == 1


def test_node_is_no_longer_degraded_when_the_work_succeeds(node: DriverNode) -> None:
    """The first success ends the state `degraded`."""
    attempt(node, fails=True)
    attempt(node, fails=False)

    answer = node.get("/health/ready", user=None)

    assert "state" not in answer.json()
    assert [check["name"] for check in answer.json()["checks"]] == ["store"]


def test_store_that_does_not_answer_is_down_whatever_the_background_work_does(node: DriverNode) -> None:
    """Failing background work does not turn a 503 into a 200."""
    attempt(node, fails=True)
    node.built.services.gate.store._reader.close()

    answer = node.get("/health/ready", user=None)

    assert (answer.status, answer["status"]) == (503, "DOWN")


def test_node_is_degraded_while_a_step_does_not_end(node: DriverNode) -> None:
    """While a step has not ended in its time, readiness is 200 with the state `degraded`, and says since when."""

    async def begin() -> asyncio.Task[bool]:
        loop = node.built.services.loops.add("webhooks", every_s=2.0)
        loop.step_s_max = 0.0
        running = asyncio.create_task(loop.attempt(asyncio.Event().wait))
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        return running

    async def end(running: asyncio.Task[bool]) -> None:
        running.cancel()
        await asyncio.wait([running])

    running = node.runner.run(begin())
    answer = node.get("/health/ready", user=None)
    node.runner.run(end(running))

    (check,) = [each for each in answer.json()["checks"] if each["name"] == "webhooks"]
    assert (answer.status, answer["state"]) == (200, "degraded")
    assert check["details"]["reason"].startswith("Has not ended since 20")
    assert "state" not in node.get("/health/ready", user=None).json()
