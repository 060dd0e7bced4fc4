# SPDX-License-Identifier: Apache-2.0
"""Job templates and jobs over Gravitino REST: pipelines and their runs in Gravitino's form."""

from __future__ import annotations

import pytest

from tests.http.admin.catalog.test_transactions import together
from tests.http.admin.test_run_rights import pass_time
from tests.http.driver import API, PROGRAM, DriverAnswer, DriverNode, let_jobs
from tests.rooms.pipelines.http.test_runs import PIPES, begin, declare, finish, started

TEMPLATES, JOBS = f"{API}/lake/jobs/templates", f"{API}/lake/jobs/runs"


def own_names(node: DriverNode) -> list[str]:
    """Return the names of the metalake's templates, without built-in ones."""
    return [each for each in node.get(TEMPLATES).json()["names"] if not each.startswith("builtin-")]


def test_pipeline_is_returned_as_a_spark_template(node: DriverNode) -> None:
    """A pipeline is a Spark template whose custom fields have the pipeline's name and version."""
    declared = declare(node)

    template = node.get(f"{TEMPLATES}/nyc").json()["jobTemplate"]

    assert (template["jobType"], template["name"], bool(template["executable"])) == ("spark", "nyc", True)
    assert template["customFields"] == {
        "limnos.pipeline": "nyc",
        "limnos.version": "1",
        "limnos.digest": declared["digest"],
    }
    assert template["audit"]["creator"] == "admin"
    assert own_names(node) == ["nyc"]
    details = node.get(f"{TEMPLATES}?details=true").json()["jobTemplates"]
    assert [each["name"] for each in details if not each["name"].startswith("builtin-")] == ["nyc"]


@pytest.mark.parametrize(
    "state,status",
    [
        ("running", "started"),
        ("cancelling", "cancelling"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("held", "started"),
        ("discarded", "cancelled"),
        ("published", "succeeded"),
        ("lost", "failed"),
    ],
)
def test_run_states_are_returned_as_gravitino_job_statuses(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, state: str, status: str
) -> None:
    """Each run state is returned as a job status of Gravitino."""
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


def test_jobs_are_listed_by_template(node: DriverNode) -> None:
    """Jobs are listed for all templates or for one."""
    run = started(node)
    declare(node, "other")
    other = str(begin(node, "other")["id"])

    assert [each["jobId"] for each in node.get(JOBS).json()["jobs"]] == [other, run]
    assert [each["jobId"] for each in node.get(f"{JOBS}?jobTemplateName=nyc").json()["jobs"]] == [run]


def test_pipeline_changes_and_runs_are_refused(node: DriverNode) -> None:
    """The Gravitino routes refuse to change a pipeline's template or start a run by it, and name the route to use. A
    template in use cannot be deleted.
    """
    started(node)
    answers = [
        node.post(JOBS, {"jobTemplateName": "nyc", "jobConf": {}}),
        node.put(f"{TEMPLATES}/nyc", {"updates": [{"@type": "updateTemplate", "newTemplate": {"@type": "spark"}}]}),
    ]
    busy = node.delete(f"{TEMPLATES}/nyc")

    assert [(each.status, each["code"]) for each in answers] == [(405, 1006)] * 2
    assert all("pipelines" in str(each["message"]) or "runner" in str(each["message"]) for each in answers)
    assert (busy.status, busy["code"], busy["type"]) == (409, 1010, "InUseException")
    assert node.put(f"{TEMPLATES}/nyc", {"updates": [{"@type": "updateComment", "newComment": "x"}]}).status == 200
    assert node.get(f"{TEMPLATES}/nyc").json()["jobTemplate"]["comment"] == "x"


SPARK = {
    "jobType": "SPARK",
    "name": "count",
    "executable": "file:///srv/jobs/count.py",
    "comment": "counts",
    "arguments": ["{{day}}"],
    "environments": {"MODE": "x"},
    "customFields": {"team": "a"},
    "className": None,
    "jars": ["/srv/jobs/a.jar"],
    "files": None,
    "archives": [],
    "configs": {"spark.executor.memory": "1g"},
    "audit": None,
}


def altered(node: DriverNode, name: str, **fields: object) -> DriverAnswer:
    """Alter a template's program."""
    return node.put(f"{TEMPLATES}/{name}", {"updates": [{"@type": "updateTemplate", "newTemplate": fields}]})


def test_templates_are_returned_as_registered(node: DriverNode) -> None:
    """A template is returned as registered, without fields of the other type. Pipelines are listed among the templates,
    but the admin API lists only pipelines.
    """
    declare(node)
    for each in (SPARK, {**PROGRAM, "name": "hello", "scripts": ["/srv/jobs/part.sh"]}):
        assert node.post(TEMPLATES, {"jobTemplate": each}).json() == {"code": 0}

    spark = node.get(f"{TEMPLATES}/count").json()["jobTemplate"]
    shell = node.get(f"{TEMPLATES}/hello").json()["jobTemplate"]
    sent_fields = {key: value for key, value in SPARK.items() if value is not None and key != "jobType"}
    assert spark == {**sent_fields, "jobType": "spark", "files": [], "audit": spark["audit"]}
    assert shell == {
        "jobType": "shell",
        "name": "hello",
        "executable": "/bin/true",
        "arguments": [],
        "environments": {},
        "customFields": {},
        "scripts": ["/srv/jobs/part.sh"],
        "audit": shell["audit"],
    }
    assert own_names(node) == ["count", "hello", "nyc"]
    assert [each["name"] for each in node.get(PIPES).json()["pipelines"]] == ["nyc"]


def test_alter_changes_only_the_given_fields(node: DriverNode) -> None:
    """An alter changes the name, the comment and the given fields. Null fields stay unchanged, and another template
    type is refused.
    """
    node.done("POST", TEMPLATES, {"jobTemplate": {**PROGRAM, "name": "hello", "arguments": ["a"]}})

    answer = altered(node, "hello", **{"@type": "shell", "newExecutable": "/bin/false", "newArguments": None})
    other = altered(node, "hello", **{"@type": "spark", "newJars": []})
    strange = altered(node, "hello", **{"@type": "shell", "newJars": ["/x.jar"]})
    node.done("PUT", f"{TEMPLATES}/hello", {"updates": [{"@type": "rename", "newName": "bye"}]})

    assert (answer.json()["jobTemplate"]["executable"], answer.json()["jobTemplate"]["arguments"]) == (
        "/bin/false",
        ["a"],
    )
    assert [(each.status, each["code"]) for each in (other, strange)] == [(400, 1001)] * 2
    assert node.get(f"{TEMPLATES}/bye").json()["jobTemplate"]["executable"] == "/bin/false"
    assert node.delete(f"{TEMPLATES}/bye").json()["dropped"] is True
    assert node.delete(f"{TEMPLATES}/bye").json()["dropped"] is False


@pytest.mark.parametrize(
    "fields,words",
    [
        ({"jobType": "perl"}, "shell or spark"),
        ({"jobType": None}, "jobType"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"executable": " "}, "executable"),
        ({"executable": None}, "executable"),
        ({"arguments": "a"}, "arguments"),
        ({"jars": ["/a"]}, "jars"),
        ({"surprise": 1}, "surprise"),
        ({"arguments": ["{{x:-a}} {{x:-b}}"]}, "two default values"),
        ({"arguments": ["{{x:-a"]}, "is not closed"),
        ({"arguments": ["x" * 40_000]}, "32768"),
        ({"comment": 3}, "comment"),
    ],
)
def test_invalid_template_is_refused(node: DriverNode, fields: dict[str, object], words: str) -> None:
    """An invalid template is refused with the reason, and nothing is created."""
    answer = node.post(TEMPLATES, {"jobTemplate": {**PROGRAM, "name": "hello"} | fields})

    assert (answer.status, answer["code"]) == (400, 1001)
    assert words in str(answer["message"])
    assert own_names(node) == []


