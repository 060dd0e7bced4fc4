# SPDX-License-Identifier: Apache-2.0
"""Pictures of pipelines in a real Chromium: panels open by a click, without scripts, and names of users stay text.

Without a Chromium, `tests/integration/conftest.py` deselects the module.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.pipeline.drawing import svg
from limnos.pipeline.graph_pages import html_graph
from tests.integration.chromium import running_chromium
from tests.pipeline.test_graph_pages import HOSTILE, two_tables

pytestmark = [pytest.mark.integration, pytest.mark.heavy, pytest.mark.room("pipelines")]


def test_a_click_opens_the_columns_of_a_box(tmp_path: Path) -> None:
    """A click on a box opens its panel with the columns, one on an origin another panel, and `close` closes it.

    The page needs no script, asks for nothing, and reports no violation of its policy.
    """
    (tmp_path / "g.html").write_text(html_graph(two_tables()), encoding="utf-8")
    requested: list[str] = []
    messages: list[str] = []

    with running_chromium() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.goto((tmp_path / "g.html").as_uri())
        closed = page.locator(".panel:visible").count()
        page.locator('#picture a[href="#n1"]').click()
        opened = page.locator(".panel:visible").inner_text()
        page.locator("#n1 table a").first.click()
        other = page.locator(".panel:visible h2").inner_text()
        page.locator("#n0 .close").click()
        closed_again = page.locator(".panel:visible").count()

    assert (closed, closed_again, other) == (0, 0, "a.a")
    assert opened.startswith("close")
    assert "a.b" in opened
    assert "a.a: x (computed)" in opened
    assert len(requested) == 1
    assert messages == []


@pytest.mark.parametrize("name", ["g.html", "g.svg"])
def test_hostile_names_do_nothing_in_a_browser(tmp_path: Path, name: str) -> None:
    """Names with scripts, handlers and images run nothing and load nothing, and are shown as they are."""
    graph = two_tables(HOSTILE, HOSTILE)
    text = html_graph(graph) if name == "g.html" else svg(graph)
    (tmp_path / name).write_text(text, encoding="utf-8")
    requested: list[str] = []

    with running_chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.goto((tmp_path / name).as_uri() + "#n1")
        title = page.evaluate("document.title || document.documentElement.querySelector('title').textContent")
        images = page.locator("img").count()

    assert title == "Pipeline p"
    assert images == 0
    assert len(requested) == 1
