# SPDX-License-Identifier: Apache-2.0
"""Time zones of tests: modules about times run in UTC and in a zone behind it with daylight saving time.

A value that depends on the machine's zone is wrong in one of the two, on every run and any machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ZONES: Final = ("UTC", "America/New_York")
FOLDERS: Final = (
    "rooms/sqlpp/language/functions",
    "rooms/sqlpp/language/values",
    "rooms/sqlpp/language/stored",
    "telemetry",
    "formats/scans",
    "formats/restricting",
)
MODULES: Final = frozenset(
    {
        "cli/identity/test_access.py",
        "rooms/jobs/cli/test_jobs.py",
        "formats/iceberg/test_types.py",
        "http/test_cloudevents.py",
        "http/test_request_audit.py",
        "http/admin/activity/test_reports.py",
        "rooms/pipelines/http/test_runs.py",
        "http/admin/identity/test_service_accounts.py",
        "http/admin/identity/test_tokens.py",
        "http/admin/catalog/test_trash.py",
        "pipeline/test_checkpoints.py",
        "pipeline/test_schedulers.py",
        "pipeline/run/test_backfill.py",
        "pipeline/run/test_parameters.py",
        "pipeline/run/test_schedule.py",
        "services/activity/test_audit.py",
        "services/activity/test_audit_exports.py",
        "rooms/pipelines/services/test_run_retention.py",
        "sources/test_credentials.py",
        "rooms/connectors/sources/test_mysql_tables.py",
        "sources/test_s3_signing.py",
        "store/test_time_sources.py",
    }
)
"""Tests of code with times: query values, logs, retention, expiry, signatures, schedules."""


def is_zoned(path: Path) -> bool:
    """Return whether a module below `tests` runs in each zone."""
    name = path.as_posix()
    return name in MODULES or name.startswith(tuple(f"{each}/" for each in FOLDERS))


@contextmanager
def machine_in(zone: str) -> Iterator[None]:
    """Set the time zone of this process and its children for the body of a `with`."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()
