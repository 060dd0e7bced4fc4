# SPDX-License-Identifier: Apache-2.0
"""Pages of pipelines and runs: lists, time line, findings, and forms that publish, discard and cancel."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from limnos.rooms.pipelines.console.pipelines import duration_text
from tests.http.driver import OWN, DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.console.http.conftest import ICEBERG, commit_flights
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of
from tests.rooms.pipelines.http.test_runs import FINDING

BAR = re.compile(r'<rect x="([\d.]+)%" y="\d+" width="([\d.]+)%"')
"""The position and width of a bar of the timeline, in percent of the picture."""
LAKE = f"{OWN}/metalakes/lake"
TABLE = f"{ICEBERG}/namespaces/raw/tables/flights"
STEPS = [
    {"name": "load", "reads": ["file:a.csv"], "output": "main.raw.flights"},
    {"name": "mart", "reads": ["main.raw.flights"], "output": "main.raw.mart"},
]


class PipelineLake:
    """A lake with the pipeline `nyc` and one run, whose first step wrote flights on a branch."""

    def __init__(self, node: DriverNode) -> None:
        self.node = node
        self.admin = ConsoleVisitor(node).sign_in()
        self.run = str(uuid.uuid4())
        self.branch = f"run_{self.run.replace('-', '')[:12]}_1"
        node.done("PUT", f"{LAKE}/pipelines/nyc", {"declaration": {"steps": []}, "comment": "Trips"})
        node.done("POST", f"{LAKE}/pipelines/nyc/runs", {"id": self.run, "holder": "host:1", "steps": STEPS})
        metadata = node.done("GET", TABLE)["metadata"]
        first, second = wire.snapshot(1), wire.snapshot(2, parent=1)
        first["snapshot"]["summary"] = {"operation": "append", "total-records": "1000"}
        second["snapshot"]["summary"] = {"operation": "append", "total-records": "1234"}
        self.commit(first, wire.point(1))
        self.commit(second, {**wire.point(2), "ref-name": self.branch})
        self.output = {
            "table": ["main", "raw", "flights"],
            "branch": self.branch,
            "uuid": metadata["table-uuid"],
            "base": 100,
            "head": 200,
            "schema_id": metadata["current-schema-id"],
        }
        self.tell("load", "done", outputs=[self.output], rows=1234, bytes=99, findings=[FINDING])

    def commit(self, *updates: dict[str, Any]) -> None:
        """Commit updates to the table."""
        commit_flights(self.node, *updates)

    def tell(self, step: str, state: str, **more: object) -> None:
        """Report a step."""
        times = {"started_at": 1_000, "ended_at": 61_000} if state == "done" else {}
        body = {"attempt": 1, "state": state, **times, **more}
        self.node.done("PUT", f"{LAKE}/runs/{self.run}/steps/{step}", body)

    def finish(self, state: str) -> None:
        """End the run."""
        self.node.done("POST", f"{LAKE}/runs/{self.run}/finish", {"attempt": 1, "state": state, "message": "so"})

    @property
    def page(self) -> str:
        """Return the URL of the run."""
        return f"/console/run?metalake=lake&id={self.run}"

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of a form for the run."""
        return {"metalake": "lake", "id": self.run}

    def refs(self) -> dict[str, int]:
        """Return the branches of flights."""
        table_refs = self.node.done("GET", TABLE)["metadata"]["refs"]
        return {name: ref["snapshot-id"] for name, ref in table_refs.items()}


@pytest.fixture
def lake_of_runs(lake: DriverNode) -> PipelineLake:
    """The lake."""
    return PipelineLake(lake)


def test_lists_lead_to_pipeline_and_run(lake_of_runs: PipelineLake) -> None:
    """The list has the pipeline with its latest runs; its page has the steps as a graph, runs and rules."""
    listed = lake_of_runs.admin.read("/console/pipelines")
    page = lake_of_runs.admin.read("/console/pipeline?metalake=lake&name=nyc")

    assert "nyc" in listed.text
    assert lake_of_runs.page in listed.hrefs
    assert "running" in listed.text
    for words in ("Trips", "load", "mart", "2 of 10", "not_empty"):
        assert words in page.text
    assert page.tags.count("path") == 1


