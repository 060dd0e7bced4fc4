# SPDX-License-Identifier: Apache-2.0
"""The caller's end of a process that answers JSON lines: a driver, or a driver's part in another language.

Job: start it, call it, abandon it after a timeout, stop it. May import what a place is. It must not know the checks.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from conformance.engines.archives import wheels
from conformance.engines.driver import Place

ROOT = Path(__file__).parents[2]
Start = Callable[[], tuple[list[str], dict[str, str]]]
"""Returns a driver's command and environment, after fetching their dependencies."""
_ANSWER_S = 240
_STOP_S = 30


def hosted(engine: str, *wheel_names: str) -> Start:
    """Return the start of a driver in Python, with additional wheels."""

    def start() -> tuple[list[str], dict[str, str]]:
        paths = [*(str(wheels(name)) for name in wheel_names), str(ROOT)]
        return [sys.executable, "-m", "conformance.engines.host", engine], {"PYTHONPATH": ":".join(paths)}

    return start


class CallRefused(Exception):
    """The engine's message when it refused a call."""


@dataclass
class Lines:
    """A process that receives JSON lines, a verb with arguments each, and answers each with a line."""

    command: Sequence[str]
    environment: dict[str, str]
    log: Path

    def open(self, work: Path) -> None:
        """Start the process in its own folder."""
        work.mkdir(parents=True, exist_ok=True)
        self._answers: queue.Queue[str] = queue.Queue()
        with self.log.open("ab") as log:
            self._process = self._started(work, log)
        self._pump = threading.Thread(target=_pump, args=(self._process.stdout, self._answers), daemon=True)
        self._pump.start()

    def _started(self, folder: Path, log: IO[bytes]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            list(self.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            encoding="utf-8",
            env={**os.environ, "TZ": "UTC", "PYTHONPATH": str(ROOT), **self.environment},
        )

    def ask(self, verb: str, *arguments: object) -> Any:  # noqa: ANN401 - what the verb gives
        """Return a verb's result.

        Raises Refused with the engine's message, or if the process ended or did not answer.
        """
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps([verb, list(arguments)]) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=_ANSWER_S)
        except queue.Empty:
            self._process.kill()
            raise CallRefused(f"no answer within {_ANSWER_S} s: ended") from None
        except OSError:
            raise CallRefused("its process has ended") from None
        if not line:
            self._answers.put(line)  # the process remains ended
            raise CallRefused("its process has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise CallRefused(answer["error"])
        return answer.get("told")

    def stop(self) -> None:
        """Close the input, which ends the process."""
        assert self._process.stdin
        try:
            self._process.stdin.close()
            self._process.wait(timeout=_STOP_S)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._pump.join(timeout=_STOP_S)


@dataclass(kw_only=True)
class Remote(Lines):
    """A driver in another process: `ask("create", levels, name)`."""

    title: str = ""
    dialect: str = ""
    limits: dict[str, str] = field(default_factory=dict)
    is_remote: bool = False

    def start(self, place: Place) -> None:
        """Start the process and the engine in it. Raises Refused with the engine's message."""
        self.open(place.work)
        self.is_remote = place.is_remote
        description = self.ask("start", {**asdict(place), "work": str(place.work)})
        self.title, self.dialect, self.limits = description["title"], description["dialect"], description["limits"]


def _pump(lines: IO[str] | None, answers: queue.Queue[str]) -> None:
    assert lines
    with lines:
        for line in lines:
            answers.put(line)
    answers.put("")
