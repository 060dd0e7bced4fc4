# SPDX-License-Identifier: Apache-2.0
"""Schedules with `if_changed`: a due time starts nothing while what the last run read is as it was."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing

import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.formats.iceberg.view_fingerprints import metadata_fingerprint
from tests.http.admin.catalog.test_transactions import together
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode, let_jobs
from tests.http.iceberg.wire import (
    commit,
    make_table,
    make_view,
    point,
    set_properties,
    snapshot,
    view_path,
)
from tests.rooms.pipelines.services.test_schedules import (
    HOUR_MS,
    LAKE,
    NOON,
    clock_at,
    due_jobs,
    end_jobs,
    load_schedule,
    look,
    schedule,
)

T = ["main", "a", "t"]
V = ["main", "a", "v"]
Pins = list[dict[str, object]]
AT_ONE: Pins = [{"table": T, "snapshot": 100, "fingerprint": None}]


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:  # noqa: F811 - a fixture
    """A lake with a table `a.t` at snapshot 100, whose server runs pipelines."""
    let_jobs(node)
    make_table(node, "a", "t")
    add_snapshot(node, 1)
    return node


def add_snapshot(lake: DriverNode, number: int) -> None:
    """Append a snapshot to the table; its id is 100 times the number."""
    parent = number - 1 or None
    assert commit(lake, "a", "t", updates=[snapshot(number, parent=parent), point(number)]).status == 200


def run(lake: DriverNode, *, pins: Pins, publishes: bool = True, **options: object) -> None:
    """Run the pipeline once with pins of its inputs, and end its job. It succeeds or fails."""
    body = {"id": str(uuid.uuid4()), "holder": "h:1", "steps": [], "options": {"pins": pins, **options}}
    started = lake.done("POST", f"{LAKE}/pipelines/p/runs", body)
    if publishes:
        assert together(lake, {"do": "publish-run", "run": started["id"], "attempt": 1}).status == 200
    else:
        lake.done("POST", f"{OWN}/metalakes/lake/runs/{started['id']}/finish", {"attempt": 1, "state": "failed"})
    end_jobs(lake)


def hours(lake: DriverNode, now: list[int], count: int = 1) -> int:
    """Let due times pass, an hour each, with a look at each; returns the number of all jobs."""
    for _ in range(count):
        now[0] += HOUR_MS
        look(lake)
    return len(due_jobs(lake))


def test_unchanged_inputs_start_no_run_until_one_changes(lake: DriverNode) -> None:
    """The first due time runs. Then due times pass, and the schedule says why, until the table has another snapshot; a
    commit without a new snapshot is no change of rows.
    """
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *", if_changed=True)
        first = hours(lake, now)
        run(lake, pins=AT_ONE)
        second = hours(lake, now, 3)
        waiting = load_schedule(lake)
        together(lake, {"do": "commit-table", "path": ["a", "t"], "updates": [set_properties(by="x")]})
        third = hours(lake, now)
        add_snapshot(lake, 2)
        fourth = hours(lake, now)
        started = load_schedule(lake)

    assert (first, second, third, fourth) == (1, 1, 1, 2)
    assert (waiting["if_changed"], waiting["paused"]) == (True, False)
    assert waiting["reason"] == "no run at 2026-11-28T16:00:00Z: no table that the last run read has changed"
    assert waiting["next"] == ["2026-11-28T17:00:00.000Z"]
    assert (started["reason"], started["last_due_at"]) == (None, "2026-11-28T18:00:00.000Z")


def test_schedule_without_the_condition_runs_at_each_due_time(lake: DriverNode) -> None:
    """Without `if_changed` an unchanged table is read again."""
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *")
        hours(lake, now)
        run(lake, pins=AT_ONE)

        assert hours(lake, now) == 2


@pytest.mark.parametrize(
    "pins, options",
    [
        (AT_ONE, {"only": ["raw"]}),
        (AT_ONE, {"from": ["raw"]}),
        (AT_ONE, {"select": ["tag:x"]}),
        (AT_ONE, {"exclude": ["raw"]}),
        (AT_ONE, {"sources": {"topic": "7"}}),
        (AT_ONE, {"loops": {"raw.t_{{x}}": {"query": "SELECT 1"}}}),
        ([], {}),
        ([{"table": T, "snapshot": None}], {}),
        ([{"table": ["main", "a", "missing"], "snapshot": 100}], {}),
        ([{"table": ["gone", "a", "t"], "snapshot": 100}], {}),
        ([{"table": ["main"], "snapshot": 100}], {}),
        ([{"table": T, "snapshot": 100}, {"table": V, "snapshot": None, "fingerprint": "f"}], {}),
        ([{"table": "main.a.t"}], {}),
    ],
    ids=str,
)
def test_record_that_proves_nothing_counts_as_changed(lake: DriverNode, pins: Pins, options: dict[str, object]) -> None:
    """A partial run, one with topics, with loops over queries, without inputs, with inputs that are missing or were
    empty, and a record in another shape do not hold back the next run.
    """
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *", if_changed=True)
        hours(lake, now)
        run(lake, pins=pins, **options)

        assert hours(lake, now) == 2


def test_changed_view_starts_a_run(lake: DriverNode) -> None:
    """A view with another query than the run has read starts the next one, as do rows of a table below it; another
    property of the view does not.
    """
    with clock_at(lake, NOON) as now:
        make_view(lake, "a", "v")
        schedule(lake, cron="0 * * * *", if_changed=True)
        body = lake.get(view_path("a", "v")).json()["metadata"]
        fingerprint = metadata_fingerprint(json.dumps(body).encode())
        pins = [*AT_ONE, {"table": V, "snapshot": None, "fingerprint": fingerprint}]
        first = hours(lake, now)
        run(lake, pins=pins)
        second = hours(lake, now)
        updates = [{"action": "set-properties", "updates": {"x": "1"}}]
        assert lake.post(view_path("a", "v"), {"updates": updates}).status == 200
        third = hours(lake, now)
        add_snapshot(lake, 2)
        fourth = hours(lake, now)
        run(lake, pins=[{"table": T, "snapshot": 200}, {"table": V, "fingerprint": "view:0123456789abcdef"}])
        fifth = hours(lake, now)

    assert (first, second, third, fourth, fifth) == (1, 1, 1, 2, 3)


@pytest.mark.room("lance")
def test_changed_version_of_a_lance_table_starts_a_run(lake: DriverNode) -> None:
    """A Lance table whose versions the server keeps is compared by its newest version; one that was declared again, or
    whose versions its storage keeps, counts as changed.
    """
    table = ["lance", "t"]
    with clock_at(lake, NOON) as now:
        declare(lake)
        add_version(lake, 3)
        schedule(lake, cron="0 * * * *", if_changed=True)
        first = hours(lake, now)
        run(lake, pins=[{"table": table, "snapshot": 3, "lance": {"digest": "d"}}])
        second = hours(lake, now)
        add_version(lake, 4)
        third = hours(lake, now)
        run(lake, pins=[{"table": table, "snapshot": 4, "lance": {"digest": "d"}}])
        fourth = hours(lake, now)
        assert lake.ask("POST", "/lance/v1/table/lance$t/drop", {}).status == 200
        declare(lake)
        add_version(lake, 4)
        fifth = hours(lake, now)
        run(lake, pins=[{"table": table, "snapshot": 5, "lance": {"digest": "d"}}])
        sixth = hours(lake, now)

    assert (first, second, third, fourth, fifth, sixth) == (1, 1, 2, 2, 3, 4)


def declare(lake: DriverNode) -> None:
    """Declare a Lance table whose versions the server keeps."""
    lake.done("POST", "/lance/v1/table/lance$t/declare", {"properties": {"managed_versioning": "true"}})


def add_version(lake: DriverNode, number: int) -> None:
    """Add a version of the Lance table to the store, as a commit of Lance's library does."""
    with closing(sqlite3.connect(lake.data / DATABASE_FILE)) as connection, connection:
        row = connection.execute("SELECT id FROM node WHERE name = 't' AND format = 'lance' AND deleted = 0").fetchone()
        values = {"id": row[0], "number": number, "at": lake.built.services.store.time.now_ms()}
        connection.execute(
            "INSERT INTO lance_version (node_id, branch, version, scheme, staged, metadata, created_at, settled)"
            " VALUES (:id, '', :number, 2, '', '{}', :at, 1)",
            values,
        )


def test_failed_run_is_repeated_at_the_next_due_time(lake: DriverNode) -> None:
    """A run that was not published has not read anything for good."""
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *", if_changed=True)
        hours(lake, now)
        run(lake, pins=AT_ONE, publishes=False)

        assert hours(lake, now) == 2


def test_schedule_that_is_registered_again_runs_once(lake: DriverNode) -> None:
    """Another registration may have other files, so its first due time runs."""
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *", if_changed=True)
        hours(lake, now)
        run(lake, pins=AT_ONE)
        now[0] += 1
        schedule(lake, cron="0 * * * *", if_changed=True)

        assert hours(lake, now) == 2


def test_disabled_catalog_of_an_input_does_not_hold_back_the_run(lake: DriverNode) -> None:
    """The run starts, and says what it lacks."""
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *", if_changed=True)
        hours(lake, now)
        run(lake, pins=AT_ONE)
        lake.done("PATCH", "/api/metalakes/lake/catalogs/main", {"inUse": False})

        assert hours(lake, now) == 2
