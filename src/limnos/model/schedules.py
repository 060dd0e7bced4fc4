# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines, as frozen values: when a pipeline is due, on whose behalf it runs, and its last start.

Must not know SQL or wire formats. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

import msgspec


class ScheduleTerms(msgspec.Struct, frozen=True, kw_only=True):
    """When a pipeline is due: at the times of a cron expression in a time zone, or only at those of them before which
    a table that it reads has changed.
    """

    file: str
    """The pipeline's file, by its path among the schedule's files."""
    cron: str
    time_zone: str = "UTC"
    if_changed: bool = False
    """Whether a due time starts no run if no table that the last run read has changed since."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a pipeline, which a server's jobs run with the rights of the user who registered it."""

    pipeline_id: int
    metalake_id: int
    user: str
    user_id: int
    """0 if the user is not a user of the metalake, such as a service admin."""
    trust: str
    """The trust of the credential with which the user registered the schedule; that of the tokens of its runs."""
    terms: ScheduleTerms
    created_at: int
    due_at: int
    """When the server looks at the schedule again: at most an hour after its last look."""
    next_at: int
    """The next due time."""
    paused: bool
    reason: str | None
    """Why it is paused: the words of a user, or what the server lacked when it was due. Of a schedule that is not
    paused, why its last due time started no run.
    """
    job_id: int | None
    """The job of the last start; None if there was none."""
    run_due_at: int | None
    """The due time of the last start; None if there was none, or the schedule was resumed since."""
    attempts: int
    """The number of jobs for that due time: a job whose server was killed is started again."""
