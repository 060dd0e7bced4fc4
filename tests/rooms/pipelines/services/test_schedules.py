# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines: whose rights they have, which files they take, and their starts under clocks that jump."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from limnos.formats.schedule_files import BYTES_MAX
from limnos.model.jobs import LOST_MESSAGE, JobOutput
from limnos.model.permits import upkeep_permit
from limnos.model.schedules import ScheduleTerms
from limnos.rooms.pipelines.services.due_times import calendar_of
from limnos.rooms.pipelines.services.schedule_starts import schedules_step
from limnos.services.runs.job_rules import JOB_RULES, JobRules
from limnos.store.activity.future_times import stored_times_repair
from limnos.store.sql import Sql
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import API, OWN, SCHEDULE, DriverAnswer, DriverNode, grant, let_jobs, node_at

LAKE: Final = f"{OWN}/metalakes/lake"
JOBS: Final = f"{API}/lake/jobs/runs"
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
CONFS: Final = Sql("SELECT conf FROM template_job ORDER BY id")
NOON: Final = round(datetime.fromisoformat("2026-11-28T12:00:00+00:00").timestamp() * 1000)


@contextmanager
def clock_at(node: DriverNode, start_ms: int) -> Iterator[list[int]]:  # noqa: F811 - a fixture
    """Replace the clock of a node's store. Yields a list whose only item is the time."""
    now, time = [start_ms], node.built.services.store.time
    before = time.now_ms
    time.now_ms = lambda: now[0]  # type: ignore[method-assign]
    try:
        yield now
    finally:
        time.now_ms = before  # type: ignore[method-assign]


def schedule(node: DriverNode, name: str = "p", *, user: str = "admin", **more: object) -> DriverAnswer:  # noqa: F811
    """Declare a pipeline as admin, and register its schedule as a user."""
    node.done("PUT", f"{LAKE}/pipelines/{name}", {"declaration": {}})
    return node.ask("PUT", f"{LAKE}/pipelines/{name}/schedule", SCHEDULE | more, user=user)


def load_schedule(node: DriverNode, name: str = "p") -> dict:  # noqa: F811
    """Return a schedule as its route answers it."""
    return node.done("GET", f"{LAKE}/pipelines/{name}/schedule")


def look(node: DriverNode) -> None:  # noqa: F811
    """Let the node look at its schedules once."""
    node.runner.run(schedules_step(node.built.services))


def end_jobs(node: DriverNode, message: str | None = None) -> None:  # noqa: F811
    """Let all waiting jobs run and end: they succeed, or fail with a message."""
    services, permit = node.built.services, upkeep_permit("limnos")

    async def end() -> None:
        claimed = await services.store.submit(permit, lambda tx: tx.template_jobs.claim("h", limit=99, lease_ms=9))
        for job, _ in claimed:
            own, state = upkeep_permit("limnos", zone=job.metalake_id), "succeeded" if message is None else "failed"
            code = 0 if message is None else None
            await services.store.submit(
                own,
                lambda tx, job=job, state=state, code=code: tx.template_jobs.finish(
                    job, state, message=message, exit_code=code, output=JobOutput()
                ),
            )

    node.runner.run(end())


def due_jobs(node: DriverNode) -> list[str]:  # noqa: F811
    """Return the due times of all jobs, oldest first."""
    services = node.built.services

    async def read() -> list[str]:
        rows = await services.store.submit(
            upkeep_permit("limnos"),
            lambda tx: tx.rows(CONFS, {}),
        )
        return [str(row[0]) for row in rows]

    return node.runner.run(read())


def test_due_schedule_starts_one_job_and_is_due_again(node: DriverNode) -> None:  # noqa: F811
    """At its due time a schedule becomes a job of its user; not earlier, and not again before the next one."""
    let_jobs(node)
    with clock_at(node, NOON) as now:
        registered = schedule(node).json()
        look(node)
        early = due_jobs(node)
        now[0] = NOON + 18 * HOUR_MS
        look(node)
        look(node)
        end_jobs(node)
        look(node)
        after = load_schedule(node)

    assert registered["next"] == ["2026-11-29T06:00:00.000Z"]
    assert early == []
    assert due_jobs(node) == ['{"due":"2026-11-29T06:00:00Z"}']
    assert (after["last_due_at"], after["job_state"], after["attempts"]) == ("2026-11-29T06:00:00.000Z", "succeeded", 1)
    assert after["next"] == ["2026-11-30T06:00:00.000Z"]


