# SPDX-License-Identifier: Apache-2.0
"""The console's templates, style sheet and script follow the rules on which its security and its appearance depend."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from limnos.rooms.console.http.frame import ICONS

ROOM = Path(str(files("limnos.rooms.console.http")))
TEMPLATES = sorted((ROOM / "templates").glob("*.html"))
CSS = (ROOM / "static" / "limnos.css").read_text(encoding="utf-8")
SCRIPT = (ROOM / "static" / "limnos.js").read_text(encoding="utf-8")
FORBIDDEN = {
    "a value that is not escaped": r"\|\s*safe|autoescape",
    "a style in the page": r"<style|\sstyle\s*=",
    "a handler in the page": r"\son[a-z]+\s*=",
    "a script in the page": r"<script(?![^>]*\ssrc=)",
    "an address outside": r"(?:href|src)\s*=\s*\"(?:https?:)?//",
    "an attribute without quotes": r"\s[a-z-]+=\{\{",
}
LINES_MAX = 400
LIGHT, DARK = 0, 1
PAIRS = [
    ("text", "bg", 4.5),
    ("text", "surface", 4.5),
    ("text", "sunken", 4.5),
    ("muted", "bg", 4.5),
    ("muted", "surface", 4.5),
    ("muted", "sunken", 4.5),
    ("accent", "bg", 4.5),
    ("accent", "surface", 4.5),
    ("accent", "accent-soft", 4.5),
    ("on-accent", "accent", 4.5),
    ("ok", "ok-soft", 4.5),
    ("warn", "warn-soft", 4.5),
    ("bad", "bad-soft", 4.5),
    ("bad", "surface", 4.5),
    ("ok", "surface", 4.5),
    ("info", "info-soft", 4.5),
    ("info", "surface", 4.5),
    ("info", "sunken", 4.5),
    ("control", "surface", 3.0),
    ("control", "bg", 3.0),
]


def faults(text: str) -> list[str]:
    """Return the violations of the rules in a template."""
    return [what for what, pattern in FORBIDDEN.items() if re.search(pattern, text)]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_template_has_nothing_inline(template: Path) -> None:
    """Everything is escaped, and a page has no inline script, style or handler."""
    assert faults(template.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ name|safe }}",
        "<p style='x'>",
        '<a onclick="x()">',
        "<script>x</script>",
        "<style>",
        '<img src="https://example.com/x">',
        "<a href={{ x }}>",
    ],
)
def test_planted_violation_is_detected(text: str) -> None:
    """Each rule finds a violation of it."""
    assert len(faults(text)) == 1


def test_script_inserts_html_in_one_place() -> None:
    """The script is short, inserts HTML in one place through the policy, and sends requests only to the server."""
    assert len(SCRIPT.splitlines()) <= LINES_MAX
    assert SCRIPT.count("innerHTML") == 1
    assert (
        re.search(
            r"eval\(|new Function|document\.write|outerHTML|insertAdjacentHTML|https?://|document\.cookie", SCRIPT
        )
        is None
    )


def test_style_sheet_loads_nothing_from_other_hosts() -> None:
    """No font, image or style sheet is loaded from another host."""
    assert re.search(r"url\(|@import|https?:", CSS) is None


def colours() -> dict[str, tuple[str, str]]:
    """Return the colors of the style sheet, light and dark, by name."""
    return {name: (one, two) for name, one, two in re.findall(r"--([a-z-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)}


def brightness(colour: str) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    """Return the contrast ratio of two colors (WCAG 2.2)."""
    high, low = sorted((brightness(one), brightness(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ink,ground,least", PAIRS)
@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough(ink: str, ground: str, least: float, scheme: int) -> None:
    """Text has a contrast of 4.5, borders of controls of 3, in light and in dark."""
    known = colours()

    assert contrast(known[ink][scheme], known[ground][scheme]) >= least


def test_contrast_is_computed_right() -> None:
    """Black on white has a contrast of 21, and equal colors of 1."""
    assert round(contrast("#000000", "#ffffff"), 1) == 21.0
    assert contrast("#777777", "#777777") == 1.0


def test_icons_that_templates_name_exist() -> None:
    """Every icon of a template or a kind is a symbol of the file."""
    symbols = set(re.findall(r'<symbol id="([a-z]+)"', (ROOM / "static" / "icons.svg").read_text(encoding="utf-8")))
    named = {
        name for path in TEMPLATES for name in re.findall(r'icon\([^)]*"([a-z]+)"\)', path.read_text(encoding="utf-8"))
    }

    assert named
    assert named <= symbols
    assert set(ICONS.values()) - symbols == set(), "ICONS in rooms/console/http/frame.py: no symbol in static/icons.svg"
