"""The same for many things, a few at a time, for one request.

May import the standard library only. Knows nothing of what is done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


async def map_concurrently(items: Sequence[T], do: Callable[[T], Awaitable[R]], *, at_once: int) -> list[R]:
    """Do something for each item, and return what came of it in their order.

    Raises the error of the earliest item that had one, when nothing is under way any more; what had not begun then is left.
    """
    if len(items) < 2 or at_once < 2:
        return [await do(item) for item in items]
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    left = iter(enumerate(items))

    async def work() -> None:
        for place, item in left:
            if errors:
                return
            try:
                results[place] = await do(item)
            except Exception as error:  # noqa: BLE001 - raised below
                errors[place] = error

    workers = [asyncio.ensure_future(work()) for _ in range(min(at_once, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:  # cancelled: nobody goes on alone
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(items))]
