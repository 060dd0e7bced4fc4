# SPDX-License-Identifier: Apache-2.0
"""Due times of schedules: cron expressions in time zones, compared with a search minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limnos.model.errors import BadRequest
from limnos.model.schedules import ScheduleTerms
from limnos.rooms.pipelines.services.due_times import (
    LOOK_MS,
    calendar_of,
    due_times,
    look_ms,
    next_due_ms,
    terms_check,
)

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo")
DAY_MS = 86_400_000


def cron(text: str, zone: str = "UTC") -> ScheduleTerms:
    """Return the terms of a cron expression."""
    return ScheduleTerms(file="p.yaml", cron=text, time_zone=zone)


def at(text: str) -> int:
    """Return an ISO 8601 time in milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def field(low: int, high: int, *, stars: bool = True) -> st.SearchStrategy[str]:
    """Return a field of a cron expression: a star, a number, a list, a range or a step."""
    number = st.integers(low, high)
    forms = [
        number.map(str),
        st.lists(number, min_size=2, max_size=3).map(lambda values: ",".join(map(str, values))),
        st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}"),
    ]
    return st.one_of(*forms, *([st.just("*"), st.integers(2, 20).map(lambda step: f"*/{step}")] if stars else []))


def values_of(text: str, low: int, high: int) -> set[int]:
    """Return the numbers that a field of `field` stands for."""
    results: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if part.startswith("*"):
            results.update(range(low, high + 1, int(part.partition("/")[2] or 1)))
        else:
            results.update(range(int(first), int(last or first) + 1))
    return results


def model(minute: str, hour: str, *, zone: str, after_ms: int, until_ms: int) -> list[int]:
    """Return the due times of a daily expression with fixed minutes and hours: each local time of each day once, the
    first time that it exists; a skipped one at the end of the gap.
    """
    tz = ZoneInfo(zone)
    results: set[int] = set()
    day = datetime.fromtimestamp(after_ms / 1000, UTC).astimezone(tz).replace(tzinfo=None) - timedelta(days=1)
    end = datetime.fromtimestamp(until_ms / 1000, UTC).astimezone(tz).replace(tzinfo=None) + timedelta(days=1)
    while day < end:
        for each_hour in values_of(hour, 0, 23):
            for each_minute in values_of(minute, 0, 59):
                local = day.replace(hour=each_hour, minute=each_minute, second=0, microsecond=0)
                while local.replace(tzinfo=tz).astimezone(UTC).astimezone(tz).replace(tzinfo=None) != local:
                    local += timedelta(minutes=1)
                results.add(round(local.replace(tzinfo=tz).timestamp() * 1000))
        day += timedelta(days=1)
    return sorted(each for each in results if after_ms < each <= until_ms)


@settings(max_examples=40, deadline=None)
@given(
    minute=field(0, 59, stars=False),
    hour=field(0, 23, stars=False),
    zone=st.sampled_from(ZONES),
    start=st.integers(at("2026-01-01T00:00:00+00:00"), at("2027-12-31T00:00:00+00:00")),
)
def test_due_times_equal_the_model_in_every_zone(minute: str, hour: str, zone: str, start: int) -> None:
    """Over two days, also with a change of the clocks, each local time is due once."""
    until_ms = start + 2 * DAY_MS
    terms = cron(f"{minute} {hour} * * *", zone)

    times = [each for each in islice(due_times(terms, after_ms=start), 3_000) if each <= until_ms]

    assert times == model(minute, hour, zone=zone, after_ms=start, until_ms=until_ms)


@settings(max_examples=40, deadline=None)
@given(
    fields=st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)),
    zone=st.sampled_from(ZONES),
    start=st.integers(at("2026-01-01T00:00:00+00:00"), at("2027-12-31T00:00:00+00:00")),
)
def test_due_times_increase_and_do_not_depend_on_the_start(fields: tuple[str, ...], zone: str, start: int) -> None:
    """Each due time is later than the one before, and is also the next one after any time in between."""
    terms = cron(" ".join(fields), zone)

    times = calendar_of(terms, after_ms=start, count=5)

    assert list(times) == sorted(set(times))
    assert all(each > start for each in times)
    for before, each in zip((start, *times), times, strict=False):
        assert next_due_ms(terms, after_ms=(before + each) // 2) == each


@pytest.mark.parametrize(
    "text,zone,after,due",
    [
        ("30 2 * * *", "Europe/Paris", "2026-03-29T00:00:00+00:00", "2026-03-29T01:00:00+00:00"),
        ("30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00+00:00", "2026-10-25T00:30:00+00:00"),
        ("30 2 * * *", "Europe/Paris", "2026-10-25T00:30:00+00:00", "2026-10-26T01:30:00+00:00"),
        ("30 2 * * *", "Europe/Paris", "2026-10-25T01:10:00+00:00", "2026-10-26T01:30:00+00:00"),
        ("0 6 29 2 *", "UTC", "2026-01-01T00:00:00+00:00", "2028-02-29T06:00:00+00:00"),
        ("0 6 * * MON-FRI", "UTC", "2026-11-28T00:00:00+00:00", "2026-11-30T06:00:00+00:00"),
    ],
)
def test_skipped_and_repeated_local_times_are_due_once(text: str, zone: str, after: str, due: str) -> None:
    """A skipped time is due at the end of the gap, a repeated one the first time only."""
    assert next_due_ms(cron(text, zone), after_ms=at(after)) == at(due)


@pytest.mark.parametrize(
    "terms,words",
    [
        (cron("* * * *"), "is not a cron expression"),
        (cron("* * * * * *"), "is not a cron expression"),
        (cron("61 * * * *"), "Bad minute"),
        (cron("*/0 * * * *"), "Bad minute"),
        (cron("0 0 31 2 *"), "Bad day-of-month"),
        (cron("0 6 * * *" + " " * 200 + "x"), "is not a cron expression"),
        (cron("0 6 * * *", "Europe/Nowhere"), "is not a time zone"),
        (cron("0 6 * * *", "../../etc/passwd"), "is not a time zone"),
        (cron("0 6 * * *", "posix"), "is not a time zone"),
    ],
)
def test_invalid_terms_are_refused_with_the_reason(terms: ScheduleTerms, words: str) -> None:
    """Each mistake is named."""
    with pytest.raises(BadRequest, match=words):
        terms_check(terms)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="0123456789*/,-#LWMONFEB ²", max_size=24).map(lambda text: f"{text} 1 * * *"))
def test_arbitrary_expression_is_valid_or_refused(text: str) -> None:
    """No text ends in another error than BadRequest."""
    try:
        terms_check(cron(text))
    except BadRequest:
        return
    assert next_due_ms(cron(text), after_ms=0) > 0


def test_looks_are_an_hour_apart_at_most() -> None:
    """A schedule is looked at when it is due, and at the latest after an hour."""
    assert look_ms(5 + 2 * LOOK_MS, now_ms=5) == 5 + LOOK_MS
    assert look_ms(7, now_ms=5) == 7
