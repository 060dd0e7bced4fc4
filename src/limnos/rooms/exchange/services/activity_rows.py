# SPDX-License-Identifier: Apache-2.0
"""Rows of the system tables about activity: lineage, runs of pipelines, and maintenance operations.

Must not know wire formats. A row is visible if all objects that it names are: both ends of an edge of lineage, the run
by its own rule, and the table of an operation to those who may maintain it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from json import dumps
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.formats.system_tables import Cells, RowRequest
from limnos.model.kinds import Kind
from limnos.model.runs import LIVE, LOST
from limnos.names import display
from limnos.rooms.exchange.services.part_reads import IdRange, PartReads
from limnos.rooms.exchange.services.table_access import SnapshotObject, TableAccess
from limnos.rooms.exchange.services.table_rows import Pages
from limnos.store.activity.lineage import EVERY_FIELD, UNKNOWN_FIELD
from limnos.store.exchange import system_tables as statements
from limnos.store.sql import Row, Value

_DATASET: Final = "dataset"
"""The kind of an end of lineage that is outside of the metalake."""
_EDGE_KEY: Final[Mapping[str, Value]] = {"digest": b"", "last_key": -1}


class _LineageEnds(NamedTuple):
    """The objects and external datasets among the ends of some edges, by id."""

    objects: Mapping[int, SnapshotObject]
    datasets: Mapping[int, Row]


class ActivityRows:
    """The rows of one request: a part of a table. `now_ms` is the time of the store, for leases of runs."""

    def __init__(self, access: TableAccess, request: RowRequest, *, part: IdRange, now_ms: int) -> None:
        self._access, self._request, self._now_ms = access, request, now_ms
        self._reads = PartReads(access, request, part=part)

    def pages(self) -> Pages:
        """Return the pages of the requested table."""
        readers: Mapping[str, Callable[[], Pages]] = {
            "lineage": self._lineage,
            "column_lineage": self._column_lineage,
            "runs": self._runs,
            "operations": self._operations,
        }
        return readers[self._request.table.name]()

    # -- lineage ----------------------------------------------------------------------------------------------

    async def _lineage(self) -> Pages:
        async for rows in self._reads.by_key(statements.LINEAGE, _EDGE_KEY):
            ends = await self._ends({row[0] for row in rows} | {row[2] for row in rows})
            yield partial(self._edge_rows, rows, ends=ends)

    async def _column_lineage(self) -> Pages:
        async for rows in self._reads.by_key(statements.COLUMN_LINEAGE, _EDGE_KEY):
            ends = await self._ends({row[0] for row in rows} | {row[3] for row in rows})
            yield partial(self._pair_rows, rows, ends=ends)

    async def _ends(self, ids: set[int]) -> _LineageEnds:
        objects = await self._access.objects(ids)
        rest = dumps(sorted(ids - objects.keys()))
        snapshot = self._access.snapshot
        rows = await snapshot.rows((statements.DATASETS, {"ids": rest, "metalake": snapshot.metalake_id}))
        return _LineageEnds(objects, {row[0]: row for row in rows})

    def _edge(self, target_id: int, source_id: int, *, ends: _LineageEnds) -> tuple[Cells, Cells] | None:
        """Return the cells of the target and the source; None if an end is hidden, or no end is in the metalake."""
        if not {target_id, source_id} & ends.objects.keys():
            return None
        target, source = self._end_cells(target_id, ends), self._end_cells(source_id, ends)
        return None if target is None or source is None else (target, source)

    def _end_cells(self, end_id: int, ends: _LineageEnds) -> Cells | None:
        """Return id, kind, path and namespace of an end of lineage; None if it is hidden."""
        target = ends.objects.get(end_id)
        if target is not None:
            link = target.chain[0]
            cells = (end_id, link.kind.word, display.render(target.path), None)
            return cells if self._access.is_visible(target) else None
        dataset = ends.datasets.get(end_id)
        return None if dataset is None else (end_id, _DATASET, dataset[2], dataset[1])

    def _edge_rows(self, rows: Sequence[Row], *, ends: _LineageEnds) -> list[Cells]:
        results: list[Cells] = []
        for target_id, _, source_id, *facts, kinds in rows:
            edge = self._edge(target_id, source_id, ends=ends)
            if edge is not None:
                results.append((*edge[0], *edge[1], *facts, kinds.split(",") if kinds else []))
        return results

    def _pair_rows(self, rows: Sequence[Row], *, ends: _LineageEnds) -> list[Cells]:
        results: list[Cells] = []
        for target_id, _, _, source_id, *pair, subtype, direct, namespace, job, run, at in rows:
            edge = self._edge(target_id, source_id, ends=ends)
            if edge is None:
                continue
            target = self._column_cells(target_id, column=(pair[0], pair[1]), ends=ends)
            source = self._column_cells(source_id, column=(pair[2], pair[3]), ends=ends)
            columns = (*edge[0][:3], *target, *edge[1][:3], *source)
            results.append((*columns, namespace, job, run, at, subtype or None, bool(direct)))
        return results

    def _column_cells(self, end_id: int, *, column: tuple[int, str], ends: _LineageEnds) -> Cells:
        """Return the field id and the reported name of a column: no id if it is unknown, and neither for all columns.

        A restricted reader gets no reported name, because it may be that of a former column.
        """
        field_id, name = column
        if field_id == EVERY_FIELD:
            return None, None
        target = ends.objects.get(end_id)
        is_hidden = target is not None and self._access.is_restricted(target)
        return (None if field_id == UNKNOWN_FIELD else field_id), (None if is_hidden else name)

    # -- runs and operations ----------------------------------------------------------------------------------

    async def _runs(self) -> Pages:
        async for rows in self._reads.by_id(statements.RUNS):
            runs = await self._access.resolve([(row[0], row[1], Kind.JOB, row[2], row[3]) for row in rows])
            yield partial(self._run_rows, rows, runs=runs)

    def _run_rows(self, rows: Sequence[Row], *, runs: Mapping[int, SnapshotObject]) -> list[Cells]:
        results: list[Cells] = []
        for run_id, pipeline_id, uuid, _, version, state, *facts, message, leased_until in rows:
            run = runs.get(run_id)
            if run is None or not self._access.may(Action.JOB_LOAD, run):
                continue
            current = LOST if state in LIVE and leased_until <= self._now_ms else state
            results.append((run_id, uuid, pipeline_id, run.chain[1].name, version, current, *facts, message))
        return results

    async def _operations(self) -> Pages:
        async for rows in self._reads.by_key(statements.OPERATIONS, {"second": -1}):
            objects = await self._access.objects({row[0] for row in rows})
            yield partial(self._operation_rows, rows, objects=objects)

    def _operation_rows(self, rows: Sequence[Row], *, objects: Mapping[int, SnapshotObject]) -> list[Cells]:
        access = self._access
        results: list[Cells] = []
        for node_id, *facts in rows:
            target = objects.get(node_id)
            if target is None or target.chain[0].kind is not Kind.TABLE:
                continue
            if access.is_visible(target) and access.may(Action.TABLE_MAINTAIN, target):
                results.append((node_id, Kind.TABLE.word, display.render(target.path), *facts))
        return results
