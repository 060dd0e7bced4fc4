# SPDX-License-Identifier: Apache-2.0
"""Rights on runs: to see, resume and end them; and runs whose process sends no heartbeats."""

from __future__ import annotations

import uuid

import pytest

from tests.http.admin.catalog.test_transactions import together
from tests.http.admin.test_publishing import RIGHTS, begun_by, commit, property_of, publishing, state
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import make_table
from tests.http.interference import InterferencePoint, interfere
from tests.rooms.pipelines.http.test_runs import FINDING, PIPES, RUNS, STEPS, begin, code, declare, finish, started


def pass_time(node: DriverNode, patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Advance the store's time."""
    time = node.built.services.store.time
    now_ms = time.now_ms()
    patch.setattr(time, "now_ms", lambda: now_ms + round(seconds * 1000))


def resume(node: DriverNode, run: str, *, user: str = "admin", **more: object) -> DriverAnswer:
    """Begin the next attempt."""
    return node.post(f"{RUNS}/{run}/resume", {"holder": "host:2"} | more, user=user)


def own(node: DriverNode, user: str, name: str = "nyc") -> None:
    """Make a user the owner of a pipeline."""
    node.ask("POST", f"{API}/lake/users", {"name": user})
    node.done("PUT", f"{API}/lake/owners/JOB_TEMPLATE/{name}", {"name": user, "type": "USER"})


def test_run_with_an_expired_lease_is_lost_and_resumable(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose lease has expired is shown as lost and can be resumed; a heartbeat in time prevents that."""
    run = started(node, lease_s=30)
    pass_time(node, monkeypatch, 29)
    states = (state(node, run), node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1})["state"])
    pass_time(node, monkeypatch, 31)
    lost = state(node, run)
    listed = [each["state"] for each in node.get(f"{RUNS}?state=lost").json()["runs"]]

    resumed = resume(node, run)

    assert states == ("running", "running")
    assert (lost, listed, node.get(f"{RUNS}?state=running").json()["runs"][0]["id"]) == ("lost", ["lost"], run)
    assert (resumed.status, resumed["attempt"], resumed["state"]) == (200, 2, "running")


def test_start_of_another_run_fails_a_lost_run(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start of another run fails a lost run of the pipeline. The next heartbeat of the lost run's process is answered
    with that state, its reports are refused, and it publishes nothing.
    """
    make_table(node, "a", "t")
    run = started(node, lease_s=30)
    pass_time(node, monkeypatch, 31)

    other = begin(node)

    assert other.status == 200
    lost_run = node.get(f"{RUNS}/{run}").json()
    assert (lost_run["state"], "another run" in lost_run["message"]) == ("failed", True)
    assert node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1})["state"] == "failed"
    assert code(node.ask("PUT", f"{RUNS}/{run}/steps/raw", {"attempt": 1, "state": "done"})) == (409, "run-conflict")
    assert code(together(node, commit(by="lost"), publishing(run))) == (409, "run-conflict")
    assert (property_of(node), state(node, run)) == (None, "failed")
    assert code(resume(node, run)) == (409, "pipeline-busy")


