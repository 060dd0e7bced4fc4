# SPDX-License-Identifier: Apache-2.0
"""Pipelines and runs over HTTP: declare, start, report, resume, finish and show."""

from __future__ import annotations

import re
import uuid

import pytest

from limnos.rooms.pipelines.services import run_attempts, runners
from limnos.services.runs import run_access, run_lists
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant

LAKE = f"{OWN}/metalakes/lake"
PIPES = f"{LAKE}/pipelines"
RUNS = f"{LAKE}/runs"
DECLARATION = {"steps": [{"name": "raw", "sql": "SELECT 1"}], "b": 2, "a": 1}
STEPS = [{"name": "raw", "reads": ["file:a.csv"], "output": "main.a.raw"}, {"name": "mart", "output": "main.a.mart"}]
FINDING = {
    "rule": "not_empty",
    "kind": "row",
    "action": "warn",
    "broken": 2,
    "checked": 10,
    "tolerated": 0.5,
    "held": True,
    "sample": "x",
    "message": "2 of 10",
}


def declare(node: DriverNode, name: str = "nyc", declaration: object = DECLARATION) -> dict:
    """Declare a pipeline."""
    return node.done("PUT", f"{PIPES}/{name}", {"declaration": declaration})


def begin(node: DriverNode, name: str = "nyc", **more: object) -> DriverAnswer:
    """Start a run."""
    body = {"id": str(uuid.uuid4()), "holder": "host:1", "steps": STEPS} | more
    return node.post(f"{PIPES}/{name}/runs", body)


def started(node: DriverNode, **more: object) -> str:
    """Declare a pipeline, start a run of it, and return its id."""
    declare(node)
    answer = begin(node, **more)
    assert answer.status == 200, answer
    return str(answer["id"])


def finish(node: DriverNode, run: str, state: str, attempt: int = 1) -> DriverAnswer:
    """Report the end of a run."""
    return node.post(f"{RUNS}/{run}/finish", {"attempt": attempt, "state": state, "message": "so"})


def code(answer: DriverAnswer) -> tuple[int, str]:
    """A refusal's status and code."""
    return answer.status, answer.json()["error"]["code"]


def test_changed_declaration_creates_a_pipeline_version(node: DriverNode) -> None:
    """A changed declaration is a new version, an equal one (in any order of keys) is not; old versions can be read."""
    first = declare(node)
    same = declare(node, declaration={"a": 1, "b": 2, "steps": DECLARATION["steps"]})
    second = declare(node, declaration={"steps": []})
    old = node.get(f"{PIPES}/nyc?version=1").json()

    assert (first["version"], same["version"], second["version"]) == (1, 1, 2)
    assert first["digest"] == same["digest"] != second["digest"]
    assert first["declaration"] == old["declaration"] == DECLARATION
    assert node.get(f"{PIPES}/nyc").json() == second
    assert [each["name"] for each in node.get(PIPES).json()["pipelines"]] == ["nyc"]
    assert node.get(f"{PIPES}/nyc?version=9").status == 404


@pytest.mark.parametrize("path", ["", "/findings?rule=r", "/schedule"])
def test_missing_pipeline_is_named_as_one(node: DriverNode, path: str) -> None:
    """A name that no pipeline has is answered as a missing pipeline, although pipelines are stored as job templates."""
    answer = node.get(f"{PIPES}/bikes{path}")

    assert answer.status == 404
    assert "Pipeline bikes does not exist in metalake lake" in answer.json()["error"]["message"]


