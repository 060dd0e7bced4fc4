"""Requests of the query service that are under way on this node: who asked, since when, and a way to end each.

May import the rooms below. Knows no wire format. Results are taken in batches, so that watching for the deadline and for a cancellation costs
little per row.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

BATCH_BYTES: Final = 65_536
TEXT_SHOWN: Final = 1_000


class Ended(Exception):
    """A request that was ended: `late` at its deadline, else because somebody asked for that."""

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


class Request:
    """A request under way."""

    def __init__(self, *, request_id: str, user: str, client_context_id: str | None, text: str, now_ms: int) -> None:
        self.id = request_id
        self.user = user
        self.client_context_id = client_context_id
        self.text = text[:TEXT_SHOWN]
        self.started_ms = now_ms
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """End it, as soon as it can be."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def batches(self, lines: AsyncIterator[bytes], *, timeout_s: float) -> AsyncGenerator[list[bytes], None]:
        """Give lines in batches until there are no more. Raises Ended at the deadline, or when the request was ended."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        more = True
        while more:
            taking = asyncio.ensure_future(_take(lines))
            try:
                await asyncio.wait(
                    (taking, self._stopped), timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED
                )
                if not taking.done():
                    raise self._ended(timeout_s)
            finally:
                if not taking.done():
                    taking.cancel()
                    with suppress(asyncio.CancelledError, Exception):
                        await taking
            batch, more = taking.result()
            if batch:
                yield batch

    def _ended(self, timeout_s: float) -> Ended:
        if self._stopped.done():
            return Ended("ASX0041: The request was cancelled", late=False)
        return Ended(f"The request took longer than its time of {timeout_s:g} s, and was ended", late=True)


async def _take(lines: AsyncIterator[bytes]) -> tuple[list[bytes], bool]:
    """The next lines, and whether there may be more."""
    batch: list[bytes] = []
    size = 0
    async for line in lines:
        batch.append(line)
        size += len(line)
        if size >= BATCH_BYTES:
            return batch, True
    return batch, False


class Requests:
    """All requests under way."""

    def __init__(self) -> None:
        self._held: dict[int, Request] = {}

    def add(self, request: Request) -> None:
        """Take note of one."""
        self._held[id(request)] = request

    def remove(self, request: Request) -> None:
        """Forget one."""
        self._held.pop(id(request), None)

    def of(self, user: str | None) -> Iterator[Request]:
        """Those of a user; of everybody for None."""
        return (each for each in list(self._held.values()) if user is None or each.user == user)
