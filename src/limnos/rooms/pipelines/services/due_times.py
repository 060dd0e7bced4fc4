# SPDX-License-Identifier: Apache-2.0
"""Due times of schedules: the times of a cron expression in a time zone.

Pure functions. A local time that a change of the clocks skips counts as the end of the gap; one that exists twice
counts once, the first time. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest
from limnos.model.schedules import ScheduleTerms

CRON_MAX: Final = 200
"""The maximum length of a cron expression, in characters."""
LOOK_MS: Final = 3_600_000
"""The longest time between two looks at a schedule: a due time that a wrong clock computed is computed again."""
LATE_MS: Final = 300_000
"""The time after a due time, in milliseconds, from which on a schedule that no node has started is late."""
NEVER_MS: Final = 1 << 52
"""A due time that no clock reaches: the expression has no further time."""


def terms_check(terms: ScheduleTerms) -> None:
    """Raise BadRequest for an invalid cron expression, one without any time, or an unknown time zone."""
    if next(due_times(terms, after_ms=0), None) is None:
        raise BadRequest(f"{preview_value(terms.cron)} has no time at all: correct the day and the month")


@lru_cache(256)
def zone_of(name: str) -> ZoneInfo:
    """Return a time zone. Raises BadRequest for an unknown one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadRequest(f"{preview_value(name)} is not a time zone: write it as Europe/Paris") from None


def due_times(terms: ScheduleTerms, *, after_ms: int) -> Iterator[int]:
    """Yield the due times of a cron expression after a time, in order. Raises BadRequest for an invalid expression or
    an unknown time zone.
    """
    if len(terms.cron) > CRON_MAX or len(terms.cron.split()) != 5:
        raise BadRequest(
            f"{preview_value(terms.cron)} is not a cron expression: write minute, hour, day of month, month and day of"
            ' week, as "0 6 * * MON-FRI"'
        )
    start = datetime.fromtimestamp(after_ms / 1000, UTC).astimezone(zone_of(terms.time_zone))
    try:
        times = CronSim(terms.cron, start)
    except (CronSimError, ValueError, AssertionError) as error:
        raise BadRequest(
            f"{preview_value(terms.cron)} is not a cron expression: {str(error) or 'a field is wrong'}"
        ) from None
    last_ms = after_ms
    for each in times:
        at_ms = round(each.timestamp() * 1000)
        if at_ms > last_ms:  # two local times of a gap are the same time, and a repeated hour begins in the past
            last_ms = at_ms
            yield at_ms


def next_due_ms(terms: ScheduleTerms, *, after_ms: int) -> int:
    """Return the first due time after a time."""
    return next(due_times(terms, after_ms=after_ms), NEVER_MS)


def look_ms(next_ms: int, *, now_ms: int) -> int:
    """Return when to look at a schedule again: at its due time, and at the latest after `LOOK_MS`."""
    return min(next_ms, now_ms + LOOK_MS)


def calendar_of(terms: ScheduleTerms, *, after_ms: int, count: int) -> tuple[int, ...]:
    """Return the next due times after a time, at most `count`."""
    return tuple(islice(due_times(terms, after_ms=after_ms), count))