def test_reported_steps_and_findings_are_returned(node: DriverNode) -> None:
    """Reported steps and findings are returned as reported; fields that a report omits keep their values."""
    run = started(node, parameters={"day": "2024-01-01"})
    path = f"{RUNS}/{run}/steps/raw"
    output = {
        "table": ["main", "a", "raw"],
        "branch": "run_1",
        "base": None,
        "head": 8_100_000_000_000_000_001,
        "is_new": True,
    }
    node.done("PUT", path, {"attempt": 1, "state": "running", "started_at": "2024-05-17T10:30:00+02:00"})
    node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1, "progress": {"raw": {"tasks": 3}}})
    node.done("PUT", path, {"attempt": 1, "state": "done", "rows": 7, "outputs": [output], "findings": [FINDING]})

    run_body = node.get(f"{RUNS}/{run}").json()
    raw, mart = run_body["steps"]

    assert (run_body["state"], run_body["attempt"], run_body["user"], run_body["pipeline"]) == (
        "running",
        1,
        "admin",
        "nyc",
    )
    assert run_body["parameters"] == {"day": "2024-01-01"}
    assert (raw["state"], raw["rows"], raw["started_at"]) == ("done", 7, "2024-05-17T08:30:00.000Z")
    assert raw["progress"] == {"tasks": 3}
    assert raw["outputs"][0]["head"] == output["head"]
    assert (mart["state"], mart["attempt"]) == ("waiting", 0)
    assert run_body["findings"] == [{"step": "raw", **FINDING, "at": run_body["findings"][0]["at"]}]


def test_phase_durations_are_stored_per_step_and_attempt(node: DriverNode) -> None:
    """Seconds per phase are stored per step and run, even if reported after the end. A new attempt resets them."""
    run = started(node)
    beat, step = f"{RUNS}/{run}/beat", f"{RUNS}/{run}/steps/raw"
    spent, whole = {"reading": 0.25, "writing": 1.5}, {"planning": 0.5, "publishing": 0.125}

    untold = node.get(f"{RUNS}/{run}").json()
    node.done("PUT", step, {"attempt": 1, "state": "done", "phases_s": spent})
    node.done("PUT", step, {"attempt": 1, "state": "done", "rows": 1})
    finish(node, run, "failed")
    late = node.done("POST", beat, {"attempt": 1, "phases_s": whole})
    node.done("POST", beat, {"attempt": 1})
    run_body = node.get(f"{RUNS}/{run}").json()
    node.done("POST", f"{RUNS}/{run}/resume", {"holder": "host:2"})
    superseded = node.post(beat, {"attempt": 1, "phases_s": spent})

    assert (untold["phases_s"], untold["steps"][0]["phases_s"]) == ({}, {})
    assert late == {"state": "failed", "attempt": 1}
    assert (run_body["phases_s"], run_body["steps"][0]["phases_s"]) == (whole, spent)
    assert node.get(RUNS).json()["runs"][0]["phases_s"] == {}
    assert code(superseded) == (409, "attempt-superseded")


def test_second_active_run_of_a_pipeline_is_refused(node: DriverNode) -> None:
    """While a run is active, another run of the pipeline is refused with the active run's id and holder. A start with
    the active run's id returns that run.
    """
    run = started(node)
    again = begin(node, id=run)
    other = begin(node)
    finish(node, run, "failed")

    assert again["id"] == run
    assert code(other) == (409, "pipeline-busy")
    assert run in other.json()["error"]["message"]
    assert "host:1" in other.json()["error"]["message"]
    assert begin(node).status == 200


def test_foreign_or_malformed_run_id_is_refused(node: DriverNode) -> None:
    """The id of another pipeline's run, or a malformed id, is refused."""
    run = started(node)
    declare(node, "other")

    assert code(begin(node, "other", id=run)) == (409, "already-exists")
    assert code(begin(node, "other", id="mine")) == (400, "bad-request")


def test_resumed_run_names_its_earlier_attempts(node: DriverNode) -> None:
    """A run that was resumed has how its earlier attempts ended and why; the list of runs leaves them out."""
    run = started(node)
    node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1, "phases_s": {"steps": 2.5}})
    finish(node, run, "failed")
    before = node.get(f"{RUNS}/{run}").json()
    node.done("POST", f"{RUNS}/{run}/resume", {"holder": "host:2"})
    after = node.get(f"{RUNS}/{run}").json()
    (listed,) = node.get(RUNS).json()["runs"]

    (attempt,) = after["earlier_attempts"]
    assert (before["earlier_attempts"], after["message"], after["attempt"]) == ([], None, 2)
    assert attempt == {
        "attempt": 1,
        "state": "failed",
        "holder": "host:1",
        "started_at": before["started_at"],
        "ended_at": before["ended_at"],
        "message": "so",
        "phases_s": {"steps": 2.5},
    }
    assert "earlier_attempts" not in listed


