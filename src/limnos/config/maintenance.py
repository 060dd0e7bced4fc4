"""Settings of table maintenance.

May import the room's `section`. Knows nothing of maintenance itself.
"""

from __future__ import annotations

from pydantic import Field

from limnos.config.section import SettingsSection


class MaintenanceSection(SettingsSection):
    """Maintenance of Iceberg tables by the server."""

    assess: bool = Field(
        default=True,
        description="Find out every five minutes what tables that changed need (`limnos maintenance plan`). Changes no table.",
    )