def test_active_run_page_shows_time_line_and_findings(lake_of_runs: PipelineLake) -> None:
    """While the run is active the page refreshes its part; each step has a bar or a text."""
    page = lake_of_runs.admin.read(lake_of_runs.page)
    part = text_of(lake_of_runs.admin.get(lake_of_runs.page, x_limnos_part="1"))

    for words in ("done, 1 min 0 s", "waiting", "1 234", "2 of 10 violate it", "Cancel"):
        assert words in page.text
    assert "Publish" not in page.text
    assert "data-going" in part
    assert 'width="100%"' in part
    bars = [(x, width) for x, width in BAR.findall(part)]
    assert bars
    assert all(float(x) + float(width) <= 100 for x, width in bars)
    assert "<html" not in part


def test_held_run_is_compared_and_published(lake_of_runs: PipelineLake) -> None:
    """The page of a held run has each table's number of rows before and after. Publishing moves `main` and deletes the
    branch.
    """
    lake_of_runs.tell("mart", "skipped")
    lake_of_runs.finish("held")

    page = lake_of_runs.admin.read(lake_of_runs.page)
    answer = lake_of_runs.admin.post("/console/run/publish", lake_of_runs.fields)

    assert "main.raw.flights 1 000 1 234" in page.text
    assert answer.status == 303
    assert lake_of_runs.refs() == {"main": 200}
    assert lake_of_runs.node.done("GET", f"{LAKE}/runs/{lake_of_runs.run}")["state"] == "published"
    assert "Published" in lake_of_runs.admin.read(answer.headers["location"]).text


def test_page_of_a_resumed_run_has_its_earlier_attempts(lake_of_runs: PipelineLake) -> None:
    """The page of a run that was resumed has the state, process and message of its earlier attempts; that of another
    run has no such table.
    """
    before = lake_of_runs.admin.read(lake_of_runs.page).text
    lake_of_runs.finish("failed")
    lake_of_runs.node.done("POST", f"{LAKE}/runs/{lake_of_runs.run}/resume", {"holder": "host:2"})
    page = lake_of_runs.admin.read(lake_of_runs.page).text

    assert "Earlier attempts" not in before
    assert re.search("Earlier attempts .*1 failed .*host:1 so", page), page


@pytest.mark.parametrize("base, is_shown", [(100, True), (300, False)])
def test_columns_are_compared_only_if_both_schemas_are_known(
    lake_of_runs: PipelineLake, base: int, *, is_shown: bool
) -> None:
    """If the base snapshot (300) has no schema id, the page does not compare its columns with the first schema."""
    schema = {"type": "struct", "fields": [{"id": 99, "name": "other", "required": False, "type": "string"}]}
    before, after = wire.snapshot(3, parent=1), wire.snapshot(4, parent=1)
    del before["snapshot"]["schema-id"]
    after["snapshot"]["schema-id"] = 1
    lake_of_runs.commit({"action": "add-schema", "schema": schema}, before, {**wire.point(3), "ref-name": "before"})
    lake_of_runs.commit(after, {**wire.point(4), "ref-name": lake_of_runs.branch})
    lake_of_runs.tell("load", "done", outputs=[lake_of_runs.output | {"base": base, "head": 400}])
    lake_of_runs.tell("mart", "skipped")
    lake_of_runs.finish("held")

    assert ("adds other string" in lake_of_runs.admin.read(lake_of_runs.page).text) is is_shown


def test_publishing_after_another_clients_commit_is_409(lake_of_runs: PipelineLake) -> None:
    """If another client changed the table since the run's base, publishing is refused with 409 and `main` is not
    moved.
    """
    lake_of_runs.finish("held")
    lake_of_runs.commit(wire.snapshot(3, parent=1), wire.point(3))

    answer = lake_of_runs.admin.post("/console/run/publish", lake_of_runs.fields)

    assert answer.status == 409
    assert lake_of_runs.refs()["main"] == 300


def test_run_recording_a_foreign_branch_is_not_published(lake_of_runs: PipelineLake) -> None:
    """A run whose record names a branch other than the run's own is not published, because the run's user wrote the
    record.
    """
    lake_of_runs.tell("load", "done", outputs=[{**lake_of_runs.output, "branch": "audit"}])
    lake_of_runs.finish("held")

    assert lake_of_runs.admin.post("/console/run/publish", lake_of_runs.fields).status == 409
    assert lake_of_runs.refs()["main"] == 100


