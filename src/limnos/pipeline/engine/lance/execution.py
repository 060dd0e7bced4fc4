# SPDX-License-Identifier: Apache-2.0
"""Execution of a step whose table is a Lance table.

Differs from the execution for Iceberg tables in the write and in what the expectations read: nothing is read from a
staged version. The rows of a step with expectations are computed once, and its table's rows are those of the published
version with the written ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from limnos.names import display
from limnos.pipeline.checkpoints import INPUTS
from limnos.pipeline.declaration import (
    EmbeddingDeclaration,
    Expectation,
    ExpectationAction,
    RuleKind,
    StepDeclaration,
    WriteMode,
)
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.expectations import RowRules, table_findings
from limnos.pipeline.engine.inputs import StepInputs, actual_table, table_texts
from limnos.pipeline.engine.lance.embedding import ERROR_COLUMN, embed_rows
from limnos.pipeline.engine.lance.failures import lance_errors
from limnos.pipeline.engine.lance.fragments import WrittenFragments, write_rows
from limnos.pipeline.engine.lance.indexes import update_indexes
from limnos.pipeline.engine.lance.merging import merge
from limnos.pipeline.engine.lance.partitions import replace_partitions
from limnos.pipeline.engine.lance.reading import lance_read
from limnos.pipeline.engine.lance.tables import LanceTarget, as_spelled, prepare_target
from limnos.pipeline.engine.pinned_reads import branch_pin
from limnos.pipeline.engine.session import temporary_view
from limnos.pipeline.engine.staging import release, stage
from limnos.pipeline.engine.steps import StepExecution
from limnos.pipeline.engine.writes import WriteResult
from limnos.pipeline.failures import StepFailed, WholeReadNeeded
from limnos.pipeline.lance_checkpoints import entries_of
from limnos.pipeline.outcomes import ExpectationFinding, StepBranch, StepOutcome
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.source_declarations import Stream
from limnos.spark.lance.server_access import SOURCE, ServerAccess
from limnos.spark.session import register_lance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from limnos.pipeline.context import StepContext
    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.engine.lance.staging import StagedTable

EMBEDDING_RULE = "embed"
"""The name of the rule by which rows without a vector go to quarantine."""


def carry_out_lance(
    spark: SparkSession, step: StepDeclaration, *, context: StepContext, access: ServerAccess
) -> StepOutcome:
    """Execute a step of a Lance table. Raises as `engine.steps.carry_out` does."""
    return LanceStepExecution(spark, step, context=context, access=access).execute()


class LanceStepExecution(StepExecution):
    """A step in progress that stages versions of a Lance table, and of its quarantine table."""

    def __init__(
        self, spark: SparkSession, step: StepDeclaration, *, context: StepContext, access: ServerAccess
    ) -> None:
        super().__init__(spark, _with_embedding_rule(step), context=context)
        self._access = access
        self._targets: dict[Parts, LanceTarget] = {}
        self._written: DataFrame | None = None
        self._releases: list[Callable[[], None]] = []

    def execute(self) -> StepOutcome:
        """Execute all phases of the step, and free the staged rows."""
        try:
            with lance_errors():
                return super().execute()
        finally:
            for free in self._releases:
                free()

    def _write_all(self, rules: RowRules, inputs: StepInputs) -> None:
        """Write the rows. With expectations they are computed once, so that these count the rows that are written."""
        if self.step.embed is not None:
            inputs = replace(inputs, frame=self._embed_rows(inputs.frame, self.step.embed))
        if self.step.expectations and not inputs.nothing_new:
            with self._phase("writing"):
                staged_rows = stage(inputs.frame)
            self._after_writes(lambda: release(staged_rows))
            inputs = replace(inputs, frame=staged_rows)
        super()._write_all(rules, inputs)

    def _after_writes(self, release: Callable[[], None]) -> None:
        """Keep the staged rows for the other expectations, until the step is done."""
        self._releases.append(release)

    def _write(
        self,
        step: StepDeclaration,
        frame: DataFrame,
        *,
        excluded: DataFrame | None = None,
        on_staged: Callable[[DataFrame], None] | None = None,
    ) -> WriteResult:
        """Write the rows as fragments, and stage a version with them. With expectations `frame` is staged already."""
        if on_staged is not None and self.step.expectations:
            on_staged(frame)
        if self.step.embed is not None and step is self.step:
            frame = frame.drop(ERROR_COLUMN)
        branch, _ = self._begin(step, frame)
        target = self._targets[step.table]
        table = target.table
        mode = self._write_mode(step)
        with self._phase("writing"):
            if mode is WriteMode.MERGE:
                written_fragments = merge(step, frame, target=target, excluded=excluded, check=self.context.check)
            elif mode is WriteMode.PARTITIONS:
                written_fragments = replace_partitions(step, frame, target=target, check=self.context.check)
            else:
                written_fragments = self._write_fragments(frame, target=target)
            if step is self.step:
                table.set_checkpoint(self._checkpoint())
        self.branches[-1] = replace(branch, head=table.head, staged=table.staged)
        if step is self.step:
            self.rows, self.bytes = written_fragments.rows, written_fragments.bytes
            self._written = frame if mode in (WriteMode.REPLACE, WriteMode.APPEND) else None
        return WriteResult(head=table.head or 0, rows=written_fragments.rows, bytes=written_fragments.bytes)

    def _write_mode(self, step: StepDeclaration) -> WriteMode:
        """Return the write mode. A whole read of a step that appends has all rows, so they replace those of its table,
        as in an Iceberg table.
        """
        is_whole = step is self.step and self.whole_because is not None
        return WriteMode.REPLACE if is_whole and step.write.mode is WriteMode.APPEND else step.write.mode

    def _checkpoint(self) -> Mapping[str, str] | None:
        """Return the checkpoint of the rows; None for a step that never continues from one."""
        streams = {(each.name,) for each in self.context.pipeline.sources if isinstance(each.kind, Stream)}
        if not self.step.incremental and streams.isdisjoint(self.pins):
            return None
        return self._marks()

    def _require_same_checkpoint(self, table: StagedTable) -> None:
        """Raise WholeReadNeeded if an increment begins at another checkpoint than that of the version to which it is
        added, because another client has changed or restored the table in the meantime.
        """
        if not self.step.incremental or self.whole_because is not None or table.dataset is None:
            return
        if entries_of(table.dataset.config()).get(INPUTS) != self.checkpoint.get(INPUTS):
            raise WholeReadNeeded("another client changed the table while the step began")

    def _write_fragments(self, frame: DataFrame, *, target: LanceTarget) -> WrittenFragments:
        table = target.table
        names = as_spelled(frame.schema, target.schema).names
        written_fragments = write_rows(frame.toDF(*names), target)
        self.context.check()
        if target.replaces:
            table.overwrite(target.schema, written_fragments.fragments)
        else:
            table.append(written_fragments.fragments)
        return written_fragments

    def _begin(self, step: StepDeclaration, frame: DataFrame) -> tuple[StepBranch, StructType | None]:
        """Prepare the table. The branch of a Lance table has a name only, and staged versions once rows are written."""
        with self._phase("planning"):
            target = prepare_target(
                self._access,
                replace(step, write=replace(step.write, mode=self._write_mode(step))),
                columns=frame.schema,
                branch=self.context.branch,
                existing_tables=self.context.existing_tables,
            )
        self.context.check()
        if step is self.step:
            self._require_same_checkpoint(target.table)
        self._targets[step.table] = target
        table = target.table
        self.branches.append(
            StepBranch(
                table=step.table,
                name=self.context.branch,
                uuid=table.location,
                schema_id=0,
                base=table.base,
                head=table.base,
                is_new=target.is_new,
                staged=(),
            )
        )
        return self.branches[-1], None

    def _rename_file_column(self, table: Parts) -> None:
        """No-op: earlier releases wrote no Lance tables."""

    def _judge(self) -> StepOutcome:
        """Return the outcome, with indexes of the rows that the expectations let through."""
        self._require_some_embedded()
        outcome = super()._judge()
        target = self._targets[self.step.table].table
        if not self.step.indexes or target.dataset is None:
            return outcome
        with self._phase("indexes"):
            update_indexes(target.dataset, self.step.indexes, step=self.step.name)
        self.branches[0] = replace(self.branches[0], head=target.head, staged=target.staged)
        return self._outcome()

    def _embed_rows(self, frame: DataFrame, embedding: EmbeddingDeclaration) -> DataFrame:
        """Return the rows with their vectors, those of equal inputs from the published version."""
        if self.lineage is not None:
            origins = {one for name in embedding.columns for one in self.lineage.columns.get(name, ())}
            columns = dict.fromkeys(
                embedding.added, tuple(sorted(one._replace(subtype="TRANSFORMATION") for one in origins))
            )
            self.lineage = replace(self.lineage, columns={**self.lineage.columns, **columns})
        return embed_rows(frame, embedding, known=self._known_vectors(embedding), step=self.step.name)

    def _known_vectors(self, embedding: EmbeddingDeclaration) -> DataFrame | None:
        """Return the published vectors by their hashes; None if there are none, or all rows are to be embedded."""
        with self._access.client() as client:
            heads = heads_of(client, self.step.table)
        if self.context.full or heads is None or heads.main is None:
            return None
        published = self._read_published(heads.main)
        if not {*embedding.added} <= {*published.columns}:
            return None
        return published.select(*map(quote_column, embedding.added))

    def _require_some_embedded(self) -> None:
        """Raise StepFailed if no row has a vector: then not the rows are wrong, but the function or its model."""
        if self.step.embed is None:
            return
        finding = next((each for each in self.findings if each.rule == EMBEDDING_RULE), None)
        if finding is not None and finding.broken == finding.checked > 0:
            raise StepFailed(
                f"{self.step.embed.function} made a vector of none of {finding.checked} rows: {finding.sample}"
            )

    def _added_rows(self, written: WriteResult) -> DataFrame | None:
        return self._written

    def _rows_before(self) -> int | None:
        """Count the published rows, if a rule needs the count; else None."""
        table = self._targets[self.step.table].table
        if table.base is None or all(rule.kind is not RuleKind.NO_FEWER_ROWS for rule in self.step.expectations):
            return None
        return self._read_published(table.base).count()

    def _read_published(self, version: int) -> DataFrame:
        """Return the rows of a published version of the step's table."""
        register_lance(self.spark, self._access, lineage=False)
        return self.spark.read.format(SOURCE).option("version", str(version)).load(display.render(self.step.table))

    def _table_rows(self) -> DataFrame | None:
        """Return the rows that the table has when the run is published; None for a table without data."""
        target = self._targets[self.step.table]
        base = target.table.base
        if self._written is None and target.table.staged:
            return lance_read(self.spark, branch_pin(self.branches[0]))[0]
        if self._written is None:
            return None if base is None else self._read_published(base)
        if target.replaces or base is None:
            return self._written
        return self._read_published(base).unionByName(self._written, allowMissingColumns=True)

    def _table_findings(self) -> tuple[ExpectationFinding, ...]:
        rows = self._table_rows()
        if rows is None or all(rule.kind is RuleKind.ROW for rule in self.step.expectations):
            return ()
        others = table_texts(self.spark, self.context)
        with temporary_view(rows) as view:

            def read(parts: Parts) -> str:
                is_own = actual_table(self.spark, parts, context=self.context) == self.step.table
                return view if is_own else others(parts)

            return table_findings(
                self.spark,
                self.step,
                reads=read,
                run_at=self.context.at,
                rows_before=self._rows_before(),
                parameters=self.values,
            )


def _with_embedding_rule(step: StepDeclaration) -> StepDeclaration:
    """Return the step with the rule that puts rows without a vector into quarantine."""
    if step.embed is None:
        return step
    rule = Expectation(
        name=EMBEDDING_RULE,
        kind=RuleKind.ROW,
        action=ExpectationAction.QUARANTINE,
        condition=f"{quote_column(step.embed.into)} IS NOT NULL",
    )
    return replace(step, expectations=(rule, *step.expectations))