def test_missed_times_run_once(node: DriverNode) -> None:  # noqa: F811
    """After five days without a server one job starts, for the first due time; so it does after a job of three days."""
    let_jobs(node)
    with clock_at(node, NOON) as now:
        schedule(node)
        now[0] += 5 * DAY_MS
        look(node)
        now[0] += 3 * DAY_MS
        look(node)
        end_jobs(node)
        for _ in range(3):
            look(node)
            end_jobs(node)

    assert due_jobs(node) == ['{"due":"2026-11-29T06:00:00Z"}', '{"due":"2026-12-04T06:00:00Z"}']


def test_lost_job_is_started_again_for_the_same_due_time(node: DriverNode) -> None:  # noqa: F811
    """A job whose server was killed is started again, three times in all; one that failed by itself is not."""
    let_jobs(node)
    with clock_at(node, NOON) as now:
        schedule(node)
        now[0] += DAY_MS
        for message in (LOST_MESSAGE, LOST_MESSAGE, LOST_MESSAGE, "Ended with exit code 11"):
            look(node)
            end_jobs(node, message)
        lost = due_jobs(node)
        now[0] += DAY_MS
        look(node)
        end_jobs(node, "Ended with exit code 11")
        look(node)

    assert lost == ['{"due":"2026-11-29T06:00:00Z"}'] * 3
    assert due_jobs(node)[3:] == ['{"due":"2026-11-30T06:00:00Z"}']


def test_schedule_waits_for_another_run_of_its_pipeline(node: DriverNode) -> None:  # noqa: F811
    """While somebody runs the pipeline, nothing starts; it starts when that run has ended."""
    let_jobs(node)
    run = "00000000-0000-0000-0000-000000000009"
    with clock_at(node, NOON) as now:
        schedule(node)
        now[0] += DAY_MS
        node.done("POST", f"{LAKE}/pipelines/p/runs", {"id": run, "holder": "h:1"})
        look(node)
        busy = due_jobs(node)
        node.done("POST", f"{LAKE}/runs/{run}/finish", {"attempt": 1, "state": "failed"})
        now[0] += 10_000
        look(node)

    assert (busy, due_jobs(node)) == ([], ['{"due":"2026-11-29T06:00:00Z"}'])


def _disable(node: DriverNode) -> None:  # noqa: F811
    node.done("PATCH", f"{LAKE}/users/ana", {"enabled": False})


def _remove(node: DriverNode) -> None:  # noqa: F811
    node.done("DELETE", f"{API}/lake/users/ana")


def _revoke(node: DriverNode) -> None:  # noqa: F811
    roles = node.done("GET", f"{API}/lake/users/ana")["user"]["roles"]
    node.done("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": roles})


def _leave_to_load(node: DriverNode) -> None:  # noqa: F811
    _revoke(node)
    grant(node, "ana", "use_job_template", kind="METALAKE", on="lake")


@pytest.mark.parametrize(
    "change,words",
    [(_disable, "is disabled"), (_remove, "was removed"), (_revoke, "ana"), (_leave_to_load, "RUN_JOB")],
)
def test_schedule_of_a_user_without_the_right_is_paused(node: DriverNode, change: object, words: str) -> None:  # noqa: F811
    """If its user is disabled, removed or lost the right when it is due, nothing starts, and the reason is shown."""
    let_jobs(node)
    grant(node, "ana", "run_job use_job_template", kind="METALAKE", on="lake")
    with clock_at(node, NOON) as now:
        assert schedule(node, user="ana").status == 200
        change(node)  # type: ignore[operator]
        now[0] += DAY_MS
        look(node)
        result = load_schedule(node)

    assert (result["paused"], due_jobs(node)) == (True, [])
    assert words in result["reason"]


