# SPDX-License-Identifier: Apache-2.0
"""Files that the engine needs: prepared once for all waiting statements, off the event loop, and again after a
failure.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limnos.app import engine_files as module
from limnos.app.engine_files import EngineFiles, FilesNotReady, cache_of, engine_files_of, engine_notes
from limnos.app.engine_settings import engine_settings
from limnos.config.settings import Settings, SparkSection
from limnos.model.errors import ServiceUnavailable
from limnos.spark import jars
from limnos.spark.files import SparkFiles

Story = Callable[[], Awaitable[object]]
Progress = Callable[[int, int], None]


class FakePreparation:
    """A fake preparation. It returns files when the test releases it, after it has raised the exceptions in `fails`,
    one per call.
    """

    def __init__(self, directory: Path, *fails: Exception) -> None:
        (directory / "bin").mkdir(exist_ok=True)
        (directory / "bin/java").touch()
        (directory / "a.jar").touch()
        self.files = SparkFiles((str(directory / "a.jar"),), str(directory), str(directory))
        self.fails = list(fails)
        self.count = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.threads: set[str] = set()

    def __call__(self, progress: Progress) -> SparkFiles:
        """Prepare the files."""
        self.count += 1
        self.threads.add(threading.current_thread().name)
        progress(12_000_000, 48_000_000)
        assert self.goes_on.wait(300)
        if self.fails:
            raise self.fails.pop(0)
        return self.files


def catch_refusal(story: Story) -> FilesNotReady:
    """Return the refusal with which a scenario ends."""

    async def run() -> None:
        await story()

    with pytest.raises(FilesNotReady) as refused:
        asyncio.run(run())
    return refused.value


def test_waiting_statements_share_one_preparation(tmp_path: Path) -> None:
    """All waiting statements share one preparation, which runs in its own thread and is not repeated while its files
    exist.
    """
    preparing = FakePreparation(tmp_path)

    async def story() -> None:
        files = EngineFiles(preparing)
        files.begin()
        prepared_files = await asyncio.gather(*(files.get(within_s=60) for _ in range(5)))
        again = await files.get(within_s=60)

        assert [*prepared_files, again] == [preparing.files] * 6

    asyncio.run(story())
    assert (preparing.count, preparing.threads) == (1, {"engine-files"})


def test_statement_timeout_reports_preparation_progress(tmp_path: Path) -> None:
    """While files are prepared the event loop runs. A statement whose time ends gets an error with the progress and a
    time to retry.
    """
    preparing = FakePreparation(tmp_path)
    preparing.goes_on.clear()

    async def story() -> None:
        files = EngineFiles(preparing)
        try:
            await files.get(within_s=0.2)
        finally:
            preparing.goes_on.set()
            assert await files.get(within_s=60) == preparing.files

    refused = catch_refusal(story)

    assert (
        refused.message
        == "The engine is not ready: an archive for it is being fetched (12 of 48 MB). Nothing was changed:"
        " try again"
    )
    assert refused.retry_after_s == module.RETRY_S
    assert preparing.count == 1


@pytest.mark.parametrize(
    "error,reason",
    [
        (
            ServiceUnavailable("Could not fetch http://r/x.jar: the answer was 404."),
            "Could not fetch http://r/x.jar: the answer was 404",
        ),
        (OSError(28, "No space left on device", "/cache"), "/cache: No space left on device"),
        (ValueError("odd"), "ValueError: odd"),
    ],
)
def test_failed_preparation_is_retried_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    """After a failure statements get the reason and a time to retry. Until then no preparation is tried; the next
    statement after it tries again.
    """
    preparing = FakePreparation(tmp_path, error)

    async def story() -> None:
        files = EngineFiles(preparing)
        for _ in range(3):
            with pytest.raises(FilesNotReady) as refused:
                await files.get(within_s=60)
            assert refused.value.message == f"The engine is not ready: {reason}. Nothing was changed: try again"
            assert 1 <= refused.value.retry_after_s <= module.RETRY_S
        assert preparing.count == 1

        files._failed_until = 0.0  # as if the time had passed
        assert await files.get(within_s=60) == preparing.files
        assert preparing.count == 2

    asyncio.run(story())


def test_missing_or_unusable_files_are_prepared_again(tmp_path: Path) -> None:
    """Files are prepared again if an archive was deleted, or if no engine could be started with them."""
    preparing = FakePreparation(tmp_path)

    async def story() -> None:
        files = EngineFiles(preparing)
        await files.get(within_s=60)
        (tmp_path / "a.jar").unlink()
        await files.get(within_s=60)
        assert preparing.count == 2
        (tmp_path / "a.jar").touch()
        files.forget()
        await files.get(within_s=60)
        assert preparing.count == 3

    asyncio.run(story())


def test_a_server_that_stops_waits_for_no_preparation(tmp_path: Path) -> None:
    """A stop of the server does not wait for a preparation. Its thread ends by itself."""
    preparing = FakePreparation(tmp_path)
    preparing.goes_on.clear()

    earlier = set(threading.enumerate())  # servers of other tests may still prepare files

    async def story() -> None:
        EngineFiles(preparing).begin()

    asyncio.run(story())
    (thread,) = (each for each in set(threading.enumerate()) - earlier if each.name == "engine-files")
    preparing.goes_on.set()
    thread.join(60)

    assert not thread.is_alive()


def test_settings_determine_download_source_and_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spark.repository` and `spark.cache` determine the source and the target of the download, and no other location
    is used.
    """
    archive = b"an archive" * 100
    artifact = jars.Artifact(
        group="org.example",
        name="runtime",
        version="1",
        sha256=jars.hashlib.sha256(archive).hexdigest(),
        size_bytes=len(archive),
    )
    source = tmp_path / "maven" / artifact.relative_path
    source.parent.mkdir(parents=True)
    source.write_bytes(archive)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jars, "runtime_for", lambda _version: artifact)
    settings = Settings(spark=SparkSection(repository=f"file://{tmp_path}/maven", cache=str(tmp_path / "cache")))

    async def story() -> SparkFiles:
        files = engine_files_of(settings)
        assert not files.are_fetched()
        spark_files = await files.get(within_s=60)
        assert files.are_fetched()
        return spark_files

    assert artifact.filename in engine_notes(settings)[0]
    assert (
        f"in {tmp_path}/cache, which is not fetched yet; a server fetches it from file://" in engine_notes(settings)[0]
    )
    spark_files = asyncio.run(story())

    assert spark_files.jars == (str(tmp_path / "cache" / artifact.filename),)
    assert engine_notes(settings) == []
    assert not (tmp_path / "home").exists()


def test_each_setting_of_spark_reaches_the_engine(tmp_path: Path) -> None:
    """Every setting `spark.*` that is set is in the engine's environment under the settings' own variable name,
    including settings added later.
    """
    values = {name: f"{tmp_path}/{name}" for name in SparkSection.model_fields}

    environment = engine_settings(Settings(spark=SparkSection(**values)))

    assert environment == {f"LIMNOS__SPARK__{name.upper()}": value for name, value in values.items()}
    assert engine_settings(Settings()) == {}
    assert {"LIMNOS__SPARK__CACHE", "LIMNOS__SPARK__REPOSITORY"} <= environment.keys()
    assert (jars.CACHE_VARIABLE, jars.REPOSITORY_VARIABLE) == ("LIMNOS__SPARK__CACHE", "LIMNOS__SPARK__REPOSITORY")


def test_the_cache_of_a_setting_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path with `~` or a relative path is made absolute, because the engine runs in another directory."""
    monkeypatch.setenv("HOME", "/home/ana")

    assert cache_of(Settings(spark=SparkSection(cache="~/jars"))) == Path("/home/ana/jars")
    assert cache_of(Settings(spark=SparkSection(cache="jars"))) == Path.cwd() / "jars"
    assert cache_of(Settings()) is None
