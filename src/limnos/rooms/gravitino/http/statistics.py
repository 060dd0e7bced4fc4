# SPDX-License-Identifier: Apache-2.0
"""Statistics of tables, partitions and columns: list, update, drop. A drop is a POST, as in Gravitino.

Must not know the meaning of statistics.
"""

from __future__ import annotations

from itertools import groupby

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.statistics import PartitionRange
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.metalake_objects import object_of
from limnos.services.governance import statistics
from limnos.services.request.context import Context


class StatisticsUpdate(GravitinoRequestBody, frozen=True):
    """The body of an update: new values by the statistics' names."""

    updates: dict[str, object]


class StatisticsDrop(GravitinoRequestBody, frozen=True):
    """The body of a request to drop statistics: their names."""

    names: list[str]


class PartitionUpdate(GravitinoRequestBody, frozen=True):
    """The new statistics of one partition, as values by name."""

    partition_name: str
    statistics: dict[str, object]


class PartitionsUpdate(GravitinoRequestBody, frozen=True):
    """The new statistics of several partitions."""

    updates: list[PartitionUpdate]


class PartitionDrop(GravitinoRequestBody, frozen=True):
    """The names of the statistics to drop from one partition."""

    partition_name: str
    statistic_names: list[str]


class PartitionsDrop(GravitinoRequestBody, frozen=True):
    """The body of a request to drop statistics from several partitions."""

    drops: list[PartitionDrop]


async def statistics_list(request: Request, ctx: Context) -> Response:
    """Return the statistics of a table as a whole, or of a column, without those of partitions."""
    results = await statistics.statistics_list(ctx, object_of(request))
    return ok(statistics=[dto.statistic(each) for each in results])


async def statistics_update(request: Request, ctx: Context, *, body: StatisticsUpdate) -> Response:
    """Write statistics of a table or column. Statistics that the request does not name are not changed."""
    values = [("", name, value) for name, value in body.updates.items()]
    await statistics.statistics_update(ctx, object_of(request), values=values)
    return ok()


async def statistics_drop(request: Request, ctx: Context, *, body: StatisticsDrop) -> Response:
    """Drop statistics of a table or column; missing ones are not errors."""
    names = [("", name) for name in body.names]
    return ok(dropped=await statistics.statistics_drop(ctx, object_of(request), names=names))


async def partition_statistics_list(request: Request, ctx: Context) -> Response:
    """Return the statistics of a range of partitions, by partition name."""
    partition_range = PartitionRange(
        request.query("from"),
        request.query("to"),
        above_too=request.query_flag("fromInclusive", default=True),
        below_too=request.query_flag("toInclusive"),
    )
    partition_statistics = await statistics.partition_statistics_list(ctx, object_of(request), within=partition_range)
    groups = groupby(partition_statistics, key=lambda each: each.partition)
    entries = [{"partitionName": name, "statistics": [dto.statistic(each) for each in group]} for name, group in groups]
    return ok(partitionStatistics=entries)


async def partition_statistics_update(request: Request, ctx: Context, *, body: PartitionsUpdate) -> Response:
    """Write statistics of partitions of a table. Statistics that the request does not name are not changed."""
    values = [
        (_partition(each.partition_name), name, value)
        for each in body.updates
        for name, value in each.statistics.items()
    ]
    await statistics.statistics_update(ctx, object_of(request), values=values)
    return ok()


async def partition_statistics_drop(request: Request, ctx: Context, *, body: PartitionsDrop) -> Response:
    """Drop statistics of partitions; missing ones are not errors."""
    names = [(_partition(each.partition_name), name) for each in body.drops for name in each.statistic_names]
    return ok(dropped=await statistics.statistics_drop(ctx, object_of(request), names=names))


def _partition(name: str) -> str:
    if not name.strip():
        raise BadRequest("A partition's name is empty: name the partition")
    return name


_ON = "Failed to operate statistic(s) operation [%s] on parent [{1} {2}]"
_TABLE, _PARTITIONS = (
    f"/metalakes/{{m}}/objects/{{type}}/{{fullName}}/statistics{rest}" for rest in ("", "/partitions")
)
ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_TABLE, handler=wrap_handler(_ON % "LIST", statistics_list), operation="list-statistics"),
    Route(
        method="PUT",
        path=_TABLE,
        handler=wrap_body_handler(_ON % "UPDATE", StatisticsUpdate, statistics_update),
        operation="update-statistics",
        asks=(Action.TABLE_ALTER,),
    ),
    Route(
        method="POST",
        path=_TABLE,
        handler=wrap_body_handler(_ON % "DROP", StatisticsDrop, statistics_drop),
        operation="drop-statistics",
    ),
    Route(
        method="GET",
        path=_PARTITIONS,
        handler=wrap_handler(_ON % "LIST", partition_statistics_list),
        operation="list-partition-statistics",
        query=("from", "to", "fromInclusive", "toInclusive"),
    ),
    Route(
        method="PUT",
        path=_PARTITIONS,
        handler=wrap_body_handler(_ON % "UPDATE", PartitionsUpdate, partition_statistics_update),
        operation="update-partition-statistics",
        asks=(Action.TABLE_ALTER,),
    ),
    Route(
        method="POST",
        path=_PARTITIONS,
        handler=wrap_body_handler(_ON % "DROP", PartitionsDrop, partition_statistics_drop),
        operation="drop-partition-statistics",
    ),
)
