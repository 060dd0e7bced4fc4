# SPDX-License-Identifier: Apache-2.0
"""Rendering: the environment of the templates, and its filters for times, sizes and counts.

Must not know pages. All values are escaped, and a field that is missing in a template's view is an error. Templates
have no logic except loops and conditions.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final

from minijinja import Environment, Markup, escape

_PACKAGE: Final = "limnos.rooms.console.http"
STATIC: Final = {
    "limnos.css": b"text/css; charset=utf-8",
    "limnos.js": b"text/javascript; charset=utf-8",
    "icons.svg": b"image/svg+xml",
    "mark.svg": b"image/svg+xml",
}
"""The static files, and their content types."""
_STEPS: Final = ((60, "s"), (60, "min"), (24, "h"), (30, "d"), (12, "mo"))
_DAY: Final = 86_400
_UNITS: Final = (
    (730 * _DAY, 365 * _DAY, "years"),
    (91 * _DAY, 30 * _DAY, "months"),
    (2 * _DAY - 1800, _DAY, "days"),
    (3570, 3600, "h"),
    (0, 60, "min"),
)
"""Units of times to come: the least number of seconds that is shown in the unit, its size in seconds, and its name."""
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@cache
def static_file(name: str) -> bytes:
    """Read a file of the package's `static` directory, such as `limnos.css`."""
    return (files(_PACKAGE) / "static" / name).read_bytes()


@cache
def static_version() -> str:
    """Return the digest of the static files, which is part of their URLs, so that browsers can cache them."""
    digest = hashlib.sha256(b"".join(static_file(name) for name in STATIC))
    return digest.hexdigest()[:12]


def _template(name: str) -> str | None:
    template = files(_PACKAGE) / "templates" / name
    return template.read_text(encoding="utf-8") if template.is_file() else None


def time_ago(at_ms: int | None, now_ms: int) -> str:
    """Format a time as an age in one unit, such as `4 min ago`; a time to come as `in 30 days`, but one
    of the next minute as now: clocks of nodes differ.
    """
    if at_ms is None:
        return "never"
    if at_ms - now_ms > 60_000:
        return _time_until((at_ms - now_ms + 500) // 1000)
    left = max(now_ms - at_ms, 0) // 1000
    if left < 5:
        return "just now"
    for step, unit in _STEPS:
        if left < step:
            return f"{left} {unit} ago"
        left //= step
    return f"{left} y ago"


def _time_until(seconds: int) -> str:
    """Format a duration, rounded, in the largest unit of which it has about two or more."""
    size, unit = next((size, unit) for least, size, unit in _UNITS if seconds >= least)
    return f"in {(seconds + size // 2) // size} {unit}"


def exact_time(at_ms: int | None) -> str:
    """Format a time in UTC with a precision of seconds; an out-of-range time as a number of milliseconds."""
    if at_ms is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(at_ms // 1000, UTC).isoformat(' ')[:19]} UTC"
    except (OverflowError, ValueError, OSError):
        return str(at_ms)


def size_text(count: int | None) -> str:
    """Format a size in bytes with a binary unit, such as `1.5 MiB`."""
    if count is None:
        return ""
    left = float(count)
    for unit in _SIZES:
        if left < 1024 or unit == _SIZES[-1]:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= 1024
    return str(count)


def count_text(count: int) -> str:
    """Format a number with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u202f")


def breakable_name(name: str) -> Markup:
    """Escape a name, and let browsers break its line after dots rather than inside a word."""
    return Markup(str(escape(name)).replace(".", ".<wbr>"))


def duration_text(duration_ms: int) -> str:
    """Format a duration in one or two units, such as `2 min 5 s`."""
    seconds = max(0, duration_ms) / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


@cache
def environment() -> Environment:
    """Return the template engine's environment, cached for the process, so that templates are parsed once."""
    environment_of_templates = Environment(
        loader=_template,
        undefined_behavior="strict",
        auto_escape_callback=lambda _: True,
        trim_blocks=True,
        lstrip_blocks=True,
        pycompat=False,
        debug=False,
    )
    environment_of_templates.add_filter("ago", time_ago)
    environment_of_templates.add_filter("exact", exact_time)
    environment_of_templates.add_filter("size", size_text)
    environment_of_templates.add_filter("count", count_text)
    environment_of_templates.add_filter("breaks", breakable_name)
    return environment_of_templates


def render(template: str, view: object) -> str:
    """Render a template, such as `table.html`, to HTML with the fields of a page's view."""
    return environment().render_template(template, view=view)
