# SPDX-License-Identifier: Apache-2.0
"""Jobs of a killed server: a job is requested or not, is started at most once, is shown as ended, and none of its
processes remains.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from limnos.store.faults import POINTS
from tests.faults.rig import BACKENDS, FULL, SETTLED_WITHIN_S, Rig, on_backends
from tests.faults.store_integrity import complaints
from tests.nodes.wire import GRAVITINO as LAKE
from tests.nodes.wire import OWN
from tests.processes import processes_of

pytestmark = pytest.mark.room("jobs")

API = "/api/metalakes/lake/jobs"
ENDED = ("succeeded", "failed", "cancelled")
PROGRAM = """#!/bin/sh
echo "$LIMNOS_JOB_ID" >> "$1/begun"
while [ -e "$1/closed" ]; do sleep 0.05; done
echo "$LIMNOS_JOB_ID" >> "$1/done"
"""


class Place(NamedTuple):
    """A node that runs jobs, and a directory in which their programs record what they do."""

    rig: Rig
    folder: Path

    def lines(self, name: str) -> list[list[str]]:
        """Return the lines of a file that jobs write, as words."""
        path = self.folder / name
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def close(self) -> None:
        """Let jobs that start from now on wait."""
        (self.folder / "closed").touch()

    def open(self) -> None:
        """Let all waiting jobs continue."""
        (self.folder / "closed").unlink(missing_ok=True)

    def template(self) -> str:
        """Register a template under a unique name."""
        name = self.rig.tag()
        body = {
            "jobType": "shell",
            "name": name,
            "comment": None,
            "executable": str(self.folder / "program.sh"),
            "arguments": [str(self.folder)],
        }
        self.rig.admin.do("POST", f"{API}/templates", {"jobTemplate": body})
        return name

    def ask(self, template: str) -> str:
        """Request a job. Returns its id."""
        response = self.rig.admin.do("POST", f"{API}/runs", {"jobTemplateName": template, "jobConf": {}})
        return str(response.body["job"]["jobId"])  # type: ignore[index]

    def jobs(self, template: str) -> dict[str, str]:
        """Return the jobs of a template with their states."""
        jobs = self.rig.admin.do("GET", f"{API}/runs?jobTemplateName={template}").body["jobs"]
        return {each["jobId"]: each["status"] for each in jobs}  # type: ignore[attr-defined,index]

    def until(self, look: Callable[[], object], *, what: str) -> None:
        """Wait until a condition is true."""
        until = time.monotonic() + SETTLED_WITHIN_S
        while not look():
            assert time.monotonic() < until, f"never: {what}"
            time.sleep(0.02)

    def ended(self, template: str) -> dict[str, str]:
        """Wait until all jobs of a template have ended. Returns their states."""
        self.until(lambda: set(self.jobs(template).values()) <= {*ENDED}, what="all jobs have ended")
        return self.jobs(template)

    def begun(self, job: str) -> bool:
        """Return whether a job's program has begun."""
        return job in {line[0] for line in self.lines("begun")}

    def leases_run_out(self) -> None:
        """Let the leases of all jobs expire now."""
        self.rig.sql("UPDATE template_job SET beat_at = 0 WHERE state IN ('started', 'cancelling')")

    def dead(self) -> None:
        """Wait until the node has died by its fault. Check that its job processes have ended and the store is
        consistent, and let the leases expire.
        """
        self.rig.node.wait_killed()
        self.until(lambda: not processes_of(self.folder / "program.sh"), what="what the dead server ran has ended")
        assert complaints(self.rig.database) == []
        self.leases_run_out()

    def whole(self) -> None:
        """Check that no job began twice and the store is consistent."""
        started_jobs = [line[0] for line in self.lines("begun")]
        assert len(started_jobs) == len(set(started_jobs)), started_jobs
        assert complaints(self.rig.database) == []


