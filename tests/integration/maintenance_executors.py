# SPDX-License-Identifier: Apache-2.0
"""Executors of maintenance as processes, and a search for their tokens in every place where they could appear."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

import psutil

from limnos.client import Client
from limnos.client.operation.maintenance_values import MaintenanceOperation
from tests.integration.live import LIMNOS, LiveServer
from tests.spark.cluster import command_line

TOKEN = re.compile(r"lim_\d+_[\w-]{10,}")
WITHIN_S = 900


@dataclass
class ExecutorProcess:
    """`limnos maintenance work` in a process of its own."""

    process: subprocess.Popen[str]
    out: str = ""
    errors: str = ""

    def ended(self) -> dict[str, int]:
        """Wait for its end. Returns the count of operations by outcome."""
        self.out, self.errors = self.process.communicate(timeout=WITHIN_S)
        assert self.process.returncode == 0, self.errors
        return json.loads(self.out)  # type: ignore[no-any-return]

    def kill(self) -> None:
        """Kill it and its Java with SIGKILL, as in a power failure."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for each in below:
            if each.is_running():
                each.kill()
        self.process.communicate()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop it and its Java with SIGSTOP for the body of a `with`, as a suspended machine."""
        processes = [psutil.Process(self.process.pid)]
        processes += processes[0].children(recursive=True)
        for each in processes:
            each.suspend()
        try:
            yield
        finally:
            for each in processes:
                each.resume()


@contextmanager
def working(server: LiveServer, *flags: str, idle: float = 1.0) -> Iterator[ExecutorProcess]:
    """Run an executor for the body of a `with`."""
    command = [*LIMNOS, "maintenance", "work", "--uri", server.uri, "--idle", f"{idle:g}", "--output", "json", *flags]
    environment = {**os.environ, "LIMNOS_TOKEN": server.token}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield ExecutorProcess(process)
        finally:
            process.kill()


def wait_for(condition: Callable[[], Any], *, every_s: float = 0.2) -> Any:  # noqa: ANN401 - what was looked for
    """Call `condition` every few moments until it returns a result. Returns it."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(every_s)
    raise AssertionError("it did not come")


def operation_of(admin: Client, operation: int) -> MaintenanceOperation:
    """Return the current row of an operation."""
    rows = admin.maintenance.status("main").operations
    return next(each for each in rows if each.id == operation)


@dataclass
class TokenWatch:
    """Checks the command lines of all child processes, and web pages, for tokens repeatedly."""

    pages: Sequence[str] = ()
    shown: list[str] = field(default_factory=list)
    """Texts that contained a token."""
    looked: set[str] = field(default_factory=set)
    """The pages that answered, and the programs that were found."""

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def read(self, text: str, where: str) -> None:
        """Record whether a text contains a token."""
        if TOKEN.search(text):
            self.shown.append(where)

    def read_files(self, directory: Path) -> int:
        """Check all files of a directory. Returns their count."""
        files = [each for each in directory.rglob("*") if each.is_file() and each.suffix not in (".jar", ".parquet")]
        for each in files:
            self.read(each.read_text(errors="replace"), str(each))
        return len(files)

    def _watch(self) -> None:
        while not self._over.wait(0.3):
            for each in psutil.Process().children(recursive=True):
                words = command_line(each)
                self.looked.update(word for word in words if word.startswith("org.apache.spark"))
                self.read("\n".join(words), f"argv of {each.pid}")
            for page in self.pages:
                try:
                    with urlopen(page, timeout=5) as answer:
                        text = answer.read().decode(errors="replace")
                except OSError:
                    continue
                self.looked.add(page)
                self.read(text, page)
