"""Settings of the audit.

May import pydantic and this room.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from limnos.config.section import SettingsSection


class AuditSection(SettingsSection):
    """The audit: records of actions, with user, object and right."""

    changes: bool = True
    """Keep who made each change, from where and by which right, in the change's own transaction. The same on all nodes.
    """
    refusals: Literal["off", "sampled", "whole"] = "whole"
    """Whether requests get a line that were refused, or failed: all, one of `audit.sample_one_in`, or none."""
    reads: Literal["off", "sampled", "whole"] = "off"
    """The same for requests that were answered and changed nothing."""
    sample_one_in: PositiveInt = 100
    """Of so many requests a sample has one."""
    refusals_per_s_max: PositiveInt = 100
    """Lines of refused and failed requests that each serving process writes in a second; of the rest one line tells how
    many they were.
    """
    retention_s: PositiveInt = 7_776_000
    """How long lines of the audit are kept, in seconds (90 days)."""
    export: str | None = None
    """Location below which the server writes each day's lines as Parquet when the day is over, such as
    `s3://bucket/audit`; it must lie below the server's warehouse or one of `storage.allowed_roots`. Unset: only `limnos
    audit export` writes.
    """