def test_only_its_user_resumes_a_schedule(node: DriverNode) -> None:  # noqa: F811
    """The pipeline's owner pauses the schedule of another user, and may not resume it; what it missed is not run."""
    let_jobs(node)
    grant(node, "ana", "run_job use_job_template", kind="METALAKE", on="lake")
    grant(node, "bob", "run_job use_job_template", kind="METALAKE", on="lake")
    one = f"{LAKE}/pipelines/p/schedule"
    with clock_at(node, NOON) as now:
        assert schedule(node, user="ana").status == 200
        by_bob = [node.ask("POST", one, {"paused": True}, user="bob").status, schedule(node, user="bob").status]
        by_owner = [node.ask("POST", one, {"paused": paused}).status for paused in (True, False)]
        now[0] += DAY_MS
        look(node)
        by_user = node.ask("POST", one, {"paused": False}, user="ana")
        look(node)

    assert (by_bob, by_owner, by_user.status) == ([403, 403], [200, 403], 200)
    assert (due_jobs(node), by_user.json()["next"]) == ([], ["2026-11-30T06:00:00.000Z"])


def test_user_without_the_rights_neither_resumes_nor_deletes_a_schedule(node: DriverNode) -> None:  # noqa: F811
    """A schedule's user who may no longer run the pipeline pauses and does not resume it. Who may no longer load the
    pipeline does neither, and does not delete the schedule.
    """
    let_jobs(node)
    grant(node, "ana", "run_job use_job_template", kind="METALAKE", on="lake")
    one = f"{LAKE}/pipelines/p/schedule"
    with clock_at(node, NOON):
        assert schedule(node, user="ana").status == 200
        _leave_to_load(node)
        loading = [node.ask("POST", one, {"paused": paused}, user="ana").status for paused in (True, False)]
        _revoke(node)
        without = [node.ask("POST", one, {"paused": paused}, user="ana").status for paused in (True, False)]
        deleted = node.ask("DELETE", one, user="ana").status

    assert (loading, without, deleted) == ([200, 403], [403, 403], 403)


@pytest.mark.parametrize(
    "rules,words",
    [
        (JobRules(), "jobs.executor = local and jobs.pipelines = true"),
        (JobRules(pipelines=True), "jobs.executor"),
        (JobRules(enabled=True), "jobs.pipelines"),
        (JobRules(enabled=True, pipelines=True, is_confinable=False), "cannot confine"),
    ],
)
def test_server_without_jobs_refuses_schedules(node: DriverNode, rules: JobRules, words: str) -> None:  # noqa: F811
    """The answer names the setting that is missing."""
    JOB_RULES.put(node.built.services, rules)

    answer = schedule(node)

    assert answer.status == 405
    assert words in answer.body.decode()


@pytest.mark.parametrize(
    "files,words",
    [
        ({"../p.yaml": b""}, "inside of"),
        ({"/p.yaml": b""}, "inside of"),
        ({"a//p.yaml": b""}, "inside of"),
        ({"a\\p.yaml": b""}, "inside of"),
        ({"a\np.yaml": b""}, "inside of"),
        ({"p.yaml": b"", "p.yaml/x": b""}, "inside of another file"),
        ({"q.yaml": b""}, "among the files"),
        ({"p.yaml": b"x" * (BYTES_MAX + 1)}, "at most"),
        ({f"{number}": b"" for number in range(201)}, "at most"),
    ],
)
def test_unusable_files_are_refused(node: DriverNode, files: dict[str, bytes], words: str) -> None:  # noqa: F811
    """Paths outside of the directory, too many or too large files are refused, and nothing is stored."""
    let_jobs(node)

    answer = schedule(node, files={path: base64.b64encode(text).decode() for path, text in files.items()})

    assert answer.status == 400
    assert words in answer.body.decode()
    assert node.get(f"{LAKE}/pipelines/p/schedule").status == 404


