# SPDX-License-Identifier: Apache-2.0
"""Schedules with `if_changed`: a due time starts nothing while what the last run read is as it was."""

from __future__ import annotations

import uuid

import pytest

from tests.http.admin.catalog.test_transactions import together
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode, let_jobs
from tests.http.iceberg.wire import (
    commit,
    make_table,
    point,
    set_properties,
    snapshot,
)
from tests.services.runs.test_schedules import (
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
    """A partial run, one with topics, with views, without inputs, with inputs that are missing or were empty, and a
    record in another shape do not hold back the next run.
    """
    with clock_at(lake, NOON) as now:
        schedule(lake, cron="0 * * * *", if_changed=True)
        hours(lake, now)
        run(lake, pins=pins, **options)

        assert hours(lake, now) == 2


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