def test_program_is_refused_as_a_pipeline(node: DriverNode) -> None:
    """The admin API refuses to declare, load, run or drop a program as a pipeline. The message says that it is a
    program.
    """
    node.done("POST", TEMPLATES, {"jobTemplate": {**PROGRAM, "name": "hello"}})
    answers = [
        node.put(f"{PIPES}/hello", {"declaration": {}}),
        node.get(f"{PIPES}/hello"),
        begin(node, "hello"),
        node.delete(f"{PIPES}/hello"),
    ]

    assert [each.status for each in answers] == [404] * 4
    assert all("of type shell and not a pipeline" in str(each["error"]) for each in answers)
    again = node.post(TEMPLATES, {"jobTemplate": {**PROGRAM, "name": "hello"}})
    assert (again.status, again["type"]) == (409, "JobTemplateAlreadyExistsException")


def test_jobs_are_refused_without_the_setting(node: DriverNode) -> None:
    """Without the setting, a job is refused with the setting's name; templates can be registered."""
    node.done("POST", TEMPLATES, {"jobTemplate": {**PROGRAM, "name": "hello"}})
    answer = node.post(JOBS, {"jobTemplateName": "hello", "jobConf": {}})

    assert (answer.status, answer["code"]) == (405, 1006)
    assert "jobs.executor" in str(answer["message"])


def test_pipeline_runs_and_program_jobs_are_listed_together(node: DriverNode) -> None:
    """Runs of pipelines and jobs of programs are listed together, newest first."""
    run = started(node)
    let_jobs(node)
    node.done("POST", TEMPLATES, {"jobTemplate": {**PROGRAM, "name": "hello"}})
    first, second = (node.done("POST", JOBS, {"jobTemplateName": "hello"})["job"]["jobId"] for _ in range(2))

    assert [each["jobId"] for each in node.get(JOBS).json()["jobs"]] == [second, first, run]
    assert [each["jobId"] for each in node.get(f"{JOBS}?jobTemplateName=hello").json()["jobs"]] == [second, first]
    assert [each["jobId"] for each in node.get(f"{JOBS}?jobTemplateName=nyc").json()["jobs"]] == [run]
    assert node.delete(f"{TEMPLATES}/hello").status == 409
    for job in (first, second):
        node.done("POST", f"{JOBS}/{job}")
    assert node.delete(f"{TEMPLATES}/hello").json()["dropped"] is True
    assert [each["jobId"] for each in node.get(JOBS).json()["jobs"]] == [run]
    assert node.get(f"{JOBS}/{first}").status == 404
