# SPDX-License-Identifier: Apache-2.0
"""Plans of a pipeline: what a run would do, in order of execution, and why it reads an input whole or in part.

Everything is in the result of a check. Must not know servers or Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from limnos.names import display, engine
from limnos.pipeline.checkpoints import INPUTS, checkpoint_of, head_of, inputs_of, snapshot_of
from limnos.pipeline.checks import CheckResult
from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.definitions import DEFINITION, declared_change, mode_reason
from limnos.pipeline.side_tables import tables_of
from limnos.pipeline.source_declarations import (
    STORAGE_COLUMNS,
    DeclaredSource,
    Files,
    HarvestSource,
    Jdbc,
    Kafka,
    PythonSource,
    RegistrationSource,
    StorageSource,
    SystemTableSource,
    TableSource,
)
from limnos.pipeline.topic_offsets import TopicLookup, describe_read, plan_read, read_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRead:
    """One input of a step in a plan: its name and kind, the table snapshot that the run would read, and in `why` the
    extent of the read with its reason.
    """

    name: str
    kind: str
    """`step`, `table`, `view`, `source` or `unknown`."""
    snapshot: int | None = None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """One step of a plan: its level in the order of execution, the tables that it reads, and the tables for rejected
    rows.
    """

    step: StepDeclaration
    level: int
    is_new: bool
    """Whether the run would create the table."""
    is_lance: bool = False
    """Whether the step's table is a Lance table."""
    reads: tuple[PlannedRead, ...]
    aside: tuple[Parts, ...] = ()
    """Tables for rejected rows: the quarantine table and the table of malformed rows."""


def plan(
    checked: CheckResult,
    *,
    selected: frozenset[str] | None = None,
    topics: Mapping[str, TopicLookup | str] | None = None,
) -> tuple[StepPlan, ...]:
    """Describe a run of the selected steps, in order of execution; None for all. `checked` must have no problems.

    `topics` has the present offsets of sources that are topics, or the reason why they are not known.
    """
    results = {step.table: step.name for step in checked.pipeline.steps if selected is None or step.name in selected}
    sources = {source.name: source for source in checked.pipeline.sources}
    return tuple(
        StepPlan(
            step=step,
            level=level,
            is_new=(
                checked.table_lookups is not None
                and checked.table_lookups[step.table].kind == "absent"
                and (checked.loops is None or step.table not in checked.loops.stand_ins)
            ),
            is_lance=step.table[0] in checked.lance_catalogs,
            reads=(
                *_table_reads(checked, step, steps=results),
                *_source_reads(checked, step, sources=sources, topics=topics),
            ),
            aside=_side_tables(checked, step),
        )
        for level, steps in enumerate(checked.levels)
        for step in steps
        if selected is None or step.name in selected
    )


def _side_tables(checked: CheckResult, step: StepDeclaration) -> tuple[Parts, ...]:
    sources = None if checked.reads is None else checked.reads[step.name].sources
    tables = tables_of(checked.pipeline, step, sources=sources)[1:]
    return tuple([tuple([checked.with_variables(part) for part in table]) for table in tables])


def _table_reads(checked: CheckResult, step: StepDeclaration, *, steps: Mapping[Parts, str]) -> list[PlannedRead]:
    reads = checked.reads or {}
    one = reads.get(step.name)
    if one is None:
        return []
    entries = [_table_read(checked, step, table=table, steps=steps) for table in sorted(one.tables)]
    past = [
        PlannedRead(name=checked.with_variables(display.render(table)), kind="table", why="as of the time in the query")
        for table in sorted(one.past)
    ]
    return [*entries, *past]


def _table_read(
    checked: CheckResult, step: StepDeclaration, *, table: Parts, steps: Mapping[Parts, str]
) -> PlannedRead:
    name = checked.with_variables(display.render(table))
    if table in steps:
        return PlannedRead(name=name, kind="step", why=f"the result of step {steps[table]} in this run")
    state = None if checked.table_lookups is None else checked.table_lookups[table]
    if state is not None and state.kind == "absent" and (declared := _declared_table(checked, table)) is not None:
        why = "production's, as it is when the run starts: the environment has none yet"
        return PlannedRead(name=display.render(declared), kind="table", why=why)
    if state is None or state.kind in {"outside", "hidden", "absent"}:
        return PlannedRead(name=name, kind="unknown", why="as it is when the run starts")
    if state.kind == "view":
        return PlannedRead(name=name, kind="view", why="its tables as they are when the run starts")
    snapshot = head_of(state.metadata) if state.lance is None else state.lance.version
    if snapshot is None:
        return PlannedRead(name=name, kind="table", why="it is empty")
    return PlannedRead(
        name=name,
        kind="table",
        snapshot=snapshot,
        why=_reason_text(checked, step, table=table, snapshot=snapshot),
    )


