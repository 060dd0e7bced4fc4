# SPDX-License-Identifier: Apache-2.0
"""Built-in job templates: their operations, the users who may run, load and cancel their jobs, and refused fields."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.rooms.maintenance.services import builtin_jobs
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, add_policy, assess, set_clock
from tests.rooms.maintenance.services.orphans.histories import turn_on
from tests.rooms.maintenance.services.rewriting.executor import (
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
)
from tests.rooms.maintenance.services.rewriting.test_planning import COMPACTION, plan
from tests.rooms.maintenance.services.test_operations import work

pytestmark = pytest.mark.slow

RUNS = f"{API}/lake/jobs/runs"
TEMPLATES = f"{API}/lake/jobs/templates"
COMPACT = "builtin-iceberg-rewrite-data-files"
NAMES = [
    "builtin-iceberg-expire-snapshots",
    "builtin-iceberg-remove-orphan-files",
    COMPACT,
    "builtin-iceberg-rewrite-manifests",
    "builtin-iceberg-update-stats",
]


@pytest.fixture
def table(node: DriverNode) -> HistoryTable:
    """A table of twelve small files."""
    history_table = HistoryTable(node)
    history_table.append(12)
    set_clock(node, FIRST_MS + 30 * DAY_MS)
    return history_table


def run_job(node: DriverNode, name: str = COMPACT, *, user: str = "admin", **conf: str) -> DriverAnswer:
    """Run a job, by default on `a.t`."""
    conf = {"catalog_name": "main", "table_identifier": "a.t", **conf}
    return node.post(RUNS, {"jobTemplateName": name, "jobConf": conf}, user=user)


def job(answer: DriverAnswer) -> dict[str, Any]:
    """Return the job of an answer."""
    assert answer.status == 200, answer.body
    return answer.json()["job"]  # type: ignore[no-any-return]


def test_builtin_templates_are_listed_and_cannot_be_changed(node: DriverNode) -> None:
    """Built-in templates are listed with the metalake's own, loaded by name, and cannot be created or changed."""
    assert [each for each in node.get(TEMPLATES).json()["names"] if each.startswith("builtin-")] == NAMES
    details = node.get(f"{TEMPLATES}?details=true").json()["jobTemplates"]
    assert {each["name"]: each["jobType"] for each in details} == dict.fromkeys(NAMES, "spark")
    assert "{{table_identifier}}" in node.get(f"{TEMPLATES}/{COMPACT}").json()["jobTemplate"]["arguments"]
    template_body = {"jobTemplate": {"name": "builtin-mine", "jobType": "shell", "executable": "/bin/true"}}
    assert node.get(f"{TEMPLATES}/builtin-none").status == 404
    assert node.post(TEMPLATES, template_body).status == 400
    assert node.put(f"{TEMPLATES}/{COMPACT}", {"updates": [{"@type": "rename", "newName": "x"}]}).status == 400
    assert node.delete(f"{TEMPLATES}/{COMPACT}").status == 400


def test_queued_job_is_executed_and_succeeds(node: DriverNode, table: HistoryTable) -> None:
    """A job waits for an executor, gets its options, runs, and succeeds."""
    queued_job = job(run_job(node, options='{"min-input-files": "2"}', strategy="binpack", where_clause=""))
    address = f"{RUNS}/{queued_job['jobId']}"
    (leased,) = FakeExecutor(node).lease()
    started = job(node.get(address))
    assert commit_with(node, leased["token"], "t", replacement(table)).status == 200
    FakeExecutor(node).report(leased["operation"], text="12 files became 1")
    ended = job(node.get(address))
    own = node.get(f"{OWN}/metalakes/lake/jobs/{queued_job['jobId']}").json()

    assert (own["id"], own["template"], own["state"]) == (queued_job["jobId"], COMPACT, "succeeded")
    assert (own["message"], own["started_at"] is not None) == ("12 files became 1", True)
    assert (queued_job["jobTemplateName"], queued_job["status"], queued_job["audit"]["creator"]) == (
        COMPACT,
        "queued",
        "admin",
    )
    assert leased["options"]["min-input-files"] == "2"
    assert [started["status"], ended["status"], "finishedAt" in ended] == ["started", "succeeded", True]
    assert job(node.post(address, {}))["status"] == "succeeded", "an ended job does not change"