@pytest.mark.parametrize("seed", range(6))
def test_jumps_of_the_clock_neither_flood_nor_stop_a_schedule(node: DriverNode, seed: int) -> None:  # noqa: F811
    """Under random jumps of up to a day, each look starts at most one job; after the clock is right, the next due time
    runs at its time, and each due time of a right clock runs once.
    """
    let_jobs(node)
    chance = random.Random(seed)
    services = node.built.services
    cron = chance.choice(["0 * * * *", "30 2 * * *", "15 */6 * * *", "0 6 * * 1-5"])
    zone = chance.choice(["UTC", "Europe/Paris", "Australia/Lord_Howe"])

    async def repair() -> None:
        await services.store.submit(upkeep_permit("limnos"), lambda tx: stored_times_repair(tx, {}))

    with clock_at(node, NOON) as now:
        schedule(node, cron=cron, time_zone=zone)
        for _ in range(40):
            now[0] += chance.choice([HOUR_MS // 2, HOUR_MS, -DAY_MS, DAY_MS, 7 * HOUR_MS])
            node.runner.run(repair())
            count = len(due_jobs(node))
            look(node)
            end_jobs(node)
            assert len(due_jobs(node)) <= count + 1
        for _ in range(4):  # the clock is right from now on: at most an hour until the next look
            now[0] += HOUR_MS // 2
            node.runner.run(repair())
            look(node)
            end_jobs(node)
        start, before = now[0], len(due_jobs(node))
        terms = ScheduleTerms(file="p.yaml", cron=cron, time_zone=zone)
        expected = [each for each in calendar_of(terms, after_ms=start, count=100) if each <= start + 3 * DAY_MS]
        while now[0] < start + 3 * DAY_MS:
            now[0] += 10 * 60_000
            look(node)
            end_jobs(node)

    assert len(due_jobs(node)) - before == len(expected)


def test_two_nodes_start_each_due_time_once(tmp_path: Path) -> None:
    """Two nodes on one store look at the same due times; each starts once."""
    with node_at(tmp_path / "data") as one, node_at(tmp_path / "data") as two:
        for each in (one, two):
            let_jobs(each)
        with clock_at(one, NOON) as first, clock_at(two, NOON) as second:
            schedule(one, cron="0 * * * *")
            for _ in range(5):
                first[0] += HOUR_MS
                second[0] += HOUR_MS
                for each in (one, two, one):
                    look(each)
                end_jobs(two)

            assert len(due_jobs(one)) == 5


def test_late_schedule_is_reported_once(node: DriverNode) -> None:  # noqa: F811
    """A due time that nothing started for five minutes is one change `late`: while another run is in progress, and
    after a stop of the server. A start in time is none.
    """
    let_jobs(node)
    late = f"{LAKE}/audit?action=late"
    counts = []
    with clock_at(node, NOON) as now:
        schedule(node, cron="0 * * * *")
        now[0] += HOUR_MS + 60_000
        look(node)
        end_jobs(node)
        counts.append(len(node.done("GET", late)["lines"]))
        now[0] += HOUR_MS // 2
        node.done("POST", f"{LAKE}/pipelines/p/runs", {"id": str(uuid4()), "holder": "h:1", "lease_s": 3600})
        now[0] += HOUR_MS // 2
        for _ in range(60):
            now[0] += 11_000
            look(node)
        counts.append(len(node.done("GET", late)["lines"]))
        for _ in range(2):
            now[0] += 5 * HOUR_MS
            look(node)
            end_jobs(node)
            counts.append(len(node.done("GET", late)["lines"]))

    assert counts == [0, 1, 1, 2]


def test_changes_of_a_schedule_are_audited(node: DriverNode) -> None:  # noqa: F811
    """Registration, start, pause, resume and deletion have an audit record of the user, a start with its due time."""
    let_jobs(node)
    one = f"{LAKE}/pipelines/p/schedule"
    with clock_at(node, NOON) as now:
        schedule(node)
        now[0] += DAY_MS
        look(node)
        for paused in (True, False):
            node.done("POST", one, {"paused": paused})
        node.done("DELETE", one)
    lines = node.done("GET", f"{LAKE}/audit")["lines"]
    records = {each["change"]: each for each in lines if each["user"] == "admin"}

    assert {"schedule", "start", "pause", "unpause", "unschedule"} <= set(records)
    assert records["start"]["detail"] == "due 2026-11-29T06:00:00Z"


def test_calendar_of_a_list_is_bounded(node: DriverNode) -> None:  # noqa: F811
    """A list has fewer due times of each schedule when there are many; a count beyond the limit is refused."""
    let_jobs(node)
    for number in range(21):
        schedule(node, f"p{number}")

    listed = node.done("GET", f"{LAKE}/schedules?count=20")["schedules"]

    assert {len(each["next"]) for each in listed} == {9}
    assert len(node.done("GET", f"{LAKE}/pipelines/p0/schedule?count=20")["next"]) == 20
    assert node.get(f"{LAKE}/schedules?count=21").status == 400
