"""Pages of jobs: the list links to jobs and runs, a job has its state and a cancel button, and other users are
refused.
"""

from __future__ import annotations

import pytest

from tests.http.console.visitor import ConsoleVisitor, text_of
from tests.http.driver import API, PROGRAM, DriverNode, grant, let_jobs

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
