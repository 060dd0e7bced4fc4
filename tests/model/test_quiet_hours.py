# SPDX-License-Identifier: Apache-2.0
"""Quiet hours: the times within them, the time until they begin, and invalid texts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from limnos.model.quiet_hours import parse_quiet_hours, quiet_hours_wait_ms

HOUR_MS = 3_600_000


def at(text: str) -> int:
    """Return a time in UTC, in milliseconds since 1970."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    "text, moment, is_within",
    [
        ("22:00-06:00", "2026-01-10 22:00", True),
        ("22:00-06:00", "2026-01-10 05:59", True),
        ("22:00-06:00", "2026-01-10 06:00", False),
        ("22:00-06:00", "2026-01-10 21:59", False),
        ("01:30-02:00", "2026-01-10 01:45", True),
        ("01:30-02:00", "2026-01-10 02:00", False),
        ("22:00-06:00 Europe/Berlin", "2026-01-10 21:00", True),
        ("22:00-06:00 Europe/Berlin", "2026-07-10 20:00", True),
        ("22:00-06:00 Europe/Berlin", "2026-07-10 04:00", False),
    ],
)
def test_quiet_hours_include_start_and_exclude_end(text: str, moment: str, *, is_within: bool) -> None:
    """The first minute is within quiet hours and the last is not, also over midnight, in local time of the zone."""
    assert parse_quiet_hours(text).contains(at(moment)) is is_within


@pytest.mark.parametrize(
    "text, moment, hours",
    [
        ("22:00-06:00", "2026-01-10 12:00", 10),
        ("22:00-06:00", "2026-01-10 23:00", 0),
        ("01:00-02:00", "2026-01-10 02:00", 23),
        ("04:00-05:00 Europe/Berlin", "2026-03-28 12:00", 14),  # clocks are set forward that night
    ],
)
def test_time_until_quiet_hours_is_correct_over_clock_change(text: str, moment: str, hours: int) -> None:
    """The time until quiet hours begin, today or tomorrow, is correct over a clock change, and is 0 within them."""
    assert parse_quiet_hours(text).begins_in_ms(at(moment)) == hours * HOUR_MS


def test_next_of_several_quiet_hours_counts() -> None:
    """Of several quiet hours the next ones count. Without quiet hours the time is 0."""
    both = [parse_quiet_hours("22:00-06:00"), parse_quiet_hours("12:00-13:00")]

    assert quiet_hours_wait_ms(both, at("2026-01-10 11:00")) == HOUR_MS
    assert quiet_hours_wait_ms(both, at("2026-01-10 12:30")) == 0
    assert quiet_hours_wait_ms([], at("2026-01-10 11:00")) == 0


@pytest.mark.parametrize(
    "text", ["", "22-6", "24:00-06:00", "22:00-22:00", "22:00-06:60", "22:00-06:00 Mars/Base", "22:00-06:00 ../etc"]
)
def test_invalid_quiet_hours_are_refused(text: str) -> None:
    """An invalid text is refused with a message that shows the format or the wrong field."""
    with pytest.raises(ValueError, match=r"form|zone|same time"):
        parse_quiet_hours(text)
