"""A worker process that cannot be started leaves no resources behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from limnos.app.worker_process import WorkerProcess


def test_failed_process_start_leaks_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the machine cannot start another process, no socket leaks."""

    def fails(*_: object, **__: object) -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", fails)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="temporarily"):
        WorkerProcess("limnos.app.offload_worker")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
