# SPDX-License-Identifier: Apache-2.0
"""A transaction publishes a run together with the run's tables, or changes none of them."""

from __future__ import annotations

import uuid

import pytest

from tests.http.admin.catalog.test_transactions import Operation, message, together
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import make_table, metadata_of, set_properties
from tests.rooms.pipelines.http.test_runs import RUNS, code, declare, finish, started


def publishing(run: str, attempt: int = 1) -> Operation:
    """Return the operation that publishes a run."""
    return {"do": "publish-run", "run": run, "attempt": attempt}


def commit(name: str = "t", **properties: str) -> Operation:
    """Return a commit to a table."""
    return {"do": "commit-table", "path": ["a", name], "updates": [set_properties(**properties)]}


def property_of(node: DriverNode, name: str = "t") -> object:
    """Return the value of the table's property `by`."""
    properties: dict[str, object] = metadata_of(node, "a", name)["properties"]  # type: ignore[assignment]
    return properties.get("by")


def state(node: DriverNode, run: str) -> str:
    """Return a run's state."""
    return str(node.get(f"{RUNS}/{run}")["state"])


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:
    """A lake with two tables."""
    for name in ("t", "u"):
        make_table(node, "a", name)
    return node


@pytest.mark.parametrize("first", [True, False])
def test_a_run_is_published_with_its_tables(lake: DriverNode, first: bool) -> None:
    """A transaction with a publish operation at any position changes the run and the tables at the same revision, which
    the run stores.
    """
    run = started(lake)
    commits = [commit("t", by="run"), commit("u", by="run")]

    answer = together(lake, *([publishing(run), *commits] if first else [*commits, publishing(run)]))

    published_run = lake.get(f"{RUNS}/{run}").json()
    assert answer.status == 200, answer
    assert {"do": "publish-run", "run": run} in answer.json()["operations"]
    assert (published_run["state"], published_run["revision"]) == ("published", answer["revision"])
    assert published_run["ended_at"] is not None
    assert [property_of(lake, name) for name in ("t", "u")] == ["run", "run"]


@pytest.mark.parametrize("ended", ["failed", "cancelled", "discarded"])
def test_unpublishable_run_rolls_back_the_transaction(lake: DriverNode, ended: str) -> None:
    """A run in a state that cannot be published is refused, and no table of the transaction changes."""
    run = started(lake)
    finish(lake, run, ended)

    answer = together(lake, commit(by="run"), publishing(run))

    assert code(answer) == (409, "run-conflict")
    assert ended in answer.json()["error"]["message"]
    assert (property_of(lake), state(lake, run)) == (None, ended)


