# SPDX-License-Identifier: Apache-2.0
"""Keys of `schedule`: when a server runs the pipeline.

Must not compute due times. The server checks the cron expression and the time zone again, because it may know other
time zones.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.util import find_spec
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from limnos.pipeline.compound_schemas import Record, RecordKey
from limnos.pipeline.declaration import ScheduleRule
from limnos.pipeline.node_schemas import Boolean, NodeSite, Text, Values

CRON = Text(
    word="a cron expression",
    pattern=r"\S+( +\S+){4}",
    rule="write minute, hour, day of month, month and day of week, like '0 6 * * MON-FRI'",
)
ZONE = Text(word="a time zone", pattern=r"[A-Za-z0-9_+/-]{1,64}", rule="write a name like Europe/Paris")


def _schedule(values: Values, site: NodeSite) -> ScheduleRule:
    rule = ScheduleRule(
        cron=values["cron"],
        time_zone=values.get("time_zone", "UTC"),
        if_changed=values.get("if_changed", False),
        at=site.at,
    )
    for fault in rule_faults(rule):
        site.add(fault)
    return rule


def rule_faults(rule: ScheduleRule) -> list[str]:
    """Return what is wrong with the due times of a rule, with what to write. Empty if they are valid, or if nothing is
    installed to check them.
    """
    faults: list[str] = []
    if (fault := _cron_fault(rule.cron)) is not None:
        faults.append(f"'{rule.cron}' is not a cron expression: {fault}; {CRON.rule}")
    try:
        ZoneInfo(rule.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        faults.append(f"'{rule.time_zone}' is not a time zone; {ZONE.rule}")
    return faults


def _cron_fault(text: str) -> str | None:
    """Return the problem of a cron expression; None if it is valid, or if nothing is installed to check it."""
    if find_spec("cronsim") is None:
        return None
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - of the extra `server`

    try:
        CronSim(text, datetime.now(UTC))
    except (CronSimError, ValueError, AssertionError) as error:
        return str(error) or "a field is wrong"
    return None


SCHEDULE = Record(
    name="a schedule",
    keys={
        "cron": RecordKey(
            value_schema=CRON,
            description="The due times: minute, hour, day of month, month, day of week.",
            example='cron: "0 6 * * MON-FRI"',
            required=True,
        ),
        "time_zone": RecordKey(
            value_schema=ZONE, description="The time zone of `cron`.", example="time_zone: Europe/Paris", default="UTC"
        ),
        "if_changed": RecordKey(
            value_schema=Boolean(),
            description="Whether a due time starts no run if no table that the last run read has changed since.",
            example="if_changed: true",
            default="false",
        ),
    },
    build=_schedule,
)
