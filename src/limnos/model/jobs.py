# SPDX-License-Identifier: Apache-2.0
"""Jobs that the server itself runs from job templates, as frozen values, with Gravitino's words for their states.

Must not know SQL or wire formats. Times are milliseconds since 1970, UTC. Runs of pipelines, which a runner outside the
server executes, are in `model.runs`.
"""

from __future__ import annotations

from typing import Final

import msgspec

QUEUED: Final = "queued"
STARTED: Final = "started"
CANCELLING: Final = "cancelling"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
HELD: Final = (STARTED, CANCELLING)
"""The states in which a node works on the job as long as its lease lasts."""
LIVE: Final = (QUEUED, *HELD)
LOST_MESSAGE: Final = "The server that ran it stopped responding, so its progress is unknown. Request it again"
STOPPED_MESSAGE: Final = "The server that ran it was stopped: request it again"
LOST_MESSAGES: Final = (LOST_MESSAGE, STOPPED_MESSAGE)
"""The messages of jobs that ended with their server. A schedule starts another job for the same due time."""
ENDED: Final = (SUCCEEDED, FAILED, CANCELLED)


class TemplateJob(msgspec.Struct, frozen=True):
    """A job that runs from a template.

    `holder` is the server node that runs it; `exit_code` is negative if a signal ended the process.
    """

    id: int
    metalake_id: int
    template_id: int
    uuid: str
    user: str
    user_id: int
    state: str
    holder: str
    beat_at: int
    lease_ms: int
    message: str | None
    exit_code: int | None
    queued_at: int
    started_at: int | None
    ended_at: int | None
    owner_id: int | None

    def display_state(self, now_ms: int) -> str:
        """Return the state for display.

        A job with an expired lease is shown as failed, or as cancelled if that was requested.
        """
        if self.state not in HELD or self.beat_at + self.lease_ms > now_ms:
            return self.state
        return CANCELLED if self.state == CANCELLING else FAILED


class JobOutput(msgspec.Struct, frozen=True):
    """The last part of a job's output on each stream, and the total number of bytes."""

    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
