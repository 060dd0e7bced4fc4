# SPDX-License-Identifier: Apache-2.0
"""The console in a real Chromium: accessibility of every page, use by keyboard only, and reads without scripts.

A Chromium is found by `LIMNOS_CHROMIUM` or on the path. Without one, `tests/integration/conftest.py` deselects the
module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from scripts.console_shots import PAGES, USER_PAGES, LakeServer, fill, fill_files, fill_others, fill_runs
from tests.integration.chromium import preview_text, running_chromium
from tests.integration.keyboard import press_to

pytestmark = [pytest.mark.integration, pytest.mark.heavy, pytest.mark.room("console")]
TRIPS: Final = "/console/o/table/lake/main/raw/trips"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeServer]:
    """A server with tables, rows, a pipeline and lineage."""
    running = LakeServer(tmp_path_factory.mktemp("lake"))
    try:
        fill(running)
        fill_runs(running)
        fill_files(running)
        fill_others(running)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with running_chromium() as running:
        yield running


def signed_in(server: LakeServer, context: BrowserContext, user: str = "admin") -> Page:
    """Sign in with the form."""
    page = context.new_page()
    page.goto(f"{server.url}/console/")
    page.fill("#user", user)
    page.click("button.primary")
    return page


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(server: LakeServer, browser: Browser, scheme: str, width: int) -> None:
    """Axe finds no violation of any severity, only tables scroll sideways, and the content security policy blocks
    nothing.
    """
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = context.new_page()
    page.goto(f"{server.url}/console/")
    complaints = violations(page, "sign-in")
    page.fill("#user", "admin")
    page.click("button.primary")
    for name, path in PAGES.items():
        page.goto(server.url + path)
        complaints += violations(page, name)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            complaints.append(f"{name} scrolls sideways")
    context.close()

    assert complaints == []


@pytest.mark.parametrize("user", [each for each in USER_PAGES if each != "admin"])
def test_pages_of_users_with_few_rights_are_accessible(server: LakeServer, browser: Browser, user: str) -> None:
    """Empty lists and refusals have no axe violation either, and do not scroll sideways on a phone."""
    context = browser.new_context(viewport={"width": 390, "height": 900}, bypass_csp=True)
    page = signed_in(server, context, user)
    complaints: list[str] = []
    for name in USER_PAGES[user]:
        page.goto(server.url + PAGES[name])
        complaints += violations(page, name)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            complaints.append(f"{name} scrolls sideways")
    context.close()

    assert complaints == []


def violations(page: Page, name: str) -> list[str]:
    """Return the violations that axe finds on a page, with the elements."""
    axe_violations = Axe().run(page).response["violations"]
    return [f"{name}: {each['id']}: {each['nodes'][0]['html'][:200]}" for each in axe_violations]


def test_sign_in_search_table_preview_by_keyboard(server: LakeServer, browser: Browser) -> None:
    """By keyboard alone, a user signs in, searches, opens the table, and previews its rows."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.url}/console/")
    page.locator("#user").focus()
    page.keyboard.type("admin")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/")

    page.keyboard.press("/")
    page.keyboard.type("trips")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search**")
    press_to(page, "main.raw.trips")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{TRIPS}")
    press_to(page, "Preview")
    page.keyboard.press("Enter")
    page.wait_for_url("**tab=preview")

    preview = preview_text(page)
    assert "The first 50 rows" in preview
    assert "Oslo" in preview
    context.close()


def test_palette_opens_a_table_by_keyboard(server: LakeServer, browser: Browser) -> None:
    """Ctrl-K, the start of a name and Enter open the table, under the real content security policy; Escape closes the
    palette.
    """
    context = browser.new_context()
    page = signed_in(server, context)
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    closed = page.locator("#palette").is_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("trips")
    page.wait_for_selector("#palette-found a")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{TRIPS}")

    assert not closed
    assert page.inner_text("h1") == "trips"
    context.close()


def test_reads_work_without_scripts(server: LakeServer, browser: Browser) -> None:
    """Without JavaScript every page has its heading and its rows, and sign-in works."""
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(server, context)

    for name, path in PAGES.items():
        page.goto(server.url + path)
        assert page.locator("h1").count() == 1, name
        assert len(page.locator("main").inner_text()) > 50, name
    page.goto(f"{server.url}{TRIPS}?tab=preview")
    preview_text(page)
    assert page.locator("tbody tr").count() >= 50
    context.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_answers_of_forms_are_accessible(server: LakeServer, browser: Browser, scheme: str, width: int) -> None:
    """Results and an error of the worksheet, and a storage check, have no axe violation and do not scroll sideways."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = signed_in(server, context)
    complaints: list[str] = []
    for name, text in (
        ("results", "SELECT VALUE {'n': n, 'wide': 'x y ' || string(n)} FROM range(1, 40) AS n;"),
        ("error", "SELEKT;"),
    ):
        page.goto(f"{server.url}/console/worksheet")
        page.fill("#statements", text)
        page.press("#statements", "Control+Enter")
        page.wait_for_selector("main [role=status], main [role=alert]")
        complaints += violations(page, name)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            complaints.append(f"{name} scrolls sideways")
    page.goto(f"{server.url}/console/storage")
    page.click("main form button")
    page.wait_for_selector("main dl")
    complaints += violations(page, "check")
    context.close()

    assert complaints == []


def test_worksheet_runs_without_scripts(server: LakeServer, browser: Browser) -> None:
    """Without JavaScript the worksheet's form is posted, and its answer has the rows."""
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(server, context)
    page.goto(f"{server.url}/console/worksheet")
    page.fill("#statements", "SELECT VALUE n FROM range(1, 7) AS n;")
    page.click("main button.primary")

    assert page.locator("main tbody tr").count() == 7
    context.close()


def test_content_security_policy_blocks_no_console_page(server: LakeServer, browser: Browser) -> None:
    """Under the real content security policy no page reports an error, and no request goes to another server."""
    context = browser.new_context()
    console_messages: list[str] = []
    page = signed_in(server, context)
    page.on("console", lambda message: console_messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: console_messages.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(server.url) else console_messages.append(request.url)
    )

    for name, path in PAGES.items():
        if name != "missing":  # the browser itself reports the 404
            page.goto(server.url + path)

    assert console_messages == []
    context.close()
