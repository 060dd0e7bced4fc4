# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests of the console; `LIMNOS_CHROMIUM` names one that is not on the path."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

INSTALL: Final = "There is no Chromium: apt-get install chromium, or name one by LIMNOS_CHROMIUM"
ARGUMENTS: Final = [
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Start a Chromium, and close it at the end."""
    path = os.environ.get("LIMNOS_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path is not None, INSTALL
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, chromium_sandbox=os.geteuid() != 0)
        try:
            yield running
        finally:
            running.close()


def preview_text(page: Page) -> str:
    """Return the text of a preview's page. While the page offers to try again, as on a busy machine, it is reloaded."""
    for _ in range(20):
        if "Try again" not in page.inner_text("main"):
            break
        page.reload()
    return page.inner_text("main")
