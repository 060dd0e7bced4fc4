"""Settings of table maintenance.

May import the room's `section`. Knows nothing of maintenance itself.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import NonNegativeInt, PositiveInt
from pydantic.functional_validators import field_validator

from limnos.config.section import SettingsSection

DAY_S: Final = 86_400


class MaintenanceSection(SettingsSection):
    """Maintenance of Iceberg tables by the server."""

    assess: bool = True
    """Find out every five minutes what tables that changed need (`limnos maintenance plan`). Changes no table."""
    expire_snapshots: bool = False
    """Expire snapshots of tables that no policy is about, by their properties, else Iceberg's five days, for their
    owners. Policies are carried out without it.
    """
    rewrite_files: bool = False
    """Rewrite small files, delete files and manifests of tables that no policy is about, for their owners. Policies are
    carried out without it. An executor does the work.
    """
    executor: Literal["off", "local"] = "off"
    """`local`: the server starts a process with Spark while operations wait that rewrite files; needs the extra `spark`
    and a service admin. `off`: only `limnos maintenance work` carries them out.
    """
    executor_master: str = "local[2]"
    """Spark master of that process: `local[2]`, or `spark://host:7077`."""
    metadata_retention_s: NonNegativeInt = 0
    """How long metadata files that have left a table's log are kept, in seconds; at least a day. 0 keeps them."""

    orphan_files: Literal["off", "policies", "all"] = "off"
    """Remove files that no metadata of a table names: `policies` where a policy of type
    system_iceberg_orphan_file_removal says so, `all` also on tables without one, for their owners. `off` removes none,
    whatever policies say.
    """
    orphan_age_s: PositiveInt = 7 * DAY_S
    """How long a file must have been an orphan before it is removed, in seconds, where no policy says so; at least a
    day. Longer than any writer holds files before its commit.
    """

    @field_validator("orphan_age_s")
    @classmethod
    def _is_a_day(cls, value: int) -> int:
        if value < DAY_S:
            raise ValueError(f"orphan files are kept for a day ({DAY_S}) at least")
        return value

    @field_validator("metadata_retention_s")
    @classmethod
    def _is_long_enough(cls, value: int) -> int:
        if 0 < value < DAY_S:
            raise ValueError(f"metadata files are kept for a day ({DAY_S}) at least, or for ever (0)")
        return value
