# SPDX-License-Identifier: Apache-2.0
"""Row rules: counted during the write, or applied to staged rows.

Evaluates all row rules of a step in one pass. If violations are only counted (fail, warn), they are counted for the
rows that are written: by Spark's `observe` inside the write, or, for many rows and conditions that read few columns, in
the rows as the table or a merge's stage has them. An observation interrupts the code that Spark generates for the
write, which costs 0.45 µs a row; reading one column again costs 0.1. The source is not read for a count, because it
could return other rows. If rows are dropped or quarantined, all rows are staged first, so that both writes see the same
rows. Must not know branches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.pipeline.declaration import ExpectationAction, StepDeclaration, WriteMode
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.engine.expectations.flags import KEPT_ROWS, ROWS, RuleFlags
from limnos.pipeline.engine.expectations.judgement import finding
from limnos.pipeline.engine.staging import is_large, release, stage
from limnos.pipeline.outcomes import ExpectationFinding

RULE_COLUMN, RUN_COLUMN, AT_COLUMN = "_rule", "_run", "_at"
"""Columns of a quarantine table beyond the step's own: names of the broken rules, the run's id, and its time."""
_LATER_COLUMNS_MAX = 3
"""The number of columns that conditions may read for a count after the write."""
_LATER_MODES = frozenset({WriteMode.REPLACE, WriteMode.APPEND, WriteMode.MERGE})
"""Modes in which the written rows are known: as a snapshot, or as staged rows."""
_OBSERVED_WITHIN_S = 30.0
"""The time to wait for observed counts, in seconds.

