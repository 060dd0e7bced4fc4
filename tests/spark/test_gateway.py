# SPDX-License-Identifier: Apache-2.0
"""Calls through py4j: classes without an exchange, settings in one answer, answers without a delay."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from limnos.pipeline.engine.session_pool import active
from limnos.spark.gateway import disable_answer_delay, java_class, session_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def sends_at_once(spark: SparkSession) -> bool:
    """Return whether the Java machine's socket of this thread has `TCP_NODELAY`."""
    gateway: Any = spark.sparkContext._gateway
    socket = gateway.java_gateway_server.getCallbackClient().getPerThreadConnection().getSocket()
    return bool(socket.getTcpNoDelay())


def on_thread(work: Callable[[], bool]) -> bool:
    """Return the result of a function that runs on a thread of its own."""
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_class_is_used_by_its_full_name(here: SparkSession) -> None:
    """Static functions, constructors and nested classes are reached by the full name."""
    jvm = here._jvm

    assert java_class(jvm, "java.lang.Integer").parseInt("17") == 17
    assert java_class(jvm, "java.lang.StringBuilder")("ab").reverse().toString() == "ba"
    assert java_class(jvm, "java.util.Locale$Category").valueOf("FORMAT").toString() == "FORMAT"


def test_settings_are_read_whole(here: SparkSession) -> None:
    """The settings are those that PySpark reads one by one, with quotes, lines and signs of all planes."""
    spark = here.newSession()
    spark.conf.set("spark.sql.legacy.limnos.test", 'a"b\\c\nd ö \N{GRINNING FACE}')

    assert session_settings(spark) == spark.conf.getAll


def test_thread_of_a_step_gets_answers_at_once(here: SparkSession) -> None:
    """A thread has a connection of its own, whose answers are delayed until a session is borrowed."""

    def in_step() -> bool:
        with active(here):
            return sends_at_once(here)

    assert not on_thread(lambda: sends_at_once(here))
    assert on_thread(in_step)


def test_call_again_changes_nothing(here: SparkSession) -> None:
    """The call may be repeated, and a session without a Java machine is left alone."""

    def twice() -> bool:
        disable_answer_delay(here)
        disable_answer_delay(here)
        return sends_at_once(here)

    disable_answer_delay(object())  # type: ignore[arg-type]

    assert on_thread(twice)
