# SPDX-License-Identifier: Apache-2.0
"""Execution of one step on a branch of its table, from inputs to findings.

Calls the parts of `pipeline` in order: inputs, row rules, the table, the branch, the write, table rules. Must not know
servers or other steps. The rows that it writes are not visible on `main`; columns that it adds to the table are.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from limnos.names import engine
from limnos.pipeline.context import OF_ENVIRONMENT
from limnos.pipeline.declaration import Load, RuleKind, StepDeclaration, WriteDeclaration, WriteMode
from limnos.pipeline.engine.branches import begin
from limnos.pipeline.engine.expectations import RowRules, has_failed_expectation, table_findings
from limnos.pipeline.engine.incremental import marks_of as checkpoint_of
from limnos.pipeline.engine.inputs import inputs_of, table_texts, values_of
from limnos.pipeline.engine.keys import KeyViolation
from limnos.pipeline.engine.lineage import lineage_of
from limnos.pipeline.engine.sources.values import FILE_COLUMN, RESERVED_FILE_COLUMN
from limnos.pipeline.engine.tables import prepare, rename_column
from limnos.pipeline.engine.writes import WriteResult, write
from limnos.pipeline.failures import DataBroken, WholeReadNeeded
from limnos.pipeline.lineage import QueryLineage, lineage_of_tables
from limnos.pipeline.outcomes import BuiltStep, ExpectationFinding, ReadPin, StepBranch, StepOutcome
from limnos.pipeline.side_tables import MALFORMED, QUARANTINE, side_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from limnos.pipeline.context import StepContext
    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.engine.inputs import StepInputs

RUN_MARK = "limnos.run"
STEP_MARK = "limnos.step"
_ASIDE = {QUARANTINE: "Rows that violate expectations of", MALFORMED: "Rows of files that could not be read for"}


def carry_out(spark: SparkSession, step: StepDeclaration, *, context: StepContext) -> StepOutcome:
    """Execute the step. Raises DataBroken with the complete outcome, and the errors of its phases."""
    return StepExecution(spark, step, context=context).execute()


class StepExecution:
    """A step in progress: its run, its branches, and the findings and durations collected so far.

    Subclasses write tables of another format: they replace `_write`, `_begin` and what reads the written rows.
    """

    def __init__(self, spark: SparkSession, step: StepDeclaration, *, context: StepContext) -> None:
        self.spark = spark
        self.step = step
        self.context = context
        self.began = time.monotonic()
        self.phases: dict[str, float] = {}
        self.values = values_of(context)
        self.branches: list[StepBranch] = []
        self.findings: list[ExpectationFinding] = []
        self.rows = 0
        self.bytes = 0
        self.pins: Mapping[Parts, ReadPin] = {}
        self.definition: Mapping[str, str] = {}
        self.checkpoint: Mapping[str, str] = {}
        self.whole_because: str | None = None
        self.copied_from: BuiltStep | None = None
        self.computed_because: str | None = None
        self.lineage: QueryLineage | None = None

    def execute(self) -> StepOutcome:
        """Execute all phases of the step, from reading to the check of its expectations. Returns the outcome. Raises
        DataBroken if a key or an expectation is violated.
        """
        rules = RowRules(self.step, parameters=self.values)
        try:
            self._read_and_write(rules)
        except WholeReadNeeded as error:
            self._start_over()
            self._read_and_write(rules, whole_because=str(error))
        self.context.check()
        with self._phase("expectations"):
            self.findings += self._table_findings()
        return self._judge()

    def _read_and_write(self, rules: RowRules, *, whole_because: str | None = None) -> None:
        """Write the rows of the step's inputs. `whole_because`: the reason to read all of them. Raises DataBroken if a
        key is violated, WholeReadNeeded before anything is written.
        """
        with self._phase("reading"):
            watched = self._is_watched(rules)
            inputs = inputs_of(
                self.spark, self.step, context=self.context, watched=watched, whole_because=whole_because
            )
        try:
            self.pins = inputs.pins
            self.definition = inputs.definition
            self.checkpoint = inputs.checkpoint
            self.whole_because = inputs.whole_because
            self.copied_from = inputs.copied_from
            if inputs.copied_from is not None:  # the rows are all that the table will have, in its columns
                self.step = replace(self.step, write=WriteDeclaration(), incremental=False)
            self.computed_because = inputs.computed_because
            with self._phase("planning"):
                self.lineage = _lineage(inputs)
            self._write_inputs(rules, inputs)
        except KeyViolation as error:
            self.findings.append(error.finding)
            raise DataBroken(str(error), outcome=self._outcome(), broken=(error.finding,)) from error
        finally:
            inputs.release()

    def _write_inputs(self, rules: RowRules, inputs: StepInputs) -> None:
        """Write the rows. If files repeat each other's keys, the rows of the newest file count."""
        try:
            self._write_all(rules, inputs)
        except KeyViolation:
            if inputs.newest_rows is None:
                raise
            self._start_over()
            with self._phase("reading"):
                frame = inputs.newest_rows()
            self._write_all(rules, replace(inputs, frame=frame))

    def _start_over(self) -> None:
        """Forget the branches and findings of a write that was refused before it wrote anything."""
        self.branches.clear()
        self.findings.clear()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Add the duration of the body of a `with` to the phase `name`. Phases are never nested."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - began

    def _is_watched(self, rules: RowRules) -> bool:
        """Return whether the step writes a source's rows unchanged and reads them once, so that malformed rows can be
        counted during the write.
        """
        plain = self.step.write.mode in (WriteMode.REPLACE, WriteMode.APPEND)
        return isinstance(self.step.body, Load) and plain and not rules.need_stage

    def _write_all(self, rules: RowRules, inputs: StepInputs) -> None:
        if inputs.nothing_new:
            self._begin(self.step, inputs.frame)
            return
        with self._phase("planning"):
            rules.check(inputs.frame)
        self.context.check()
        if rules.need_stage:
            self._write_staged(rules, inputs)
        else:
            self._write_watched(rules, inputs)
        for malformed in inputs.malformed:
            with self._phase("expectations"):
                self.findings += malformed.findings()
        # In one write, because a step may read several such sources and has one branch per table.
        if frames := [malformed.rows for malformed in inputs.malformed if malformed.keep]:
            side = _side_table_step(self.step, MALFORMED)
            self._rename_file_column(side.table)
            self._write(side, reduce(lambda one, other: one.unionByName(other), frames))

    def _rename_file_column(self, table: Parts) -> None:
        """Rename the column that earlier releases gave a table of malformed rows."""
        rename_column(self.spark, table, old=RESERVED_FILE_COLUMN, new=FILE_COLUMN)

    def _judge(self) -> StepOutcome:
        """Return the outcome. Raises DataBroken if a finding forbids publishing."""
        outcome = self._outcome()
        bad = [finding for finding in outcome.findings if has_failed_expectation([finding])]
        if bad:
            raise DataBroken("; ".join(finding.message for finding in bad), outcome=outcome, broken=bad)
        return outcome

    def _write_watched(self, rules: RowRules, inputs: StepInputs) -> None:
        frame, counted = rules.watch(inputs.frame)
        write_result = self._write(self.step, frame, on_staged=counted.count_staged)
        exact = self.step.write.mode not in (WriteMode.MERGE, WriteMode.HISTORY)
        with self._phase("expectations"):
            self.findings += counted.findings(
                lambda: self._added_rows(write_result), rows=write_result.rows if exact else None
            )

    def _write_staged(self, rules: RowRules, inputs: StepInputs) -> None:
        with self._phase("writing"):  # the rows are computed here, and both writes use the result
            staged_rows = rules.stage(inputs.frame, run=self.context.run, at=self.context.at)
        try:
            self.findings += staged_rows.findings
            self._write(self.step, staged_rows.rows, excluded=staged_rows.excluded)
            if staged_rows.quarantined is not None:
                self._write(_side_table_step(self.step, QUARANTINE), staged_rows.quarantined)
        finally:
            self._after_writes(staged_rows.release)

    def _after_writes(self, release: Callable[[], None]) -> None:
        """Free the staged rows: Iceberg's tables are read for the other expectations."""
        release()

    def _write(
        self,
        step: StepDeclaration,
        frame: DataFrame,
        *,
        excluded: DataFrame | None = None,
        on_staged: Callable[[DataFrame], None] | None = None,
    ) -> WriteResult:
        """Prepare the table, begin its branch, write. The branch is recorded even if the write fails.

        `on_staged` is called with the staged rows, if the write stages them.
        """
        branch, schema = self._begin(step, frame)
        whole = self.whole_because is not None and step is self.step
        with self._phase("writing"):
            write_result = write(
                self.spark,
                step,
                frame=frame,
                branch=branch,
                marks=self._marks(),
                whole=whole,
                run_at=self.context.at,
                schema=schema,
                excluded=excluded,
                on_staged=on_staged,
            )
        self.branches[-1] = replace(branch, head=write_result.head)
        if step is self.step:
            self.rows, self.bytes = write_result.rows, write_result.bytes  # side tables are not the step's size
        return write_result

    def _marks(self) -> dict[str, str]:
        """Return the summary entries of the step's snapshots: run, step and checkpoint."""
        checkpoint = checkpoint_of(self.pins, definition=self.definition)
        return {RUN_MARK: self.context.run, STEP_MARK: self.step.name, **checkpoint}

    def _begin(self, step: StepDeclaration, frame: DataFrame) -> tuple[StepBranch, StructType | None]:
        """Prepare the table and begin its branch. Returns the branch, and the table's columns if known."""
        context = self.context
        with self._phase("planning"):
            preparation = prepare(
                self.spark, step, frame=frame, branch=context.branch, existing_tables=context.existing_tables
            )
            context.check()
            known = preparation if preparation.is_ready else None
            branch = begin(
                self.spark, step, branch=context.branch, loaded=None if known is None else known.existing_table
            )
        self.branches.append(replace(branch, columns_to_drop=preparation.columns_to_drop))
        return self.branches[-1], None if known is None else known.schema

    def _added_rows(self, written: WriteResult) -> DataFrame | None:
        """Return the rows that the write added; None if they cannot be distinguished from older rows."""
        branch = self.branches[0]
        name = engine.render_spark(branch.table)
        mode = self.step.write.mode
        if mode is WriteMode.REPLACE or (
            mode is WriteMode.APPEND and (self.whole_because is not None or branch.base is None)
        ):
            return self.spark.sql(f"SELECT * FROM {name} VERSION AS OF {written.head}")
        if mode is WriteMode.APPEND and written.head != branch.base:
            reader = self.spark.read.option("start-snapshot-id", str(branch.base))
            return reader.option("end-snapshot-id", str(written.head)).table(name)
        return None

    def _table_findings(self) -> tuple[ExpectationFinding, ...]:
        branches = {**self.context.done_branches, self.step.table: self.branches[0]}
        reads = table_texts(self.spark, replace(self.context, done_branches=branches))
        return table_findings(
            self.spark,
            self.step,
            reads=reads,
            run_at=self.context.at,
            rows_before=self._rows_before(),
            parameters=self.values,
        )

    def _rows_before(self) -> int | None:
        """Count the published rows, if a rule needs the count; else None."""
        base = self.branches[0].base
        if base is None or all(rule.kind is not RuleKind.NO_FEWER_ROWS for rule in self.step.expectations):
            return None
        name = engine.render_spark(self.step.table)
        return self.spark.sql(f"SELECT * FROM {name} VERSION AS OF {base}").count()

    def _outcome(self) -> StepOutcome:
        return StepOutcome(
            branches=tuple(self.branches),
            pins=tuple(self.pins.values()),
            findings=tuple(self.findings),
            rows=self.rows,
            bytes=self.bytes,
            seconds=time.monotonic() - self.began,
            phases=dict(self.phases),
            lineage=self.lineage,
            whole_because=self.whole_because,
            copied_from=self.copied_from,
            computed_because=self.computed_because,
        )


def _side_table_step(step: StepDeclaration, suffix: str) -> StepDeclaration:
    """Return the declaration of a step's side table; `suffix` selects quarantined or malformed rows."""
    table = side_table(step.table, suffix)
    return StepDeclaration(
        table=table,
        body=step.body,
        write=WriteDeclaration(mode=WriteMode.APPEND),
        properties={name: value for name, value in step.properties.items() if name == OF_ENVIRONMENT},
        allowed=step.allowed,
        comment=f"{_ASIDE[suffix]} {step.name}",
    )


def _lineage(inputs: StepInputs) -> QueryLineage:
    roots = [each.read.root for each in inputs.opened if each.read.root is not None]
    lineage = lineage_of(inputs.frame, file_roots=roots)
    if lineage.inputs:
        return lineage
    tables = [*(table for table in inputs.pins if len(table) > 1), *(pin.table for pin in inputs.pins.values())]
    return lineage_of_tables(table for table in dict.fromkeys(tables) if table is not None)