@pytest.mark.parametrize(
    "name, kind", [(NAMES[0], "expire"), (NAMES[1], "orphans"), (NAMES[3], "manifests"), (NAMES[4], "statistics")]
)
def test_each_template_requests_its_own_operation(node: DriverNode, table: HistoryTable, name: str, kind: str) -> None:
    """Each template requests its own operation; those that the server executes end by themselves."""
    turn_on(node)
    queued_job = job(run_job(node, name))
    assert list_operations(node)[0]["kind"] == kind
    if kind == "expire":
        work(node)
        assert job(node.get(f"{RUNS}/{queued_job['jobId']}"))["status"] in ("succeeded", "failed")
        assert job(node.post(f"{RUNS}/{queued_job['jobId']}", {}))["status"] in ("succeeded", "failed")


def test_cancelled_job_ends_the_executors_lease(node: DriverNode, table: HistoryTable) -> None:
    """After a cancellation the executor loses its lease, its token is invalid, and the operation is never leased
    again.
    """
    queued_job = job(run_job(node))
    (leased,) = FakeExecutor(node).lease()
    cancelled = job(node.post(f"{RUNS}/{queued_job['jobId']}", {}))

    assert cancelled["status"] == "cancelled"
    assert FakeExecutor(node).renew(leased["operation"]) == [leased["operation"]]
    assert commit_with(node, leased["token"], "t", replacement(table)).status == 401
    assert FakeExecutor(node, "two").lease() == []
    assert list_operations(node)[0]["result"] == "cancelled by admin"


def test_cancelling_an_expiry_job_is_405(node: DriverNode, table: HistoryTable) -> None:
    """An expiry that waits for the server's task cannot be cancelled: 405."""
    queued_job = job(run_job(node, NAMES[0]))

    assert node.post(f"{RUNS}/{queued_job['jobId']}", {}).status == 405


def test_jobs_of_policies_are_listed_and_filtered_by_template(node: DriverNode, table: HistoryTable) -> None:
    """Operations of policies are jobs, too; the list can be filtered by template."""
    assess(node)
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    assert plan(node) == 1
    run_job(node, NAMES[3])
    rows = node.get(RUNS).json()["jobs"]
    of_one = node.get(f"{RUNS}?jobTemplateName={COMPACT}").json()["jobs"]

    assert [each["jobTemplateName"] for each in rows] == [NAMES[3], COMPACT]
    assert [each["jobTemplateName"] for each in of_one] == [COMPACT]
    assert node.get(f"{RUNS}?jobTemplateName=builtin-none").status == 404


def test_reader_of_the_table_cannot_run_load_or_cancel_jobs(node: DriverNode, table: HistoryTable) -> None:
    """A reader of the table can neither run, load nor cancel a job on it; a user who may modify the table can."""
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    queued_job = job(run_job(node))
    address = f"{RUNS}/{queued_job['jobId']}"

    assert run_job(node, user="reader").status == 403
    assert node.get(f"{OWN}/metalakes/lake/jobs/{queued_job['jobId']}", user="reader").status == 404
    assert (node.get(address, user="reader").status, node.post(address, {}, user="reader").status) == (404, 404)
    assert node.get(RUNS, user="reader").json()["jobs"] == []
    assert job(node.get(address, user="writer"))["status"] == "queued"
    assert [each["jobId"] for each in node.get(RUNS, user="writer").json()["jobs"]] == [queued_job["jobId"]]
    assert job(node.post(address, {}, user="writer"))["status"] == "cancelled"
    assert job(run_job(node, user="writer"))["audit"]["creator"] == "writer"


def test_job_belongs_only_to_its_own_metalake(node: DriverNode, table: HistoryTable) -> None:
    """A job belongs to its own metalake only."""
    queued_job = job(run_job(node))
    assert node.post(API, {"name": "other"}).status == 200

    assert node.get(f"{API}/other/jobs/runs/{queued_job['jobId']}").status == 404
    assert node.get(f"{API}/other/jobs/runs").json()["jobs"] == []


