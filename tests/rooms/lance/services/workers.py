# SPDX-License-Identifier: Apache-2.0
"""Fake worker processes for Lance tables: they record their requests and write no rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import msgspec

from limnos.rooms.lance.services.workers import WorkerTask
from limnos.rooms.lance.sources.questions import LanceWriteResult

DONE = LanceWriteResult(version=1, transaction_id="uuid", inserted=3)


class FakeLanceWorkers:
    """Fake worker processes that write a manifest, or do what a test defines, and record their requests."""

    def __init__(self, act: Callable[[WorkerTask], Awaitable[None]] | None = None) -> None:
        self._act = act
        self.asked: list[dict[str, object]] = []

    async def _done(self, worker_task: WorkerTask) -> None:
        self.asked.append({"name": worker_task.name.decode(), **msgspec.json.decode(worker_task.question)})
        await worker_task.begin()
        if self._act is not None:
            await self._act(worker_task)

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """Answer a request according to its kind."""
        await self._done(worker_task)
        return b"3" if worker_task.name == b"Count" else msgspec.json.encode(DONE)

    async def feed(self, worker_task: WorkerTask, body: AsyncGenerator[bytes, None]) -> bytes:
        """Consume the body, then create a version."""
        async for _ in body:
            pass
        await self._done(worker_task)
        (Path(worker_task.table) / "_versions").mkdir(parents=True, exist_ok=True)
        return msgspec.json.encode(DONE)

    async def stream(self, worker_task: WorkerTask) -> AsyncGenerator[bytes, None]:
        """Yield two pieces, then one that the test defines."""
        self.asked.append({"name": worker_task.name.decode()})
        yield b"one"
        yield b"two"
        if self._act is not None:
            await self._act(worker_task)
            yield b"three"

    def close(self) -> None:
        """No-op: nothing is running."""


def lay(root: Path, name: str) -> Path:
    """Create files that have the layout of a table. Returns the location."""
    (root / name / "_versions").mkdir(parents=True)
    return root / name
