# SPDX-License-Identifier: Apache-2.0
"""Incremental reads of a step: the tables that can be read by increments, and reasons for full reads.

Decides from the step's last checkpoint and its write mode; `new_rows` inspects the query's plan. Must not know how
`increments` reads an increment. The checkpoint is in the summary of the step's own published snapshot, or in the
configuration of the published version of its Lance table, so a restored table and its pipeline agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from limnos.names import display, engine
from limnos.pipeline.checkpoints import INPUTS, inputs_of, snapshot_of
from limnos.pipeline.declaration import WriteMode
from limnos.pipeline.definitions import DEFINITION, change_reason, encode, mode_reason
from limnos.pipeline.engine.connection import lance_access_of
from limnos.pipeline.engine.increments import Increment, increment
from limnos.pipeline.engine.metadata import metadata_of
from limnos.pipeline.engine.new_rows import NewRows, new_rows
from limnos.pipeline.engine.pinned_reads import PinnedRead, frame_of, reads, stand_in
from limnos.pipeline.lance_checkpoints import lance_checkpoint
from limnos.pipeline.outcomes import ReadPin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.engine.metadata import TableMetadata, TableSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadChoice:
    """The read mode of an incremental step: increments of its inputs, or full.

    If `whole_because` is None, `increments` has the tables that are read by increments.
    """

    pinned_reads: Mapping[Parts, PinnedRead]
    whole_because: str | None = None
    increments: frozenset[Parts] = frozenset()
    nothing_new: bool = False
    """Whether no table has new rows, so that the step has nothing to write."""


def marks_of(pins: Mapping[Parts, ReadPin], *, definition: Mapping[str, str]) -> dict[str, str]:
    """Return the checkpoint for the step's snapshot: pinned inputs and the step's definition."""
    inputs = {engine.render_spark(table): pin.state for table, pin in pins.items()}
    return {INPUTS: json.dumps(inputs, sort_keys=True), DEFINITION: encode(definition)}


def choose(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    pins: Mapping[Parts, ReadPin],
    definition: Mapping[str, str],
    checkpoint: Mapping[str, str],
    full: bool = False,
) -> ReadChoice:
    """Choose increments or a full read of an incremental step's pinned tables. `checkpoint` is that of its published
    table; `full` forces a full read.
    """
    whole = reads(spark, pins)
    pins = {table: whole[table].pin for table in pins}
    if full:
        return _read_whole(whole, "a full run was requested")
    last, reason = _last(checkpoint, definition=definition)
    if reason is not None:
        return _read_whole(whole, reason)
    changed_pins = {each: pin for each, pin in pins.items() if last.get(engine.render_spark(each), -1) != pin.state}
    if not changed_pins:
        return ReadChoice(pinned_reads=whole, nothing_new=True)
    if (reason := mode_reason(step)) is not None:
        return _read_whole(whole, reason)
    increments = {each: _increment(spark, pin, last=last) for each, pin in changed_pins.items()}
    reasons = [each.whole_because for each in increments.values() if each.whole_because is not None]
    if step.write.mode is WriteMode.APPEND:
        reasons += [
            f"{display.render(table)}: rows were changed since, and `append` can't remove the rows derived from them"
            for table, each in increments.items()
            if each.frame is not None and not each.only_new
        ]
    if reasons:
        return _read_whole(whole, "; ".join(reasons))
    frames = {each: increments[each].frame for each in changed_pins}
    arguments = {
        each: stand_in(frame, pin=replace(changed_pins[each], since=_since(changed_pins[each], last=last)))
        for each, frame in frames.items()
        if frame is not None
    }
    return ReadChoice(pinned_reads=reads(spark, pins, overrides=arguments), increments=frozenset(arguments))


def published_checkpoint(spark: SparkSession, table: Parts, *, is_lance: bool) -> Mapping[str, str]:
    """Return the checkpoint of a step's published table; empty if it has none. Raises StepError if the server, or the
    files of a Lance table, cannot be read.
    """
    if is_lance:
        from limnos.pipeline.engine.lance.failures import lance_errors  # noqa: PLC0415

        with lance_errors(), lance_access_of(spark).client() as client:
            return lance_checkpoint(client, table)
    metadata = metadata_of(spark, table)
    newest = None if metadata is None else checkpoint_snapshot(metadata)
    return {} if newest is None else newest.summary


def checkpoint_snapshot(metadata: TableMetadata) -> TableSnapshot | None:
    """Return the newest published snapshot that has a checkpoint; None if there is none. Maintenance may have added
    later snapshots without a checkpoint.
    """
    return next((each for each in metadata.ancestors(metadata.head()) if INPUTS in each.summary), None)


def inputs_of_mark(snapshot: TableSnapshot) -> Mapping[str, int | str | None] | None:
    """Return the inputs in a snapshot's checkpoint; None if it has no valid checkpoint."""
    return inputs_of(snapshot.summary.get(INPUTS))


def _increment(spark: SparkSession, pin: ReadPin, *, last: Mapping[str, int | str | None]) -> Increment:
    table = pin.table or ()
    name = engine.render_spark(table)
    if pin.fingerprint is not None:
        return Increment(whole_because=f"view {pin.name} had another definition when it was last read")
    if name in last and last[name] is None:
        return Increment(frame=frame_of(spark, reads(spark, {table: pin})[table]), only_new=True)
    if pin.lance is not None:
        from limnos.pipeline.engine.lance.increments import lance_increment  # noqa: PLC0415 - loads Lance's library

        return lance_increment(spark, pin, state=last.get(name))
    return increment(spark, table, since=_since(pin, last=last), until=pin.snapshot)


def _since(pin: ReadPin, *, last: Mapping[str, int | str | None]) -> int | None:
    return snapshot_of(last.get(engine.render_spark(pin.table or ())))


def read_whole(spark: SparkSession, *, pins: Mapping[Parts, ReadPin], reason: str) -> ReadChoice:
    """Return the choice to read all pinned tables in full, for the given reason."""
    return _read_whole(reads(spark, pins), reason)


def incremental_rows(
    frame: DataFrame,
    chosen: ReadChoice,
    *,
    also: frozenset[str] = frozenset(),
    aliases: frozenset[str] = frozenset(),
    by_code: bool = False,
) -> NewRows:
    """Return the rows of the query that come from new rows of its inputs, or why it needs a full read.

    `also` are temporary views of other sources that contain only new rows, `aliases` those of their DataFrames.
    `by_code`: a Python function made the query.
    """
    views = also | {chosen.pinned_reads[each].text for each in chosen.increments}
    return new_rows(frame, views=views, aliases=aliases, by_code=by_code)


def _last(
    checkpoint: Mapping[str, str], *, definition: Mapping[str, str]
) -> tuple[Mapping[str, int | str | None], str | None]:
    """Return the inputs of the step's last checkpoint; or the reason why the step cannot continue from it."""
    if INPUTS not in checkpoint:
        return {}, "nothing was published yet"
    if reason := change_reason(checkpoint.get(DEFINITION), definition):
        return {}, reason
    last = inputs_of(checkpoint[INPUTS])
    return ({}, "the checkpoint of the published table can't be read") if last is None else (last, None)


def _read_whole(whole: Mapping[Parts, PinnedRead], reason: str) -> ReadChoice:
    entries = {table: replace(each, pin=replace(each.pin, whole_because=reason)) for table, each in whole.items()}
    return ReadChoice(pinned_reads=entries, whole_because=reason)
