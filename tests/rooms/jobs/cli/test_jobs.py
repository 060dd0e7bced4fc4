# SPDX-License-Identifier: Apache-2.0
"""The requests and the output of the commands on job templates and jobs."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer
from tests.client.test_calls import JOB, JOBS, OWN, TEMPLATE, TEMPLATES

RESULT = {
    "id": "j-1",
    "template": "load",
    "state": "failed",
    "user": "ana",
    "exit_code": 3,
    "message": "Ended with exit code 3",
    "stdout": "hello\n",
    "stdout_bytes": 6,
}


def test_job_is_run_shown_and_cancelled(fake: FakeServer, limnos: Run) -> None:
    """`job run` passes the template's parameters from flags; `job show` prints the job's output."""
    fake.on("POST", JOBS, {"job": JOB}).on("POST", f"{JOBS}/j-1", {"job": {**JOB, "status": "cancelled"}})
    fake.on("GET", f"{JOBS}?jobTemplateName=load", {"jobs": [JOB]}).on("GET", f"{OWN}/metalakes/lake/jobs/j-1", RESULT)

    assert limnos("job", "run", "load", "--conf", "day=1").result["id"] == "j-1"
    assert [row["user"] for row in limnos("job", "list", "load").result] == ["ana"]
    assert limnos("job", "show", "j-1").result["exit_code"] == 3
    assert "hello" in limnos("job", "show", "j-1", "--output", "table").out
    assert limnos("job", "cancel", "j-1").result["status"] == "cancelled"
    assert [each.body for each in fake.asked if each.target == JOBS] == [
        {"jobTemplateName": "load", "jobConf": {"day": "1"}}
    ]


def test_templates_are_created_listed_and_deleted(fake: FakeServer, limnos: Run) -> None:
    """Templates of programs and of Spark applications are registered, each kind with its own flags."""
    fake.on("POST", TEMPLATES, {"code": 0}).on("GET", f"{TEMPLATES}?details=true", {"jobTemplates": [TEMPLATE]})
    fake.on("DELETE", f"{TEMPLATES}/load", {"dropped": True})

    limnos("job", "register", "load", "/srv/load.sh", "{{day}}", "--env", "MODE=x", "--script", "/srv/part.sh")
    limnos(
        "job",
        "register",
        "count",
        "/srv/count.jar",
        "--spark",
        "--class",
        "org.x.Count",
        "--config",
        "spark.app.name=c",
    )
    templates = [each.body["jobTemplate"] for each in fake.asked if each.target == TEMPLATES]

    assert [(each["jobType"], each["executable"]) for each in templates] == [
        ("shell", "/srv/load.sh"),
        ("spark", "/srv/count.jar"),
    ]
    assert (templates[0]["arguments"], templates[0]["environments"], templates[0]["scripts"]) == (
        ["{{day}}"],
        {"MODE": "x"},
        ["/srv/part.sh"],
    )
    assert (templates[1]["className"], templates[1]["configs"]) == ("org.x.Count", {"spark.app.name": "c"})
    assert [row["name"] for row in limnos("job", "templates").result] == ["load"]
    assert limnos("job", "delete", "load", "--yes").result == {"deleted": "load"}
    assert limnos("job", "register", "x", "/x", "--jar", "/a.jar").code == 2
    assert limnos("job", "register", "x", "/x", "--spark", "--script", "/a.sh").code == 2