@pytest.mark.parametrize("verb", ["publish", "discard"])
def test_record_that_names_another_runs_branch_changes_nothing_of_it(lake_of_runs: PipelineLake, verb: str) -> None:
    """A run whose record names the branch of another run is not published, and its discard removes no branch, though
    the caller may write the table.
    """
    other = PipelineLake.__new__(PipelineLake)
    other.__dict__.update(lake_of_runs.__dict__, run=str(uuid.uuid4()))
    lake_of_runs.finish("failed")
    other.node.done("POST", f"{LAKE}/pipelines/nyc/runs", {"id": other.run, "holder": "host:1", "steps": STEPS})
    other.tell("load", "done", outputs=[lake_of_runs.output])
    other.finish("held")

    status = other.admin.post(f"/console/run/{verb}", other.fields).status
    assert status == (409 if verb == "publish" else 303)
    assert other.refs() == {"main": 100, lake_of_runs.branch: 200}


def test_page_of_a_held_run_offers_no_cancel(lake_of_runs: PipelineLake) -> None:
    """A held run has no process, so it can be published and discarded, and not cancelled."""
    lake_of_runs.tell("mart", "skipped")
    lake_of_runs.finish("held")
    page = lake_of_runs.admin.read(lake_of_runs.page).text

    assert [word in page for word in ("Publish", "Discard", "Cancel")] == [True, True, False]


def test_refused_discard_removes_no_branch(lake_of_runs: PipelineLake) -> None:
    """A discard that is refused, because another user's process works on the run, leaves the run's branches."""
    pia = own_pipeline(lake_of_runs, "pia", "use_catalog use_schema select_table modify_table")

    assert pia.post("/console/run/discard", lake_of_runs.fields).status == 403
    assert lake_of_runs.refs() == {"main": 100, lake_of_runs.branch: 200}


def test_discard_removes_the_branch(lake_of_runs: PipelineLake) -> None:
    """A discard deletes the run's branch and leaves `main` unchanged."""
    lake_of_runs.finish("held")

    answer = lake_of_runs.admin.post("/console/run/discard", lake_of_runs.fields)

    assert answer.status == 303
    assert lake_of_runs.refs() == {"main": 100}
    assert lake_of_runs.node.done("GET", f"{LAKE}/runs/{lake_of_runs.run}")["state"] == "discarded"


def test_cancelled_run_is_cancelling_until_its_process_ends(lake_of_runs: PipelineLake) -> None:
    """After a cancel, the run is cancelling until its process reports the end."""
    answer = lake_of_runs.admin.post("/console/run/cancel", lake_of_runs.fields)

    assert answer.status == 303
    assert lake_of_runs.node.done("GET", f"{LAKE}/runs/{lake_of_runs.run}")["state"] == "cancelling"


@pytest.mark.parametrize("verb", ["publish", "discard", "cancel"])
def test_unauthorized_users_cannot_change_runs(lake_of_runs: PipelineLake, verb: str) -> None:
    """Readers of the table, and users who may only run the pipeline, are refused all changes of the run."""
    node = lake_of_runs.node
    if verb != "cancel":
        lake_of_runs.finish("held")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "pip", "run_job use_job_template", kind="METALAKE", on="lake")

    statuses = {
        user: ConsoleVisitor(node).sign_in(user).post(f"/console/run/{verb}", lake_of_runs.fields).status
        for user in ("ana", "pip", "stranger")
    }

    assert set(statuses.values()) <= {403, 404}, statuses
    assert lake_of_runs.refs() == {"main": 100, lake_of_runs.branch: 200}
    assert node.done("GET", f"{LAKE}/runs/{lake_of_runs.run}")["state"] in {"held", "running"}


def test_hidden_pipelines_and_runs_are_not_listed(lake_of_runs: PipelineLake) -> None:
    """Lists omit hidden pipelines and runs, and requests for their pages are refused."""
    lake_of_runs.node.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    ana = ConsoleVisitor(lake_of_runs.node).sign_in("ana")

    assert "nyc" not in ana.read("/console/pipelines").text
    assert ana.get("/console/pipeline?metalake=lake&name=nyc").status in {403, 404}
    assert ana.get(lake_of_runs.page).status in {403, 404}


def test_durations_have_units() -> None:
    """Durations are shown in tenths below ten seconds, then in seconds, minutes and hours."""
    texts = [duration_text(each) for each in (1_500, 59_000, 125_000, 7_500_000)]

    assert texts == ["1.5 s", "59 s", "2 min 5 s", "2 h 5 min"]


