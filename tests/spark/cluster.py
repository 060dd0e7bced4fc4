# SPDX-License-Identifier: Apache-2.0
"""Spark processes on loopback: a standalone master with workers, or a Spark Connect server.

Each is started by its class from the installed PySpark's archives, and killed by its process id.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark

from limnos.spark.jars import cache_directory, ensure_runtime
from limnos.spark.java import find_java
from limnos.spark.session import EXTENSIONS

HOME = Path(pyspark.__file__).parent
_READY_WITHIN_S = 600
_SMALL = {"SPARK_DAEMON_MEMORY": "256m"}


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a Spark process: the installed PySpark, a Java for it, this Python, loopback
    addresses.
    """
    variables = {
        "SPARK_HOME": str(HOME),
        "JAVA_HOME": str(find_java(cache=cache_directory()).home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }
    return {**os.environ, **variables, **more}


@contextmanager
def running(words: Sequence[str], *, log: Path, port: int, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Spark process for the body of a `with`, from the moment that it listens. Its child processes end with
    it.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, env=environment(**more), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait_for(port, process=process, log=log)
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process and its descendants."""
    try:
        below = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    for each in below:
        _kill(each)
    if process.poll() is None:
        process.kill()
    process.wait(timeout=300)


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


def _wait_for(port: int, *, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-3000:]
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on {port}:\n{log.read_text()[-3000:]}")


@dataclass(frozen=True)
class SparkCluster:
    """A standalone master and its workers."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    places: tuple[_WorkerPlace, ...]
    pages: tuple[str, ...] = ()
    """Addresses of the web pages: the master's first, then the workers'."""

    def start_worker(self, number: int) -> None:
        """Start a killed worker again, and wait until the master knows it."""
        self.workers[number] = self.places[number].start()
        self.places[number].wait()

    def worker_of(self, executor: str) -> int:
        """Return the number of the worker that runs an executor of the only application."""
        for number, process in enumerate(self.workers):
            for each in psutil.Process(process.pid).children(recursive=True):
                words = command_line(each)
                if "--executor-id" in words and words[words.index("--executor-id") + 1] == executor:
                    return number
        raise AssertionError(f"no worker runs executor {executor}")

    def kill_worker(self, number: int) -> int:
        """Kill a worker and its executors with SIGKILL. Returns the number of its executors."""
        process = self.workers[number]
        executors = sum(map(_is_executor, psutil.Process(process.pid).children(recursive=True)))
        end(process)
        return executors


def _is_executor(process: psutil.Process) -> bool:
    return "CoarseGrainedExecutorBackend" in " ".join(command_line(process))


def command_line(process: psutil.Process) -> list[str]:
    """Return the command line of a process; nothing if it has ended."""
    try:
        words: list[str] = process.cmdline()
    except psutil.NoSuchProcess:  # it has ended, whether or not it is a zombie
        return []
    return words


@contextmanager
def cluster(directory: Path, *, workers: int = 2, memory: str = "1g", cores: int = 1) -> Iterator[SparkCluster]:
    """Run a master and workers with `cores` task slots each, with logs and scratch space in `directory`."""
    port = free_port()
    ports = [free_port() for _ in range(workers + 1)]
    spark_class = str(HOME / "bin" / "spark-class")
    head = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    with running([*head, "--webui-port", str(ports[0])], log=directory / "master.log", port=port, **_SMALL):
        master = f"spark://127.0.0.1:{port}"
        started: list[subprocess.Popen[bytes]] = []
        try:
            places = tuple(
                _WorkerPlace(
                    master=master, directory=directory / f"worker{number}", memory=memory, cores=cores, page=page
                )
                for number, page in enumerate(ports[1:])
            )
            started += [each.start() for each in places]
            for each in places:
                each.wait()
            pages_of = tuple(f"http://127.0.0.1:{each}" for each in ports)
            yield SparkCluster(master=master, workers=started, places=places, pages=pages_of)
        finally:
            for process in started:
                end(process)


@dataclass(frozen=True, kw_only=True)
class _WorkerPlace:
    """Where and how a worker is started, also again after a kill."""

    master: str
    directory: Path
    memory: str
    cores: int
    page: int

    @property
    def log(self) -> Path:
        """The log of the worker's last start; those of earlier starts are beside it."""
        return self.directory / "log"

    def start(self) -> subprocess.Popen[bytes]:
        """Start the worker."""
        self.directory.mkdir(exist_ok=True)
        if self.log.exists():
            self.log.rename(self.directory / f"log.{len(list(self.directory.glob('log*')))}")
        words = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1"]
        words += ["-c", str(self.cores), "-m", self.memory, "--webui-port", str(self.page)]
        words += ["--work-dir", str(self.directory / "work"), self.master]
        with self.log.open("wb") as output:
            return subprocess.Popen(
                words,
                env=environment(SPARK_LOCAL_DIRS=str(self.directory), **_SMALL),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until the master knows the worker."""
        _wait_until_told(self.log, "Successfully registered with master")


def _wait_until_told(log: Path, words: str) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while words not in log.read_text(errors="replace"):
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)


@dataclass(frozen=True)
class SparkConnectServer:
    """A Spark Connect server: its address, its web pages, and its process."""

    address: str
    pages: str
    process: subprocess.Popen[bytes]


@contextmanager
def connect_server(
    directory: Path, *, config: Mapping[str, str] | None = None, master: str = "local[2]"
) -> Iterator[SparkConnectServer]:
    """Run a Spark Connect server with Iceberg on its class path, and further settings."""
    port, pages = free_port(), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": str(ensure_runtime()),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.port": str(pages),
        "spark.scheduler.mode": "FAIR",
        "spark.sql.artifact.isolation.enabled": "true",
    }
    words = [str(HOME / "bin" / "spark-submit"), "--master", master]
    for key, value in {**settings, **(config or {})}.items():
        words += ["--conf", f"{key}={value}"]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with running(words, log=directory / "connect.log", port=port, SPARK_DAEMON_MEMORY="1500m") as process:
        yield SparkConnectServer(address=f"sc://127.0.0.1:{port}", pages=f"http://127.0.0.1:{pages}", process=process)
