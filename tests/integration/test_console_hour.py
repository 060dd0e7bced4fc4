# SPDX-License-Identifier: Apache-2.0
"""A newcomer's first hour in the console, in a real Chromium and without a mouse: from the line that `limnos server
start` prints to a restored table.

Without a Chromium, `tests/integration/conftest.py` deselects the module.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page
from pyiceberg.table import Table

from scripts.console_shots import LakeServer, iceberg_catalog, lineage_event
from tests.integration.chromium import preview_text, running_chromium
from tests.integration.keyboard import press_enter, press_to, type_into

pytestmark = [pytest.mark.integration, pytest.mark.heavy, pytest.mark.room("console")]
OWN: Final = "/api/limnos/v1/metalakes/lake"
GRAVITINO: Final = "/api/metalakes/lake"
RUN: Final = str(uuid.uuid4())
BRANCH: Final = f"run_{RUN.replace('-', '')[:12]}_1"
ROWS: Final = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Turin"], "fare_eur": [7.5, 9.25, 11.0]})


def fill(lake: LakeServer) -> None:
    """Create trips from a file, a held run with two further rows, a user without the right to read, and a table to
    drop.
    """
    catalog = iceberg_catalog(lake)
    catalog.create_namespace("raw")
    trips = catalog.create_table("raw.trips", ROWS.schema)
    trips.append(ROWS)
    catalog.create_table("raw.leftover", ROWS.schema)
    lake.ask("POST", f"{GRAVITINO}/users", {"name": "ana"})
    rights = [{"name": name, "condition": "allow"} for name in ("use_catalog", "use_schema")]
    objects = [{"fullName": "main", "type": "CATALOG", "privileges": rights}]
    lake.ask("POST", f"{GRAVITINO}/roles", {"name": "analysts", "properties": {}, "securableObjects": objects})
    lake.ask("PUT", f"{GRAVITINO}/permissions/users/ana/grant", {"roleNames": ["analysts"]})
    _report_file(lake)
    _hold_run(lake, trips)


def _report_file(lake: LakeServer) -> None:
    file = {"namespace": "s3://bureau", "name": "trips/2026-11.csv"}
    event = lineage_event("", "main.raw.trips", job="load") | {"inputs": [file]}
    assert lake.ask("POST", f"{OWN}/lineage", event)["left_out"] == []


def _hold_run(lake: LakeServer, trips: Table) -> None:
    """Write two rows on the branch of a run, and hold the run for approval."""
    base = trips.current_snapshot()
    assert base is not None
    trips.manage_snapshots().create_branch(base.snapshot_id, BRANCH).commit()
    trips.append(ROWS.slice(0, 2), branch=BRANCH)
    head = trips.snapshot_by_name(BRANCH)
    assert head is not None
    steps = [{"name": "load", "reads": ["file:trips.csv"], "output": "main.raw.trips"}]
    output = {
        "table": ["main", "raw", "trips"],
        "branch": BRANCH,
        "uuid": str(trips.metadata.table_uuid),
        "base": base.snapshot_id,
        "head": head.snapshot_id,
        "schema_id": trips.metadata.current_schema_id,
    }
    lake.ask("PUT", f"{OWN}/pipelines/nyc", {"declaration": {"steps": steps}, "comment": "Trips of three cities"})
    lake.ask("POST", f"{OWN}/pipelines/nyc/runs", {"id": RUN, "holder": "host:1", "steps": steps})
    step = {"attempt": 1, "state": "done", "started_at": 1_000, "ended_at": 61_000, "outputs": [output], "rows": 2}
    lake.ask("PUT", f"{OWN}/runs/{RUN}/steps/load", step)
    lake.ask("POST", f"{OWN}/runs/{RUN}/finish", {"attempt": 1, "state": "held", "message": "held for a look"})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeServer]:
    """The server with its tables."""
    running = LakeServer(tmp_path_factory.mktemp("hour") / "data")
    try:
        fill(running)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with running_chromium() as running:
        yield running


def sign_in(lake: LakeServer, page: Page, *, user: str) -> None:
    """Open the console at the URL that the server printed, type the name and press Enter."""
    page.goto(lake.console)
    page.locator("#user").focus()
    page.keyboard.type(user)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/")


def search(page: Page, words: str, *, path: str) -> None:
    """Search, and open the page of a hit."""
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search**")
    press_enter(page, path, leads_to="**/console/o/table/**")


def test_newcomer_completes_all_main_tasks_by_keyboard(lake: LakeServer, browser: Browser) -> None:
    """A newcomer finds a column, reads a refusal, grants a role, masks a column, follows lineage, publishes a run and
    restores a table.
    """
    context, hers = browser.new_context(), browser.new_context()
    page, her_page = context.new_page(), hers.new_page()
    sign_in(lake, page, user="admin")
    sign_in(lake, her_page, user="ana")

    find_column(page)
    see_refusal(lake, page, her_page)
    grant(page)
    preview_with_mask(lake, page, her_page)
    follow_lineage(page)
    publish_run(lake, page)
    undrop_table(lake, page)
    context.close()
    hers.close()


def find_column(page: Page) -> None:
    """Search a column by name, and open its table."""
    search(page, "fare_eur", path="main.raw.trips")

    assert page.inner_text("h1") == "trips"
    assert "fare_eur" in page.inner_text("main")


def see_refusal(lake: LakeServer, page: Page, her_page: Page) -> None:
    """Ana's request is refused; the administrator reads the missing privilege."""
    refused = her_page.goto(f"{lake.console}o/table/lake/main/raw/trips")
    press_enter(page, "Access", leads_to="**/console/access/**")
    type_into(page, "User", text="ana")
    page.keyboard.press("Tab")
    page.keyboard.type("table load")
    press_enter(page, "Explain", leads_to="**user=ana**")

    assert refused is not None
    assert refused.status == 403
    assert "SELECT_TABLE" in her_page.inner_text("main")
    assert "lacks SELECT_TABLE or MODIFY_TABLE or ownership on table main.raw.trips" in page.inner_text("main")


