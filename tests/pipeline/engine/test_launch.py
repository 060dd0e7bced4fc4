# SPDX-License-Identifier: Apache-2.0
"""The start of a run: it waits for an unreachable server for the configured time, before Spark starts."""

from __future__ import annotations

from types import SimpleNamespace, TracebackType
from typing import Self, cast

import pytest

from limnos.client.errors import UnavailableError
from limnos.pipeline.engine import launch
from limnos.pipeline.engine.launch import ServerConnection, spark_for
from limnos.pipeline.run import retries


class Absent:
    """A client whose server answers the third request."""

    def __init__(self) -> None:
        self.asked = 0
        self.catalogs = self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No-op: there is no connection."""

    def list(self) -> tuple[()]:
        """Return no catalogs at the third call; raise UnavailableError before."""
        self.asked += 1
        if self.asked < 3:
            raise UnavailableError("away")
        return ()


@pytest.mark.parametrize("away_s, request_count", [(0.0, 1), (60.0, 3)])
def test_spark_start_waits_for_unavailable_server(
    monkeypatch: pytest.MonkeyPatch, away_s: float, request_count: int
) -> None:
    """Without a waiting time the first unanswered request ends the run; with one Spark starts once the server
    answers.
    """
    client, started = Absent(), []
    connection = cast("ServerConnection", SimpleNamespace(client=lambda: client))
    monkeypatch.setattr(retries, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(
        launch, "_start_session", lambda *_, **__: started.append(1) or SimpleNamespace(stop=lambda: None)
    )
    outcomes = []
    try:
        with spark_for(connection, away_s=away_s):
            outcomes.append("ran")
    except UnavailableError:
        outcomes.append("away")

    assert (client.asked, outcomes, len(started)) == (
        request_count,
        ["ran" if request_count == 3 else "away"],
        request_count // 3,
    )
