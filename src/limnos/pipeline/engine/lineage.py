# SPDX-License-Identifier: Apache-2.0
"""Lineage of a step's rows (tables, files, columns) from the query's analyzed plan.

Must not know write modes. A merge is analyzed as the query of its source, so no lineage is lost; a Spark listener would
see only the target.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from limnos.names.columns import CHANGE_COLUMNS
from limnos.pipeline.engine.naming import BAD, FILE
from limnos.pipeline.engine.plan_columns import ColumnOrigin, trace
from limnos.pipeline.lineage import LineageSource, QueryLineage, table_source
from limnos.spark.plan_sources import Java, PlanSource, file_source, plan_leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

_HELPERS: Final = CHANGE_COLUMNS | {BAD, FILE, "_last_updated_sequence_number"}
"""Columns that identify malformed rows of a file, and those by which an increment selects its rows."""


def lineage_of(frame: DataFrame, *, file_roots: Iterable[str] = ()) -> QueryLineage:
    """Return the origins of a DataFrame's columns. Call it before the rows are staged, because staged rows have no
    plan.

    A file below one of `file_roots` stands for this root: a run that reads only the new files of a pattern has the same
    source as the run before. Over Spark Connect no plan is available, so the result is empty; then use
    `lineage_of_tables`.
    """
    executed = getattr(frame, "_jdf", None)
    if executed is None:
        return QueryLineage(inputs=(), columns={})
    plan: Java = executed.queryExecution().analyzed()
    roots = sorted((_lineage_source(file_source(root)) for root in file_roots), key=lambda root: -len(root.name))
    leaves = {number: _root_of(_lineage_source(source), roots) for number, source in plan_leaves(plan)}
    traced = trace(json.loads(plan.toJSON()), leaves)
    inputs = tuple([each for each in traced.inputs if isinstance(each, LineageSource)])
    columns = {
        name: _without_helper_columns(origins) for name, origins in zip(frame.columns, traced.columns, strict=False)
    }
    return QueryLineage(inputs=inputs, columns=columns, rows=_without_helper_columns(traced.rows))


def _without_helper_columns(origins: Iterable[ColumnOrigin]) -> tuple[ColumnOrigin, ...]:
    return tuple(sorted([each for each in origins if each.column not in _HELPERS], key=_order))


def _order(origin: ColumnOrigin) -> tuple[str, str, str, str, bool]:
    source = origin.source
    place = (source.namespace, source.name) if isinstance(source, LineageSource) else ("", str(source))
    return (*place, origin.column, origin.subtype, origin.direct)


# ------------------------------------------------------------------------------------------------ leaves of the plan


def _lineage_source(source: PlanSource) -> LineageSource:
    return LineageSource(source.namespace, source.name) if source.table is None else table_source(source.table)


def _root_of(source: LineageSource, roots: Iterable[LineageSource]) -> LineageSource:
    """Return the first root that a file is below; the source itself if there is none."""
    above = (
        root
        for root in roots
        if source.namespace == root.namespace and source.name.startswith(f"{root.name.rstrip('/')}/")
    )
    return source if source.table else next(above, source)
