# SPDX-License-Identifier: Apache-2.0
"""Settings of table maintenance.

Must not know maintenance itself.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import NonNegativeInt, PositiveInt
from pydantic.functional_validators import field_validator

from limnos.config.section import SettingsSection
from limnos.config.values import SparkSettings, Words
from limnos.model.quiet_hours import parse_quiet_hours

DAY_S: Final = 86_400


class MaintenanceSection(SettingsSection):
    """Maintenance of Iceberg tables by the server, such as compaction and expiry of snapshots."""

    assess: bool = True
    """Assess every five minutes which maintenance changed tables need (`limnos maintenance plan`). Changes no table."""
    expire_snapshots: bool = False
    """Expire snapshots of tables without a policy, by their properties or Iceberg's default of five days, with the
    owners' rights. Policies apply regardless of this setting.
    """
    rewrite_files: bool = False
    """Rewrite small files, delete files and manifests of tables without a policy, with the owners' rights. Policies
    apply regardless of this setting. An executor does the work.
    """
    executor: Literal["off", "local"] = "off"
    """`local`: the server starts a process with Spark while operations that rewrite files are waiting; needs the extra
    `spark` and a service admin. `off`: only `limnos maintenance work` executes them.
    """
    executor_master: str = "local[2]"
    """Spark master of that process: `local[2]`, `spark://host:7077`, or a Spark Connect server,
    `sc://host:15002`.
    """
    executor_conf: SparkSettings = ()
    """Further settings of that Spark, as `spark.cores.max=2,spark.executor.memory=1g`; in a file also as a list."""
    quiet_hours: Annotated[tuple[str, ...], Words] = ()
    """Hours in which tables may be rewritten for policies and settings, as `22:00-06:00 Europe/Berlin`; several are
    separated by commas. Then operations do not wait for writers. Unset: all hours.
    """
    bytes_per_day: NonNegativeInt = 0
    """The maximum bytes of small files that may be rewritten in 24 hours for policies and settings, on all tables
    together. 0: any number.
    """
    metadata_retention_s: NonNegativeInt = 0
    """The retention time in seconds, at least a day, of metadata files that are no longer in a table's log; 0 keeps
    them.
    """

    orphan_files: Literal["off", "policies", "all"] = "off"
    """Remove files that no metadata of a table refers to: `policies` where a policy of type
    system_iceberg_orphan_file_removal says so, `all` also for tables without a policy, with the owners' rights. `off`
    removes none, regardless of policies.
    """
    orphan_age_s: PositiveInt = 7 * DAY_S
    """The minimum time in seconds, at least a day, for which a file must have been an orphan before it is removed,
    where no policy sets it. Longer than any writer holds files before its commit.
    """

    @field_validator("quiet_hours")
    @classmethod
    def _are_hours(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([str(parse_quiet_hours(each.strip())) for each in value])

    @field_validator("orphan_age_s")
    @classmethod
    def _is_a_day(cls, value: int) -> int:
        if value < DAY_S:
            raise ValueError(f"orphan files are kept for at least a day ({DAY_S})")
        return value

    @field_validator("metadata_retention_s")
    @classmethod
    def _is_long_enough(cls, value: int) -> int:
        if 0 < value < DAY_S:
            raise ValueError(f"metadata files are kept for at least a day ({DAY_S}), or forever (0)")
        return value
