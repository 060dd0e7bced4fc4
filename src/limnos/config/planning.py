"""Settings of scan planning.

May import the room's `section`. Knows nothing of planning itself.
"""

from __future__ import annotations

from pydantic import NonNegativeFloat, PositiveInt

from limnos.config.section import SettingsSection


class PlanningSection(SettingsSection):
    """Scans of Iceberg tables that are planned by the server."""

    workers_max: PositiveInt = 2
    """Most processes that plan scans; no user's take the last."""
    files_max: PositiveInt = 2_000
    """How many files of a scan one answer names, about."""
    wait_s: NonNegativeFloat = 20.0
    """How long an answer waits for a plan, in seconds, before it says `submitted`. PyIceberg does not come again."""
    keep_s: PositiveInt = 3_600
    """How long what is left of a plan can be fetched, in seconds."""
    plans_max: PositiveInt = 100
    """Plans of one user of which something is left; for one more the oldest is forgotten."""
    restricted_bytes_per_reader: PositiveInt = 16 << 30
    """Bytes of files that are rewritten for one restricted reader and that plans of theirs still need; past it their
    plans are 503 with Retry-After.
    """
    restricted_bytes_per_table: PositiveInt = 64 << 30
    """The same for all restricted readers of one table together."""
