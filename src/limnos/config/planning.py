# SPDX-License-Identifier: Apache-2.0
"""Settings of scan planning.

Must not know planning itself.
"""

from __future__ import annotations

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from limnos.config.section import SettingsSection


class PlanningSection(SettingsSection):
    """Scan planning of Iceberg tables by the server."""

    workers_max: PositiveInt = 2
    """The maximum number of processes that plan scans; no user can occupy the last one."""
    files_max: PositiveInt = 2_000
    """The approximate maximum number of a scan's files in one response."""
    wait_s: NonNegativeFloat = 20.0
    """The time in seconds for which a response waits for a plan before it is `submitted`. PyIceberg does not poll."""
    keep_s: PositiveInt = 3_600
    """The time in seconds for which the remaining tasks of a plan can be fetched."""
    plans_max: PositiveInt = 100
    """The maximum number of unfinished plans per user; a further one replaces the oldest."""
    restricted_bytes_per_reader: PositiveInt = 16 << 30
    """The maximum bytes of rewritten files per restricted user that their plans still need; beyond it their plans get
    503 with Retry-After.
    """
    restricted_bytes_per_table: PositiveInt = 64 << 30
    """The same limit for all restricted users of one table together."""
    executor_spans: NonNegativeInt = 32
    """The number of 64 MiB parts above which executors of maintenance write a plan's files for restricted users; 0 for
    never.
    """
