# SPDX-License-Identifier: Apache-2.0
"""A copy of the tree in which arguments are exchanged, and pytest that runs in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from conformance.swaps.places import MARKER, Place, exchange
from scripts.without_room import copy_without

_FAILED: Final = (1, 2)
"""pytest's exit codes for tests that failed, and for modules of tests that could not be imported."""
_NOT_STARTED: Final = 4
"""Its exit code if a `conftest.py` could not be imported."""
_NOTE: Final = """
from pathlib import Path

def note():
    try:
        Path({file!r}).touch()
    except OSError:
        pass  # a confined process
"""


class Trial(NamedTuple):
    """What became of an exchange."""

    word: str
    """`caught`, `survived`, or `not reached` if no test that was run came by."""
    test: str
    """The test that failed with the exchange, and passes without; empty for none."""
    modules: int
    seconds: float


class TrialTree:
    """A copy of the work tree for trials."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._cache, self._marker = folder / "cache", folder / "reached"
        copy_without((), self.root)
        (self.root / "src" / f"{MARKER}.py").write_text(_NOTE.format(file=str(self._marker)))

    def run(self, place: Place, stages: Iterable[list[str]], *, limit_s: float) -> Trial:
        """Exchange the arguments of a place and run groups of tests until one test notices, or the time is up.

        A test notices if it fails, and passes without the exchange.
        """
        file = self.root / place.path
        text = file.read_bytes()
        swap = exchange(text, place)
        assert swap is not None
        self._marker.unlink(missing_ok=True)
        start, modules, unrelated = time.monotonic(), 0, list[str]()
        for stage in stages:
            modules += len(stage)
            while (left := limit_s - (time.monotonic() - start)) > 0:
                file.write_bytes(swap.text)
                failed = self._failed(stage, without=unrelated, limit_s=left)
                file.write_bytes(text)
                if not failed:
                    break
                # By function: a test whose parameters come from the exchanged values does not exist without.
                functions = [each.partition("[")[0] for each in failed]
                if not set(failed) & set(self._failed(functions, without=unrelated, limit_s=limit_s)):
                    return Trial("caught", failed[0], modules, time.monotonic() - start)
                unrelated += failed
        word = "survived" if self._marker.exists() else "not reached"
        return Trial(word, "", modules, time.monotonic() - start)

    def _failed(self, tests: list[str], *, without: list[str], limit_s: float) -> list[str]:
        """Run tests until one fails; returns the ids of those that failed, none if the time is up.

        Raises RuntimeError if pytest itself cannot run.
        """
        shutil.rmtree(self._cache, ignore_errors=True)
        left_out = [f"--deselect={each}" for each in without]
        options = ["-x", "-q", "-p", "no:xdist", "-o", f"cache_dir={self._cache}", *left_out]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            return []
        if process.returncode in (0, 5):
            return []
        if process.returncode == _NOT_STARTED and "ImportError while loading conftest" in output:
            return tests[:1]
        file = self._cache / "v" / "cache" / "lastfailed"
        if process.returncode not in _FAILED or not file.exists():
            raise RuntimeError(f"pytest ended with code {process.returncode}:\n{output[-2000:]}")
        return list(json.loads(file.read_text(encoding="utf-8")))