def test_late_heartbeat_continues_a_lost_run_not_taken_over(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost run continues with the next heartbeat of its process if no other process has taken over the run or the
    pipeline.
    """
    run = started(node, lease_s=30)
    pass_time(node, monkeypatch, 100)

    node.done("POST", f"{RUNS}/{run}/beat", {"attempt": 1})

    assert state(node, run) == "running"
    assert code(begin(node)) == (409, "pipeline-busy")


def test_lost_run_is_cancelled_immediately(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost run is cancelled immediately, also if it was already being cancelled, because no process has to stop
    first.
    """
    run, other = started(node, lease_s=30), ""
    pass_time(node, monkeypatch, 31)
    first = node.done("POST", f"{RUNS}/{run}/cancel")["state"]
    other = started(node, lease_s=30)
    node.done("POST", f"{RUNS}/{other}/cancel")
    pass_time(node, monkeypatch, 31)

    second = node.done("POST", f"{RUNS}/{other}/cancel")["state"]

    assert (first, second) == ("cancelled", "cancelled")


def test_pipeline_owner_may_cancel_but_not_resume_others_runs(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipeline's owner may see, cancel and discard other users' runs of it, but neither report about them nor
    resume them.
    """
    run, _ = begun_by(node, "ana")
    own(node, "olga")
    grant(node, "olga", RIGHTS, kind="METALAKE", on="lake")
    path = f"{RUNS}/{run}"
    assert node.get(path, user="olga").status == 200
    answers = [
        node.post(f"{path}/beat", {"attempt": 1}, user="olga"),
        node.put(f"{path}/steps/raw", {"attempt": 1, "state": "done"}, user="olga"),
        node.post(f"{path}/finish", {"attempt": 1, "state": "failed"}, user="olga"),
        node.post(f"{path}/finish", {"attempt": 1, "state": "discarded"}, user="olga"),
    ]
    pass_time(node, monkeypatch, 31)
    answers += [
        node.post(f"{path}/finish", {"attempt": 1, "state": "failed"}, user="olga"),
        resume(node, run, user="olga"),
    ]

    assert [code(each) for each in answers] == [(403, "forbidden")] * 6
    assert all("ana" in each.json()["error"]["message"] for each in answers)
    assert node.post(f"{path}/cancel", user="olga")["state"] == "cancelled"
    assert node.post(f"{path}/finish", {"attempt": 1, "state": "discarded"}, user="olga").status == 200


def test_heartbeat_during_a_discard_refuses_the_discard(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process of a lost run sends a heartbeat during a discard, the discard is refused and the run continues."""
    run, _ = begun_by(node, "ana")
    own(node, "olga")
    grant(node, "olga", RIGHTS, kind="METALAKE", on="lake")
    pass_time(node, monkeypatch, 31)

    async def beat() -> None:
        answer = await node.answer("POST", f"{RUNS}/{run}/beat", {"attempt": 1}, user="ana")
        assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.SUBMIT, act=beat) as interference:
        answer = node.post(f"{RUNS}/{run}/finish", {"attempt": 1, "state": "discarded"}, user="olga")

    assert interference.is_done
    assert code(answer) == (403, "forbidden")
    assert state(node, run) == "running"


def test_new_attempt_needs_the_right_to_run(node: DriverNode) -> None:
    """A user who may no longer run the pipeline may report the end of a run, but may not begin another attempt."""
    run, role = begun_by(node, "ana")
    rule = {"privileges": [{"name": "run_job", "condition": "allow"}]}
    node.done("PUT", f"{API}/lake/permissions/roles/{role}/METALAKE/lake/revoke", rule)

    ended = node.post(f"{RUNS}/{run}/finish", {"attempt": 1, "state": "failed"}, user="ana")
    again = resume(node, run, user="ana")

    assert ended.status == 200
    assert again.status == 403
    assert "RUN_JOB" in again.json()["error"]["message"]


def test_start_without_right_does_not_reveal_pipeline_versions(node: DriverNode) -> None:
    """A user who may not run the pipeline gets the same refusal for a start with an existing and with a missing
    version.
    """
    declare(node)
    grant(node, "ana", "use_job_template", kind="METALAKE", on="lake")

    for version in (1, 99):
        body = {"id": str(uuid.uuid4()), "holder": "h:1", "version": version}
        answer = node.post(f"{PIPES}/nyc/runs", body, user="ana")
        assert answer.status == 403, answer.body


def test_recreated_user_inherits_no_run(node: DriverNode) -> None:
    """A user who was removed and added again does not own the runs from before."""
    run, _ = begun_by(node, "ana")
    node.done("DELETE", f"{API}/lake/users/ana")
    grant(node, "ana", RIGHTS, kind="METALAKE", on="lake")

    assert node.get(f"{RUNS}/{run}", user="ana").status == 403
    assert node.post(f"{RUNS}/{run}/beat", {"attempt": 1}, user="ana").status == 403


def test_runs_of_others_are_listed_only_for_the_pipeline_owner(node: DriverNode) -> None:
    """A user who may only run the pipeline does not see runs and findings of others; the pipeline's owner sees all."""
    declare(node)
    runs = {}
    for user in ("ana", "bob"):
        grant(node, user, RIGHTS, kind="METALAKE", on="lake")
        runs[user] = str(uuid.uuid4())
        body = {"id": runs[user], "holder": "h:1", "steps": STEPS}
        assert node.post(f"{PIPES}/nyc/runs", body, user=user).status == 200
        step_report = {"attempt": 1, "state": "done", "findings": [FINDING]}
        assert node.put(f"{RUNS}/{runs[user]}/steps/raw", step_report, user=user).status == 200
        assert node.post(f"{RUNS}/{runs[user]}/finish", {"attempt": 1, "state": "failed"}, user=user).status == 200
    own(node, "olga")

    def listed(user: str) -> list[set[str]]:
        bodies = [node.get(path, user=user).json() for path in (RUNS, f"{RUNS}?pipeline=nyc", f"{PIPES}/nyc/findings")]
        return [{each.get("id") or each["run"] for each in next(iter(answer.values()))} for answer in bodies]

    for user in ("ana", "bob"):
        assert listed(user) == [{runs[user]}] * 3
    assert listed("olga") == listed("admin") == [set(runs.values())] * 3


def test_findings_are_read_with_the_rights_at_the_end_of_the_request(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who leaves the group that owns the pipeline, after the decision about the list and before its read, gets
    no finding of others.
    """
    run = started(node)
    report = {"attempt": 1, "state": "done", "findings": [FINDING]}
    node.done("PUT", f"{RUNS}/{run}/steps/raw", report)
    members = f"{OWN}/metalakes/lake/groups/staff/members"
    node.done("POST", f"{API}/lake/groups", {"name": "staff"})
    node.done("PUT", f"{API}/lake/owners/JOB_TEMPLATE/nyc", {"name": "staff", "type": "GROUP"})
    grant(node, "ana", "use_job_template", kind="METALAKE", on="lake")
    node.done("POST", members, {"users": ["ana"]})
    assert len(node.get(f"{PIPES}/nyc/findings", user="ana").json()["findings"]) == 1

    async def leave() -> None:
        answer = await node.answer("DELETE", f"{members}/ana", user="admin")
        assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.READ, act=leave) as interference:
        answer = node.get(f"{PIPES}/nyc/findings", user="ana")

    assert interference.is_done
    assert answer.json() == {"findings": [], "next": None}


def test_version_declared_after_the_decision_is_missing(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who loses the pipeline after the decision and before the read does not get a version that is declared
    after that.
    """
    declare(node)
    role = grant(node, "ana", "use_job_template", kind="METALAKE", on="lake")
    path = f"{PIPES}/nyc"

    async def act() -> None:
        revoke = {"roleNames": [role]}
        for target, body in (
            (f"{API}/lake/permissions/users/ana/revoke", revoke),
            (path, {"declaration": {"steps": [], "secret": 1}}),
        ):
            answer = await node.answer("PUT", target, body)
            assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = node.get(f"{path}?version=2", user="ana")

    assert interference.is_done
    assert (code(answer), b"secret" in answer.body) == ((404, "not-found"), False), answer
    assert node.get(f"{path}?version=2")["version"] == 2


def test_change_feed_has_starts_ends_and_publications_of_runs(node: DriverNode) -> None:
    """The change feed has starts, ends and publications of runs for users who see the run, but no heartbeats."""
    run, _ = begun_by(node, "ana")
    node.done("POST", f"{API}/lake/users", {"name": "zoe"})
    for path, body in (
        ("beat", {"attempt": 1}),
        ("finish", {"attempt": 1, "state": "failed"}),
        ("resume", {"holder": "h:2"}),
    ):
        assert node.post(f"{RUNS}/{run}/{path}", body, user="ana").status == 200
    publish = {"operations": [{"do": "publish-run", "run": run, "attempt": 2}]}
    assert node.post(f"{OWN}/metalakes/lake/catalogs/main/transactions", publish, user="ana").status == 200

    def job_changes(user: str) -> list[tuple[str, list[str]]]:
        changes = node.get(f"{OWN}/metalakes/lake/changes", user=user).json()["changes"]
        return [(each["operation"], each["path"]) for each in changes if each["kind"] == "job"]

    expected = [(word, [run]) for word in ("start", "fail", "resume", "publish")]
    assert job_changes("ana") == job_changes("admin") == expected
    assert job_changes("zoe") == []


@pytest.mark.room("jobs")
def test_a_renamed_pipeline_keeps_its_runs(node: DriverNode) -> None:
    """Runs belong to the pipeline's id, and answers have its current name."""
    run = started(node)
    finish(node, run, "failed")
    node.done("PUT", f"{API}/lake/jobs/templates/nyc", {"updates": [{"@type": "rename", "newName": "york"}]})

    assert node.get(f"{RUNS}/{run}")["pipeline"] == "york"
    assert [each["id"] for each in node.get(f"{RUNS}?pipeline=york").json()["runs"]] == [run]
