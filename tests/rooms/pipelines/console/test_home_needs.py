# SPDX-License-Identifier: Apache-2.0
"""What needs the user on the first page: runs, refusals, pictures; and what others must not see."""

from __future__ import annotations

import pytest

from limnos.model.runs import PipelineRun
from limnos.rooms.console.http.home_needs import DAY_MS
from limnos.rooms.pipelines.console.home_needs import run_bars
from limnos.services.runs.run_access import RunView
from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of
from tests.rooms.pipelines.http.test_runs import begin, declare, finish, started

NOW = 20_000 * DAY_MS + DAY_MS // 2


def run_at(at_ms: int, state: str = "published") -> RunView:
    """Return a run that began at a time."""
    run = PipelineRun(
        id=1,
        metalake_id=1,
        pipeline_id=2,
        version=1,
        uuid="u",
        user="admin",
        user_id=3,
        state=state,
        attempt=1,
        holder="h:1",
        beat_at=at_ms,
        lease_ms=1,
        parameters="",
        options="",
        progress=None,
        message=None,
        catalog_id=None,
        revision=None,
        started_at=at_ms,
        resumed_at=None,
        ended_at=at_ms,
        phases=None,
        attempts=None,
        owner_id=3,
    )
    return RunView(run=run, pipeline="nyc", now_ms=NOW)


def test_failed_and_held_runs_are_on_the_first_page(lake: DriverNode) -> None:
    """A pipeline's failed newest run and a held run have a line with the pipeline's name and a link; a pipeline whose
    next run succeeded has none.
    """
    admin = ConsoleVisitor(lake).sign_in()
    assert "Nothing: no run failed" in admin.read("/console/").text
    failed = started(lake)
    finish(lake, failed, "failed")

    page = admin.read("/console/")
    assert f"The run {failed[:8]} of the pipeline nyc" in page.text
    assert f"/console/run?metalake=lake&id={failed}" in page.hrefs
    assert "1 run in 14 days, 1 failed" in page.text
    assert page.faults == []
    again = started(lake)
    finish(lake, again, "held")

    text = admin.read("/console/").text
    assert f"The run {failed[:8]} of" not in text
    assert f"held The run {again[:8]} of the pipeline nyc" in text
    assert "2 runs in 14 days, 1 failed" in text


def test_other_users_see_no_runs_and_refusals_of_others(lake: DriverNode) -> None:
    """A user sees neither runs of others nor their refusals; the metalake's owner sees who was refused."""
    finish(lake, started(lake), "failed")
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    lake.done("POST", f"{API}/lake/users", {"name": "bob"})
    ana, bob = (ConsoleVisitor(lake).sign_in(user) for user in ("ana", "bob"))
    for _ in range(2):
        assert ana.get("/console/o/table/lake/main/raw/flights").status == 403

    page = ConsoleVisitor(lake).sign_in().read("/console/")
    assert "refusals in the last day: ana" in page.text
    assert "/console/audit?metalake=lake&outcome=refused" in page.hrefs
    other = bob.read("/console/").text
    assert "ana" not in other.partition("Sign out")[2]
    assert "The run" not in other
    assert "14 days" not in other


def test_bars_are_of_fourteen_days() -> None:
    """A bar counts the runs of a day in UTC, with the failed ones; older runs are left out; no run gives no picture."""
    today = 20_000 * DAY_MS
    runs = [
        run_at(today + 5),
        run_at(today - 1, "failed"),
        run_at(today - 2),
        run_at(today - 13 * DAY_MS),
        run_at(today - 13 * DAY_MS - 1),
    ]

    bars, words = run_bars(runs, now_ms=NOW)

    assert words == "4 runs in 14 days, 1 failed"
    assert (len(bars), bars[0].words, bars[-1].words) == (
        14,
        "13 days ago: 1 run, 0 failed",
        "today: 1 run, 0 failed",
    )
    assert (bars[12].words, bars[12].height, bars[12].bad_height) == ("1 day ago: 2 runs, 1 failed", 40, 20)
    assert run_bars([], now_ms=NOW) == ((), "")
    assert run_bars(runs[-1:], now_ms=NOW) == ((), "")


@pytest.mark.room("search")
def test_pipelines_and_runs_have_their_names_and_links(lake: DriverNode) -> None:
    """The latest changes, the search and the palette call a pipeline by its name, with a link, and never a template."""
    declare(lake, "nyc")
    run = started(lake)
    admin = ConsoleVisitor(lake).sign_in()
    link = "/console/pipeline?metalake=lake&name=nyc"

    home = admin.read("/console/")
    results = admin.read("/console/search?q=nyc&metalake=lake")
    palette = text_of(admin.get("/console/search?q=nyc&metalake=lake", x_limnos_part="1"))

    assert link in home.hrefs
    assert f"nyc, run {run[:8]}" in home.text
    assert f"/console/run?metalake=lake&id={run}" in home.hrefs
    assert "job template" not in home.text
    assert link in results.hrefs
    assert "job template" not in results.text
    assert "name=nyc" in palette
    assert begin(lake).status == 409
