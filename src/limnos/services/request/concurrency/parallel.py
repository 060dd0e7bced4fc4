# SPDX-License-Identifier: Apache-2.0
"""Bounded concurrency: runs the same function for many items of one request, a few at a time.

Must not know the function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from limnos.services.request.concurrency.loop_turns import in_turns

T = TypeVar("T")
R = TypeVar("R")


async def map_concurrently(items: Sequence[T], do: Callable[[T], Awaitable[R]], *, at_once: int) -> list[R]:
    """Run a function for each item, at most `at_once` at a time, and return the results in the order of the items.

    After an error no further item is started. When all running calls have ended, the error of the first failed item (in
    the order of `items`) is raised.
    """
    if len(items) < 2 or at_once < 2:
        return [await do(item) for item in items]
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    left = iter(enumerate(items))

    async def work() -> None:
        for index, item in left:
            if errors:
                return
            try:
                results[index] = await do(item)
            except Exception as error:  # noqa: BLE001 - raised below
                errors[index] = error

    workers = [asyncio.ensure_future(in_turns(work())) for _ in range(min(at_once, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:  # after a cancellation no worker may continue
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if errors:
        raise errors[min(errors)]
    return [results[index] for index in range(len(items))]
