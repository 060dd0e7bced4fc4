# SPDX-License-Identifier: Apache-2.0
"""Keys of `schedule`: when a server runs the pipeline.

Must not know due times: the server checks the cron expression and the time zone.
"""

from __future__ import annotations

from limnos.pipeline.compound_schemas import Record, RecordKey
from limnos.pipeline.declaration import ScheduleRule
from limnos.pipeline.node_schemas import NodeSite, Text, Values

CRON = Text(
    word="a cron expression",
    pattern=r"\S+( +\S+){4}",
    rule="write minute, hour, day of month, month and day of week, like '0 6 * * MON-FRI'",
)
ZONE = Text(word="a time zone", pattern=r"[A-Za-z0-9_+/-]{1,64}", rule="write a name like Europe/Paris")


def _schedule(values: Values, site: NodeSite) -> ScheduleRule:
    return ScheduleRule(cron=values["cron"], time_zone=values.get("time_zone", "UTC"), at=site.at)


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
    },
    build=_schedule,
)
