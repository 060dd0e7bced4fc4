# SPDX-License-Identifier: Apache-2.0
"""A fake executor of files for restricted users, which uses the real routes while a plan waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from limnos.rooms.maintenance.engine.span_files import write_span
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.http.iceberg.test_restricted_sharing import CountingOffloader
from tests.rooms.maintenance.services.histories import MAINTENANCE
from tests.rooms.maintenance.services.rewriting.executor import LEASES, OPERATIONS

T = TypeVar("T")
TRIES = 400


def make_table(lake: DriverNode, *, spans_min: int = 2) -> RestrictedTable:
    """Create the table of four files, whose spans executors write if more than `spans_min` are missing."""
    table = RestrictedTable(lake)
    SCAN_OFFLOADER.put(lake.built.services, CountingOffloader())
    steer(lake, restricted_executor_spans=spans_min)
    return table


@dataclass
class SpanExecutor:
    """A fake executor with a holder name. Its requests run in coroutines, beside the plan that waits."""

    node: DriverNode
    holder: str = "one"
    leased: list[dict[str, Any]] = field(default_factory=list)

    async def lease(self) -> dict[str, Any] | None:
        """Lease an operation. Returns it; None if none waits."""
        answer = await self.node.answer("POST", LEASES, {"holder": self.holder, "limit": 1})
        assert answer.status == 200, answer.body
        operations: list[dict[str, Any]] = answer.json()["operations"]
        self.leased += operations
        return operations[0] if operations else None

    async def await_operation(self) -> dict[str, Any]:
        """Lease the next operation, as soon as there is one."""
        for _ in range(TRIES):
            if operation := await self.lease():
                return operation
            await asyncio.sleep(0.02)
        raise AssertionError("no operation was queued")

    async def request(self, operation: dict[str, Any], what: str, body: object) -> DriverAnswer:
        """Send a request about an operation with its token."""
        target = f"{MAINTENANCE}/operations/{operation['operation']}/{what}"
        token = f"Bearer {operation['token']}"
        return await self.node.answer("POST", target, body, user=None, authorization=token)

    async def spans(self, operation: dict[str, Any], *, after: int = -1, limit: int = 16) -> dict[str, Any]:
        """Fetch spans."""
        answer = await self.request(operation, "spans", {"after": after, "limit": limit})
        assert answer.status == 200, answer.body
        return answer.json()

    async def write(self, operation: dict[str, Any], batch: dict[str, Any]) -> list[DriverAnswer]:
        """Write and report the spans of a batch. Returns the answers to the reports."""
        answers = []
        for each in batch["spans"]:
            report = {"name": each["name"], "files": write_span(request_of(batch, each))}
            answers.append(await self.request(operation, "files", report))
        return answers

    async def end(self, operation: dict[str, Any], outcome: str = "done") -> None:
        """Report the end of an operation."""
        body = {"holder": self.holder, "outcome": outcome, "text": "written"}
        answer = await self.node.answer("POST", f"{OPERATIONS}/{operation['operation']}/report", body)
        assert answer.json()["accepted"], answer.body

    async def execute(self) -> list[DriverAnswer]:
        """Execute the next operation. Returns the answers to the reports."""
        operation = await self.await_operation()
        answers = await self.write(operation, await self.spans(operation))
        await self.end(operation)
        return answers


def request_of(batch: dict[str, Any], span: dict[str, Any]) -> bytes:
    """Return the request for a span of a batch, as JSON."""
    return msgspec.json.encode(batch["common"] | {key: value for key, value in span.items() if key != "number"})


def plan_beside(
    table: RestrictedTable, work: Callable[[SpanExecutor], Awaitable[T]], *, user: str = "bob"
) -> tuple[DriverAnswer, T]:
    """Plan a scan of a restricted user while an executor works that has asked before. Returns the answer, and the
    result of the work.
    """

    async def run() -> tuple[DriverAnswer, T]:
        executor = SpanExecutor(table.node)
        assert await executor.lease() is None
        plan = asyncio.create_task(table.node.answer("POST", f"{table.path}/plan", {}, user=user))
        try:
            result = await work(executor)
            return await plan, result
        finally:
            plan.cancel()

    return table.node.runner.run(run())
