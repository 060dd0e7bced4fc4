# SPDX-License-Identifier: Apache-2.0
"""Jobs of templates in the store: one node leases each job and only it ends the job; old jobs and jobs of dropped
templates are deleted.
"""

from __future__ import annotations

from limnos.model.entities import Node
from limnos.model.jobs import QUEUED, JobOutput, TemplateJob
from limnos.store.activity.runs import RunViewer
from limnos.store.activity.template_jobs import job_output_read, job_read, jobs_due, template_jobs_read
from limnos.store.activity.upkeep import orphans_sweep
from tests.backends import StoreLab
from tests.store.activity.test_runs import add_pipeline
from tests.store.world import StoreWorld

EVERYBODY = RunViewer(True, ())
OUTPUT = JobOutput("out", "err", 3, 30)


def ask(lab: StoreLab, world: StoreWorld, template: Node, uuid: str, *, owner: int | None = 7) -> TemplateJob:
    """Insert a job of user ana."""
    job = TemplateJob(
        id=0,
        metalake_id=world.lake.id,
        template_id=template.id,
        uuid=uuid,
        user="ana",
        user_id=7,
        state=QUEUED,
        holder="",
        beat_at=0,
        lease_ms=0,
        message=None,
        exit_code=None,
        queued_at=lab.store.time.now_ms(),
        started_at=None,
        ended_at=None,
        owner_id=owner,
    )
    return lab.write(lambda tx: tx.template_jobs.create(job, conf="{}", work="w"), zone=world.lake.id)


def test_only_the_lease_holder_can_end_a_job(lab: StoreLab, world: StoreWorld) -> None:
    """A node leases the oldest job first. A node without the lease cannot end the job, and a job ends only once."""
    template = add_pipeline(lab, world)
    first, second = ask(lab, world, template, "j-1"), ask(lab, world, template, "j-2")
    took = lab.write(lambda tx: tx.template_jobs.claim("h", limit=1, lease_ms=60_000))
    rest = lab.write(lambda tx: tx.template_jobs.claim("other", limit=5, lease_ms=60_000))
    ((job, work),) = took
    beats = [lab.write(lambda tx, who=who: tx.template_jobs.beat(first.id, who)) for who in ("h", "other")]
    cancellations = [lab.write(lambda tx: tx.template_jobs.cancel(job), zone=world.lake.id) for _ in range(2)]
    requested_state = lab.write(lambda tx: tx.template_jobs.beat(first.id, "h"))
    ends = [
        lab.write(
            lambda tx: tx.template_jobs.finish(job, "cancelled", message="m", exit_code=-9, output=OUTPUT),
            zone=world.lake.id,
        )
        for _ in range(2)
    ]
    job_output = lab.load(job_output_read(world.lake.id, "j-1"))

    assert ([each[0].id for each in rest], work, job.state, job.holder) == ([second.id], "w", "started", "h")
    assert (beats, cancellations, requested_state, ends) == (
        ["started", None],
        [True, False],
        "cancelling",
        [True, False],
    )
    assert job_output is not None
    assert (job_output[0].state, job_output[0].exit_code, job_output[0].message, job_output[1]) == (
        "cancelled",
        -9,
        "m",
        OUTPUT,
    )
    assert lab.load(job_read(world.lake.id, "none")) is None


def test_waiting_job_is_cancelled_and_lost_job_is_listed(lab: StoreLab, world: StoreWorld) -> None:
    """A waiting job is cancelled at once. A job whose lease has expired is listed as lost and is due to be reported."""
    template = add_pipeline(lab, world)
    waits = ask(lab, world, template, "j-1")
    now = lab.store.time.now_ms()
    due = lab.load(jobs_due(now))
    lab.write(lambda tx: tx.template_jobs.cancel(waits), zone=world.lake.id)
    withdrawn = lab.load(job_read(world.lake.id, "j-1"))
    ask(lab, world, template, "j-2")
    lab.write(lambda tx: tx.template_jobs.claim("h", limit=1, lease_ms=0))
    (lost,) = lab.write(lambda tx: tx.template_jobs.read_expired(10))

    assert (due, withdrawn and withdrawn.state, lab.load(jobs_due(now - 1)), lab.load(jobs_due(now + 60_000))) == (
        True,
        "cancelled",
        False,
        True,
    )
    assert (lost.uuid, lost.state, lost.display_state(now + 60_000)) == ("j-2", "started", "failed")
    assert lab.write(lambda tx: tx.template_jobs.waiting_of(world.lake.id, "ana")) == 1
    assert lab.write(lambda tx: tx.template_jobs.live_of(template.id)) == lost


def test_users_see_their_jobs_and_owners_those_of_their_template(lab: StoreLab, world: StoreWorld) -> None:
    """Users see the jobs that they own, and the owner of a template sees all of its jobs, for a metalake or one
    template.
    """
    template, other = add_pipeline(lab, world), add_pipeline(lab, world, "other")
    for uuid, of, owner in (("j-1", template, 7), ("j-2", template, 8), ("j-3", other, 7)):
        ask(lab, world, of, uuid, owner=owner)

    def seen(caller: RunViewer, of: Node | None = None) -> list[str]:
        load = template_jobs_read((of or world.lake).id, caller, of_template=of is not None, limit=10)
        return [job.uuid for job in lab.load(load)]

    assert seen(EVERYBODY) == ["j-3", "j-2", "j-1"]
    assert seen(EVERYBODY, template) == ["j-2", "j-1"]
    assert (seen(RunViewer(False, (7,))), seen(RunViewer(False, (8,)))) == (["j-3", "j-1"], ["j-2"])
    assert seen(RunViewer(False, (9,))) == ["j-3", "j-2", "j-1"]
    assert seen(RunViewer(False, ())) == []


def test_old_ended_jobs_and_jobs_of_dropped_templates_are_deleted(lab: StoreLab, world: StoreWorld) -> None:
    """Jobs that ended long ago are deleted, waiting ones are not. All jobs of a dropped template are deleted."""
    template = add_pipeline(lab, world)
    old, waits = ask(lab, world, template, "j-1"), ask(lab, world, template, "j-2")
    lab.write(lambda tx: tx.template_jobs.cancel(old), zone=world.lake.id)
    lab.database.sql("UPDATE template_job SET ended_at = 1 WHERE ended_at IS NOT NULL")

    assert lab.write(lambda tx: tx.template_jobs.prune(keep_ms=1000, limit=10)) == 1
    assert [each and each.id for each in (lab.load(job_read(world.lake.id, uuid)) for uuid in ("j-1", "j-2"))] == [
        None,
        waits.id,
    ]
    lab.write(lambda tx: tx.nodes.drop(template), zone=world.lake.id)
    assert lab.write(orphans_sweep, zone=world.lake.id) >= 2
    assert lab.load(job_read(world.lake.id, "j-2")) is None
