# SPDX-License-Identifier: Apache-2.0
"""A pipeline in a notebook: checked, planned and run, with the session's server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.engine.driver import SparkEngine
from limnos.pipeline.failures import StepAway
from limnos.pipeline.project import Project, load

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def project(place: tuple[str, str], tmp_path: Path) -> Project:
    """Two steps; the input of the first does not exist yet."""
    space = place[1]
    file = tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: {space}\ncatalog: main\nsteps:\n"
        f"  {space}.a: {{sql: SELECT id FROM main.{space}.source}}\n"
        f'  {space}.b: {{sql: "SELECT id, id * 2 AS twice FROM main.{space}.a"}}\n'
    )
    return load(file)


def test_project_is_checked_and_planned_without_changes(
    spark: SparkSession, admin: Client, project: Project, place: tuple[str, str]
) -> None:
    """A check alone covers names; with the session's server also tables and privileges. A plan lists the changes of
    tables. Nothing is created.
    """
    space = place[1]
    alone, before, planned_before = project.check(), project.check(spark), project.plan(spark)
    spark.sql(f"CREATE TABLE main.{space}.source (id BIGINT)")

    after, planned = project.check(spark, client=admin), project.plan(spark)

    assert (alone.problems, len(alone.unchecked)) == ((), 1)
    assert [problem.message.partition(",")[0] for problem in before.problems] == [
        f"{space}.a reads main.{space}.source"
    ]
    assert (planned_before.holds, planned_before.steps) == (False, ())
    assert after.holds
    assert planned.holds
    assert [(each.step.name, each.level, each.is_new) for each in planned.steps] == [
        (f"{space}.a", 0, True),
        (f"{space}.b", 1, True),
    ]
    assert f"CREATE TABLE main.{space}.b (id bigint, twice bigint)" in " ".join(
        planned.previews[f"{space}.b"].statements
    )
    assert [name[-1] for name in admin.tables.list(f"main.{space}")] == ["source"]


def test_heartbeats_of_a_run_have_a_client_with_a_short_deadline(
    spark: SparkSession, project: Project, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not answer a heartbeat for a minute has lost the run: its client waits for ten seconds."""
    deadlines: dict[int, float] = {}
    real_client = Project._client

    def client_of(own: Project, session: SparkSession, *, timeout_s: float = 60.0) -> Client:
        client = real_client(own, session, timeout_s=timeout_s)
        deadlines[id(client)] = timeout_s
        return client

    monkeypatch.setattr(Project, "_client", client_of)
    with project._means(spark, client=None, listener=None) as means:
        waits = (deadlines[id(means.client)], deadlines[id(means.heartbeat_client)])

    assert waits == (60.0, 10)


def test_unreachable_catalog_raises_unavailable_error(spark: SparkSession, project: Project) -> None:
    """If the catalog cannot be reached before a run's first step, the error is UnavailableError, not Spark's
    exception.
    """
    away = spark.newSession()  # a session that has not used its catalog yet
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog.main"):
            away.conf.set(key, value)
    away.conf.set("spark.sql.catalog.main.uri", "http://127.0.0.1:1/iceberg")
    away.conf.set("spark.sql.catalog.main.rest.client.max-retries", "1")

    with pytest.raises(StepAway) as raised:
        SparkEngine(away).reads(project.declaration)

    assert "127.0.0.1:1" in raised.value.message
    assert "\n\tat " not in raised.value.message
