# SPDX-License-Identifier: Apache-2.0
"""A hook between a request's decision and its transaction, at which a test sends another request.

`interfere` stops the next request at one of its steps, executes another request completely, and continues. A request
that was allowed before must be decided again: its outcome must be that of a request after the other one.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from limnos.services.request.context import Context
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import rows_of

Rows = dict[str, list[tuple[object, ...]]]


class InterferencePoint(enum.Enum):
    """The step at which a request is stopped: after its first read has decided, or before its first mutation is
    submitted to the store.
    """

    READ = "read"
    SUBMIT = "submit"


@dataclass
class Interference:
    """Whether the request reached the step, and the store's rows right after the other request."""

    is_done: bool = False
    rows: Rows = field(default_factory=dict)


@contextmanager
def interfere(
    node: DriverNode, patch: pytest.MonkeyPatch, *, step: InterferencePoint, act: Callable[[], Awaitable[None]]
) -> Iterator[Interference]:
    """Stop the next request of a node at a step and run `act`, once. The patches are undone at the end."""
    node.settle()  # background work of an earlier request would be taken for this request's
    interference = Interference()

    async def stop() -> None:
        if not interference.is_done:
            interference.is_done = True
            await act()
            interference.rows = rows_of(node)

    with patch.context() as patches:
        if step is InterferencePoint.READ:
            read = Context.read

            async def read_then_stop(self: Context, *args: object, **named: object) -> object:
                result = await read(self, *args, **named)  # type: ignore[arg-type, type-var]
                await stop()
                return result

            patches.setattr(Context, "read", read_then_stop)
        else:
            for name in ("submit", "_write_held"):  # only of requests: the node submits mutations of its own
                patches.setattr(Context, name, _behind(stop, getattr(Context, name)))
        yield interference


@contextmanager
def interfere_before(
    patch: pytest.MonkeyPatch, owner: type, *, method: str, act: Callable[[], Awaitable[None]], call: int = 1
) -> Iterator[Interference]:
    """Run `act` once, before the given call of an asynchronous method: of the method that calls an external system,
    for example. The patch is undone at the end.
    """
    interference, real, calls = Interference(), getattr(owner, method), 0

    async def act_first(*args: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == call and not interference.is_done:
            interference.is_done = True
            await act()
        return await real(*args, **named)

    with patch.context() as patches:
        patches.setattr(owner, method, act_first)
        yield interference


def _behind(
    stop: Callable[[], Awaitable[None]], real: Callable[..., Awaitable[object]]
) -> Callable[..., Awaitable[object]]:
    async def stop_first(*args: object, **named: object) -> object:
        await stop()
        return await real(*args, **named)

    return stop_first
