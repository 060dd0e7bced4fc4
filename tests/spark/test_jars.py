# SPDX-License-Identifier: Apache-2.0
"""Fetching archives from a Maven repository served by a local HTTP server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from limnos.model.errors import BadRequest, ServiceUnavailable, UnsupportedOperation
from limnos.spark import jars

BODY = b"not really an archive" * 1000
ARTIFACT = jars.Artifact(
    group="org.example.lake",
    name="runtime_2.13",
    version="1.0",
    sha256=hashlib.sha256(BODY).hexdigest(),
    size_bytes=len(BODY),
)


@dataclass
class Repository:
    """A fake repository: its scripted `answers` are (status, body), the last one repeats; it records requests."""

    url: str = ""
    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [(200, BODY)])
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def repository() -> Iterator[Repository]:
    """A repository on a free loopback port."""
    state = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            status, body = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/maven"
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home and no settings, so that the developer's caches are not used."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in (jars.CACHE_VARIABLE, jars.REPOSITORY_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("limnos.spark.jars.time.sleep", lambda _s: None)


def test_archive_is_fetched_from_its_maven_path_and_verified(repository: Repository, tmp_path: Path) -> None:
    """The file is fetched from group/artifact/version below the base URL and has the pinned digest."""
    path = jars.ensure(ARTIFACT, repository=repository.url + "/", cache=tmp_path / "cache")

    assert path.read_bytes() == BODY
    assert repository.asked == ["/maven/org/example/lake/runtime_2.13/1.0/runtime_2.13-1.0.jar"]


def test_cached_archive_needs_no_request(repository: Repository, tmp_path: Path) -> None:
    """A cached archive needs no request."""
    jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)

    jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)

    assert len(repository.asked) == 1


def test_processes_that_need_an_archive_at_once_fetch_it_once(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that need an archive concurrently wait for the one that fetches it."""
    under_way, waits, paths = threading.Event(), threading.Event(), []
    plain_flock = jars.fcntl.flock

    def flock(file: object, how: int) -> None:
        if how == jars.fcntl.LOCK_EX:
            waits.set()
        plain_flock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(jars.fcntl, "flock", flock)

    def progress(_received: int, _size: int) -> None:
        under_way.set()
        assert waits.wait(300)

    def fetch(callback: jars.Progress | None) -> None:
        paths.append(jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path, progress=callback))

    first = threading.Thread(target=fetch, args=(progress,))
    second = threading.Thread(target=fetch, args=(None,))
    first.start()
    assert under_way.wait(300)
    second.start()
    first.join(60)
    second.join(60)

    assert paths == [tmp_path / ARTIFACT.filename] * 2
    assert len(repository.asked) == 1


def test_progress_is_none_partial_or_complete(repository: Repository, tmp_path: Path) -> None:
    """The progress is nothing, the bytes fetched so far, or all."""
    seen: list[int | None] = [jars.fetched_bytes(ARTIFACT, cache=tmp_path)]

    jars.ensure(
        ARTIFACT,
        repository=repository.url,
        cache=tmp_path,
        progress=lambda _received, _size: seen.append(jars.fetched_bytes(ARTIFACT, cache=tmp_path)),
    )

    assert seen[0] is None
    assert isinstance(seen[1], int)
    assert jars.fetched_bytes(ARTIFACT, cache=tmp_path) == len(BODY)


@pytest.mark.parametrize("number", [28, 13])
def test_unwritable_cache_error_names_path_and_setting(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """If the directory cannot be written (full disk, other owner), the error has its path and the setting, after one
    attempt; afterwards a fetch works again.
    """

    def refuse(*_: object, **_more: object) -> str:
        raise OSError(number, jars.os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(jars, "_copy", refuse)
        with pytest.raises(ServiceUnavailable, match=f"{tmp_path}: {jars.os.strerror(number)}.*{jars.CACHE_VARIABLE}"):
            jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)
    assert len(repository.asked) == 1
    assert jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path).read_bytes() == BODY


def test_damaged_cache_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    """A cached file with other bytes than the pinned ones is fetched again."""
    (tmp_path / ARTIFACT.filename).write_bytes(b"cut short")

    path = jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)

    assert path.read_bytes() == BODY


