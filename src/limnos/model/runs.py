# SPDX-License-Identifier: Apache-2.0
"""Runs of pipelines as frozen values, and their states: the allowed transitions, and the condition for lost runs.

Must not know SQL or wire formats. The values that a runner reports (parameters, progress, inputs and outputs of steps,
phases, findings) are JSON that the server stores unchanged. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

RUNNING: Final = "running"
CANCELLING: Final = "cancelling"
LOST: Final = "lost"
HELD: Final = "held"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
DISCARDED: Final = "discarded"
PUBLISHED: Final = "published"
LIVE: Final = (RUNNING, CANCELLING)
"""The states in which a process works on the run as long as its lease lasts; a run whose lease has ended is shown as
`lost`.
"""
ENDED: Final = (FAILED, CANCELLED, DISCARDED, PUBLISHED)
STATES: Final = (RUNNING, CANCELLING, LOST, HELD, *ENDED)
STEP_STATES: Final = ("waiting", "running", "done", "failed", "skipped")
BEFORE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        FAILED: LIVE,
        CANCELLED: LIVE,
        HELD: (RUNNING,),
        DISCARDED: (*LIVE, HELD, FAILED, CANCELLED),
        PUBLISHED: (RUNNING, HELD),
        RUNNING: (FAILED, CANCELLED, HELD, *LIVE),
    }
)
"""The states from which a run can enter each state.

A resume leads back to `running`; a live run can be resumed only after its lease.
"""
FINISHES: Final = (FAILED, CANCELLED, HELD, DISCARDED)
"""Outcomes that a runner may report. The publishing transaction sets `published`."""


class PipelineDeclaration(msgspec.Struct, frozen=True):
    """One version of a pipeline's declaration: the JSON as received, and the SHA-256 of its canonical form."""

    pipeline_id: int
    version: int
    digest: str
    text: str
    declared_by: str
    declared_at: int


ATTEMPTS_KEPT: Final = 20
"""The maximum number of earlier attempts that a run has records of: the newest ones."""
ATTEMPT_MESSAGE_MAX: Final = 1000
"""The maximum length of the message of an earlier attempt, in characters."""


class RunAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a run before the newest one. `ended_at` is the time of the last heartbeat for a lost attempt, and
    for one that held the run. `phases` is JSON.
    """

    attempt: int
    state: str
    holder: str
    started_at: int
    ended_at: int
    message: str | None = None
    phases: str | None = None


class PipelineRun(msgspec.Struct, frozen=True):
    """One run of a pipeline.

    `attempt` is the number of the newest attempt; only its process may report and publish. `revision` is that of the
    publishing commit in `catalog_id`. `phases` is JSON: the seconds that its process spent in each phase. `attempts` is
    JSON, too: the earlier attempts, which only reads of a single run have.
    """

    id: int
    metalake_id: int
    pipeline_id: int
    version: int
    uuid: str
    user: str
    user_id: int
    state: str
    attempt: int
    holder: str
    beat_at: int
    lease_ms: int
    parameters: str
    options: str
    progress: str | None
    message: str | None
    catalog_id: int | None
    revision: int | None
    started_at: int
    resumed_at: int | None
    ended_at: int | None
    phases: str | None
    attempts: str | None
    owner_id: int | None

    @property
    def earlier_attempts(self) -> tuple[RunAttempt, ...]:
        """The attempts before the newest one, oldest first, at most `ATTEMPTS_KEPT`. Those of runs that an earlier
        release resumed are not known.
        """
        return msgspec.json.decode(self.attempts or "[]", type=tuple[RunAttempt, ...])

    def attempts_at_resume(self, now_ms: int) -> str:
        """Return the records of all attempts up to now as JSON, for the run's next attempt."""
        newest = RunAttempt(
            attempt=self.attempt,
            state=self.display_state(now_ms),
            holder=self.holder,
            started_at=self.started_at if self.resumed_at is None else self.resumed_at,
            ended_at=self.beat_at if self.ended_at is None else self.ended_at,
            message=None if self.message is None else self.message[:ATTEMPT_MESSAGE_MAX],
            phases=self.phases,
        )
        return msgspec.json.encode([*self.earlier_attempts, newest][-ATTEMPTS_KEPT:]).decode()

    @property
    def template_id(self) -> int:
        """The id of the run's pipeline, under the name of the same field of `TemplateJob`."""
        return self.pipeline_id

    def is_held(self, now_ms: int) -> bool:
        """Return whether the run's lease has not expired: its process has sent a heartbeat in time."""
        return self.state in LIVE and self.beat_at + self.lease_ms > now_ms

    def display_state(self, now_ms: int) -> str:
        """Return the state for display: an unfinished run with an expired lease is `lost`."""
        return LOST if self.state in LIVE and not self.is_held(now_ms) else self.state


class RunStepState(msgspec.Struct, frozen=True):
    """A step of a run as its runner last reported it. `attempt` is the attempt that reported it, 0 before the first
    report.
    """

    name: str
    reads: str
    output: str
    state: str
    attempt: int
    rows: int | None = None
    bytes: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    message: str | None = None
    outputs: str = "[]"
    inputs: str = "[]"
    phases: str | None = None


class RuleFinding(msgspec.Struct, frozen=True):
    """The result of an expectation of a step. `body` is the whole result as JSON. The id is 0 until it is stored.

    `user` and `user_id` are those of the run. Only this user gets the result's `sample`, which has values of rows.
    """

    step: str
    rule: str
    body: str
    id: int = 0
    run: str = ""
    state: str = ""
    at: int = 0
    user: str = ""
    user_id: int = 0

    def visible_to(self, user: str, user_id: int) -> RuleFinding:
        """Return the finding for a reader: without its sample of rows if the run is another user's."""
        fields = msgspec.json.decode(self.body, type=dict[str, object])
        if (user, user_id) == (self.user, self.user_id) or fields.get("sample") is None:
            return self
        return msgspec.structs.replace(self, body=msgspec.json.encode({**fields, "sample": None}).decode())
