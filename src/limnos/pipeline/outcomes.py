# SPDX-License-Identifier: Apache-2.0
"""Results of a step: pins of its inputs, branches that it wrote, and findings of its expectations.

Frozen values that the engine returns to the runner, and that the run's record stores as JSON. Must not know Spark or
servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from limnos.pipeline.declared_values import Parts
from limnos.pipeline.lineage import QueryLineage


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedVersion:
    """A version of a Lance table whose manifest is written and not committed: no reader sees it.

    `manifest_path` is the path in the store, as Lance's clients write it; `manifest_size` is in bytes.
    """

    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanceState:
    """The state of a Lance table that a step reads, beside the number of its version.

    `digest` is of the version's fragments, because the versions of a table that is dropped and declared again have the
    same numbers. It is empty for a version that this run has `staged`.
    """

    digest: str = ""
    staged: StagedVersion | None = None


LANCE_STATE = "lance:"
"""The beginning of a Lance table's state in a checkpoint: then the number of the version, a colon and its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPin:
    """The state of one table or source that a step reads, fixed when the run started.

    A table's `snapshot` is None if the table is empty. `since` is the snapshot after which an incremental step reads;
    if None, it reads everything, and `whole_because` has the reason. A source that is not a table has a `fingerprint`
    instead. The snapshots of a Lance table are the numbers of its versions.
    """

    name: str
    """Dotted path of a table, catalog first, or the name of a source."""
    table: Parts | None = None
    snapshot: int | None = None
    branch: str | None = None
    """The branch to read, if an earlier step of this run creates the table."""
    since: int | None = None
    whole_because: str | None = None
    fingerprint: str | None = None
    lance: LanceState | None = None
    """Of a Lance table its state; None for other tables."""

    @property
    def state(self) -> int | str | None:
        """The state as a checkpoint has it: a snapshot, a version of a Lance table with its digest, or a fingerprint.

        None for an empty table.
        """
        if self.fingerprint is not None or self.lance is None or self.snapshot is None:
            return self.snapshot if self.fingerprint is None else self.fingerprint
        return f"{LANCE_STATE}{self.snapshot}:{self.lance.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBranch:
    """A step's table and the branch that this attempt writes.

    `base` is the head of `main` from which the branch began (None: the table was empty). The publishing commit asserts
    `base`, `uuid` and `schema_id`. `head` is the branch's newest snapshot.

    A Lance table has no branches here: `base` and `head` are versions, `staged` are the versions after `base`, `uuid`
    is the table's location, and `schema_id` is 0.
    """

    table: Parts
    name: str
    uuid: str
    schema_id: int
    base: int | None
    head: int | None
    is_new: bool
    """Whether the run created the table."""
    columns_to_drop: tuple[str, ...] = ()
    """Columns that the publishing commit drops."""
    staged: tuple[StagedVersion, ...] | None = None
    """The versions of a Lance table that the publishing commit commits; None for an Iceberg table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltStep:
    """The table of a step in an environment, in the state that a published run left: a promotion copies its rows."""

    table: Parts
    snapshot: int
    run: str
    """The id of the environment's run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationFinding:
    """The result of one expectation. `broken` of `checked` rows break it."""

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
    """The result of a step that wrote its branch, and the branch of its quarantine table if it has one."""

    branches: tuple[StepBranch, ...]
    """The branches that the step wrote, that of its own table first."""
    pins: tuple[ReadPin, ...]
    findings: tuple[ExpectationFinding, ...]
    rows: int
    bytes: int
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase: reading, planning, writing, expectations."""
    lineage: QueryLineage | None = None
    """The lineage of the rows, reported when they are published. If None, the tables in the pins are reported instead.
    """
    whole_because: str | None = None
    """Of an incremental step, the reason why it read all of its inputs; None if it read increments."""
    copied_from: BuiltStep | None = None
    """The environment's table whose rows were copied; None if the step's rows were computed."""
    computed_because: str | None = None
    """Of a step in a promotion, the reason why its rows were computed and not copied."""
