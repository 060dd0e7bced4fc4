"""Pipelines' runs as frozen values, and the rules of their states: what may become of a run, and when nobody holds it any longer.

May import msgspec and `model` only. Knows no SQL and no wire format. What a runner tells of itself (parameters, progress, the
inputs and outputs of steps, phases, findings) is JSON text that the store keeps as it was sent. Times are milliseconds since 1970, UTC.
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
"""Somebody is at work on it, as long as the lease lasts; one whose lease is out is shown as `lost`."""
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
"""From which states a run comes to each; back to `running` by a resume, of one that is live only when its lease is out."""
FINISHES: Final = (FAILED, CANCELLED, HELD, DISCARDED)
"""What a runner may say that became of its run; `published` is said by the transaction that publishes."""


class PipelineDeclaration(msgspec.Struct, frozen=True):
    """One version of what a pipeline declares: JSON as it was sent, and the SHA-256 of it in a form of its own."""

    pipeline_id: int
    version: int
    digest: str
    text: str
    declared_by: str
    declared_at: int


class PipelineRun(msgspec.Struct, frozen=True):
    """One run of a pipeline. `attempt` is the newest: the process that may act. `revision` is that of its publishing, in `catalog_id`.

    `phases` is what its process spent its time on, seconds by phase as JSON, as a step's are.
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
    owner_id: int | None

    @property
    def template_id(self) -> int:
        """Its pipeline, as the job template that it is."""
        return self.pipeline_id

    def is_held(self, now_ms: int) -> bool:
        """Say whether its process gave a sign of life within its lease."""
        return self.state in LIVE and self.beat_at + self.lease_ms > now_ms

    def shown(self, now_ms: int) -> str:
        """Return the state as it is shown: a run that is live by its state alone is lost."""
        return LOST if self.state in LIVE and not self.is_held(now_ms) else self.state


class RunStepState(msgspec.Struct, frozen=True):
    """A step of a run as its runner last told it, under `attempt`; 0 before anything was told."""

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
    """What a rule of a step came to; `body` is all of it as JSON. The id is 0 until it is kept."""

    step: str
    rule: str
    body: str
    id: int = 0
    run: str = ""
    state: str = ""
    at: int = 0
