# SPDX-License-Identifier: Apache-2.0
"""Templates and their filters: all values are escaped, an unknown field is an error, times and sizes are readable."""

from __future__ import annotations

import minijinja
import pytest

from limnos.rooms.console.http.rendering import (
    STATIC,
    count_text,
    environment,
    exact_time,
    size_text,
    static_file,
    time_ago,
)

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    "ago_s,words",
    [
        (0, "just now"),
        (4, "just now"),
        (30, "30 s ago"),
        (240, "4 min ago"),
        (7_200, "2 h ago"),
        (86_400 * 3, "3 d ago"),
        (86_400 * 70, "2 mo ago"),
        (86_400 * 800, "2 y ago"),
        (-60, "just now"),
        (-90, "in 2 min"),
        (-3_599, "in 1 h"),
        (-7_200, "in 2 h"),
        (-86_400, "in 24 h"),
        (-86_400 * 30 + 1, "in 30 days"),
        (-86_400 * 90, "in 90 days"),
        (-86_400 * 365, "in 12 months"),
        (-86_400 * 800, "in 2 years"),
    ],
)
def test_durations_are_shown_in_the_largest_unit(ago_s: int, words: str) -> None:
    """A duration is shown in its largest unit."""
    assert time_ago(NOW - ago_s * 1000, NOW) == words


def test_missing_future_and_out_of_range_times_are_rendered() -> None:
    """Filters accept a missing time, a future time, and a time beyond the calendar."""
    assert time_ago(None, NOW) == "never"
    assert time_ago(NOW + 60_000, NOW) == "just now"
    assert exact_time(1 << 62) == str(1 << 62)
    assert exact_time(0) == "1970-01-01 00:00:00 UTC"


def test_sizes_and_counts_are_formatted() -> None:
    """Sizes are in binary units with one digit, and numbers have thousands separators."""
    assert [size_text(each) for each in (None, 0, 1023, 1536, 5 << 40)] == ["", "0 B", "1023 B", "1.5 KiB", "5.0 TiB"]
    assert count_text(1234567) == "1\u202f234\u202f567"


def test_values_are_escaped_and_unknown_fields_are_errors() -> None:
    """Values are escaped in text and attributes. A template with an unknown field is an error."""
    rendered = environment().render_str('<a title="{{ name }}">{{ name }}</a>', name="<\"'&>")

    assert '<"' not in rendered.removeprefix('<a title="')
    assert rendered.count("&lt;") == 2
    with pytest.raises(minijinja.TemplateError):
        environment().render_str("{{ view.nothing }}", view={})


def test_names_break_after_dots() -> None:
    """A line can break after the dots of a name, and the name is escaped."""
    assert environment().render_str("{{ name|breaks }}", name="main.<b>.x") == "main.<wbr>&lt;b&gt;.<wbr>x"


def test_first_click_selects_the_opposite_theme() -> None:
    """The script's first click selects the opposite of the system's theme."""
    script = static_file("limnos.js").decode()

    assert 'isDark ? ["", "light", "dark"] : ["", "dark", "light"]' in script


def test_overflowing_lists_have_a_shaded_edge() -> None:
    """The style sheet shades the edge of a list that is wider than its box."""
    sheet = static_file("limnos.css").decode().partition(".sheet {")[2].partition("}")[0]

    assert "overflow-x: auto" in sheet
    assert sheet.count("local") == 2
    assert sheet.count("var(--shade), transparent") == 2


@pytest.mark.parametrize("name", STATIC)
def test_static_files_are_in_the_package(name: str) -> None:
    """Static files are read as package resources, so they work in a wheel."""
    assert len(static_file(name)) > 100
