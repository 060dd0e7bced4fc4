# SPDX-License-Identifier: Apache-2.0
"""Restricted counts: omits the statistics of a dataset in the dataverse Metadata for callers whose reads are
restricted.

Must not know queries. ANALYZE counts all objects of a dataset, including those that a row filter hides from restricted
users, and stores its counts among the statements of the dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.sqlpp.services.definitions.datasets import record_with
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import for_each

ANALYZE: Final = "ANALYZE "
"""The prefix of the stored statements that contain the counts of a dataset."""


async def without_hidden_counts(ctx: Context, nodes: Sequence[tuple[Levels, Node]]) -> Sequence[tuple[Levels, Node]]:
    """Return the nodes with their namespace paths; the statistics of datasets that are restricted for the caller are
    omitted.
    """
    paths = {node.id: (*path, node.name) for path, node in nodes if any(map(_is_analyze, _statements(node)))}
    if not paths:
        return nodes
    hidden_ids = await ctx.read(scope_of(ctx), lambda request_view: _restricted_ids(request_view, paths))
    return [(path, _without_counts(node) if node.id in hidden_ids else node) for path, node in nodes]


def _restricted_ids(request_view: RequestView, paths: Mapping[int, Levels]) -> frozenset[int]:
    def is_restricted(path: Levels) -> bool:
        node, chain = request_view.find(path, Kind.TABLE)
        return node is None or bool(request_view.bindings_of(request_view.user, chain))

    return frozenset(id_ for id_, result in zip(paths, for_each(paths.values(), is_restricted), strict=True) if result)


def _statements(node: Node) -> Iterable[str]:
    return getattr(node.record, "statements", ())


def _is_analyze(statement: str) -> bool:
    return statement[: len(ANALYZE)].upper() == ANALYZE


def _without_counts(node: Node) -> Node:
    texts = tuple([text for text in _statements(node) if not _is_analyze(text)])
    return replace(node, record=record_with(cast("TableRecord", node.record), texts))
