# SPDX-License-Identifier: Apache-2.0
"""Comparison of a step with the table that an environment's run made of it: whether its rows would be the same.

The engine writes what a step read, and what it was made of, into the summary of each snapshot. A promotion copies a
snapshot's rows if both equal what the step would read and be now. Must not know how a promotion is chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limnos.names import display, engine
from limnos.pipeline.checkpoints import RUN
from limnos.pipeline.definitions import DEFINITION, change_reason
from limnos.pipeline.engine.incremental import inputs_of_mark
from limnos.pipeline.engine.metadata import TableMetadata, metadata_of
from limnos.pipeline.engine.sources import has_changed
from limnos.pipeline.outcomes import BuiltStep, ReadPin
from limnos.pipeline.source_declarations import Files

_NAMED_MAX = 3

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.context import StepContext
    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.declared_values import Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionComparison:
    """The result of a comparison. Without a `difference` the rows of `built` may be copied."""

    built: BuiltStep
    difference: str | None = None
    pins: Mapping[Parts, ReadPin] = field(default_factory=dict)
    """Pins of the copied table, and of the sources that its step read."""

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows to copy."""
        name = engine.render_spark(self.built.table)
        return spark.sql(f"SELECT * FROM {name} VERSION AS OF {self.built.snapshot}")


def promotion_comparison(
    spark: SparkSession,
    built: BuiltStep,
    *,
    step: StepDeclaration,
    context: StepContext,
    pins: Mapping[Parts, ReadPin],
    sources: Collection[str],
    definition: Mapping[str, str],
) -> PromotionComparison:
    """Compare a step of a promotion with the table that the environment's run made.

    Args:
        spark: The step's session.
        built: The environment's table.
        step: The step, with production's table.
        context: The step's context in the promoting run.
        pins: The pins of the tables that the step reads in this run.
        sources: The names of the sources that it reads.
        definition: The digests of its definition in this run.
    """
    name = display.render(built.table)
    metadata = metadata_of(spark, built.table)
    if metadata is None:
        return PromotionComparison(built=built, difference=f"{name} is gone or not visible")
    snapshot = metadata.snapshot(built.snapshot)
    recorded = None if snapshot is None else inputs_of_mark(snapshot)
    if snapshot is None or recorded is None or snapshot.summary.get(RUN) != built.run:
        return PromotionComparison(
            built=built, difference=f"{name} has no longer what run {built.run} wrote: its snapshot has expired"
        )
    changed_reason = change_reason(snapshot.summary.get(DEFINITION), definition)
    if changed_reason is None and step.adds_to_its_table:
        changed_reason = _earlier_rows(spark, step, built=built, metadata=metadata)
    if changed_reason is None:
        changed_reason = _other_table(recorded, context=context, pins=pins, sources=sources)
    source_pins = {each: ReadPin(name=each, fingerprint=_text(recorded.get(_key((each,))))) for each in sources}
    if changed_reason is None:
        changed_reason = _other_source(spark, source_pins, context=context)
    read: dict[Parts, ReadPin] = {(each,): pin for each, pin in source_pins.items()}
    copied = ReadPin(name=name, table=built.table, snapshot=built.snapshot)
    return PromotionComparison(built=built, difference=changed_reason, pins={**read, built.table: copied})


def _earlier_rows(
    spark: SparkSession, step: StepDeclaration, *, built: BuiltStep, metadata: TableMetadata
) -> str | None:
    """Return why the rows of a step that adds to its table depend on earlier ones; None if they do not.

    They do not if production's table is empty and one run has made all of the environment's table: then a run of
    production would begin with nothing, too, and read the same inputs at once.
    """
    production = metadata_of(spark, step.table)
    if production is not None and production.head() is not None:
        return "its rows depend on those that its table has already"
    for snapshot in metadata.ancestors(built.snapshot):
        if snapshot.summary.get("total-records") == "0" and snapshot.snapshot_id != built.snapshot:
            return None  # the run began with an empty table
        if snapshot.summary.get(RUN) != built.run:
            break
        if snapshot.parent_snapshot_id is None:
            return None
    return f"several runs have made the rows of {display.render(built.table)}"


def _other_table(
    recorded: Mapping[str, int | str | None],
    *,
    context: StepContext,
    pins: Mapping[Parts, ReadPin],
    sources: Collection[str],
) -> str | None:
    """Return which table the environment's run read in another state, or did not read; None if all are the same."""
    expected: dict[str, int | str | None] = {}
    for table, pin in pins.items():
        copied = context.copied.get(table)
        if table in context.done_branches and copied is None:
            return f"{pin.name}, which it reads, was computed in this run"
        if copied is None:
            expected[_key(table)] = pin.state
        else:
            expected[_key(copied.table)] = copied.snapshot
    table_states = {name: state for name, state in recorded.items() if name not in {_key((each,)) for each in sources}}
    for name in sorted(table_states.keys() & expected.keys()):
        if table_states[name] != expected[name]:
            return f"{name} has changed since the environment's run read it"
    former, present = (
        ", ".join(sorted(names)[:_NAMED_MAX]) or "no table in its place"
        for names in (table_states.keys() - expected.keys(), expected.keys() - table_states.keys())
    )
    return None if former == present else f"the environment's run read {former}, and this run reads {present}"


def _other_source(spark: SparkSession, pins: Mapping[str, ReadPin], *, context: StepContext) -> str | None:
    """Return which source has changed, or cannot be compared without reading it; None if all are the same."""
    sources = {source.name: source for source in context.pipeline.sources}
    for name, pin in pins.items():
        source = sources.get(name)
        if source is None or not isinstance(source.kind, Files) or pin.fingerprint is None:
            return f"source {name} cannot be compared without reading it"
        if has_changed(spark, source, pinned=pin, directory=context.directory) is not False:
            return f"source {name} has changed since the environment's run read it"
    return None


def _key(table: Parts) -> str:
    return engine.render_spark(table)


def _text(state: int | str | None) -> str | None:
    return state if isinstance(state, str) else None