def test_archive_with_wrong_digest_is_refused_and_deleted(repository: Repository, tmp_path: Path) -> None:
    """An archive with another digest raises an error, is not retried, and leaves no file."""
    repository.answers = [(200, b"x" * len(BODY))]

    with pytest.raises(ServiceUnavailable, match="SHA-256"):
        jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)

    assert list(tmp_path.glob("*.jar")) == []
    assert list(tmp_path.glob(".*jar*")) == []
    assert len(repository.asked) == 1


def test_503_and_truncated_transfers_are_retried(repository: Repository, tmp_path: Path) -> None:
    """A 503 and a truncated transfer are retried until the file is complete."""
    repository.answers = [(503, b""), (200, BODY[:100]), (200, BODY)]

    path = jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)

    assert path.read_bytes() == BODY
    assert len(repository.asked) == 3


def test_missing_archive_error_names_url_and_remedy(repository: Repository, tmp_path: Path) -> None:
    """A 404 is final; the message names the URL, the status, the setting, and where to put the file by hand."""
    repository.answers = [(404, b"")]

    with pytest.raises(ServiceUnavailable) as caught:
        jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path)

    assert len(repository.asked) == 1
    for part in (repository.url, "404", jars.REPOSITORY_VARIABLE, str(tmp_path / ARTIFACT.filename)):
        assert part in caught.value.message


def test_local_maven_repository_is_used_in_place(repository: Repository, tmp_path: Path) -> None:
    """An archive in the local Maven repository is used in place, without a download or a copy."""
    local = tmp_path / "home" / ".m2" / "repository" / ARTIFACT.relative_path
    local.parent.mkdir(parents=True)
    local.write_bytes(BODY)

    path = jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path / "cache")

    assert path == local
    assert repository.asked == []


def test_progress_increases_to_the_archive_size(repository: Repository, tmp_path: Path) -> None:
    """The callback receives increasing byte counts, the last of which is the archive's size."""
    progress_reports: list[tuple[int, int]] = []

    jars.ensure(ARTIFACT, repository=repository.url, cache=tmp_path, progress=lambda *n: progress_reports.append(n))

    assert progress_reports == sorted(progress_reports)
    assert progress_reports[-1] == (len(BODY), len(BODY))


def test_settings_choose_repository_and_cache(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both environment variables are used when no argument is passed."""
    monkeypatch.setenv(jars.REPOSITORY_VARIABLE, repository.url)
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "chosen"))

    path = jars.ensure(ARTIFACT)

    assert path.parent == tmp_path / "chosen"


def test_cache_follows_xdg_unless_it_is_relative(tmp_path: Path) -> None:
    """The cache is in XDG_CACHE_HOME, or in the home's .cache when that is unset or relative."""
    directory = jars.cache_directory({"XDG_CACHE_HOME": "/var/cache/me"})
    relative = jars.cache_directory({"XDG_CACHE_HOME": "cache"})

    assert directory == Path("/var/cache/me/limnos/jars")
    assert relative == tmp_path / "home" / ".cache" / "limnos" / "jars"


def test_repository_must_be_a_url() -> None:
    """A path as repository is refused with the setting's name."""
    with pytest.raises(BadRequest, match=jars.REPOSITORY_VARIABLE):
        jars.repository_url({jars.REPOSITORY_VARIABLE: "repo.example/maven"})


@pytest.mark.parametrize(
    "version, filename",
    [
        ("4.1.4", "iceberg-spark-runtime-4.1_2.13-1.12.0.jar"),
        ("4.0.5", "iceberg-spark-runtime-4.0_2.13-1.11.0.jar"),
    ],
)
def test_each_supported_pyspark_has_a_runtime(version: str, filename: str) -> None:
    """A supported PySpark gets the tested runtime."""
    assert jars.runtime_for(version).filename == filename


def test_each_runtime_has_an_s3_archive_of_its_release() -> None:
    """The S3 archive has the release of the runtime, for each supported Spark."""
    assert {each.version for each in jars.ICEBERG_RUNTIMES.values()} == {
        each.version for each in jars.AWS_BUNDLES.values()
    }
    assert all(each.version == version for version, each in jars.AWS_BUNDLES.items())


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0", "3.5.9"])
def test_unsupported_pyspark_is_refused_with_its_version(version: str) -> None:
    """A PySpark without a tested runtime is refused with its version and the version to install."""
    with pytest.raises(UnsupportedOperation) as caught:
        jars.runtime_for(version)

    assert version in caught.value.message
    assert "pyspark==4.1.4" in caught.value.message
