# SPDX-License-Identifier: Apache-2.0
"""Quiet hours: times of day in a time zone, such as `22:00-06:00 Europe/Berlin`.

Pure. Must not know the tasks that run in these hours.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable

_TEXT: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: (\S{1,64}))?")


class QuietHours(NamedTuple):
    """A daily time range in a time zone, from one minute of the day to another. It may extend past midnight."""

    start: int
    end: int
    zone: str

    def __str__(self) -> str:
        """Return the notation that `parse_quiet_hours` parses, such as `22:00-06:00 Europe/Berlin`."""
        return f"{_clock(self.start)}-{_clock(self.end)} {self.zone}"

    def contains(self, now_ms: int) -> bool:
        """Return whether a time (milliseconds since 1970) is within these hours."""
        local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def begins_in_ms(self, now_ms: int) -> int:
        """Return the time until these hours begin, in milliseconds; 0 within them."""
        if self.contains(now_ms):
            return 0
        zone = ZoneInfo(self.zone)
        local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone)
        begin = local.replace(hour=self.start // 60, minute=self.start % 60, second=0, microsecond=0)
        if begin <= local:
            begin = (begin.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
        return max(1, round(begin.timestamp() * 1000) - now_ms)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def parse_quiet_hours(text: str) -> QuietHours:
    """Parse quiet hours such as `22:00-06:00 Europe/Berlin`; without a time zone they are in UTC.

    Raises ValueError for a malformed range, an unknown time zone, or a range that begins and ends at the same time.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is not of the form '22:00-06:00 Europe/Berlin'")
    numbers = [int(match[number]) for number in range(1, 5)]
    hours = QuietHours(numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3], match[5] or "UTC")
    if hours.start == hours.end:
        raise ValueError(f"{text[:80]!r} begins and ends at the same time: leave it out if all hours are quiet")
    try:
        ZoneInfo(hours.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{hours.zone!r} is not a time zone: write it as Europe/Berlin") from None
    return hours


def quiet_hours_wait_ms(hours: Iterable[QuietHours], now_ms: int) -> int:
    """Return the time in milliseconds until the next of several quiet hours begins; 0 during quiet hours, or if `hours`
    is empty.
    """
    return min([each.begins_in_ms(now_ms) for each in hours], default=0)
