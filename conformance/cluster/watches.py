# SPDX-License-Identifier: Apache-2.0
"""Watches beside the work: for tokens that are visible, and for applications that wait for cores."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from urllib.request import urlopen

import psutil

from tests.integration.maintenance_executors import TOKEN
from tests.spark.cluster import command_line

LOOK_EVERY_S: Final = 2.0
PAGES_EVERY: Final = 10
"""At which look in a row the pages are read."""
_SPARK_PROCESSES = ("deploy.master.Master", "deploy.worker.Worker", "CoarseGrainedExecutorBackend", "pyspark.daemon")
_PAGES = ("", "/environment/", "/executors/", "/jobs/", "/stages/", "/SQL/", "/SQL/execution/?id=0", "/connect/")
_RESOURCES = ("environment", "executors", "allexecutors", "jobs", "stages", "sql?details=true&length=20")


class BackgroundWatch:
    """Looks every `LOOK_EVERY_S` seconds, for the body of a `with`."""

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=120)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self.look()

    def look(self) -> None:
        """Look once."""
        raise NotImplementedError


class TokenSearch(BackgroundWatch):
    """Searches command lines, environments of Spark's own processes, and Spark's pages for API tokens."""

    def __init__(self, *, own_pages: Sequence[str], application_pages: Sequence[str]) -> None:
        """Search the pages of master and workers (`own_pages`) and those of applications."""
        self._own_pages, self._application_pages = own_pages, application_pages
        self._looks = -1
        self.places: Counter[str] = Counter()
        """How many texts were searched, by their place."""
        self.faults: set[str] = set()

    def read(self, text: str, *, place: str, where: str) -> None:
        """Search a text."""
        self.places[place] += 1
        if TOKEN.search(text):
            self.faults.add(f"a token in {where}")

    def read_files(self, directory: Path, *, place: str) -> None:
        """Search all files below a directory, except archives and data."""
        for each in directory.rglob("*"):
            if each.is_file() and each.suffix not in (".jar", ".parquet", ".avro"):
                self.read(each.read_text(errors="replace"), place=place, where=str(each.relative_to(directory)))

    def look(self) -> None:
        """Search the processes below this one, and all pages that answer."""
        for each in psutil.Process().children(recursive=True):
            words = "\0".join(command_line(each))
            self.read(words, place="command lines", where=f"the command line of {words[:80]}")
            if any(name in words for name in _SPARK_PROCESSES):
                with suppress(psutil.Error):
                    variables = each.environ()
                    if "pyspark.daemon" not in words or "SPARK_EXECUTOR_DIRS" in variables:  # not those of a driver
                        self.read(str(variables), place="environments", where=f"the environment of {words[-120:]}")
        self._looks += 1
        if self._looks % PAGES_EVERY:
            return
        for page in self._own_pages:
            for path in ("/", "/json/"):
                self._read_page(f"{page}{path}", place="pages of master and workers")
        for page in self._application_pages:
            for path in (*_PAGES, *self._resources(page)):
                self._read_page(f"{page}{path}", place="pages of applications")

    def _resources(self, page: str) -> Iterator[str]:
        text = self._read_page(f"{page}/api/v1/applications", place="pages of applications")
        with suppress(ValueError, LookupError):
            application = json.loads(text)[0]["id"]
            yield from (f"/api/v1/applications/{application}/{each}" for each in _RESOURCES)

    def _read_page(self, address: str, *, place: str) -> str:
        try:
            with urlopen(address, timeout=10) as answer:
                text = str(answer.read().decode(errors="replace"))
        except OSError:  # the application has not started, or has ended
            return ""
        self.read(text, place=place, where=address)
        return text


class CoreWatch(BackgroundWatch):
    """Records for how long each application of a standalone master had no core."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._since: dict[str, float] = {}
        self.longest: dict[str, float] = defaultdict(float)
        """By the application's name, the longest time in seconds without a core."""
        self.most: dict[str, int] = defaultdict(int)
        """By the application's name, the most cores that it had."""
        self.together = 0
        """The most applications that had cores at one time."""

    def look(self) -> None:
        """Read the master's page."""
        try:
            with urlopen(f"{self._page}/json/", timeout=10) as answer:
                applications = json.load(answer)["activeapps"]
        except OSError:
            return
        now = time.monotonic()
        for each in applications:
            key, name, cores = each["id"], each["name"], each["cores"]
            self.most[name] = max(self.most[name], cores)
            since = self._since.setdefault(key, now)
            if cores:
                self._since.pop(key)
            else:
                self.longest[name] = max(self.longest[name], now - since)
            self.longest.setdefault(name, 0.0)
        self.together = max(self.together, sum(each["cores"] > 0 for each in applications))
