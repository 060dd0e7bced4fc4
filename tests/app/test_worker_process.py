# SPDX-License-Identifier: Apache-2.0
"""A worker process that cannot be started leaves no resources behind."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from limnos.app.worker_process import IDLE_S, IdleWorkers, WorkerProcess
from tests import clocks


def test_failed_process_start_leaks_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the machine cannot start another process, no socket leaks."""

    def fails(*_: object, **__: object) -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", fails)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="temporarily"):
        WorkerProcess("limnos.app.offload_worker")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_error_of_one_process_keeps_the_timer_of_idle_ones() -> None:
    """If an idle process cannot be ended, later idle processes are still ended after their time."""
    ended: list[str] = []

    class IdleProcess:
        def __init__(self, name: str) -> None:
            self.name = name
            self.used_at = 0.0

        def end(self) -> None:
            if self.name == "broken":
                raise OSError(errno.EIO, "Input/output error")
            ended.append(self.name)

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        idle = IdleWorkers()
        idle.add_idle(IdleProcess("broken"))  # type: ignore[arg-type]
        await asyncio.sleep(2 * IDLE_S)
        idle.add_idle(IdleProcess("later"))  # type: ignore[arg-type]
        await asyncio.sleep(3 * IDLE_S)

    clocks.run(story())

    assert ended == ["later"]