Spark reports them after the write by an event queue, and drops them if it is full.
"""


class RowRules:
    """The row rules of one step, with the parameters that their conditions may use."""

    def __init__(self, step: StepDeclaration, *, parameters: Mapping[str, Scalar] | None = None) -> None:
        self._step = step
        self._flags = RuleFlags(step, parameters)

    @property
    def need_stage(self) -> bool:
        """Whether rules remove rows, so that `staged` must be used instead of `watched`."""
        return bool(self._flags.of(ExpectationAction.DROP, ExpectationAction.QUARANTINE))

    @property
    def quarantine(self) -> bool:
        """Whether the step has a quarantine table."""
        return bool(self._flags.of(ExpectationAction.QUARANTINE))

    def check(self, frame: DataFrame) -> None:
        """Raise BadRequest for a rule that Spark rejects for these rows. Nothing is run."""
        if self._flags.rules:
            self._flags.add_flags(frame)

    def watch(self, frame: DataFrame) -> tuple[DataFrame, RuleCounts]:
        """Return `frame` to be written exactly once, and the counts that this write fills, or that are counted later in
        the written rows.

        Raises BadRequest, before anything is written, if a rule is rejected or removes rows.
        """
        if self.need_stage:
            raise BadRequest(f"Step {self._step.name} removes rows: its rows must be staged before they are written.")
        if not self._flags.rules or self._is_counted_later(frame):
            return frame, RuleCounts(self._flags, None)
        observation = Observation()
        observed = self._flags.add_flags(frame).observe(observation, *self._flags.counts())
        return observed.drop(*self._flags.names), RuleCounts(self._flags, observation)

    def stage(self, frame: DataFrame, *, run: str, at: datetime) -> StagedRows:
        """Compute `frame` once, and return the rows for the table and the rows for its quarantine table.

        `run` and `at` are the run's id and time, which are written with each quarantined row. The caller must release
        the result.
        """
        if self.quarantine:
            self._refuse_taken_names(frame)
        observation = Observation()
        flagged_frame = self._flags.add_flags(frame).observe(observation, *self._flags.counts())
        data_frame = stage(flagged_frame)
        findings = RuleCounts(self._flags, observation).of_flagged(data_frame)
        return StagedRows(
            rows=data_frame.where(self._flags.accepted_rows()).drop(*self._flags.names),
            excluded=data_frame.where(~self._flags.accepted_rows()).drop(*self._flags.names),
            quarantined=self._quarantine_rows(data_frame, run=run, at=at) if self.quarantine else None,
            findings=findings,
            staged=data_frame,
        )

    def _is_counted_later(self, frame: DataFrame) -> bool:
        """Return whether a count in the written rows costs less than one inside the write, and has the same result."""
        if self._step.write.mode not in _LATER_MODES or not is_large(frame):
            return False
        columns = self._flags.columns_read(frame)
        return columns is not None and len(columns) <= _LATER_COLUMNS_MAX

    def _quarantine_rows(self, frame: DataFrame, *, run: str, at: datetime) -> DataFrame:
        added_columns = {
            RULE_COLUMN: self._flags.broken_names(),
            RUN_COLUMN: F.lit(run),
            AT_COLUMN: F.lit(at).cast("timestamp"),
        }
        return frame.where(self._flags.set_aside()).withColumns(added_columns).drop(*self._flags.names)

    def _refuse_taken_names(self, frame: DataFrame) -> None:
        names = [name for name in frame.columns if name.lower() in (RULE_COLUMN, RUN_COLUMN, AT_COLUMN)]
        if names:
            raise BadRequest(
                f"Step {self._step.name} makes a column {names[0]!r}, which its quarantine table has as well: rename it"
                " in the query, or use the action drop instead of quarantine."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """Staged rows of a step: rows for the table, rows for quarantine, and the findings."""

    rows: DataFrame
    excluded: DataFrame
    """The other rows: dropped and quarantined ones."""
    quarantined: DataFrame | None
    findings: tuple[ExpectationFinding, ...]
    staged: DataFrame

    def release(self) -> None:
        """Free the staged rows. Call it after both writes."""
        release(self.staged)


class RuleCounts:
    """Counts of broken rows. Without an observation, which the write of the table fills, they are counted in the
    written rows. Read the findings after the write.
    """

    def __init__(self, flags: RuleFlags, observation: Observation | None) -> None:
        self._flags = flags
        self._observation = observation
        self._staged_counts: Mapping[str, int] | None = None

    def count_staged(self, rows: DataFrame) -> None:
        """Count the rows of a write that are staged for it, unless the write itself counts them."""
        if self._flags.rules and self._observation is None:
            self._staged_counts = self._count(self._flags.add_flags(rows))

    def findings(
        self, written: Callable[[], DataFrame | None] = lambda: None, *, rows: int | None = None
    ) -> tuple[ExpectationFinding, ...]:
        """Return a finding for each rule.

        `written` returns the rows that the write added, or None if they are unknown. It is called only for samples, or
        to count: if the write did not count, if the observed counts were lost, or if they differ from `rows`, the
        number of rows that the write added, because the rows of a lost executor may be counted twice. Raises
        ServiceUnavailable if the counts are lost and `written` returns None.
        """
        if not self._flags.rules:
            return ()
        counts = self._staged_counts if self._observation is None else read_observation(self._observation)

        @cache
        def read_flagged() -> DataFrame | None:
            frame = written()
            return None if frame is None else self._flags.add_flags(frame)

        if counts is None or (rows is not None and counts[ROWS] != rows):
            again = read_flagged()
            if again is None and rows != 0:
                raise ServiceUnavailable("Spark lost the counts of a write: run the step again.")
            counts = dict.fromkeys((ROWS, KEPT_ROWS, *self._flags.names), 0) if again is None else self._count(again)
        return self._judge(counts, read_flagged)

    def _count(self, flagged: DataFrame) -> Mapping[str, int]:
        return flagged.agg(*self._flags.counts()).collect()[0].asDict()

    def of_flagged(self, frame: DataFrame) -> tuple[ExpectationFinding, ...]:
        """Return the findings of staged rows, which have flag columns."""
        counts = read_observation(self._observation) if self._observation is not None else None
        whole = frame.count()
        if counts is None or counts[ROWS] != whole:
            counts = self._count(frame)
        return self._judge(counts, lambda: frame)

    def _judge(
        self, counts: Mapping[str, int], flagged: Callable[[], DataFrame | None]
    ) -> tuple[ExpectationFinding, ...]:
        findings = []
        for flag, rule in zip(self._flags.names, self._flags.rules, strict=True):
            takes_out = rule.action in (ExpectationAction.DROP, ExpectationAction.QUARANTINE)
            checked_count = counts[ROWS] if takes_out else counts[KEPT_ROWS]
            rows = flagged() if counts[flag] else None
            text = None if rows is None else self._flags.sample(rows, rule)
            findings.append(finding(rule, broken=counts[flag], checked=checked_count, sample=text))
        return tuple(findings)


def read_observation(observation: Observation) -> Mapping[str, int] | None:
    """Return the counts that a write filled; None if Spark does not report them in time.

    Spark's own getter waits forever.
    """
    entries: list[Mapping[str, int]] = []

    def ask() -> None:
        with suppress(PySparkException, Py4JError):  # nothing was observed: no rows, or the write failed
            entries.append(observation.get)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_OBSERVED_WITHIN_S)
    return entries[0] if entries and ROWS in entries[0] else None
