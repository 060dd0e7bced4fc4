# SPDX-License-Identifier: Apache-2.0
"""Settings of a session of Spark Connect, without such a server."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from limnos.model.errors import BadRequest
from limnos.spark.connect import connect_session


class FakeSession:
    """A session that refuses settings of the application."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.conf = self
        self.is_stopped = False

    def set(self, key: str, value: str) -> None:
        """Set a setting of the session. Raises RuntimeError for another one."""
        if not key.startswith("spark.sql."):
            raise RuntimeError(f"[CANNOT_MODIFY_CONFIG] Cannot modify the value of {key}\nJVM stacktrace: …")
        self.settings[key] = value

    def stop(self) -> None:
        """Close the session."""
        self.is_stopped = True


def test_setting_of_an_application_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of sessions is set. One that only the server's start can set is refused by name, in a line, and the
    session is closed.
    """
    sessions: list[FakeSession] = []

    def create() -> FakeSession:
        sessions.append(FakeSession())
        return sessions[-1]

    monkeypatch.setattr(SparkSession, "builder", SimpleNamespace(remote=lambda _: SimpleNamespace(create=create)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"sc://127.0.0.1:{listener.getsockname()[1]}"
        ours = {"spark.sql.shuffle.partitions": "2"}
        connect_session(address, "http://h", metalake="lake", catalogs=["main"], token="lim_1_x", config=ours)
        with pytest.raises(BadRequest, match=r"^spark\.cores\.max cannot be set on a session") as raised:
            connect_session(address, "http://h", metalake="lake", catalogs=[], config={"spark.cores.max": "1"})

    assert sessions[0].settings["spark.sql.shuffle.partitions"] == "2"
    assert "spark.sql.catalog.main.token" in sessions[0].settings
    assert [each.is_stopped for each in sessions] == [False, True]
    assert "stacktrace" not in raised.value.message
