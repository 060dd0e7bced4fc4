# SPDX-License-Identifier: Apache-2.0
"""Row access: the one decision on reading the rows of a statement's datasets, whatever the statement.

Must not know statements, engines or wire formats. To bind a name only takes the right to load its object. To read rows
takes the right to read them, for each dataset that the bound query scans: also one behind a view, a synonym or a
function. The decision is made when a query is bound, and again when its job is built (0155).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.jobs import DatasetRef
from limnos.rooms.sqlpp.services.definitions.datasets import external_ref_of, ref_of
from limnos.rooms.sqlpp.services.execution.prepared import ReadyQuery
from limnos.rooms.sqlpp.services.requests.names import scope_of, source_find
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

NO_DATASET: Final = 1077
READS: Final = {Kind.TABLE: Action.TABLE_READ, Kind.EXTERNAL_DATASET: Action.EXTERNAL_DATASET_LOAD}
"""The kinds of objects that have rows, and the action that reads them."""


async def rows_require(ctx: Context, bound: ReadyQuery) -> None:
    """Check that the caller may read the rows of all datasets that a query scans. Raises SqlppError,
    PermissionDenied.
    """
    paths = [(*dataverse, name) for dataverse, name in bound.query.reads if (dataverse, name) not in bound.metadata]
    if paths:
        await ctx.read(scope_of(ctx), partial(_readable_nodes, paths=paths))


async def dataset_refs(session: StatementSession, reads: Iterable[tuple[Levels, str]]) -> tuple[DatasetRef, ...]:
    """Return the references by which the engine opens datasets to read their rows: table, type, key and indexes.

    Access is decided again, because the names were bound in an earlier request view. The session records the datasets,
    because stored results rest on them. Raises SqlppError, PermissionDenied.
    """
    ctx, paths = session.ctx, [(*dataverse, name) for dataverse, name in reads]
    refs = await ctx.read(scope_of(ctx), partial(_readable_refs, ctx=ctx, paths=paths))
    session.datasets_read.update(refs)
    return tuple(refs.values())


def _readable_refs(request_view: RequestView, *, ctx: Context, paths: Iterable[Levels]) -> dict[int, DatasetRef]:
    """Return the references of datasets by their node id."""
    return {
        node.id: ref_of(request_view, node, path=path)
        if node.kind is Kind.TABLE
        else external_ref_of(ctx, request_view, node=node, path=path)
        for path, node in _readable_nodes(request_view, paths=paths)
    }


def _readable_nodes(request_view: RequestView, *, paths: Iterable[Levels]) -> list[tuple[Levels, Node]]:
    """Return the datasets at paths, whose rows the caller may read. Raises SqlppError, PermissionDenied, CacheMiss."""
    request_view.require_in_use()
    nodes = []
    for path in paths:
        node = source_find(request_view, path, actions=READS)
        if node is None:
            raise missing_dataset_error(path)
        nodes.append((path, node))
    return nodes


def missing_dataset_error(path: Levels) -> SqlppError:
    """Return the error for a dataset that was dropped after its name was bound."""
    where, name = display_name(path[:-1]), display_name(path[-1:])
    return SqlppError(NO_DATASET, f"Cannot find dataset {name} in dataverse {where} any more")