def _declared_table(checked: CheckResult, table: Parts) -> Parts | None:
    """Return the declared table of an environment's table; None if it is another table."""
    environment = checked.pipeline.environment
    tables = {} if environment is None else environment.tables
    return next((declared for declared, actual in tables.items() if actual == table), None)


def _reason_text(checked: CheckResult, step: StepDeclaration, *, table: Parts, snapshot: int) -> str:
    if not step.incremental:
        return "the whole, as it is when the run starts"
    since = _published_snapshots(checked, step).get(engine.render_spark(table))
    if since is None and any(rule.table == table for rule in step.expectations):
        return "the whole: a rule refers to it"
    if since is None:
        return "the whole: this step has published nothing from it yet"
    if reason := _change(checked, step):
        return f"the whole: {reason}"
    reason = mode_reason(step)
    if since == snapshot and reason is not None:
        return f"nothing new since snapshot {since}: read, as a whole, only if another input or a setting has changed"
    if reason is not None:
        return f"the whole: {reason}"
    if since == snapshot:
        return f"nothing new since snapshot {since}: its rows are read only to join new rows of other inputs with them"
    same = "the parameters and the session's settings are the same"
    return f"the rows after snapshot {since}, if those can be read and {same}, else the whole"


def _published_snapshots(checked: CheckResult, step: StepDeclaration) -> Mapping[str, int]:
    """Return, for each input, the snapshot from which the step's published table was created.

    It is read from the newest snapshot summary that has it.
    """
    mark = _checkpoint(checked, step).get(INPUTS)
    states = {name: snapshot_of(state) for name, state in (inputs_of(mark) or {}).items()}
    return {name: snapshot for name, snapshot in states.items() if snapshot is not None}


def _checkpoint(checked: CheckResult, step: StepDeclaration) -> Mapping[str, str]:
    state = None if checked.table_lookups is None else checked.table_lookups.get(step.table)
    if state is not None and state.lance is not None:
        return state.checkpoint
    return checkpoint_of(None if state is None else state.metadata)


def _change(checked: CheckResult, step: StepDeclaration) -> str | None:
    """Return the changes of an incremental step's declaration since it was published; None without one."""
    checkpoint = _checkpoint(checked, step)
    if not step.incremental or not checkpoint:
        return None
    return declared_change(checked.pipeline, step, recorded=checkpoint.get(DEFINITION))


def _source_reads(
    checked: CheckResult,
    step: StepDeclaration,
    *,
    sources: Mapping[str, DeclaredSource],
    topics: Mapping[str, TopicLookup | str] | None = None,
) -> list[PlannedRead]:
    reads = checked.reads or {}
    names = sorted(reads[step.name].sources) if step.name in reads else []
    change = _change(checked, step)
    more = "" if change is None else f"; the whole: {change}"
    return [
        PlannedRead(
            name=name,
            kind="source",
            why=f"{_of_source(sources[name])}{_of_topic(checked, step, source=sources[name], topics=topics)}{more}",
        )
        for name in names
        if name in sources
    ]


def _of_topic(
    checked: CheckResult,
    step: StepDeclaration,
    *,
    source: DeclaredSource,
    topics: Mapping[str, TopicLookup | str] | None,
) -> str:
    """Return which records of a topic the step would read; empty for other sources, and if that was not looked up."""
    lookup = (topics or {}).get(source.name)
    if lookup is None or not isinstance(source.kind, Kafka):
        return ""
    if isinstance(lookup, str):
        return f"; its offsets are not known: {lookup}"
    state = (inputs_of(_checkpoint(checked, step).get(INPUTS)) or {}).get(engine.render_spark((source.name,)))
    whole = not step.incremental or _change(checked, step) is not None
    read = plan_read(
        lookup.pin,
        lookup.state,
        before=read_offsets(state) if isinstance(state, str) else None,
        whole=whole,
        records_max=source.kind.records_max,
    )
    return f": {describe_read(read)}"


def _of_source(source: DeclaredSource) -> str:
    kind = source.kind
    if isinstance(kind, Files):
        return f"files {kind.path}, {kind.format}"
    if isinstance(kind, TableSource):
        return f"table {display.render(kind.table)}"
    if isinstance(kind, Jdbc):
        return f"{kind.url}, {kind.table or 'a query'}"
    if isinstance(kind, Kafka):
        return f"topic {kind.topic} at {kind.access.brokers}"
    if isinstance(kind, PythonSource):
        return f"function {kind.function}"
    if isinstance(kind, SystemTableSource):
        return f"system table {kind.table}"
    if isinstance(kind, StorageSource):
        is_columns = kind.content == STORAGE_COLUMNS
        return "statistics of columns, by manifests" if is_columns else "findings about files in storage"
    if isinstance(kind, HarvestSource):
        return f"tables in {kind.root}; only changed ones are read again"
    if isinstance(kind, RegistrationSource):
        return f"registers tables of {display.render(kind.table)} in {display.render(kind.into)}"
    return "the new rows of the stream since the last run"