@pytest.mark.parametrize(
    "conf, words",
    [
        ({"table_identifier": ""}, "table_identifier"),
        ({"table_identifier": "t"}, "table_identifier"),
        ({"catalog_name": ""}, "catalog_name"),
        ({"where_clause": "id > 3"}, "where_clause"),
        ({"options": "[1]"}, "options"),
        ({"options": '{"min-input-file": "2"}'}, "min-input-file"),
        ({"options": '{"rewrite-all": "' + "x" * 1_000 + '"}'}, "rewrite-all"),
        ({"options": "{" + ", ".join(f'"o{number}": "1"' for number in range(60)) + "}"}, "60 options"),
        ({"older_than": "2026-01-01"}, "older_than"),
    ],
)
def test_job_without_table_or_with_unknown_field_is_400(
    node: DriverNode, table: HistoryTable, conf: dict[str, str], words: str
) -> None:
    """A job without a table, or with an unknown field, is 400 and the message names the field."""
    answer = run_job(node, **conf)

    assert (answer.status, words in answer.body.decode()) == (400, True), answer.body


def test_request_with_other_options_for_an_open_job_is_409(node: DriverNode, table: HistoryTable) -> None:
    """If a job is queued or running, a request for other options is 409. A request with the same options, or without
    any, returns the job. The job's options never change.
    """
    first = job(run_job(node, options='{"min-input-files": "2"}'))
    same, bare = job(run_job(node, options='{"min-input-files": "2"}')), job(run_job(node))
    waiting = run_job(node, options='{"min-input-files": "3"}')
    (leased,) = FakeExecutor(node).lease()
    running = run_job(node, options='{"rewrite-all": "true"}')

    assert {each["jobId"] for each in (same, bare)} == {first["jobId"]}
    assert (waiting.status, running.status) == (409, 409)
    assert first["jobId"].removeprefix("maintenance-") in waiting.json()["message"]
    assert leased["options"]["min-input-files"] == "2"


def test_request_for_a_planned_job_adds_its_options(node: DriverNode, table: HistoryTable) -> None:
    """A request for a job that a policy has planned turns it into a requested job, and adds the request's options to
    those of the policy.
    """
    assess(node)
    options = {"min-input-files": "1000", "max-file-group-input-files": "9"}
    add_policy(node, "small", COMPACTION, {"rewriteOptions": options}, on="main", kind="catalog")
    plan(node)
    run_job(node, options='{"min-input-files": "2"}')
    (leased,) = FakeExecutor(node).lease()

    assert leased["options"].items() >= {"min-input-files": "2", "max-file-group-input-files": "9"}.items()


def test_missing_table_template_or_job_is_404(node: DriverNode, table: HistoryTable) -> None:
    """A missing table, template or job is 404."""
    assert run_job(node, table_identifier="a.none").status == 404
    assert run_job(node, "builtin-none").status == 404
    assert node.get(f"{RUNS}/maintenance-999").status == 404
    assert node.post(f"{RUNS}/maintenance-999", {}).status == 404


def test_request_for_a_waiting_planned_operation_ends_its_wait(node: DriverNode, table: HistoryTable) -> None:
    """A request for an operation that waits because a policy planned it turns it into the caller's operation, which
    does not wait.
    """
    assess(node)
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    plan(node)
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    before = list_operations(node)[0]
    assert ask(node, user="writer").json() == {"operation": before["id"]}
    again = list_operations(node)[0]
    ask(node, user="admin")

    assert (before["policy"], before["user"]) == ("small", "admin")
    assert (again["policy"], again["user"]) == (None, "writer")
    assert list_operations(node)[0]["user"] == "writer", "a requested operation stays the caller's"


def test_jobs_of_one_template_are_listed_beside_many_others(
    node: DriverNode, table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of a template's jobs has its newest ones, however many newer operations of other kinds exist."""
    monkeypatch.setattr(builtin_jobs, "JOBS_MAX", 2)
    old = job(run_job(node))
    for name in (
        "builtin-iceberg-rewrite-manifests",
        "builtin-iceberg-update-stats",
        "builtin-iceberg-expire-snapshots",
    ):
        job(run_job(node, name))
    assert ask(node, operation="deletes").status == 200

    def listed(query: str) -> list[str]:
        return [each["jobTemplateName"] for each in node.get(f"{RUNS}{query}").json()["jobs"]]

    assert table.snapshots == 12
    assert listed("") == ["builtin-iceberg-expire-snapshots", "builtin-iceberg-update-stats"]
    assert [each["jobId"] for each in node.get(f"{RUNS}?jobTemplateName={COMPACT}").json()["jobs"]] == [old["jobId"]]
