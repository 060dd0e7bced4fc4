# SPDX-License-Identifier: Apache-2.0
"""Settings of the audit."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from limnos.config.section import SettingsSection


class AuditSection(SettingsSection):
    """The audit log: one record for each action, with the user, the object and the privilege that allowed it."""

    changes: bool = True
    """Record the user, the origin and the right of each change, in the change's own transaction. Must be the same on
    all nodes.
    """
    refusals: Literal["off", "sampled", "whole"] = "whole"
    """Which refused and failed requests are recorded: all, one of `audit.sample_one_in`, or none."""
    reads: Literal["off", "sampled", "whole"] = "off"
    """Which successful requests that changed nothing are recorded, as in `audit.refusals`."""
    sample_one_in: PositiveInt = 100
    """The number of requests per recorded request of a sample."""
    refusals_per_s_max: PositiveInt = 100
    """The maximum number of records of refused and failed requests per second and serving process; one further record
    has the number of the others.
    """
    retention_s: PositiveInt = 7_776_000
    """The retention time of audit records, in seconds (90 days)."""
    export: str | None = None
    """Location to which the server writes each complete day's records as Parquet, such as `s3://bucket/audit`; it must
    be below the server's warehouse or one of `storage.allowed_roots`. Unset: only `limnos audit export` writes.
    """
