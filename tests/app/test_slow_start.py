# SPDX-License-Identifier: Apache-2.0
"""A node that starts on a database under load waits for it, where a request would get an error."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from limnos.app import slow_start
from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import ServerNode, build
from limnos.app.slow_start import log_slow_start, run_patiently
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, Settings
from limnos.model.errors import CannotStart, ServiceUnavailable
from limnos.store.backends import read_connections
from limnos.store.backends.direct_connection import CONNECT_S, START_CONNECT_S, postgres_settings
from limnos.store.interface import Store
from limnos.store.objects.nesting import checked_read
from tests.backends import PostgresServer
from tests.faults.proxy import Proxy

LATE_S = 0.6
INLINE = cast("Store", SimpleNamespace(inline=True))


def lines_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the warnings of the module."""
    lines: list[str] = []
    monkeypatch.setattr(slow_start, "log", SimpleNamespace(warning=lambda text, **_: lines.append(text)))
    return lines


def settings_of(data: Path, url: str) -> Settings:
    """Return the settings of a node on a database, whose requests wait a tenth of a second for an answer."""
    database = DatabaseSection.model_validate({"url": url, "silence_s": 0.1})
    return Settings(server=ServerSection(data=str(data)), database=database)


@pytest.mark.integration
@pytest.mark.slow
def test_start_waits_for_a_database_that_answers_late(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session opens later than a request would wait. The first start fails without the patience of a start; with
    it, the node is filled, and its requests have their own limit again.
    """
    monkeypatch.setattr(read_connections, "CONNECT_S", 0.1)
    with Proxy(postgres_server.empty_database()) as proxy:
        settings = settings_of(tmp_path, proxy.url)
        proxy.late_s = LATE_S

        async def start(*, patiently: bool) -> ServerNode:
            built = build(settings)
            try:
                if patiently:
                    await run_patiently(built.services.store, lambda: bootstrap(built.services, settings))
                else:
                    await bootstrap(built.services, settings)
                proxy.cut()
                with pytest.raises(ServiceUnavailable, match="does not answer"):
                    await built.services.gate.look_up(checked_read)
            finally:
                await built.close()
            return built

        with pytest.raises(ServiceUnavailable, match="does not answer"):
            asyncio.run(start(patiently=False))
        asyncio.run(start(patiently=True))

    assert (tmp_path / "admin.token").exists()


def test_start_tries_again_after_a_failure_and_logs_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the start that failed is repeated until it succeeds. One line of the log says so."""
    lines = lines_of(monkeypatch)
    monkeypatch.setattr(slow_start, "PAUSE_S", 0.0)
    failures = [ServiceUnavailable("The database has no connection left: try again")] * 3

    async def step() -> None:
        if failures:
            raise failures.pop()

    asyncio.run(run_patiently(INLINE, step))

    assert failures == []
    assert lines == ["the start tries again until the database answers, for minutes"]


def test_start_fails_at_last_with_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time of a start the error has the database's cause, and says what to do."""
    lines_of(monkeypatch)
    monkeypatch.setattr(slow_start, "START_S", -1.0)

    async def step() -> None:
        raise ServiceUnavailable("The database does not answer: try again")

    with pytest.raises(CannotStart) as error:
        asyncio.run(run_patiently(INLINE, step))

    assert error.value.why == "The database does not answer: try again"
    assert "then start again" in error.value.advice


def test_slow_step_is_logged_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes long logs one line; a fast one logs nothing."""
    logged = threading.Event()
    lines: list[str] = []
    monkeypatch.setattr(
        slow_start, "log", SimpleNamespace(warning=lambda text, **_: (lines.append(text), logged.set()))
    )
    with log_slow_start():
        pass
    monkeypatch.setattr(slow_start, "SLOW_S", 0.0)
    with log_slow_start():
        assert logged.wait(60)

    assert lines == ["the start still waits for the database: it waits for minutes before it fails"]


def test_start_waits_longer_for_a_session_than_a_check() -> None:
    """The migration of a start waits for minutes for a session; `server check` and others answer after seconds."""
    url = "postgresql://localhost/lake"

    assert postgres_settings(url, connect_s=START_CONNECT_S)["connect_timeout"] == 300
    assert postgres_settings(f"{url}?connect_timeout=7", connect_s=START_CONNECT_S)["connect_timeout"] == "7"
    assert CONNECT_S == 5
