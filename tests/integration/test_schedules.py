# SPDX-License-Identifier: Apache-2.0
"""Scheduled pipelines on a real server with Spark: published with the rights of their user, started again for the same
due time after the server was killed, and not started while their inputs are as they were.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from limnos.client import Client
from tests.integration.live import serving

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.heavy, pytest.mark.room("jobs")]
WITHIN_S = 900
FILE = """
pipeline: day
catalog: main
steps:
  shop.numbers: {python: "numbers_of:make"}
"""
MODULE = """
import time
from pathlib import Path

FLAG = Path({flag!r})

def make(spark):
    if not FLAG.exists():
        FLAG.touch()
        time.sleep(3600)
    return spark.range(10)
"""
DOUBLED = """
pipeline: doubled
catalog: main
schedule: {cron: "* * * * *", if_changed: true}
steps:
  shop.doubled: {sql: SELECT n * 2 AS n FROM shop.given}
"""
T = TypeVar("T")


def test_schedule_starts_a_run_when_its_table_has_changed(tmp_path: Path) -> None:
    """A real run's record is enough to see that its table is as it was. After an append the next due time runs."""
    tables = tmp_path / "tables"
    tables.mkdir()
    settings = tmp_path / "limnos.toml"
    settings.write_text(f'[jobs]\nexecutor = "local"\nconfined = false\npipelines = true\nwritable = ["{tables}"]\n')
    flags = ("--config", str(settings), "--warehouse", f"file://{tables}")
    with (
        serving(tmp_path / "data", *flags) as server,
        Client(server.uri, token=server.token) as client,
    ):
        catalog = load_catalog("lake", type="rest", uri=f"{server.uri}/iceberg", warehouse="main", token=server.token)
        catalog.create_namespace("shop")
        source = catalog.create_table("shop.given", schema=pa.schema([("n", pa.int64())]))
        source.append(pa.table({"n": [1, 2]}))
        client.pipelines.put("doubled", {})
        terms = {"file": "doubled.yaml", "files": {"doubled.yaml": DOUBLED.encode()}}
        client.schedules.put("doubled", **terms, cron="* * * * *", if_changed=True)
        first = _until(lambda: _if(client.schedules.load("doubled"), lambda one: one.job_state == "succeeded"))
        waiting = _until(lambda: _if(client.schedules.load("doubled"), lambda one: one.reason is not None))
        source.append(pa.table({"n": [3]}))
        _until(
            lambda: _if(
                client.schedules.load("doubled"), lambda one: one.job != first.job and one.job_state == "succeeded"
            )
        )
        client.schedules.delete("doubled")

        assert waiting.job == first.job
        assert str(waiting.reason).endswith("no table that the last run read has changed")
        assert sorted(catalog.load_table("shop.doubled").scan().to_arrow()["n"].to_pylist()) == [2, 4, 6]


def test_scheduled_pipeline_is_started_again_after_the_server_was_killed(tmp_path: Path) -> None:
    """The first job ends with its killed server. The next server starts the pipeline again for the same due time, and
    publishes its table for its user, whose token has ended then.
    """
    tables, out = tmp_path / "tables", tmp_path / "out"
    for each in (tables, out):
        each.mkdir()
    settings = tmp_path / "limnos.toml"
    writable = f'writable = ["{tables}", "{out}"]'
    settings.write_text(f'[jobs]\nexecutor = "local"\nconfined = false\npipelines = true\n{writable}\n')
    files = {"day.yaml": FILE.encode(), "numbers_of.py": MODULE.format(flag=str(out / "flag")).encode()}
    flags = ("--config", str(settings), "--warehouse", f"file://{tables}")

    with (
        serving(tmp_path / "data", *flags) as server,
        Client(server.uri, token=server.token) as client,
    ):
        client.pipelines.put("day", {})
        client.schedules.put("day", file="day.yaml", files=files, cron="* * * * *")
        _until((out / "flag").exists)
        first = client.schedules.load("day")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()

    with (
        serving(tmp_path / "data", *flags) as server,
        Client(server.uri, token=server.token) as client,
    ):
        again = _until(lambda: _if(client.schedules.load("day"), lambda one: one.attempts == 2))
        ended = _until(
            lambda: _if(client.jobs.result(str(again.job)), lambda one: one.state in ("succeeded", "failed"))
        )
        client.schedules.delete("day")
        runs = [client.runs.load(each.id) for each in client.runs.list(pipeline="day")]

        assert ended.state == "succeeded", ended
        assert again.last_due_at == first.last_due_at
        assert "stopped responding" in str(client.jobs.result(str(first.job)).message)
        assert [run.options["due"] for run in runs if run.state == "published"][-1:] == [
            str(first.last_due_at).replace(".000", "")
        ]
        assert client.tables.load("main.shop.numbers") is not None
        assert [each.name for each in client.tokens.list() if each.name.startswith("job ")] == []


def _if(value: T, holds: Callable[[T], bool]) -> T | None:
    """Return a value that fulfils a condition, else None."""
    return value if holds(value) else None


def _until(look: Callable[[], T | None]) -> T:
    """Wait until a call returns a value other than None and False. Returns it."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        value = look()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("it did not become so in time")
