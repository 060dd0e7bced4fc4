# SPDX-License-Identifier: Apache-2.0
"""Schedules in the store: due once, not while their job waits or runs, and deleted with their pipeline."""

from __future__ import annotations

from msgspec import structs

from limnos.model.entities import Node
from limnos.model.schedules import Schedule, ScheduleTerms
from limnos.store.activity.schedules import (
    schedule_read,
    schedule_with_files_read,
    schedules_due,
    schedules_read,
)
from limnos.store.activity.upkeep import orphans_sweep
from tests.backends import StoreLab
from tests.store.activity.test_runs import add_pipeline
from tests.store.activity.test_template_jobs import ask
from tests.store.world import StoreWorld

FILES = b"files"


def add_schedule(lab: StoreLab, pipeline: Node, *, due_at: int) -> Schedule:
    """Insert a schedule of user ana."""
    schedule = Schedule(
        pipeline_id=pipeline.id,
        metalake_id=pipeline.parent_id,
        user="ana",
        user_id=7,
        trust="proven",
        terms=ScheduleTerms(file="p.yaml", cron="0 6 * * *", time_zone="Europe/Paris"),
        created_at=lab.store.time.now_ms(),
        due_at=due_at,
        next_at=due_at,
        paused=False,
        reason=None,
        job_id=None,
        run_due_at=None,
        attempts=0,
    )
    lab.write(lambda tx: tx.schedules.put(schedule, files=FILES, name=pipeline.name), zone=pipeline.parent_id)
    stored = lab.load(schedule_read(pipeline.id))
    assert stored is not None
    return stored


def test_stored_schedule_equals_the_registered_one(lab: StoreLab, world: StoreWorld) -> None:
    """A schedule is read with its terms and files, alone and in the list of its metalake."""
    pipeline = add_pipeline(lab, world)

    schedule = add_schedule(lab, pipeline, due_at=5)

    assert schedule.terms == ScheduleTerms(file="p.yaml", cron="0 6 * * *", time_zone="Europe/Paris")
    assert lab.load(schedule_with_files_read(pipeline.id)) == (schedule, FILES)
    assert lab.load(schedules_read(world.lake.id)) == [schedule]
    assert lab.load(schedules_read(world.lake.id + 1)) == []


def test_only_one_start_of_a_due_time_is_recorded(lab: StoreLab, world: StoreWorld) -> None:
    """Of two nodes that read the same due schedule, one records its start; it is not due while the job waits."""
    pipeline = add_pipeline(lab, world)
    schedule = add_schedule(lab, pipeline, due_at=5)
    job = ask(lab, world, pipeline, "j-1")
    started = structs.replace(schedule, job_id=job.id, run_due_at=5, attempts=1, due_at=6, next_at=900)

    before = lab.load(schedules_due(5, limit=9))
    starts = [lab.write(lambda tx: tx.schedules.start(schedule, started), zone=world.lake.id) for _ in range(2)]

    assert (before, starts) == ([schedule], [True, False])
    assert lab.load(schedules_due(1000, limit=9)) == []
    assert lab.load(schedule_read(pipeline.id)) == started
    lab.write(lambda tx: tx.template_jobs.cancel(job), zone=world.lake.id)
    assert lab.load(schedules_due(1000, limit=9)) == [started]


def test_paused_schedule_is_not_due(lab: StoreLab, world: StoreWorld) -> None:
    """A paused schedule has a reason and is not due; it is paused once, and resumed once."""
    pipeline = add_pipeline(lab, world)
    schedule = add_schedule(lab, pipeline, due_at=5)

    paused = [
        lab.write(lambda tx: tx.schedules.pause(schedule, reason="why", name="p"), zone=world.lake.id) for _ in range(2)
    ]
    due_paused, stored = lab.load(schedules_due(9, limit=9)), lab.load(schedule_read(pipeline.id))
    resumed = [
        lab.write(lambda tx: tx.schedules.resume(schedule, due_at=7, next_at=8, name="p"), zone=world.lake.id)
        for _ in range(2)
    ]

    assert (paused, resumed, due_paused) == ([True, False], [True, False], [])
    assert stored is not None
    assert (stored.paused, stored.reason) == (True, "why")
    assert [(each.due_at, each.next_at, each.reason) for each in lab.load(schedules_due(9, limit=9))] == [(7, 8, None)]


def test_schedule_ends_with_its_pipeline(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep deletes the schedules of dropped pipelines, and no others."""
    first, dropped = add_pipeline(lab, world), add_pipeline(lab, world, "other")
    for each in (first, dropped):
        add_schedule(lab, each, due_at=5)

    lab.write(lambda tx: tx.nodes.drop(dropped), zone=world.lake.id)
    lab.write(orphans_sweep)

    assert [each.pipeline_id for each in lab.load(schedules_due(9, limit=9))] == [first.id]
