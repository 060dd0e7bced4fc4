"""Settings of scan planning.

May import the room's `section`. Knows nothing of planning itself.
"""

from __future__ import annotations

from pydantic import Field, NonNegativeFloat, PositiveInt

from limnos.config.section import SettingsSection


class PlanningSection(SettingsSection):
    """Scans of Iceberg tables that are planned by the server."""

    workers_max: PositiveInt = Field(default=2, description="Most processes that plan scans; no user's take the last.")
    files_max: PositiveInt = Field(default=2_000, description="How many files of a scan one answer names, about.")
    wait_s: NonNegativeFloat = Field(
        default=20.0,
        description="How long an answer waits for a plan, in seconds, before it says `submitted`. PyIceberg does not come again.",
    )
    keep_s: PositiveInt = Field(
        default=3_600, description="How long what is left of a plan can be fetched, in seconds."
    )
    plans_max: PositiveInt = Field(
        default=100,
        description="Plans of one user of which something is left; for one more the oldest is forgotten.",
    )
    restricted_bytes_per_reader: PositiveInt = Field(
        default=16 << 30,
        description="Bytes of files that are rewritten for one restricted reader and that plans of theirs still need; past it their plans are 503 with Retry-After.",
    )
    restricted_bytes_per_table: PositiveInt = Field(
        default=64 << 30, description="The same for all restricted readers of one table together."
    )