def grant(page: Page) -> None:
    """Before the grant the console shows how many users gain which access; afterwards it confirms the grant."""
    type_into(page, "Role, or user: or group: and a name for a preset", text="analysts")
    press_to(page, "Privileges", tag="select")
    page.keyboard.type("select table")
    press_enter(page, "See what it changes…", leads_to="**/console/grant/**")
    consequence = page.inner_text("main")
    press_enter(page, "Grant", leads_to="**/console/access/**")

    assert "1 user gains" in consequence
    assert "granted to analysts" in page.inner_text("[role=status]")


def preview_with_mask(lake: LakeServer, page: Page, her_page: Page) -> None:
    """A mask on cities applies to ana's next request, and not to the owner's."""
    press_enter(page, "Mask columns or leave out rows for some readers", leads_to="**/console/restrictions/**")
    type_into(page, "Name", text="cities")
    press_to(page, "Column to mask", tag="select")
    page.keyboard.type("city")
    type_into(page, "User, group, role", text="ana")
    press_enter(page, "Restrict", leads_to="**done=**")
    preview = f"{lake.console}o/table/lake/main/raw/trips?tab=preview"
    page.goto(preview)
    her_page.goto(preview)
    owned, seen = preview_text(page), preview_text(her_page)

    assert "Oslo" in owned
    assert "Oslo" not in seen
    assert "7.5" in seen


def follow_lineage(page: Page) -> None:
    """The lineage of the table links to the file."""
    press_enter(page, "Lineage", leads_to="**/console/lineage/**")

    assert "trips/2026-11.csv" in page.inner_text("main")
    assert "s3://bureau" in page.inner_text("main")


def publish_run(lake: LakeServer, page: Page) -> None:
    """The held run shows rows before and after, and publishing it makes the new rows readable."""
    press_enter(page, "Pipelines", leads_to="**/console/pipelines**")
    press_enter(page, RUN[:8], leads_to="**/console/run?**")
    page_text = page.inner_text("main")
    press_enter(page, "Publish 1 table", leads_to="**done=**")

    assert re.search(r"main\.raw\.trips\s+3\s+5", page_text)
    assert "Published" in page.inner_text("[role=status]")
    assert iceberg_catalog(lake).load_table("raw.trips").scan().to_arrow().num_rows == 5


def undrop_table(lake: LakeServer, page: Page) -> None:
    """A dropped table is restored from the trash."""
    search(page, "leftover", path="main.raw.leftover")
    press_enter(page, "Drop…", leads_to="**/console/drop/**")
    press_enter(page, "Drop main.raw.leftover", leads_to="**done=**")
    dropped = iceberg_catalog(lake).table_exists("raw.leftover")
    press_enter(page, "Trash", leads_to="**/console/trash**")
    press_enter(page, "Restore main.raw.leftover", leads_to="**done=**")

    assert not dropped
    assert iceberg_catalog(lake).table_exists("raw.leftover")