def test_resume_supersedes_the_previous_process(node: DriverNode) -> None:
    """After a resume, reports of the old process are refused as superseded. A repeated resume begins no further
    attempt.
    """
    run = started(node)
    finish(node, run, "failed")
    body = {"holder": "host:2", "after": 1}
    first, again = (node.done("POST", f"{RUNS}/{run}/resume", body) for _ in range(2))
    late = [
        node.post(f"{RUNS}/{run}/beat", {"attempt": 1}),
        node.ask("PUT", f"{RUNS}/{run}/steps/raw", {"attempt": 1, "state": "done"}),
        finish(node, run, "failed"),
        node.post(f"{RUNS}/{run}/resume", {"holder": "host:3", "after": 1}),
    ]

    assert (first["attempt"], again["attempt"], first["state"]) == (2, 2, "running")
    assert [code(each) for each in late] == [(409, "attempt-superseded")] * 4
    assert node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 2}) == {"state": "running", "attempt": 2}
    assert code(node.post(f"{RUNS}/{run}/resume", {"holder": "host:3"})) == (409, "pipeline-busy")


def test_heartbeat_reports_the_cancellation(node: DriverNode) -> None:
    """The answer to the next heartbeat says that the run is being cancelled. The process can then report the end of the
    run.
    """
    run = started(node)
    cancelled = node.done("POST", f"{RUNS}/{run}/cancel")
    beat = node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1})
    stopped = finish(node, run, "cancelled")
    late = node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1})

    assert (cancelled["state"], beat["state"], stopped["state"], late["state"]) == (
        "cancelling",
        "cancelling",
        "cancelled",
        "cancelled",
    )
    assert node.post(f"{RUNS}/{run}/cancel")["state"] == "cancelled"


@pytest.mark.parametrize(
    "first,then,ok",
    [
        ("failed", "discarded", True),
        ("cancelled", "discarded", True),
        ("held", "discarded", True),
        ("discarded", "failed", False),
        ("held", "failed", False),
        ("failed", "held", False),
        ("failed", "failed", True),
        ("discarded", "discarded", True),
    ],
)
def test_run_state_changes_along_allowed_transitions_only(node: DriverNode, first: str, then: str, ok: bool) -> None:
    """A run changes its state along the allowed transitions only, and repeating one is allowed. A refusal says what to
    do.
    """
    run = started(node)
    assert finish(node, run, first).status == 200

    answer = finish(node, run, then)

    assert node.get(f"{RUNS}/{run}")["state"] == (then if ok else first)
    if not ok:
        assert code(answer) == (409, "run-conflict")
        assert answer.json()["error"]["message"].endswith(
            ("start another one", "publish or discard it", "resume or discard it")
        )


def test_runs_are_listed_newest_first(node: DriverNode) -> None:
    """Runs are listed newest first and in pages, and can be filtered by pipeline and state."""
    runs = [started(node)]
    finish(node, runs[0], "failed")
    runs.append(started(node))
    first = node.get(f"{RUNS}?limit=1").json()
    second = node.get(f"{RUNS}?limit=1&page={first['next']}").json()

    def listed(query: str) -> list[str]:
        return [each["id"] for each in node.get(f"{RUNS}?{query}").json()["runs"]]

    assert [first["runs"][0]["id"], second["runs"][0]["id"]] == runs[::-1]
    assert listed("pipeline=nyc") == runs[::-1]
    assert (listed("state=failed"), listed("state=running"), listed("state=lost")) == (runs[:1], runs[1:], [])
    assert node.get(f"{RUNS}?pipeline=gone").status == 404
    assert node.get(f"{RUNS}?state=odd").status == 400


