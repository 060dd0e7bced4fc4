# SPDX-License-Identifier: Apache-2.0
"""Result access: stored results are read only while their user may still read the rows on which they rest.

Must not know any wire format. A stored result rests on the datasets that its statements read, by node id. Each read of
the result decides again. A refusal ends the result for good (0157).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import StatementRequest
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import ZoneKind
from limnos.rooms.sqlpp.services.execution.row_access import READS
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.results import result_discard, result_lines
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import require_fact
from limnos.view.keys import node_key


async def result_require(ctx: Context, row: StatementRequest, *, datasets: Sequence[int]) -> None:
    """Check that the caller may still read the rows of all datasets on which a result rests; else delete the result.

    Args:
        ctx: The request.
        row: The request that has the result.
        datasets: The node ids of the datasets whose rows its statements read.

    Raises:
        PermissionDenied: The caller lost the right to a dataset, a read restriction now applies, or a dataset was
            dropped. The message is the same.
    """
    if datasets and not await ctx.read(scope_of(ctx), partial(_may_read_all, datasets)):
        await result_discard(ctx, row)
        raise PermissionDenied(
            "The result has ended, because you may no longer read a dataset from which it was made, or the dataset was"
            " dropped: send the statement again"
        )


async def readable_lines(
    ctx: Context, row: StatementRequest, *, datasets: Sequence[int]
) -> AsyncGenerator[list[bytes], None]:
    """Yield a result's lines in chunks, each decided again. Raises as `result_require` and `result_lines`."""
    async with aclosing(result_lines(ctx, row)) as chunks:
        async for lines in chunks:
            await result_require(ctx, row, datasets=datasets)
            yield lines


def _may_read_all(datasets: Sequence[int], request_view: RequestView) -> bool:
    request_view.require_in_use()
    for dataset in datasets:
        chain = _chain_of(request_view, dataset)
        if chain is None or not request_view.decide(READS[chain[0].kind], chain).allowed:
            return False
    return True


def _chain_of(request_view: RequestView, node_id: int) -> SecurableChain | None:
    """Return the current chain of a node of the catalog; None if it was dropped. Raises CacheMiss."""
    links: list[ChainLink] = []
    while node_id != request_view.catalog.id:
        node = require_fact(request_view.view, node_key(node_id), zone=request_view.zone)
        if node is None or node.kind.home is not ZoneKind.CATALOG:
            return None
        links.append(ChainLink(node.id, node.kind, node.name))
        node_id = node.parent_id
    return (*links, *request_view.settled.outer)
