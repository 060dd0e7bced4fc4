# SPDX-License-Identifier: Apache-2.0
"""Settings of Spark in the server's own executor."""

from __future__ import annotations

import pytest
from msgspec import structs

from limnos.rooms.maintenance.engine import child

START = child.ChildStart(
    uri="http://127.0.0.1:1",
    metalake="lake",
    token="lim_1_x",
    master="spark://h:7077",
    scratch="/scratch",
    config={"spark.cores.max": "2", "spark.local.dir": "/elsewhere"},
)


def settings_of(monkeypatch: pytest.MonkeyPatch, start: child.ChildStart) -> dict[str, str]:
    """Return the settings that the runner of operations gets."""
    settings: list[dict[str, str]] = []
    monkeypatch.setattr(child, "limit_java_network", lambda *_, **__: {"spark.driver.port": "7"})
    monkeypatch.setattr(child, "runner_for", lambda *_, config, **__: settings.append(config))
    child.runner_of(start)
    return settings[0]


def test_operator_settings_do_not_replace_those_of_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings of an operator are added. Those that confine the process stay, and the log names what is left out."""
    settings = settings_of(monkeypatch, START)

    assert settings["spark.cores.max"] == "2"
    assert (settings["spark.local.dir"], settings["spark.driver.port"]) == ("/scratch", "7")
    assert "maintenance.executor_conf: spark.local.dir is left out" in caplog.text


def test_spark_connect_sessions_get_operator_settings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark Connect server refuses settings of its Java process on a session, so none of them is sent."""
    start = structs.replace(START, master="sc://h:15002", config={"spark.sql.shuffle.partitions": "8"})

    assert settings_of(monkeypatch, start) == {"spark.sql.shuffle.partitions": "8"}
