# SPDX-License-Identifier: Apache-2.0
"""SQL++ over data on a new machine without archive, cache or Java; then after its engine was killed."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from limnos.spark.jars import ensure_runtime, installed_pyspark, runtime_for
from tests.integration.live import LiveServer, serving

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]
SLOW_S = 240.0
MADE = """
create type T if not exists as { id: bigint };
create dataset things(T) if not exists primary key id;
upsert into things ([{'id': 1}, {'id': 2}, {'id': 3}]);
select value count(*) from things t;
"""
LONG = "select value count(*) from things t, range(1, 2000) a, range(1, 2000) b where t.id + a + b > 0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server of a user with an empty home, on a path without a Java, with a repository of archives."""
    base = tmp_path_factory.mktemp("fresh")
    artifact = runtime_for(installed_pyspark())
    published = base / "maven" / artifact.relative_path
    published.parent.mkdir(parents=True)
    published.symlink_to(ensure_runtime())
    (base / "home").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(base / "home"))
        patched.setenv("PATH", str(without_java(base / "programs")))
        patched.setenv("TMPDIR", str(base))
        patched.setenv("LIMNOS__SPARK__REPOSITORY", f"file://{base}/maven")
        for name in ("JAVA_HOME", "XDG_CACHE_HOME", "LIMNOS__SPARK__CACHE"):
            patched.delenv(name, raising=False)
        with serving(base / "data") as running:
            yield running


def without_java(directory: Path) -> Path:
    """Return a directory of the machine's programs without Java."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if not program.name.startswith("java") and not (directory / program.name).is_symlink():
                (directory / program.name).symlink_to(program)
    return directory


def ask(server: LiveServer, statement: str) -> tuple[int, str | None, dict[str, Any]]:
    """Send statements; returns the status, Retry-After and the body."""
    request = urllib.request.Request(
        f"{server.uri}/query/service",
        data=json.dumps({"statement": statement}).encode(),
        headers={"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, None, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Retry-After"], json.loads(error.read())


def is_engine(process: psutil.Process) -> bool:
    """Return whether a process runs the engine's program. One that has ended since it was listed does not."""
    try:
        return "limnos.rooms.sqlpp.engine.process" in process.cmdline()
    except psutil.NoSuchProcess:  # also of a zombie
        return False


def engines(server: LiveServer) -> list[psutil.Process]:
    """Return the engine processes of a server, without those that only wait for the end of one in namespaces."""
    processes = [each for each in psutil.Process(server.pid).children(recursive=True) if is_engine(each)]
    waiting = {each.ppid() for each in processes}
    return [each for each in processes if each.pid not in waiting]


def test_first_statement_fetches_archive_and_creates_launcher(server: LiveServer) -> None:
    """The first statement over data works: the server fetches the archive and creates the launcher, because the
    confined engine can do neither.
    """
    status, _, answer = ask(server, MADE)

    assert (status, answer.get("results")) == (200, [3]), answer
    cache = Path(os.environ["TMPDIR"], "home", ".cache", "limnos", "jars")
    assert {each.name.partition("-")[0] for each in cache.iterdir()} == {"iceberg", "java", ".fetching.lock"}


def test_query_of_killed_engine_gets_503_with_retry_after(server: LiveServer) -> None:
    """A query whose engine is killed gets 503 with Retry-After, and the next statement gets another engine."""
    assert ask(server, MADE)[0] == 200
    (engine,) = engines(server)
    with ThreadPoolExecutor(1) as pool:
        before = engine.num_fds()
        answer = pool.submit(ask, server, LONG)
        wait_for_more(engine, before)
        engine.send_signal(signal.SIGKILL)
        status, retry_after, body = answer.result(SLOW_S)

    assert (status, retry_after) == (503, "1")
    assert body["status"] == "fatal"
    assert body["errors"] == [{"code": 1, "msg": "ASX3102: The engine ended in the middle of the statement: try again"}]
    assert ask(server, "select value count(*) from things t")[2]["results"] == [3]


def wait_for_more(engine: psutil.Process, before: int) -> None:
    """Wait until an engine runs a job, which is when it has an additional socket."""
    until = time.monotonic() + SLOW_S
    while engine.num_fds() <= before:
        assert time.monotonic() < until, "no job arrived"
        time.sleep(0.01)
