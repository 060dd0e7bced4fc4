# SPDX-License-Identifier: Apache-2.0
"""Executors that write the files of a plan for a restricted user, so that the server does not.

Must not know leases: who has executors is a component, and without it the server writes all files. A plan learns by
the descriptions of its spans what is written, so it does not matter which node an executor reports to. Decision record
0337.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from time import monotonic
from typing import Final, Protocol

import msgspec

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.formats.scans.request import ScanRequest
from limnos.model.principals import Requester
from limnos.services.iceberg.scans import ScanTarget
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey

POLL_S = 2.0
"""The time between two looks for written files, in seconds."""
QUEUE_S = 60.0
"""The maximum time for which files wait for an executor, in seconds, before the server writes them."""
FOUND_AT_ONCE: Final = 256
"""The number of spans whose files are looked up by one call of a worker process."""

FindSpans = Callable[[Sequence[str]], Awaitable[Sequence[list[Json] | None]]]
"""Returns the files of spans by their names; None for each span that is not written."""


class SpanRecipe(msgspec.Struct, frozen=True):
    """All that decides the spans of a plan besides the table: its reader, the scan, the reader's restrictions, and the
    directory of the files.
    """

    requester: Requester
    request: ScanRequest
    bound: BoundRestrictions
    directory: str


class DelegationState(Enum):
    """The state of files that executors write: `LOST` if no executor is there any more."""

    WAITING = "waiting"
    RUNNING = "running"
    LOST = "lost"
    ENDED = "ended"


class SpanExecutors(Protocol):
    """Has the files of plans written by executors."""

    async def begin(self, ctx: Context, scanned: ScanTarget, *, recipe: SpanRecipe, is_large: bool) -> int | None:
        """Ask executors to write the missing spans of a plan, or join the open operation for the same recipe.

        Returns the number of the operation; None if no executor is there, or if the server must write the files itself.
        No operation begins unless the plan `is_large`.
        """

    async def state(self, ctx: Context, operation: int) -> DelegationState:
        """Return the state of an operation."""

    async def give_up(self, ctx: Context, operation: int) -> None:
        """Cancel an operation, because the server writes the files itself. No-op if it has ended."""


class NoSpanExecutors:
    """The null implementation, for a node without maintenance: the server writes all files."""

    async def begin(self, ctx: Context, scanned: ScanTarget, *, recipe: SpanRecipe, is_large: bool) -> int | None:
        """Return None: no executor is there."""

    async def state(self, ctx: Context, operation: int) -> DelegationState:
        """Return that any operation has ended."""
        return DelegationState.ENDED

    async def give_up(self, ctx: Context, operation: int) -> None:
        """No-op: there are no operations."""


SPAN_EXECUTORS: ComponentKey[SpanExecutors] = ComponentKey("span executors", lambda _: NoSpanExecutors())


async def write_with_executors(
    ctx: Context, scanned: ScanTarget, *, recipe: SpanRecipe, names: Sequence[str], find: FindSpans, is_large: bool
) -> dict[str, list[Json]]:
    """Have spans written by executors, and wait for their files.

    Returns the files by the names of the spans. Those that are missing are for the server: no executor is there, none
    leased the operation in time, or it ended without them.

    Args:
        ctx: The request.
        scanned: The table.
        recipe: The plan's recipe, from which the executors' requests are computed.
        names: The names of the missing spans, in their order.
        find: Looks for the files of at most `FOUND_AT_ONCE` spans.
        is_large: Whether an operation may begin. A request that is repeated has fewer missing spans than the first one,
            and joins its operation.
    """
    executors = SPAN_EXECUTORS.of(ctx.services)
    operation = await executors.begin(ctx, scanned, recipe=recipe, is_large=is_large)
    if operation is None:
        return {}
    written_files: dict[str, list[Json]] = {}
    missing, waiting_since = list(names), monotonic()
    while missing:
        state = await executors.state(ctx, operation)
        if state is DelegationState.RUNNING:
            waiting_since = monotonic()
        missing = await _collect(missing, find=find, into=written_files, is_last=state is DelegationState.ENDED)
        if state is DelegationState.ENDED:
            break
        if state is DelegationState.LOST or monotonic() - waiting_since >= QUEUE_S:
            await executors.give_up(ctx, operation)
            break
        if missing:
            await asyncio.sleep(POLL_S)
    return written_files


async def _collect(names: Sequence[str], *, find: FindSpans, into: dict[str, list[Json]], is_last: bool) -> list[str]:
    """Add the files of written spans to `into`. Returns the names of the spans that are missing.

    Executors write in the order of the names, so a part without any file ends the search, unless it is the last one.
    """
    missing: list[str] = []
    for at in range(0, len(names), FOUND_AT_ONCE):
        part = names[at : at + FOUND_AT_ONCE]
        results = await find(part)
        into.update({name: files for name, files in zip(part, results, strict=True) if files is not None})
        missing += [name for name in part if name not in into]
        if not is_last and all(files is None for files in results):
            return [*missing, *names[at + FOUND_AT_ONCE :]]
    return missing