def own_pipeline(lake: PipelineLake, user: str, privileges: str) -> ConsoleVisitor:
    """Sign in the owner of the pipeline, who sees its runs and has some privileges on the catalog."""
    grant(lake.node, user, privileges, kind="CATALOG", on="main")
    grant(lake.node, user, "run_job", kind="METALAKE", on="lake")
    lake.node.done("PUT", "/api/metalakes/lake/owners/job_template/nyc", {"name": user, "type": "USER"})
    return ConsoleVisitor(lake.node).sign_in(user)


def test_publishing_needs_write_privilege_on_the_tables(lake_of_runs: PipelineLake) -> None:
    """Publishing needs the privilege to write the run's tables; seeing the run and loading its tables is not enough."""
    lake_of_runs.tell("mart", "skipped")
    lake_of_runs.finish("held")
    reader = own_pipeline(lake_of_runs, "pia", "use_catalog use_schema select_table")

    refused = reader.post("/console/run/publish", lake_of_runs.fields)
    before = lake_of_runs.refs()
    grant(lake_of_runs.node, "pia", "modify_table", kind="CATALOG", on="main")
    answer = reader.post("/console/run/publish", lake_of_runs.fields)

    assert refused.status == 403
    assert before == {"main": 100, lake_of_runs.branch: 200}
    assert answer.status == 303
    assert lake_of_runs.refs() == {"main": 200}


def test_discard_by_a_table_reader_retains_the_branch(lake_of_runs: PipelineLake) -> None:
    """A discard by a user who may only read a table does not delete the run's branch of that table. The page says what
    deletes it.
    """
    lake_of_runs.finish("held")
    reader = own_pipeline(lake_of_runs, "pia", "use_catalog use_schema select_table")

    answer = reader.post("/console/run/discard", lake_of_runs.fields)

    assert answer.status == 303
    assert "limnos delete run" in reader.read(answer.headers["location"]).text
    assert lake_of_runs.refs() == {"main": 100, lake_of_runs.branch: 200}


def test_publishing_needs_the_privilege_to_run_jobs(lake_of_runs: PipelineLake) -> None:
    """A pipeline's owner who may write the tables cannot publish without the privilege to run jobs."""
    node = lake_of_runs.node
    lake_of_runs.tell("mart", "skipped")
    lake_of_runs.finish("held")
    grant(node, "pia", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    node.done("PUT", "/api/metalakes/lake/owners/job_template/nyc", {"name": "pia", "type": "USER"})
    pia = ConsoleVisitor(node).sign_in("pia")

    assert "Publish" in pia.read(lake_of_runs.page).text
    assert pia.post("/console/run/publish", lake_of_runs.fields).status == 403
    assert lake_of_runs.refs() == {"main": 100, lake_of_runs.branch: 200}


TABLE_PAGE = "/console/o/table/lake/main/raw/flights"
PIPELINE_PAGE = "/console/pipeline?metalake=lake&name=nyc"


def test_tables_and_pipeline_of_a_run_are_links(lake_of_runs: PipelineLake) -> None:
    """The outputs and inputs of steps are links if they are existing tables. Files and missing tables are text."""
    page = lake_of_runs.admin.read(lake_of_runs.page)

    assert page.hrefs.count(TABLE_PAGE) == 2
    assert PIPELINE_PAGE in page.hrefs
    assert not any("mart" in each or "a.csv" in each for each in page.hrefs)
    assert "main.raw.mart" in page.text


def test_hidden_tables_and_pipelines_of_a_run_are_no_links(lake_of_runs: PipelineLake) -> None:
    """The pipeline's owner, without rights on a table, sees the table's name without a link."""
    pia = own_pipeline(lake_of_runs, "pia", "use_catalog")
    page = pia.read(lake_of_runs.page)

    assert "main.raw.flights" in page.text
    assert TABLE_PAGE not in page.hrefs


def test_expectations_are_shown_as_passed_warning_or_failed(lake_of_runs: PipelineLake) -> None:
    """A violated expectation that only warns is shown as a warning, any other violated one as failed."""
    broken = [
        {**FINDING, "held": False},
        {**FINDING, "rule": "unique", "held": False, "action": "fail"},
        {**FINDING, "rule": "ok"},
    ]
    lake_of_runs.tell("load", "done", findings=broken)

    page = text_of(lake_of_runs.admin.get(lake_of_runs.page))

    for look, icon, word in (("warn", "alert", "warning"), ("bad", "cross", "failed"), ("ok", "check", "passed")):
        assert re.search(
            rf'<span class="chip {look}"><svg[^>]*><use href="[^"]*#{icon}"></use></svg>{word}</span>', page
        )
