"""Job templates and jobs over Gravitino REST: pipelines and their runs in its words."""

from __future__ import annotations

import pytest

from tests.http.admin.test_run_rights import pass_time
from tests.http.admin.test_runs import begin, declare, finish, started
from tests.http.admin.test_transactions import together
from tests.http.driver import API, Node

TEMPLATES, JOBS = f"{API}/lake/jobs/templates", f"{API}/lake/jobs/runs"


def test_a_pipeline_is_a_template(node: Node) -> None:
    """It is one of Spark, whose custom fields say which pipeline it is, in which version."""
    declared = declare(node)

    told = node.get(f"{TEMPLATES}/nyc").json()["jobTemplate"]

    assert (told["jobType"], told["name"], bool(told["executable"])) == ("spark", "nyc", True)
    assert told["customFields"] == {
        "limnos.pipeline": "nyc",
        "limnos.version": "1",
        "limnos.digest": declared["digest"],
    }
    assert told["audit"]["creator"] == "admin"
    assert node.get(TEMPLATES).json()["names"] == ["nyc"]
    assert [each["name"] for each in node.get(f"{TEMPLATES}?details=true").json()["jobTemplates"]] == ["nyc"]


@pytest.mark.parametrize(
    "state,status",
    [
        ("running", "started"), ("cancelling", "cancelling"), ("failed", "failed"), ("cancelled", "cancelled"), ("held", "started"),
        ("discarded", "cancelled"), ("published", "succeeded"), ("lost", "failed"),
    ],
)  # fmt: skip
def test_states_in_its_words(node: Node, monkeypatch: pytest.MonkeyPatch, state: str, status: str) -> None:
    """Each state of a run is a status of a job."""
    run = started(node)
    if state == "cancelling":
        node.done("POST", f"{JOBS}/{run}")
    elif state == "published":
        assert together(node, {"do": "publish-run", "run": run, "attempt": 1}).status == 200
    elif state == "lost":
        pass_time(node, monkeypatch, 31)
    elif state != "running":
        finish(node, run, state)

    job = node.get(f"{JOBS}/{run}").json()["job"]

    assert (job["jobId"], job["jobTemplateName"], job["status"]) == (run, "nyc", status)
    assert job["audit"]["creator"] == "admin"


def test_jobs_are_listed_by_template(node: Node) -> None:
    """All, or those of a template."""
    run = started(node)
    declare(node, "other")
    other = str(begin(node, "other")["id"])

    assert [each["jobId"] for each in node.get(JOBS).json()["jobs"]] == [other, run]
    assert [each["jobId"] for each in node.get(f"{JOBS}?jobTemplateName=nyc").json()["jobs"]] == [run]


def test_what_is_done_elsewhere(node: Node) -> None:
    """Registering, changing what a template runs, and starting a job are refused with what to do instead; a busy template stays."""
    started(node)
    answers = [
        node.post(TEMPLATES, {"jobTemplate": {"name": "n"}}), node.post(JOBS, {"jobTemplateName": "nyc", "jobConf": {}}),
        node.put(f"{TEMPLATES}/nyc", {"updates": [{"@type": "updateTemplate", "newTemplate": {"@type": "spark"}}]}),
    ]  # fmt: skip
    busy = node.delete(f"{TEMPLATES}/nyc")

    assert [(each.status, each["code"]) for each in answers] == [(405, 1006)] * 3
    assert all("pipelines" in str(each["message"]) or "runner" in str(each["message"]) for each in answers)
    assert (busy.status, busy["code"], busy["type"]) == (409, 1010, "InUseException")
    assert node.put(f"{TEMPLATES}/nyc", {"updates": [{"@type": "updateComment", "newComment": "x"}]}).status == 200
    assert node.get(f"{TEMPLATES}/nyc").json()["jobTemplate"]["comment"] == "x"
