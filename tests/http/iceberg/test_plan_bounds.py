# SPDX-License-Identifier: Apache-2.0
"""Limits of scan plans: memory, disconnected clients, many requests of one caller, scans that read too much."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from limnos.app.fair_queue import FairQueue
from limnos.app.node_builder import SCANS_HELD, SCANS_HELD_OWN, SCANS_WAITING_OWN
from limnos.http.iceberg import plans
from limnos.services.iceberg import scans
from limnos.services.iceberg.policy_enforcement import rewriting_caller
from limnos.services.iceberg.running_plans import RUNNING_PLANS
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER, SCAN_QUEUE
from tests.http.driver import DriverAnswer, DriverNode, grant
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.http.iceberg.test_restriction_bypasses import InlineRewrites
from tests.http.iceberg.test_restrictions import words

pytestmark = pytest.mark.slow

CROWD = 40


class Stuck(InlineRewrites):
    """Executes all offloaded work, except that of one caller, which waits until the test releases or ends it."""

    def __init__(self, name: str, *, caller: str) -> None:
        self.name, self.caller = name, caller
        self.began = self.ended = 0
        self.let = asyncio.Event()

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        if (name, caller) != (self.name, self.caller):
            return await super().do(name, *parts, caller=caller)
        self.began += 1
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return await super().do(name, *parts, caller=caller)


@pytest.fixture
def table(lake: DriverNode) -> RestrictedTable:
    """The restricted table, on a node with the scan queue of a real server."""
    restricted_table = RestrictedTable(lake, manifests=3)
    SCAN_QUEUE.put(lake.built.services, turns_of())
    return restricted_table


def turns_of() -> FairQueue:
    """Return the scan queue of a server."""
    return FairQueue(SCANS_HELD, limits={"caller": SCANS_HELD_OWN}, waits={"caller": SCANS_WAITING_OWN})


@pytest.mark.parametrize(
    "user,stage,at_once",
    [
        ("bob", "scan-residual", 1),
        ("bob", "scan-manifests", 1),
        ("bob", "scan-tasks", 1),
        ("bob", "restrict-file", 4),
        ("admin", "scan-manifests", 1),
        ("admin", "scan-tasks", 1),
    ],
)
def test_client_disconnect_ends_the_plan(
    table: RestrictedTable, monkeypatch: pytest.MonkeyPatch, user: str, stage: str, at_once: int
) -> None:
    """If the client disconnects at any stage of a plan, the work ends and frees its slot in the queue."""
    monkeypatch.setattr(plans, "LOOK_S", 0.01)
    offloader = Stuck(stage, caller=rewriting_caller(user) if stage == "restrict-file" else user)
    SCAN_OFFLOADER.put(table.node.built.services, offloader)
    body = {"filter": {"type": "eq", "term": "id", "value": 1}}

    async def story() -> tuple[DriverAnswer, int]:
        answer = await table.node.answer(
            "POST", f"{table.path}/plan", body, user=user, is_gone=lambda: offloader.began >= at_once
        )
        async with (
            SCAN_QUEUE.of(table.node.built.services).turn((("caller", user),)),
            SCAN_QUEUE.of(table.node.built.services).turn((("caller", user),)),
        ):
            return answer, len(RUNNING_PLANS.of(table.node.built.services))

    answer, flights = table.node.runner.run(story())

    assert (answer.status, "disconnected" in words(answer), flights) == (400, True, 0)
    assert (offloader.began, offloader.ended) == (at_once, at_once)


def test_concurrent_plans_per_caller_are_limited(table: RestrictedTable) -> None:
    """Two plans of one caller run, some wait, and others are refused with `Retry-After`. Another caller's plan runs
    immediately.
    """
    grant(table.node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    offloader = Stuck("scan-manifests", caller="bob")
    SCAN_OFFLOADER.put(table.node.built.services, offloader)
    room = SCANS_HELD_OWN + SCANS_WAITING_OWN

    async def story() -> tuple[list[DriverAnswer], DriverAnswer, list[DriverAnswer]]:
        ask = [
            asyncio.ensure_future(table.node.answer("POST", f"{table.path}/plan", {}, user="bob")) for _ in range(CROWD)
        ]
        refused = [await done for _, done in zip(range(CROWD - room), asyncio.as_completed(ask), strict=False)]
        other = await table.node.answer("POST", f"{table.path}/plan", {}, user="ana")
        at_work = offloader.began
        offloader.let.set()
        answers = await asyncio.gather(*ask)
        assert at_work == SCANS_HELD_OWN
        return refused, other, answers

    refused, other, answers = table.node.runner.run(story())

    assert {(each.status, each.headers["retry-after"]) for each in refused} == {(503, "2")}
    assert other.status == 200
    assert Counter(each.status for each in answers) == {200: room, 503: CROWD - room}


@pytest.mark.parametrize("user", ["bob", "admin"])
def test_plan_beyond_byte_limit_of_a_step_returns_406(
    table: RestrictedTable, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """A plan whose manifests exceed a step's byte limit is refused with 406, whatever sizes the manifest list states.
    The next plan runs.
    """
    sizes = [Path(str(each["manifest_path"]).removeprefix("file://")).stat().st_size for each in table.told]
    monkeypatch.setattr(scans, "READ_BYTES_MAX", sum(sizes) - 1)

    refused = table.plan(user=user)
    monkeypatch.setattr(scans, "READ_BYTES_MAX", sum(sizes))

    assert refused.status == 406
    assert "manifests" in words(refused)
    assert table.plan(user=user).status == 200
