# SPDX-License-Identifier: Apache-2.0
"""The modules that run in two time zones exist, and run in both."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from tests.zones import FOLDERS, MODULES, ZONES, is_zoned, machine_in

TESTS = Path(__file__).parents[1]


def test_listed_modules_and_folders_exist() -> None:
    """Every name is an existing module or folder."""
    assert [each for each in (*FOLDERS, *MODULES) if not (TESTS / each).exists()] == []
    assert is_zoned(Path("rooms/sqlpp/language/functions/test_times.py"))
    assert not is_zoned(Path("rooms/sqlpp/language/test_fuzz.py"))


def test_local_time_uses_the_zone_and_is_restored() -> None:
    """Local times have the zone's offset in summer and winter, and the former zone is restored after the body."""
    before = time.tzname
    offsets = []
    for zone in ZONES:
        with machine_in(zone):
            days = [datetime(2024, month, 15, tzinfo=UTC).astimezone() for month in (1, 7)]
            offsets.append([day.utcoffset().total_seconds() / 3600 for day in days])  # type: ignore[union-attr]

    assert offsets == [[0, 0], [-5, -4]]
    assert time.tzname == before
