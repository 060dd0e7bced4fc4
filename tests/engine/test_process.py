"""The engine's process, before it has anything to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.app.engine_process import EngineProcess
from limnos.engine.wire import Start

pytestmark = pytest.mark.spark


def test_an_engine_whose_server_is_killed_leaves_nothing() -> None:
    """It ends by itself when nobody holds its control socket any more, and what lay in its scratch directory is gone."""
    process = EngineProcess(Start("http://127.0.0.1:1", "lake", "local", "256m", 3, 2, "", (), (), ()))
    spilled = Path(process.scratch, "blockmgr", "00")
    spilled.mkdir(parents=True)
    (spilled / "shuffle.data").write_bytes(b"what a statement has spilled")
    try:
        process.control.close()
        _, status = os.waitpid(process.pid, 0)

        assert os.WIFSIGNALED(status)
        assert not Path(process.scratch, "blockmgr").exists()
    finally:
        process.end()