@pytest.fixture(scope="module", params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A node for the module's tests, for each database."""
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    folder = tmp_path_factory.mktemp("programs")
    (folder / "program.sh").write_text(PROGRAM)
    (folder / "program.sh").chmod(0o755)
    env = {
        "LIMNOS__JOBS__EXECUTOR": "local",
        "LIMNOS__JOBS__CONFINED": "false",
        "LIMNOS__JOBS__ALLOWED": str(folder),
        "LIMNOS__JOBS__WRITABLE": str(folder),
        "LIMNOS__JOBS__RUNNING_MAX": "1",
    }
    with Rig(tmp_path_factory.mktemp(request.param), database, env=env) as running:
        yield Place(running, folder)


BOUNDARIES = tuple(point for point in POINTS if point != "file-written")
STEPS = ("asked for", "looked at", "taken", "seen alive", "ended")
"""The writes of one job's life in their order. Each passes the boundaries of a mutation."""
LIFE = [(step, point) for step in STEPS for point in BOUNDARIES if point != "drafted" or step in ("asked for", "ended")]
ALWAYS = {
    ("asked for", "before-commit"),
    ("asked for", "after-commit"),
    ("taken", "after-commit"),
    ("ended", "before-commit"),
}
"""Steps and points that every run tests, because the state before each differs from the state after it. The others run
with the complete matrix only.
"""
SAMPLE = [pair for pair in LIFE if FULL or pair in ALWAYS]
ENDS = [
    (waits, point)
    for waits in (False, True)
    for point in BOUNDARIES
    if FULL or (waits, point) in {(False, "after-commit"), (True, "before-commit")}
]


@pytest.mark.parametrize("place,step,point", on_backends(SAMPLE), indirect=["place"])
def test_job_of_killed_server_ends_and_runs_once(place: Place, step: str, point: str) -> None:
    """If the node is killed at any write of a job's life, an acknowledged job exists and has ended, and no program ran
    twice.
    """
    template = place.template()
    count = STEPS.index(step) + 1
    place.rig.arm(point, count=count if point != "drafted" or count == 1 else 2)

    answer = place.rig.try_to("POST", f"{API}/runs", {"jobTemplateName": template, "jobConf": {}})

    place.dead()
    place.rig.start()
    states = place.ended(template)
    if answer is not None or (step, point) == ("asked for", "after-commit") or step != "asked for":
        assert len(states) == 1, "the request was committed, so the job exists"
    else:
        assert states == {}, "nothing was committed"
    done = {line[0] for line in place.lines("done")}
    for job, state in states.items():
        waited = step == "asked for"
        assert state in (("succeeded",) if waited else ("succeeded", "failed"))
        assert state != "succeeded" or job in done
        job_body = place.rig.admin.do("GET", f"{OWN}/metalakes/lake/jobs/{job}").body
        assert state == "succeeded" or "stopped responding" in str(job_body["message"])
    again = place.ask(template)
    assert place.ended(template) == states | {again: "succeeded"}
    place.whole()


@pytest.mark.parametrize("place,waits,point", on_backends(ENDS), indirect=["place"])
def test_killed_cancel_is_effective_only_if_committed(place: Place, waits: bool, point: str) -> None:
    """A committed cancel is effective and an uncommitted one is not. The processes of the killed server have ended in
    both cases.
    """
    template = place.template()
    place.close()
    jobs = [place.ask(template) for _ in range(2 if waits else 1)]
    place.until(lambda: place.begun(jobs[0]), what="the first has begun")
    place.rig.arm(point)

    answer = place.rig.try_to("POST", f"{API}/runs/{jobs[-1]}", None)

    place.dead()
    place.open()
    place.rig.start()
    states = place.ended(template)
    cancelled = states[jobs[-1]] == "cancelled"
    assert cancelled or answer is None, "an acknowledged cancel is effective"
    if waits:
        assert states[jobs[0]] == "failed"
        assert states[jobs[1]] in ("cancelled", "succeeded")
        assert place.begun(jobs[1]) is not cancelled
    place.whole()


@pytest.mark.parametrize("point", BOUNDARIES if FULL else ("after-commit",))
def test_killed_template_drop_is_whole_or_absent(place: Place, point: str) -> None:
    """After the kill, the template exists with its job, or neither exists. A remaining template can be dropped."""
    template = place.template()
    job = place.ask(template)
    assert place.ended(template) == {job: "succeeded"}
    place.rig.arm(point)

    assert place.rig.try_to("DELETE", f"{API}/templates/{template}", None) is None

    place.dead()
    place.rig.start()
    statuses = [place.rig.admin.ask("GET", f"{API}/{path}").status for path in (f"templates/{template}", f"runs/{job}")]
    assert statuses == ([404] * 2 if point == "after-commit" else [200] * 2)
    assert place.rig.admin.do("DELETE", f"{API}/templates/{template}").body["dropped"] is (point != "after-commit")
    assert place.rig.admin.ask("GET", f"{API}/runs/{job}").status == 404
    place.whole()


def test_resumed_node_ends_program_of_its_lost_job(place: Place) -> None:
    """A node is suspended until another node has marked its job as lost. When it resumes, it ends the program and does
    not change the job.
    """
    template = place.template()
    place.close()
    job = place.ask(template)
    place.until(lambda: place.begun(job), what="it has begun")
    place.rig.node.running.send_signal(signal.SIGSTOP)
    place.leases_run_out()
    with place.rig.beside() as other:
        here = Place(other, place.folder)
        assert here.ended(template) == {job: "failed"}
        place.rig.node.go_on()
        place.until(lambda: not processes_of(place.folder / "program.sh"), what="the program has ended")
        place.open()
        place.rig.reconnect()
        assert place.jobs(template) == here.jobs(template) == {job: "failed"}
    assert job not in {line[0] for line in place.lines("done")}
    place.whole()


def test_jobs_of_dead_node_are_lost_and_others_complete(place: Place) -> None:
    """Of many jobs each is started once. Those of a node that dies are marked as lost, and all others are done by the
    other node.
    """
    template = place.template()
    place.close()
    first = place.ask(template)
    place.until(lambda: place.begun(first), what="the first has begun")
    others = [place.ask(template) for _ in range(30 if FULL else 6)]
    ((holder,),) = place.rig.rows("SELECT DISTINCT holder FROM template_job WHERE state = 'started'")
    with place.rig.beside() as other:
        here = Place(other, place.folder)
        place.until(lambda: any(map(place.begun, others)), what="another node has taken one")
        assert sum(map(place.begun, others)) == 1, "the number of jobs that a node runs concurrently"
        place.rig.node.kill()
        other.sql(f"UPDATE template_job SET beat_at = 0 WHERE holder = '{holder}'")
        place.open()

        states = here.ended(template)

        assert states == {first: "failed"} | dict.fromkeys(others, "succeeded")
    place.rig.start()
    assert set(others) <= {line[0] for line in place.lines("done")}
    place.whole()


def test_job_grants_and_revokes_apply_at_once_on_other_node(place: Place) -> None:
    """A grant or revoke of a template's ownership or use on one node affects the next request on the other: for the
    template, its jobs, and new jobs.
    """
    admin, template = place.rig.admin, place.template()
    job = place.ask(template)
    assert place.ended(template) == {job: "succeeded"}
    admin.do("POST", f"{LAKE}/users", {"name": "ana"})
    on = {
        "fullName": template,
        "type": "JOB_TEMPLATE",
        "privileges": [{"name": "use_job_template", "condition": "allow"}],
    }
    more = {"fullName": "lake", "type": "METALAKE", "privileges": [{"name": "run_job", "condition": "allow"}]}
    role = {"name": f"runs_{template}", "properties": {}, "securableObjects": [on, more]}
    admin.do("POST", f"{LAKE}/roles", role)
    with place.rig.beside() as other:
        place.rig.reconnect()
        admin, ana = place.rig.admin, other.wire("ana")

        def statuses() -> list[int]:
            """Return the statuses that ana gets for the template, its job, a cancel of that job, and a new job."""
            body = {"jobTemplateName": template, "jobConf": {}}
            requests = (
                ("GET", f"{API}/templates/{template}", None),
                ("GET", f"{API}/runs/{job}", None),
                ("POST", f"{API}/runs/{job}", None),
                ("POST", f"{API}/runs", body),
            )
            return [ana.ask(*each).status for each in requests]

        for _ in range(20 if FULL else 3):
            assert statuses() == [403, 403, 403, 403]
            admin.do("PUT", f"{LAKE}/permissions/users/ana/grant", {"roleNames": [role["name"]]})
            assert statuses() == [200, 403, 403, 200]
            admin.do("PUT", f"{LAKE}/permissions/users/ana/revoke", {"roleNames": [role["name"]]})
            assert statuses()[::3] == [403, 403]
            admin.do("PUT", f"{LAKE}/owners/job_template/{template}", {"name": "ana", "type": "USER"})
            assert statuses()[:3] == [200, 200, 200]
            admin.do("PUT", f"{LAKE}/owners/job_template/{template}", {"name": "admin", "type": "USER"})
    place.ended(template)
    place.whole()