def test_findings_of_a_rule_are_listed_over_all_runs(node: DriverNode) -> None:
    """Findings of all runs of a rule are listed newest first. A finding reported again replaces the earlier report."""
    runs = []
    for broken in (1, 2):
        runs.append(started(node))
        for _ in range(2):
            findings = [FINDING | {"broken": broken}, FINDING | {"rule": "other"}]
            body = {"attempt": 1, "state": "done", "findings": findings}
            node.done("PUT", f"{RUNS}/{runs[-1]}/steps/raw", body)
        finish(node, runs[-1], "failed")

    listed_findings = node.get(f"{PIPES}/nyc/findings?rule=not_empty").json()["findings"]
    page = node.get(f"{PIPES}/nyc/findings?limit=3").json()

    assert [(each["broken"], each["run"], each["run_state"]) for each in listed_findings] == [
        (2, runs[1], "failed"),
        (1, runs[0], "failed"),
    ]
    assert len(page["findings"]) == 3
    assert len(node.get(f"{PIPES}/nyc/findings?page={page['next']}").json()["findings"]) == 1
    assert node.get(f"{PIPES}/nyc/findings?step=mart").json() == {"findings": [], "next": None}


def test_busy_pipeline_names_the_end_of_a_killed_process(node: DriverNode) -> None:
    """While a run's lease is valid another request is refused with the way to stop the run, and how long the lease of a
    killed process lasts; of a run that is being cancelled already, with that time alone.
    """
    run = started(node)
    busy = node.delete(f"{PIPES}/nyc").json()["error"]["message"]
    node.done("POST", f"{RUNS}/{run}/cancel")
    cancelling = node.delete(f"{PIPES}/nyc").json()["error"]["message"]

    assert re.search(rf"'limnos pipeline cancel {run}'; if its process was killed, repeat this in \d+ s", busy)
    assert re.search(r"It is being cancelled: if its process was killed, the run is over in \d+ s", cancelling)


def test_a_pipeline_is_dropped_with_its_runs(node: DriverNode) -> None:
    """A pipeline with an active run cannot be dropped; a drop also deletes its runs."""
    run = started(node)
    busy = node.delete(f"{PIPES}/nyc")
    finish(node, run, "failed")
    dropped = node.delete(f"{PIPES}/nyc")

    assert code(busy) == (409, "pipeline-busy")
    assert dropped.status == 200
    assert node.get(f"{RUNS}/{run}").status == 404
    assert node.get(RUNS).json()["runs"] == []


@pytest.mark.parametrize(
    "method,path,body",
    [
        ("PUT", "pipelines/nyc", {"declaration": []}),
        ("PUT", "pipelines/nyc", {}),
        ("PUT", "pipelines/a%20%2Fb", {"declaration": {}}),
        ("POST", "pipelines/nyc/runs", {"id": "x", "holder": "h:1"}),
        ("POST", "pipelines/nyc/runs", {"id": str(uuid.UUID(int=7)), "holder": ""}),
        ("POST", "pipelines/nyc/runs", {"id": str(uuid.UUID(int=7)), "holder": "h", "lease_s": 0}),
        ("POST", "pipelines/nyc/runs", {"id": str(uuid.UUID(int=7)), "holder": "h", "version": 9}),
        (
            "POST",
            "pipelines/nyc/runs",
            {"id": str(uuid.UUID(int=7)), "holder": "h", "steps": [{"name": "a"}, {"name": "a"}]},
        ),
        ("POST", "runs/RUN/beat", {"attempt": 0}),
        ("POST", "runs/RUN/beat", {"attempt": 1 << 40}),
        ("POST", "runs/RUN/finish", {"attempt": 1, "state": "published"}),
        ("PUT", "runs/RUN/steps/raw", {"attempt": 1, "state": "odd"}),
        ("PUT", "runs/RUN/steps/raw", {"attempt": 1, "state": "done", "started_at": "2024-05-17T10:30:00"}),
        ("PUT", "runs/RUN/steps/raw", {"attempt": 1, "state": "done", "rows": -1}),
        ("PUT", "runs/RUN/steps/raw", {"attempt": 1, "state": "done", "phases_s": {"reading": -1}}),
        ("PUT", "runs/RUN/steps/raw", {"attempt": 1, "state": "done", "phases_s": {"reading": "long"}}),
        ("POST", "runs/RUN/beat", {"attempt": 1, "phases_s": {f"p{n}": 0 for n in range(21)}}),
        ("POST", "runs/RUN/resume", {"holder": "h" * 300}),
        ("GET", "runs?page=x", None),
        ("GET", "runs?limit=0", None),
        ("GET", "pipelines/nyc?version=x", None),
    ],
)
def test_bad_input_is_refused(node: DriverNode, method: str, path: str, body: object) -> None:
    """An invalid declaration, id, lease, attempt, state, time or page is 400, and nothing is changed."""
    run = started(node)
    before = node.get(f"{RUNS}/{run}").json()

    answer = node.ask(method, f"{LAKE}/{path.replace('RUN', run)}", body)

    assert code(answer)[0] == 400, answer
    assert len(answer.json()["error"]["message"]) > 20
    assert node.get(f"{RUNS}/{run}").json() == before


