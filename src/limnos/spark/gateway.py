# SPDX-License-Identifier: Apache-2.0
"""Calls of a classic session's Java machine by py4j: classes, settings, and answers without a delay.

Each access to a member through py4j is one exchange with the Java machine. `spark._jvm.org.apache.iceberg.Table` is
five of them, and the settings of a session are two for each setting. The functions here need one to four. Must not know
tables or steps.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Java = Any
"""An object of the Java virtual machine. Python has no types for its members."""

_JSON_WRITER: Final = "com.fasterxml.jackson.databind.ObjectMapper"
"""A class of the JSON library that Spark itself needs."""


def java_class(jvm: Java, name: str) -> Java:
    """Return a class by its full name, without an exchange. `jvm` is py4j's view of the machine; a nested class is
    `Outer$Nested`. A class that does not exist is noticed when it is used.
    """
    from py4j.java_gateway import JavaClass  # noqa: PLC0415 - only in the extra

    return JavaClass(name, jvm._gateway_client)  # noqa: SLF001 - py4j looks up each part of a name by an exchange


def session_settings(spark: SparkSession) -> dict[str, str]:
    """Return all settings that a classic or connected session has, as `spark.conf.getAll` does."""
    jvm: Java = getattr(spark, "_jvm", None)
    if jvm is None:
        return spark.conf.getAll
    settings = spark._jsparkSession.conf().getAllAsJava()  # noqa: SLF001 - PySpark reads a map entry by entry
    result: dict[str, str] = json.loads(java_class(jvm, _JSON_WRITER)().writeValueAsString(settings))
    return result


def disable_answer_delay(spark: SparkSession) -> None:
    """Let the Java machine send answers to this thread at once. Does nothing over Spark Connect.

    py4j sends an answer of more than 8 KiB in several parts, and without the socket's option `TCP_NODELAY` the second
    part waits some 40 ms for the acknowledgement of the first. Each thread has a connection of its own.
    """
    gateway: Java = getattr(getattr(spark, "_sc", None), "_gateway", None)
    if gateway is None:
        return
    client = gateway.java_gateway_server.getCallbackClient()
    if hasattr(client, "getPerThreadConnection") and (connection := client.getPerThreadConnection()) is not None:
        connection.getSocket().setTcpNoDelay(True)
