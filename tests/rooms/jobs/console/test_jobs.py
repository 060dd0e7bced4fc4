# SPDX-License-Identifier: Apache-2.0
"""Pages of jobs: the list links to jobs and runs, a job has its state and a cancel button, and other users are
refused.
"""

from __future__ import annotations

import pytest

from limnos.model.jobs import JobOutput
from limnos.model.permits import upkeep_permit
from limnos.rooms.jobs.console import jobs
from limnos.store.tx import Tx
from tests.http.driver import API, PROGRAM, DriverNode, grant, let_jobs
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

JOBS = f"{API}/lake/jobs/runs"


@pytest.fixture
def job(lake: DriverNode) -> str:
    """Create a waiting job of the admin. Returns its id."""
    let_jobs(lake)
    lake.done("POST", f"{API}/lake/jobs/templates", {"jobTemplate": {**PROGRAM, "name": "hello"}})
    return str(lake.done("POST", JOBS, {"jobTemplateName": "hello"})["job"]["jobId"])


def test_job_is_listed_shown_and_cancelled(lake: DriverNode, job: str) -> None:
    """The list links to the job's page, whose button cancels it; an ended job has no button."""
    admin = ConsoleVisitor(lake).sign_in()
    page = f"/console/job?metalake=lake&id={job}"

    assert page in admin.read("/console/jobs").hrefs
    assert "queued" in admin.read(page).text
    assert ("post", "/console/job/cancel") in admin.read(page).actions
    answer = admin.post("/console/job/cancel", {"metalake": "lake", "id": job})

    assert answer.headers["location"].startswith(page)
    assert lake.done("GET", f"{JOBS}/{job}")["job"]["status"] == "cancelled"
    assert ("post", "/console/job/cancel") not in admin.read(page).actions


def test_page_has_the_end_of_a_long_output(lake: DriverNode, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a job with long output has the last part of it, where the error is."""
    monkeypatch.setattr(jobs, "_OUTPUT_CHARS_MAX", 30)
    output = JobOutput(
        "first line\n" + "x" * 100 + "\nlast line", "Traceback\n" + "y" * 100 + "\nValueError: odd", 120, 120
    )
    store = lake.built.services.store

    def end(tx: Tx) -> None:
        ((leased, _),) = tx.template_jobs.claim("host", limit=1, lease_ms=60_000)
        assert tx.template_jobs.finish(leased, "failed", message=None, exit_code=1, output=output)

    lake.runner.run(store.submit(upkeep_permit("t"), end))

    page = ConsoleVisitor(lake).sign_in().read(f"/console/job?metalake=lake&id={job}").text

    assert ("last line" in page, "first line" in page) == (True, False)
    assert ("ValueError: odd" in page, "Traceback" in page) == (True, False)


def test_user_cannot_see_or_cancel_jobs_of_others(lake: DriverNode, job: str) -> None:
    """A user who may run jobs of the template neither sees nor cancels another user's job."""
    grant(lake, "ana", "run_job use_job_template", kind="METALAKE", on="lake")

    for user in ("ana", "stranger"):
        visitor = ConsoleVisitor(lake).sign_in(user)
        assert job not in text_of(visitor.get("/console/jobs"))
        assert visitor.get(f"/console/job?metalake=lake&id={job}").status in {403, 404}
        assert visitor.post("/console/job/cancel", {"metalake": "lake", "id": job}).status in {403, 404}
    assert lake.done("GET", f"{JOBS}/{job}")["job"]["status"] == "queued"


def test_unknown_job_is_404_and_missing_id_400(lake: DriverNode, job: str) -> None:
    """An unknown job id is 404, and a request without an id is refused with 400."""
    admin = ConsoleVisitor(lake).sign_in()

    assert admin.get("/console/job?metalake=lake&id=nothing").status == 404
    assert admin.post("/console/job/cancel", {"metalake": "lake", "id": "nothing"}).status == 404
    assert admin.get("/console/job?metalake=lake").status == 400
    assert admin.post("/console/job/cancel", {}).status == 400
