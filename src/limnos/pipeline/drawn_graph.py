# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline for pictures: sources, tables that it reads, steps and their order, and columns on request.

Must not know Spark, servers or the form of a picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from limnos.names import display
from limnos.pipeline.declaration import LOOP_VARIABLE, Pipeline, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.reads import StepReads
from limnos.pipeline.source_declarations import (
    STORAGE_COLUMNS,
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
from limnos.pipeline.table_lineage import PipelineColumns, TableLineage

if TYPE_CHECKING:
    from limnos.client.activity.runs import Run, RunStep

_STATES: Final = frozenset({"done", "running", "failed"})
"""The states of a run's step that have a color. A step in another state, or without one, is drawn as waiting."""
_UNKNOWN: Final = TableLineage(unknown="not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """A node: a source, a table that no step makes, or a step. `href` is a relative address of ours, or empty."""

    id: Parts
    name: str
    place: str
    kind: str
    """`source`, `table` or `step`."""
    href: str = ""
    state: str = ""
    """Of a drawn run, the state of the step: `done`, `running`, `failed` or `waiting`."""
    lineage: TableLineage | None = None
    """The columns; None for a drawing without columns."""
    hidden: int = 0
    """The number of columns that `lineage` leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineGraph:
    """The nodes of a pipeline, and its edges from what is read to what reads it. `after` has edges of order alone."""

    title: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[tuple[Parts, Parts], ...]
    after: frozenset[tuple[Parts, Parts]] = frozenset()

    @property
    def has_columns(self) -> bool:
        """Whether the nodes have columns."""
        return any(node.lineage is not None for node in self.nodes)


def graph_of(
    pipeline: Pipeline,
    reads: Mapping[str, StepReads],
    *,
    hrefs: Mapping[Parts, str] | None = None,
    run: Run | None = None,
    columns: PipelineColumns | None = None,
) -> PipelineGraph:
    """Return the graph of a pipeline. `hrefs` are the addresses of pages about tables of steps. `run` is a run with its
    steps, whose states are drawn. `columns` are drawn, too.
    """
    steps = {step.table: step for step in pipeline.steps}
    used = {name for one in reads.values() for name in one.sources}
    nodes = [
        DrawnNode(id=(source.name,), name=source.name, place=describe_source(source.kind), kind="source")
        for source in pipeline.sources
        if source.name in used
    ]
    outside = {table for one in reads.values() for table in (*one.tables, *one.past)} - set(steps)
    nodes += [_table_node(table, kind="table", note="table") for table in sorted(outside)]
    run_steps = {} if run is None else {step.name: step for step in run.steps}
    for step in pipeline.steps:
        node = _table_node(step.table, kind="step", note=step.write.mode.value, href=(hrefs or {}).get(step.table, ""))
        if LOOP_VARIABLE.search(step.name):
            node = replace(node, name=step.name, place=f"{node.place}, for each row")
        nodes.append(node if run is None else _with_state(node, run_steps.get(step.name)))
    if columns is not None:
        nodes = [replace(node, lineage=columns.tables.get(node.id, _UNKNOWN)) for node in nodes]
    edges = dict.fromkeys(edge for step in pipeline.steps for edge in _edges(step, reads.get(step.name)))
    after = [(table, step.table) for step in pipeline.steps for table in step.after if (table, step.table) not in edges]
    return PipelineGraph(
        title=f"Pipeline {pipeline.name}" + ("" if run is None else f", run {run.id}: {run.state}"),
        nodes=tuple(nodes),
        edges=tuple(dict.fromkeys([*edges, *after])),
        after=frozenset(after),
    )


def describe_source(kind: object) -> str:
    """Return the kind and the place of a source. Addresses of databases are left out: they may have credentials."""
    if isinstance(kind, Files):
        return f"{kind.format} files {kind.path}"
    if isinstance(kind, TableSource):
        return f"table {display.render(kind.table)}"
    if isinstance(kind, Jdbc):
        return f"database, {kind.table or 'a query'}"
    if isinstance(kind, Kafka):
        return f"topic {kind.topic}"
    if isinstance(kind, PythonSource):
        return f"function {kind.function}"
    if isinstance(kind, SystemTableSource):
        return f"system table {kind.table}"
    if isinstance(kind, StorageSource):
        return "manifests in storage" if kind.content == STORAGE_COLUMNS else "files in storage"
    if isinstance(kind, HarvestSource):
        return f"tables in {kind.root}"
    if isinstance(kind, RegistrationSource):
        return f"registration in {display.render(kind.into)}"
    return "stream"


def _edges(step: StepDeclaration, reads: StepReads | None) -> list[tuple[Parts, Parts]]:
    if reads is None:
        return []
    sources = [(name,) for name in sorted(reads.sources)]
    return [(one, step.table) for one in (*sources, *sorted(reads.tables | reads.past)) if one != step.table]


def _table_node(parts: Parts, *, kind: str, note: str, href: str = "") -> DrawnNode:
    return DrawnNode(
        id=parts,
        name=display.render(parts[1:]),
        place=f"{note}, in {display.render(parts[:1])}",
        kind=kind,
        href=href,
    )


def _with_state(node: DrawnNode, step: RunStep | None) -> DrawnNode:
    """Return the node of a step with its state in a run, and the number of its rows."""
    if step is None:
        return replace(node, place="not in this run", state="waiting")
    state = step.state if step.state in _STATES else "waiting"
    return replace(node, place=step.state if step.rows is None else f"{step.state}, {step.rows:,} rows", state=state)