def test_report_for_an_unknown_step_is_404(node: DriverNode) -> None:
    """A report about a step that the run does not have is refused with 404."""
    run = started(node)

    assert node.ask("PUT", f"{RUNS}/{run}/steps/gone", {"attempt": 1, "state": "done"}).status == 404


def test_run_parameters_are_limited_and_lists_omit_options(node: DriverNode) -> None:
    """The size of a run's parameters is limited, and lists of runs omit the options, so that a long list fits into one
    answer.
    """
    long = begin_with(node, parameters={"day": "x" * 20_000})
    run = started(node, parameters={"day": "x"}, options={"pins": ["y"]})

    (listed,) = node.get(RUNS).json()["runs"]

    assert (long.status, "at most 16384" in long.json()["error"]["message"]) == (400, True)
    assert (listed["parameters"], listed["options"]) == ({"day": "x"}, {})
    assert node.get(f"{RUNS}/{run}")["options"] == {"pins": ["y"]}


def begin_with(node: DriverNode, **more: object) -> DriverAnswer:
    """Declare a pipeline and try to start a run."""
    declare(node)
    return begin(node, **more)


def test_size_of_findings_and_step_reports_is_limited(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings and step reports of a run are limited in size. A report beyond the limit changes nothing; later
    reports below the limit are accepted.
    """
    run = started(node)
    monkeypatch.setattr(runners, "RUN_MAX", 50_000)

    def put(step: str, **more: object) -> DriverAnswer:
        return node.put(f"{RUNS}/{run}/steps/{step}", {"attempt": 1, "state": "running", **more})

    one = put("raw", findings=[FINDING | {"sample": "x" * 20_000}])
    first = put("raw", findings=[FINDING | {"sample": "x" * 10_000}] * 3)
    second = put("mart", findings=[FINDING | {"sample": "x" * 10_000}] * 3)
    little = put("mart", rows=1, findings=[FINDING])

    assert [each.status for each in (one, first, second, little)] == [400, 200, 400, 200]
    assert "shorten its sample" in one.json()["error"]["message"]
    assert "report less about each" in second.json()["error"]["message"]
    assert [each["step"] for each in node.get(f"{RUNS}/{run}").json()["findings"]] == ["raw"] * 3 + ["mart"]


def test_start_with_another_users_run_id_is_refused(node: DriverNode) -> None:
    """A start under the id of another user's run is refused and reveals nothing. The run's own user gets the run
    again.
    """
    run = started(node)
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    grant(node, "ana", "use_job_template run_job", kind="METALAKE", on="lake")
    body = {"id": run, "holder": "host:2", "steps": STEPS}

    refused = node.post(f"{PIPES}/nyc/runs", body, user="ana")

    assert code(refused) == (409, "already-exists")
    assert "host:1" not in refused.body.decode()
    assert begin(node, id=run)["id"] == run


def test_run_hidden_during_listing_is_skipped(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that becomes hidden while the list is read is left out, and the page continues."""
    runs_started = []
    for _ in range(3):
        runs_started.append(started(node))
        finish(node, runs_started[-1], "failed")
    sees = run_access.is_run_visible
    monkeypatch.setattr(
        run_lists,
        "is_run_visible",
        lambda request_view, run, **more: run.uuid != runs_started[1] and sees(request_view, run, **more),
    )

    first = node.get(f"{RUNS}?limit=2").json()
    second = node.get(f"{RUNS}?limit=2&page={first['next']}").json()

    assert [each["id"] for each in (*first["runs"], *second["runs"])] == [runs_started[2], runs_started[0]]


def test_final_message_is_truncated(node: DriverNode) -> None:
    """The message at the end of a run is cut to a maximum length."""
    run = started(node)

    ended = node.post(f"{RUNS}/{run}/finish", {"attempt": 1, "state": "failed", "message": "x" * 20_000})

    assert len(ended.json()["message"]) == run_attempts.MESSAGE_MAX
    assert len(node.get(f"{RUNS}/{run}").json()["message"]) == run_attempts.MESSAGE_MAX


def test_new_attempt_deletes_earlier_findings_of_a_step(node: DriverNode) -> None:
    """The first report of a step in a new attempt deletes the step's findings of the previous attempt."""
    run = started(node)
    path = f"{RUNS}/{run}/steps/raw"
    node.done("PUT", path, {"attempt": 1, "state": "failed", "findings": [FINDING]})
    finish(node, run, "failed")
    node.done("POST", f"{RUNS}/{run}/resume", {"holder": "host:2", "after": 1})
    assert len(node.get(f"{RUNS}/{run}").json()["findings"]) == 1

    node.done("PUT", path, {"attempt": 2, "state": "running"})

    assert node.get(f"{RUNS}/{run}").json()["findings"] == []


def test_reused_user_name_gives_no_access_to_the_run(node: DriverNode) -> None:
    """A user who later gets the name of a run's user can neither continue the run nor get it by its id, whatever their
    rights.
    """
    users = f"{API}/lake/users"
    declare(node)
    node.done("POST", users, {"name": "ana"})
    grant(node, "ana", "use_job_template run_job", kind="METALAKE", on="lake")
    run = str(
        node.post(f"{PIPES}/nyc/runs", {"id": str(uuid.uuid4()), "holder": "h:1", "steps": STEPS}, user="ana")["id"]
    )
    node.done("DELETE", f"{users}/ana")
    node.done("POST", users, {"name": "ana"})
    node.done("PUT", f"{API}/lake/owners/METALAKE/lake", {"name": "ana", "type": "USER"})

    ended = node.post(f"{RUNS}/{run}/finish", {"attempt": 1, "state": "failed"}, user="ana")
    resumed = node.post(f"{RUNS}/{run}/resume", {"holder": "h:2"}, user="ana")
    response = node.post(f"{PIPES}/nyc/runs", {"id": run, "holder": "h:1", "steps": STEPS}, user="ana")

    assert [code(each) for each in (ended, resumed)] == [(403, "forbidden")] * 2
    assert code(response) == (409, "already-exists")
    assert "other users cannot continue it" in ended.body.decode()


def test_run_id_may_not_begin_like_that_of_another_users_run(node: DriverNode) -> None:
    """Branches are named by the first digits of a run's id, so another user's run may not have the same ones."""
    run = started(node)
    grant(node, "bob", "run_job use_job_template", kind="METALAKE", on="lake")
    finish(node, run, "failed")
    alike = run[:14] + str(uuid.uuid4())[14:]
    body = {"id": alike, "holder": "h:1"}

    assert code(node.post(f"{PIPES}/nyc/runs", body, user="bob")) == (409, "already-exists")
    assert node.post(f"{PIPES}/nyc/runs", {**body, "id": str(uuid.uuid4())}, user="bob").status == 200


def test_samples_of_rows_are_for_the_user_of_the_run(node: DriverNode) -> None:
    """An owner of the metalake sees the findings of another user's run without the sample of rows."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    declare(node)
    grant(node, "ana", "use_job_template run_job", kind="METALAKE", on="lake")
    body = {"id": str(uuid.uuid4()), "holder": "h:1", "steps": STEPS}
    run = node.done("POST", f"{PIPES}/nyc/runs", body, user="ana")["id"]
    report = {"attempt": 1, "state": "done", "findings": [FINDING]}
    node.done("PUT", f"{RUNS}/{run}/steps/raw", report, user="ana")

    def samples(user: str) -> list[str | None]:
        paths = (f"{RUNS}/{run}", f"{PIPES}/nyc/findings")
        return [node.done("GET", path, user=user)["findings"][0]["sample"] for path in paths]

    assert samples("ana") == ["x", "x"]
    assert samples("admin") == [None, None]
    assert node.done("GET", f"{RUNS}/{run}")["findings"][0]["broken"] == FINDING["broken"]
