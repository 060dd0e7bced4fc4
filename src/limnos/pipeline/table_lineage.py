# SPDX-License-Identifier: Apache-2.0
"""Columns of a pipeline's sources and tables with their origins, as far as they are known without data.

Values alone: the engine fills them, and pictures show them. Must not know Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.plan_columns import IDENTITY, ColumnOrigin


class ResolvedColumn(NamedTuple):
    """A column with its type in Spark's SQL, and the columns from which its values come.

    The source of an origin is a table's path, or the name of a source as one part.
    """

    name: str
    type: str
    origins: tuple[ColumnOrigin, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLineage:
    """The columns of a source or table, or in `unknown` the reason why they are not known."""

    columns: tuple[ResolvedColumn, ...] = ()
    rows: tuple[ColumnOrigin, ...] = ()
    """The columns that filter, join or group its rows."""
    unknown: str = ""
    is_published: bool = False
    """Whether the columns are those of the table as it is published, because its step does not tell them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineColumns:
    """The columns of each source (by one part) and table of a pipeline."""

    tables: Mapping[Parts, TableLineage] = field(default_factory=dict)


_KINDS = {"FILTER": "filter", "JOIN": "join", "GROUP_BY": "group", "SORT": "order", "WINDOW": "window"}


def origin_kind(origin: ColumnOrigin) -> str:
    """Return how a value comes from an origin: `same`, `computed`, `aggregated`, or what it depends on."""
    if not origin.direct:
        return _KINDS.get(origin.subtype, "condition")
    if origin.subtype == IDENTITY:
        return "same"
    return "aggregated" if origin.subtype == "AGGREGATION" else "computed"
