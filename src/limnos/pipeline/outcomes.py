"""What a step came to: pins of what it read, what it wrote on its branch, and what the expectations found.

Job: frozen values that the engine (Spark) gives to whoever runs a pipeline, and that go with the run to the server as
JSON. May import `declaration`; it must not know of Spark nor of servers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.pipeline.declaration import Parts
    from limnos.pipeline.lineage import QueryLineage


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPin:
    """What a step reads of one table or source, fixed when the run started.

    A table's `snapshot` is None while it has none. `since` is the snapshot after which an incremental step reads; None:
    the whole, for the reason in `whole_because`. A source that is no table has a `fingerprint` instead.
    """

    name: str
    """Dotted path of a table, catalog first, or a source's name."""
    table: Parts | None = None
    snapshot: int | None = None
    branch: str | None = None
    """Set where an earlier step of this run makes the table: the step reads that branch."""
    since: int | None = None
    whole_because: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBranch:
    """A step's table and the branch that this attempt writes.

    `base` is the head of `main` from which it began (None: there was none), which publishing asserts, with `uuid` and
    `schema_id`; `head` is the branch's newest snapshot.
    """

    table: Parts
    name: str
    uuid: str
    schema_id: int
    base: int | None
    head: int | None
    is_new: bool
    """The run made the table."""
    columns_to_drop: tuple[str, ...] = ()
    """Dropped in the publishing commit, not before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationFinding:
    """What one expectation found. `broken` of `checked` rows; table rules count what breaks them."""

    rule: str
    kind: str
    action: str
    broken: int
    checked: int
    tolerated: float
    held: bool
    message: str
    sample: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step that was carried out on its branch (and its quarantine's, if it has one)."""

    branches: tuple[StepBranch, ...]
    """The step's own table first."""
    pins: tuple[ReadPin, ...]
    findings: tuple[ExpectationFinding, ...]
    rows: int
    bytes: int
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    """What the seconds were spent on: reading, planning, writing, expectations."""
    lineage: QueryLineage | None = None
    """What the rows come from, told when they are published; None: nobody can say more than the pins do."""
