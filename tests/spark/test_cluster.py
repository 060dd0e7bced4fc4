# SPDX-License-Identifier: Apache-2.0
"""Waits for a master and for executors, without Spark."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.spark import cluster
from limnos.spark.cluster import ExecutorWait, await_executor, has_executor, reporting_wait, require_master
from tests.spark.cluster import free_port


class FakeContext:
    """A Spark context with a number of block managers, of which the driver has one."""

    def __init__(self, master: str, sizes: list[int]) -> None:
        self.master, self._sizes = master, sizes
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: self))

    def size(self) -> int:
        """Return the next number; the last one again and again."""
        return self._sizes.pop(0) if len(self._sizes) > 1 else self._sizes[0]


def spark_of(master: str, *sizes: int) -> Any:  # noqa: ANN401 - a session as far as it is used
    """Return a session of an application."""
    return cast("Any", SimpleNamespace(sparkContext=FakeContext(master, list(sizes))))


def test_silent_master_is_refused_at_once() -> None:
    """A standalone master to which nobody listens is an error, also with a port that is none; one of two suffices, and
    other masters are left to Spark.
    """
    closed = free_port()
    for master in (
        f"spark://127.0.0.1:{closed}",
        "spark://127.0.0.1",
        "spark://127.0.0.1:x",
        "spark://127.0.0.1:70000",
    ):
        with pytest.raises(ServiceUnavailable, match="No Spark master accepts connections at spark://"):
            require_master(master)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        require_master(f"spark://127.0.0.1:{closed},127.0.0.1:{listener.getsockname()[1]}")
    for master in ("local[2]", "yarn", "k8s://https://127.0.0.1:1"):
        require_master(master)


def test_application_has_executor_beside_its_driver() -> None:
    """The driver's own block manager is no executor; a local application needs none."""
    assert not has_executor(spark_of("spark://h:1", 1))
    assert has_executor(spark_of("spark://h:1", 2))
    assert has_executor(spark_of("local[2]", 1))


def test_wait_for_executor_ends_with_reason() -> None:
    """The wait ends when an executor is there. After the timeout the error names the master and what to do."""
    await_executor(spark_of("spark://h:1", 1, 2), "spark://h:1", wait_s=60)
    with pytest.raises(ServiceUnavailable, match=r"spark://h:1 allocated no executor within 0 s: .* spark\.cores\.max"):
        await_executor(spark_of("spark://h:1", 1), "spark://h:1", wait_s=0)


def test_wait_starts_over_after_a_break() -> None:
    """Only an uninterrupted wait counts, and one that is too long is over. Without an answer of Spark there is none."""
    answers: list[bool | Exception] = [True, True, False, True, RuntimeError("Java has ended"), True, True]

    def lacks() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    wait = ExecutorWait(lacks, max_s=0.02)
    outcomes = []
    while len(answers) > 2:
        outcomes.append((wait.look(), wait.seconds > 0))
        time.sleep(0.001)

    assert outcomes == [(False, False), (False, True), (False, False), (False, False), (False, False)]
    assert not wait.look()
    time.sleep(0.05)
    assert wait.look()
    assert wait.is_over


def test_wait_of_an_operation_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A warning names the work, the time and what to do. Work that has an executor is not mentioned."""
    monkeypatch.setattr(cluster, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(cluster, "REPORT_AFTER_S", 0.05)
    for work, blocks in (("operation 7", 1), ("operation 8", 2)):
        with reporting_wait(spark_of("spark://h:1", blocks), work):
            time.sleep(0.5)

    (record,) = caplog.records
    assert record.getMessage().startswith("operation 7 waits: the cluster has had no executor for 0 s: it has no free")
