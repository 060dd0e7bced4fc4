# SPDX-License-Identifier: Apache-2.0
"""Files of the SQL++ engine, fetched by the server, because a confined engine may neither write them nor use the
network.

One thread at a time fetches, outside of the event loop; the directory's lock excludes other processes
(`limnos.spark.jars`). Statements wait for the files, or get an error with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from limnos.config.settings import Settings
from limnos.model.errors import LimnosError
from limnos.spark.files import SparkFiles
from limnos.spark.jars import Progress
from limnos.telemetry.logs import get_logger

Prepare = Callable[[Progress], SparkFiles]

log = get_logger("limnos.engine")
RETRY_S: Final = 10
"""Seconds without a new attempt after a failure. Statements get the failure's reason during that time."""
PROGRESS_LOGGED_AT: Final = (0.25, 0.5, 0.75)
"""Fractions of an archive at which progress is logged."""
_NOT_READY: Final = "The engine is not ready: {}. Nothing was changed: try again"


class FilesNotReady(Exception):
    """Raised if the files of an engine are not there yet, or cannot be prepared. `message` has the reason; callers may
    retry after `retry_after_s` seconds.
    """

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s


class EngineFiles:
    """Downloads or prepares an engine's files on demand, once for all waiting statements. Use it on one event loop."""

    def __init__(self, prepare: Prepare, *, are_fetched: Callable[[], bool] = lambda: True) -> None:
        self._prepare = prepare
        self.are_fetched = are_fetched
        """Returns whether all downloads are on this machine. Callable on any thread."""
        self._files: SparkFiles | None = None
        self._running: asyncio.Future[SparkFiles] | None = None
        self._failure = ""
        self._failed_until = 0.0
        self._bytes = (0, 0)

    async def get(self, *, within_s: float) -> SparkFiles:
        """Return the files; prepare them if needed.

        Args:
            within_s: Seconds to wait.

        Raises:
            FilesNotReady: The files cannot be prepared (with the reason), or are not ready after `within_s`.
        """
        if self._files is not None and self._files.are_there():
            return self._files
        left_s = self._failed_until - asyncio.get_running_loop().time()
        if left_s > 0:
            raise FilesNotReady(_NOT_READY.format(self._failure), retry_after_s=math.ceil(left_s))
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.shield(self.begin())
        except TimeoutError:
            raise FilesNotReady(_NOT_READY.format(self._progress()), retry_after_s=RETRY_S) from None
        except Exception:  # noqa: BLE001 - `_settle` reports every error
            raise FilesNotReady(_NOT_READY.format(self._failure), retry_after_s=RETRY_S) from None

    def begin(self) -> asyncio.Future[SparkFiles]:
        """Start preparing the files in the background, unless that is already running. The caller may ignore the
        future.
        """
        if self._running is None:
            loop = asyncio.get_running_loop()
            self._running = loop.create_future()
            self._running.add_done_callback(self._settle)
            self._bytes = (0, 0)
            threading.Thread(target=self._work, args=(loop, self._running), name="engine-files", daemon=True).start()
        return self._running

    def forget(self) -> None:
        """Discard the prepared files after an engine failed to start with them. `get` then prepares them again."""
        self._files = None

    def _work(self, loop: asyncio.AbstractEventLoop, done: asyncio.Future[SparkFiles]) -> None:
        """Prepare the files on a thread, and set the result or exception of `done` if the event loop is still open."""
        try:
            files = self._prepare(self._count)
        except BaseException as error:  # noqa: BLE001 - the future has it
            tell = partial(_fail, done, error if isinstance(error, Exception) else RuntimeError(str(error)))
        else:
            tell = partial(_succeed, done, files)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell)

    def _count(self, number: int, size: int) -> None:
        before, self._bytes = self._bytes[0], (number, size)
        if any(before < part * size <= number for part in PROGRESS_LOGGED_AT):
            log.info("an archive for the engine of SQL++ is being fetched", progress=self._megabytes())

    def _settle(self, done: asyncio.Future[SparkFiles]) -> None:
        self._running = None
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self._files, self._failure = done.result(), ""
            log.info("the engine of SQL++ has all of its files", jars=self._files.jars, java=self._files.java_home)
            return
        self._failure = reason_of(error)
        self._failed_until = done.get_loop().time() + RETRY_S
        log.warning(
            "the files of the SQL++ engine cannot be fetched", reason=self._failure, tried_again_after_s=RETRY_S
        )

    def _progress(self) -> str:
        return f"an archive for it is being fetched ({self._megabytes()})" if self._bytes[1] else "it is being prepared"

    def _megabytes(self) -> str:
        number, size = self._bytes
        return f"{number / 1e6:.0f} of {size / 1e6:.0f} MB"


def _succeed(done: asyncio.Future[SparkFiles], files: SparkFiles) -> None:
    if not done.done():
        done.set_result(files)


def _fail(done: asyncio.Future[SparkFiles], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)


def reason_of(error: BaseException) -> str:
    """Return the reason why files could not be prepared, as a clause without a period."""
    if isinstance(error, LimnosError):
        return error.message.rstrip(".")
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"{type(error).__name__}: {error}"


def engine_files_of(settings: Settings) -> EngineFiles:
    """Build the `EngineFiles` of a server's settings."""

    def prepare(progress: Progress) -> SparkFiles:
        from limnos.spark.files import prepare_files

        return prepare_files(repository=settings.spark.repository, cache=cache_of(settings), progress=progress)

    def are_fetched() -> bool:
        from limnos.spark.jars import fetched_bytes, installed_pyspark, runtime_for

        try:
            artifact = runtime_for(installed_pyspark())
        except LimnosError:  # nothing can be fetched; a statement reports the reason
            return True
        return fetched_bytes(artifact, cache=cache_of(settings)) == artifact.size_bytes

    return EngineFiles(prepare, are_fetched=are_fetched)


def cache_of(settings: Settings) -> Path | None:
    """Return the cache directory in the settings; None if it is not set."""
    cache_setting = settings.spark.cache
    return None if cache_setting is None else Path(cache_setting).expanduser().absolute()


def engine_notes(settings: Settings) -> list[str]:
    """Return notes for `server check` about missing files that statements over data would wait for.

    A server starts without them: it fetches archives itself, and statements report a missing Java.
    """
    from limnos.spark.jars import cache_directory, fetched_bytes, installed_pyspark, repository_url, runtime_for
    from limnos.spark.java import find_java

    notes = []
    cache = cache_of(settings) or cache_directory()
    try:
        artifact = runtime_for(installed_pyspark())
        number = fetched_bytes(artifact, cache=cache)
        if number != artifact.size_bytes:
            size, source = artifact.size_bytes / 1e6, settings.spark.repository or repository_url()
            how_far = (
                "is not fetched yet" if number is None else f"is being fetched: {number / 1e6:.0f} of {size:.0f} MB"
            )
            notes.append(
                f"SQL++ over data needs {artifact.filename} ({size:.0f} MB) in {cache}, which {how_far}; a server"
                f" fetches it from {source} when it starts"
            )
        find_java(cache=cache)
    except LimnosError as error:
        notes.append(f"SQL++ over data does not work yet: {error.message}")
    return notes
