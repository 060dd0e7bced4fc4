# SPDX-License-Identifier: Apache-2.0
"""The page of schedules: states, reasons and due times, and buttons with the rights of the routes."""

from __future__ import annotations

import pytest

from limnos.model.jobs import JobOutput
from limnos.model.permits import upkeep_permit
from limnos.rooms.pipelines.console.schedules import _CHIPS
from limnos.rooms.pipelines.services.schedule_starts import schedules_step
from limnos.rooms.pipelines.services.schedules import ScheduleState
from limnos.store.tx import Tx
from tests.http.driver import API, OWN, SCHEDULE, DriverNode, grant, let_jobs
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

LAKE = f"{OWN}/metalakes/lake"
PAGE = "/console/schedules?metalake=lake"
FORM = ("post", "/console/schedules/pause")
HOME = "/console/?metalake=lake"
NEED = "The schedule of the pipeline nightly"
DAY_MS = 86_400_000


@pytest.fixture
def scheduled(lake: DriverNode) -> DriverNode:
    """A node with the pipeline `nightly`, whose schedule the admin registered."""
    let_jobs(lake)
    lake.done("PUT", f"{LAKE}/pipelines/nightly", {"declaration": {}})
    lake.done("PUT", f"{LAKE}/pipelines/nightly/schedule", SCHEDULE)
    return lake


def load(node: DriverNode) -> dict[str, object]:
    """Return the schedule as its route answers it."""
    return node.done("GET", f"{LAKE}/pipelines/nightly/schedule")


def move_clock(node: DriverNode, monkeypatch: pytest.MonkeyPatch, *, by_ms: int) -> None:
    """Let the node's clock be ahead."""
    time = node.built.services.store.time
    before = time.now_ms
    monkeypatch.setattr(time, "now_ms", lambda: before() + by_ms)


def press(visitor: ConsoleVisitor, *, paused: str, pipeline: str = "nightly") -> int:
    """Send the form of a schedule's button. Returns the status."""
    fields = {"metalake": "lake", "pipeline": pipeline, "paused": paused}
    return visitor.post("/console/schedules/pause", fields).status


def test_schedule_is_listed_paused_and_resumed(scheduled: DriverNode) -> None:
    """The list has the schedule with its terms; its button pauses it, and then another one resumes it."""
    admin = ConsoleVisitor(scheduled).sign_in()
    page = admin.read(PAGE)
    statuses = [press(admin, paused="true")]
    paused, after = load(scheduled), admin.read(PAGE)
    statuses.append(press(admin, paused="false"))

    assert "/console/schedules?metalake=lake" in admin.read("/console/pipelines?metalake=lake").hrefs
    assert "/console/pipeline?metalake=lake&name=nightly" in page.hrefs
    for words in ("not started yet", "0 6 * * * UTC", "admin", "Pause"):
        assert words in page.text
    assert page.faults == []
    assert statuses == [303, 303]
    assert (paused["paused"], load(scheduled)["paused"]) == (True, False)
    assert "paused by admin" in after.text
    assert "Resume" in after.text


def test_late_schedule_needs_the_user(scheduled: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that no server started after its due time is late, on its page and on the first page; one that a user
    paused does not need the user.
    """
    in_time = ConsoleVisitor(scheduled).sign_in().read(HOME).text
    move_clock(scheduled, monkeypatch, by_ms=2 * DAY_MS)
    admin = ConsoleVisitor(scheduled).sign_in()
    late = [admin.read(path).text for path in (HOME, PAGE)]
    press(admin, paused="true")

    assert NEED not in in_time
    assert NEED in late[0]
    assert all("late" in each for each in late)
    assert NEED not in admin.read(HOME).text


def test_schedule_that_the_server_paused_needs_the_user(scheduled: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that the server paused, because its user lost the right, is on the first page with the reason."""
    role = grant(scheduled, "ana", "run_job use_job_template", kind="METALAKE", on="lake")
    scheduled.done("DELETE", f"{LAKE}/pipelines/nightly/schedule")
    scheduled.done("PUT", f"{LAKE}/pipelines/nightly/schedule", SCHEDULE, user="ana")
    scheduled.done("DELETE", f"{API}/lake/roles/{role}")
    move_clock(scheduled, monkeypatch, by_ms=2 * DAY_MS)
    scheduled.runner.run(schedules_step(scheduled.built.services))
    admin = ConsoleVisitor(scheduled).sign_in()
    home, page = admin.read(HOME), admin.read(PAGE)

    assert NEED in home.text
    assert "paused" in home.text
    assert str(load(scheduled)["reason"])[:20] in page.text
    assert FORM not in page.actions


def test_ended_jobs_give_the_state_of_their_schedule(scheduled: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A started schedule is in progress, and its row links to the job; a failed job makes it failed."""
    move_clock(scheduled, monkeypatch, by_ms=DAY_MS)
    scheduled.runner.run(schedules_step(scheduled.built.services))
    admin = ConsoleVisitor(scheduled).sign_in()
    before = admin.read(PAGE)
    job = str(load(scheduled)["job"])
    store = scheduled.built.services.store

    def fail(tx: Tx) -> None:
        ((leased, _),) = tx.template_jobs.claim("host", limit=1, lease_ms=60_000)
        assert tx.template_jobs.finish(leased, "failed", message="odd", exit_code=1, output=JobOutput())

    scheduled.runner.run(store.submit(upkeep_permit("t"), fail))

    assert "in progress" in before.text
    assert f"/console/job?metalake=lake&id={job}" in before.hrefs
    assert "failed" in admin.read(PAGE).text


def test_buttons_have_the_rights_of_the_routes(scheduled: DriverNode) -> None:
    """Who may use the pipeline sees its schedule, and neither pauses nor resumes it; a stranger does not see it."""
    grant(scheduled, "ana", "run_job use_job_template", kind="METALAKE", on="lake")
    ana, stranger = (ConsoleVisitor(scheduled).sign_in(user) for user in ("ana", "stranger"))

    assert "nightly" in ana.read(PAGE).text
    assert press(ana, paused="true") == 403
    press(ConsoleVisitor(scheduled).sign_in(), paused="true")
    assert press(ana, paused="false") == 403
    assert FORM not in ana.read(PAGE).actions
    assert "nightly" not in text_of(stranger.get(PAGE))
    assert press(stranger, paused="true") in {403, 404}
    assert load(scheduled)["paused"] is True


def test_malformed_forms_are_refused(scheduled: DriverNode) -> None:
    """A form without a pipeline, or with another word, is 400, and an unknown pipeline 404; nothing changes."""
    admin = ConsoleVisitor(scheduled).sign_in()

    assert press(admin, paused="maybe") == 400
    assert press(admin, paused="true", pipeline="") == 400
    assert press(admin, paused="true", pipeline="no") == 404
    assert load(scheduled)["paused"] is False


def test_each_state_has_a_label() -> None:
    """Each state of a schedule has a colour and an icon."""
    assert set(_CHIPS) == set(ScheduleState)
