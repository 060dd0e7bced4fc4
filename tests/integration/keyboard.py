# SPDX-License-Identifier: Apache-2.0
"""Steps in a browser by the keyboard alone: Tab to an element, type, choose and press Enter."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page

KEYS_MAX: Final = 200
"""Maximum number of presses of Tab to reach an element."""
_FOCUSED: Final = """() => {
  const focused = document.activeElement;
  const label = focused.labels?.[0];
  return (focused.getAttribute('aria-label') ?? label?.textContent ?? focused.textContent).trim();
}"""


def press_to(page: Page, label: str, *, tag: str = "") -> None:
    """Press Tab until an element whose label or text is `label`, and whose tag is `tag` if one is given, has the
    focus.
    """
    for _ in range(KEYS_MAX):
        page.keyboard.press("Tab")
        is_wanted = page.evaluate(_FOCUSED) == label
        if is_wanted and tag in ("", page.evaluate("document.activeElement.tagName.toLowerCase()")):
            return
    pytest.fail(f"Tab does not reach {label} on {page.url}")


def press_enter(page: Page, label: str, *, leads_to: str) -> None:
    """Press Tab to an element, Enter, and wait for a page whose URL has the pattern `leads_to`."""
    press_to(page, label)
    page.keyboard.press("Enter")
    page.wait_for_url(leads_to)


def type_into(page: Page, label: str, *, text: str) -> None:
    """Press Tab to an input and type, replacing its content."""
    press_to(page, label, tag="input")
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