def test_failed_table_requirement_does_not_publish_the_run(lake: DriverNode) -> None:
    """If a table's requirement fails, the run is not published either."""
    run = started(lake)
    lost = commit(by="run") | {"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}]}

    answer = together(lake, publishing(run), lost)

    assert code(answer) == (409, "commit-conflict")
    assert (property_of(lake), state(lake, run)) == (None, "running")


def test_a_superseded_attempt_publishes_nothing(lake: DriverNode) -> None:
    """Only the newest attempt of a run may publish; a request of an earlier attempt is refused as superseded."""
    run = started(lake)
    finish(lake, run, "failed")
    lake.done("POST", f"{RUNS}/{run}/resume", {"holder": "host:2"})

    late = together(lake, commit(by="old"), publishing(run))
    good = together(lake, commit(by="new"), publishing(run, attempt=2))

    assert code(late) == (409, "attempt-superseded")
    assert good.status == 200
    assert (property_of(lake), state(lake, run)) == ("new", "published")


def test_cancelling_run_cannot_be_published(lake: DriverNode) -> None:
    """A run that is being cancelled cannot be published, and a published run cannot be cancelled."""
    run = started(lake)
    lake.done("POST", f"{RUNS}/{run}/cancel")
    assert code(together(lake, commit(by="run"), publishing(run))) == (409, "run-conflict")
    finish(lake, run, "cancelled")
    run = started(lake)
    together(lake, publishing(run))

    answer = lake.post(f"{RUNS}/{run}/cancel")

    assert code(answer) == (409, "run-conflict")
    assert (property_of(lake), state(lake, run)) == (None, "published")


def test_second_publication_of_a_run_is_refused(lake: DriverNode) -> None:
    """A second publication of a run is refused. With the same idempotency key, the request gets the first answer."""
    run = started(lake)
    key = "01912345-0000-7000-8000-000000000001"
    path, body = f"{OWN}/metalakes/lake/catalogs/main/transactions", {"operations": [commit(by="run"), publishing(run)]}
    first, again = (lake.ask("POST", path, body, Idempotency_Key=key) for _ in range(2))

    assert (first.status, again.status) == (200, 200)
    assert first.json() == again.json()
    assert code(together(lake, publishing(run))) == (409, "run-conflict")


RIGHTS = "run_job use_job_template use_catalog use_schema modify_table"


def begun_by(node: DriverNode, user: str) -> tuple[str, str]:
    """Start a run as a user who may run the pipeline and change tables. Returns the run and the role with the
    rights.
    """
    declare(node)
    role = grant(node, user, RIGHTS, kind="METALAKE", on="lake")
    answer = node.post(
        f"{OWN}/metalakes/lake/pipelines/nyc/runs", {"id": str(uuid.uuid4()), "holder": "h:1"}, user=user
    )
    assert answer.status == 200, answer
    return str(answer["id"]), role


@pytest.mark.parametrize("lost", ["run_job", "use_job_template", "modify_table"])
def test_user_who_lost_a_privilege_cannot_publish(lake: DriverNode, lost: str) -> None:
    """A user who loses the right to run the pipeline or to change a table during the run cannot publish it."""
    run, role = begun_by(lake, "ana")
    rule = {"privileges": [{"name": lost, "condition": "allow"}]}
    lake.done("PUT", f"{API}/lake/permissions/roles/{role}/METALAKE/lake/revoke", rule)

    answer = together(lake, commit(by="ana"), publishing(run), user="ana")

    assert answer.status == 403
    assert lost.upper() in answer.json()["error"]["message"]
    assert (property_of(lake), state(lake, run)) == (None, "running")


def test_active_run_can_be_published_only_by_its_user(lake: DriverNode) -> None:
    """No other user can publish an active run, not even the metalake's owner."""
    run, _ = begun_by(lake, "ana")

    assert together(lake, commit(by="admin"), publishing(run)).status == 403
    assert (property_of(lake), state(lake, run)) == (None, "running")


def test_held_run_can_be_published_by_the_pipeline_owner(lake: DriverNode) -> None:
    """The pipeline's owner may publish a held run; a user who may only run the pipeline may not."""
    run, _ = begun_by(lake, "ana")
    assert lake.post(f"{RUNS}/{run}/finish", {"attempt": 1, "state": "held"}, user="ana").status == 200
    grant(lake, "bob", RIGHTS, kind="METALAKE", on="lake")

    strange = together(lake, commit(by="bob"), publishing(run), user="bob")
    owner = together(lake, commit(by="admin"), publishing(run))

    assert (strange.status, owner.status) == (403, 200)
    assert (property_of(lake), state(lake, run)) == ("admin", "published")


def test_missing_run_is_reported_like_a_hidden_one(lake: DriverNode) -> None:
    """A missing run is reported as missing only to users who could see it. Other users get the same answer as for a
    hidden run.
    """
    missing = publishing(str(uuid.UUID(int=7)))
    run = started(lake)
    grant(lake, "bob", RIGHTS, kind="METALAKE", on="lake")

    answers = [together(lake, missing, user="bob"), together(lake, publishing(run), user="bob")]

    assert together(lake, missing).status == 404
    assert {each.status for each in answers} == {403}
    words = [message(each)[2].replace(run, "X").replace(str(uuid.UUID(int=7)), "X") for each in answers]
    assert words[0] == words[1]
    assert "nyc" not in words[1]
